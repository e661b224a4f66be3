/* list.c - ListObjectsV2 and ListObjects (V1), and the dialects that rules ask for. */
#include "common/base/clock.h"
#include "tests/s3d/handlers.h"
#include "tests/s3d/xml.h"

#include <stdio.h>
#include <stdlib.h>

enum { PAGE_MAX = 1000 };

struct item {
    struct s3d_rec *rec;
    size_t prefix_len; /* a common prefix: that many bytes of the key; 0: the object itself */
};

struct list {
    struct s3d_req *r;
    const struct s3d_dialect *d;
    bool v2;
    bool encode;
    bool fetch_owner;
    struct xf_str prefix;
    struct xf_str delimiter;
    struct xf_str start_after; /* start-after, or V1's marker */
    struct xf_str token;
    bool has_token;
    uint64_t max_keys;

    struct xf_buf from; /* where to begin */
    bool from_after;    /* ... behind that key */
    struct item items[PAGE_MAX];
    size_t n;
    bool truncated;
    struct xf_buf next; /* token text of the last item */
    struct xf_buf last; /* the last item's name */
    int64_t cached_s;
    char cached_time[XF_TIME_TEXT_MAX];
};

void s3d_list_encode(struct xf_buf *out, struct xf_str s, bool space_is_plus)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '_' || c == '.' || c == '*' || c == '/';
        if (plain) {
            xf_buf_put_byte(out, (char)c);
        } else if (c == ' ' && space_is_plus) {
            xf_buf_put_byte(out, '+');
        } else {
            char esc[3] = {'%', digits[c >> 4], digits[c & 15]};
            xf_buf_put_mem(out, esc, sizeof(esc));
        }
    }
}

/* A field whose encoding depends on the request and the dialect. */
static void
put_name(struct list *l, struct xf_buf *out, const char *tag, struct xf_str s, bool is_key)
{
    enum s3d_list_encoding e = l->d->encoding;
    bool raw = e == S3D_ENC_RAW || e == S3D_ENC_CHARREF || (e == S3D_ENC_RAW_FIELDS && !is_key);

    xf_buf_put_byte(out, '<');
    xf_buf_put_c(out, tag);
    xf_buf_put_byte(out, '>');
    if (l->encode && !raw) {
        s3d_list_encode(out, s, e == S3D_ENC_AWS || e == S3D_ENC_UNANNOUNCED);
    } else if (e == S3D_ENC_RAW) {
        for (size_t i = 0; i < s.len; i++) { /* only markup is escaped */
            char c = s.ptr[i];
            if (c == '&' || c == '<' || c == '>') {
                s3d_xml_text(out, xf_str_n(s.ptr + i, 1));
            } else {
                xf_buf_put_byte(out, c);
            }
        }
    } else {
        s3d_xml_text(out, s);
    }
    xf_buf_put_c(out, "</");
    xf_buf_put_c(out, tag);
    xf_buf_put_byte(out, '>');
}

/* ---- where to begin ---- */

/* The first name behind all names with this prefix. */
static void successor(struct xf_buf *b)
{
    while (b->len > 0 && (unsigned char)b->ptr[b->len - 1] == 0xff) {
        b->len--;
    }
    if (b->len > 0) {
        b->ptr[b->len - 1]++;
    }
}

static bool begin_at_token(struct list *l)
{
    XF_AUTO_BUF text = {0};

    xf_buf_init(&text, 0);
    if (!xf_buf_put_unbase64(&text, l->token) || text.len < 1) {
        s3d_fail(l->r, "InvalidArgument", "The continuation token provided is incorrect");
        return false;
    }
    char kind = text.ptr[0];
    if (kind == 'R' || kind == 'C') {
        return true; /* a dialect's token: from the start again */
    }
    if (kind != 'k' && kind != 'p') {
        s3d_fail(l->r, "InvalidArgument", "The continuation token provided is incorrect");
        return false;
    }
    xf_buf_put(&l->from, xf_str_sub(xf_buf_view(&text), 1, text.len));
    l->from_after = kind == 'k';
    if (kind == 'p') {
        successor(&l->from);
    }
    return true;
}

/* Length of the common prefix of a key, or 0. */
static size_t common_prefix(const struct list *l, struct xf_str key)
{
    if (l->delimiter.len == 0 || key.len < l->prefix.len) {
        return 0;
    }
    const char *p = memmem(
        key.ptr + l->prefix.len, key.len - l->prefix.len, l->delimiter.ptr, l->delimiter.len);
    return p == NULL ? 0 : (size_t)(p - key.ptr) + l->delimiter.len;
}

