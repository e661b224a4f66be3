/*
 * laws_test.c - what is encoded comes back the same; what is cut short is refused.
 *
 * Messages are filled by their own tables, so a new field is covered without a change here.
 */
#include "proto/codec.h"
#include "proto/manifest.h"
#include "proto/msg.h"
#include "proto/result.h"
#include "tests/lib/gen.h"
#include "tests/lib/test.h"

#include <string.h>

enum { ROUNDS = 60, TRUNCATE_MAX = 3000 };

static const struct xf_msg_desc *const *all_messages(size_t *n)
{
#define ROW(name, table) list[at++] = xf_msg_##name##_desc();
    static const struct xf_msg_desc *list[64];
    size_t at = 0;

    XF_MSG_ALL(ROW)
#undef ROW
    *n = at;
    return list;
}

static void
fill(struct xf_rng *r, const struct xf_msg_desc *d, char *m, struct xf_arena *a, unsigned depth);

static void fill_string(struct xf_rng *r, const struct xf_msg_field *f, char *m, struct xf_arena *a)
{
    size_t max = f->cap < 300 ? (size_t)f->cap : 300;
    XF_AUTO_BUF b = {0};
    struct xf_str s;

    xf_buf_init(&b, 0);
    if (f->type == XF_MSG_T_bin) {
        xf_gen_bytes(r, &b, (size_t)xf_rng_below(r, max + 1));
    } else if (xf_rng_below(r, 3) != 0) {
        xf_gen_key(r, &b, max);
    }
    s = xf_arena_dup(a, xf_buf_view(&b));
    memcpy(m + f->at, &s, sizeof(s));
}

static void fill_field(
    struct xf_rng *r, const struct xf_msg_field *f, char *m, struct xf_arena *a, unsigned depth)
{
    uint64_t v = f->cap != 0 ? xf_gen_between(r, 0, f->cap) : 0;
    uint32_t narrow = (uint32_t)v;
    bool flag = (v & 1) != 0;
    double x = (xf_rng_unit(r) - 0.5) * f->fcap;
    char *entries;

    switch (f->type) {
    case XF_MSG_T_u32: memcpy(m + f->at, &narrow, sizeof(narrow)); break;
    case XF_MSG_T_u64: memcpy(m + f->at, &v, sizeof(v)); break;
    case XF_MSG_T_i64:
        v = xf_rng_below(r, 2) != 0 ? v : ~v;
        memcpy(m + f->at, &v, sizeof(v));
        break;
    case XF_MSG_T_f64: memcpy(m + f->at, &x, sizeof(x)); break;
    case XF_MSG_T_flag: memcpy(m + f->at, &flag, sizeof(flag)); break;
    case XF_MSG_T_str:
    case XF_MSG_T_bin:
    case XF_MSG_T_secret: fill_string(r, f, m, a); break;
    case XF_MSG_T_LIST:
        narrow = (uint32_t)xf_rng_below(r, depth == 0 ? 17 : 4);
        entries = xf_arena_calloc(a, narrow, f->list()->size);
        for (uint32_t i = 0; i < narrow; i++) {
            fill(r, f->list(), entries + i * f->list()->size, a, depth + 1);
        }
        memcpy(m + f->at, &entries, sizeof(entries));
        memcpy(m + f->n_at, &narrow, sizeof(narrow));
        break;
    }
}

static void
fill(struct xf_rng *r, const struct xf_msg_desc *d, char *m, struct xf_arena *a, unsigned depth)
{
    for (size_t i = 0; i < d->n; i++) {
        if (d->fields[i].required || xf_rng_below(r, 4) != 0) {
            fill_field(r, &d->fields[i], m, a, depth);
        }
    }
}

/* An exact copy on the heap, so that the address sanitizer sees a read past the end. */
static enum xf_code decode_prefix(const struct xf_msg_desc *d, struct xf_str bytes, size_t len)
{
    XF_AUTO_ARENA a = {0};
    XF_AUTO_FREE char *copy = xf_xmalloc(len + 1);
    XF_AUTO_FREE void *m = xf_xcalloc(1, d->size);
    struct xf_err err;

    memcpy(copy, bytes.ptr, len);
    return xf_codec_decode(d, xf_str_n(copy, len), &a, m, &err);
}

