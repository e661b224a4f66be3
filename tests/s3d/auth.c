/* auth.c - the check of AWS Signature Version 4. */
#include "tests/s3d/auth.h"

#include "common/base/clock.h"
#include "common/base/map.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct key {
    char *akid;
    char *secret;
    char *token; /* NULL: none */
    bool read_only;
};

struct s3d_keys {
    pthread_rwlock_t lock;
    struct xf_map map;
    _Atomic uint64_t generation; /* of all keys; in the signing key cache */
};

struct s3d_keys *s3d_keys_new(void)
{
    static _Atomic uint64_t generations;
    struct s3d_keys *k = xf_xcalloc(1, sizeof(*k));

    XF_ASSERT(pthread_rwlock_init(&k->lock, NULL) == 0);
    xf_map_init(&k->map);
    atomic_init(&k->generation, (atomic_fetch_add(&generations, 1) + 1) << 32);
    return k;
}

static void key_free(struct key *k)
{
    if (k != NULL) {
        xf_xfree(k->akid);
        xf_xfree(k->secret);
        xf_xfree(k->token);
        xf_xfree(k);
    }
}

void s3d_keys_free(struct s3d_keys *k)
{
    size_t at = 0;

    if (k == NULL) {
        return;
    }
    for (struct key *e = xf_map_next(&k->map, &at); e != NULL; e = xf_map_next(&k->map, &at)) {
        key_free(e);
    }
    xf_map_fini(&k->map);
    (void)pthread_rwlock_destroy(&k->lock); /* nobody else has it */
    xf_xfree(k);
}

enum xf_code s3d_keys_add(struct s3d_keys *k, struct xf_str text, struct xf_err *err)
{
    struct xf_str akid;
    struct xf_str secret;
    struct xf_str field;
    struct xf_str token = XF_STR_EMPTY;
    bool read_only = false;

    if (!xf_str_cut(&text, ':', &akid) || !xf_str_cut(&text, ':', &secret) || akid.len == 0 ||
        secret.len == 0) {
        return XF_FAIL(err, XF_E_INVAL, "a key is AKID:SECRET[:TOKEN][:ro]");
    }
    while (xf_str_cut(&text, ':', &field)) {
        if (xf_str_eq_c(field, "ro")) {
            read_only = true;
        } else if (token.len == 0) {
            token = field;
        } else {
            return XF_FAIL(err, XF_E_INVAL, "a key is AKID:SECRET[:TOKEN][:ro]");
        }
    }
    struct key *e = xf_xcalloc(1, sizeof(*e));
    e->akid = xf_str_dup(akid);
    e->secret = xf_str_dup(secret);
    e->token = token.len > 0 ? xf_str_dup(token) : NULL;
    e->read_only = read_only;
    XF_ASSERT(pthread_rwlock_wrlock(&k->lock) == 0);
    struct key *old = xf_map_take(&k->map, akid);
    (void)xf_map_put(&k->map, xf_str_c(e->akid), e); /* taken out above */
    atomic_fetch_add(&k->generation, 1);
    XF_ASSERT(pthread_rwlock_unlock(&k->lock) == 0);
    key_free(old);
    return XF_OK;
}

bool s3d_keys_remove(struct s3d_keys *k, struct xf_str akid)
{
    XF_ASSERT(pthread_rwlock_wrlock(&k->lock) == 0);
    struct key *old = xf_map_take(&k->map, akid);
    atomic_fetch_add(&k->generation, 1);
    XF_ASSERT(pthread_rwlock_unlock(&k->lock) == 0);
    bool there = old != NULL;
    key_free(old);
    return there;
}

/* ---- what the request claims ---- */

struct claim {
    struct xf_str akid;
    struct xf_str date; /* of the scope */
    struct xf_str region;
    struct xf_str service;
    struct xf_str scope;
    struct xf_str signed_headers;
    struct xf_str signature;
    struct xf_str amz_date;
    struct xf_str token;
    struct xf_str payload;
    uint64_t expires_s;
    bool presigned;
    char dec[1024]; /* decoded values of a presigned query */
    size_t dec_len;
};

