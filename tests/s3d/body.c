/* body.c - immutable, shared bytes. */
#include "tests/s3d/body.h"

#include "common/base/err.h"
#include "common/base/mem.h"
#include "tests/s3d/gen.h"

#include <stdatomic.h>

enum kind { KIND_MEM, KIND_GEN, KIND_DROPPED, KIND_CHAIN };

struct piece {
    struct s3d_body *body; /* never a chain */
    uint64_t off;          /* in that body */
    uint64_t start;        /* in the chain */
    uint64_t len;
};

struct s3d_body {
    _Atomic uint32_t refs;
    enum kind kind;
    uint64_t size;
    uint64_t *part_ends; /* layout of a multipart object; NULL if none or uniform */
    size_t parts;
    uint64_t part_size;        /* uniform layout, 0 if none */
    _Atomic uint8_t md5_state; /* 0 unknown, 1 being written, 2 known */
    uint8_t md5[S3D_MD5_LEN];
    bool dropped;
    bool pseudo;
    union {
        struct {
            char **chunks; /* NULL: the bytes follow the struct */
            size_t n;
        } mem;
        struct {
            uint64_t seed;
            uint64_t off;
        } gen;
        uint32_t crc32c;
        struct {
            struct piece *piece;
            size_t n;
        } chain;
    } u;
    char bytes[];
};

static struct s3d_body *body_new(enum kind kind, uint64_t size, size_t extra)
{
    struct s3d_body *b = xf_xmalloc(xf_add_size(sizeof(*b), extra));

    memset(b, 0, sizeof(*b));
    b->kind = kind;
    b->size = size;
    atomic_init(&b->refs, 1);
    return b;
}

struct s3d_body *s3d_body_new_mem(const void *p, size_t len)
{
    struct s3d_body *b = body_new(KIND_MEM, len, len);

    if (len > 0) {
        memcpy(b->bytes, p, len);
    }
    return b;
}

struct s3d_body *s3d_body_take_chunks(char **chunks, size_t n, uint64_t size)
{
    struct s3d_body *b = body_new(KIND_MEM, size, 0);

    b->u.mem.chunks = chunks;
    b->u.mem.n = n;
    return b;
}

struct s3d_body *s3d_body_new_gen(uint64_t seed, uint64_t off, uint64_t size, bool pseudo)
{
    struct s3d_body *b = body_new(KIND_GEN, size, 0);

    b->u.gen.seed = seed;
    b->u.gen.off = off;
    b->pseudo = pseudo;
    return b;
}

struct s3d_body *s3d_body_new_dropped(uint64_t size, uint32_t crc32c)
{
    struct s3d_body *b = body_new(KIND_DROPPED, size, 0);

    b->dropped = size > 0;
    b->u.crc32c = crc32c;
    return b;
}

struct s3d_body *s3d_body_ref(struct s3d_body *b)
{
    if (b != NULL) {
        atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    }
    return b;
}

