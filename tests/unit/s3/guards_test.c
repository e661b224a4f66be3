/*
 * guards_test.c - access, encryption and lock in requests: which carry what.
 */
#include "common/s3/customer.h"
#include "tests/lib/test.h"
#include "tests/unit/s3/rig.h"

#define COPIED "<CopyObjectResult><ETag>e</ETag></CopyObjectResult>"
#define PART   "<CopyPartResult><ETag>e</ETag></CopyPartResult>"
#define CREATED \
    "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"

static const struct xf_s3_guards all = {
    .acl = {"bucket-owner-full-control", 25},
    .sse = {"aws:kms", 7},
    .kms_key = {"arn:k", 5},
    .lock_mode = {"GOVERNANCE", 10},
    .lock_until = {"2040-01-01T00:00:00Z", 20},
    .legal_hold = {"ON", 2},
};

/* One answer; the script reads it from `text`. */
static void say(struct rig *r, struct xf_buf *text, const char *body)
{
    script_say(r->script, rig_reply(text, "200 OK", "ETag: \"e\"\r\n", body));
}

static void put(struct rig *r)
{
    struct xf_s3_put_opts o = {KEY("k"), .guards = all};
    XF_AUTO_BUF text = {0};

    say(r, &text, "");
    assert_non_null(xf_s3_put(r->s3, &o, rig_done, r));
    rig_wait(r);
}

static void copy(struct rig *r, bool is_paid)
{
    struct xf_s3_copy_opts o = {
        KEY("k"),
        .source = {.bucket = XF_STR_LIT("b"), .key = XF_STR_LIT("k"), .requester_pays = is_paid},
        .guards = all};
    XF_AUTO_BUF text = {0};

    say(r, &text, COPIED);
    assert_non_null(xf_s3_copy(r->s3, &o, rig_done, r));
    rig_wait(r);
}

static void create(struct rig *r)
{
    struct xf_s3_create_opts o = {KEY("k"), .guards = all};
    XF_AUTO_BUF text = {0};

    say(r, &text, CREATED);
    assert_non_null(xf_s3_create(r->s3, &o, rig_done, r));
    rig_wait(r);
}

static void part(struct rig *r)
{
    struct xf_s3_part_opts o = {KEY("k"), .upload_id = XF_STR_LIT("u"), .part_no = 1};
    XF_AUTO_BUF text = {0};

    say(r, &text, "");
    assert_non_null(xf_s3_part(r->s3, &o, rig_done, r));
    rig_wait(r);
}

static void part_copy(struct rig *r)
{
    struct xf_s3_part_copy_opts o = {
        KEY("k"),
        .upload_id = XF_STR_LIT("u"),
        .part_no = 1,
        .source = {.bucket = XF_STR_LIT("b"), .key = XF_STR_LIT("k"), .requester_pays = true}};
    XF_AUTO_BUF text = {0};

    say(r, &text, PART);
    assert_non_null(xf_s3_part_copy(r->s3, &o, rig_done, r));
    rig_wait(r);
}

static void c005_guards_go_with_what_makes_an_object(void **state)
{
    struct rig *r = *state;

    put(r);
    copy(r, false);
    create(r);
    for (unsigned i = 0; i < 3; i++) {
        ASSERT_SENT(r, i, "x-amz-acl: bucket-owner-full-control\r\n");
        ASSERT_SENT(r, i, "x-amz-server-side-encryption: aws:kms\r\n");
        ASSERT_SENT(r, i, "x-amz-server-side-encryption-aws-kms-key-id: arn:k\r\n");
        ASSERT_SENT(r, i, "x-amz-object-lock-mode: GOVERNANCE\r\n");
        ASSERT_SENT(r, i, "x-amz-object-lock-retain-until-date: 2040-01-01T00:00:00Z\r\n");
        ASSERT_SENT(r, i, "x-amz-object-lock-legal-hold: ON\r\n");
        ASSERT_NOT_SENT(r, i, "customer");
    }
}

