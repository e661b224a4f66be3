/* hash_test.c - digests against published values, whole and in pieces. */
#include "common/base/hash.h"
#include "tests/lib/test.h"

static struct xf_str b64(struct xf_buf *b, const void *p, size_t len)
{
    xf_buf_reset(b);
    xf_buf_put_base64(b, p, len);
    return xf_buf_view(b);
}

static void digests_match_the_known_answers(void **state)
{
    static const struct {
        const char *data, *sha256, *md5;
    } rows[] = {
        {"", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", "1B2M2Y8AsgTpgAmY7PhCfg=="},
        {"123456789", "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=", "JfnnlDI7RTiF9RgfG2JNCw=="},
        {"hello", "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=", "XUFAKrxLKna5cZ2REBfFkg=="},
    };
    XF_AUTO_BUF b = {0};
    unsigned char out[XF_SHA256_LEN];

    (void)state; /* no fixture */
    xf_buf_init(&b, 0);
    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        xf_sha256(rows[i].data, strlen(rows[i].data), out);
        assert_string_equal(b64(&b, out, XF_SHA256_LEN).ptr, rows[i].sha256);
        xf_md5(rows[i].data, strlen(rows[i].data), out);
        assert_string_equal(b64(&b, out, XF_MD5_LEN).ptr, rows[i].md5);
        XF_AUTO(xf_hash) h = xf_hash_new(XF_HASH_MD5);
        for (const char *p = rows[i].data; *p != '\0'; p++) {
            xf_hash_update(h, p, 1);
        }
        xf_hash_final(h, out);
        assert_string_equal(b64(&b, out, XF_MD5_LEN).ptr, rows[i].md5);
    }
}

static void hmac_matches_rfc4231(void **state)
{
    unsigned char out[XF_SHA256_LEN];
    XF_AUTO_BUF hex = {0};

    (void)state; /* no fixture */
    xf_buf_init(&hex, 0);
    xf_hmac_sha256(XF_STR_LIT("Jefe"), XF_STR_LIT("what do ya want for nothing?"), out);
    xf_buf_put_hex(&hex, out, sizeof(out));
    assert_string_equal(hex.ptr,
                        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_match_the_known_answers),
        cmocka_unit_test(hmac_matches_rfc4231),
    };

    return xf_test_run("hash", tests, NULL, NULL);
}
