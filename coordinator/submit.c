/*
 * submit.c - the steps of a submit.
 *
 * The request is answered once: with the job's id, or with why not. What is wrong with the job or
 * refused by a side ends with exit status 2; an endpoint that does not answer with 5 (design,
 * section 7). A repeat of a submit key makes no second job: the store keeps the key.
 */
#include "coordinator/submit.h"

#include "common/base/json.h"
#include "common/base/log.h"
#include "common/job/spec.h"
#include "coordinator/jobs.h"

enum { ID_LEN = 10 };

struct submit {
    struct xf_cprobe probe; /* first */
    struct xf_coordinator *c;
    struct xf_hub_req *req;
    char *key;
    struct xf_buf toml;
    struct xf_job_spec *spec;
    bool dry_run;
    char public_id[ID_LEN + 3];
    char *json; /* what was checked */
};

static void submit_free(struct submit *s)
{
    xf_list_remove(&s->probe.link);
    xf_xfree(s->key);
    xf_buf_fini(&s->toml);
    xf_job_spec_free(s->spec);
    xf_xfree(s->json);
    xf_xfree(s);
}

static void refuse(struct submit *s, enum xf_code code, const char *text)
{
    XF_INFO("job.refused", xf_f_code(code), xf_f_c("error", text));
    xf_hub_fail(s->req, code, xf_str_c(text));
    submit_free(s);
}

static void answer(struct submit *s, struct xf_str id)
{
    const struct xf_msg_submit_reply m = {.job = id, .json = xf_str_c(s->json)};

    xf_hub_reply(s->req, &m);
    submit_free(s);
}

static void on_created(struct xf_store_op *op)
{
    struct submit *s = op->arg;
    struct xf_coordinator *c = s->c;

    if (op->rc != XF_OK) {
        refuse(s, op->rc, op->err.msg);
        return;
    }
    XF_INFO("job.created",
            xf_f_str("job", op->out.job_create.public_id),
            xf_f_str("name", s->spec->name),
            xf_f_bool("new", op->out.job_create.is_new));
    answer(s, op->out.job_create.public_id);
    xf_jobs_sync(c);
}

static void create(struct submit *s)
{
    struct xf_store_op *op = xf_store_op_new(XF_OP_JOB_CREATE, on_created, s);
    struct xf_str *lo = xf_store_op_calloc(op, s->spec->source.n_urls, sizeof(*lo));
    char id[ID_LEN + 1];

    for (size_t i = 0; i < s->spec->source.n_urls; i++) {
        lo[i] = XF_STR_EMPTY;
    }
    xf_rng_id(&s->c->rng, id, ID_LEN);
    memcpy(s->public_id, "j-", 2);
    memcpy(s->public_id + 2, id, ID_LEN + 1);
    op->in.job_create = (struct xf_in_job_create){
        .submit_key = xf_str_c(s->key),
        .public_id = xf_str_c(s->public_id),
        .name = s->spec->name,
        .spec = xf_buf_view(&s->toml),
        .priority = (int)s->spec->priority,
        .shard_lo = lo,
        .n_sources = (uint32_t)s->spec->source.n_urls,
    };
    if (!xf_core_submit(s->c, op)) {
        refuse(s, XF_E_BUSY, "the coordinator is busy: try again");
    }
}

static void fill_json(struct submit *s, const struct xf_probe_result *res)
{
    XF_AUTO(xf_json) j = xf_json_object();
    struct xf_json *examples = xf_json_array();

    xf_json_set_bytes(j, "name", s->spec->name);
    xf_json_set_bool(j, "has_objects", res->has_keys);
    for (size_t i = 0; i < res->n_examples; i++) {
        struct xf_json *e = xf_json_object();
        xf_json_set_bytes(e, "from", res->example_from[i]);
        xf_json_set_bytes(e, "to", res->example_to[i]);
        xf_json_append(examples, e);
    }
    xf_json_put(j, "examples", examples);
    xf_json_put(j, "job", xf_job_spec_to_json(s->spec));
    s->json = xf_json_dump(j, false);
}

/* The code whose exit status is the design's: 5 may work later, 2 needs another job or right. */
static enum xf_code refusal_code(const struct xf_probe_result *res)
{
    if (res->is_unreachable) {
        return XF_E_UNREACHABLE;
    }
    return xf_code_exit(res->err.code) == 2 ? res->err.code : XF_E_CONFIG;
}

static void on_probed(struct xf_cprobe *p, const struct xf_probe_result *res)
{
    struct submit *s = XF_CONTAINER_OF(p, struct submit, probe);

    if (res->err.code != XF_OK) {
        refuse(s, refusal_code(res), res->err.msg);
        return;
    }
    fill_json(s, res);
    if (s->dry_run) {
        answer(s, XF_STR_EMPTY);
    } else {
        create(s);
    }
}

void xf_submit(struct xf_coordinator *c, const struct xf_msg_submit *m, struct xf_hub_req *r)
{
    struct submit *s = xf_xcalloc(1, sizeof(*s));
    struct xf_err err;

    s->c = c;
    s->req = r;
    s->key = xf_str_dup(m->key);
    s->dry_run = m->dry_run;
    xf_buf_init(&s->toml, 0);
    xf_buf_put(&s->toml, m->toml);
    s->probe.done = on_probed;
    xf_list_push_back(&c->submits, &s->probe.link);
    enum xf_code rc = xf_job_spec_parse(m->toml, XF_STR_LIT("migrate.toml"), &s->spec, &err);
    if (rc == XF_OK) {
        rc = xf_probe_overlap(s->spec, false, &err);
    }
    if (rc != XF_OK) {
        refuse(s, rc, err.msg);
        return;
    }
    xf_lister_probe(c->lister, xf_buf_view(&s->toml), &s->probe);
}

void xf_submit_fini(struct xf_coordinator *c)
{
    XF_LIST_FOREACH (node, &c->submits) {
        refuse(
            XF_CONTAINER_OF(node, struct submit, probe.link), XF_E_BUSY, "the coordinator stops");
    }
}