static void check_message(struct xf_rng *r, const struct xf_msg_desc *d)
{
    XF_AUTO_ARENA a = {0};
    XF_AUTO_BUF bytes = {0};
    XF_AUTO_BUF again = {0};
    XF_AUTO_FREE char *m = xf_xcalloc(1, d->size);
    XF_AUTO_FREE char *back = xf_xcalloc(1, d->size);
    struct xf_err err = {0};
    size_t step;

    xf_buf_init(&bytes, 0);
    xf_buf_init(&again, 0);
    fill(r, d, m, &a, 0);
    assert_int_equal(xf_codec_encode(d, m, &bytes, &err), XF_OK);
    assert_int_equal(xf_codec_decode(d, xf_buf_view(&bytes), &a, back, &err), XF_OK);
    assert_true(xf_codec_eq(d, m, back));
    assert_int_equal(xf_codec_encode(d, back, &again, &err), XF_OK);
    assert_true(xf_str_eq(xf_buf_view(&bytes), xf_buf_view(&again)));
    step = 1 + bytes.len / TRUNCATE_MAX;
    for (size_t len = 0; len < bytes.len; len += step) {
        assert_int_equal(decode_prefix(d, xf_buf_view(&bytes), len), XF_E_PROTO);
    }
    xf_buf_put_byte(&bytes, 0);
    assert_int_equal(decode_prefix(d, xf_buf_view(&bytes), bytes.len), XF_E_PROTO);
}

static void message_comes_back_and_no_truncation_is_taken(void **state)
{
    struct xf_rng r;
    size_t n;
    const struct xf_msg_desc *const *all = all_messages(&n);

    (void)state;
    xf_rng_init(&r, xf_test_seed());
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < n; i++) {
            check_message(&r, all[i]);
        }
    }
}

static void damaged_message_never_does_harm(void **state)
{
    struct xf_rng r;
    size_t n;
    const struct xf_msg_desc *const *all = all_messages(&n);

    (void)state;
    xf_rng_init(&r, xf_test_seed());
    for (int round = 0; round < ROUNDS * 20; round++) {
        const struct xf_msg_desc *d = all[xf_rng_below(&r, n)];
        XF_AUTO_ARENA a = {0};
        XF_AUTO_BUF bytes = {0};
        XF_AUTO_FREE char *m = xf_xcalloc(1, d->size);
        struct xf_err err = {0};

        xf_buf_init(&bytes, 0);
        fill(&r, d, m, &a, 0);
        assert_int_equal(xf_codec_encode(d, m, &bytes, &err), XF_OK);
        for (int k = 0; k < 4; k++) {
            bytes.ptr[xf_rng_below(&r, bytes.len)] = (char)xf_rng_u64(&r);
        }
        (void)decode_prefix(d, xf_buf_view(&bytes), bytes.len); /* either is right: no crash */
    }
}

/* ---- manifests ---- */

static void gen_etag(struct xf_rng *r, struct xf_buf *b)
{
    unsigned char md5[16];

    switch (xf_rng_below(r, 4)) {
    case 0: break;
    case 1: xf_gen_bytes(r, b, (size_t)xf_rng_below(r, XF_ETAG_MAX + 1)); break;
    default:
        for (size_t i = 0; i < sizeof(md5); i++) {
            md5[i] = (unsigned char)xf_rng_u64(r);
        }
        xf_buf_put_hex(b, md5, sizeof(md5));
        if (xf_rng_below(r, 2) == 0) {
            xf_buf_putf(b, "-%llu", (unsigned long long)xf_gen_between(r, 0, 99999));
        }
        break;
    }
}

static struct xf_str keep(struct xf_arena *a, struct xf_buf *b)
{
    struct xf_str s = xf_arena_dup(a, xf_buf_view(b));

    xf_buf_reset(b);
    return s;
}

static void gen_object(struct xf_rng *r, struct xf_object *o, struct xf_arena *a)
{
    static const char *const classes[] = {"", "STANDARD", "STANDARD_IA", "GLACIER", "odd \xff"};
    XF_AUTO_BUF b = {0};

    xf_buf_init(&b, 0);
    xf_buf_put_c(&b, xf_rng_below(r, 2) == 0 ? "logs/2026/01/" : "");
    xf_gen_key(r, &b, 1000);
    o->key = keep(a, &b);
    o->size = xf_gen_between(r, 0, UINT64_MAX / 4096);
    gen_etag(r, &b);
    o->etag = keep(a, &b);
    o->mtime_ms = (int64_t)xf_gen_between(r, 0, UINT64_MAX);
    o->storage_class = xf_str_c(classes[xf_rng_below(r, XF_ARRAY_LEN(classes))]);
    if (xf_rng_below(r, 3) == 0) {
        xf_gen_key(r, &b, 64);
    }
    o->version_id = keep(a, &b);
    o->attempts = (uint32_t)xf_gen_between(r, 0, XF_OBJECT_ATTEMPTS_MAX);
    o->is_left = xf_rng_below(r, 2) == 1;
}

