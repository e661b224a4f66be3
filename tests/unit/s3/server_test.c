/*
 * server_test.c - the client against tests/s3d, which checks every signature strictly.
 */
#include "common/base/hash.h"
#include "common/s3/plan.h"
#include "tests/lib/gen.h"
#include "tests/lib/httpget.h"
#include "tests/lib/proc.h"
#include "tests/lib/test.h"
#include "tests/unit/s3/rig.h"

static const char key_option[] = "AKIAKEYNUMBER0:" RIG_SECRET;

static struct xf_proc *server;
static unsigned port;

static int start_server(void **state)
{
    static const char *argv[] = {NULL,
                                 "--quiet",
                                 "--key",
                                 key_option,
                                 "--bucket",
                                 "bkt",
                                 "--synth",
                                 "many:2500:10:utf-8",
                                 "--synth",
                                 "big:1:11MiB:flat",
                                 NULL};
    struct xf_proc_opts o = {.argv = argv, .ready_fd = true};
    uint64_t n = 0;

    (void)state;
    argv[0] = xf_proc_program("s3d");
    server = xf_proc_spawn(&o);
    xf_proc_wait_ready(server, 10000);
    assert_true(xf_str_u64(xf_str_c(xf_proc_ready_word(server, "port")), &n));
    port = (unsigned)n;
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    xf_proc_free(server);
    return 0;
}

static int setup(void **state)
{
    struct rig *r = xf_xcalloc(1, sizeof(*r));
    struct rig_opts o = {.port = port};

    rig_open(r, &o);
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    rig_close(*state);
    xf_xfree(*state);
    return 0;
}

static void must(struct rig *r)
{
    rig_wait(r);
    if (r->code != XF_OK) {
        fail_msg("%s", r->msg.ptr);
    }
}

static void put(struct rig *r, struct xf_str key, struct xf_str body)
{
    struct xf_s3_put_opts o = {.bucket = XF_STR_LIT("bkt"), .key = key, .body = {.bytes = body}};

    assert_non_null(xf_s3_put(r->s3, &o, rig_done, r));
    must(r);
}

static void get(struct rig *r, const char *bucket, struct xf_str key, uint64_t size)
{
    struct xf_s3_get_opts o = {
        .bucket = xf_str_c(bucket), .key = key, .object_size = size, .sink = rig_sink(r)};

    xf_buf_reset(&r->sunk);
    assert_non_null(xf_s3_get(r->s3, &o, rig_done, r));
    must(r);
}

static void delete_key(struct rig *r, struct xf_str key)
{
    struct xf_s3_object_opts o = {.bucket = XF_STR_LIT("bkt"), .key = key};

    assert_non_null(xf_s3_delete(r->s3, &o, rig_done, r));
    must(r);
}

static void c032_c033_odd_keys_are_stored_and_read_back(void **state)
{
    struct rig *r = *state;
    struct xf_rng rng;

    xf_rng_init(&rng, xf_test_seed());
    for (int i = 0; i < 300; i++) {
        XF_AUTO_BUF key = {0};
        struct xf_s3_list_opts o = {.bucket = XF_STR_LIT("bkt")};

        xf_gen_key(&rng, &key, 200);
        put(r, xf_buf_view(&key), xf_buf_view(&key));
        get(r, "bkt", xf_buf_view(&key), key.len);
        assert_int_equal(r->sunk.len, key.len);
        assert_memory_equal(r->sunk.ptr, key.ptr, key.len);
        o.prefix = xf_buf_view(&key);
        assert_non_null(xf_s3_list(r->s3, &o, rig_done, r));
        must(r);
        xf_buf_put_byte(&key, '|');
        assert_true(xf_str_eq(xf_buf_view(&r->keys), xf_buf_view(&key)));
        key.len--;
        delete_key(r, xf_buf_view(&key));
    }
}

struct pages {
    struct rig *r;
    size_t n;
    struct xf_buf last;
    struct xf_buf token;
    bool more;
};

static void on_page(void *arg, const struct xf_s3_result *res)
{
    struct pages *p = arg;

    rig_done(p->r, res);
    if (res->err.code != XF_OK) {
        return;
    }
    for (size_t i = 0; i < res->doc->n_objects; i++) {
        assert_true(xf_str_cmp(xf_buf_view(&p->last), res->doc->objects[i].key) < 0);
        xf_buf_reset(&p->last);
        xf_buf_put(&p->last, res->doc->objects[i].key);
        assert_int_equal(res->doc->objects[i].size, 10);
        p->n++;
    }
    p->more = res->doc->is_truncated;
    xf_buf_reset(&p->token);
    xf_buf_put(&p->token, res->doc->next_token);
}

