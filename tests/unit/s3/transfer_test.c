/*
 * transfer_test.c - bodies in both directions: short, long, stalled, paused, streamed, cancelled.
 */
#include "tests/lib/test.h"
#include "tests/unit/s3/rig.h"

#define OK0 "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

/* ---- bodies of answers ---- */

static void c044_short_body_is_never_a_success(void **state)
{
    struct rig *r = *state;

    script_add(r->script,
               (struct script_reply){.text = "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nContent-Length: "
                                             "1048576\r\n\r\n",
                                     .fill = 1000000,
                                     .after = SCRIPT_CLOSE});
    rig_get(r, 1048576, 0, 0);
    assert_int_equal(r->code, XF_E_TRUNCATED);
    assert_int_equal(r->sunk.len, 1000000);
    assert_non_null(strstr(r->msg.ptr, "got 1000000 of 1048576"));
}

static void c044_reset_in_the_body_is_an_error(void **state)
{
    struct rig *r = *state;

    script_add(r->script,
               (struct script_reply){.text = "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nContent-Length: "
                                             "100000\r\n\r\n",
                                     .fill = 5000,
                                     .after = SCRIPT_RESET});
    rig_get(r, 100000, 0, 0);
    assert_true(r->code == XF_E_NET || r->code == XF_E_TRUNCATED);
}

