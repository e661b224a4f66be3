/* xml.c - S3's XML, both ways. */
#include "tests/s3d/xml.h"

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/base/mem.h"

#include <libxml/xmlreader.h>

#include <stdio.h>

void s3d_xml_text(struct xf_buf *out, struct xf_str s)
{
    size_t start = 0;

    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        const char *entity = NULL;
        if (c >= 0x20 && c != '&' && c != '<' && c != '>' && c != '"' && c != '\'') {
            continue;
        }
        xf_buf_put_mem(out, s.ptr + start, i - start);
        start = i + 1;
        switch (c) {
        case '&': entity = "&amp;"; break;
        case '<': entity = "&lt;"; break;
        case '>': entity = "&gt;"; break;
        case '"': entity = "&quot;"; break;
        case '\'': entity = "&apos;"; break;
        default: break;
        }
        if (entity != NULL) {
            xf_buf_put_c(out, entity);
        } else {
            xf_buf_putf(out, "&#x%x;", c);
        }
    }
    if (start < s.len) {
        xf_buf_put_mem(out, s.ptr + start, s.len - start);
    }
}

void s3d_xml_tag(struct xf_buf *out, const char *name, struct xf_str text)
{
    size_t n = strlen(name);

    xf_buf_put_byte(out, '<');
    xf_buf_put_mem(out, name, n);
    xf_buf_put_byte(out, '>');
    s3d_xml_text(out, text);
    xf_buf_put_mem(out, "</", 2);
    xf_buf_put_mem(out, name, n);
    xf_buf_put_byte(out, '>');
}

void s3d_xml_tag_u64(struct xf_buf *out, const char *name, uint64_t v)
{
    xf_buf_put_byte(out, '<');
    xf_buf_put_c(out, name);
    xf_buf_put_byte(out, '>');
    xf_buf_put_u64(out, v);
    xf_buf_put_mem(out, "</", 2);
    xf_buf_put_c(out, name);
    xf_buf_put_byte(out, '>');
}

void s3d_xml_tag_time(struct xf_buf *out, const char *name, int64_t wall_ms)
{
    char text[XF_TIME_TEXT_MAX];

    xf_time_rfc3339(wall_ms, true, text);
    s3d_xml_tag(out, name, xf_str_c(text));
}

static const struct {
    const char *code;
    int status;
    bool usual; /* the code of its status when only the status is given */
} errors[] = {
    {"AccessControlListNotSupported", 400, false},
    {"AccessDenied", 403, true},
    {"AuthorizationHeaderMalformed", 400, false},
    {"AuthorizationQueryParametersError", 400, false},
    {"BadDigest", 400, false},
    {"BadRequest", 400, false},
    {"BucketAlreadyOwnedByYou", 409, false},
    {"BucketNotEmpty", 409, false},
    {"ConditionalRequestConflict", 409, true},
    {"EntityTooLarge", 400, false},
    {"EntityTooSmall", 400, false},
    {"ExpiredToken", 400, false},
    {"IncompleteBody", 400, false},
    {"InternalError", 500, true},
    {"InvalidAccessKeyId", 403, false},
    {"InvalidArgument", 400, false},
    {"InvalidBucketName", 400, false},
    {"InvalidDigest", 400, false},
    {"InvalidObjectState", 403, false},
    {"InvalidPart", 400, false},
    {"InvalidPartNumber", 416, false},
    {"InvalidPartOrder", 400, false},
    {"InvalidRange", 416, true},
    {"InvalidRequest", 400, true},
    {"InvalidStorageClass", 400, false},
    {"InvalidTag", 400, false},
    {"InvalidToken", 400, false},
    {"KeyTooLongError", 400, false},
    {"MalformedXML", 400, false},
    {"MetadataTooLarge", 400, false},
    {"MethodNotAllowed", 405, true},
    {"MissingContentLength", 411, true},
    {"NoSuchBucket", 404, false},
    {"NoSuchKey", 404, true},
    {"NoSuchUpload", 404, false},
    {"NotImplemented", 501, true},
    {"ObjectLockConfigurationNotFoundError", 404, false},
    {"ObjectNotInActiveTierError", 403, false},
    {"OperationAborted", 409, false},
    {"PermanentRedirect", 301, true},
    {"PreconditionFailed", 412, true},
    {"RequestTimeTooSkewed", 403, false},
    {"RequestTimeout", 400, false},
    {"ServiceUnavailable", 503, false},
    {"SignatureDoesNotMatch", 403, false},
    {"SlowDown", 503, true},
    {"TemporaryRedirect", 307, true},
    {"TooManyRequests", 429, true},
    {"XAmzContentSHA256Mismatch", 400, false},
};

