/*
 * s3err.c - the table of S3's error codes.
 *
 * A known S3 code decides first, then the HTTP status together with the kind of request.
 */
#include "common/s3/s3err.h"

#include "common/base/mem.h"

struct row {
    const char *s3;
    enum xf_code code;
};

static const struct row rows[] = {
    {"SlowDown", XF_E_THROTTLED},
    {"SlowDownRead", XF_E_THROTTLED},
    {"SlowDownWrite", XF_E_THROTTLED},
    {"ServiceUnavailable", XF_E_THROTTLED},
    {"RequestLimitExceeded", XF_E_THROTTLED},
    {"Throttling", XF_E_THROTTLED},
    {"ThrottlingException", XF_E_THROTTLED},
    {"ThrottledException", XF_E_THROTTLED},
    {"RequestThrottled", XF_E_THROTTLED},
    {"RequestThrottledException", XF_E_THROTTLED},
    {"TooManyRequests", XF_E_THROTTLED},
    {"TooManyRequestsException", XF_E_THROTTLED},
    {"BandwidthLimitExceeded", XF_E_THROTTLED},
    {"PriorRequestNotComplete", XF_E_THROTTLED},
    {"ProvisionedThroughputExceededException", XF_E_THROTTLED},
    {"TransactionInProgressException", XF_E_THROTTLED},
    {"EC2ThrottledException", XF_E_THROTTLED},
    {"InternalError", XF_E_SERVER},
    {"InternalServerError", XF_E_SERVER},
    {"RequestTimeout", XF_E_SERVER},
    {"RequestTimeoutException", XF_E_SERVER},
    {"IncompleteBody", XF_E_TRUNCATED},
    {"EntityTooSmall", XF_E_TRUNCATED}, /* ours have lawful sizes: a part was not kept whole */
    {"OperationAborted", XF_E_BUSY},
    {"ConditionalRequestConflict", XF_E_BUSY},
    {"BadDigest", XF_E_CHECKSUM},
    {"InvalidDigest", XF_E_CHECKSUM},
    {"XAmzContentSHA256Mismatch", XF_E_CHECKSUM},
    {"XAmzContentChecksumMismatch", XF_E_CHECKSUM},
    {"RequestTimeTooSkewed", XF_E_CLOCK},
    {"ExpiredToken", XF_E_CREDS},
    {"ExpiredTokenException", XF_E_CREDS},
    {"TokenRefreshRequired", XF_E_CREDS},
    {"InvalidToken", XF_E_CREDS},
    {"InvalidAccessKeyId", XF_E_CREDS},
    {"InvalidSecurity", XF_E_CREDS},
    {"PermanentRedirect", XF_E_REDIRECT},
    {"TemporaryRedirect", XF_E_REDIRECT},
    {"Redirect", XF_E_REDIRECT},
    {"IllegalLocationConstraintException", XF_E_REDIRECT},
    {"NoSuchKey", XF_E_NOT_FOUND},
    {"NoSuchVersion", XF_E_NOT_FOUND},
    {"NoSuchBucket", XF_E_NO_BUCKET},
    {"NoSuchUpload", XF_E_NO_UPLOAD},
    {"InvalidPart", XF_E_NO_UPLOAD}, /* a part is not what we remember: a new upload is the cure */
    {"InvalidObjectState", XF_E_ARCHIVED},
    {"ObjectNotInActiveTierError", XF_E_ARCHIVED},
    {"EntityTooLarge", XF_E_TOO_LARGE},
    {"AccessDenied", XF_E_DENIED},
    {"AllAccessDisabled", XF_E_DENIED},
    {"AccountProblem", XF_E_DENIED},
    {"NotSignedUp", XF_E_DENIED},
    {"InvalidPayer", XF_E_DENIED},
    {"SignatureDoesNotMatch", XF_E_DENIED},
    {"KMS.DisabledException", XF_E_DENIED},
    {"KMS.NotFoundException", XF_E_DENIED},
    {"KMS.KMSInvalidStateException", XF_E_DENIED},
    {"InvalidBucketName", XF_E_NO_BUCKET},
    {"InvalidArgument", XF_E_BAD_REQUEST},
    {"InvalidRequest", XF_E_BAD_REQUEST},
    {"InvalidPartOrder", XF_E_BAD_REQUEST},
    {"KeyTooLongError", XF_E_BAD_REQUEST},
    {"MetadataTooLarge", XF_E_BAD_REQUEST},
    {"MalformedXML", XF_E_BAD_REQUEST},
    {"InvalidStorageClass", XF_E_BAD_REQUEST},
    {"InvalidTag", XF_E_BAD_REQUEST},
    {"MissingContentLength", XF_E_BAD_REQUEST},
    {"AccessControlListNotSupported", XF_E_BAD_REQUEST},
};

static enum xf_code by_status(const struct xf_s3err_in *in);

