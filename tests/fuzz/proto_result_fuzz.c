/*
 * proto_result_fuzz.c - any bytes as a result of some number of objects; the first two bytes choose
 * the number. What is taken reads the same after it was written, and merges once.
 */
#include "proto/result.h"
#include "tests/lib/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) /* NOLINT: the name is libFuzzer's */
{
    XF_AUTO_RESULT_SET s = {0};
    XF_AUTO_RESULT_SET back = {0};
    XF_AUTO_RESULT_SET sum = {0};
    struct xf_result_counts added;
    struct xf_result_counts again;
    struct xf_result_counts all;
    XF_AUTO_BUF bytes = {0};
    struct xf_err err = {0};
    uint32_t n = size >= 2 ? (uint32_t)(data[0] << 8 | data[1]) % (XF_MANIFEST_MAX + 1) : 0;

    xf_buf_init(&bytes, 0);
    xf_result_set_init(&s, 0);
    xf_result_set_init(&back, 0);
    xf_result_set_init(&sum, n);
    xf_result_set_fini(&s);
    xf_result_set_fini(&back);
    size = size >= 2 ? size - 2 : 0;
    if (xf_result_set_decode(xf_str_n(data + 2, size), n, &s, &err) != XF_OK) {
        XF_ASSERT(err.code == XF_E_PROTO && s.n == n);
        return 0;
    }
    xf_result_set_encode(&s, &bytes);
    XF_ASSERT(xf_result_set_decode(xf_buf_view(&bytes), n, &back, &err) == XF_OK);
    xf_result_set_merge(&sum, &back, &added);
    xf_result_set_merge(&sum, &s, &again);
    xf_result_set_count(&s, &all);
    for (int o = XF_OUTCOME_PENDING + 1; o < XF_OUTCOME_N; o++) {
        XF_ASSERT(added.by_outcome[o] == all.by_outcome[o]);
        XF_ASSERT(again.by_outcome[o] == 0);
    }
    return 0;
}