static void list_all(struct rig *r, bool by_token)
{
    struct pages p = {.r = r, .more = true};

    while (p.more) {
        struct xf_s3_list_opts o = {.bucket = XF_STR_LIT("many")};

        o.token = by_token ? xf_buf_view(&p.token) : XF_STR_EMPTY;
        o.start_after = by_token ? XF_STR_EMPTY : xf_buf_view(&p.last);
        assert_non_null(xf_s3_list(r->s3, &o, on_page, &p));
        must(r);
    }
    assert_int_equal(p.n, 2500);
    xf_buf_fini(&p.last);
    xf_buf_fini(&p.token);
}

static void listings_go_on_by_token_and_by_key(void **state)
{
    list_all(*state, true);
    list_all(*state, false);
}

static void c022_c024_dialects_of_listings_give_the_same_keys(void **state)
{
    static const char *const dialects[] = {"percent20", "raw_fields", "raw", "charref"};
    static const char *const keys[] = {"o/a b",
                                       "o/a+b",
                                       "o/a%20b",
                                       "o/a%2Bb",
                                       "o/c\x01\x08\x1f",
                                       "o/c\rR\tT\n",
                                       "o/n&<>\"'",
                                       "o/\xed\x95\x9c"};
    struct rig *r = *state;
    XF_AUTO_BUF url = {0};
    XF_AUTO_BUF first = {0};

    xf_buf_putf(&url, "http://127.0.0.1:%u/-/faults", port);
    for (size_t i = 0; i < XF_ARRAY_LEN(keys); i++) {
        put(r, xf_str_c(keys[i]), XF_STR_LIT("x"));
    }
    for (size_t i = 0; i <= XF_ARRAY_LEN(dialects); i++) {
        struct xf_s3_list_opts o = {.bucket = XF_STR_LIT("bkt"), .prefix = XF_STR_LIT("o/")};

        if (i > 0) {
            XF_AUTO_BUF rule = {0};

            xf_buf_putf(&rule,
                        "[{\"op\":\"ListObjectsV2\",\"count\":1,\"action\":{\"list\":"
                        "{\"encoding\":\"%s\"}}}]",
                        dialects[i - 1]);
            assert_int_equal(xf_httpget_send("POST", url.ptr, xf_buf_view(&rule), NULL), 200);
        }
        assert_non_null(xf_s3_list(r->s3, &o, rig_done, r));
        must(r);
        assert_int_equal(r->n_objects, XF_ARRAY_LEN(keys));
        if (i == 0) {
            xf_buf_put(&first, xf_buf_view(&r->keys));
        } else if (!xf_str_eq(xf_buf_view(&first), xf_buf_view(&r->keys))) {
            fail_msg("other keys in dialect %s", dialects[i - 1]);
        }
    }
    for (size_t i = 0; i < XF_ARRAY_LEN(keys); i++) {
        delete_key(r, xf_str_c(keys[i]));
    }
}

