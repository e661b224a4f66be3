/*
 * fault.h - misbehaviour by script: rules that match requests, and what they do to them.
 *
 * README.md describes the JSON form. The rules are shared by all threads under one lock, which is
 * not taken while there is no rule. A request that a rule fired for holds a reference to it, so
 * that rules may be dropped meanwhile.
 */
#ifndef XF_TESTS_S3D_FAULT_H
#define XF_TESTS_S3D_FAULT_H

#include "common/base/err.h"
#include "tests/s3d/ops.h"
#include "tests/s3d/side.h"

enum s3d_list_encoding {
    S3D_ENC_AWS,
    S3D_ENC_PERCENT20,
    S3D_ENC_RAW_FIELDS,
    S3D_ENC_UNANNOUNCED,
    S3D_ENC_RAW,
    S3D_ENC_CHARREF
};

enum s3d_list_order { S3D_ORDER_BYTES, S3D_ORDER_REVERSE, S3D_ORDER_UTF16, S3D_ORDER_DIRECTORY };

enum s3d_list_token {
    S3D_TOKEN_GOOD,
    S3D_TOKEN_SAME,
    S3D_TOKEN_CONSTANT,
    S3D_TOKEN_EMPTY,
    S3D_TOKEN_NONE
};

struct s3d_dialect {
    enum s3d_list_encoding encoding;
    enum s3d_list_order order;
    enum s3d_list_token token;
    bool repeat_page;
    bool ignore_start_after;
    bool v1_only;
    uint64_t drop_last;
};

struct s3d_header_edit {
    const char *name;
    const char *value; /* NULL: remove */
};

/* What happens to one request. Pointers belong to the rule. */
struct s3d_action {
    bool any; /* something is set */
    bool reply_lost;
    bool rst;
    bool chunked;
    bool gzip;
    bool ignore_copy_source;
    bool ignore_conditions;
    bool literal_copy_source;
    bool corrupt;
    bool kms;
    bool abort_upload;
    int work; /* -1: by the other fields */
    int status;
    const char *code;
    const char *message;
    const char *extra_xml;
    const struct xf_str *body; /* NULL: none given */
    const struct s3d_header_edit *edits;
    size_t n_edits;
    int64_t delay_ms;
    uint64_t pad;
    int64_t pad_ms;
    int64_t cut_after;
    int64_t stall_after;
    int64_t stall_ms; /* -1: for ever */
    uint64_t drip;
    int64_t drip_ms;
    int64_t content_length;
    uint64_t extra;
    int64_t read_cut;
    int64_t read_stop;
    int64_t store_size;
    int64_t head_size;
    const char *etag;
    const struct s3d_side_put *put;
    const struct s3d_side_put *del;
    struct s3d_dialect list;
};

/* What a rule can see of a request. */
struct s3d_fault_view {
    enum s3d_op op;
    const struct s3d_http *http;
    struct xf_str bucket;
    struct xf_str key;
};

struct s3d_rule;   /* opaque, reference counted */
struct s3d_faults; /* opaque */

struct s3d_faults *s3d_faults_new(uint64_t seed);
void s3d_faults_free(struct s3d_faults *f);
XF_AUTO_DEFINE(s3d_faults, s3d_faults_free)

void s3d_action_init(struct s3d_action *a);
/** Add the rules of a JSON array, all or none; *n is how many. XF_E_INVAL says which rule is wrong
 * and why. */
enum xf_code
s3d_faults_add(struct s3d_faults *f, struct xf_str json, size_t *n, struct xf_err *err);
/** Drop the rule of that id, or all (empty id). */
size_t s3d_faults_drop(struct s3d_faults *f, struct xf_str id);
/** Changes whenever rules are dropped: a stall that began under another value ends. */
uint64_t s3d_faults_epoch(const struct s3d_faults *f);
void s3d_faults_report(struct s3d_faults *f, struct xf_buf *out);
/** "503=5,reset=1,truncate=0.5,copy200err=0.5,stall=0.2"; empty switches off. */
enum xf_code s3d_faults_rate(struct s3d_faults *f, struct xf_str text, struct xf_err *err);
/** What happens to this request; *rule (reference) holds what `a` points to, or is NULL. */
void s3d_faults_ask(struct s3d_faults *f,
                    const struct s3d_fault_view *v,
                    struct s3d_action *a,
                    struct s3d_rule **rule);
void s3d_rule_unref(struct s3d_rule *r);

bool s3d_glob_matches(struct xf_str glob, struct xf_str text);

#endif
