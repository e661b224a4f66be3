/*
 * engine_scan.c - what the destination has, over the key range of a batch.
 *
 * A batch is in key order and mapping keeps that order, so one listing from the first key to the
 * last tells what is there, a page for 1,000 objects. The first object is asked by HEAD, since
 * start-after excludes it. When pages bring little (the destination is much denser than the batch),
 * or the listing is refused or out of order, the rest is asked by HEAD.
 */
#include "agent/engine_scan.h"

#include "agent/engine_int.h"
#include "common/base/arena.h"
#include "common/base/log.h"
#include "common/job/spec.h"

enum { SPARE_PAGES = 3, OBJECTS_A_PAGE = 50 /* fewer are cheaper by HEAD */ };

struct answer {
    enum xf_scan_answer kind;
    struct xf_verify_side there;
};

struct xf_scan {
    struct xf_run *run;
    struct answer *answers;
    struct xf_str *keys; /* at the destination */
    uint32_t n;
    uint32_t at; /* answers before this one are known */
    unsigned pages;
    struct xf_arena arena;
    struct xf_buf token;
    struct xf_buf last; /* key listed last */
};

void xf_scan_free(struct xf_scan *s)
{
    if (s == NULL) {
        return;
    }
    xf_arena_fini(&s->arena);
    xf_buf_fini(&s->token);
    xf_buf_fini(&s->last);
    xf_xfree(s);
}

bool xf_scan_is_ready(const struct xf_scan *s, uint32_t idx)
{
    return idx < s->at;
}

enum xf_scan_answer xf_scan_ask(const struct xf_scan *s, uint32_t idx, struct xf_verify_side *out)
{
    XF_ASSERT(idx < s->at);
    *out = s->answers[idx].there;
    return s->answers[idx].kind;
}

/* No more pages: what is not known is asked one by one, or is not there. */
static void close_scan(struct xf_scan *s, enum xf_scan_answer rest)
{
    for (; s->at < s->n; s->at++) {
        s->answers[s->at].kind = rest;
    }
    xf_engine_pump(s->run->e);
}

static struct xf_s3_req *list(struct xf_op *op)
{
    struct xf_scan *s = op->run->scan;
    const struct xf_job_url *url =
        &xf_op_spec(op)->destination.urls[op->run->w->manifest.source_no];
    const struct xf_s3_list_opts o = {
        .bucket = url->bucket,
        .prefix = url->prefix,
        .start_after = s->keys[0],
        .token = xf_buf_view(&s->token),
    };
    return xf_s3_list(xf_op_s3(op, XF_DST), &o, xf_op_reply, op);
}

/* Merge one listed object into the answers; false when the listing is not in order. */
static bool merge(struct xf_scan *s, const struct xf_xml_object *o)
{
    if (s->last.len > 0 && xf_str_cmp(o->key, xf_buf_view(&s->last)) <= 0) {
        return false;
    }
    xf_buf_reset(&s->last);
    xf_buf_put(&s->last, o->key);
    while (s->at < s->n) {
        int cmp = xf_str_cmp(s->keys[s->at], o->key);
        if (cmp > 0) {
            break;
        }
        struct answer *a = &s->answers[s->at++];
        a->kind = XF_SCAN_ABSENT;
        if (cmp == 0) {
            a->kind = XF_SCAN_THERE;
            a->there = (struct xf_verify_side){
                {xf_arena_dup(&s->arena, o->etag), false}, o->size, o->modified_ms};
            break;
        }
    }
    return true;
}

static void listed(struct xf_op *op, const struct xf_s3_result *res)
{
    struct xf_scan *s = op->run->scan;

    if (res->err.code != XF_OK) {
        XF_DEBUG("scan.refused", xf_f_code(res->err.code), xf_f_err(&res->err));
        close_scan(s, XF_SCAN_ASK);
        xf_op_end(op);
        return;
    }
    uint32_t before = s->at;
    bool ordered = true;
    for (size_t i = 0; i < res->doc->n_objects && ordered; i++) {
        ordered = merge(s, &res->doc->objects[i]);
    }
    s->pages++;
    if (!ordered) {
        close_scan(s, XF_SCAN_ASK);
        xf_op_end(op);
    } else if (!res->doc->is_truncated) {
        close_scan(s, XF_SCAN_ABSENT);
        xf_op_end(op);
    } else if (s->at >= s->n) {
        xf_op_end(op);
    } else if (s->pages > SPARE_PAGES && s->at - before < OBJECTS_A_PAGE) {
        close_scan(s, XF_SCAN_ASK);
        xf_op_end(op);
    } else {
        xf_buf_reset(&s->token);
        xf_buf_put(&s->token, res->doc->next_token);
        xf_op_go(op, op->state);
    }
    xf_engine_pump(s->run->e);
}

static const struct xf_step scan_steps[] = {
    {"scan", XF_DST, XF_STEP_IS_SCAN, 0, list, listed},
};

/* The destination keys, in an order that a listing can follow? */
static bool map_keys(struct xf_scan *s, const struct xf_job_spec *spec)
{
    const struct xf_manifest *m = &s->run->w->manifest;
    XF_AUTO_BUF key = {0};
    struct xf_err err;

    for (uint32_t i = 0; i < m->n; i++) {
        if (!xf_str_starts(m->objects[i].key, spec->source.urls[m->source_no].prefix) ||
            xf_job_spec_map_key(spec, m->source_no, m->objects[i].key, &key, &err) != XF_OK) {
            return false;
        }
        s->keys[i] = xf_arena_dup(&s->arena, xf_buf_view(&key));
        if (i > 0 && xf_str_cmp(s->keys[i - 1], s->keys[i]) >= 0) {
            return false;
        }
    }
    return true;
}

void xf_scan_begin(struct xf_run *run)
{
    const struct xf_job_spec *spec = run->ej->job->spec;
    uint32_t n = run->w->manifest.n;

    if (spec->if_exists == XF_JOB_EXISTS_OVERWRITE || n == 0) {
        return;
    }
    struct xf_scan *s = xf_xcalloc(1, sizeof(*s));
    run->scan = s;
    s->run = run;
    s->n = n;
    s->answers = xf_arena_calloc(&s->arena, n, sizeof(*s->answers));
    s->keys = xf_arena_calloc(&s->arena, n, sizeof(*s->keys));
    if (!map_keys(s, spec) || n < SPARE_PAGES) {
        close_scan(s, XF_SCAN_ASK);
        return;
    }
    s->answers[0].kind = XF_SCAN_ASK;
    s->at = 1;
    xf_op_go(xf_op_new(run, scan_steps, XF_ARRAY_LEN(scan_steps)), 0);
}
