/*
 * codec.c - MessagePack by tables; the only file that knows the format.
 *
 * Writing goes through msgpack-c's packer. Reading is our own: that library's unpacker allocates
 * what a length claims before it has seen the bytes. Here every length is checked against the cap
 * of its field, against the bytes that are left and against a budget of memory. Nothing recurses on
 * input: nesting is as deep as the tables are, and unknown values are skipped by counting.
 */
#include "proto/codec.h"

#include "proto/limits.h"

#include <msgpack.h>

#include <math.h>

enum { BUDGET = 4 * XF_MSG_MAX };

/* ---- members ---- */

static const void *member(const struct xf_msg_field *f, const void *m)
{
    return (const char *)m + f->at;
}

static void *member_mut(const struct xf_msg_field *f, void *m)
{
    return (char *)m + f->at;
}

static struct xf_str get_str(const struct xf_msg_field *f, const void *m)
{
    struct xf_str s;

    memcpy(&s, member(f, m), sizeof(s));
    return s;
}

static uint32_t list_len(const struct xf_msg_field *f, const void *m)
{
    uint32_t n;

    memcpy(&n, (const char *)m + f->n_at, sizeof(n));
    return n;
}

static const char *list_ptr(const struct xf_msg_field *f, const void *m)
{
    const char *p;

    memcpy(&p, member(f, m), sizeof(p));
    return p;
}

/* The value of any number as it is compared with the cap; doubles have their own way. */
static uint64_t get_number(const struct xf_msg_field *f, const void *m)
{
    uint32_t u32;
    uint64_t u64;
    bool flag;

    if (f->type == XF_MSG_T_u32) {
        memcpy(&u32, member(f, m), sizeof(u32));
        return u32;
    }
    if (f->type == XF_MSG_T_flag) {
        memcpy(&flag, member(f, m), sizeof(flag));
        return flag ? 1 : 0;
    }
    memcpy(&u64, member(f, m), sizeof(u64)); /* u64, i64, and the bits of a double */
    return u64;
}

static double get_double(const struct xf_msg_field *f, const void *m)
{
    double d;

    memcpy(&d, member(f, m), sizeof(d));
    return d;
}

static bool is_string(enum xf_msg_type t)
{
    return t == XF_MSG_T_str || t == XF_MSG_T_bin || t == XF_MSG_T_secret;
}

static bool is_empty(const struct xf_msg_field *f, const void *m)
{
    if (is_string(f->type)) {
        return get_str(f, m).len == 0;
    }
    if (f->type == XF_MSG_T_LIST) {
        return list_len(f, m) == 0;
    }
    return get_number(f, m) == 0;
}

/* ---- writing ---- */

static int put_bytes(void *arg, const char *p, size_t n)
{
    xf_buf_put_mem(arg, p, n);
    return 0;
}

static enum xf_code check_caps(const struct xf_msg_desc *d,
                               const struct xf_msg_field *f,
                               const void *m,
                               struct xf_err *err)
{
    uint64_t v = 0;

    if (is_string(f->type)) {
        v = get_str(f, m).len;
    } else if (f->type == XF_MSG_T_LIST) {
        v = list_len(f, m);
    } else if (f->type == XF_MSG_T_f64) {
        double x = get_double(f, m);

        if (!isfinite(x) || x < -f->fcap || x > f->fcap) {
            return XF_FAIL(err, XF_E_LIMIT, "%s.%s is out of range", d->name, f->name);
        }
    } else if (f->type != XF_MSG_T_i64) {
        v = get_number(f, m);
    }
    if (f->type != XF_MSG_T_f64 && v > f->cap) {
        return XF_FAIL(err,
                       XF_E_LIMIT,
                       "%s.%s is %llu: at most %llu",
                       d->name,
                       f->name,
                       (unsigned long long)v,
                       (unsigned long long)f->cap);
    }
    return XF_OK;
}

static enum xf_code
put_map(const struct xf_msg_desc *d, const void *m, msgpack_packer *pk, struct xf_err *err);

