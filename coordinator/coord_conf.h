/*
 * coord_conf.h - the coordinator's options: one table for the config file, help and README.
 */
#ifndef XF_COORDINATOR_COORD_CONF_H
#define XF_COORDINATOR_COORD_CONF_H

#include "common/base/conf.h"
#include "common/s3/route.h"

struct xf_coord_conf {
    struct xf_str data_dir;
    struct xf_str listen;
    struct xf_str http;
    bool require_token;
    struct xf_str tls_ca;
    struct xf_str tls_cert;
    struct xf_str tls_key;
    struct xf_str agent_token_file;
    struct xf_str operator_token_file;
    int64_t lease_ttl_ms;
    int64_t lease_margin_ms;
    int64_t beat_ms;
    int64_t checkpoint_ms;
    int64_t checkpoint_outcomes;
    uint64_t store_wal_warn_bytes;
    uint64_t store_max_bytes; /* 0: half of what is free */
    int64_t batch_objects;
    uint64_t batch_bytes;
    int64_t list_tries;
    int64_t list_requests;
    struct xf_route route; /* to S3 */
    int64_t sessions_max;
    int64_t session_ms;
};

extern const struct xf_conf_table xf_coord_conf_table;

/** Defaults, without a file: what `xferctl run` uses. The caller frees *conf. */
XF_MUST_CHECK enum xf_code
xf_coord_conf_defaults(struct xf_coord_conf *out, struct xf_conf **conf, struct xf_err *err);

#endif