static bool begin(struct list *l)
{
    if (l->v2 && l->has_token && l->d->token != S3D_TOKEN_CONSTANT && !l->d->repeat_page) {
        if (!begin_at_token(l)) {
            return false;
        }
    } else if (!l->d->ignore_start_after && l->start_after.len > 0) {
        xf_buf_put(&l->from, l->start_after);
        l->from_after = true;
        /* V1: a marker that is itself a common prefix stands for all keys below it */
        if (!l->v2 && common_prefix(l, l->start_after) == l->start_after.len) {
            l->from_after = false;
            successor(&l->from);
        }
    }
    if (xf_str_cmp(xf_buf_view(&l->from), l->prefix) < 0) {
        xf_buf_reset(&l->from);
        xf_buf_put(&l->from, l->prefix);
        l->from_after = false;
    }
    return true;
}

/* ---- the page ---- */

static void remember_last(struct list *l)
{
    const struct item *i = &l->items[l->n - 1];
    struct xf_str name = s3d_rec_key(i->rec);
    XF_AUTO_BUF text = {0};

    if (i->prefix_len > 0) {
        name = xf_str_sub(name, 0, i->prefix_len);
    }
    xf_buf_init(&text, 0);
    xf_buf_put_byte(&text, i->prefix_len > 0 ? 'p' : 'k');
    xf_buf_put(&text, name);
    xf_buf_put_base64(&l->next, text.ptr, text.len);
    xf_buf_put(&l->last, name);
}

static void collect_locked(struct list *l)
{
    const struct s3d_index *x = &l->r->b->index;
    struct s3d_cursor c;
    XF_AUTO_BUF skip = {0};

    xf_buf_init(&skip, 0);
    s3d_index_seek(x, xf_buf_view(&l->from), l->from_after, &c);
    for (;;) {
        struct s3d_rec *rec = s3d_cursor_next(&c);
        if (rec == NULL || !xf_str_starts(s3d_rec_key(rec), l->prefix)) {
            break;
        }
        if (l->n == l->max_keys) {
            l->truncated = l->max_keys > 0;
            break;
        }
        size_t prefix_len = common_prefix(l, s3d_rec_key(rec));
        l->items[l->n++] = (struct item){rec, prefix_len};
        if (prefix_len > 0) {
            xf_buf_reset(&skip);
            xf_buf_put(&skip, xf_str_sub(s3d_rec_key(rec), 0, prefix_len));
            successor(&skip);
            if (skip.len == 0) {
                break;
            }
            s3d_index_seek(x, xf_buf_view(&skip), false, &c);
        }
    }
    if (l->n > 0) {
        remember_last(l);
    }
}

static struct xf_str item_name(const struct item *i)
{
    struct xf_str k = s3d_rec_key(i->rec);

    return i->prefix_len > 0 ? xf_str_sub(k, 0, i->prefix_len) : k;
}

static int cmp_reverse(const void *a, const void *b)
{
    return xf_str_cmp(item_name(b), item_name(a));
}

/* UTF-16 order differs from byte order for surrogate pairs (lead byte F0..F4) against
 * U+E000..U+FFFF. */
static int cmp_utf16(const void *a, const void *b)
{
    struct xf_str x = item_name(a);
    struct xf_str y = item_name(b);
    size_t n = x.len < y.len ? x.len : y.len;

    for (size_t i = 0; i < n; i++) {
        unsigned p = (unsigned char)x.ptr[i];
        unsigned q = (unsigned char)y.ptr[i];
        if (p != q) {
            p = p >= 0xf0 ? 0xed : p;
            q = q >= 0xf0 ? 0xed : q;
            return p != q ? (p < q ? -1 : 1) : xf_str_cmp(x, y);
        }
    }
    return xf_str_cmp(x, y);
}

/* As a walk of directories gives: '/' sorts before all other bytes. */
static int cmp_directory(const void *a, const void *b)
{
    struct xf_str x = item_name(a);
    struct xf_str y = item_name(b);
    size_t n = x.len < y.len ? x.len : y.len;

    for (size_t i = 0; i < n; i++) {
        unsigned p = x.ptr[i] == '/' ? 0 : (unsigned char)x.ptr[i];
        unsigned q = y.ptr[i] == '/' ? 0 : (unsigned char)y.ptr[i];
        if (p != q) {
            return p < q ? -1 : 1;
        }
    }
    return xf_str_cmp(x, y);
}