static void c005_attributes_and_tags_survive(void **state)
{
    static const struct xf_s3_meta meta[] = {{{"k", 1}, {"v w", 3}}};
    static const struct xf_s3_attrs attrs = {.content_type = {"video/mp4", 9},
                                             .cache_control = {"max-age=5", 9},
                                             .content_encoding = {"gzip", 4},
                                             .meta = meta,
                                             .n_meta = 1};
    struct rig *r = *state;
    struct xf_s3_put_opts po = {.bucket = XF_STR_LIT("bkt"),
                                .key = XF_STR_LIT("attrs"),
                                .body = {.bytes = XF_STR_LIT("body")},
                                .attrs = &attrs,
                                .tags = XF_STR_LIT("a=b%20c&d=")};
    struct xf_s3_copy_opts co = {
        .bucket = XF_STR_LIT("bkt"),
        .key = XF_STR_LIT("copy of attrs"),
        .source = {.bucket = XF_STR_LIT("bkt"), .key = XF_STR_LIT("attrs")}};
    struct xf_s3_head_opts ho = {.bucket = XF_STR_LIT("bkt"), .key = XF_STR_LIT("copy of attrs")};
    struct xf_s3_object_opts to = {.bucket = XF_STR_LIT("bkt"), .key = XF_STR_LIT("copy of attrs")};
    struct xf_s3_tags_opts pt = {.bucket = to.bucket, .key = to.key};

    assert_non_null(xf_s3_put(r->s3, &po, rig_done, r));
    must(r);
    assert_non_null(xf_s3_copy(r->s3, &co, rig_done, r));
    must(r);
    assert_string_equal(r->etag.ptr, "841a2d689ad86bd1611447453c22c6fc");
    assert_non_null(xf_s3_head(r->s3, &ho, rig_done, r));
    must(r);
    assert_int_equal(r->size, 4);
    assert_string_equal(r->content_encoding.ptr, "gzip");
    assert_string_equal(r->meta.ptr, "k=v w;");
    assert_true(r->modified_ms > 0);
    assert_non_null(xf_s3_get_tags(r->s3, &to, rig_done, r));
    must(r);
    assert_string_equal(r->tags.ptr, "a=b%20c&d=");
    pt.tags = XF_STR_LIT("x%26=%3C1%3E&y=z");
    assert_non_null(xf_s3_put_tags(r->s3, &pt, rig_done, r));
    must(r);
    assert_non_null(xf_s3_get_tags(r->s3, &to, rig_done, r));
    must(r);
    assert_string_equal(r->tags.ptr, "x%26=%3C1%3E&y=z");
    ho.key = XF_STR_LIT("none");
    assert_non_null(xf_s3_head(r->s3, &ho, rig_done, r));
    rig_wait(r);
    assert_int_equal(r->code, XF_E_NOT_FOUND);
    delete_key(r, XF_STR_LIT("attrs"));
    delete_key(r, XF_STR_LIT("copy of attrs"));
}

#define PART ((size_t)5 << 20)

struct stream {
    const char *data;
    size_t at;
    size_t len;
};

static enum xf_http_flow pull(void *arg, char *buf, size_t cap, size_t *n)
{
    struct stream *s = arg;

    *n = s->len - s->at < cap ? s->len - s->at : cap;
    memcpy(buf, s->data + s->at, *n);
    s->at += *n;
    return XF_HTTP_GO;
}

static void an_upload_in_parts_of_every_kind(void **state)
{
    struct rig *r = *state;
    XF_AUTO_BUF data = {0};
    XF_AUTO_BUF upload_id = {0};
    struct xf_rng rng;
    unsigned char md5[3][16];
    char etags[3][XF_PLAN_ETAG_LEN];
    char want[XF_PLAN_ETAG_LEN];
    struct xf_err err;
    struct stream stream;
    struct xf_xml_part parts[3];
    struct xf_str bucket = XF_STR_LIT("bkt");
    struct xf_str key = XF_STR_LIT("multi/part \xc3\xa9");
    struct xf_s3_create_opts co = {.bucket = bucket, .key = key};
    struct xf_s3_part_opts po = {.bucket = bucket, .key = key, .part_no = 1};
    struct xf_s3_part_copy_opts pco = {.bucket = bucket,
                                       .key = key,
                                       .part_no = 3,
                                       .source = {.bucket = bucket, .key = XF_STR_LIT("piece")},
                                       .offset = 2,
                                       .len = 5};
    struct xf_s3_complete_opts fo = {
        .bucket = bucket, .key = key, .parts = parts, .n_parts = 3, .object_size = 2 * PART + 5};
    struct xf_s3_list_uploads_opts lo = {.bucket = bucket, .prefix = key};
    struct xf_s3_upload_opts uo = {.bucket = bucket, .key = key};

    xf_rng_init(&rng, xf_test_seed());
    xf_gen_bytes(&rng, &data, 2 * PART);
    put(r, XF_STR_LIT("piece"), XF_STR_LIT("xxhello"));
    assert_non_null(xf_s3_create(r->s3, &co, rig_done, r));
    must(r);
    xf_buf_put(&upload_id, xf_buf_view(&r->upload_id));
    po.upload_id = xf_buf_view(&upload_id);
    pco.upload_id = po.upload_id;
    fo.upload_id = po.upload_id;
    uo.upload_id = po.upload_id;

    xf_md5(data.ptr, PART, md5[0]);
    po.body = (struct xf_s3_body){.bytes = {data.ptr, PART}, .md5 = md5[0]};
    assert_non_null(xf_s3_part(r->s3, &po, rig_done, r));
    must(r);
    memcpy(etags[0], r->etag.ptr, r->etag.len + 1);
    stream = (struct stream){.data = data.ptr + PART, .len = PART};
    po.part_no = 2;
    po.body = (struct xf_s3_body){.pull = pull, .arg = &stream, .size = PART};
    assert_non_null(xf_s3_part(r->s3, &po, rig_done, r));
    must(r);
    memcpy(etags[1], r->etag.ptr, r->etag.len + 1);
    assert_non_null(xf_s3_part_copy(r->s3, &pco, rig_done, r));
    must(r);
    memcpy(etags[2], r->etag.ptr, r->etag.len + 1);
    assert_non_null(xf_s3_list_parts(r->s3, &uo, rig_done, r));
    must(r);
    for (uint32_t i = 0; i < 3; i++) {
        parts[i] = (struct xf_xml_part){.part_no = i + 1, .etag = xf_str_c(etags[i])};
    }
    assert_non_null(xf_s3_complete(r->s3, &fo, rig_done, r));
    must(r);
    xf_md5(data.ptr + PART, PART, md5[1]);
    xf_md5("hello", 5, md5[2]);
    assert_int_equal(xf_plan_etag_of_parts(md5[0], 3, want, &err), XF_OK);
    assert_string_equal(r->etag.ptr, want);
    get(r, "bkt", key, 2 * PART + 5);
    assert_memory_equal(r->sunk.ptr, data.ptr, 2 * PART);
    assert_memory_equal(r->sunk.ptr + 2 * PART, "hello", 5);
    assert_non_null(xf_s3_list_uploads(r->s3, &lo, rig_done, r));
    must(r);
    assert_non_null(xf_s3_list_parts(r->s3, &uo, rig_done, r));
    rig_wait(r);
    assert_int_equal(r->code, XF_E_NO_UPLOAD);
    delete_key(r, key);
    delete_key(r, XF_STR_LIT("piece"));
}

