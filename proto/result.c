/*
 * result.c - the bytes of a result, version 1:
 *
 *   'R' 1 n_records  then, by ascending index:
 *     gap         indexes left out since the record before
 *     outcome skip level mode (a byte each)  code flags http_status attempts size through
 *     etag  version_id  source_etag  s3_code  message
 *
 * Numbers are varints (pack.h).
 */
#include "proto/result.h"

#include "proto/pack.h"

enum { MAGIC = 'R', VERSION = 1, HTTP_STATUS_MAX = 999 };

void xf_result_set_init(struct xf_result_set *s, uint32_t n)
{
    XF_ASSERT(n <= XF_MANIFEST_MAX);
    xf_arena_init(&s->arena);
    s->n = n;
    s->at = xf_arena_calloc(&s->arena, n, sizeof(*s->at));
}

void xf_result_set_fini(struct xf_result_set *s)
{
    xf_arena_fini(&s->arena);
    s->at = NULL;
    s->n = 0;
}

void xf_result_set_reset(struct xf_result_set *s)
{
    uint32_t n = s->n;

    xf_result_set_fini(s);
    xf_result_set_init(s, n);
}

static struct xf_str keep(struct xf_arena *a, struct xf_str s, size_t max)
{
    return s.len == 0 ? (struct xf_str){NULL, 0} : xf_arena_dup(a, xf_str_sub(s, 0, max));
}

bool xf_result_set_put(struct xf_result_set *s, uint32_t idx, const struct xf_result *r)
{
    struct xf_result *to;
    struct xf_result before;

    XF_ASSERT(idx < s->n && r->outcome < XF_OUTCOME_N);
    to = &s->at[idx];
    if (to->outcome != XF_OUTCOME_PENDING) {
        return false;
    }
    before = *to;
    *to = *r;
    to->attempts = before.attempts > to->attempts ? before.attempts : to->attempts;
    to->attempts = to->attempts < XF_OBJECT_ATTEMPTS_MAX ? to->attempts : XF_OBJECT_ATTEMPTS_MAX;
    if (to->through_bytes < before.through_bytes) {
        to->through_bytes = before.through_bytes;
    }
    to->etag = keep(&s->arena, r->etag, XF_ETAG_MAX);
    to->version_id = keep(&s->arena, r->version_id, XF_OBJECT_VERSION_MAX);
    to->source_etag = keep(&s->arena, r->source_etag, XF_ETAG_MAX);
    to->s3_code = keep(&s->arena, r->s3_code, XF_S3_CODE_MAX);
    to->message = keep(&s->arena, r->message, XF_RESULT_MSG_MAX);
    return true;
}

static bool is_set(const struct xf_result *r)
{
    return r->outcome != XF_OUTCOME_PENDING || r->attempts != 0 || r->through_bytes != 0;
}

bool xf_result_is_dropped(const struct xf_result *r)
{
    return r->outcome == XF_OUTCOME_COPIED && (r->flags & (uint32_t)XF_RESULT_DROPPED) != 0;
}

static void count_one(const struct xf_result *r, struct xf_result_counts *c)
{
    c->by_outcome[r->outcome]++;
    c->copied_bytes += r->outcome == XF_OUTCOME_COPIED ? r->size_bytes : 0;
    c->through_bytes += r->through_bytes;
    c->dropped += xf_result_is_dropped(r);
    c->attempts += r->attempts;
    c->retries += r->attempts > 1 ? r->attempts - 1 : 0;
}

void xf_result_set_merge(struct xf_result_set *s,
                         const struct xf_result_set *delta,
                         struct xf_result_counts *added)
{
    XF_ASSERT(s->n == delta->n);
    memset(added, 0, sizeof(*added));
    for (uint32_t i = 0; i < s->n; i++) {
        const struct xf_result *r = &delta->at[i];
        const struct xf_result before = s->at[i];

        if (is_set(r) && xf_result_set_put(s, i, r)) {
            count_one(&s->at[i], added);
            added->attempts -= before.attempts;
            added->retries -= before.attempts > 1 ? before.attempts - 1 : 0;
            added->through_bytes -= before.through_bytes;
        }
    }
    added->by_outcome[XF_OUTCOME_PENDING] = 0;
}

void xf_result_set_count(const struct xf_result_set *s, struct xf_result_counts *out)
{
    memset(out, 0, sizeof(*out));
    for (uint32_t i = 0; i < s->n; i++) {
        count_one(&s->at[i], out);
    }
}