static void assert_object_equal(const struct xf_object *x, const struct xf_object *y)
{
    assert_true(xf_str_eq(x->key, y->key));
    assert_true(x->size == y->size);
    assert_true(xf_str_eq(x->etag, y->etag));
    assert_true(x->mtime_ms == y->mtime_ms);
    assert_true(xf_str_eq(x->storage_class, y->storage_class));
    assert_true(xf_str_eq(x->version_id, y->version_id));
    assert_int_equal(x->attempts, y->attempts);
    assert_int_equal(x->is_left, y->is_left);
}

static void check_manifest(struct xf_rng *r)
{
    uint32_t n = (uint32_t)xf_rng_below(r, 40);
    XF_AUTO_ARENA a = {0};
    XF_AUTO_BUF bytes = {0};
    struct xf_object objects[40] = {0};
    struct xf_manifest_enc enc;
    struct xf_manifest m;
    struct xf_err err = {0};
    uint64_t total = 0;

    xf_buf_init(&bytes, 0);
    xf_manifest_enc_init(&enc, 7);
    for (uint32_t i = 0; i < n; i++) {
        gen_object(r, &objects[i], &a);
        total += objects[i].size;
        assert_int_equal(xf_manifest_add(&enc, &objects[i], &err), XF_OK);
    }
    xf_manifest_finish(&enc, &bytes);
    assert_true(enc.size_bytes == total);
    xf_manifest_enc_fini(&enc);
    assert_int_equal(xf_manifest_decode(xf_buf_view(&bytes), &m, &err), XF_OK);
    assert_int_equal(m.n, n);
    assert_int_equal(m.source_no, 7);
    assert_true(m.size_bytes == total);
    for (uint32_t i = 0; i < n; i++) {
        assert_object_equal(&objects[i], &m.objects[i]);
    }
    xf_manifest_fini(&m);
    for (size_t len = 0; len < bytes.len; len += 1 + bytes.len / TRUNCATE_MAX) {
        XF_AUTO_FREE char *cut = xf_xmemdup0(bytes.ptr, len);

        assert_int_equal(xf_manifest_decode(xf_str_n(cut, len), &m, &err), XF_E_PROTO);
        assert_int_equal(m.n, 0);
    }
}

static void manifest_comes_back_and_no_truncation_is_taken(void **state)
{
    struct xf_rng r;

    (void)state;
    xf_rng_init(&r, xf_test_seed());
    for (int round = 0; round < ROUNDS; round++) {
        check_manifest(&r);
    }
}

/* ---- results ---- */

static void gen_result(struct xf_rng *r, struct xf_result *x, struct xf_arena *a)
{
    XF_AUTO_BUF b = {0};

    xf_buf_init(&b, 0);
    memset(x, 0, sizeof(*x));
    x->outcome = (enum xf_outcome)xf_rng_below(r, XF_OUTCOME_N);
    x->skip = (enum xf_skip)xf_rng_below(r, XF_SKIP_N);
    x->level = (enum xf_level)xf_rng_below(r, XF_LEVEL_N);
    x->mode = (enum xf_mode)xf_rng_below(r, XF_MODE_N);
    x->code = (enum xf_code)xf_rng_below(r, XF_CODE_N);
    x->flags = (uint32_t)xf_rng_below(r, XF_RESULT_FLAGS_ALL + 1);
    x->http_status = (uint32_t)xf_rng_below(r, 600);
    x->attempts = 1 + (uint32_t)xf_rng_below(r, 20);
    x->size_bytes = xf_rng_u64(r) >> 20;
    x->through_bytes = xf_rng_u64(r) >> 20;
    gen_etag(r, &b);
    x->etag = keep(a, &b);
    if (xf_rng_below(r, 2) == 0) {
        xf_gen_key(r, &b, XF_S3_CODE_MAX);
        x->s3_code = keep(a, &b);
        xf_gen_key(r, &b, XF_RESULT_MSG_MAX);
        x->message = keep(a, &b);
        gen_etag(r, &b);
        x->source_etag = keep(a, &b);
    }
}