static bool fail_with(struct s3d_fail *f, const char *code, const char *message)
{
    *f = (struct s3d_fail){code, message};
    return false;
}

static bool split_credential(struct claim *c, struct xf_str cred, struct s3d_fail *f)
{
    struct xf_str rest = cred;
    struct xf_str last;

    if (!xf_str_cut(&rest, '/', &c->akid)) {
        return fail_with(f, "AuthorizationHeaderMalformed", "The Credential is empty");
    }
    c->scope = rest;
    if (!xf_str_cut(&rest, '/', &c->date) || !xf_str_cut(&rest, '/', &c->region) ||
        !xf_str_cut(&rest, '/', &c->service) || !xf_str_cut(&rest, '/', &last) ||
        !xf_str_eq_c(last, "aws4_request") || rest.len > 0) {
        return fail_with(f,
                         "AuthorizationHeaderMalformed",
                         "the Credential is mal-formed; expecting "
                         "\"<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request\"");
    }
    if (!xf_str_eq_c(c->service, "s3")) {
        return fail_with(f, "AuthorizationHeaderMalformed", "incorrect service, expecting \"s3\"");
    }
    return true;
}

static bool
claim_header(struct claim *c, const struct s3d_http *h, struct xf_str header, struct s3d_fail *f)
{
    struct xf_str cred = XF_STR_EMPTY;
    struct xf_str field;
    struct xf_str rest = header;

    if (!xf_str_starts(header, XF_STR_LIT("AWS4-HMAC-SHA256 "))) {
        return fail_with(
            f, "InvalidRequest", "The authorization mechanism you have provided is not supported");
    }
    rest = xf_str_sub(header, 17, header.len);
    while (xf_str_cut(&rest, ',', &field)) {
        field = xf_str_trim(field);
        size_t eq = xf_str_find(field, '=', 0);
        struct xf_str name = xf_str_sub(field, 0, eq);
        struct xf_str value = eq == SIZE_MAX ? XF_STR_EMPTY : xf_str_sub(field, eq + 1, field.len);
        if (xf_str_eq_c(name, "Credential")) {
            cred = value;
        } else if (xf_str_eq_c(name, "SignedHeaders")) {
            c->signed_headers = value;
        } else if (xf_str_eq_c(name, "Signature")) {
            c->signature = value;
        }
    }
    if (!split_credential(c, cred, f)) {
        return false;
    }
    if (c->signed_headers.len == 0 || c->signature.len != S3D_SIG_LEN) {
        return fail_with(
            f,
            "AuthorizationHeaderMalformed",
            "The authorization header is malformed; SignedHeaders or Signature is missing");
    }
    c->amz_date = s3d_http_value(h, "x-amz-date");
    c->token = s3d_http_value(h, "x-amz-security-token");
    if (!s3d_http_get(h, "x-amz-content-sha256", &c->payload)) {
        return fail_with(
            f, "InvalidRequest", "Missing required header for this request: x-amz-content-sha256");
    }
    return true;
}

/* Value of a presigned query's parameter, decoded into the claim. */
static struct xf_str query_value(struct claim *c, struct xf_str query, const char *name)
{
    struct xf_str part;

    while (xf_str_cut(&query, '&', &part)) {
        size_t eq = xf_str_find(part, '=', 0);
        if (eq == SIZE_MAX || !xf_str_eq_c(xf_str_sub(part, 0, eq), name)) {
            continue;
        }
        XF_AUTO_BUF b = {0};
        xf_buf_init(&b, 0);
        if (!xf_buf_put_unpercent(&b, xf_str_sub(part, eq + 1, part.len), true) ||
            b.len > sizeof(c->dec) - c->dec_len || b.len == 0) {
            return XF_STR_EMPTY;
        }
        char *at = c->dec + c->dec_len;
        memcpy(at, b.ptr, b.len);
        c->dec_len += b.len;
        return (struct xf_str){at, b.len};
    }
    return XF_STR_EMPTY;
}