void xf_result_set_encode(const struct xf_result_set *s, struct xf_buf *out)
{
    uint32_t n = 0;
    uint32_t next = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        n += is_set(&s->at[i]) ? 1 : 0;
    }
    xf_buf_put_byte(out, MAGIC);
    xf_buf_put_byte(out, VERSION);
    xf_pack_u64(out, n);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct xf_result *r = &s->at[i];

        if (!is_set(r)) {
            continue;
        }
        xf_pack_u64(out, i - next);
        next = i + 1;
        xf_buf_put_byte(out, (char)r->outcome);
        xf_buf_put_byte(out, (char)r->skip);
        xf_buf_put_byte(out, (char)r->level);
        xf_buf_put_byte(out, (char)r->mode);
        xf_pack_u64(out, (uint64_t)r->code);
        xf_pack_u64(out, r->flags);
        xf_pack_u64(out, r->http_status);
        xf_pack_u64(out, r->attempts);
        xf_pack_u64(out, r->size_bytes);
        xf_pack_u64(out, r->through_bytes);
        xf_pack_etag(out, r->etag);
        xf_pack_str(out, r->version_id);
        xf_pack_etag(out, r->source_etag);
        xf_pack_str(out, r->s3_code);
        xf_pack_str(out, r->message);
    }
}

static unsigned get_enum(struct xf_unpack *u, unsigned n)
{
    unsigned v = xf_unpack_byte(u);

    u->bad = u->bad || v >= n;
    return u->bad ? 0 : v;
}

static void get_record(struct xf_unpack *u, struct xf_result *r, struct xf_arena *a)
{
    r->outcome = (enum xf_outcome)get_enum(u, XF_OUTCOME_N);
    r->skip = (enum xf_skip)get_enum(u, XF_SKIP_N);
    r->level = (enum xf_level)get_enum(u, XF_LEVEL_N);
    r->mode = (enum xf_mode)get_enum(u, XF_MODE_N);
    r->code = (enum xf_code)xf_unpack_u64(u, XF_CODE_N - 1);
    r->flags = (uint32_t)xf_unpack_u64(u, XF_RESULT_FLAGS_ALL);
    r->http_status = (uint32_t)xf_unpack_u64(u, HTTP_STATUS_MAX);
    r->attempts = (uint32_t)xf_unpack_u64(u, XF_OBJECT_ATTEMPTS_MAX);
    r->size_bytes = xf_unpack_u64(u, UINT64_MAX);
    r->through_bytes = xf_unpack_u64(u, UINT64_MAX);
    r->etag = xf_unpack_etag(u, a);
    r->version_id = keep(a, xf_unpack_str(u, XF_OBJECT_VERSION_MAX), XF_OBJECT_VERSION_MAX);
    r->source_etag = xf_unpack_etag(u, a);
    r->s3_code = keep(a, xf_unpack_str(u, XF_S3_CODE_MAX), XF_S3_CODE_MAX);
    r->message = keep(a, xf_unpack_str(u, XF_RESULT_MSG_MAX), XF_RESULT_MSG_MAX);
    u->bad = u->bad || !is_set(r);
}

enum xf_code
xf_result_set_decode(struct xf_str bytes, uint32_t n, struct xf_result_set *out, struct xf_err *err)
{
    struct xf_unpack u;
    uint8_t magic;
    uint8_t version;
    uint32_t n_records;
    uint64_t next = 0;

    xf_result_set_init(out, n);
    if (bytes.len == 0) {
        return XF_OK;
    }
    xf_unpack_init(&u, bytes);
    magic = xf_unpack_byte(&u);
    version = xf_unpack_byte(&u);
    if (magic != MAGIC || version != VERSION) {
        return XF_FAIL(err, XF_E_PROTO, "not a result of version %d", VERSION);
    }
    n_records = (uint32_t)xf_unpack_u64(&u, n);
    for (uint32_t i = 0; i < n_records && !u.bad; i++) {
        next += xf_unpack_u64(&u, n);
        if (u.bad || next >= n) {
            u.bad = true;
            break;
        }
        get_record(&u, &out->at[next], &out->arena);
        next++;
    }
    if (!xf_unpack_is_done(&u)) {
        xf_result_set_reset(out);
        return XF_FAIL(err, XF_E_PROTO, "result damaged");
    }
    return XF_OK;
}

const char *xf_outcome_name(enum xf_outcome o)
{
    static const char *const names[XF_OUTCOME_N] = {
        "pending", "copied", "skipped", "failed", "vanished", "archived"};

    return names[o < XF_OUTCOME_N ? o : XF_OUTCOME_PENDING];
}

const char *xf_skip_name(enum xf_skip s)
{
    static const char *const names[XF_SKIP_N] = {"", "same", "exists", "self"};

    return names[s < XF_SKIP_N ? s : XF_SKIP_NONE];
}

const char *xf_level_name(enum xf_level l)
{
    static const char *const names[XF_LEVEL_N] = {"none", "size", "etag", "checksum", "full"};

    return names[l < XF_LEVEL_N ? l : XF_LEVEL_NONE];
}

const char *xf_mode_name(enum xf_mode m)
{
    static const char *const names[XF_MODE_N] = {"", "server", "relay"};

    return names[m < XF_MODE_N ? m : XF_MODE_NONE];
}
