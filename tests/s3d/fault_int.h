/* fault_int.h - a rule as it is kept; shared by fault.c and fault_parse.c only. */
#ifndef XF_TESTS_S3D_FAULT_INT_H
#define XF_TESTS_S3D_FAULT_INT_H

#include "common/base/list.h"
#include "tests/s3d/fault.h"

#include <stdatomic.h>

enum { S3D_EDITS_MAX = 16 };

enum s3d_rate {
    S3D_RATE_503,
    S3D_RATE_RESET,
    S3D_RATE_TRUNCATE,
    S3D_RATE_COPY200ERR,
    S3D_RATE_STALL,
    S3D_RATE_N
};

/* Texts are borrowed from `json`, which the rule holds. */
struct s3d_rule {
    _Atomic uint32_t refs;
    struct xf_list in_list;
    struct xf_json *json;
    const char *id;
    bool has_ops;
    bool ops[S3D_OP_N];
    const char *method;
    const char *bucket;
    const char *key;
    const char *key_prefix;
    const char *key_glob;
    const char *query;
    const char *header;
    double percent;
    uint64_t nth;
    uint64_t count;
    uint64_t every;
    uint64_t matched; /* guarded by the faults' lock, as is fired */
    uint64_t fired;
    struct s3d_action action;
    struct xf_str body;
    struct s3d_header_edit edits[S3D_EDITS_MAX];
    struct s3d_side_put *put;
    struct s3d_side_put *del;
};

/** Rules of a JSON array onto the list, also some on failure. */
enum xf_code s3d_rules_parse(struct xf_str json, struct xf_list *out, struct xf_err *err);
enum xf_code s3d_rates_parse(struct xf_str text, double rate[S3D_RATE_N], struct xf_err *err);

#endif
