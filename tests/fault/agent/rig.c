/* rig.c - see rig.h. */
#include "tests/fault/agent/rig.h"

#include "common/base/clock.h"
#include "common/job/spec.h"
#include "common/s3/http.h"
#include "common/s3/plan.h"
#include "tests/lib/httpget.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>

enum { DEADLINE_MS = 30000, ARGS_MAX = 32 };

/* ---- servers ---- */

static struct xf_proc *spawn(const char *const *buckets, const char *const *args, char url[64])
{
    const char *argv[ARGS_MAX] = {xf_proc_program("s3d"), "--key", "AK:SK", "--quiet"};
    size_t n = 4;

    for (size_t i = 0; buckets[i] != NULL; i++) {
        argv[n++] = "--bucket";
        argv[n++] = buckets[i];
    }
    for (size_t i = 0; args != NULL && args[i] != NULL && n < ARGS_MAX - 1; i++) {
        argv[n++] = args[i];
    }
    struct xf_proc *p = xf_proc_spawn(&(struct xf_proc_opts){.argv = argv, .ready_fd = true});
    xf_proc_wait_ready(p, DEADLINE_MS);
    assert_true(snprintf(url, 64, "http://127.0.0.1:%s", xf_proc_ready_word(p, "port")) < 64);
    return p;
}

static void open_job(struct rig *rig, const char *copy)
{
    XF_AUTO_BUF toml = {0};
    struct xf_err err;

    assert_int_equal(setenv("XF_RIG_KEY", "AK", 1), 0);
    assert_int_equal(setenv("XF_RIG_SECRET", "SK", 1), 0);
    for (int side = 0; side < 2; side++) {
        xf_buf_putf(&toml,
                    "[%s]\nurl = \"s3://%s/\"\nendpoint = \"%s\"\nregion = \"us-east-1\"\n"
                    "access_key_env = \"XF_RIG_KEY\"\nsecret_key_env = \"XF_RIG_SECRET\"\n",
                    side == 0 ? "source" : "destination",
                    side == 0 ? "src" : "dst",
                    rig->url[side]);
    }
    xf_buf_put_c(&toml, copy);
    enum xf_code rc = xf_work_job_new(XF_STR_LIT("j-rig"), xf_buf_view(&toml), &rig->job, &err);
    if (rc != XF_OK) {
        fail_msg("%s", err.msg);
    }
}

/* ---- events ---- */

static void keep(struct rig_told *t, const struct xf_result *r)
{
    t->r = *r;
    t->times++;
    (void)snprintf(t->etag, sizeof(t->etag), "%.*s", XF_STR_ARG(r->etag));
    (void)snprintf(t->source_etag, sizeof(t->source_etag), "%.*s", XF_STR_ARG(r->source_etag));
    (void)snprintf(t->message, sizeof(t->message), "%.*s", XF_STR_ARG(r->message));
}

static void on_object(void *arg, struct xf_work *w, uint32_t idx, const struct xf_result *r)
{
    struct rig *rig = arg;

    (void)w;
    assert_true(idx < RIG_OBJECTS_MAX);
    keep(&rig->told[idx], r);
}

static void on_opened(void *arg, struct xf_work *w, const struct xf_work_opened *o)
{
    struct rig *rig = arg;

    (void)w;
    rig->has_opened = true;
    rig->opened = *o;
    (void)snprintf(rig->upload_id, sizeof(rig->upload_id), "%.*s", XF_STR_ARG(o->upload_id));
    rig->opened.etag = xf_arena_dup(&rig->arena, o->etag);
    (void)snprintf(rig->src_etag, sizeof(rig->src_etag), "%.*s", XF_STR_ARG(o->etag));
}

static void on_part(void *arg, struct xf_work *w, const struct xf_work_part *part)
{
    struct rig *rig = arg;

    (void)w;
    assert_true(rig->n_parts < RIG_PARTS_MAX);
    rig->parts[rig->n_parts] = *part;
    rig->parts[rig->n_parts].etag = xf_arena_dup(&rig->arena, part->etag);
    rig->n_parts++;
}

static void on_ended(void *arg, struct xf_work *w, const struct xf_work_end *end)
{
    struct rig *rig = arg;

    rig->has_ended = true;
    rig->end = *end;
    if (end->has_result) {
        keep(&rig->upload, end->result);
    }
    if (!rig->keep_work) {
        xf_work_free(w);
    }
}

static void on_notice(void *arg, struct xf_work_job *job, const char *code, const char *text)
{
    struct rig *rig = arg;

    (void)job;
    (void)text;
    assert_true(rig->n_notices < RIG_NOTICES_MAX);
    (void)snprintf(rig->notices[rig->n_notices++], 64, "%s", code);
}