static void a_wrong_checksum_is_refused(void **state)
{
    struct rig *r = *state;
    unsigned char md5[16] = {0};
    struct xf_s3_put_opts o = {.bucket = XF_STR_LIT("bkt"),
                               .key = XF_STR_LIT("k"),
                               .body = {.bytes = XF_STR_LIT("x"), .md5 = md5}};

    assert_non_null(xf_s3_put(r->s3, &o, rig_done, r));
    rig_wait(r);
    assert_int_equal(r->code, XF_E_CHECKSUM);
}

static struct xf_sum parsed(enum xf_sum_alg alg, const char *text)
{
    struct xf_sum sum;

    assert_true(xf_sum_parse(alg, xf_str_c(text), &sum));
    return sum;
}

static void assert_sum(const struct rig *r, enum xf_sum_alg alg, const char *text)
{
    const struct xf_sum want = parsed(alg, text);

    assert_true(xf_sum_eq(&r->sum, &want));
}

static void head_with_sum(struct rig *r, struct xf_str key)
{
    struct xf_s3_head_opts o = {.bucket = XF_STR_LIT("bkt"), .key = key, .want_sum = true};

    assert_non_null(xf_s3_head(r->s3, &o, rig_done, r));
    must(r);
}

static void a_sent_checksum_is_checked_kept_and_echoed(void **state)
{
    static const struct {
        enum xf_sum_alg alg;
        const char *text;
    } rows[] = {
        {XF_SUM_CRC64NVME, "M3eFcAZSQlc="},
        {XF_SUM_CRC32C, "mnG7TA=="},
        {XF_SUM_CRC32, "NhCmhg=="},
        {XF_SUM_SHA256, "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="},
    };
    struct rig *r = *state;
    struct xf_s3_put_opts o = {.bucket = XF_STR_LIT("bkt"), .key = XF_STR_LIT("summed")};
    struct xf_sum sum;

    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        sum = parsed(rows[i].alg, rows[i].text);
        o.body = (struct xf_s3_body){.bytes = XF_STR_LIT("hello"), .sum = &sum};
        assert_non_null(xf_s3_put(r->s3, &o, rig_done, r));
        must(r);
        assert_sum(r, rows[i].alg, rows[i].text);
        head_with_sum(r, o.key);
        assert_sum(r, rows[i].alg, rows[i].text);
        struct xf_s3_get_opts g = {.bucket = o.bucket,
                                   .key = o.key,
                                   .object_size = 5,
                                   .want_sum = true,
                                   .sink = rig_sink(r)};
        assert_non_null(xf_s3_get(r->s3, &g, rig_done, r));
        must(r);
        assert_sum(r, rows[i].alg, rows[i].text);
        sum.raw[0] ^= 1;
        assert_non_null(xf_s3_put(r->s3, &o, rig_done, r));
        rig_wait(r);
        assert_int_equal(r->code, XF_E_CHECKSUM);
    }
    delete_key(r, o.key);
}

