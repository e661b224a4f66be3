/*
 * s3_xml_fuzz.c - any bytes as an answer, in two cuts: no crash, no read beyond, the same verdict.
 *
 * The first byte chooses where the text is cut, so that states carried between pieces are tried.
 */
#include "common/s3/xml.h"
#include "tests/lib/fuzz.h"

/* Read every string of the document. */
static size_t touch(const struct xf_xml_doc *doc)
{
    size_t sum = doc->etag.len + doc->upload_id.len + doc->next_token.len + doc->error.code.len;

    for (size_t i = 0; i < doc->n_objects; i++) {
        XF_ASSERT(doc->objects[i].key.len > 0);
        sum += (size_t)xf_str_hash(doc->objects[i].key, 0) + doc->objects[i].etag.len;
    }
    for (size_t i = 0; i < doc->n_uploads; i++) {
        sum += (size_t)xf_str_hash(doc->uploads[i].key, 0);
    }
    for (size_t i = 0; i < doc->n_tags; i++) {
        sum += (size_t)xf_str_hash(doc->tags[i].value, 0);
    }
    return sum;
}

static enum xf_code parse(struct xf_xml *x, const char *text, size_t len, size_t cut, size_t *sum)
{
    struct xf_err err;
    enum xf_code code;

    xf_xml_reset(x);
    code = xf_xml_feed(x, text, cut, &err);
    if (code == XF_OK) {
        code = xf_xml_feed(x, text + cut, len - cut, &err);
    }
    if (code == XF_OK) {
        code = xf_xml_finish(x, &err);
    }
    *sum = code == XF_OK ? touch(xf_xml_doc(x)) : 0;
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct xf_xml *x;
    size_t whole = 0;
    size_t halves = 0;

    if (size < 1) {
        return 0;
    }
    if (x == NULL) {
        x = xf_xml_new();
    }
    const char *text = (const char *)data + 1;
    size_t len = size - 1;
    enum xf_code a = parse(x, text, len, len, &whole);
    enum xf_code b = parse(x, text, len, len * data[0] / 256, &halves);

    XF_ASSERT(a == b && whole == halves);
    return 0;
}
