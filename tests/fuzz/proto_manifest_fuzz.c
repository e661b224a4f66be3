/*
 * proto_manifest_fuzz.c - any bytes as a manifest. What is taken can be written again, and reads
 * the same.
 */
#include "proto/manifest.h"
#include "tests/lib/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) /* NOLINT: the name is libFuzzer's */
{
    struct xf_manifest m;
    struct xf_manifest back;
    struct xf_manifest_enc enc;
    XF_AUTO_BUF bytes = {0};
    struct xf_err err = {0};

    xf_buf_init(&bytes, 0);
    if (xf_manifest_decode(xf_str_n(data, size), &m, &err) != XF_OK) {
        XF_ASSERT(err.code == XF_E_PROTO && m.n == 0 && m.objects == NULL);
        return 0;
    }
    xf_manifest_enc_init(&enc, m.source_no);
    for (uint32_t i = 0; i < m.n; i++) {
        XF_ASSERT(m.objects[i].key.len >= 1 && m.objects[i].key.len <= XF_OBJECT_KEY_MAX);
        XF_ASSERT(xf_manifest_add(&enc, &m.objects[i], &err) == XF_OK);
    }
    xf_manifest_finish(&enc, &bytes);
    XF_ASSERT(xf_manifest_decode(xf_buf_view(&bytes), &back, &err) == XF_OK);
    XF_ASSERT(back.n == m.n && back.source_no == m.source_no && back.size_bytes == m.size_bytes);
    for (uint32_t i = 0; i < m.n; i++) {
        XF_ASSERT(xf_str_eq(m.objects[i].key, back.objects[i].key));
        XF_ASSERT(xf_str_eq(m.objects[i].etag, back.objects[i].etag));
        XF_ASSERT(m.objects[i].mtime_ms == back.objects[i].mtime_ms);
        XF_ASSERT(xf_str_eq(m.objects[i].storage_class, back.objects[i].storage_class));
    }
    xf_manifest_enc_fini(&enc);
    xf_manifest_fini(&m);
    xf_manifest_fini(&back);
    return 0;
}
