/*
 * sigv4.c - canonical request, string to sign, signature.
 *
 * OpenSSL's digest and MAC are fetched once and their contexts are kept; the last signing keys stay
 * as keyed MAC contexts, so that a signature costs two SHA-256 runs over the canonical request and
 * one short HMAC.
 */
#include "common/s3/sigv4.h"

#include "common/s3/creds.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#define KEYS_MAX  4   /* cached signing keys: two sides, two days at midnight */
#define PAIRS_MAX 256 /* headers or query parameters of one request */
#define MAC_LEN   32

struct key {
    struct xf_creds *creds; /* owned reference; NULL: free */
    char date[9];
    char region[64];
    char service[24];
    unsigned char bytes[MAC_LEN];
    EVP_MAC_CTX *mac; /* keyed with bytes */
    uint64_t used;
};

struct xf_sigv4 {
    EVP_MD *sha256;
    EVP_MD_CTX *md;
    EVP_MAC *hmac;
    EVP_MAC_CTX *mac; /* for keys that are used once */
    struct key keys[KEYS_MAX];
    uint64_t tick;
    struct xf_buf canonical;
    struct xf_buf signed_names;
    struct xf_buf scratch;
};

struct xf_sigv4 *xf_sigv4_new(void)
{
    struct xf_sigv4 *s = xf_xcalloc(1, sizeof(*s));

    s->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    s->hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    s->md = EVP_MD_CTX_new();
    XF_ASSERT(s->sha256 != NULL && s->hmac != NULL && s->md != NULL);
    s->mac = EVP_MAC_CTX_new(s->hmac);
    XF_ASSERT(s->mac != NULL);
    return s;
}

static void key_drop(struct key *key)
{
    EVP_MAC_CTX_free(key->mac);
    xf_creds_unref(key->creds);
    xf_wipe(key, sizeof(*key));
}

/* Canonical requests hold session tokens. */
static void buf_wipe_fini(struct xf_buf *b)
{
    if (b->ptr != NULL) {
        xf_wipe(b->ptr, b->cap);
    }
    xf_buf_fini(b);
}

void xf_sigv4_free(struct xf_sigv4 *s)
{
    if (s == NULL) {
        return;
    }
    for (size_t i = 0; i < KEYS_MAX; i++) {
        key_drop(&s->keys[i]);
    }
    buf_wipe_fini(&s->canonical);
    buf_wipe_fini(&s->scratch);
    xf_buf_fini(&s->signed_names);
    EVP_MAC_CTX_free(s->mac);
    EVP_MAC_free(s->hmac);
    EVP_MD_CTX_free(s->md);
    EVP_MD_free(s->sha256);
    xf_xfree(s);
}

static enum xf_code
digest(struct xf_sigv4 *s, struct xf_str data, unsigned char out[MAC_LEN], struct xf_err *err)
{
    unsigned len = 0;

    if (EVP_DigestInit_ex2(s->md, s->sha256, NULL) != 1 ||
        EVP_DigestUpdate(s->md, data.ptr, data.len) != 1 ||
        EVP_DigestFinal_ex(s->md, out, &len) != 1 || len != MAC_LEN) {
        return XF_FAIL(err, XF_E_UNSUPPORTED, "SHA-256 failed");
    }
    return XF_OK;
}

static void to_hex(const unsigned char bytes[MAC_LEN], char out[XF_SIGV4_HEX_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < MAC_LEN; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[XF_SIGV4_HEX_LEN] = '\0';
}

enum xf_code xf_sigv4_sha256(struct xf_sigv4 *s,
                             struct xf_str bytes,
                             char out[XF_SIGV4_HEX_LEN + 1],
                             struct xf_err *err)
{
    unsigned char sum[MAC_LEN] = {0};

    XF_TRY(digest(s, bytes, sum, err));
    to_hex(sum, out);
    return XF_OK;
}

static enum xf_code
mac_key(EVP_MAC_CTX *mac, const unsigned char *key, size_t len, struct xf_err *err)
{
    char name[] = "SHA256";
    OSSL_PARAM params[2] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0),
        OSSL_PARAM_construct_end(),
    };

    if (EVP_MAC_init(mac, key, len, params) != 1) {
        return XF_FAIL(err, XF_E_UNSUPPORTED, "HMAC-SHA-256 is not available");
    }
    return XF_OK;
}

/* One MAC with the context's key. */
static enum xf_code mac_run(EVP_MAC_CTX *mac,
                            bool restart,
                            struct xf_str data,
                            unsigned char out[MAC_LEN],
                            struct xf_err *err)
{
    size_t len = 0;