static void on_probed(void *arg, struct xf_work_job *job, const struct xf_err *err)
{
    struct rig *rig = arg;

    (void)job;
    rig->has_probed = true;
    rig->probe_err = *err;
}

/* ---- life ---- */

static int64_t mono_ms(void *arg)
{
    (void)arg; /* the real one */
    return xf_clock_mono_ms(xf_clock_real());
}

static int64_t wall_ms(void *arg)
{
    const struct rig *rig = arg;

    return xf_clock_wall_ms(xf_clock_real()) + rig->wall_ahead_ms;
}

void rig_open(struct rig *rig, bool two, const char *copy, const char *const *args)
{
    static const char *const both[] = {"src", "dst", NULL};
    struct xf_err err;

    *rig = (struct rig){0};
    rig->s3d = spawn(both, args, rig->url[0]);
    (void)snprintf(rig->url[1], sizeof(rig->url[1]), "%s", rig->url[0]);
    if (two) {
        rig->s3d2 = spawn(both, NULL, rig->url[1]);
    }
    open_job(rig, copy);
    assert_int_equal(xf_loop_new(NULL, &rig->loop, &err), XF_OK);
    const struct xf_http_opts http = {
        .first_byte_ms = 2000, .stall_window_ms = 2000, .connect_ms = 2000, .no_proxy = true};
    assert_int_equal(xf_http_curl_new(rig->loop, &http, &rig->http, &err), XF_OK);
    rig->clock = (struct xf_clock){.mono_ms = mono_ms, .wall_ms = wall_ms, .arg = rig};
    const struct xf_engine_opts o = {
        .loop = rig->loop,
        .clock = &rig->clock,
        .http = rig->http,
        .pool_bytes = (size_t)32 << 20,
        .seed = xf_test_seed(),
        .events = {on_object, on_opened, on_part, on_ended, on_notice, on_probed, rig},
    };
    assert_int_equal(xf_engine_new(&o, &rig->engine, &err), XF_OK);
}

static bool is_idle(struct rig *rig)
{
    return xf_engine_is_idle(rig->engine);
}

void rig_close(struct rig *rig)
{
    rig_turn_until(rig, is_idle);
    xf_engine_free(rig->engine);
    xf_http_free(rig->http);
    xf_loop_free(rig->loop);
    xf_work_job_unref(rig->job);
    xf_proc_free(rig->s3d);
    xf_proc_free(rig->s3d2);
    xf_arena_fini(&rig->arena);
}

/* ---- the server's admin ---- */

static void post(struct rig *rig, int side, const char *method, const char *path, const char *json)
{
    XF_AUTO_BUF url = {0};
    XF_AUTO_BUF body = {0};

    xf_buf_putf(&url, "%s%s", rig->url[side], path);
    int status = xf_httpget_send(method, url.ptr, xf_str_c(json), &body);
    if (status != 200) {
        fail_msg("%s %s: %d %s", method, path, status, body.ptr != NULL ? body.ptr : "");
    }
}

void rig_put(struct rig *rig, int side, const char *json)
{
    post(rig, side, "POST", "/-/put", json);
}

void rig_faults(struct rig *rig, const char *json)
{
    post(rig, 0, "POST", "/-/faults", json);
    if (rig->s3d2 != NULL) {
        post(rig, 1, "POST", "/-/faults", json);
    }
}

void rig_no_faults(struct rig *rig)
{
    post(rig, 0, "DELETE", "/-/faults", "");
    if (rig->s3d2 != NULL) {
        post(rig, 1, "DELETE", "/-/faults", "");
    }
}

static void get_text(struct rig *rig, int side, const char *path, struct xf_buf *body)
{
    XF_AUTO_BUF url = {0};

    xf_buf_putf(&url, "%s%s", rig->url[side], path);
    assert_int_equal(xf_httpget(url.ptr, body), 200);
}

/* A dump comes in chunks, which xf_httpget() leaves as they are. */
static void get_dump(struct rig *rig, int side, const char *path, struct xf_buf *out)
{
    XF_AUTO_BUF body = {0};
    struct xf_str head;

    get_text(rig, side, path, &body);
    struct xf_str rest = xf_buf_view(&body);
    while (xf_str_cut(&rest, '\n', &head)) {
        size_t n = (size_t)strtoul(head.ptr, NULL, 16);
        if (n == 0) {
            break;
        }
        assert_true(rest.len >= n + 2);
        xf_buf_put(out, xf_str_sub(rest, 0, n));
        rest = xf_str_sub(rest, n + 2, rest.len);
    }
}

struct xf_json *rig_get(struct rig *rig, int side, const char *path)
{
    XF_AUTO_BUF body = {0};
    struct xf_json *j = NULL;
    struct xf_err err;

    get_text(rig, side, path, &body);
    if (xf_json_parse(xf_buf_view(&body), &j, &err) != XF_OK) {
        fail_msg("%s: %s", path, err.msg);
    }
    return j;
}

