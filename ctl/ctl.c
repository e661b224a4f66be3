/* ctl.c - connection, errors and output of every command. */
#include "ctl/ctl.h"

#include "common/base/file.h"
#include "common/job/spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TOKEN_FILE_MAX = 4096 };

const char *xf_ctl_arg(const struct xf_ctl *c, size_t at)
{
    return at < c->parsed->n_args ? c->parsed->args[at] : NULL;
}

int xf_ctl_fail(const struct xf_err *err)
{
    (void)fprintf(stderr, "xferctl: %s\n", err->msg); /* nowhere else to complain */
    return xf_code_exit(err->code);
}

void xf_ctl_out(struct xf_str text)
{
    struct xf_err err;

    if (xf_file_write_all(STDOUT_FILENO, text, "standard output", &err) != XF_OK) {
        /* What was asked for was not all told. Who closed a pipe, as `head` does, knows that. */
        int status = err.sub == EPIPE ? XF_EXIT_ERROR : xf_ctl_fail(&err);
        exit(status); /* NOLINT(concurrency-mt-unsafe): one thread exits */
    }
}

void xf_ctl_out_json(const struct xf_json *j)
{
    XF_AUTO_FREE char *text = xf_json_dump(j, true);

    xf_ctl_out(xf_str_c(text));
    xf_ctl_out(XF_STR_LIT("\n"));
}

enum xf_code xf_ctl_read_token(const char *file, struct xf_buf *out, struct xf_err *err)
{
    if (file == NULL) {
        return XF_OK;
    }
    XF_TRY(xf_file_read(file, TOKEN_FILE_MAX, out, err));
    while (out->len > 0 && (out->ptr[out->len - 1] == '\n' || out->ptr[out->len - 1] == '\r')) {
        out->ptr[--out->len] = '\0';
    }
    if (out->len == 0 || out->len > XF_TOKEN_MAX) {
        return XF_FAIL(err,
                       XF_E_CONFIG,
                       "'%s' does not hold a token of 1 to %d bytes",
                       file,
                       (int)XF_TOKEN_MAX);
    }
    return XF_OK;
}

enum xf_code xf_ctl_read_spec(const char *path,
                              struct xf_buf *text,
                              struct xf_job_spec **spec,
                              struct xf_err *err)
{
    enum xf_code rc = xf_file_read(path, XF_SPEC_MAX, text, err);

    if (rc == XF_E_NOT_FOUND || rc == XF_E_IO || rc == XF_E_LIMIT) {
        err->code = XF_E_CONFIG; /* a wrong argument, not a missing object */
        return XF_E_CONFIG;
    }
    XF_TRY(rc);
    return xf_job_spec_parse(xf_buf_view(text), xf_str_c(path), spec, err);
}

static enum xf_code connect_once(struct xf_ctl *c, struct xf_err *err)
{
    XF_AUTO_BUF token = {0};

    if (c->client != NULL) {
        return XF_OK;
    }
    xf_buf_init(&token, 0);
    XF_TRY(xf_ctl_read_token(c->o.token_file, &token, err));
    struct xf_client_opts opts = {.url = c->o.coordinator,
                                  .token = token.len > 0 ? token.ptr : NULL,
                                  .tls_ca = c->o.tls_ca,
                                  .tls_cert = c->o.tls_cert,
                                  .tls_key = c->o.tls_key};
    enum xf_code rc = xf_client_open(&opts, &c->client, err);
    if (token.ptr != NULL) {
        xf_wipe(token.ptr, token.len);
    }
    return rc;
}

enum xf_code xf_ctl_call(struct xf_ctl *c,
                         enum xf_kind kind,
                         const void *request,
                         int64_t deadline_ms,
                         void *reply,
                         struct xf_err *err)
{
    XF_TRY(connect_once(c, err));
    xf_arena_fini(&c->arena);
    const struct xf_client_ask ask = {.kind = kind, .msg = request, .deadline_ms = deadline_ms};
    return xf_client_call(c->client, &ask, &c->arena, reply, err);
}

enum xf_code xf_ctl_query(
    struct xf_ctl *c, enum xf_kind kind, const char *job, struct xf_json **out, struct xf_err *err)
{
    struct xf_msg_query q = {.job = xf_str_c(job)};
    struct xf_msg_json reply;

    XF_TRY(xf_ctl_call(c, kind, &q, XF_CLIENT_DEADLINE_MS, &reply, err));
    return xf_json_parse(reply.json, out, err);
}

void xf_ctl_close(struct xf_ctl *c)
{
    xf_client_close(c->client);
    c->client = NULL;
    xf_arena_fini(&c->arena);
}