int s3d_error_status(const char *code)
{
    for (size_t i = 0; i < XF_ARRAY_LEN(errors); i++) {
        if (strcmp(errors[i].code, code) == 0) {
            return errors[i].status;
        }
    }
    return 400;
}

const char *s3d_error_code(int status)
{
    for (size_t i = 0; i < XF_ARRAY_LEN(errors); i++) {
        if (errors[i].usual && errors[i].status == status) {
            return errors[i].code;
        }
    }
    return status >= 500 ? "InternalError" : "InvalidRequest";
}

/* ---- parsing ---- */

struct parse {
    enum s3d_xml_kind kind;
    struct s3d_xml_doc *doc;
    char path[3][32]; /* element names by depth */
    size_t cap_parts;
    size_t cap_pairs;
};

static bool at(const struct parse *p, int depth, const char *a, const char *b, const char *c)
{
    return strcmp(p->path[0], a) == 0 && (depth < 1 || strcmp(p->path[1], b) == 0) &&
           (depth < 2 || strcmp(p->path[2], c) == 0);
}

static void begin(struct parse *p, int depth)
{
    struct s3d_xml_doc *d = p->doc;

    if (depth == 1 && at(p, 1, "CompleteMultipartUpload", "Part", NULL)) {
        if (d->n_parts == p->cap_parts) {
            p->cap_parts = p->cap_parts == 0 ? 64 : p->cap_parts * 2;
            d->parts = xf_xrealloc(d->parts, p->cap_parts, sizeof(*d->parts));
        }
        memset(&d->parts[d->n_parts++], 0, sizeof(*d->parts));
    }
    bool tag = depth == 2 && at(p, 2, "Tagging", "TagSet", "Tag");
    if (tag || (depth == 1 && at(p, 1, "Delete", "Object", NULL))) {
        if (d->n_pairs == p->cap_pairs) {
            p->cap_pairs = p->cap_pairs == 0 ? 64 : p->cap_pairs * 2;
            d->pairs = xf_xrealloc(d->pairs, p->cap_pairs, sizeof(*d->pairs));
        }
        memset(&d->pairs[d->n_pairs++], 0, sizeof(*d->pairs));
    }
}

/* The text's place; its address is set when all texts are in. */
static struct xf_str keep(struct s3d_xml_doc *d, struct xf_str text)
{
    size_t start = d->text.len;

    xf_buf_put(&d->text, text);
    return (struct xf_str){(const char *)start,
                           text.len}; /* NOLINT(performance-no-int-to-ptr): an offset, see fix() */
}

static void part_text(struct parse *p, const char *name, struct xf_str text)
{
    struct s3d_xml_part *part = &p->doc->parts[p->doc->n_parts - 1];

    if (strcmp(name, "PartNumber") == 0) {
        if (!xf_str_u64(xf_str_trim(text), &part->part_no)) {
            part->part_no = 0;
        }
    } else if (strcmp(name, "ETag") == 0) {
        part->etag = keep(p->doc, text);
    } else if (strncmp(name, "Checksum", 8) == 0) {
        enum s3d_sum_alg alg = s3d_sum_by_name(xf_str_c(name + 8));
        if (alg != S3D_SUM_NONE) {
            part->sum[alg] = keep(p->doc, xf_str_trim(text));
        }
    }
}

static void pair_text(struct parse *p, const char *name, struct xf_str text)
{
    struct s3d_param_pair *pair = &p->doc->pairs[p->doc->n_pairs - 1];

    if (strcmp(name, "Key") == 0) {
        pair->key = keep(p->doc, text);
    } else if (strcmp(name, "Value") == 0) {
        pair->value = keep(p->doc, text);
    }
}