    if ((restart && EVP_MAC_init(mac, NULL, 0, NULL) != 1) ||
        EVP_MAC_update(mac, (const unsigned char *)data.ptr, data.len) != 1 ||
        EVP_MAC_final(mac, out, &len, MAC_LEN) != 1 || len != MAC_LEN) {
        return XF_FAIL(err, XF_E_UNSUPPORTED, "HMAC-SHA-256 failed");
    }
    return XF_OK;
}

static enum xf_code derive(struct xf_sigv4 *s,
                           const struct xf_creds *creds,
                           const struct xf_sigv4_req *req,
                           unsigned char out[MAC_LEN],
                           struct xf_err *err)
{
    struct xf_str secret = xf_creds_secret_key(creds);
    struct xf_str steps[] = {{req->date, 8}, req->region, req->service, XF_STR_LIT("aws4_request")};
    enum xf_code code;

    xf_buf_reset(&s->scratch);
    xf_buf_put_c(&s->scratch, "AWS4");
    xf_buf_put(&s->scratch, secret);
    code = mac_key(s->mac, (const unsigned char *)s->scratch.ptr, s->scratch.len, err);
    xf_wipe(s->scratch.ptr, s->scratch.len);
    XF_TRY(code);
    for (size_t i = 0; i < XF_ARRAY_LEN(steps); i++) {
        XF_TRY(mac_run(s->mac, false, steps[i], out, err));
        XF_TRY(mac_key(s->mac, out, MAC_LEN, err));
    }
    return XF_OK;
}

static bool
key_is(const struct key *key, const struct xf_creds *creds, const struct xf_sigv4_req *req)
{
    return key->creds != NULL && (key->creds == creds || xf_creds_is_same(key->creds, creds)) &&
           memcmp(key->date, req->date, 8) == 0 && xf_str_eq_c(req->region, key->region) &&
           xf_str_eq_c(req->service, key->service);
}

/* The cached signing key of this request's scope, made when absent. */
static enum xf_code key_get(struct xf_sigv4 *s,
                            const struct xf_creds *creds,
                            const struct xf_sigv4_req *req,
                            struct key **out,
                            struct xf_err *err)
{
    struct key *oldest = &s->keys[0];

    s->tick++;
    for (size_t i = 0; i < KEYS_MAX; i++) {
        struct key *key = &s->keys[i];

        if (key_is(key, creds, req)) {
            key->used = s->tick;
            *out = key;
            return XF_OK;
        }
        oldest = key->used < oldest->used ? key : oldest;
    }
    if (req->region.len >= sizeof(oldest->region) || req->service.len >= sizeof(oldest->service)) {
        return XF_FAIL(err, XF_E_INVAL, "region or service name is too long to sign");
    }
    key_drop(oldest);
    XF_TRY(derive(s, creds, req, oldest->bytes, err));
    oldest->mac = EVP_MAC_CTX_new(s->hmac);
    XF_ASSERT(oldest->mac != NULL);
    XF_TRY(mac_key(oldest->mac, oldest->bytes, MAC_LEN, err));
    memcpy(oldest->date, req->date, 8);
    memcpy(oldest->region, req->region.ptr, req->region.len);
    memcpy(oldest->service, req->service.ptr, req->service.len);
    oldest->creds = xf_creds_ref(creds);
    oldest->used = s->tick;
    *out = oldest;
    return XF_OK;
}

/* ---- canonical form ---- */

struct span {
    size_t name, name_len, value, value_len;
};

/* Sort by encoded name, then encoded value. The texts are in `text`. */
static bool span_after(const struct xf_buf *text, const struct span *a, const struct span *b)
{
    struct xf_str an = {text->ptr + a->name, a->name_len};
    struct xf_str bn = {text->ptr + b->name, b->name_len};
    int order = xf_str_cmp(an, bn);

    if (order == 0) {
        order = xf_str_cmp((struct xf_str){text->ptr + a->value, a->value_len},
                           (struct xf_str){text->ptr + b->value, b->value_len});
    }
    return order > 0;
}

