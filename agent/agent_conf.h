/*
 * agent_conf.h - the agent's options: one table for the config file, help and README.
 */
#ifndef XF_AGENT_AGENT_CONF_H
#define XF_AGENT_AGENT_CONF_H

#include "common/base/conf.h"
#include "common/s3/route.h"

struct xf_agent_conf {
    struct xf_str coordinator; /* URL */
    struct xf_str id;          /* empty: the host name */
    struct xf_str state_dir;
    struct xf_str http; /* empty: off */
    struct xf_str token_file;
    struct xf_str tls_ca;
    struct xf_str tls_cert;
    struct xf_str tls_key;
    int64_t lanes; /* 0: by the processors */
    uint64_t pool_bytes;
    int64_t objects;
    int64_t in_flight;
    int64_t tasks;
    int64_t drain_ms;
    int64_t connect_ms;
    int64_t first_byte_ms;
    int64_t stall_ms;
    struct xf_route route; /* to S3 */
};

extern const struct xf_conf_table xf_agent_conf_table;

/** Defaults, without a file: what `xferctl run` uses. The caller frees *conf. */
XF_MUST_CHECK enum xf_code
xf_agent_conf_defaults(struct xf_agent_conf *out, struct xf_conf **conf, struct xf_err *err);

#endif