static enum xf_code
put_value(const struct xf_msg_field *f, const void *m, msgpack_packer *pk, struct xf_err *err)
{
    struct xf_str s = XF_STR_EMPTY;
    uint32_t n;

    if (is_string(f->type)) {
        s = get_str(f, m);
    }
    switch (f->type) {
    case XF_MSG_T_u32:
    case XF_MSG_T_u64:
        (void)msgpack_pack_uint64(pk, get_number(f, m)); /* put_bytes cannot fail */
        break;
    case XF_MSG_T_i64:
        (void)msgpack_pack_int64(pk, (int64_t)get_number(f, m)); /* as above */
        break;
    case XF_MSG_T_f64:
        (void)msgpack_pack_double(pk, get_double(f, m)); /* as above */
        break;
    case XF_MSG_T_flag:
        (void)(get_number(f, m) != 0 ? msgpack_pack_true(pk) : msgpack_pack_false(pk));
        break;
    case XF_MSG_T_str:
    case XF_MSG_T_secret:
        (void)msgpack_pack_str(pk, s.len); /* as above */
        (void)msgpack_pack_str_body(pk, s.ptr, s.len);
        break;
    case XF_MSG_T_bin:
        (void)msgpack_pack_bin(pk, s.len); /* as above */
        (void)msgpack_pack_bin_body(pk, s.ptr, s.len);
        break;
    case XF_MSG_T_LIST:
        n = list_len(f, m);
        (void)msgpack_pack_array(pk, n); /* as above */
        for (uint32_t i = 0; i < n; i++) {
            XF_TRY(put_map(f->list(), list_ptr(f, m) + i * f->list()->size, pk, err));
        }
        break;
    }
    return XF_OK;
}

static enum xf_code
put_map(const struct xf_msg_desc *d, const void *m, msgpack_packer *pk, struct xf_err *err)
{
    uint32_t n = 0;

    for (size_t i = 0; i < d->n; i++) {
        n += d->fields[i].required || !is_empty(&d->fields[i], m) ? 1 : 0;
    }
    (void)msgpack_pack_map(pk, n); /* put_bytes cannot fail */
    for (size_t i = 0; i < d->n; i++) {
        const struct xf_msg_field *f = &d->fields[i];

        XF_TRY(check_caps(d, f, m, err));
        if (f->required || !is_empty(f, m)) {
            (void)msgpack_pack_uint32(pk, f->key); /* as above */
            XF_TRY(put_value(f, m, pk, err));
        }
    }
    return XF_OK;
}

enum xf_code
xf_codec_encode(const struct xf_msg_desc *d, const void *m, struct xf_buf *out, struct xf_err *err)
{
    XF_AUTO_BUF bytes = {0};
    msgpack_packer pk;

    xf_buf_init(&bytes, XF_MSG_MAX);
    msgpack_packer_init(&pk, &bytes, put_bytes);
    XF_TRY(put_map(d, m, &pk, err));
    if (bytes.full || (out->max != 0 && bytes.len > out->max - out->len)) {
        return XF_FAIL(err, XF_E_LIMIT, "message %s is larger than %d bytes", d->name, XF_MSG_MAX);
    }
    xf_buf_put(out, xf_buf_view(&bytes));
    return XF_OK;
}

/* ---- reading ---- */

struct reader {
    const unsigned char *at;
    const unsigned char *end;
    struct xf_arena *arena;
    size_t budget;
    bool bad;
};

/* What one MessagePack value is; a container's entries follow it. */
enum form {
    FORM_UINT,
    FORM_INT,
    FORM_DOUBLE,
    FORM_BOOL,
    FORM_STR,
    FORM_BIN,
    FORM_ARRAY,
    FORM_MAP,
    FORM_OTHER
};

struct value {
    enum form form;
    uint64_t n; /* number, bits, or length; FORM_OTHER: bytes to skip */
};