static bool claim_query(struct claim *c, const struct s3d_http *h, struct s3d_fail *f)
{
    c->presigned = true;
    c->signature = query_value(c, h->query, "X-Amz-Signature");
    c->signed_headers = query_value(c, h->query, "X-Amz-SignedHeaders");
    c->amz_date = query_value(c, h->query, "X-Amz-Date");
    c->token = query_value(c, h->query, "X-Amz-Security-Token");
    c->payload = XF_STR_LIT("UNSIGNED-PAYLOAD");
    if (!xf_str_eq_c(query_value(c, h->query, "X-Amz-Algorithm"), "AWS4-HMAC-SHA256") ||
        !xf_str_u64(query_value(c, h->query, "X-Amz-Expires"), &c->expires_s) || c->expires_s < 1 ||
        c->expires_s > 604800 || c->signature.len != S3D_SIG_LEN || c->signed_headers.len == 0) {
        return fail_with(f,
                         "AuthorizationQueryParametersError",
                         "Query-string authentication version 4 requires valid X-Amz-* parameters");
    }
    return split_credential(c, query_value(c, h->query, "X-Amz-Credential"), f);
}

/* ---- canonical request ---- */

static bool is_unreserved(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

static int upper_hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Is the path what a canonical encoder makes, so that as received is as signed? */
static bool path_is_canonical(struct xf_str p)
{
    for (size_t i = 0; i < p.len; i++) {
        char c = p.ptr[i];
        if (c == '/' || is_unreserved(c)) {
            continue;
        }
        if (c != '%' || i + 2 >= p.len) {
            return false;
        }
        int hi = upper_hex(p.ptr[i + 1]);
        int lo = upper_hex(p.ptr[i + 2]);
        if (hi < 0 || lo < 0 || is_unreserved((char)(hi * 16 + lo))) {
            return false;
        }
        i += 2;
    }
    return true;
}

struct pair {
    size_t name;
    size_t name_len;
    size_t value;
    size_t value_len;
    const char *base;
};

static int cmp_pair(const void *a, const void *b)
{
    const struct pair *x = a;
    const struct pair *y = b;
    int d = xf_str_cmp(xf_str_n(x->base + x->name, x->name_len),
                       xf_str_n(y->base + y->name, y->name_len));

    if (d != 0) {
        return d;
    }
    return xf_str_cmp(xf_str_n(x->base + x->value, x->value_len),
                      xf_str_n(y->base + y->value, y->value_len));
}

/* Decode and encode again, at the end of out. */
static void recode(struct xf_str s, struct xf_buf *tmp, struct xf_buf *out)
{
    xf_buf_reset(tmp);
    if (!xf_buf_put_unpercent(tmp, s, true)) {
        xf_buf_reset(tmp);
        xf_buf_put(tmp, s);
    }
    xf_buf_put_percent(out, xf_buf_view(tmp), false);
}

static void canonical_query(struct xf_str query, bool presigned, struct xf_buf *out)
{
    struct pair pairs[S3D_QUERY_MAX];
    size_t n = 0;
    struct xf_str part;
    XF_AUTO_BUF text = {0};
    XF_AUTO_BUF tmp = {0};

    xf_buf_init(&text, 0);
    xf_buf_init(&tmp, 0);
    while (n < S3D_QUERY_MAX && xf_str_cut(&query, '&', &part)) {
        size_t eq = xf_str_find(part, '=', 0);
        struct xf_str name = xf_str_sub(part, 0, eq);
        if (part.len == 0 || (presigned && xf_str_eq_c(name, "X-Amz-Signature"))) {
            continue;
        }
        struct pair *p = &pairs[n++];
        p->name = text.len;
        recode(name, &tmp, &text);
        p->name_len = text.len - p->name;
        p->value = text.len;
        if (eq != SIZE_MAX) {
            recode(xf_str_sub(part, eq + 1, part.len), &tmp, &text);
        }
        p->value_len = text.len - p->value;
    }
    for (size_t i = 0; i < n; i++) {
        pairs[i].base = text.ptr == NULL ? "" : text.ptr;
    }
    qsort(pairs, n, sizeof(pairs[0]), cmp_pair);
    for (size_t i = 0; i < n; i++) {
        if (i > 0) {
            xf_buf_put_byte(out, '&');
        }
        xf_buf_put_mem(out, pairs[i].base + pairs[i].name, pairs[i].name_len);
        xf_buf_put_byte(out, '=');
        xf_buf_put_mem(out, pairs[i].base + pairs[i].value, pairs[i].value_len);
    }
}

/* A header value with ends stripped and runs of spaces as one. */
static void put_value(struct xf_buf *out, struct xf_str v)
{
    if (v.len > 0 && memmem(v.ptr, v.len, "  ", 2) == NULL) {
        xf_buf_put(out, v);
        return;
    }
    for (size_t i = 0; i < v.len; i++) {
        if (v.ptr[i] != ' ' || i == 0 || v.ptr[i - 1] != ' ') {
            xf_buf_put_byte(out, v.ptr[i]);
        }
    }
}

static bool put_header(const struct s3d_http *h, struct xf_str name, struct xf_buf *out)
{
    bool found = false;

    xf_buf_put(out, name);
    xf_buf_put_byte(out, ':');
    for (size_t i = 0; i < h->n_headers; i++) {
        if (h->headers[i].name.len != name.len || !xf_str_eq_nocase(h->headers[i].name, name)) {
            continue;
        }
        if (found) {
            xf_buf_put_byte(out, ',');
        }
        put_value(out, h->headers[i].value);
        found = true;
    }
    xf_buf_put_byte(out, '\n');
    return found;
}

void s3d_auth_canonical(const struct s3d_http *h,
                        struct xf_str signed_headers,
                        struct xf_str payload,
                        bool presigned,
                        struct xf_buf *out)
{
    struct xf_str rest = signed_headers;
    struct xf_str name;

    xf_buf_put(out, h->method_text);
    xf_buf_put_byte(out, '\n');
    xf_buf_put(out, h->path);
    xf_buf_put_byte(out, '\n');
    if (h->query.len > 0) {
        canonical_query(h->query, presigned, out);
    }
    xf_buf_put_byte(out, '\n');
    while (xf_str_cut(&rest, ';', &name)) {
        (void)put_header(h, name, out); /* one that is missing signs as empty, and does not match */
    }
    xf_buf_put_byte(out, '\n');
    xf_buf_put(out, signed_headers);
    xf_buf_put_byte(out, '\n');
    xf_buf_put(out, payload);
}

/* ---- signing keys ---- */

enum { CACHE_N = 8 };

struct cached {
    uint64_t generation; /* 0: empty */
    char id[160];        /* akid/date/region */
    uint8_t key[S3D_SHA256_LEN];
};

static void derive(const char *secret, const struct claim *c, uint8_t out[S3D_SHA256_LEN])
{
    XF_AUTO_BUF b = {0};
    uint8_t k[S3D_SHA256_LEN];

    xf_buf_init(&b, 0);
    xf_buf_put_c(&b, "AWS4");
    xf_buf_put_c(&b, secret);
    s3d_hmac_sha256(xf_buf_view(&b), c->date, k);
    s3d_hmac_sha256(xf_str_n(k, sizeof(k)), c->region, out);
    s3d_hmac_sha256(xf_str_n(out, sizeof(k)), c->service, k);
    s3d_hmac_sha256(xf_str_n(k, sizeof(k)), XF_STR_LIT("aws4_request"), out);
}

static void
signing_key(uint64_t generation, const char *secret, const struct claim *c, uint8_t *out)
{
    static _Thread_local struct cached cache[CACHE_N];
    static _Thread_local unsigned turn;
    XF_AUTO_BUF id = {0};

    xf_buf_init(&id, 0);
    xf_buf_put(&id, c->akid);
    xf_buf_put_byte(&id, '/');
    xf_buf_put(&id, c->scope);
    if (id.len >= sizeof(cache[0].id)) {
        derive(secret, c, out);
        return;
    }
    for (size_t i = 0; i < CACHE_N; i++) {
        if (cache[i].generation == generation && strcmp(cache[i].id, id.ptr) == 0) {
            memcpy(out, cache[i].key, S3D_SHA256_LEN);
            return;
        }
    }
    derive(secret, c, out);
    struct cached *slot = &cache[turn++ % CACHE_N];
    slot->generation = generation;
    memcpy(slot->id, id.ptr, id.len + 1);
    memcpy(slot->key, out, S3D_SHA256_LEN);
}

static void to_hex(const uint8_t *p, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < len; i++) {
        out[i * 2] = digits[p[i] >> 4];
        out[i * 2 + 1] = digits[p[i] & 15];
    }
    out[len * 2] = '\0';
}