static void reorder(struct list *l)
{
    switch (l->d->order) {
    case S3D_ORDER_BYTES: break;
    case S3D_ORDER_REVERSE: qsort(l->items, l->n, sizeof(l->items[0]), cmp_reverse); break;
    case S3D_ORDER_UTF16: qsort(l->items, l->n, sizeof(l->items[0]), cmp_utf16); break;
    case S3D_ORDER_DIRECTORY: qsort(l->items, l->n, sizeof(l->items[0]), cmp_directory); break;
    }
    l->n = l->d->drop_last < l->n ? l->n - (size_t)l->d->drop_last : 0;
}

static void
put_contents(struct list *l, struct xf_buf *out, const struct s3d_obj *o, struct xf_str key)
{
    char etag[S3D_ETAG_MAX];

    if (o->mtime_s != l->cached_s) {
        l->cached_s = o->mtime_s;
        xf_time_rfc3339((int64_t)o->mtime_s * 1000, true, l->cached_time);
    }
    s3d_obj_etag(o, etag);
    xf_buf_put(out, XF_STR_LIT("<Contents>"));
    put_name(l, out, "Key", key, true);
    xf_buf_put(out, XF_STR_LIT("<LastModified>"));
    xf_buf_put_c(out, l->cached_time);
    xf_buf_put(out, XF_STR_LIT("</LastModified><ETag>&quot;"));
    xf_buf_put_mem(out, etag + 1, strlen(etag) - 2);
    xf_buf_put(out, XF_STR_LIT("&quot;</ETag><Size>"));
    xf_buf_put_u64(out, o->size);
    xf_buf_put(out, XF_STR_LIT("</Size>"));
    if (o->attrs != NULL && o->attrs->sum_alg != S3D_SUM_NONE) {
        s3d_xml_tag(out, "ChecksumAlgorithm", xf_str_c(s3d_sum_upper(o->attrs->sum_alg)));
        s3d_xml_tag(out,
                    "ChecksumType",
                    o->attrs->composite ? XF_STR_LIT("COMPOSITE") : XF_STR_LIT("FULL_OBJECT"));
    }
    if (l->fetch_owner) {
        xf_buf_put(out, XF_STR_LIT("<Owner><ID>s3d</ID></Owner>"));
    }
    if (o->attrs != NULL && o->attrs->storage_class.len > 0) {
        s3d_xml_tag(out, "StorageClass", o->attrs->storage_class);
    } else {
        xf_buf_put(out, XF_STR_LIT("<StorageClass>STANDARD</StorageClass>"));
    }
    xf_buf_put(out, XF_STR_LIT("</Contents>"));
}

static void put_items_locked(struct list *l, struct xf_buf *out)
{
    for (size_t i = 0; i < l->n; i++) {
        if (l->items[i].prefix_len == 0) {
            struct s3d_rec *rec = l->items[i].rec;
            s3d_obj_fix_md5(&rec->obj);
            put_contents(l, out, &rec->obj, s3d_rec_key(rec));
        }
    }
    for (size_t i = 0; i < l->n; i++) {
        if (l->items[i].prefix_len > 0) {
            xf_buf_put_c(out, "<CommonPrefixes>");
            put_name(l, out, "Prefix", item_name(&l->items[i]), false);
            xf_buf_put_c(out, "</CommonPrefixes>");
        }
    }
}

static void put_token(struct list *l, struct xf_buf *out)
{
    struct xf_str token = xf_buf_view(&l->next);
    XF_AUTO_BUF b = {0};

    xf_buf_init(&b, 0);
    if (l->d->repeat_page) {
        char text[24];
        int n = snprintf(text, sizeof(text), "R%llu", (unsigned long long)l->r->id);
        xf_buf_put_base64(&b, text, (size_t)n);
        token = xf_buf_view(&b);
    }
    switch (l->d->token) {
    case S3D_TOKEN_GOOD: break;
    case S3D_TOKEN_SAME: token = l->has_token ? l->token : token; break;
    case S3D_TOKEN_CONSTANT: token = XF_STR_LIT("Q29uc3RhbnQ="); break;
    case S3D_TOKEN_EMPTY: token = XF_STR_EMPTY; break;
    case S3D_TOKEN_NONE: return;
    }
    s3d_xml_tag(out, "NextContinuationToken", token);
}

