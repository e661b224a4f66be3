/*
 * again_test.c - what the client repeats by itself: a clock that is off, keys that have ended, a
 * bucket that is elsewhere.
 */
#include "tests/lib/test.h"
#include "tests/unit/s3/rig.h"

#include <stdio.h>

#define OK1       "HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 0\r\n\r\n"
#define HEAD_OK   "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"
#define MOVED     "HTTP/1.1 301 Moved\r\nx-amz-bucket-region: eu-central-1\r\nContent-Length: 0\r\n\r\n"
#define EXPIRED   "<Error><Code>ExpiredToken</Code></Error>"
#define FRANKFURT "/eu-central-1/s3/aws4_request"

static void a_clock_that_is_off_is_corrected_once_and_remembered(void **state)
{
    struct rig *r = *state;
    XF_AUTO_BUF text = {0};
    XF_AUTO_BUF body = {0};
    char date[XF_TIME_TEXT_MAX];
    int64_t server_ms = xf_clock_wall_ms(xf_clock_real()) + 3600000;

    xf_time_rfc3339(server_ms, false, date);
    xf_buf_putf(
        &body, "<Error><Code>RequestTimeTooSkewed</Code><ServerTime>%s</ServerTime></Error>", date);
    script_say(r->script, rig_reply(&text, "403 Forbidden", "", body.ptr));
    script_say(r->script, "HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 0\r\n\r\n");
    rig_put(r, "x");
    assert_int_equal(r->code, XF_OK);
    assert_int_equal(script_requests(r->script), 2);
    assert_true(xf_s3_clock_offset_ms(r->s3) > 3590000);
    assert_true(xf_s3_clock_offset_ms(r->s3) < 3610000);
    xf_time_amz(server_ms, date);
    date[11] = '\0'; /* to the hour; the test may run across one, hence the day at least */
    date[8] = '\0';
    ASSERT_SENT(r, 1, date);

    script_say(r->script, text.ptr);
    script_say(r->script, text.ptr);
    rig_put(r, "x");
    assert_int_equal(r->code, XF_E_CLOCK); /* once only */
    assert_int_equal(script_requests(r->script), 4);
}

static void c059_expired_token_is_renewed_once(void **state)
{
    struct rig *r = *state;
    XF_AUTO_BUF text = {0};

    rig_reply(&text, "400 Bad Request", "", "<Error><Code>ExpiredToken</Code></Error>");
    r->generation = 1; /* the source has newer keys */
    script_say(r->script, text.ptr);
    script_say(r->script, "HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 0\r\n\r\n");
    rig_put(r, "x");
    assert_int_equal(r->code, XF_OK);
    ASSERT_SENT(r, 0, "AKIAKEYNUMBER0/");
    ASSERT_SENT(r, 1, "AKIAKEYNUMBER1/");
    ASSERT_SENT(r, 1, "x-amz-security-token: " RIG_TOKEN);

    script_say(r->script, text.ptr); /* the same old keys again: no loop */
    rig_put(r, "x");
    assert_int_equal(r->code, XF_E_CREDS);
    assert_int_equal(script_requests(r->script), 3);

    r->rotates = true; /* a source that is always newer: once for a request all the same */
    script_say(r->script, text.ptr);
    script_say(r->script, text.ptr);
    rig_put(r, "x");
    assert_int_equal(r->code, XF_E_CREDS);
    assert_int_equal(script_requests(r->script), 5);
}

