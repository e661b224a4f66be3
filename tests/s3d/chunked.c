/* chunked.c - decoder of chunked bodies. */
#include "tests/s3d/chunked.h"

#include "common/base/err.h"

void s3d_chunked_init(struct s3d_chunked *c, const struct s3d_auth *auth, bool trailer_signed)
{
    c->auth = auth;
    c->state = S3D_CHUNK_SIZE;
    c->left = 0;
    c->line_len = 0;
    c->trailers_len = 0;
    c->trailer_signed = trailer_signed;
    c->trailer_signature[0] = '\0';
    c->stated[0] = '\0';
    if (auth != NULL) {
        memcpy(c->previous, auth->signature, sizeof(c->previous));
        (void)SHA256_Init(&c->sha256);
    }
}

static bool bad(struct s3d_fail *fail, const char *code, const char *message)
{
    *fail = (struct s3d_fail){code, message};
    return false;
}

static bool chunk_ends(struct s3d_chunked *c, struct s3d_fail *fail)
{
    uint8_t digest[S3D_SHA256_LEN];
    char want[S3D_SIG_LEN + 1];

    if (c->auth == NULL) {
        return true;
    }
    (void)SHA256_Final(digest, &c->sha256);
    (void)SHA256_Init(&c->sha256);
    s3d_auth_chunk(c->auth, c->previous, "AWS4-HMAC-SHA256-PAYLOAD", digest, want);
    if (strcmp(want, c->stated) != 0) {
        return bad(fail, "SignatureDoesNotMatch", "The signature of a chunk does not match.");
    }
    memcpy(c->previous, want, sizeof(want));
    return true;
}

static bool size_line(struct s3d_chunked *c, struct xf_str line, struct s3d_fail *fail)
{
    struct xf_str ext = line;
    struct xf_str hex;
    uint64_t v = 0;

    if (!xf_str_cut(&ext, ';', &hex) || hex.len == 0 || hex.len > 15) {
        return bad(fail, "InvalidRequest", "A chunk has no size");
    }
    for (size_t i = 0; i < hex.len; i++) {
        char ch = hex.ptr[i];
        uint64_t d = 16;
        int low = ch | 32;
        if (ch >= '0' && ch <= '9') {
            d = (uint64_t)ch - '0';
        } else if (low >= 'a' && low <= 'f') {
            d = (uint64_t)low - 'a' + 10;
        }
        if (d == 16) {
            return bad(fail, "InvalidRequest", "A chunk's size is not a number");
        }
        v = v * 16 + d;
    }
    c->left = v;
    if (c->auth != NULL) {
        struct xf_str sig = XF_STR_LIT("chunk-signature=");
        if (!xf_str_starts(ext, sig) || ext.len != sig.len + S3D_SIG_LEN) {
            return bad(fail, "InvalidRequest", "A chunk has no signature");
        }
        memcpy(c->stated, ext.ptr + sig.len, S3D_SIG_LEN);
        c->stated[S3D_SIG_LEN] = '\0';
    }
    c->state = v == 0 ? S3D_CHUNK_TRAILER : S3D_CHUNK_DATA;
    return v != 0 || chunk_ends(c, fail);
}

static bool trailers_end(struct s3d_chunked *c, struct s3d_fail *fail)
{
    uint8_t digest[S3D_SHA256_LEN];
    char want[S3D_SIG_LEN + 1];

    c->state = S3D_CHUNK_DONE;
    if (c->auth == NULL || !c->trailer_signed) {
        return true;
    }
    s3d_sha256(c->trailers, c->trailers_len, digest);
    s3d_auth_chunk(c->auth, c->previous, "AWS4-HMAC-SHA256-TRAILER", digest, want);
    if (strcmp(want, c->trailer_signature) != 0) {
        return bad(fail, "SignatureDoesNotMatch", "The signature of the trailers does not match.");
    }
    return true;
}