static uint64_t get_be(struct reader *r, size_t len)
{
    uint64_t v = 0;

    if (r->bad || (size_t)(r->end - r->at) < len) {
        r->bad = true;
        return 0;
    }
    for (size_t i = 0; i < len; i++) {
        v = v << 8 | *r->at++;
    }
    return v;
}

static struct value signed_value(uint64_t bits, unsigned width)
{
    uint64_t sign = 1ULL << (width - 1);
    uint64_t v = (bits ^ sign) - sign; /* sign extension, in unsigned arithmetic */

    return (struct value){v >> 63 != 0 ? FORM_INT : FORM_UINT, v};
}

static struct value float_value(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float narrow;
    double wide;
    uint64_t out;

    memcpy(&narrow, &low, sizeof(narrow));
    wide = (double)narrow;
    memcpy(&out, &wide, sizeof(out));
    return (struct value){FORM_DOUBLE, out};
}

/* First bytes 0xc0 to 0xdf. */
static struct value get_tagged(struct reader *r, unsigned tag)
{
    switch (tag) {
    case 0xc2:
    case 0xc3: return (struct value){FORM_BOOL, tag & 1U};
    case 0xc4:
    case 0xc5:
    case 0xc6: return (struct value){FORM_BIN, get_be(r, (size_t)1 << (tag - 0xc4U))};
    case 0xc7:
    case 0xc8:
    case 0xc9: /* extensions: a length, a type, the bytes */
        return (struct value){FORM_OTHER, get_be(r, (size_t)1 << (tag - 0xc7U)) + 1};
    case 0xca: return float_value(get_be(r, 4));
    case 0xcb: return (struct value){FORM_DOUBLE, get_be(r, 8)};
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf: return (struct value){FORM_UINT, get_be(r, (size_t)1 << (tag - 0xccU))};
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3: return signed_value(get_be(r, (size_t)1 << (tag - 0xd0U)), 8U << (tag - 0xd0U));
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8: /* extensions of 1 to 16 bytes and a type */
        return (struct value){FORM_OTHER, (1ULL << (tag - 0xd4U)) + 1};
    case 0xd9:
    case 0xda:
    case 0xdb: return (struct value){FORM_STR, get_be(r, (size_t)1 << (tag - 0xd9U))};
    case 0xdc:
    case 0xdd: return (struct value){FORM_ARRAY, get_be(r, (size_t)2 << (tag - 0xdcU))};
    case 0xde:
    case 0xdf: return (struct value){FORM_MAP, get_be(r, (size_t)2 << (tag - 0xdeU))};
    default:
        r->bad = r->bad || tag == 0xc1; /* 0xc0 is nil, 0xc1 is never used */
        return (struct value){FORM_OTHER, 0};
    }
}

static struct value get_value(struct reader *r)
{
    unsigned tag = (unsigned)get_be(r, 1);

    if (tag < 0x80) {
        return (struct value){FORM_UINT, tag};
    }
    if (tag < 0x90) {
        return (struct value){FORM_MAP, tag & 0x0fU};
    }
    if (tag < 0xa0) {
        return (struct value){FORM_ARRAY, tag & 0x0fU};
    }
    if (tag < 0xc0) {
        return (struct value){FORM_STR, tag & 0x1fU};
    }
    if (tag >= 0xe0) {
        return signed_value(tag, 8);
    }
    return get_tagged(r, tag);
}

static const unsigned char *get_body(struct reader *r, uint64_t len)
{
    const unsigned char *p = r->at;

    if (r->bad || (uint64_t)(r->end - r->at) < len) {
        r->bad = true;
        return NULL;
    }
    r->at += len;
    return p;
}

/* Skip one value and all that it holds. Every entry takes a byte at least, so the count of what is
 * still to come never exceeds the bytes that are left in a good message. */
