/*
 * s3err_test.c - what each S3 code and each bare status means, by kind of request.
 */
#include "common/base/mem.h"
#include "common/s3/s3err.h"
#include "tests/lib/test.h"

static enum xf_code with_code(enum xf_s3err_kind kind, int status, const char *code)
{
    struct xf_s3err_body body = {.code = xf_str_c(code)};
    struct xf_s3err_in in = {.kind = kind, .status = status, .body = &body};

    return xf_s3err_code(&in);
}

static enum xf_code bare(enum xf_s3err_kind kind, int status)
{
    struct xf_s3err_in in = {.kind = kind, .status = status};

    return xf_s3err_code(&in);
}

static void codes_have_classes(void **state)
{
    static const struct {
        const char *s3;
        int status;
        enum xf_class cls;
    } rows[] = {
        {"SlowDown", 503, XF_CLASS_SLOW_DOWN},
        {"ServiceUnavailable", 503, XF_CLASS_SLOW_DOWN},
        {"RequestLimitExceeded", 400, XF_CLASS_SLOW_DOWN},
        {"TooManyRequestsException", 400, XF_CLASS_SLOW_DOWN},
        {"BandwidthLimitExceeded", 509, XF_CLASS_SLOW_DOWN},
        {"KMSThrottlingException", 400, XF_CLASS_SLOW_DOWN},
        {"InternalError", 500, XF_CLASS_RETRY},
        {"RequestTimeout", 400, XF_CLASS_RETRY},
        {"IncompleteBody", 400, XF_CLASS_RETRY},
        {"OperationAborted", 409, XF_CLASS_RETRY},
        {"BadDigest", 400, XF_CLASS_RETRY},
        {"XAmzContentSHA256Mismatch", 400, XF_CLASS_RETRY},
        {"RequestTimeTooSkewed", 403, XF_CLASS_RETRY},
        {"ExpiredToken", 400, XF_CLASS_LOCAL},
        {"TokenRefreshRequired", 400, XF_CLASS_LOCAL},
        {"InvalidAccessKeyId", 403, XF_CLASS_LOCAL},
        {"AccessDenied", 403, XF_CLASS_FATAL},
        {"SignatureDoesNotMatch", 403, XF_CLASS_FATAL},
        {"NoSuchKey", 404, XF_CLASS_FATAL},
        {"NoSuchBucket", 404, XF_CLASS_FATAL},
        {"NoSuchUpload", 404, XF_CLASS_REPLAN},
        {"InvalidPart", 400, XF_CLASS_REPLAN},
        {"EntityTooSmall", 400, XF_CLASS_RETRY},
        {"EntityTooLarge", 400, XF_CLASS_FATAL},
        {"InvalidObjectState", 403, XF_CLASS_FATAL},
        {"MalformedXML", 400, XF_CLASS_FATAL},
        {"KMS.DisabledException", 400, XF_CLASS_FATAL},
        {"SomethingNew", 400, XF_CLASS_FATAL},
        {"SomethingNew", 500, XF_CLASS_RETRY},
        {"SomethingNew", 200, XF_CLASS_RETRY},
        {"SomethingNew", 503, XF_CLASS_SLOW_DOWN},
    };

    (void)state;
    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        enum xf_code code = with_code(XF_S3ERR_READ, rows[i].status, rows[i].s3);

        if (xf_code_class(code) != rows[i].cls) {
            fail_msg("%s %d is %s", rows[i].s3, rows[i].status, xf_code_name(code));
        }
    }
}

static void meaning_depends_on_the_request(void **state)
{
    (void)state;
    assert_int_equal(bare(XF_S3ERR_READ, 404), XF_E_NOT_FOUND);
    assert_int_equal(bare(XF_S3ERR_BUCKET, 404), XF_E_NO_BUCKET);
    assert_int_equal(bare(XF_S3ERR_UPLOAD, 404), XF_E_NO_UPLOAD);
    assert_int_equal(bare(XF_S3ERR_READ, 412), XF_E_CHANGED);
    assert_int_equal(bare(XF_S3ERR_COPY, 412), XF_E_CHANGED);
    assert_int_equal(bare(XF_S3ERR_WRITE, 412), XF_E_EXISTS);
    assert_int_equal(bare(XF_S3ERR_COPY, 501), XF_E_NO_COPY);
    assert_int_equal(bare(XF_S3ERR_WRITE, 501), XF_E_UNSUPPORTED);
    assert_int_equal(bare(XF_S3ERR_READ, 416), XF_E_CHANGED);
    assert_int_equal(with_code(XF_S3ERR_WRITE, 409, "ConditionalRequestConflict"), XF_E_BUSY);
    assert_int_equal(with_code(XF_S3ERR_UPLOAD, 409, "ConditionalRequestConflict"), XF_E_NO_UPLOAD);
    assert_int_equal(with_code(XF_S3ERR_COPY, 200, "PreconditionFailed"), XF_E_CHANGED);
}