static void put_head_v2(struct list *l, struct xf_buf *out)
{
    if (l->has_token) {
        s3d_xml_tag(out, "ContinuationToken", l->token);
    }
    if (l->truncated) {
        put_token(l, out);
    }
    if (l->start_after.len > 0) {
        put_name(l, out, "StartAfter", l->start_after, false);
    }
    s3d_xml_tag_u64(out, "KeyCount", l->n);
}

static void put_head_v1(struct list *l, struct xf_buf *out)
{
    put_name(l, out, "Marker", l->start_after, false);
    if (l->truncated && l->delimiter.len > 0 && l->d->token != S3D_TOKEN_NONE) {
        put_name(l, out, "NextMarker", xf_buf_view(&l->last), false);
    }
}

static void answer_locked(struct list *l)
{
    struct xf_buf *out = &l->r->resp.body;
    bool announce = l->encode && l->d->encoding != S3D_ENC_UNANNOUNCED &&
                    l->d->encoding != S3D_ENC_RAW && l->d->encoding != S3D_ENC_CHARREF;

    s3d_ok(l->r, 200, true);
    xf_buf_put_c(out, "<ListBucketResult" S3D_XML_NS ">");
    s3d_xml_tag(out, "Name", l->r->bucket);
    put_name(l, out, "Prefix", l->prefix, false);
    if (l->delimiter.len > 0) {
        put_name(l, out, "Delimiter", l->delimiter, false);
    }
    s3d_xml_tag_u64(out, "MaxKeys", l->max_keys);
    if (announce) {
        s3d_xml_tag(out, "EncodingType", XF_STR_LIT("url"));
    }
    s3d_xml_tag(out, "IsTruncated", l->truncated ? XF_STR_LIT("true") : XF_STR_LIT("false"));
    if (l->v2) {
        put_head_v2(l, out);
    } else {
        put_head_v1(l, out);
    }
    put_items_locked(l, out);
    xf_buf_put_c(out, "</ListBucketResult>");
}

static bool read_params(struct list *l)
{
    struct s3d_req *r = l->r;
    struct xf_str v = XF_STR_EMPTY;

    l->prefix = l->delimiter = l->start_after = l->token = XF_STR_EMPTY;
    (void)s3d_req_query(r, "prefix", &l->prefix); /* all of these may be absent */
    (void)s3d_req_query(r, "delimiter", &l->delimiter);
    l->v2 = r->op == S3D_OP_LIST_V2 && !l->d->v1_only;
    (void)s3d_req_query(r, l->v2 ? "start-after" : "marker", &l->start_after);
    l->has_token = s3d_req_query(r, "continuation-token", &l->token) && l->v2;
    if (l->has_token && l->token.len == 0) {
        l->has_token = false; /* an empty one starts over, as some servers do */
    }
    l->fetch_owner = !l->v2 || (s3d_req_query(r, "fetch-owner", &v) && xf_str_eq_c(v, "true"));
    if (s3d_req_query(r, "encoding-type", &v)) {
        if (!xf_str_eq_c(v, "url")) {
            s3d_fail(r, "InvalidArgument", "Invalid Encoding Method specified in Request");
            return false;
        }
        l->encode = true;
    }
    l->max_keys = PAGE_MAX;
    if (s3d_req_query(r, "max-keys", &v) &&
        (!xf_str_u64(v, &l->max_keys) || l->max_keys > INT32_MAX)) {
        s3d_fail(r, "InvalidArgument", "Provided max-keys not an integer or within integer range");
        return false;
    }
    if (l->max_keys > PAGE_MAX) {
        l->max_keys = PAGE_MAX;
    }
    return true;
}

void s3d_list_objects(struct s3d_req *r)
{
    struct list *l = xf_xcalloc(1, sizeof(*l));

    l->r = r;
    l->d = &r->act.list;
    l->cached_s = -1;
    xf_buf_init(&l->from, 0);
    xf_buf_init(&l->next, 0);
    xf_buf_init(&l->last, 0);
    if (read_params(l) && begin(l)) {
        XF_ASSERT(pthread_mutex_lock(&r->b->lock) == 0);
        collect_locked(l);
        reorder(l);
        answer_locked(l);
        XF_ASSERT(pthread_mutex_unlock(&r->b->lock) == 0);
    }
    xf_buf_fini(&l->from);
    xf_buf_fini(&l->next);
    xf_buf_fini(&l->last);
    xf_xfree(l);
}