static void skip(struct reader *r)
{
    uint64_t left = 1;

    while (left > 0 && !r->bad) {
        struct value v = get_value(r);

        left--;
        if (v.form == FORM_STR || v.form == FORM_BIN || v.form == FORM_OTHER) {
            (void)get_body(r, v.n); /* bad is looked at above */
        } else if (v.form == FORM_ARRAY) {
            left += v.n;
        } else if (v.form == FORM_MAP) {
            left += 2 * v.n;
        }
        r->bad = r->bad || left > (uint64_t)(r->end - r->at);
    }
}

static void *budget_calloc(struct reader *r, size_t n, size_t size)
{
    size_t need = xf_mul_size(n, size);

    if (need > r->budget) {
        r->bad = true;
        return NULL;
    }
    r->budget -= need;
    return xf_arena_calloc(r->arena, n, size);
}

static void get_map(struct reader *r, const struct xf_msg_desc *d, void *m);

static void get_string(struct reader *r, const struct xf_msg_field *f, void *m)
{
    struct value v = get_value(r);
    enum form want = f->type == XF_MSG_T_bin ? FORM_BIN : FORM_STR;
    const unsigned char *p;
    char *copy;
    struct xf_str s;

    if (r->bad || v.form != want || v.n > f->cap) {
        r->bad = true;
        return;
    }
    p = get_body(r, v.n);
    copy = p != NULL ? budget_calloc(r, (size_t)v.n + 1, 1) : NULL;
    if (copy != NULL) {
        memcpy(copy, p, (size_t)v.n);
        s = xf_str_n(copy, (size_t)v.n);
        memcpy(member_mut(f, m), &s, sizeof(s));
    }
}

static void get_list(struct reader *r, const struct xf_msg_field *f, void *m)
{
    struct value v = get_value(r);
    const struct xf_msg_desc *d = f->list();
    uint32_t n = (uint32_t)v.n;
    char *entries;

    if (r->bad || v.form != FORM_ARRAY || v.n > f->cap || v.n > (uint64_t)(r->end - r->at)) {
        r->bad = true;
        return;
    }
    entries = n != 0 ? budget_calloc(r, n, d->size) : NULL;
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        get_map(r, d, entries + i * d->size);
    }
    if (!r->bad) {
        memcpy(member_mut(f, m), &entries, sizeof(entries));
        memcpy((char *)m + f->n_at, &n, sizeof(n));
    }
}

static void get_scalar(struct reader *r, const struct xf_msg_field *f, void *m)
{
    struct value v = get_value(r);
    bool is_int = v.form == FORM_UINT || v.form == FORM_INT;
    uint32_t narrow = (uint32_t)v.n;
    bool flag = v.n != 0;
    double x;

    if (f->type == XF_MSG_T_flag) {
        r->bad = r->bad || v.form != FORM_BOOL;
        memcpy(member_mut(f, m), &flag, sizeof(flag));
    } else if (f->type == XF_MSG_T_f64) {
        memcpy(&x, &v.n, sizeof(x));
        r->bad = r->bad || v.form != FORM_DOUBLE || !isfinite(x) || x < -f->fcap || x > f->fcap;
        memcpy(member_mut(f, m), &x, sizeof(x));
    } else if (f->type == XF_MSG_T_i64) {
        r->bad = r->bad || !is_int || (v.form == FORM_UINT && v.n > INT64_MAX);
        memcpy(member_mut(f, m), &v.n, sizeof(v.n));
    } else {
        r->bad = r->bad || v.form != FORM_UINT || v.n > f->cap;
        if (f->type == XF_MSG_T_u32) {
            memcpy(member_mut(f, m), &narrow, sizeof(narrow));
        } else {
            memcpy(member_mut(f, m), &v.n, sizeof(v.n));
        }
    }
}

static const struct xf_msg_field *find_field(const struct xf_msg_desc *d, struct value key)
{
    for (size_t i = 0; i < d->n && key.form == FORM_UINT; i++) {
        if (d->fields[i].key == key.n) {
            return &d->fields[i];
        }
    }
    return NULL;
}