static void a_copys_412_names_its_side(void **state)
{
    struct xf_s3err_body body = {.code = XF_STR_LIT("PreconditionFailed"),
                                 .condition = XF_STR_LIT("If-None-Match")};
    struct xf_s3err_in in = {.kind = XF_S3ERR_COPY, .status = 412, .body = &body};

    (void)state;
    assert_int_equal(xf_s3err_code(&in), XF_E_EXISTS);
    body.condition = XF_STR_LIT("x-amz-copy-source-If-Match");
    assert_int_equal(xf_s3err_code(&in), XF_E_CHANGED);
}

static void bare_statuses(void **state)
{
    static const struct {
        int status;
        enum xf_code code;
    } rows[] = {
        {100, XF_E_SERVER},    {301, XF_E_REDIRECT},    {304, XF_E_BAD_REQUEST},
        {307, XF_E_REDIRECT},  {400, XF_E_BAD_REQUEST}, {401, XF_E_DENIED},
        {403, XF_E_DENIED},    {407, XF_E_PROXY},       {408, XF_E_SERVER},
        {409, XF_E_BUSY},      {413, XF_E_TOO_LARGE},   {418, XF_E_BAD_REQUEST},
        {429, XF_E_THROTTLED}, {500, XF_E_SERVER},      {502, XF_E_SERVER},
        {503, XF_E_THROTTLED}, {504, XF_E_SERVER},      {599, XF_E_SERVER},
        {0, XF_E_SERVER},
    };

    (void)state;
    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        assert_int_equal(bare(XF_S3ERR_READ, rows[i].status), rows[i].code);
    }
}

static void no_answer_is_ever_ok(void **state)
{
    (void)state;
    for (int kind = 0; kind < XF_S3ERR_KIND_N; kind++) {
        for (int status = 0; status < 700; status++) {
            assert_int_not_equal(bare((enum xf_s3err_kind)kind, status), XF_OK);
        }
    }
}

static void headers_speak_where_bodies_cannot(void **state)
{
    struct xf_s3err_in in = {
        .kind = XF_S3ERR_READ, .status = 400, .header_code = XF_STR_LIT("ExpiredToken")};

    (void)state;
    assert_int_equal(xf_s3err_code(&in), XF_E_CREDS);
    in.header_code = XF_STR_EMPTY;
    in.has_bucket_region = true;
    assert_int_equal(xf_s3err_code(&in), XF_E_REDIRECT);
    in.has_bucket_region = false;
    in.status = 405;
    in.is_delete_marker = true;
    assert_int_equal(xf_s3err_code(&in), XF_E_NOT_FOUND);
}

static void wrong_region_needs_a_region(void **state)
{
    struct xf_s3err_body body = {.code = XF_STR_LIT("AuthorizationHeaderMalformed")};
    struct xf_s3err_in in = {.kind = XF_S3ERR_READ, .status = 400, .body = &body};

    (void)state;
    assert_int_equal(xf_s3err_code(&in), XF_E_DENIED);
    body.region = XF_STR_LIT("eu-west-1");
    assert_int_equal(xf_s3err_code(&in), XF_E_REDIRECT);
}

static void expired_codes(void **state)
{
    (void)state;
    assert_true(xf_s3err_is_expired(XF_STR_LIT("ExpiredToken")));
    assert_true(xf_s3err_is_expired(XF_STR_LIT("InvalidToken")));
    assert_false(xf_s3err_is_expired(XF_STR_LIT("AccessDenied")));
    assert_false(xf_s3err_is_expired(XF_STR_EMPTY));
    assert_true(xf_s3err_is_signature(XF_STR_LIT("SignatureDoesNotMatch")));
    assert_false(xf_s3err_is_signature(XF_STR_LIT("AccessDenied")));
    assert_false(xf_s3err_is_signature(XF_STR_EMPTY));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_have_classes),
        cmocka_unit_test(meaning_depends_on_the_request),
        cmocka_unit_test(a_copys_412_names_its_side),
        cmocka_unit_test(bare_statuses),
        cmocka_unit_test(no_answer_is_ever_ok),
        cmocka_unit_test(headers_speak_where_bodies_cannot),
        cmocka_unit_test(wrong_region_needs_a_region),
        cmocka_unit_test(expired_codes),
    };

    return xf_test_run("s3/s3err", tests, NULL, NULL);
}
