/*
 * manifest.c - the bytes of a manifest, version 2:
 *
 *   'M' 2 source_no n  then n times:
 *     shared      bytes of the last key that this key begins with
 *     rest        the other bytes of the key (string)
 *     size  etag  mtime (difference to the last one)
 *     class       0: none; k: the k-th class met in this manifest; one more than met: a new one
 *                 follows (string)
 *     version_id (string)  attempts, doubled, and one more when a failed try left something
 *
 * Version 1, which a store may hold still, has the attempts alone.
 * Numbers are varints (pack.h).
 */
#include "proto/manifest.h"

#include "proto/pack.h"

enum { MAGIC = 'M', VERSION = 2, HEADER_ROOM = 16, OBJECT_MIN = 8 };

void xf_manifest_enc_init(struct xf_manifest_enc *e, uint32_t source_no)
{
    memset(e, 0, sizeof(*e));
    xf_buf_init(&e->body, XF_MANIFEST_BYTES_MAX);
    xf_buf_init(&e->last_key, XF_OBJECT_KEY_MAX);
    xf_buf_init(&e->classes, 0);
    e->source_no = source_no;
}

void xf_manifest_enc_fini(struct xf_manifest_enc *e)
{
    xf_buf_fini(&e->body);
    xf_buf_fini(&e->last_key);
    xf_buf_fini(&e->classes);
}

void xf_manifest_enc_reset(struct xf_manifest_enc *e, uint32_t source_no)
{
    xf_buf_reset(&e->body);
    xf_buf_reset(&e->last_key);
    xf_buf_reset(&e->classes);
    e->source_no = source_no;
    e->n_objects = 0;
    e->last_mtime_ms = 0;
    e->size_bytes = 0;
}

static enum xf_code check_object(const struct xf_object *o, struct xf_err *err)
{
    if (o->key.len == 0 || o->key.len > XF_OBJECT_KEY_MAX) {
        return XF_FAIL(
            err, XF_E_INVAL, "key of %zu bytes: 1 to %d are taken", o->key.len, XF_OBJECT_KEY_MAX);
    }
    if (o->etag.len > XF_ETAG_MAX || o->storage_class.len > XF_OBJECT_CLASS_MAX ||
        o->version_id.len > XF_OBJECT_VERSION_MAX || o->attempts > XF_OBJECT_ATTEMPTS_MAX) {
        return XF_FAIL(err,
                       XF_E_INVAL,
                       "etag, storage class, version or attempts of '%.*s' above the limit",
                       XF_STR_ARG(o->key));
    }
    return XF_OK;
}

static void put_class(struct xf_manifest_enc *e, struct xf_str name)
{
    struct xf_unpack u;
    uint64_t no = 0;

    if (name.len == 0) {
        xf_pack_u64(&e->body, 0);
        return;
    }
    xf_unpack_init(&u, xf_buf_view(&e->classes));
    while (!xf_unpack_is_done(&u)) {
        no++;
        if (xf_str_eq(xf_unpack_str(&u, XF_OBJECT_CLASS_MAX), name)) {
            xf_pack_u64(&e->body, no);
            return;
        }
    }
    xf_pack_u64(&e->body, no + 1);
    xf_pack_str(&e->body, name);
    xf_pack_str(&e->classes, name);
}

static size_t shared_prefix(struct xf_str a, struct xf_str b)
{
    size_t n = 0;

    while (n < a.len && n < b.len && a.ptr[n] == b.ptr[n]) {
        n++;
    }
    return n;
}

enum xf_code
xf_manifest_add(struct xf_manifest_enc *e, const struct xf_object *o, struct xf_err *err)
{
    size_t shared = shared_prefix(xf_buf_view(&e->last_key), o->key);
    size_t room = o->key.len + o->etag.len + o->storage_class.len + o->version_id.len + 80;

    XF_TRY(check_object(o, err));
    if (e->n_objects == XF_MANIFEST_MAX ||
        e->body.len + room > XF_MANIFEST_BYTES_MAX - HEADER_ROOM) {
        return XF_FAIL(err, XF_E_LIMIT, "manifest full at %u objects", e->n_objects);
    }
    xf_pack_u64(&e->body, shared);
    xf_pack_str(&e->body, xf_str_sub(o->key, shared, o->key.len));
    xf_pack_u64(&e->body, o->size);
    xf_pack_etag(&e->body, o->etag);
    xf_pack_i64(&e->body, (int64_t)((uint64_t)o->mtime_ms - (uint64_t)e->last_mtime_ms));
    put_class(e, o->storage_class);
    xf_pack_str(&e->body, o->version_id);
    xf_pack_u64(&e->body, (uint64_t)o->attempts * 2 + o->is_left);
    xf_buf_reset(&e->last_key);
    xf_buf_put(&e->last_key, o->key);
    e->last_mtime_ms = o->mtime_ms;
    e->n_objects++;
    e->size_bytes += o->size;
    return XF_OK;
}