/* ---- checks ---- */

static bool is_signed(struct xf_str list, struct xf_str name)
{
    struct xf_str part;

    while (xf_str_cut(&list, ';', &part)) {
        if (xf_str_eq_nocase(part, name)) {
            return true;
        }
    }
    return false;
}

static bool headers_are_signed(const struct s3d_http *h,
                               const struct claim *c,
                               struct xf_buf *extra,
                               struct s3d_fail *f)
{
    if (!is_signed(c->signed_headers, XF_STR_LIT("host"))) {
        return fail_with(f, "AccessDenied", "The host header must be signed");
    }
    for (size_t i = 0; i < h->n_headers; i++) {
        struct xf_str name = h->headers[i].name;
        if (name.len > 6 && xf_str_eq_nocase(xf_str_sub(name, 0, 6), XF_STR_LIT("x-amz-")) &&
            !is_signed(c->signed_headers, name)) {
            xf_buf_put_c(extra, "<HeadersNotSigned>");
            xf_buf_put(extra, name);
            xf_buf_put_c(extra, "</HeadersNotSigned>");
            return fail_with(f,
                             "AccessDenied",
                             "There were headers present in the request which were not signed");
        }
    }
    return true;
}

static int digit2(const char *p)
{
    return p[0] < '0' || p[0] > '9' || p[1] < '0' || p[1] > '9' ? -1
                                                                : (p[0] - '0') * 10 + p[1] - '0';
}