void xf_sigv4_query(struct xf_buf *out, const struct xf_sigv4_pair *query, size_t n)
{
    struct span spans[PAIRS_MAX];
    XF_AUTO_BUF text = {0};

    XF_ASSERT(n <= PAIRS_MAX);
    for (size_t i = 0; i < n; i++) {
        struct span span = {.name = text.len};
        size_t at = i;

        xf_buf_put_percent(&text, query[i].name, false);
        span.name_len = text.len - span.name;
        span.value = text.len;
        xf_buf_put_percent(&text, query[i].value, false);
        span.value_len = text.len - span.value;
        for (; at > 0 && span_after(&text, &spans[at - 1], &span); at--) {
            spans[at] = spans[at - 1];
        }
        spans[at] = span;
    }
    for (size_t i = 0; i < n; i++) {
        if (i > 0) {
            xf_buf_put_byte(out, '&');
        }
        xf_buf_put_mem(out, text.ptr + spans[i].name, spans[i].name_len);
        xf_buf_put_byte(out, '=');
        xf_buf_put_mem(out, text.ptr + spans[i].value, spans[i].value_len);
    }
}

/* Ends stripped, inner runs of spaces as one. */
static void put_value(struct xf_buf *out, struct xf_str value)
{
    size_t from = 0;

    value = xf_str_trim(value);
    for (size_t i = 1; i < value.len; i++) {
        if (value.ptr[i] == ' ' && value.ptr[i - 1] == ' ') {
            xf_buf_put_mem(out, value.ptr + from, i - from);
            from = i + 1;
        }
    }
    xf_buf_put_mem(out, value.ptr + from, value.len - from);
}

/* Canonical headers into `out`, their names into s->signed_names. */
static enum xf_code put_headers(struct xf_sigv4 *s,
                                const struct xf_sigv4_req *req,
                                struct xf_buf *out,
                                struct xf_err *err)
{
    const struct xf_sigv4_pair *sorted[PAIRS_MAX];

    if (req->n_headers > PAIRS_MAX) {
        return XF_FAIL(err, XF_E_LIMIT, "request has more than %d headers", PAIRS_MAX);
    }
    for (size_t i = 0; i < req->n_headers; i++) {
        size_t at = i;

        for (; at > 0 && xf_str_cmp(sorted[at - 1]->name, req->headers[i].name) > 0; at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = &req->headers[i];
    }
    xf_buf_reset(&s->signed_names);
    for (size_t i = 0; i < req->n_headers; i++) {
        if (i > 0 && xf_str_eq(sorted[i - 1]->name, sorted[i]->name)) {
            xf_buf_put_byte(out, ',');
        } else {
            if (i > 0) {
                xf_buf_put_byte(out, '\n');
                xf_buf_put_byte(&s->signed_names, ';');
            }
            xf_buf_put(&s->signed_names, sorted[i]->name);
            xf_buf_put(out, sorted[i]->name);
            xf_buf_put_byte(out, ':');
        }
        put_value(out, sorted[i]->value);
    }
    xf_buf_put_c(out, req->n_headers > 0 ? "\n\n" : "\n");
    return XF_OK;
}

static enum xf_code
put_canonical(struct xf_sigv4 *s, const struct xf_sigv4_req *req, struct xf_err *err)
{
    struct xf_buf *out = &s->canonical;

    if (req->n_query > PAIRS_MAX) {
        return XF_FAIL(err, XF_E_LIMIT, "request has more than %d parameters", PAIRS_MAX);
    }
    xf_buf_reset(out);
    xf_buf_put(out, req->method);
    xf_buf_put_byte(out, '\n');
    xf_buf_put(out, req->path.len > 0 ? req->path : XF_STR_LIT("/"));
    xf_buf_put_byte(out, '\n');
    xf_sigv4_query(out, req->query, req->n_query);
    xf_buf_put_byte(out, '\n');
    XF_TRY(put_headers(s, req, out, err));
    xf_buf_put(out, xf_buf_view(&s->signed_names));
    xf_buf_put_byte(out, '\n');
    xf_buf_put(out, req->payload);
    return XF_OK;
}

static void put_scope(struct xf_buf *out, const struct xf_sigv4_req *req)
{
    xf_buf_put_mem(out, req->date, 8);
    xf_buf_put_byte(out, '/');
    xf_buf_put(out, req->region);
    xf_buf_put_byte(out, '/');
    xf_buf_put(out, req->service);
    xf_buf_put_c(out, "/aws4_request");
}

/* The signature of s->canonical. */
static enum xf_code sign_canonical(struct xf_sigv4 *s,
                                   const struct xf_creds *creds,
                                   const struct xf_sigv4_req *req,
                                   char signature[XF_SIGV4_HEX_LEN + 1],
                                   struct xf_err *err)
{
    unsigned char sum[MAC_LEN] = {0};
    char hex[XF_SIGV4_HEX_LEN + 1];
    struct key *key = NULL;