static void assert_result_equal(const struct xf_result *x, const struct xf_result *y)
{
    assert_int_equal(x->outcome, y->outcome);
    assert_int_equal(x->skip, y->skip);
    assert_int_equal(x->level, y->level);
    assert_int_equal(x->mode, y->mode);
    assert_int_equal(x->code, y->code);
    assert_int_equal(x->flags, y->flags);
    assert_int_equal(x->http_status, y->http_status);
    assert_int_equal(x->attempts, y->attempts);
    assert_true(x->size_bytes == y->size_bytes);
    assert_true(x->through_bytes == y->through_bytes);
    assert_true(xf_str_eq(x->etag, y->etag));
    assert_true(xf_str_eq(x->version_id, y->version_id));
    assert_true(xf_str_eq(x->source_etag, y->source_etag));
    assert_true(xf_str_eq(x->s3_code, y->s3_code));
    assert_true(xf_str_eq(x->message, y->message));
}

static void check_result(struct xf_rng *r)
{
    uint32_t n = 1 + (uint32_t)xf_rng_below(r, 60);
    XF_AUTO_ARENA a = {0};
    XF_AUTO_BUF bytes = {0};
    struct xf_result_set set;
    struct xf_result_set back;
    struct xf_err err = {0};

    xf_buf_init(&bytes, 0);
    xf_result_set_init(&set, n);
    for (uint32_t i = 0; i < n; i++) {
        struct xf_result x;

        gen_result(r, &x, &a);
        if (xf_rng_below(r, 3) != 0) {
            assert_true(xf_result_set_put(&set, i, &x));
        }
    }
    xf_result_set_encode(&set, &bytes);
    assert_int_equal(xf_result_set_decode(xf_buf_view(&bytes), n, &back, &err), XF_OK);
    for (uint32_t i = 0; i < n; i++) {
        assert_result_equal(&set.at[i], &back.at[i]);
    }
    xf_result_set_fini(&back);
    for (size_t len = 1; len < bytes.len; len += 1 + bytes.len / TRUNCATE_MAX) {
        XF_AUTO_FREE char *cut = xf_xmemdup0(bytes.ptr, len);

        assert_int_equal(xf_result_set_decode(xf_str_n(cut, len), n, &back, &err), XF_E_PROTO);
        xf_result_set_fini(&back);
    }
    xf_result_set_fini(&set);
}

static void result_comes_back_and_no_truncation_is_taken(void **state)
{
    struct xf_rng r;

    (void)state;
    xf_rng_init(&r, xf_test_seed());
    for (int round = 0; round < ROUNDS; round++) {
        check_result(&r);
    }
}

/* Counters follow from what merges say they added, whatever is reported twice or late. */
static void merges_add_up_to_the_counts_of_the_whole(void **state)
{
    struct xf_rng r;

    (void)state;
    xf_rng_init(&r, xf_test_seed());
    for (int round = 0; round < ROUNDS; round++) {
        XF_AUTO_ARENA a = {0};
        XF_AUTO_RESULT_SET set = {0};
        struct xf_result_counts sum = {0};
        struct xf_result_counts all;

        xf_result_set_init(&set, 20);
        for (int k = 0; k < 12; k++) {
            XF_AUTO_RESULT_SET delta = {0};
            struct xf_result_counts added;

            xf_result_set_init(&delta, 20);
            for (uint32_t i = 0; i < 20; i++) {
                struct xf_result x;

                gen_result(&r, &x, &a);
                if (xf_rng_below(&r, 4) == 0) {
                    assert_true(xf_result_set_put(&delta, i, &x));
                }
            }
            for (int twice = 0; twice < 2; twice++) {
                xf_result_set_merge(&set, &delta, &added);
                for (int o = 0; o < XF_OUTCOME_N; o++) {
                    assert_true(twice == 0 || added.by_outcome[o] == 0);
                    sum.by_outcome[o] += added.by_outcome[o];
                }
                sum.copied_bytes += added.copied_bytes;
                sum.through_bytes += added.through_bytes;
                sum.attempts += added.attempts;
                sum.retries += added.retries;
            }
        }
        xf_result_set_count(&set, &all);
        for (int o = XF_OUTCOME_PENDING + 1; o < XF_OUTCOME_N; o++) {
            assert_int_equal(all.by_outcome[o], sum.by_outcome[o]);
        }
        assert_true(all.copied_bytes == sum.copied_bytes);
        assert_true(all.through_bytes == sum.through_bytes);
        assert_true(all.attempts == sum.attempts);
        assert_int_equal(all.retries, sum.retries);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(message_comes_back_and_no_truncation_is_taken),
        cmocka_unit_test(damaged_message_never_does_harm),
        cmocka_unit_test(manifest_comes_back_and_no_truncation_is_taken),
        cmocka_unit_test(result_comes_back_and_no_truncation_is_taken),
        cmocka_unit_test(merges_add_up_to_the_counts_of_the_whole),
    };

    return xf_test_run("proto laws", tests, NULL, NULL);
}
