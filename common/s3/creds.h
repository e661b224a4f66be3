/*
 * creds.h - credentials and where they come from.
 *
 * A source is a recipe (environment, shared files with a profile, named variables); resolving it
 * reads the recipe's inputs afresh and gives one immutable, reference-counted set of keys. So keys
 * that changed on disk are seen by resolving again. Secrets are wiped when the last reference goes,
 * and are in no error text: errors name the file, the line and the option only. Threads: a struct
 * xf_creds may cross threads (atomic count). A source belongs to one thread; make one per thread.
 */
#ifndef XF_S3_CREDS_H
#define XF_S3_CREDS_H

#include "common/base/err.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdint.h>

#define XF_CREDS_TOKEN_MAX (16U * 1024U) /* session tokens grow */

struct xf_creds; /* immutable, counted */

/**
 * Make a set of keys. The bytes are copied. expires_ms is wall time, 0 for none.
 *
 * Errors: XF_E_INVAL  an empty key, or a control character in one of the three.
 */
enum xf_code xf_creds_new(struct xf_str access_key,
                          struct xf_str secret_key,
                          struct xf_str session_token,
                          int64_t expires_ms,
                          struct xf_creds **out,
                          struct xf_err *err);
/* What was found, as text. */
struct xf_creds_found {
    struct xf_str access;
    struct xf_str secret;
    struct xf_str token;
    struct xf_str expires; /* RFC 3339; empty: never */
};
/** Make a set, or say what is wrong where; a value is never shown. */
enum xf_code xf_creds_make(const struct xf_creds_found *f,
                           const char *where,
                           struct xf_creds **out,
                           struct xf_err *err);

struct xf_creds *xf_creds_ref(const struct xf_creds *creds); /* one more; give it to unref */
void xf_creds_unref(struct xf_creds *creds); /* wipes with the last reference; NULL is fine */
XF_AUTO_DEFINE(xf_creds, xf_creds_unref)

struct xf_str xf_creds_access_key(const struct xf_creds *creds);
struct xf_str xf_creds_secret_key(const struct xf_creds *creds);    /* for the signer only */
struct xf_str xf_creds_session_token(const struct xf_creds *creds); /* empty when there is none */
int64_t xf_creds_expires_ms(const struct xf_creds *creds);          /* 0: never */
bool xf_creds_is_same(const struct xf_creds *a, const struct xf_creds *b);

/* First and last four characters with stars between, for people; short keys are all stars. */
void xf_creds_masked_key(const struct xf_creds *creds, struct xf_buf *out);

/* ---- sources ---- */

/* Opaque; made by provider.h, or by xf_creds_source_of() for other kinds. */
struct xf_creds_source;

void xf_creds_source_free(struct xf_creds_source *source);
XF_AUTO_DEFINE(xf_creds_source, xf_creds_source_free)

/**
 * Read the inputs now, or take what the process's keeper of them holds: while its first fetch goes
 * on this waits, up to 15 s. The caller owns one reference of *out.
 *
 * Errors: XF_E_CREDS  nothing found, or a file is broken (file and line are named, never a value).
 */
enum xf_code
xf_creds_resolve(struct xf_creds_source *source, struct xf_creds **out, struct xf_err *err);

/**
 * The region that goes with the source: AWS_REGION, AWS_DEFAULT_REGION, the profile's `region`.
 *
 * out  emptied when none is set (that is XF_OK).
 */
enum xf_code
xf_creds_region(struct xf_creds_source *source, struct xf_buf *out, struct xf_err *err);

/**
 * The service took `used` for ended, whatever their time says: have newer keys asked for. Waits for
 * nothing; what comes of it is seen by resolving again, after this call.
 *
 * True while keys are being asked for. False: no others are to be expected now (resolve tells
 * whether they are there already).
 */
bool xf_creds_renew(struct xf_creds_source *source, const struct xf_creds *used);

/* What the source is, for people: "environment", "profile 'x'", "variables A and B". Borrowed. */
const char *xf_creds_source_name(const struct xf_creds_source *source);

/*
 * The seam for further kinds and for tests. `resolve` is called on the loops' threads: it reads
 * what is at hand, and waits for nobody but a first fetch (see provider_int.h).
 */
struct xf_creds_source_ops {
    enum xf_code (*resolve)(void *self, struct xf_creds **out, struct xf_err *err);
    enum xf_code (*region)(void *self, struct xf_buf *out, struct xf_err *err); /* may be NULL */
    bool (*renew)(void *self, const struct xf_creds *used); /* may be NULL: nobody is asked */
    void (*free)(void *self);
};
struct xf_creds_source *
xf_creds_source_of(const struct xf_creds_source_ops *ops, void *self, const char *name);

#endif