static bool parse_date(struct xf_str s, int64_t *ms)
{
    if (s.len != 16 || s.ptr[8] != 'T' || s.ptr[15] != 'Z') {
        return false;
    }
    int v[7] = {digit2(s.ptr),
                digit2(s.ptr + 2),
                digit2(s.ptr + 4),
                digit2(s.ptr + 6),
                digit2(s.ptr + 9),
                digit2(s.ptr + 11),
                digit2(s.ptr + 13)};
    for (int i = 0; i < 7; i++) {
        if (v[i] < 0) {
            return false;
        }
    }
    if (v[2] < 1 || v[2] > 12) {
        return false;
    }
    *ms = ((xf_time_days(v[0] * 100 + v[1], v[2], v[3]) * 24 + v[4]) * 3600 + v[5] * 60 + v[6]) *
          1000;
    return true;
}

static bool
check_time(const struct claim *c, int64_t now_ms, struct xf_buf *extra, struct s3d_fail *f)
{
    char now[XF_TIME_TEXT_MAX];
    int64_t at;

    if (!parse_date(c->amz_date, &at) || !xf_str_starts(c->amz_date, c->date)) {
        return fail_with(
            f, "AccessDenied", "AWS authentication requires a valid Date or x-amz-date header");
    }
    xf_time_rfc3339(now_ms, false, now);
    if (c->presigned && now_ms > at + (int64_t)c->expires_s * 1000) {
        xf_buf_putf(extra, "<X-Amz-Expires>%llu</X-Amz-Expires>", (unsigned long long)c->expires_s);
        xf_buf_putf(extra, "<ServerTime>%s</ServerTime>", now);
        return fail_with(f, "AccessDenied", "Request has expired");
    }
    int64_t skew = now_ms > at ? now_ms - at : at - now_ms;
    if (skew > S3D_SKEW_MAX_MS && !(c->presigned && now_ms > at)) {
        xf_buf_put_c(extra, "<RequestTime>");
        xf_buf_put(extra, c->amz_date);
        xf_buf_putf(extra, "</RequestTime><ServerTime>%s</ServerTime>", now);
        xf_buf_putf(
            extra, "<MaxAllowedSkewMilliseconds>%d</MaxAllowedSkewMilliseconds>", S3D_SKEW_MAX_MS);
        return fail_with(
            f,
            "RequestTimeTooSkewed",
            "The difference between the request time and the current time is too large.");
    }
    return true;
}