    XF_TRY(key_get(s, creds, req, &key, err));
    XF_TRY(xf_sigv4_sha256(s, xf_buf_view(&s->canonical), hex, err));
    xf_buf_reset(&s->scratch);
    xf_buf_put_c(&s->scratch, "AWS4-HMAC-SHA256\n");
    xf_buf_put_mem(&s->scratch, req->date, XF_SIGV4_DATE_LEN);
    xf_buf_put_byte(&s->scratch, '\n');
    put_scope(&s->scratch, req);
    xf_buf_put_byte(&s->scratch, '\n');
    xf_buf_put_mem(&s->scratch, hex, XF_SIGV4_HEX_LEN);
    XF_TRY(mac_run(key->mac, true, xf_buf_view(&s->scratch), sum, err));
    to_hex(sum, signature);
    return XF_OK;
}

enum xf_code xf_sigv4_sign(struct xf_sigv4 *s,
                           const struct xf_creds *creds,
                           const struct xf_sigv4_req *req,
                           struct xf_buf *authorization,
                           struct xf_sigv4_extra *extra,
                           struct xf_err *err)
{
    char hex[XF_SIGV4_HEX_LEN + 1];

    XF_TRY(put_canonical(s, req, err));
    XF_TRY(sign_canonical(s, creds, req, hex, err));
    xf_buf_reset(authorization);
    xf_buf_put_c(authorization, "AWS4-HMAC-SHA256 Credential=");
    xf_buf_put(authorization, xf_creds_access_key(creds));
    xf_buf_put_byte(authorization, '/');
    put_scope(authorization, req);
    xf_buf_put_c(authorization, ", SignedHeaders=");
    xf_buf_put(authorization, xf_buf_view(&s->signed_names));
    xf_buf_put_c(authorization, ", Signature=");
    xf_buf_put_mem(authorization, hex, XF_SIGV4_HEX_LEN);
    if (extra != NULL) {
        memcpy(extra->signature, hex, sizeof(hex));
    }
    if (extra != NULL && extra->canonical != NULL) {
        xf_buf_reset(extra->canonical);
        xf_buf_put(extra->canonical, xf_buf_view(&s->canonical));
    }
    return XF_OK;
}

enum xf_code xf_sigv4_presign(struct xf_sigv4 *s,
                              const struct xf_creds *creds,
                              const struct xf_sigv4_req *req,
                              unsigned expires_s,
                              struct xf_buf *query,
                              struct xf_err *err)
{
    struct xf_sigv4_pair pairs[PAIRS_MAX];
    struct xf_sigv4_req full = *req;
    struct xf_str token = xf_creds_session_token(creds);
    char hex[XF_SIGV4_HEX_LEN + 1];
    XF_AUTO_BUF credential = {0};
    XF_AUTO_BUF names = {0};
    XF_AUTO_BUF expires = {0};
    size_t n = req->n_query;

    if (expires_s < 1 || expires_s > 604800 || n + 6 > PAIRS_MAX) {
        return XF_FAIL(err, XF_E_INVAL, "a signed URL lives 1 to 604800 s, not %u", expires_s);
    }
    if (n > 0) {
        memcpy(pairs, req->query, n * sizeof(pairs[0]));
    }
    xf_buf_put(&credential, xf_creds_access_key(creds));
    xf_buf_put_byte(&credential, '/');
    put_scope(&credential, req);
    xf_buf_put_u64(&expires, expires_s);
    XF_TRY(put_headers(s, req, &names, err)); /* for s->signed_names */
    xf_buf_reset(&names);
    xf_buf_put(&names, xf_buf_view(&s->signed_names));
    pairs[n++] =
        (struct xf_sigv4_pair){XF_STR_LIT("X-Amz-Algorithm"), XF_STR_LIT("AWS4-HMAC-SHA256")};
    pairs[n++] = (struct xf_sigv4_pair){XF_STR_LIT("X-Amz-Credential"), xf_buf_view(&credential)};
    pairs[n++] = (struct xf_sigv4_pair){XF_STR_LIT("X-Amz-Date"), {req->date, XF_SIGV4_DATE_LEN}};
    pairs[n++] = (struct xf_sigv4_pair){XF_STR_LIT("X-Amz-Expires"), xf_buf_view(&expires)};
    pairs[n++] = (struct xf_sigv4_pair){XF_STR_LIT("X-Amz-SignedHeaders"), xf_buf_view(&names)};
    if (token.len > 0) {
        pairs[n++] = (struct xf_sigv4_pair){XF_STR_LIT("X-Amz-Security-Token"), token};
    }
    full.query = pairs;
    full.n_query = n;
    full.payload = XF_STR_LIT(XF_SIGV4_UNSIGNED);
    XF_TRY(put_canonical(s, &full, err));
    XF_TRY(sign_canonical(s, creds, &full, hex, err));
    xf_sigv4_query(query, pairs, n);
    xf_buf_put_c(query, "&X-Amz-Signature=");
    xf_buf_put_mem(query, hex, XF_SIGV4_HEX_LEN);
    return XF_OK;
}

/* ---- chunks ---- */

enum xf_code xf_sigv4_chunks_init(struct xf_sigv4_chunks *c,
                                  struct xf_sigv4 *s,
                                  const struct xf_creds *creds,
                                  const struct xf_sigv4_req *req,
                                  const char *seed,
                                  struct xf_err *err)
{
    struct key *key = NULL;

