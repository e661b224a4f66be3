/*
 * rig.h - a loop, a scripted server, the libcurl back end and a client pointed at it.
 */
#ifndef XF_TESTS_UNIT_S3_RIG_H
#define XF_TESTS_UNIT_S3_RIG_H

#include "common/s3/client.h"
#include "common/s3/creds.h"
#include "tests/unit/s3/script.h"

#define RIG_SECRET "SECRETSECRETSECRETSECRET"
#define RIG_TOKEN  "TOKENTOKENTOKENTOKEN"

struct rig {
    struct xf_loop *loop;
    struct script *script;
    struct xf_http *http;
    struct xf_s3 *s3;

    unsigned generation; /* the credentials' source gives keys with this number */
    bool with_token;
    bool rotates; /* and gives newer ones each time */
    int resolves;
    unsigned coming; /* so many times the source says that newer keys come; then they are there */
    unsigned renews; /* how often it was asked for them */

    /* the last result, copied */
    unsigned n_done;
    enum xf_code code;
    int status;
    bool maybe_done;
    bool copy_ignored;
    uint64_t size;
    uint64_t n_objects;
    bool is_truncated;
    int64_t retry_after_ms;
    int64_t modified_ms;
    struct xf_sum sum;
    struct xf_buf msg, etag, region, upload_id, s3_code, keys, content_encoding, meta, tags;
    /* the sink */
    struct xf_buf sunk;
    bool pause_sink;
    unsigned pauses;
};

struct rig_opts {
    struct xf_http_opts http;
    bool with_token;
    bool no_creds;
    bool is_region_fixed;
    bool as_aws;   /* the client takes the endpoint for AWS's */
    unsigned port; /* 0: the script's */
    const struct xf_customer_key *customer_key;
};

void rig_open(struct rig *r, const struct rig_opts *o);
void rig_close(struct rig *r);
/* Run until another operation was done; fails the test after 10 s. */
void rig_wait(struct rig *r);
void rig_done(void *arg, const struct xf_s3_result *res);
struct xf_s3_sink rig_sink(struct rig *r);

/* Fixtures: a rig, one that waits 150 ms at most, one with a session token. */
int rig_setup(void **state);
int rig_setup_impatient(void **state);
int rig_setup_token(void **state);
int rig_teardown(void **state);

/* A reply with a body and its length, made in `out`. */
const char *
rig_reply(struct xf_buf *out, const char *status, const char *headers, const char *body);

/* Operations on bucket bkt, run to their end. */
void rig_head(struct rig *r, const char *key);
void rig_get(struct rig *r, uint64_t size, uint64_t offset, uint64_t len);
void rig_copy(struct rig *r);
void rig_put(struct rig *r, const char *body);
void rig_list(struct rig *r);

#define KEY(name)                   .bucket = XF_STR_LIT("bkt"), .key = XF_STR_LIT(name)
#define ASSERT_SENT(r, n, text)     assert_non_null(strstr(script_head((r)->script, (n)), (text)))
#define ASSERT_NOT_SENT(r, n, text) assert_null(strcasestr(script_head((r)->script, (n)), (text)))

#endif
