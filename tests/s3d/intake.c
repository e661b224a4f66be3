/* intake.c - takes a body in as it arrives. */
#include "tests/s3d/intake.h"

#include "common/base/err.h"
#include "common/base/mem.h"
#include "tests/s3d/gen.h"

void s3d_intake_init(struct s3d_intake *in, const struct s3d_intake_opts *o)
{
    memset(in, 0, sizeof(*in));
    in->want_sha256 = o->want_sha256;
    in->drop = o->drop;
    in->first_cap =
        o->size_hint > 0 && o->size_hint < S3D_BODY_CHUNK ? (size_t)o->size_hint : S3D_BODY_CHUNK;
    (void)MD5_Init(&in->md5);
    if (o->want_sha256) {
        (void)SHA256_Init(&in->sha256);
    }
    s3d_sum_init(&in->sum, o->sum);
}

static void keep(struct s3d_intake *in, uint64_t at, const char *p, size_t len)
{
    if (in->drop) {
        return;
    }
    while (len > 0) {
        size_t i = (size_t)(at / S3D_BODY_CHUNK);
        size_t in_chunk = (size_t)(at % S3D_BODY_CHUNK);
        size_t n = S3D_BODY_CHUNK - in_chunk;
        if (n > len) {
            n = len;
        }
        if (i == in->chunks_len) {
            if (in->chunks_len == in->chunks_cap) {
                in->chunks_cap = in->chunks_cap == 0 ? 8 : in->chunks_cap * 2;
                in->chunks = xf_xrealloc(in->chunks, in->chunks_cap, sizeof(char *));
            }
            in->chunks[in->chunks_len++] = xf_xmalloc(i == 0 ? in->first_cap : S3D_BODY_CHUNK);
        }
        if (i == 0 && in_chunk + n > in->first_cap) { /* more than was announced */
            in->first_cap = S3D_BODY_CHUNK;
            in->chunks[0] = xf_xrealloc(in->chunks[0], S3D_BODY_CHUNK, 1);
        }
        memcpy(in->chunks[i] + in_chunk, p, n);
        at += n;
        p += n;
        len -= n;
    }
}

/* The stream broke off: what was recognised up to `len` becomes kept bytes. */
static void gen_to_mem(struct s3d_intake *in, uint64_t len)
{
    char line[4096];

    in->mode = S3D_INTAKE_MEM;
    for (uint64_t at = 0; at < len && !in->drop;) {
        size_t n = len - at < sizeof(line) ? (size_t)(len - at) : sizeof(line);
        s3d_gen_fill(in->seed, in->off + at, line, n);
        keep(in, at, line, n);
        at += n;
    }
}

static void store(struct s3d_intake *in, uint64_t at, const char *p, size_t len)
{
    if (in->mode == S3D_INTAKE_GEN) {
        size_t same = s3d_gen_match(in->seed, in->off + at, p, len);
        if (same == len) {
            return;
        }
        gen_to_mem(in, at);
    }
    keep(in, at, p, len);
}

static void probe_end(struct s3d_intake *in)
{
    in->mode = s3d_gen_probe(in->probe, in->probe_len, &in->seed, &in->off) ? S3D_INTAKE_GEN
                                                                            : S3D_INTAKE_MEM;
    if (in->mode == S3D_INTAKE_MEM) {
        keep(in, 0, in->probe, in->probe_len);
    }
}

void s3d_intake_feed(struct s3d_intake *in, const void *data, size_t len)
{
    const char *p = data;

    if (len == 0) {
        return;
    }
    (void)MD5_Update(&in->md5, p, len);
    if (in->want_sha256) {
        (void)SHA256_Update(&in->sha256, p, len);
    }
    s3d_sum_update(&in->sum, p, len);
    if (in->drop) {
        in->crc32c = s3d_crc32c(in->crc32c, p, len);
    }
    if (in->mode == S3D_INTAKE_PROBE) {
        size_t n = sizeof(in->probe) - in->probe_len;
        if (n > len) {
            n = len;
        }
        memcpy(in->probe + in->probe_len, p, n);
        in->probe_len += n;
        in->size += n;
        p += n;
        len -= n;
        if (len == 0) {
            return;
        }
        probe_end(in);
    }
    store(in, in->size, p, len);
    in->size += len;
}

static struct s3d_body *make_body(struct s3d_intake *in)
{
    if (in->mode == S3D_INTAKE_PROBE) {
        if (s3d_gen_probe(in->probe, in->probe_len, &in->seed, &in->off)) {
            in->mode = S3D_INTAKE_GEN;
        } else if (!in->drop) {
            return s3d_body_new_mem(in->probe, in->probe_len);
        }
    }
    if (in->mode == S3D_INTAKE_GEN) {
        return s3d_body_new_gen(in->seed, in->off, in->size, false);
    }
    if (in->drop) {
        return s3d_body_new_dropped(in->size, in->crc32c);
    }
    size_t tail = (size_t)(in->size % S3D_BODY_CHUNK);
    if (tail != 0) {
        char **last = &in->chunks[in->chunks_len - 1];
        *last = xf_xrealloc(*last, tail, 1);
    }
    struct s3d_body *b = s3d_body_take_chunks(in->chunks, in->chunks_len, in->size);
    in->chunks = NULL;
    in->chunks_len = 0;
    return b;
}

struct s3d_body *s3d_intake_finish(struct s3d_intake *in, uint8_t md5[S3D_MD5_LEN])
{
    struct s3d_body *b = make_body(in);

    (void)MD5_Final(md5, &in->md5);
    s3d_body_md5_set(b, md5);
    s3d_intake_fini(in);
    return b;
}

void s3d_intake_fini(struct s3d_intake *in)
{
    for (size_t i = 0; i < in->chunks_len; i++) {
        xf_xfree(in->chunks[i]);
    }
    xf_xfree(in->chunks);
    in->chunks = NULL;
    in->chunks_len = 0;
    in->chunks_cap = 0;
}