static bool
check_key(struct s3d_keys *keys, const struct claim *c, struct s3d_auth *out, struct s3d_fail *f)
{
    bool ok = true;

    XF_ASSERT(pthread_rwlock_rdlock(&keys->lock) == 0);
    const struct key *k = xf_map_get(&keys->map, c->akid);
    if (k == NULL) {
        ok = fail_with(f,
                       "InvalidAccessKeyId",
                       "The AWS Access Key Id you provided does not exist in our records.");
    } else if (!xf_str_eq(c->token, xf_str_c(k->token == NULL ? "" : k->token))) {
        ok = fail_with(f, "InvalidToken", "The provided token is malformed or otherwise invalid.");
    } else {
        out->read_only = k->read_only;
        signing_key(atomic_load(&keys->generation), k->secret, c, out->signing_key);
    }
    XF_ASSERT(pthread_rwlock_unlock(&keys->lock) == 0);
    return ok;
}

static bool payload_mode(struct xf_str p, struct s3d_auth *out, struct s3d_fail *f)
{
    static const struct {
        const char *name;
        enum s3d_payload mode;
    } modes[] = {{"UNSIGNED-PAYLOAD", S3D_PAYLOAD_UNSIGNED},
                 {"STREAMING-AWS4-HMAC-SHA256-PAYLOAD", S3D_PAYLOAD_CHUNKS},
                 {"STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", S3D_PAYLOAD_CHUNKS_TRAILER},
                 {"STREAMING-UNSIGNED-PAYLOAD-TRAILER", S3D_PAYLOAD_UNSIGNED_TRAILER}};

    for (size_t i = 0; i < XF_ARRAY_LEN(modes); i++) {
        if (xf_str_eq_c(p, modes[i].name)) {
            out->payload = modes[i].mode;
            return true;
        }
    }
    out->payload = S3D_PAYLOAD_HASH;
    if (p.len != (size_t)S3D_SHA256_LEN * 2 || !xf_hex_decode(p, out->sha256)) {
        return fail_with(f,
                         "InvalidArgument",
                         "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, "
                         "STREAMING-AWS4-HMAC-SHA256-PAYLOAD, or a valid sha256 value.");
    }
    return true;
}

static void put_escaped(struct xf_buf *out, struct xf_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        switch (s.ptr[i]) {
        case '&': xf_buf_put_c(out, "&amp;"); break;
        case '<': xf_buf_put_c(out, "&lt;"); break;
        case '>': xf_buf_put_c(out, "&gt;"); break;
        default: xf_buf_put_byte(out, s.ptr[i]); break;
        }
    }
}

static bool check_signature(const struct s3d_auth_opts *o,
                            const struct s3d_http *h,
                            const struct claim *c,
                            struct s3d_auth *out,
                            struct xf_buf *extra,
                            struct s3d_fail *f)
{
    struct xf_buf *canonical = o->scratch;
    uint8_t digest[S3D_SHA256_LEN];
    char hex[S3D_SIG_LEN + 1];
    char text[512];

