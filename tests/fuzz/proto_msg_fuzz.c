/*
 * proto_msg_fuzz.c - any bytes as any message; the first byte chooses which. What is taken is
 * encoded and decoded again to the same.
 */
#include "proto/codec.h"
#include "proto/msg.h"
#include "tests/lib/fuzz.h"

static const struct xf_msg_desc *choose(uint8_t no)
{
#define ROW(name, table) xf_msg_##name##_desc,
    static const struct xf_msg_desc *(*const all[])(void) = {XF_MSG_ALL(ROW)};
#undef ROW

    return all[no % XF_ARRAY_LEN(all)]();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) /* NOLINT: the name is libFuzzer's */
{
    XF_AUTO_ARENA a = {0};
    XF_AUTO_BUF bytes = {0};
    XF_AUTO_BUF text = {0};
    const struct xf_msg_desc *d;
    struct xf_err err = {0};
    void *m;
    void *back;

    xf_buf_init(&bytes, XF_MSG_MAX);
    xf_buf_init(&text, 0);
    if (size == 0) {
        return 0;
    }
    d = choose(data[0]);
    m = xf_arena_calloc(&a, 1, d->size);
    back = xf_arena_calloc(&a, 1, d->size);
    if (xf_codec_decode(d, xf_str_n(data + 1, size - 1), &a, m, &err) != XF_OK) {
        XF_ASSERT(err.code == XF_E_PROTO);
        return 0;
    }
    xf_codec_text(d, m, &text);
    XF_ASSERT(xf_codec_encode(d, m, &bytes, &err) == XF_OK);
    XF_ASSERT(xf_codec_decode(d, xf_buf_view(&bytes), &a, back, &err) == XF_OK);
    XF_ASSERT(xf_codec_eq(d, m, back));
    return 0;
}