static bool trailer_line(struct s3d_chunked *c, struct xf_str line, struct s3d_fail *fail)
{
    if (line.len == 0) {
        return trailers_end(c, fail);
    }
    size_t colon = xf_str_find(line, ':', 0);
    struct xf_str name = xf_str_sub(line, 0, colon);
    struct xf_str value =
        colon == SIZE_MAX ? XF_STR_EMPTY : xf_str_trim(xf_str_sub(line, colon + 1, line.len));
    if (xf_str_eq_nocase(name, XF_STR_LIT("x-amz-trailer-signature"))) {
        if (value.len != S3D_SIG_LEN) {
            return bad(fail, "InvalidRequest", "The trailers' signature is malformed");
        }
        memcpy(c->trailer_signature, value.ptr, value.len);
        c->trailer_signature[value.len] = '\0';
        return true;
    }
    if (c->trailers_len + name.len + value.len + 2 > sizeof(c->trailers)) {
        return bad(fail, "InvalidRequest", "The trailers are too long");
    }
    for (size_t i = 0; i < name.len; i++) {
        char ch = name.ptr[i];
        c->trailers[c->trailers_len++] = ch >= 'A' && ch <= 'Z' ? (char)(ch + 32) : ch;
    }
    c->trailers[c->trailers_len++] = ':';
    memcpy(c->trailers + c->trailers_len, value.ptr, value.len);
    c->trailers_len += value.len;
    c->trailers[c->trailers_len++] = '\n';
    return true;
}

static bool line_done(struct s3d_chunked *c, struct s3d_fail *fail)
{
    struct xf_str line = {c->line, c->line_len};

    if (line.len > 0 && line.ptr[line.len - 1] == '\r') {
        line.len--;
    }
    c->line_len = 0;
    if (c->state == S3D_CHUNK_SIZE) {
        return size_line(c, line, fail);
    }
    if (c->state == S3D_CHUNK_TRAILER) {
        return trailer_line(c, line, fail);
    }
    if (line.len != 0) {
        return bad(fail, "InvalidRequest", "A chunk is longer than announced");
    }
    c->state = S3D_CHUNK_SIZE;
    return true;
}

/* Data of the present chunk; gives how much was used, or SIZE_MAX when its signature is wrong. */
static size_t data_bytes(
    struct s3d_chunked *c, struct xf_str in, s3d_chunk_sink *sink, void *arg, struct s3d_fail *fail)
{
    size_t n = in.len < c->left ? in.len : (size_t)c->left;

    if (c->auth != NULL) {
        (void)SHA256_Update(&c->sha256, in.ptr, n);
    }
    sink(arg, in.ptr, n);
    c->left -= n;
    if (c->left > 0) {
        return n;
    }
    c->state = S3D_CHUNK_DATA_END;
    return chunk_ends(c, fail) ? n : SIZE_MAX;
}

static bool line_byte(struct s3d_chunked *c, char ch, struct s3d_fail *fail)
{
    if (ch == '\n') {
        return line_done(c, fail);
    }
    if (c->line_len == sizeof(c->line)) {
        return bad(fail, "InvalidRequest", "A chunk line is too long");
    }
    c->line[c->line_len++] = ch;
    return true;
}

bool s3d_chunked_feed(struct s3d_chunked *c,
                      struct xf_str in,
                      size_t *used,
                      s3d_chunk_sink *sink,
                      void *arg,
                      struct s3d_fail *fail)
{
    size_t at = 0;

    while (at < in.len && c->state != S3D_CHUNK_DONE) {
        if (c->state == S3D_CHUNK_DATA) {
            size_t n = data_bytes(c, xf_str_sub(in, at, in.len), sink, arg, fail);
            if (n == SIZE_MAX) {
                return false;
            }
            at += n;
        } else if (!line_byte(c, in.ptr[at++], fail)) {
            return false;
        }
    }
    *used = at;
    return true;
}

struct xf_str s3d_chunked_trailer(const struct s3d_chunked *c, struct xf_str name)
{
    struct xf_str rest = {c->trailers, c->trailers_len};
    struct xf_str line;

    while (xf_str_cut(&rest, '\n', &line)) {
        size_t colon = xf_str_find(line, ':', 0);
        if (colon != SIZE_MAX && xf_str_eq_nocase(xf_str_sub(line, 0, colon), name)) {
            return xf_str_sub(line, colon + 1, line.len);
        }
    }
    return XF_STR_EMPTY;
}