    XF_TRY(key_get(s, creds, req, &key, err));
    *c = (struct xf_sigv4_chunks){0};
    memcpy(c->key, key->bytes, sizeof(c->key));
    memcpy(c->prev, seed, XF_SIGV4_HEX_LEN);
    memcpy(c->date, req->date, XF_SIGV4_DATE_LEN);
    xf_buf_reset(&s->scratch);
    put_scope(&s->scratch, req);
    XF_ASSERT(s->scratch.len < sizeof(c->scope)); /* key_get() bounded region and service */
    memcpy(c->scope, s->scratch.ptr, s->scratch.len);
    return XF_OK;
}

void xf_sigv4_chunks_fini(struct xf_sigv4_chunks *c)
{
    xf_wipe(c, sizeof(*c));
}

/* Sign `kind`, date, scope, previous signature and the given lines; the result is the next
 * previous. */
static enum xf_code chain(struct xf_sigv4_chunks *c,
                          struct xf_sigv4 *s,
                          const char *kind,
                          const char *lines,
                          struct xf_err *err)
{
    unsigned char sum[MAC_LEN] = {0};

    xf_buf_reset(&s->scratch);
    xf_buf_put_c(&s->scratch, kind);
    xf_buf_put_c(&s->scratch, c->date);
    xf_buf_put_byte(&s->scratch, '\n');
    xf_buf_put_c(&s->scratch, c->scope);
    xf_buf_put_byte(&s->scratch, '\n');
    xf_buf_put_c(&s->scratch, c->prev);
    xf_buf_put_byte(&s->scratch, '\n');
    xf_buf_put_c(&s->scratch, lines);
    XF_TRY(mac_key(s->mac, c->key, MAC_LEN, err));
    XF_TRY(mac_run(s->mac, false, xf_buf_view(&s->scratch), sum, err));
    to_hex(sum, c->prev);
    return XF_OK;
}

enum xf_code xf_sigv4_chunk(struct xf_sigv4_chunks *c,
                            struct xf_sigv4 *s,
                            struct xf_str data,
                            struct xf_buf *out,
                            struct xf_err *err)
{
    char lines[2 * XF_SIGV4_HEX_LEN + 2] = XF_SIGV4_EMPTY_SHA256 "\n";

    XF_TRY(xf_sigv4_sha256(s, data, lines + XF_SIGV4_HEX_LEN + 1, err));
    XF_TRY(chain(c, s, "AWS4-HMAC-SHA256-PAYLOAD\n", lines, err));
    xf_buf_putf(out, "%zx;chunk-signature=%s\r\n", data.len, c->prev);
    return XF_OK;
}

enum xf_code xf_sigv4_trailer(struct xf_sigv4_chunks *c,
                              struct xf_sigv4 *s,
                              struct xf_str lines,
                              char out[XF_SIGV4_HEX_LEN + 1],
                              struct xf_err *err)
{
    char hex[XF_SIGV4_HEX_LEN + 1];

    XF_TRY(xf_sigv4_sha256(s, lines, hex, err));
    XF_TRY(chain(c, s, "AWS4-HMAC-SHA256-TRAILER\n", hex, err));
    memcpy(out, c->prev, sizeof(c->prev));
    return XF_OK;
}

static uint64_t hex_digits(uint64_t n)
{
    uint64_t digits = 1;

    while (n > 15) {
        n /= 16;
        digits++;
    }
    return digits;
}

/* hex ";chunk-signature=" signature CRLF data CRLF */
static uint64_t framed(uint64_t n)
{
    return hex_digits(n) + 17 + XF_SIGV4_HEX_LEN + 2 + n + 2;
}

uint64_t xf_sigv4_chunked_size(uint64_t size, uint64_t chunk)
{
    uint64_t rest = size % chunk;

    return size / chunk * framed(chunk) + (rest > 0 ? framed(rest) : 0) + framed(0);
}