void xf_manifest_finish(const struct xf_manifest_enc *e, struct xf_buf *out)
{
    xf_buf_put_byte(out, MAGIC);
    xf_buf_put_byte(out, VERSION);
    xf_pack_u64(out, e->source_no);
    xf_pack_u64(out, e->n_objects);
    xf_buf_put(out, xf_buf_view(&e->body));
}

struct classes {
    struct xf_str name[XF_MANIFEST_MAX];
    uint32_t n;
};

static struct xf_str get_class(struct xf_unpack *u, struct classes *c, struct xf_arena *a)
{
    uint64_t no = xf_unpack_u64(u, c->n < XF_MANIFEST_MAX ? c->n + 1 : c->n);
    struct xf_str name;

    if (no == 0) {
        return XF_STR_EMPTY;
    }
    if (no <= c->n) {
        return c->name[no - 1];
    }
    name = xf_unpack_str(u, XF_OBJECT_CLASS_MAX);
    u->bad = u->bad || name.len == 0;
    c->name[c->n++] = xf_arena_dup(a, name);
    return c->name[no - 1];
}

static struct xf_str get_key(struct xf_unpack *u, struct xf_str last, struct xf_arena *a)
{
    size_t shared = (size_t)xf_unpack_u64(u, last.len);
    struct xf_str rest = xf_unpack_str(u, XF_OBJECT_KEY_MAX - shared);
    char *key;

    u->bad = u->bad || shared + rest.len == 0;
    if (u->bad) {
        return XF_STR_EMPTY;
    }
    key = xf_arena_calloc(a, shared + rest.len + 1, 1);
    if (shared != 0) {
        memcpy(key, last.ptr, shared);
    }
    if (rest.len != 0) {
        memcpy(key + shared, rest.ptr, rest.len);
    }
    return xf_str_n(key, shared + rest.len);
}

static void decode_objects(struct xf_unpack *u, bool has_left, struct xf_manifest *m)
{
    struct classes *classes = xf_arena_calloc(&m->arena, 1, sizeof(*classes));
    struct xf_str last = XF_STR_EMPTY;
    uint64_t mtime = 0;

    for (uint32_t i = 0; i < m->n && !u->bad; i++) {
        struct xf_object *o = &m->objects[i];

        o->key = get_key(u, last, &m->arena);
        o->size = xf_unpack_u64(u, UINT64_MAX);
        o->etag = xf_unpack_etag(u, &m->arena);
        mtime += (uint64_t)xf_unpack_i64(u);
        o->mtime_ms = (int64_t)mtime;
        o->storage_class = get_class(u, classes, &m->arena);
        o->version_id = xf_arena_dup(&m->arena, xf_unpack_str(u, XF_OBJECT_VERSION_MAX));
        uint64_t attempts =
            xf_unpack_u64(u, XF_OBJECT_ATTEMPTS_MAX * (has_left ? 2ULL : 1ULL) + has_left);
        o->attempts = (uint32_t)(has_left ? attempts / 2 : attempts);
        o->is_left = has_left && attempts % 2 == 1;
        last = o->key;
        m->size_bytes = o->size > UINT64_MAX - m->size_bytes ? UINT64_MAX : m->size_bytes + o->size;
    }
}

enum xf_code xf_manifest_decode(struct xf_str bytes, struct xf_manifest *out, struct xf_err *err)
{
    struct xf_unpack u;
    uint8_t magic;
    uint8_t version;

    memset(out, 0, sizeof(*out));
    if (bytes.len > XF_MANIFEST_BYTES_MAX) {
        return XF_FAIL(err,
                       XF_E_PROTO,
                       "manifest of %zu bytes: at most %d are taken",
                       bytes.len,
                       XF_MANIFEST_BYTES_MAX);
    }
    xf_unpack_init(&u, bytes);
    magic = xf_unpack_byte(&u);
    version = xf_unpack_byte(&u);
    if (magic != MAGIC || version < 1 || version > VERSION) {
        return XF_FAIL(err, XF_E_PROTO, "not a manifest of version 1 to %d", VERSION);
    }
    out->source_no = (uint32_t)xf_unpack_u64(&u, XF_SOURCE_NO_MAX);
    out->n = (uint32_t)xf_unpack_u64(&u, XF_MANIFEST_MAX);
    if (u.bad || (size_t)(u.end - u.at) < (size_t)out->n * OBJECT_MIN) {
        xf_manifest_fini(out);
        return XF_FAIL(err, XF_E_PROTO, "manifest damaged in its header");
    }
    out->objects = xf_arena_calloc(&out->arena, out->n, sizeof(*out->objects));
    decode_objects(&u, version > 1, out);
    if (!xf_unpack_is_done(&u)) {
        xf_manifest_fini(out);
        return XF_FAIL(err, XF_E_PROTO, "manifest damaged");
    }
    return XF_OK;
}

void xf_manifest_fini(struct xf_manifest *m)
{
    xf_arena_fini(&m->arena);
    memset(m, 0, sizeof(*m));
}