/* Codes whose meaning hangs on the request; XF_OK when there is nothing special. */
static enum xf_code by_kind(const struct xf_s3err_in *in, struct xf_str s3)
{
    if (xf_str_eq_c(s3, "ConditionalRequestConflict") && in->kind == XF_S3ERR_UPLOAD) {
        return XF_E_NO_UPLOAD; /* on Complete: the upload must be made anew */
    }
    if (xf_str_eq_c(s3, "AuthorizationHeaderMalformed")) {
        bool has_region = in->has_bucket_region || (in->body != NULL && in->body->region.len > 0);

        return has_region ? XF_E_REDIRECT : XF_E_DENIED;
    }
    if (xf_str_eq_c(s3, "PreconditionFailed") || xf_str_eq_c(s3, "InvalidRange") ||
        xf_str_eq_c(s3, "NotImplemented") || xf_str_eq_c(s3, "MethodNotAllowed")) {
        struct xf_s3err_in plain = *in;

        plain.status = xf_str_eq_c(s3, "PreconditionFailed") ? 412
                       : xf_str_eq_c(s3, "InvalidRange")     ? 416
                       : xf_str_eq_c(s3, "NotImplemented")   ? 501
                                                             : 405;
        return by_status(&plain);
    }
    if (xf_str_starts(s3, XF_STR_LIT("KMS")) &&
        xf_str_ends(s3, XF_STR_LIT("ThrottlingException"))) {
        return XF_E_THROTTLED;
    }
    return XF_OK;
}

static enum xf_code missing(enum xf_s3err_kind kind)
{
    switch (kind) {
    case XF_S3ERR_BUCKET:
    case XF_S3ERR_WRITE: return XF_E_NO_BUCKET;
    case XF_S3ERR_UPLOAD: return XF_E_NO_UPLOAD;
    case XF_S3ERR_READ:
    case XF_S3ERR_COPY:
    case XF_S3ERR_KIND_N: return XF_E_NOT_FOUND;
    }
    return XF_E_NOT_FOUND;
}

/* Which side a 412 is about. */
static enum xf_code unmet(const struct xf_s3err_in *in)
{
    bool about_target = in->kind == XF_S3ERR_WRITE || in->kind == XF_S3ERR_UPLOAD;

    if (in->kind == XF_S3ERR_COPY && in->body != NULL && in->body->condition.len > 0) {
        about_target = xf_str_starts(in->body->condition, XF_STR_LIT("If-"));
    }
    return about_target ? XF_E_EXISTS : XF_E_CHANGED;
}

static enum xf_code by_status(const struct xf_s3err_in *in)
{
    bool is_copy = in->kind == XF_S3ERR_COPY;

    switch (in->status) {
    case 301:
    case 302:
    case 307:
    case 308: return XF_E_REDIRECT;
    case 400: return in->has_bucket_region ? XF_E_REDIRECT : XF_E_BAD_REQUEST;
    case 401:
    case 403: return XF_E_DENIED;
    case 407: return XF_E_PROXY;
    case 404: return missing(in->kind);
    case 405:
        return in->is_delete_marker ? XF_E_NOT_FOUND : is_copy ? XF_E_NO_COPY : XF_E_BAD_REQUEST;
    case 408: return XF_E_SERVER;
    case 409: return XF_E_BUSY;
    case 412: return unmet(in);
    case 413: return XF_E_TOO_LARGE;
    case 416: return XF_E_CHANGED;
    case 429:
    case 503:
    case 509: return XF_E_THROTTLED;
    case 501: return is_copy ? XF_E_NO_COPY : XF_E_UNSUPPORTED;
    default: return in->status >= 300 && in->status < 500 ? XF_E_BAD_REQUEST : XF_E_SERVER;
    }
}

static enum xf_code by_s3_code(const struct xf_s3err_in *in, struct xf_str s3)
{
    enum xf_code code = by_kind(in, s3);

    for (size_t i = 0; code == XF_OK && i < XF_ARRAY_LEN(rows); i++) {
        if (xf_str_eq_c(s3, rows[i].s3)) {
            code = rows[i].code;
        }
    }
    return code;
}

enum xf_code xf_s3err_code(const struct xf_s3err_in *in)
{
    enum xf_code code = XF_OK;

    if (in->body != NULL && in->body->code.len > 0) {
        code = by_s3_code(in, in->body->code);
    }
    if (code == XF_OK && in->header_code.len > 0) {
        code = by_s3_code(in, in->header_code);
    }
    return code != XF_OK ? code : by_status(in);
}

bool xf_s3err_is_expired(struct xf_str s3_code)
{
    return xf_str_eq_c(s3_code, "ExpiredToken") || xf_str_eq_c(s3_code, "ExpiredTokenException") ||
           xf_str_eq_c(s3_code, "TokenRefreshRequired") || xf_str_eq_c(s3_code, "InvalidToken") ||
           xf_str_eq_c(s3_code, "InvalidAccessKeyId");
}

bool xf_s3err_is_signature(struct xf_str s3_code)
{
    return xf_str_eq_c(s3_code, "SignatureDoesNotMatch");
}