static void get_map(struct reader *r, const struct xf_msg_desc *d, void *m)
{
    struct value map = get_value(r);
    uint64_t seen = 0;

    r->bad = r->bad || map.form != FORM_MAP;
    for (uint64_t i = 0; i < map.n && !r->bad; i++) {
        struct value key = get_value(r);
        const struct xf_msg_field *f = find_field(d, key);

        if (key.form != FORM_UINT) {
            r->bad = true;
        } else if (f == NULL) {
            skip(r);
        } else if ((seen >> f->key & 1U) != 0) {
            r->bad = true;
        } else {
            seen |= 1ULL << f->key;
            if (is_string(f->type)) {
                get_string(r, f, m);
            } else if (f->type == XF_MSG_T_LIST) {
                get_list(r, f, m);
            } else {
                get_scalar(r, f, m);
            }
        }
    }
    for (size_t i = 0; i < d->n; i++) {
        r->bad = r->bad || (d->fields[i].required && (seen >> d->fields[i].key & 1U) == 0);
    }
}

enum xf_code xf_codec_decode(const struct xf_msg_desc *d,
                             struct xf_str bytes,
                             struct xf_arena *a,
                             void *m,
                             struct xf_err *err)
{
    const unsigned char *start = (const unsigned char *)(bytes.len != 0 ? bytes.ptr : "");
    struct reader r = {start, start + bytes.len, a, BUDGET, false};

    memset(m, 0, d->size);
    get_map(&r, d, m);
    if (r.bad || r.at != r.end) {
        memset(m, 0, d->size);
        return XF_FAIL(
            err, XF_E_PROTO, "message %s of %zu bytes is not understood", d->name, bytes.len);
    }
    return XF_OK;
}

/* ---- comparing and printing ---- */

bool xf_codec_eq(const struct xf_msg_desc *d, const void *a, const void *b)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct xf_msg_field *f = &d->fields[i];

        if (is_string(f->type)) {
            if (!xf_str_eq(get_str(f, a), get_str(f, b))) {
                return false;
            }
        } else if (f->type != XF_MSG_T_LIST) {
            if (get_number(f, a) != get_number(f, b)) {
                return false;
            }
        } else if (list_len(f, a) != list_len(f, b)) {
            return false;
        } else {
            size_t size = f->list()->size;

            for (uint32_t k = 0; k < list_len(f, a); k++) {
                if (!xf_codec_eq(f->list(), list_ptr(f, a) + k * size, list_ptr(f, b) + k * size)) {
                    return false;
                }
            }
        }
    }
    return true;
}

static void put_text(const struct xf_msg_field *f, const void *m, struct xf_buf *out)
{
    switch (f->type) {
    case XF_MSG_T_u32:
    case XF_MSG_T_u64: xf_buf_put_u64(out, get_number(f, m)); break;
    case XF_MSG_T_i64: xf_buf_putf(out, "%lld", (long long)get_number(f, m)); break;
    case XF_MSG_T_f64: xf_buf_putf(out, "%g", get_double(f, m)); break;
    case XF_MSG_T_flag: xf_buf_put_c(out, get_number(f, m) != 0 ? "true" : "false"); break;
    case XF_MSG_T_str: xf_buf_put_escaped(out, xf_str_sub(get_str(f, m), 0, XF_TEXT_MAX)); break;
    case XF_MSG_T_secret: xf_buf_put_c(out, "***"); break;
    case XF_MSG_T_bin: xf_buf_putf(out, "(%zu bytes)", get_str(f, m).len); break;
    case XF_MSG_T_LIST: xf_buf_putf(out, "[%u]", list_len(f, m)); break;
    }
}

void xf_codec_text(const struct xf_msg_desc *d, const void *m, struct xf_buf *out)
{
    const char *sep = "";

    for (size_t i = 0; i < d->n; i++) {
        const struct xf_msg_field *f = &d->fields[i];

        if (f->required || !is_empty(f, m)) {
            xf_buf_putf(out, "%s%s=", sep, f->name);
            put_text(f, m, out);
            sep = " ";
        }
    }
}
