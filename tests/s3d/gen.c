/* gen.c - made-up bytes, keys and sizes. */
#include "tests/s3d/gen.h"

#include "common/base/mem.h"

#define MAGIC UINT64_C(0x7366657833643a31)

uint64_t s3d_mix(uint64_t a, uint64_t b)
{
    uint64_t x = a + b * UINT64_C(0x9e3779b97f4a7c15) + UINT64_C(0x2545f4914f6cdd1d);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t rotate(uint64_t x, int n)
{
    return (x << n) | (x >> (64 - n));
}

static inline void line_make(uint64_t seed, uint64_t n, uint64_t w[8])
{
    uint64_t x = s3d_mix(seed, n);

    w[0] = seed ^ MAGIC;
    w[1] = n ^ rotate(seed, 17);
    w[2] = x;
    w[3] = x * UINT64_C(0xd6e8feb86659fd93);
    w[4] = rotate(x, 21) * UINT64_C(0xa0761d6478bd642f);
    w[5] = w[3] ^ (w[4] >> 29);
    w[6] = rotate(w[4], 37) + x;
    w[7] = w[5] * UINT64_C(0xe7037ed1a0b428db);
}

void s3d_gen_fill(uint64_t seed, uint64_t off, void *out, size_t len)
{
    uint8_t *p = out;
    uint64_t w[8];

    while (len > 0) {
        uint64_t line = off / S3D_GEN_LINE;
        size_t at = (size_t)(off % S3D_GEN_LINE);
        size_t n = S3D_GEN_LINE - at;
        if (n > len) {
            n = len;
        }
        line_make(seed, line, w);
        memcpy(p, (const uint8_t *)w + at, n);
        p += n;
        off += n;
        len -= n;
    }
}

size_t s3d_gen_match(uint64_t seed, uint64_t off, const void *data, size_t len)
{
    const uint8_t *p = data;
    size_t done = 0;
    uint64_t w[8];

    while (done < len) {
        size_t at = (size_t)(off % S3D_GEN_LINE);
        size_t n = S3D_GEN_LINE - at;
        if (n > len - done) {
            n = len - done;
        }
        line_make(seed, off / S3D_GEN_LINE, w);
        if (memcmp(p + done, (const uint8_t *)w + at, n) != 0) {
            break;
        }
        done += n;
        off += n;
    }
    return done;
}

bool s3d_gen_probe(const void *data, size_t len, uint64_t *seed, uint64_t *off)
{
    const uint8_t *p = data;

    if (len < S3D_GEN_PROBE_MIN) {
        return false;
    }
    for (size_t k = 0; k < S3D_GEN_LINE; k++) {
        uint64_t w[3];
        memcpy(w, p + k, sizeof(w));
        uint64_t s = w[0] ^ MAGIC;
        uint64_t n = w[1] ^ rotate(s, 17);
        if (w[2] != s3d_mix(s, n) || (k > 0 && n == 0) || n > UINT64_MAX / S3D_GEN_LINE) {
            continue;
        }
        *seed = s;
        *off = n * S3D_GEN_LINE - k;
        if (s3d_gen_match(s, *off, p, len) == len) {
            return true;
        }
    }
    return false;
}

static const char *const pattern_names[S3D_PATTERN_N] = {
    "flat", "hex", "dirs", "dates", "skew", "long", "utf-8"};

const char *s3d_pattern_name(enum s3d_pattern p)
{
    return pattern_names[p];
}

bool s3d_pattern_parse(struct xf_str s, enum s3d_pattern *out)
{
    for (int i = 0; i < S3D_PATTERN_N; i++) {
        if (xf_str_eq_c(s, pattern_names[i])) {
            *out = (enum s3d_pattern)i;
            return true;
        }
    }
    return false;
}

bool s3d_size_parse(struct xf_str s, uint64_t *out)
{
    static const struct {
        const char *name;
        uint64_t factor;
    } units[] = {{"KiB", 1024},
                 {"MiB", UINT64_C(1) << 20},
                 {"GiB", UINT64_C(1) << 30},
                 {"TiB", UINT64_C(1) << 40},
                 {"B", 1}};
    uint64_t factor = 1;

    for (size_t i = 0; i < XF_ARRAY_LEN(units); i++) {
        if (xf_str_ends(s, xf_str_c(units[i].name))) {
            factor = units[i].factor;
            s.len -= strlen(units[i].name);
            break;
        }
    }
    uint64_t v;
    return xf_str_u64(s, &v) && !__builtin_mul_overflow(v, factor, out) && *out <= INT64_MAX;
}

bool s3d_sizes_parse(struct xf_str s, struct s3d_sizes *out)
{
    size_t dash = xf_str_find(s, '-', 0);

    if (dash == SIZE_MAX) {
        out->max = 0;
        if (!s3d_size_parse(s, &out->min)) {
            return false;
        }
        out->max = out->min;
        return true;
    }
    return s3d_size_parse(xf_str_sub(s, 0, dash), &out->min) &&
           s3d_size_parse(xf_str_sub(s, dash + 1, s.len), &out->max) && out->min <= out->max;
}

static enum xf_code synth_option(struct s3d_synth *out, struct xf_str f, struct xf_err *err)
{
    struct xf_str rest = f;
    struct xf_str name;

    if (!xf_str_cut(&rest, '=', &name)) {
        return XF_FAIL(err, XF_E_INVAL, "empty field");
    }
    if (xf_str_eq_c(name, "seed") && xf_str_u64(rest, &out->seed)) {
        return XF_OK;
    }
    if (xf_str_eq_c(name, "part") && s3d_size_parse(rest, &out->part_size) && out->part_size > 0) {
        return XF_OK;
    }
    if (xf_str_eq_c(name, "prefix")) {
        out->prefix = rest;
        return XF_OK;
    }
    return XF_FAIL(err,
                   XF_E_INVAL,
                   "unknown or bad option '%.*s': seed=N, part=SIZE, prefix=P",
                   XF_STR_ARG(f));
}

enum xf_code s3d_synth_parse(struct xf_str text, struct s3d_synth *out, struct xf_err *err)
{
    struct xf_str rest = text;
    struct xf_str count;
    struct xf_str size;
    struct xf_str pattern;
    struct xf_str f;

    memset(out, 0, sizeof(*out));
    if (!xf_str_cut(&rest, ':', &out->bucket) || !xf_str_cut(&rest, ':', &count) ||
        !xf_str_cut(&rest, ':', &size) || !xf_str_cut(&rest, ':', &pattern)) {
        return XF_FAIL(err, XF_E_INVAL, "not of the form BUCKET:COUNT:SIZE:PATTERN");
    }
    if (!xf_str_u64(count, &out->count) || out->count > 1000000000U) {
        return XF_FAIL(err, XF_E_INVAL, "bad count '%.*s'", XF_STR_ARG(count));
    }
    if (!s3d_sizes_parse(size, &out->sizes)) {
        return XF_FAIL(err, XF_E_INVAL, "bad size '%.*s': as 1KiB or 0-4KiB", XF_STR_ARG(size));
    }
    if (!s3d_pattern_parse(pattern, &out->pattern)) {
        return XF_FAIL(err,
                       XF_E_INVAL,
                       "unknown pattern '%.*s': flat, hex, dirs, dates, skew, long, utf-8",
                       XF_STR_ARG(pattern));
    }
    while (xf_str_cut(&rest, ':', &f)) {
        XF_TRY(synth_option(out, f, err));
    }
    return XF_OK;
}

static void key_long(uint64_t n, struct xf_buf *out)
{
    for (unsigned i = 0; i < 9; i++) {
        xf_buf_putf(out, "level-%u-", i);
        for (unsigned k = 0; k < 11; k++) {
            uint64_t word = s3d_mix(i < 8 ? n / 64 : n, (uint64_t)i * 16 + k);
            xf_buf_putf(out, "%08x", (unsigned)(word >> 32));
        }
        xf_buf_put_byte(out, '/');
    }
    xf_buf_putf(out, "%09llu", (unsigned long long)n);
}

static void key_utf8(uint64_t n, struct xf_buf *out)
{
    static const char *const words[] = {"ключ",
                                        "日本語",
                                        "한국",
                                        "emoji\xf0\x9f\x98\x80",
                                        "e\xcc\x81-nfd",
                                        "\xc3\xa9-nfc",
                                        "a b",
                                        "a+b",
                                        "100%",
                                        "it's (1)!",
                                        "a&b=c",
                                        "\xd8\xb9\xd8\xb1\xd8\xa8",
                                        "q?x#y",
                                        "\xef\xbf\xbd"};
    size_t count = XF_ARRAY_LEN(words);

    xf_buf_putf(
        out, "%s/%s/%llu.txt", words[n % count], words[(n / count) % count], (unsigned long long)n);
}

static void key_dates(uint64_t n, struct xf_buf *out)
{
    unsigned hour = (unsigned)(n / 40);
    unsigned day = hour / 24;

    xf_buf_putf(out,
                "year=%04u/month=%02u/day=%02u/h=%02u/part-%012llu.gz",
                2020U + day / 336U,
                1U + day / 28U % 12U,
                1U + day % 28U,
                hour % 24U,
                (unsigned long long)n);
}

void s3d_synth_key(const struct s3d_synth *s, uint64_t n, struct xf_buf *out)
{
    unsigned long long v = n;

    xf_buf_put(out, s->prefix);
    switch (s->pattern) {
    case S3D_PATTERN_FLAT: xf_buf_putf(out, "obj-%012llu", v); break;
    case S3D_PATTERN_HEX:
        xf_buf_putf(out, "%016llx.bin", (unsigned long long)s3d_mix(s->seed ^ MAGIC, n));
        break;
    case S3D_PATTERN_DIRS:
        xf_buf_putf(out, "d%03llu/s%02llu/file-%09llu.dat", v / 20000, v / 200 % 100, v);
        break;
    case S3D_PATTERN_DATES: key_dates(n, out); break;
    case S3D_PATTERN_SKEW:
        if (n % 10 != 0) {
            xf_buf_putf(out, "hot/%012llu", v);
        } else {
            xf_buf_putf(out, "p%02llu/%012llu", v / 10 % 100, v);
        }
        break;
    case S3D_PATTERN_LONG: key_long(n, out); break;
    case S3D_PATTERN_UTF8: key_utf8(n, out); break;
    case S3D_PATTERN_N: break;
    }
}

uint64_t s3d_synth_size(const struct s3d_synth *s, uint64_t n)
{
    uint64_t span = s->sizes.max - s->sizes.min;

    return span == 0 ? s->sizes.min : s->sizes.min + s3d_mix(s->seed + 77, n) % (span + 1);
}

uint64_t s3d_synth_seed(const struct s3d_synth *s, uint64_t n)
{
    return s3d_mix(s->seed + xf_str_hash(s->bucket, 5), n);
}