static void c044_clean_chunked_end_before_the_size_is_an_error(void **state)
{
    struct rig *r = *state;

    script_say(r->script,
               "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nTransfer-Encoding: "
               "chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
    rig_get(r, 9, 0, 0);
    assert_int_equal(r->code, XF_E_TRUNCATED);
    assert_non_null(strstr(r->msg.ptr, "got 5 of 9"));
}

static void c044_longer_bodies_are_errors(void **state)
{
    struct rig *r = *state;

    script_say(r->script,
               "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nTransfer-Encoding: "
               "chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
    rig_get(r, 4, 0, 0);
    assert_int_equal(r->code, XF_E_TRUNCATED);
    assert_true(r->sunk.len <= 4);
    script_say(r->script,
               "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nContent-Length: 5\r\n\r\nhello and more");
    rig_get(r, 5, 0, 0);
    assert_int_equal(r->code, XF_E_TRUNCATED);
    assert_non_null(strstr(r->msg.ptr, "more than the announced 5"));
}

static void c044_an_answer_for_another_object_size_is_a_change(void **state)
{
    struct rig *r = *state;

    script_say(r->script, "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nContent-Length: 5\r\n\r\nhello");
    rig_get(r, 7, 0, 0);
    assert_int_equal(r->code, XF_E_CHANGED);
    assert_int_equal(r->sunk.len, 0);
    script_say(r->script,
               "HTTP/1.1 206 Partial Content\r\nETag: \"abc\"\r\nContent-Length: 2\r\n"
               "Content-Range: bytes 1-2/9\r\n\r\nel");
    rig_get(r, 5, 1, 2);
    assert_int_equal(r->code, XF_E_CHANGED);
    assert_int_equal(r->sunk.len, 0);
}

static void c004_another_etag_is_a_change(void **state)
{
    struct rig *r = *state;

    script_say(r->script, "HTTP/1.1 200 OK\r\nETag: \"other\"\r\nContent-Length: 5\r\n\r\nhello");
    rig_get(r, 5, 0, 0);
    assert_int_equal(r->code, XF_E_CHANGED);
    assert_int_equal(r->sunk.len, 0);
    script_say(r->script, "HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n");
    rig_get(r, 5, 0, 0);
    assert_int_equal(r->code, XF_E_CHANGED);
}

static void ranges_are_checked(void **state)
{
    struct rig *r = *state;

    script_say(r->script,
               "HTTP/1.1 206 Partial Content\r\nETag: \"abc\"\r\nContent-Length: 3\r\n"
               "Content-Range: bytes 1-3/5\r\n\r\nell");
    rig_get(r, 5, 1, 3);
    assert_int_equal(r->code, XF_OK);
    assert_int_equal(r->size, 5);
    assert_string_equal(r->sunk.ptr, "ell");
    ASSERT_SENT(r, 0, "range: bytes=1-3\r\n");

    script_say(r->script,
               "HTTP/1.1 206 Partial Content\r\nETag: \"abc\"\r\nContent-Length: 3\r\n"
               "Content-Range: bytes 0-2/5\r\n\r\nhel");
    rig_get(r, 5, 1, 3);
    assert_int_equal(r->code, XF_E_XML); /* another range */
    script_say(r->script, "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nContent-Length: 5\r\n\r\nhello");
    rig_get(r, 5, 1, 3);
    assert_int_equal(r->code, XF_E_XML); /* range ignored */
    script_say(r->script, "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nContent-Length: 5\r\n\r\nhello");
    rig_get(r, 5, 0, 5);
    assert_int_equal(r->code, XF_OK); /* ignored, but it was the whole object */
    assert_string_equal(r->sunk.ptr, "hello");
}

static void a_paused_sink_gets_the_same_bytes_after_resume(void **state)
{
    struct rig *r = *state;
    struct xf_s3_get_opts o = {KEY("k"), .object_size = 300000, .sink = rig_sink(r)};
    struct xf_s3_req *req;
    int64_t until_ms = xf_clock_mono_ms(xf_clock_real()) + 10000;

    r->pause_sink = true;
    script_add(r->script,
               (struct script_reply){
                   .text = "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nContent-Length: 300000\r\n\r\n",
                   .fill = 300000});
    req = xf_s3_get(r->s3, &o, rig_done, r);
    while (r->n_done == 0 && xf_clock_mono_ms(xf_clock_real()) < until_ms) {
        unsigned before = r->pauses;

        r->pause_sink = true;
        while (r->pauses == before && r->n_done == 0) {
            xf_loop_turn(r->loop, 20);
        }
        r->pause_sink = false;
        if (r->n_done == 0) {
            xf_s3_resume(req);
        }
        xf_loop_turn(r->loop, 20);
    }
    assert_int_equal(r->code, XF_OK);
    assert_int_equal(r->sunk.len, 300000);
    assert_true(r->pauses >= 1);
}

/* ---- stalls ---- */

static void c061_no_answer_ends_in_time(void **state)
{
    struct rig *r = *state;

    script_add(r->script, (struct script_reply){.after = SCRIPT_STALL});
    rig_put(r, "x");
    assert_int_equal(r->code, XF_E_TIMEOUT);
    assert_true(r->maybe_done);
}

static void c061_silence_in_the_body_is_a_stall(void **state)
{
    struct rig *r = *state;

    script_add(r->script,
               (struct script_reply){.text = "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nContent-Length: "
                                             "100000\r\n\r\n",
                                     .fill = 5000,
                                     .after = SCRIPT_STALL});
    rig_get(r, 100000, 0, 0);
    assert_int_equal(r->code, XF_E_STALLED);
    assert_non_null(strstr(r->msg.ptr, "stalled at byte 5000"));
}

static void c061_a_drip_of_bytes_is_a_stall(void **state)
{
    struct rig *r = *state;

    script_add(r->script,
               (struct script_reply){
                   .text =
                       "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nContent-Length: 100000\r\n\r\n"
                       "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
                   .drip_ms = 10,
                   .after = SCRIPT_STALL});
    rig_get(r, 100000, 0, 0);
    assert_int_equal(r->code, XF_E_STALLED);
}

static void c061_a_body_that_nobody_reads_is_a_stall(void **state)
{
    struct rig *r = *state;
    size_t len = 32U << 20;
    XF_AUTO_FREE char *body = xf_xcalloc(1, len);
    struct xf_s3_put_opts o = {KEY("k"), .body = {.bytes = {body, len}}};

    script_add(r->script, (struct script_reply){.before_body = true, .after = SCRIPT_STALL});
    assert_non_null(xf_s3_put(r->s3, &o, rig_done, r));
    rig_wait(r);
    assert_int_equal(r->code, XF_E_STALLED);
}

static void c061_a_slow_server_copy_is_no_stall(void **state)
{
    struct rig *r = *state;

    /* Padding trickles for longer than the stall window; the copy is patient. */
    script_add(r->script,
               (struct script_reply){.text = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
                                             "                                        "
                                             "<CopyObjectResult><ETag>e</ETag></CopyObjectResult>",
                                     .drip_ms = 5,
                                     .after = SCRIPT_CLOSE});
    rig_copy(r);
    assert_int_equal(r->code, XF_OK);
}

/* ---- streams ---- */

struct stream {
    uint64_t at;
    uint64_t size;
    bool pause; /* the next pull pauses */
    unsigned pauses;
    unsigned rewinds;
};

static enum xf_http_flow stream_pull(void *arg, char *buf, size_t cap, size_t *n)
{
    struct stream *s = arg;

    if (s->pause) {
        s->pause = false;
        s->pauses++;
        return XF_HTTP_PAUSE;
    }
    *n = cap > 10000 ? 10000 : cap;
    *n = s->size - s->at < *n ? (size_t)(s->size - s->at) : *n;
    memset(buf, 'a', *n);
    s->at += *n;
    s->pause = s->at == 20000;
    return XF_HTTP_GO;
}

static bool stream_rewind(void *arg)
{
    struct stream *s = arg;

    s->at = 0;
    s->rewinds++;
    return true;
}

static void a_stream_over_plain_http_is_signed_in_chunks(void **state)
{
    struct rig *r = *state;
    struct stream stream = {.size = 66560};
    struct xf_s3_part_opts o = {
        KEY("k"),
        .upload_id = XF_STR_LIT("u"),
        .part_no = 2,
        .body = {.pull = stream_pull, .rewind = stream_rewind, .arg = &stream, .size = 66560}};
    struct xf_s3_req *req;
    int64_t until_ms = xf_clock_mono_ms(xf_clock_real()) + 10000;
    struct xf_str body;

    script_say(r->script, "HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 0\r\n\r\n");
    req = xf_s3_part(r->s3, &o, rig_done, r);
    while (stream.pauses == 0 && xf_clock_mono_ms(xf_clock_real()) < until_ms) {
        xf_loop_turn(r->loop, 20);
    }
    assert_int_equal(r->n_done, 0);
    xf_s3_resume(req);
    rig_wait(r);
    assert_int_equal(r->code, XF_OK);
    ASSERT_SENT(r, 0, "PUT /bkt/k?partNumber=2&uploadId=u HTTP/1.1\r\n");
    ASSERT_SENT(r, 0, "x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD\r\n");
    ASSERT_SENT(r, 0, "x-amz-decoded-content-length: 66560\r\n");
    ASSERT_NOT_SENT(r, 0, "aws-chunked"); /* some would keep it as the object's encoding */
    ASSERT_SENT(r, 0, "Content-Length: 66824\r\n");
    body = script_body(r->script, 0);
    assert_int_equal(body.len, 66824);
    assert_memory_equal(body.ptr, "10000;chunk-signature=", 22);
    assert_memory_equal(body.ptr + body.len - 4, "\r\n\r\n", 4);
    assert_memory_equal(body.ptr + body.len - 86, "0;chunk-signature=", 18);
}

static void a_stream_that_ends_early_is_an_error(void **state)
{
    struct rig *r = *state;
    struct stream stream = {.size = 30000};
    struct xf_s3_part_opts o = {KEY("k"),
                                .upload_id = XF_STR_LIT("u"),
                                .part_no = 1,
                                .body = {.pull = stream_pull, .arg = &stream, .size = 66560}};
    struct xf_s3_req *req;

    script_say(r->script, OK0);
    req = xf_s3_part(r->s3, &o, rig_done, r);
    while (stream.pauses == 0) {
        xf_loop_turn(r->loop, 20);
    }
    xf_s3_resume(req);
    rig_wait(r);
    assert_int_equal(r->code, XF_E_TRUNCATED);
    assert_int_equal(script_requests(r->script), 0);
}

static void an_early_refusal_of_a_large_body_is_heard(void **state)
{
    struct rig *r = *state;
    size_t len = 8U << 20;
    XF_AUTO_FREE char *body = xf_xcalloc(1, len);
    struct xf_s3_put_opts o = {KEY("k"), .body = {.bytes = {body, len}}};

    script_add(r->script,
               (struct script_reply){.text = "HTTP/1.1 403 Forbidden\r\nContent-Length: 42\r\n\r\n"
                                             "<Error><Code>AccessDenied</Code></Error>\r\n",
                                     .before_body = true,
                                     .after = SCRIPT_CLOSE});
    assert_non_null(xf_s3_put(r->s3, &o, rig_done, r));
    rig_wait(r);
    assert_int_equal(r->code, XF_E_DENIED);
    script_say(r->script, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n");
    rig_head(r, "k"); /* on a new connection: the old one has half a body in it */
    assert_int_equal(r->code, XF_OK);
}

/* ---- cancel ---- */

static void cancel_calls_done_once(void **state)
{
    struct rig *r = *state;
    struct xf_s3_put_opts o = {KEY("k"), .body = {.bytes = XF_STR_LIT("x")}};
    struct xf_s3_req *req;

    script_add(r->script, (struct script_reply){.after = SCRIPT_STALL});
    req = xf_s3_put(r->s3, &o, rig_done, r);
    while (script_requests(r->script) == 0) {
        xf_loop_turn(r->loop, 20);
    }
    xf_s3_cancel(req);
    assert_int_equal(r->n_done, 0);
    rig_wait(r);
    assert_int_equal(r->code, XF_E_CANCELLED);
    assert_true(r->maybe_done);
    xf_loop_turn(r->loop, 10);
    assert_int_equal(r->n_done, 1);
    assert_int_equal(xf_s3_in_flight(r->s3), 0);

    req = xf_s3_put(r->s3, &o, rig_done, r); /* before it was sent at all */
    xf_s3_cancel(req);
    rig_wait(r);
    assert_int_equal(r->code, XF_E_CANCELLED);
}

#define T(fn)         cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)
#define IMPATIENT(fn) cmocka_unit_test_setup_teardown(fn, rig_setup_impatient, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(c044_short_body_is_never_a_success),
        T(c044_reset_in_the_body_is_an_error),
        T(c044_clean_chunked_end_before_the_size_is_an_error),
        T(c044_longer_bodies_are_errors),
        T(c044_an_answer_for_another_object_size_is_a_change),
        T(c004_another_etag_is_a_change),
        T(ranges_are_checked),
        T(a_paused_sink_gets_the_same_bytes_after_resume),
        IMPATIENT(c061_no_answer_ends_in_time),
        IMPATIENT(c061_silence_in_the_body_is_a_stall),
        IMPATIENT(c061_a_drip_of_bytes_is_a_stall),
        IMPATIENT(c061_a_body_that_nobody_reads_is_a_stall),
        IMPATIENT(c061_a_slow_server_copy_is_no_stall),
        T(a_stream_over_plain_http_is_signed_in_chunks),
        T(a_stream_that_ends_early_is_an_error),
        T(an_early_refusal_of_a_large_body_is_heard),
        T(cancel_calls_done_once),
    };

    return xf_test_run("s3/transfer", tests, NULL, NULL);
}
