/*
 * err.h - errors as data: a code with a class, and a text for people.
 *
 * Codes travel in messages and are kept in the store, so the table is append-only: the position of
 * a row is its number for ever. The class, never the text, decides what a caller does next.
 * Threads: no state here; a struct xf_err belongs to its caller.
 */
#ifndef XF_BASE_ERR_H
#define XF_BASE_ERR_H

#include <stdbool.h>
#include <stdint.h>

/* X(name, name in reports, class, exit status, text). Append only. */
/* clang-format off */
#define XF_CODES(X)                                                           \
    X(INVAL,       "invalid",     FATAL,       2, "invalid argument")                        \
    X(CONFIG,      "config",      FATAL,       2, "bad configuration")                       \
    X(UNSUPPORTED, "unsupported", FATAL,       2, "not supported")                           \
    X(PROTO,       "protocol",    FATAL,       1, "message not understood")                  \
    X(VERSION,     "version",     FATAL,       2, "version mismatch")                        \
    X(LIMIT,       "limit",       FATAL,       1, "limit exceeded")                          \
    X(STALE,       "stale",       FATAL,       1, "an older attempt")                        \
    X(IO,          "io",          LOCAL,       1, "local input or output failed")            \
    X(DISK,        "disk",        LOCAL,       1, "local disk full or failing")              \
    X(BUSY,        "busy",        RETRY,       1, "busy")                                    \
    X(LOCKED,      "locked",      FATAL,       2, "in use by another process")               \
    X(CORRUPT,     "corrupt",     FATAL,       1, "stored data is damaged")                  \
    X(NET,         "net",         RETRY,       1, "network failure")                         \
    X(TIMEOUT,     "timeout",     RETRY,       1, "timed out")                               \
    X(STALLED,     "stalled",     RETRY,       1, "transfer stalled")                        \
    X(TRUNCATED,   "truncated",   RETRY,       1, "body shorter or longer than announced")   \
    X(UNREACHABLE, "unreachable", RETRY,       5, "endpoint cannot be reached")              \
    X(DNS,         "dns",         LOCAL,       5, "host name cannot be resolved")            \
    X(TLS,         "tls",         LOCAL,       2, "TLS verification failed")                 \
    X(XML,         "xml",         RETRY,       1, "answer not understood")                   \
    X(THROTTLED,   "throttled",   SLOW_DOWN,   1, "the service asks for less")               \
    X(SERVER,      "server",      RETRY,       1, "the service failed")                      \
    X(CHECKSUM,    "checksum",    RETRY,       1, "data does not match checksum")            \
    X(CLOCK,       "clock",       RETRY,       1, "clock skew")                              \
    X(CHANGED,     "changed",     REPLAN,      1, "the source object has changed")           \
    X(EXISTS,      "exists",      FATAL,       1, "the destination object exists")           \
    X(NOT_FOUND,   "not_found",   FATAL,       1, "no such object")                          \
    X(NO_BUCKET,   "no_bucket",   FATAL,       2, "no such bucket")                          \
    X(NO_UPLOAD,   "no_upload",   REPLAN,      1, "no such multipart upload")                \
    X(DENIED,      "denied",      FATAL,       1, "access denied")                           \
    X(CREDS,       "credentials", LOCAL,       1, "credentials missing or refused")          \
    X(ARCHIVED,    "archived",    FATAL,       1, "object is archived")                      \
    X(TOO_LARGE,   "too_large",   FATAL,       1, "object larger than the service takes")    \
    X(REDIRECT,    "redirect",    FATAL,       2, "bucket is in another region")             \
    X(BAD_REQUEST, "bad_request", FATAL,       1, "the service refused the request")         \
    X(NO_COPY,     "no_copy",     REPLAN,      1, "server-side copy does not work here")     \
    X(CANCELLED,   "cancelled",   FATAL,     130, "cancelled")                               \
    X(EMPTY,       "empty",       FATAL,       2, "nothing to do")                           \
    X(LISTING,     "listing",     FATAL,       1, "listing incomplete")                      \
    X(PROXY,       "proxy",       LOCAL,       2, "the proxy refused")
/* clang-format on */

enum xf_code {
    XF_OK = 0,
#define XF_CODE_ENUM(name, label, class_, exit_, text) XF_E_##name,
    XF_CODES(XF_CODE_ENUM)
#undef XF_CODE_ENUM
        XF_CODE_N
};

/* What a caller does: end the object; back off and retry; also lower concurrency; look at the
 * source (or the plan) again; stop taking work until this host is well. */
enum xf_class {
    XF_CLASS_NONE = 0,
    XF_CLASS_FATAL,
    XF_CLASS_RETRY,
    XF_CLASS_SLOW_DOWN,
    XF_CLASS_REPLAN,
    XF_CLASS_LOCAL,
    XF_CLASS_N
};

enum { XF_ERR_MSG_MAX = 512 };

struct xf_err {
    enum xf_code code;
    int sub;                  /* HTTP status, CURLcode, errno or SQLite code; 0 if none */
    const char *where;        /* "file.c:line" of the origin, static */
    char msg[XF_ERR_MSG_MAX]; /* what failed, on what; no secret, no signed URL */
};

#define XF_MUST_CHECK __attribute__((warn_unused_result))

const char *xf_code_name(enum xf_code code); /* "denied"; "ok"; "unknown" */
const char *xf_code_text(enum xf_code code);
enum xf_class xf_code_class(enum xf_code code);
const char *xf_class_name(enum xf_class cls);
int xf_code_exit(enum xf_code code); /* exit status of a program that ends with it */
/** Code by its name, as stored in reports; XF_CODE_N when unknown. */
enum xf_code xf_code_parse(const char *name);

/** Fill `err` and give the code back. `where` is static. The text is cut at XF_ERR_MSG_MAX - 1. */
enum xf_code
xf_err_set(struct xf_err *err, enum xf_code code, int sub, const char *where, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/** Put "text: " before the message. Gives err->code. */
enum xf_code xf_err_wrap(struct xf_err *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void xf_err_clear(struct xf_err *err);

/** Thread-safe text of an errno value, static storage per value. */
const char *xf_errno_text(int errnum);

#define XF_STR1(x) #x
#define XF_STR2(x) XF_STR1(x)
#define XF_WHERE   __FILE_NAME__ ":" XF_STR2(__LINE__)

#define XF_FAIL(err, code, ...)          xf_err_set((err), (code), 0, XF_WHERE, __VA_ARGS__)
#define XF_FAIL_SUB(err, code, sub, ...) xf_err_set((err), (code), (sub), XF_WHERE, __VA_ARGS__)
#define XF_WRAP(err, ...)                xf_err_wrap((err), __VA_ARGS__)
/* The only macro in the tree that returns. */
#define XF_TRY(call)                   \
    do {                               \
        enum xf_code xf_try_ = (call); \
        if (xf_try_ != XF_OK) {        \
            return xf_try_;            \
        }                              \
    } while (0)

/* For our own bugs only; stays on in release. Input never trips one. */
#define XF_ASSERT(cond)                        \
    do {                                       \
        if (!(cond)) {                         \
            xf_assert_failed(XF_WHERE, #cond); \
        }                                      \
    } while (0)
__attribute__((noreturn)) void xf_assert_failed(const char *where, const char *what);

#endif