static void c014_nothing_is_sent_that_was_not_asked_for(void **state)
{
    struct rig *r = *state;
    struct xf_s3_put_opts o = {KEY("k"), .storage_class = XF_STR_EMPTY};
    XF_AUTO_BUF text = {0};

    say(r, &text, "");
    assert_non_null(xf_s3_put(r->s3, &o, rig_done, r));
    rig_wait(r);
    ASSERT_NOT_SENT(r, 0, "x-amz-acl");
    ASSERT_NOT_SENT(r, 0, "x-amz-server-side");
    ASSERT_NOT_SENT(r, 0, "x-amz-object-lock");
    ASSERT_NOT_SENT(r, 0, "x-amz-request-payer");
}

static void a_copy_agrees_to_pay_for_its_source(void **state)
{
    struct rig *r = *state;

    copy(r, false);
    ASSERT_NOT_SENT(r, 0, "x-amz-request-payer");
    copy(r, true);
    ASSERT_SENT(r, 1, "x-amz-request-payer: requester\r\n");
    part_copy(r);
    ASSERT_SENT(r, 2, "x-amz-request-payer: requester\r\n");
}

static void c011_a_customers_key_goes_with_every_request_for_the_object(void **state)
{
    struct rig *r = *state;
    struct rig own;
    struct xf_customer_key key = {0};
    struct rig_opts o = {.customer_key = &key};
    struct xf_err err;
    XF_AUTO_BUF text = {0};

    (void)r;
    assert_int_equal(
        xf_customer_key_parse(XF_STR_LIT("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="),
                              XF_STR_LIT("OWN"),
                              &key,
                              &err),
        XF_OK);
    rig_open(&own, &o);
    xf_customer_key_fini(&key); /* the client has its own */
    say(&own, &text, "");
    rig_head(&own, "k");
    say(&own, &text, "");
    rig_get(&own, 0, 0, 0);
    part(&own);
    create(&own);
    for (unsigned i = 0; i < 4; i++) {
        ASSERT_SENT(&own, i, "x-amz-server-side-encryption-customer-algorithm: AES256\r\n");
        ASSERT_SENT(&own,
                    i,
                    "x-amz-server-side-encryption-customer-key: "
                    "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\r\n");
        ASSERT_SENT(
            &own, i, "x-amz-server-side-encryption-customer-key-md5: tP/LI3N87DFaSk0aoqYgzg==\r\n");
    }
    say(&own, &text, "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>");
    rig_list(&own);
    ASSERT_NOT_SENT(&own, 4, "customer");
    rig_close(&own);
}

static void a_lock_is_put_in_s3s_own_words(void **state)
{
    struct rig *r = *state;
    struct xf_s3_lock_opts o = {
        KEY("k"), .mode = XF_STR_LIT("GOVERNANCE"), .until = XF_STR_LIT("2040-01-01T00:00:00Z")};
    struct xf_s3_lock_opts hold = {KEY("k"), .legal_hold = XF_STR_LIT("ON")};
    XF_AUTO_BUF text = {0};

    say(r, &text, "");
    assert_non_null(xf_s3_put_lock(r->s3, &o, rig_done, r));
    rig_wait(r);
    assert_int_equal(r->code, XF_OK);
    ASSERT_SENT(r, 0, "PUT /bkt/k?retention= HTTP/1.1\r\n");
    ASSERT_SENT(r, 0, "content-md5: ");
    assert_true(
        xf_str_eq_c(script_body(r->script, 0),
                    "<Retention xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Mode>"
                    "GOVERNANCE</Mode><RetainUntilDate>2040-01-01T00:00:00Z</RetainUntilDate>"
                    "</Retention>"));
    say(r, &text, "");
    assert_non_null(xf_s3_put_lock(r->s3, &hold, rig_done, r));
    rig_wait(r);
    ASSERT_SENT(r, 1, "PUT /bkt/k?legal-hold= HTTP/1.1\r\n");
    assert_true(
        xf_str_eq_c(script_body(r->script, 1),
                    "<LegalHold xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Status>ON"
                    "</Status></LegalHold>"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(c005_guards_go_with_what_makes_an_object),
        T(c014_nothing_is_sent_that_was_not_asked_for),
        T(a_copy_agrees_to_pay_for_its_source),
        T(a_lock_is_put_in_s3s_own_words),
        T(c011_a_customers_key_goes_with_every_request_for_the_object),
    };

    return xf_test_run("s3/guards", tests, NULL, NULL);
}