/* The counters once every answered request is counted. */
static struct xf_json *settled(struct rig *rig, int side)
{
    int64_t by = xf_clock_mono_ms(xf_clock_real()) + DEADLINE_MS;

    for (;;) {
        XF_AUTO(xf_json) j = rig_get(rig, side, "/-/counters");
        if (xf_json_get_u64(j, "in_flight", 0) <= 1) { /* this one */
            return XF_STEAL(j);
        }
        assert_true(xf_clock_mono_ms(xf_clock_real()) < by);
    }
}

uint64_t rig_count(struct rig *rig, int side, const char *op)
{
    XF_AUTO(xf_json) j = settled(rig, side);

    return xf_json_get_u64(xf_json_get(xf_json_get(j, "ops"), op), "count", 0);
}

uint64_t rig_count_status(struct rig *rig, int side, const char *op, const char *status)
{
    XF_AUTO(xf_json) j = settled(rig, side);
    const struct xf_json *o = xf_json_get(xf_json_get(j, "ops"), op);

    return xf_json_get_u64(xf_json_get(o, "status"), status, 0);
}

void rig_must_be_equal(struct rig *rig, bool attributes)
{
    char path[160];

    (void)snprintf(path,
                   sizeof(path),
                   "/-/diff?a=src/&b=dst/%s%s",
                   rig->s3d2 != NULL ? "&other=" : "",
                   rig->s3d2 != NULL ? rig->url[1] : "");
    XF_AUTO(xf_json) j = rig_get(rig, 0, path);
    const struct xf_json *a = xf_json_get(j, "attributes");
    bool same = xf_json_get_u64(xf_json_get(j, "missing"), "count", 1) == 0 &&
                xf_json_get_u64(xf_json_get(j, "extra"), "count", 1) == 0 &&
                xf_json_get_u64(xf_json_get(j, "different"), "count", 1) == 0;

    if (!same || (attributes && xf_json_get_u64(a, "count", 1) != 0)) {
        XF_AUTO_FREE char *text = xf_json_dump(j, true);
        fail_msg("source and destination differ: %s", text);
    }
}

/* A line of a dump: key size content-md5 attributes etag. */
static bool cut_line(struct xf_str *rest, struct xf_buf *key, uint64_t *size, struct xf_str *etag)
{
    struct xf_str line;
    struct xf_str field;

    if (!xf_str_cut(rest, '\n', &line) || line.len == 0) {
        return false;
    }
    xf_buf_reset(key);
    assert_true(xf_str_cut(&line, ' ', &field));
    assert_true(xf_buf_put_unpercent(key, field, false));
    assert_true(xf_str_cut(&line, ' ', &field));
    assert_true(xf_str_u64(field, size));
    assert_true(xf_str_cut(&line, ' ', &field));
    assert_true(xf_str_cut(&line, ' ', &field));
    *etag = xf_plan_etag_bare(line);
    return true;
}

uint64_t rig_dst_size(struct rig *rig, const char *key)
{
    XF_AUTO_BUF body = {0};
    XF_AUTO_BUF k = {0};
    uint64_t size = 0;
    struct xf_str etag;

    get_dump(rig, 1, "/-/dump?bucket=dst", &body);
    struct xf_str rest = xf_buf_view(&body);
    while (cut_line(&rest, &k, &size, &etag)) {
        if (xf_str_eq_c(xf_buf_view(&k), key)) {
            return size;
        }
    }
    return UINT64_MAX;
}

uint64_t rig_open_uploads(struct rig *rig)
{
    XF_AUTO(xf_json) j = rig_get(rig, 1, "/-/uploads");

    return xf_json_get_u64(j, "count", UINT64_MAX);
}

/* ---- works ---- */

static void
fill_manifest(struct rig *rig, const char *prefix, uint32_t max, struct xf_manifest *out)
{
    XF_AUTO_BUF body = {0};
    XF_AUTO_BUF key = {0};
    XF_AUTO_BUF bytes = {0};
    struct xf_manifest_enc enc;
    struct xf_object o = {0};
    struct xf_err err;

    get_dump(rig, 0, "/-/dump?bucket=src", &body);
    struct xf_str rest = xf_buf_view(&body);
    xf_manifest_enc_init(&enc, 0);
    o.mtime_ms = xf_clock_wall_ms(xf_clock_real()) - 1000;
    while (enc.n_objects < max && cut_line(&rest, &key, &o.size, &o.etag)) {
        o.key = xf_buf_view(&key);
        if (xf_str_starts(o.key, xf_str_c(prefix))) {
            assert_int_equal(xf_manifest_add(&enc, &o, &err), XF_OK);
        }
    }
    xf_manifest_finish(&enc, &bytes);
    xf_manifest_enc_fini(&enc);
    assert_int_equal(xf_manifest_decode(xf_buf_view(&bytes), out, &err), XF_OK);
    assert_true(out->n > 0);
}