static void element_text(struct parse *p, int depth, const char *name, struct xf_str text)
{
    struct s3d_xml_doc *d = p->doc;

    if (depth == 2 && d->n_parts > 0 && at(p, 1, "CompleteMultipartUpload", "Part", NULL)) {
        part_text(p, name, text);
    } else if (depth == 2 && d->n_pairs > 0 && at(p, 1, "Delete", "Object", NULL)) {
        pair_text(p, name, text);
    } else if (depth == 3 && d->n_pairs > 0 && at(p, 2, "Tagging", "TagSet", "Tag")) {
        pair_text(p, name, text);
    } else if (depth == 1 && at(p, 0, "Delete", NULL, NULL) && strcmp(name, "Quiet") == 0) {
        d->quiet = xf_str_eq_c(xf_str_trim(text), "true");
    } else if (depth == 1 && at(p, 0, "CreateBucketConfiguration", NULL, NULL) &&
               strcmp(name, "LocationConstraint") == 0) {
        d->location = keep(d, xf_str_trim(text));
    }
}

static void fix(const struct s3d_xml_doc *d, struct xf_str *s)
{
    s->ptr = s->len == 0 ? "" : d->text.ptr + (size_t)s->ptr;
}

static void fix_all(struct s3d_xml_doc *d)
{
    for (size_t i = 0; i < d->n_parts; i++) {
        fix(d, &d->parts[i].etag);
        for (int k = 0; k < S3D_SUM_N; k++) {
            fix(d, &d->parts[i].sum[k]);
        }
    }
    for (size_t i = 0; i < d->n_pairs; i++) {
        fix(d, &d->pairs[i].key);
        fix(d, &d->pairs[i].value);
    }
    fix(d, &d->location);
}

static void
quiet(void *arg, const char *msg, xmlParserSeverities severity, xmlTextReaderLocatorPtr where)
{
    (void)arg; /* the caller only needs to know that it failed */
    (void)msg;
    (void)severity;
    (void)where;
}

static bool walk(struct parse *p, xmlTextReaderPtr reader)
{
    char name[32] = "";
    struct xf_buf text;
    int rc;

    xf_buf_init(&text, 0);
    while ((rc = xmlTextReaderRead(reader)) == 1) {
        int depth = xmlTextReaderDepth(reader);
        int type = xmlTextReaderNodeType(reader);
        if (type == XML_READER_TYPE_ELEMENT) {
            (void)snprintf(
                name, sizeof(name), "%s", (const char *)xmlTextReaderConstLocalName(reader));
            if (depth < 3) {
                memcpy(p->path[depth], name, sizeof(name));
            }
            xf_buf_reset(&text);
            begin(p, depth);
        } else if (type == XML_READER_TYPE_TEXT || type == XML_READER_TYPE_CDATA ||
                   type == XML_READER_TYPE_WHITESPACE ||
                   type == XML_READER_TYPE_SIGNIFICANT_WHITESPACE) {
            xf_buf_put_c(&text, (const char *)xmlTextReaderConstValue(reader));
        } else if (type == XML_READER_TYPE_END_ELEMENT) {
            (void)snprintf(
                name, sizeof(name), "%s", (const char *)xmlTextReaderConstLocalName(reader));
            element_text(p, depth, name, xf_buf_view(&text));
            xf_buf_reset(&text);
        }
    }
    xf_buf_fini(&text);
    return rc == 0;
}

bool s3d_xml_parse(enum s3d_xml_kind kind, struct xf_str body, struct s3d_xml_doc *doc)
{
    static const char *const roots[] = {
        "CompleteMultipartUpload", "Delete", "Tagging", "CreateBucketConfiguration"};
    struct parse p = {.kind = kind, .doc = doc};

    memset(doc, 0, sizeof(*doc));
    xf_buf_init(&doc->text, 0);
    if (body.len == 0 || body.len > INT32_MAX) {
        return false;
    }
    xmlTextReaderPtr reader =
        xmlReaderForMemory(body.ptr, (int)body.len, NULL, NULL, XML_PARSE_NONET);
    if (reader == NULL) {
        return false;
    }
    xmlTextReaderSetErrorHandler(reader, quiet, NULL);
    bool ok = walk(&p, reader) && strcmp(p.path[0], roots[kind]) == 0;
    xmlFreeTextReader(reader);
    fix_all(doc);
    return ok;
}

void s3d_xml_doc_fini(struct s3d_xml_doc *doc)
{
    xf_buf_fini(&doc->text);
    xf_xfree(doc->parts);
    xf_xfree(doc->pairs);
    doc->parts = NULL;
    doc->pairs = NULL;
}