void s3d_body_unref(struct s3d_body *b)
{
    if (b == NULL || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (b->kind == KIND_MEM && b->u.mem.chunks != NULL) {
        for (size_t i = 0; i < b->u.mem.n; i++) {
            xf_xfree(b->u.mem.chunks[i]);
        }
        xf_xfree(b->u.mem.chunks);
    } else if (b->kind == KIND_CHAIN) {
        for (size_t i = 0; i < b->u.chain.n; i++) {
            s3d_body_unref(b->u.chain.piece[i].body);
        }
        xf_xfree(b->u.chain.piece);
    }
    xf_xfree(b->part_ends);
    xf_xfree(b);
}

uint64_t s3d_body_size(const struct s3d_body *b)
{
    return b->size;
}

bool s3d_body_is_dropped(const struct s3d_body *b)
{
    return b->dropped;
}

bool s3d_body_is_pseudo(const struct s3d_body *b)
{
    return b->pseudo;
}

void s3d_body_set_part_size(struct s3d_body *b, uint64_t part_size)
{
    b->part_size = part_size;
    b->parts = b->size == 0 ? 1 : (size_t)((b->size + part_size - 1) / part_size);
}

size_t s3d_body_parts(const struct s3d_body *b)
{
    return b->parts;
}

bool s3d_body_part(const struct s3d_body *b, size_t part_no, uint64_t *off, uint64_t *len)
{
    if (part_no < 1 || part_no > b->parts) {
        return false;
    }
    if (b->part_ends != NULL) {
        *off = part_no == 1 ? 0 : b->part_ends[part_no - 2];
        *len = b->part_ends[part_no - 1] - *off;
    } else {
        *off = (part_no - 1) * b->part_size;
        *len = b->size - *off < b->part_size ? b->size - *off : b->part_size;
    }
    return true;
}

/* Index of the piece that holds `off`. */
static size_t piece_at(const struct s3d_body *b, uint64_t off)
{
    size_t lo = 0;
    size_t hi = b->u.chain.n;

    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (b->u.chain.piece[mid].start <= off) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* Append range off..off+len of b (any kind) to the pieces at p; gives how many were needed. */
static size_t
pieces_of(struct s3d_body *b, uint64_t off, uint64_t len, uint64_t start, struct piece *p)
{
    size_t n = 0;

    if (len == 0) {
        return 0;
    }
    if (b->kind != KIND_CHAIN) {
        if (p != NULL) {
            *p = (struct piece){s3d_body_ref(b), off, start, len};
        }
        return 1;
    }
    for (size_t i = piece_at(b, off); len > 0; i++) {
        const struct piece *q = &b->u.chain.piece[i];
        uint64_t skip = off - q->start;
        uint64_t take = q->len - skip < len ? q->len - skip : len;
        if (p != NULL) {
            p[n] = (struct piece){s3d_body_ref(q->body), q->off + skip, start, take};
        }
        n++;
        off += take;
        start += take;
        len -= take;
    }
    return n;
}

static struct s3d_body *chain_new(size_t n, uint64_t size)
{
    struct s3d_body *b = body_new(KIND_CHAIN, size, 0);

    b->u.chain.piece = xf_xcalloc(n == 0 ? 1 : n, sizeof(struct piece));
    b->u.chain.n = n;
    return b;
}

static void chain_flags(struct s3d_body *b)
{
    for (size_t i = 0; i < b->u.chain.n; i++) {
        const struct s3d_body *leaf = b->u.chain.piece[i].body;
        XF_ASSERT(leaf != NULL);
        b->dropped = b->dropped || leaf->dropped;
        b->pseudo = b->pseudo || leaf->pseudo;
    }
}

struct s3d_body *s3d_body_slice(struct s3d_body *b, uint64_t off, uint64_t len)
{
    XF_ASSERT(off <= b->size && len <= b->size - off);
    if (off == 0 && len == b->size && b->parts == 0) {
        return s3d_body_ref(b);
    }
    if (b->kind == KIND_GEN) {
        return s3d_body_new_gen(b->u.gen.seed, b->u.gen.off + off, len, b->pseudo);
    }
    if (len == 0) {
        return s3d_body_new_mem("", 0);
    }
    size_t n = pieces_of(b, off, len, 0, NULL);
    struct s3d_body *s = chain_new(n, len);
    (void)pieces_of(b, off, len, 0, s->u.chain.piece); /* counted above */
    chain_flags(s);
    return s;
}

struct s3d_body *s3d_body_join(struct s3d_body *const *parts, size_t n)
{
    uint64_t size = 0;
    size_t pieces = 0;

    for (size_t i = 0; i < n; i++) {
        pieces += pieces_of(parts[i], 0, parts[i]->size, 0, NULL);
        size += parts[i]->size;
    }
    struct s3d_body *b = chain_new(pieces, size);
    b->part_ends = xf_xcalloc(n == 0 ? 1 : n, sizeof(uint64_t));
    b->parts = n;
    size_t at = 0;
    uint64_t start = 0;
    for (size_t i = 0; i < n; i++) {
        at += pieces_of(parts[i], 0, parts[i]->size, start, b->u.chain.piece + at);
        start += parts[i]->size;
        b->part_ends[i] = start;
    }
    chain_flags(b);
    return b;
}

struct s3d_body *s3d_body_corrupt(struct s3d_body *b)
{
    char scratch[S3D_GEN_LINE];
    const char *p;

    if (b->size == 0) {
        return s3d_body_ref(b);
    }
    (void)s3d_body_peek(b, b->size - 1, scratch, sizeof(scratch), &p); /* at least one byte */
    char last = (char)(*p ^ 1);
    struct s3d_body *two[2] = {s3d_body_slice(b, 0, b->size - 1), s3d_body_new_mem(&last, 1)};
    struct s3d_body *joined = s3d_body_join(two, 2);
    s3d_body_unref(two[0]);
    s3d_body_unref(two[1]);
    xf_xfree(joined->part_ends);
    joined->part_ends = NULL;
    joined->parts = 0;
    return joined;
}

static size_t peek_mem(const struct s3d_body *b, uint64_t off, const char **out)
{
    if (b->u.mem.chunks == NULL) {
        *out = b->bytes + off;
        return (size_t)(b->size - off);
    }
    size_t chunk = (size_t)(off / S3D_BODY_CHUNK);
    size_t at = (size_t)(off % S3D_BODY_CHUNK);
    uint64_t left = b->size - off;
    *out = b->u.mem.chunks[chunk] + at;
    return left < S3D_BODY_CHUNK - at ? (size_t)left : S3D_BODY_CHUNK - at;
}

size_t s3d_body_peek(
    const struct s3d_body *b, uint64_t off, char *scratch, size_t scratch_len, const char **out)
{
    uint64_t left = b->size - off;
    size_t n = left < scratch_len ? (size_t)left : scratch_len;

    XF_ASSERT(off < b->size);
    switch (b->kind) {
    case KIND_MEM: return peek_mem(b, off, out);
    case KIND_GEN: s3d_gen_fill(b->u.gen.seed, b->u.gen.off + off, scratch, n); break;
    case KIND_DROPPED: s3d_gen_fill(b->u.crc32c, off, scratch, n); break;
    case KIND_CHAIN: {
        const struct piece *p = &b->u.chain.piece[piece_at(b, off)];
        uint64_t skip = off - p->start;
        size_t got = s3d_body_peek(p->body, p->off + skip, scratch, scratch_len, out);
        return got < p->len - skip ? got : (size_t)(p->len - skip);
    }
    }
    *out = scratch;
    return n;
}

/* Do the two ranges come from the same place, so that they need no look? */
static bool same_origin(const struct s3d_body *a, const struct s3d_body *b)
{
    if (a == b) {
        return true;
    }
    return a->kind == KIND_GEN && b->kind == KIND_GEN && a->u.gen.seed == b->u.gen.seed &&
           a->u.gen.off == b->u.gen.off;
}

/* Leaf body, its offset and the bytes it gives at `off`. */
static const struct s3d_body *
leaf_at(const struct s3d_body *b, uint64_t off, uint64_t *in, uint64_t *len)
{
    if (b->kind != KIND_CHAIN) {
        *in = off;
        *len = b->size - off;
        return b;
    }
    const struct piece *p = &b->u.chain.piece[piece_at(b, off)];
    *in = p->off + (off - p->start);
    *len = p->len - (off - p->start);
    return p->body;
}

static bool
range_equal(const struct s3d_body *a, const struct s3d_body *b, uint64_t off, uint64_t len)
{
    char sa[4096];
    char sb[4096];

    for (uint64_t done = 0; done < len;) {
        const char *pa;
        const char *pb;
        size_t na = s3d_body_peek(a, off + done, sa, sizeof(sa), &pa);
        size_t nb = s3d_body_peek(b, off + done, sb, sizeof(sb), &pb);
        size_t n = na < nb ? na : nb;
        if (n > len - done) {
            n = (size_t)(len - done);
        }
        if (memcmp(pa, pb, n) != 0) {
            return false;
        }
        done += n;
    }
    return true;
}

uint32_t s3d_body_crc32c(const struct s3d_body *b)
{
    char scratch[16384];
    uint32_t crc = 0;

    if (b->kind == KIND_DROPPED) {
        return b->u.crc32c;
    }
    for (uint64_t off = 0; off < b->size;) {
        uint64_t in;
        uint64_t len;
        const struct s3d_body *leaf = leaf_at(b, off, &in, &len);
        if (leaf->kind == KIND_DROPPED && in == 0 && len == leaf->size) {
            crc = (uint32_t)s3d_crc_combine(S3D_SUM_CRC32C, crc, leaf->u.crc32c, len);
            off += len;
            continue;
        }
        const char *p;
        size_t n = s3d_body_peek(b, off, scratch, sizeof(scratch), &p);
        crc = s3d_crc32c(crc, p, n);
        off += n;
    }
    return crc;
}

bool s3d_body_equal(const struct s3d_body *a, const struct s3d_body *b)
{
    if (a->size != b->size) {
        return false;
    }
    if (a->dropped || b->dropped) {
        return s3d_body_crc32c(a) == s3d_body_crc32c(b);
    }
    for (uint64_t off = 0; off < a->size;) {
        uint64_t ia;
        uint64_t ib;
        uint64_t la;
        uint64_t lb;
        const struct s3d_body *x = leaf_at(a, off, &ia, &la);
        const struct s3d_body *y = leaf_at(b, off, &ib, &lb);
        uint64_t n = la < lb ? la : lb;
        bool gen = x->kind == KIND_GEN && y->kind == KIND_GEN;
        if (gen && x->u.gen.seed == y->u.gen.seed && x->u.gen.off + ia == y->u.gen.off + ib) {
            off += n;
            continue;
        }
        if (!(same_origin(x, y) && ia == ib) && !range_equal(a, b, off, n)) {
            return false;
        }
        off += n;
    }
    return true;
}

/* Digest of where pseudo bytes come from: neighbouring ranges of one stream count as one. */
static void pseudo_md5(const struct s3d_body *b, uint8_t out[S3D_MD5_LEN])
{
    uint64_t id[3] = {0, 0, 0}; /* seed, offset, length */
    MD5_CTX c;

    (void)MD5_Init(&c);
    for (uint64_t off = 0; off < b->size;) {
        uint64_t in;
        uint64_t len;
        const struct s3d_body *leaf = leaf_at(b, off, &in, &len);
        uint64_t seed =
            leaf->kind == KIND_GEN ? leaf->u.gen.seed : s3d_mix((uint64_t)(uintptr_t)leaf, 1);
        uint64_t start = leaf->kind == KIND_GEN ? leaf->u.gen.off + in : in;
        if (off > 0 && seed == id[0] && start == id[1] + id[2]) {
            id[2] += len;
        } else {
            (void)MD5_Update(&c, id, sizeof(id));
            id[0] = seed;
            id[1] = start;
            id[2] = len;
        }
        off += len;
    }
    (void)MD5_Update(&c, id, sizeof(id));
    (void)MD5_Final(out, &c);
}

bool s3d_body_md5_known(struct s3d_body *b, uint8_t out[S3D_MD5_LEN])
{
    XF_ASSERT(b != NULL);
    if (atomic_load_explicit(&b->md5_state, memory_order_acquire) == 2) {
        memcpy(out, b->md5, S3D_MD5_LEN);
        return true;
    }
    if (b->pseudo) {
        pseudo_md5(b, out);
        return true;
    }
    if (b->dropped) {
        uint64_t id[2] = {s3d_body_crc32c(b), b->size};
        s3d_md5(id, sizeof(id), out);
        return true;
    }
    return false;
}

void s3d_body_md5_set(struct s3d_body *b, const uint8_t md5[S3D_MD5_LEN])
{
    uint8_t none = 0;

    if (atomic_compare_exchange_strong(&b->md5_state, &none, 1)) {
        memcpy(b->md5, md5, S3D_MD5_LEN);
        atomic_store_explicit(&b->md5_state, 2, memory_order_release);
    }
}

void s3d_body_md5(struct s3d_body *b, uint8_t out[S3D_MD5_LEN])
{
    struct s3d_hash h;

    s3d_hash_init(&h, b, S3D_SUM_NONE);
    while (!s3d_hash_step(&h, UINT64_MAX)) {
    }
    memcpy(out, h.out, S3D_MD5_LEN);
    s3d_hash_fini(&h);
}

void s3d_hash_init(struct s3d_hash *h, struct s3d_body *b, enum s3d_sum_alg sum)
{
    h->body = s3d_body_ref(b);
    h->pos = 0;
    h->md5_known = s3d_body_md5_known(b, h->out);
    (void)MD5_Init(&h->md5);
    s3d_sum_init(&h->sum, sum);
}

bool s3d_hash_step(struct s3d_hash *h, uint64_t n)
{
    char scratch[16384];
    uint64_t size = h->body->size;
    bool need = !h->md5_known || h->sum.alg != S3D_SUM_NONE;

    /* bytes that nobody can afford to read: a sum over them is the sum of nothing */
    if (h->body->pseudo && size > ((uint64_t)1 << 30)) {
        need = false;
    }
    while (need && h->pos < size && n > 0) {
        const char *p;
        size_t got = s3d_body_peek(h->body, h->pos, scratch, sizeof(scratch), &p);
        if (got > n) {
            got = (size_t)n;
        }
        if (!h->md5_known) {
            (void)MD5_Update(&h->md5, p, got);
        }
        s3d_sum_update(&h->sum, p, got);
        h->pos += got;
        n -= got;
    }
    if (need && h->pos < size) {
        return false;
    }
    if (!h->md5_known) {
        (void)MD5_Final(h->out, &h->md5);
        h->md5_known = true;
        s3d_body_md5_set(h->body, h->out);
    }
    return true;
}

void s3d_hash_fini(struct s3d_hash *h)
{
    s3d_body_unref(h->body);
    h->body = NULL;
}