/* The published example: 5 MiB of zeros, then "hello". */
static void the_checksum_of_an_upload_is_that_of_its_bytes(void **state)
{
    struct rig *r = *state;
    char *zeros = xf_xcalloc(PART, 1);
    XF_AUTO_BUF upload_id = {0};
    char etags[2][XF_PLAN_ETAG_LEN];
    struct xf_xml_part parts[2];
    struct xf_str bucket = XF_STR_LIT("bkt");
    struct xf_str key = XF_STR_LIT("summed/parts");
    struct xf_s3_create_opts co = {.bucket = bucket, .key = key, .sum = XF_SUM_CRC64NVME};
    struct xf_s3_part_opts po = {.bucket = bucket, .key = key};
    struct xf_sum sum;

    assert_non_null(xf_s3_create(r->s3, &co, rig_done, r));
    must(r);
    assert_int_equal(r->sum.alg, XF_SUM_CRC64NVME);
    assert_false(r->sum.is_composite);
    xf_buf_put(&upload_id, xf_buf_view(&r->upload_id));
    po.upload_id = xf_buf_view(&upload_id);
    for (uint32_t i = 0; i < 2; i++) {
        struct xf_str bytes = i == 0 ? (struct xf_str){zeros, PART} : XF_STR_LIT("hello");
        xf_sum_of(XF_SUM_CRC64NVME, bytes.ptr, bytes.len, &sum);
        po.part_no = i + 1;
        po.body = (struct xf_s3_body){.bytes = bytes, .sum = &sum};
        assert_non_null(xf_s3_part(r->s3, &po, rig_done, r));
        must(r);
        assert_true(xf_sum_eq(&r->sum, &sum));
        memcpy(etags[i], r->etag.ptr, r->etag.len + 1);
        parts[i] = (struct xf_xml_part){.part_no = i + 1, .etag = xf_str_c(etags[i])};
    }
    struct xf_s3_complete_opts fo = {.bucket = bucket,
                                     .key = key,
                                     .upload_id = po.upload_id,
                                     .parts = parts,
                                     .n_parts = 2,
                                     .object_size = PART + 5,
                                     .sum = &sum};
    assert_non_null(xf_s3_complete(r->s3, &fo, rig_done, r)); /* with the last part's */
    rig_wait(r);
    assert_int_equal(r->code, XF_E_CHECKSUM);
    sum = parsed(XF_SUM_CRC64NVME, "o665DA2GSdk=");
    assert_non_null(xf_s3_complete(r->s3, &fo, rig_done, r));
    must(r);
    assert_string_equal(r->etag.ptr, "1a1761a0c87a46829d8a65122ae36c1a-2");
    head_with_sum(r, key);
    assert_sum(r, XF_SUM_CRC64NVME, "o665DA2GSdk=");
    delete_key(r, key);
    xf_xfree(zeros);
}

static void on_many(void *arg, const struct xf_s3_result *res)
{
    unsigned *n = arg;

    if (res->err.code != XF_OK) {
        fail_msg("%s", res->err.msg);
    }
    (*n)++;
}

static void a_thousand_requests_at_once(void **state)
{
    struct rig *r = *state;
    unsigned n = 0;
    int64_t until_ms = xf_clock_mono_ms(xf_clock_real()) + 20000;

    for (unsigned i = 0; i < 1000; i++) {
        struct xf_s3_head_opts o = {.bucket = XF_STR_LIT("big"),
                                    .key = XF_STR_LIT("obj-000000000000")};

        assert_non_null(xf_s3_head(r->s3, &o, on_many, &n));
    }
    assert_int_equal(xf_s3_in_flight(r->s3), 1000);
    while (n < 1000 && xf_clock_mono_ms(xf_clock_real()) < until_ms) {
        xf_loop_turn(r->loop, 100);
    }
    assert_int_equal(n, 1000);
    assert_int_equal(xf_s3_in_flight(r->s3), 0);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(c032_c033_odd_keys_are_stored_and_read_back),
        T(listings_go_on_by_token_and_by_key),
        T(c022_c024_dialects_of_listings_give_the_same_keys),
        T(c005_attributes_and_tags_survive),
        T(an_upload_in_parts_of_every_kind),
        T(a_wrong_checksum_is_refused),
        T(a_sent_checksum_is_checked_kept_and_echoed),
        T(the_checksum_of_an_upload_is_that_of_its_bytes),
        T(a_thousand_requests_at_once),
    };

    return xf_test_run("s3/server", tests, start_server, stop_server);
}