static void c059_expired_token_on_head_is_seen_in_a_header(void **state)
{
    struct rig *r = *state;

    r->generation = 1;
    script_say(r->script,
               "HTTP/1.1 400 Bad Request\r\nx-amz-error-code: ExpiredToken\r\n"
               "Content-Length: 0\r\n\r\n");
    script_say(r->script, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n");
    rig_head(r, "k");
    assert_int_equal(r->code, XF_OK);
    r->generation = 2; /* and where even the header is missing */
    script_say(r->script, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    script_say(r->script, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n");
    rig_head(r, "k");
    assert_int_equal(r->code, XF_OK);
}

static void c059_keys_that_are_being_asked_for_are_waited_for(void **state)
{
    struct rig *r = *state;
    XF_AUTO_BUF text = {0};

    r->coming = 3;
    script_say(r->script, rig_reply(&text, "400 Bad Request", "", EXPIRED));
    script_say(r->script, OK1);
    rig_put(r, "x");
    assert_int_equal(r->code, XF_OK);
    assert_int_equal(r->renews, 3);
    ASSERT_SENT(r, 1, "AKIAKEYNUMBER1/");

    /* Cancelled meanwhile: it ends, and nothing more is sent. */
    const struct xf_s3_put_opts o = {KEY("k"), .body = {.bytes = XF_STR_LIT("x")}};
    r->coming = UINT32_MAX;
    script_say(r->script, text.ptr);
    struct xf_s3_req *req = xf_s3_put(r->s3, &o, rig_done, r);
    while (r->renews < 5) {
        xf_loop_turn(r->loop, 20);
    }
    xf_s3_cancel(req);
    rig_wait(r);
    assert_int_equal(r->code, XF_E_CANCELLED);
    assert_int_equal(script_requests(r->script), 3);
}

static enum xf_http_flow pull_x(void *arg, char *buf, size_t cap, size_t *n)
{
    (void)arg; /* as many as are wanted */
    memset(buf, 'x', cap);
    *n = cap;
    return XF_HTTP_GO;
}

static void c059_a_body_that_cannot_begin_anew_is_its_owners_to_repeat(void **state)
{
    struct rig *r = *state;
    XF_AUTO_BUF text = {0};
    const struct xf_s3_put_opts o = {KEY("k"), .body = {.pull = pull_x, .size = 100000}};

    r->generation = 1;
    script_say(r->script, rig_reply(&text, "400 Bad Request", "", EXPIRED));
    assert_non_null(xf_s3_put(r->s3, &o, rig_done, r));
    rig_wait(r);
    assert_int_equal(xf_code_class(r->code), XF_CLASS_RETRY);
    assert_non_null(strstr(r->msg.ptr, "ExpiredToken"));
    script_say(r->script, OK1);
    assert_non_null(xf_s3_put(r->s3, &o, rig_done, r));
    rig_wait(r);
    assert_int_equal(r->code, XF_OK);
    ASSERT_SENT(r, 1, "AKIAKEYNUMBER1/");
}

/* ---- regions ---- */

static void c064_a_region_that_is_told_is_signed_for_and_remembered(void **state)
{
    static const struct {
        const char *status;
        const char *headers;
        const char *body;
    } told[] = {
        {"301 Moved", "x-amz-bucket-region: eu-central-1\r\n", ""},
        {"400 Bad Request", "x-amz-bucket-region: eu-central-1\r\n", ""},
        {"400 Bad Request",
         "",
         "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-central-1</Region></Error>"},
        {"400 Bad Request",
         "x-amz-bucket-region: eu-central-1\r\n",
         "<Error><Code>IllegalLocationConstraintException</Code></Error>"},
        {"307 Temporary Redirect",
         "x-amz-bucket-region: eu-central-1\r\nLocation: http://evil.example/bkt/k\r\n",
         "<Error><Code>TemporaryRedirect</Code></Error>"},
    };

    (void)state;
    for (size_t i = 0; i < XF_ARRAY_LEN(told); i++) {
        XF_AUTO_BUF text = {0};
        struct rig r;

        rig_open(&r, NULL);
        script_say(r.script, rig_reply(&text, told[i].status, told[i].headers, told[i].body));
        script_say(r.script, OK1);
        script_say(r.script, OK1);
        rig_put(&r, "x"); /* its body goes out again */
        assert_int_equal(r.code, XF_OK);
        ASSERT_SENT(&r, 0, "/us-east-1/s3/aws4_request");
        ASSERT_SENT(&r, 1, FRANKFURT);
        assert_int_equal(script_body(r.script, 1).len, 1);
        rig_put(&r, "x");
        ASSERT_SENT(&r, 2, FRANKFURT);
        rig_close(&r);
    }
}

static void copy(struct rig *r)
{
    rig_copy(r);
}

static void get(struct rig *r)
{
    rig_get(r, 3, 0, 0);
    assert_int_equal(r->sunk.len, 3);
}

static void create(struct rig *r)
{
    const struct xf_s3_create_opts o = {KEY("k")};

    assert_non_null(xf_s3_create(r->s3, &o, rig_done, r));
    rig_wait(r);
}

static void part(struct rig *r)
{
    const struct xf_s3_part_opts o = {
        KEY("k"), .upload_id = XF_STR_LIT("u"), .part_no = 1, .body = {.bytes = XF_STR_LIT("x")}};

    assert_non_null(xf_s3_part(r->s3, &o, rig_done, r));
    rig_wait(r);
}

static void c064_every_kind_of_request_is_sent_again(void **state)
{
    static const struct {
        void (*ask)(struct rig *r);
        const char *headers;
        const char *body;
    } rows[] = {
        {rig_list, "", "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"},
        {copy, "", "<CopyObjectResult><ETag>e</ETag></CopyObjectResult>"},
        {get, "ETag: \"abc\"\r\n", "xyz"},
        {create,
         "",
         "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"},
        {part, "ETag: \"e\"\r\n", ""},
    };

    (void)state;
    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        XF_AUTO_BUF text = {0};
        struct rig r;

        rig_open(&r, NULL);
        script_say(r.script, MOVED);
        script_say(r.script, rig_reply(&text, "200 OK", rows[i].headers, rows[i].body));
        rows[i].ask(&r);
        if (r.code != XF_OK) {
            fail_msg("row %zu: %s", i, r.msg.ptr);
        }
        ASSERT_SENT(&r, 1, FRANKFURT);
        rig_close(&r);
    }
}

static void c064_a_redirect_that_tells_nothing_is_looked_into(void **state)
{
    struct rig *r = *state;

    script_say(r->script, "HTTP/1.1 301 Moved\r\nContent-Length: 0\r\n\r\n");
    script_say(
        r->script,
        "HTTP/1.1 403 Forbidden\r\nx-amz-bucket-region: eu-central-1\r\nContent-Length: 0\r\n\r\n");
    script_say(r->script, HEAD_OK);
    rig_head(r, "k");
    assert_int_equal(r->code, XF_OK);
    assert_int_equal(script_requests(r->script), 3);
    ASSERT_SENT(r, 2, FRANKFURT);
    ASSERT_SENT(r, 1, "GET /bkt?");
}

static void c064_a_refused_head_is_looked_into_once(void **state)
{
    static const char bare[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    struct rig *r = *state;
    XF_AUTO_BUF text = {0};

    script_say(r->script, bare);
    script_say(r->script,
               rig_reply(&text,
                         "200 OK",
                         "",
                         "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"));
    script_say(r->script, bare);
    for (int i = 0; i < 2; i++) {
        rig_head(r, "k");
        assert_int_equal(r->code, XF_E_BAD_REQUEST);
        assert_int_equal(script_requests(r->script), 2 + i);
    }
}

static void c064_a_redirect_to_itself_ends(void **state)
{
    struct rig *r = *state;
    XF_AUTO_BUF reply = {0};

    xf_buf_putf(&reply,
                "HTTP/1.1 301 Moved\r\nx-amz-bucket-region: us-east-1\r\n"
                "Location: http://127.0.0.1:%u/bkt/k\r\nContent-Length: 0\r\n\r\n",
                script_port(r->script));
    for (int i = 0; i < 5; i++) {
        script_say(r->script, reply.ptr);
    }
    rig_head(r, "k");
    assert_int_equal(r->code, XF_E_REDIRECT);
    assert_int_equal(script_requests(r->script), 1);

    /* Nor does one that names ever other regions go on. */
    static const char back[] =
        "HTTP/1.1 301 Moved\r\nx-amz-bucket-region: us-east-1\r\nContent-Length: 0\r\n\r\n";
    struct rig round;

    rig_open(&round, NULL);
    for (int i = 0; i < 3; i++) {
        script_say(round.script, MOVED);
        script_say(round.script, back);
    }
    rig_head(&round, "k");
    assert_int_equal(round.code, XF_E_REDIRECT);
    assert_int_equal(script_requests(round.script), 4); /* the first, and three more */
    rig_close(&round);
}

static void c064_a_region_that_was_given_is_not_changed(void **state)
{
    struct rig r;
    const struct rig_opts o = {.is_region_fixed = true};

    (void)state;
    rig_open(&r, &o);
    script_say(r.script, MOVED);
    rig_head(&r, "k");
    assert_int_equal(r.code, XF_E_REDIRECT);
    assert_string_equal(r.region.ptr, "eu-central-1");
    assert_non_null(strstr(r.msg.ptr, "is in region 'eu-central-1', configured is 'us-east-1'"));
    assert_int_equal(script_requests(r.script), 1);
    rig_close(&r);
}

/* ---- hosts ---- */

/* An HTTP back end that is a list of answers, to see the URLs of hosts that are not there. */
struct answer {
    int status;
    const char *name; /* of a header; NULL: none */
    const char *value;
};

struct fake {
    struct xf_http http;
    struct xf_loop *loop;
    const struct answer *answers;
    char urls[8][200];
    size_t n;
    struct xf_http_call call;
    struct xf_timer timer;
};

static void fake_answer(struct xf_timer *t)
{
    struct fake *f = t->arg;
    const struct answer *a = &f->answers[f->n - 1];
    const struct xf_http_header h = {xf_str_c(a->name != NULL ? a->name : "x"), xf_str_c(a->value)};
    const struct xf_http_head head = {.status = a->status, .headers = &h, .n_headers = 1};
    const struct xf_http_done done = {.status = a->status};

    (void)f->call.on_head(f->call.arg, &head);
    f->call.on_done(f->call.arg, &done);
}

static struct xf_http_req *fake_start(void *self, const struct xf_http_call *call)
{
    struct fake *f = self;

    assert_true(f->n < XF_ARRAY_LEN(f->urls));
    (void)snprintf(f->urls[f->n++], sizeof(f->urls[0]), "%s", call->url);
    f->call = *call;
    xf_timer_in(f->loop, &f->timer, 0);
    return (struct xf_http_req *)f; /* only handed back */
}

static void fake_nothing(void *self, struct xf_http_req *req)
{
    (void)self; /* no call waits */
    (void)req;
}

static void fake_free(void *self)
{
    (void)self; /* the test's */
}

/* HEAD of s3://bkt/k at `endpoint`, signed for us-east-1 at first. */
static void
head_at(struct fake *f, const char *endpoint, const char *region, const struct answer *answers)
{
    static const struct xf_http_ops ops = {fake_start, fake_nothing, fake_nothing, fake_free};
    struct rig r = {0};
    struct xf_err err;
    struct xf_s3_opts o = {.region = xf_str_c(region)};
    const struct xf_s3_head_opts head = {KEY("k")};

    memset(f, 0, sizeof(*f));
    assert_int_equal(xf_loop_new(NULL, &f->loop, &err), XF_OK);
    f->http = (struct xf_http){.ops = &ops, .self = f};
    f->timer = (struct xf_timer){.cb = fake_answer, .arg = f};
    f->answers = answers;
    r.loop = f->loop;
    assert_int_equal(xf_uri_endpoint_parse(xf_str_c(endpoint), &o.endpoint, &err), XF_OK);
    o.loop = f->loop;
    o.http = &f->http;
    assert_int_equal(xf_s3_new(&o, &r.s3, &err), XF_OK);
    assert_non_null(xf_s3_head(r.s3, &head, rig_done, &r));
    rig_wait(&r);
    xf_s3_free(r.s3);
    xf_loop_free(f->loop);
    struct xf_buf *bufs[] = {&r.msg,
                             &r.etag,
                             &r.region,
                             &r.upload_id,
                             &r.s3_code,
                             &r.keys,
                             &r.meta,
                             &r.tags,
                             &r.content_encoding};
    for (size_t i = 0; i < XF_ARRAY_LEN(bufs); i++) {
        xf_buf_fini(bufs[i]);
    }
}

#define REGION "x-amz-bucket-region"

static void c064_the_host_follows_the_region_within_its_partition(void **state)
{
    static const struct {
        const char *endpoint;
        const char *region;
        const char *told;
        const char *second; /* NULL: not followed */
    } rows[] = {
        {"https://s3.us-east-1.amazonaws.com",
         "us-east-1",
         "eu-central-1",
         "https://bkt.s3.eu-central-1.amazonaws.com/k"},
        {"https://s3.dualstack.us-east-1.amazonaws.com",
         "us-east-1",
         "us-west-2",
         "https://bkt.s3.dualstack.us-west-2.amazonaws.com/k"},
        {"https://s3-fips.us-east-1.amazonaws.com",
         "us-east-1",
         "us-west-2",
         "https://bkt.s3-fips.us-west-2.amazonaws.com/k"},
        {"https://s3.amazonaws.com",
         "us-east-1",
         "eu-west-1",
         "https://bkt.s3.eu-west-1.amazonaws.com/k"},
        {"https://s3.cn-north-1.amazonaws.com.cn",
         "cn-north-1",
         "cn-northwest-1",
         "https://bkt.s3.cn-northwest-1.amazonaws.com.cn/k"},
        {"https://s3.us-gov-west-1.amazonaws.com",
         "us-gov-west-1",
         "us-gov-east-1",
         "https://bkt.s3.us-gov-east-1.amazonaws.com/k"},
        {"https://s3.us-gov-west-1.amazonaws.com", "us-gov-west-1", "us-east-1", NULL},
        {"https://s3.us-east-1.amazonaws.com", "us-east-1", "us-gov-east-1", NULL},
        {"https://s3.us-east-1.amazonaws.com", "us-east-1", "cn-north-1", NULL},
        {"https://s3.us-east-1.amazonaws.com", "us-east-1", "x.evil.example/", NULL},
        {"https://s3.us-east-1.amazonaws.com", "us-east-1", "eu-evil.example-1", NULL},
        {"https://minio.example:9000/base", "us-east-1", "x.evil.example/", NULL},
        {"https://minio.example:9000/base",
         "us-east-1",
         "attic",
         "https://minio.example:9000/base/bkt/k"},
    };

    (void)state;
    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        const struct answer answers[] = {{301, REGION, rows[i].told}, {200, NULL, ""}};
        struct fake f;

        head_at(&f, rows[i].endpoint, rows[i].region, answers);
        assert_int_equal(f.n, rows[i].second != NULL ? 2 : 1);
        if (rows[i].second != NULL) {
            assert_string_equal(f.urls[1], rows[i].second);
        }
    }
}

static void c064_a_bare_redirect_of_a_head_is_explained_by_the_bucket(void **state)
{
    static const struct answer moved[] = {
        {301, NULL, ""}, {301, REGION, "eu-west-1"}, {200, NULL, ""}, {200, NULL, ""}};
    static const struct answer malformed[] = {
        {400, NULL, ""}, {400, REGION, "eu-west-1"}, {200, NULL, ""}, {200, NULL, ""}};
    static const struct answer nothing[] = {{400, NULL, ""}, {400, NULL, ""}};
    struct fake f;

    (void)state;
    head_at(&f, "https://s3.us-east-1.amazonaws.com", "us-east-1", moved);
    assert_int_equal(f.n, 4);
    assert_string_equal(f.urls[1], "https://bkt.s3.us-east-1.amazonaws.com/");
    assert_string_equal(f.urls[3], "https://bkt.s3.eu-west-1.amazonaws.com/k");
    head_at(&f, "https://s3.us-east-1.amazonaws.com", "us-east-1", malformed);
    assert_int_equal(f.n, 4);
    head_at(&f, "https://s3.us-east-1.amazonaws.com", "us-east-1", nothing);
    assert_int_equal(f.n, 2);
}

static void c064_keys_do_not_follow_a_location_to_strangers(void **state)
{
    static const struct {
        const char *endpoint;
        const char *location;
        bool is_followed;
    } rows[] = {
        {"https://s3.us-east-1.amazonaws.com", "https://bkt.s3-us-west-2.amazonaws.com/k", true},
        {"https://s3.us-east-1.amazonaws.com",
         "https://bkt.s3.us-west-2.amazonaws.com/k?x=1",
         true},
        {"https://s3.us-east-1.amazonaws.com", "http://bkt.s3-us-west-2.amazonaws.com/k", false},
        {"https://s3.us-east-1.amazonaws.com",
         "https://bkt.s3.cn-north-1.amazonaws.com.cn/k",
         false},
        {"https://s3.us-east-1.amazonaws.com", "https://bkt.s3.us-east-9.c2s.ic.gov/k", false},
        {"https://s3.us-east-1.amazonaws.com",
         "https://bkt.s3.us-gov-west-1.amazonaws.com/k",
         false},
        {"https://s3.us-east-1.amazonaws.com",
         "https://bkt.s3.us-west-2.amazonaws.com.evil.example/k",
         false},
        {"https://s3.us-east-1.amazonaws.com", "https://evil-amazonaws.com/k", false},
        {"https://s3.us-east-1.amazonaws.com",
         "https://user@bkt.s3-us-west-2.amazonaws.com/k",
         false},
        {"https://s3.us-east-1.amazonaws.com",
         "https://bkt.s3-us-west-2.amazonaws.com/other",
         false},
        {"https://s3.us-east-1.amazonaws.com", "/k", false},
        {"http://store.example:9000", "http://node7.store.example:9000/bkt/k", true},
        {"http://store.example:9000", "https://store.example/bkt/k", true},
        {"http://store.example:9000", "http://badstore.example:9000/bkt/k", false},
    };
    struct fake f;

    (void)state;
    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        /* Where it is not followed the bucket is asked, which tells nothing. */
        const struct answer answers[] = {{307, "location", rows[i].location}, {200, NULL, ""}};

        head_at(&f, rows[i].endpoint, "us-east-1", answers);
        assert_int_equal(f.n, 2);
        if (rows[i].is_followed != (strncmp(f.urls[1], rows[i].location, strlen(f.urls[1])) == 0)) {
            fail_msg("%s: went to %s", rows[i].location, f.urls[1]);
        }
    }
}

int main(void)
{
#define T(test)          cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)
#define WITH_TOKEN(test) cmocka_unit_test_setup_teardown(test, rig_setup_token, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(a_clock_that_is_off_is_corrected_once_and_remembered),
        WITH_TOKEN(c059_expired_token_is_renewed_once),
        WITH_TOKEN(c059_expired_token_on_head_is_seen_in_a_header),
        WITH_TOKEN(c059_keys_that_are_being_asked_for_are_waited_for),
        WITH_TOKEN(c059_a_body_that_cannot_begin_anew_is_its_owners_to_repeat),
        cmocka_unit_test(c064_a_region_that_is_told_is_signed_for_and_remembered),
        cmocka_unit_test(c064_every_kind_of_request_is_sent_again),
        T(c064_a_redirect_that_tells_nothing_is_looked_into),
        T(c064_a_refused_head_is_looked_into_once),
        T(c064_a_redirect_to_itself_ends),
        cmocka_unit_test(c064_a_region_that_was_given_is_not_changed),
        cmocka_unit_test(c064_the_host_follows_the_region_within_its_partition),
        cmocka_unit_test(c064_a_bare_redirect_of_a_head_is_explained_by_the_bucket),
        cmocka_unit_test(c064_keys_do_not_follow_a_location_to_strangers),
    };

    return xf_test_run("s3/again", tests, NULL, NULL);
}