struct xf_work *rig_batch(struct rig *rig, enum xf_task_kind kind, uint32_t attempt)
{
    struct xf_work *w = xf_work_new(rig->job);

    w->task = 1;
    w->attempt = attempt;
    w->kind = kind;
    fill_manifest(rig, "", RIG_OBJECTS_MAX, &w->manifest);
    xf_result_set_init(&w->done, w->manifest.n);
    return w;
}

struct xf_work *rig_step(struct rig *rig, enum xf_task_kind kind, const char *key, uint32_t attempt)
{
    struct xf_work *w = xf_work_new(rig->job);

    w->task = 2;
    w->attempt = attempt;
    w->kind = kind;
    fill_manifest(rig, key, 1, &w->manifest);
    xf_result_set_init(&w->done, 1);
    w->intent_mono_ms = xf_clock_mono_ms(xf_clock_real()) - 1000;
    if (kind == XF_TASK_OPEN) {
        (void)snprintf(rig->src_etag, 64, "%.*s", XF_STR_ARG(w->manifest.objects[0].etag));
    } else if (rig->has_opened) { /* what was opened, whatever the source is now */
        w->manifest.objects[0].etag = xf_arena_dup(&w->arena, xf_str_c(rig->src_etag));
        w->upload_id = xf_arena_dup(&w->arena, xf_str_c(rig->upload_id));
        w->part_size = rig->opened.part_size;
        w->n_parts = rig->opened.n_parts;
        w->sum = rig->opened.sum;
        w->first_part = 1;
        w->last_part = w->n_parts;
    }
    if (kind == XF_TASK_CLOSE) {
        struct xf_work_part *parts = xf_arena_calloc(&w->arena, w->n_parts + 1U, sizeof(*parts));
        for (uint32_t i = 0; i < rig->n_parts; i++) {
            parts[rig->parts[i].part_no - 1] = rig->parts[i];
            parts[rig->parts[i].part_no - 1].etag = xf_arena_dup(&w->arena, rig->parts[i].etag);
        }
        w->parts = parts;
        w->n_done_parts = rig->n_parts;
    }
    return w;
}

void rig_turn_until(struct rig *rig, bool (*cond)(struct rig *rig))
{
    int64_t by = xf_clock_mono_ms(xf_clock_real()) + DEADLINE_MS;

    while (!cond(rig)) {
        assert_true(xf_clock_mono_ms(xf_clock_real()) < by);
        xf_engine_on_turn(rig->engine);
        xf_loop_turn(rig->loop, 20);
    }
}

static bool has_ended(struct rig *rig)
{
    return rig->has_ended;
}

enum xf_work_how rig_run(struct rig *rig, struct xf_work *w)
{
    rig->has_ended = false;
    if (w->kind == XF_TASK_BATCH || w->kind == XF_TASK_RECHECK) {
        for (size_t i = 0; i < RIG_OBJECTS_MAX; i++) {
            rig->told[i] = (struct rig_told){0};
        }
    }
    rig->upload = (struct rig_told){0};
    xf_engine_start(rig->engine, w);
    rig_turn_until(rig, has_ended);
    return rig->end.how;
}

enum xf_work_how rig_upload(struct rig *rig, const char *key)
{
    rig->n_parts = 0;
    rig->has_opened = false;
    enum xf_work_how how = rig_run(rig, rig_step(rig, XF_TASK_OPEN, key, 1));
    if (how != XF_WORK_DONE || !rig->has_opened) {
        return how;
    }
    how = rig_run(rig, rig_step(rig, XF_TASK_PARTS, key, 1));
    if (how != XF_WORK_DONE) {
        return how;
    }
    return rig_run(rig, rig_step(rig, XF_TASK_CLOSE, key, 1));
}

const struct rig_told *rig_told_of(struct rig *rig, const struct xf_work *w, const char *key)
{
    for (uint32_t i = 0; i < w->manifest.n; i++) {
        if (xf_str_eq_c(w->manifest.objects[i].key, key)) {
            return &rig->told[i];
        }
    }
    fail_msg("no object '%s' in the batch", key);
    return NULL;
}

bool rig_has_notice(const struct rig *rig, const char *code)
{
    for (size_t i = 0; i < rig->n_notices; i++) {
        if (strcmp(rig->notices[i], code) == 0) {
            return true;
        }
    }
    return false;
}

unsigned rig_outcomes(const struct rig *rig, unsigned n, enum xf_outcome outcome)
{
    unsigned found = 0;

    for (unsigned i = 0; i < n; i++) {
        found += rig->told[i].times == 1 && rig->told[i].r.outcome == outcome ? 1 : 0;
    }
    return found;
}