    xf_buf_reset(canonical);
    s3d_auth_canonical(h, c->signed_headers, c->payload, c->presigned, canonical);
    s3d_sha256(canonical->ptr, canonical->len, digest);
    to_hex(digest, sizeof(digest), hex);
    int n = snprintf(text,
                     sizeof(text),
                     "AWS4-HMAC-SHA256\n%.*s\n%.*s\n%s",
                     XF_STR_ARG(c->amz_date),
                     XF_STR_ARG(c->scope),
                     hex);
    if (n < 0 || (size_t)n >= sizeof(text)) {
        return fail_with(f, "AuthorizationHeaderMalformed", "The credential scope is too long");
    }
    s3d_hmac_sha256(
        xf_str_n(out->signing_key, sizeof(out->signing_key)), xf_str_n(text, (size_t)n), digest);
    to_hex(digest, sizeof(digest), out->signature);
    if (xf_str_eq_c(c->signature, out->signature) && path_is_canonical(h->path)) {
        return true;
    }
    xf_buf_put_c(extra, "<AWSAccessKeyId>");
    put_escaped(extra, c->akid);
    xf_buf_put_c(extra, "</AWSAccessKeyId><StringToSign>");
    put_escaped(extra, xf_str_n(text, (size_t)n));
    xf_buf_put_c(extra, "</StringToSign><CanonicalRequest>");
    put_escaped(extra, xf_buf_view(canonical));
    xf_buf_put_c(extra, "</CanonicalRequest>");
    return fail_with(
        f,
        "SignatureDoesNotMatch",
        path_is_canonical(h->path)
            ? "The request signature we calculated does not match the signature you provided."
            : "The path is not in canonical encoding, so its signature cannot match.");
}

static bool check_region(const struct s3d_auth_opts *o,
                         const struct claim *c,
                         struct xf_buf *extra,
                         struct s3d_fail *f)
{
    if (o->region == NULL || xf_str_eq_c(c->region, o->region)) {
        return true;
    }
    xf_buf_putf(extra, "<Region>%s</Region>", o->region);
    return fail_with(f,
                     "AuthorizationHeaderMalformed",
                     "The authorization header is malformed; the region is wrong");
}

static void copy_text(char *out, size_t cap, struct xf_str s)
{
    size_t n = s.len < cap - 1 ? s.len : cap - 1;

    memcpy(out, s.ptr, n);
    out[n] = '\0';
}

bool s3d_auth_check(struct s3d_keys *keys,
                    const struct s3d_auth_opts *opts,
                    const struct s3d_http *h,
                    struct s3d_auth *out,
                    struct xf_buf *extra,
                    struct s3d_fail *f)
{
    struct claim c = {0};
    struct xf_str header;

    out->checked = false;
    out->read_only = false;
    out->payload = S3D_PAYLOAD_UNSIGNED;
    if (opts->off) {
        struct xf_str p = s3d_http_value(h, "x-amz-content-sha256");
        return p.len == 0 || payload_mode(p, out, f);
    }
    if (s3d_http_get(h, "authorization", &header)) {
        if (!claim_header(&c, h, header, f)) {
            return false;
        }
    } else if (memmem(h->query.ptr, h->query.len, "X-Amz-Signature=", 16) != NULL) {
        if (!claim_query(&c, h, f)) {
            return false;
        }
    } else {
        return fail_with(f, "AccessDenied", "Access Denied: the request is not signed");
    }
    if (!check_region(opts, &c, extra, f) || !check_time(&c, opts->wall_ms, extra, f) ||
        !check_key(keys, &c, out, f) || !headers_are_signed(h, &c, extra, f) ||
        !check_signature(opts, h, &c, out, extra, f) || !payload_mode(c.payload, out, f)) {
        return false;
    }
    copy_text(out->date, sizeof(out->date), c.amz_date);
    copy_text(out->scope, sizeof(out->scope), c.scope);
    out->checked = true;
    return true;
}

void s3d_auth_chunk(const struct s3d_auth *a,
                    const char *previous,
                    const char *label,
                    const uint8_t sha256[S3D_SHA256_LEN],
                    char *out)
{
    static const char empty[] =
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n";
    char hex[S3D_SIG_LEN + 1];
    uint8_t mac[S3D_SHA256_LEN];
    XF_AUTO_BUF b = {0};

    to_hex(sha256, S3D_SHA256_LEN, hex);
    xf_buf_init(&b, 0);
    xf_buf_putf(&b,
                "%s\n%s\n%s\n%s\n%s%s",
                label,
                a->date,
                a->scope,
                previous,
                strcmp(label, "AWS4-HMAC-SHA256-PAYLOAD") == 0 ? empty : "",
                hex);
    s3d_hmac_sha256(xf_str_n(a->signing_key, sizeof(a->signing_key)), xf_buf_view(&b), mac);
    to_hex(mac, sizeof(mac), out);
}
