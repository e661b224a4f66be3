/* digest_test.c - checksum vectors, combination, HMAC. */
#include "tests/lib/test.h"
#include "tests/s3d/digest.h"

#include <string.h>

static void check(enum s3d_sum_alg alg, const char *data, const char *base64)
{
    struct s3d_sum s;
    uint8_t out[S3D_SUM_MAX];
    struct xf_buf b = {0};

    s3d_sum_init(&s, alg);
    for (size_t i = 0; i < strlen(data); i++) { /* a byte at a time: no block boundary may matter */
        s3d_sum_update(&s, data + i, 1);
    }
    size_t n = s3d_sum_final(&s, out);
    xf_buf_put_base64(&b, out, n);
    assert_string_equal(b.ptr, base64);
    xf_buf_fini(&b);
}

static void checksums_equal_the_published_values(void **state)
{
    (void)state;
    check(S3D_SUM_CRC32, "123456789", "y/Q5Jg==");
    check(S3D_SUM_CRC32C, "123456789", "4waSgw==");
    check(S3D_SUM_CRC64NVME, "123456789", "rosUhgp5mIg=");
    check(S3D_SUM_SHA1, "123456789", "98O8HYCOBHMq32eZZczDTKeuNEE=");
    check(S3D_SUM_SHA256, "123456789", "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=");
    check(S3D_SUM_CRC32, "Hello world!", "G4UZlQ==");
    check(S3D_SUM_CRC32C, "Hello world!", "e5jnUQ==");
    check(S3D_SUM_CRC64NVME, "Hello world!", "STT34nhLDtw=");
    check(S3D_SUM_CRC32, "", "AAAAAA==");
    check(S3D_SUM_CRC64NVME, "", "AAAAAAAAAAA=");
}

static void whole_blocks_and_single_bytes_agree(void **state)
{
    char data[1000];
    uint32_t c = 0;
    uint64_t d = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (char)(i * 7);
    }
    for (size_t i = 0; i < sizeof(data); i++) {
        c = s3d_crc32c(c, data + i, 1);
        d = s3d_crc64nvme(d, data + i, 1);
    }
    assert_int_equal(c, s3d_crc32c(0, data, sizeof(data)));
    assert_true(d == s3d_crc64nvme(0, data, sizeof(data)));
}

static void crcs_of_parts_combine_to_that_of_the_whole(void **state)
{
    static const enum s3d_sum_alg algs[] = {S3D_SUM_CRC32, S3D_SUM_CRC32C, S3D_SUM_CRC64NVME};
    static const size_t cuts[] = {0, 1, 7, 8, 500, 999, 1000};
    char data[1000];

    (void)state;
    memset(data, 'x', sizeof(data));
    data[3] = 'y';
    for (size_t a = 0; a < 3; a++) {
        for (size_t c = 0; c < sizeof(cuts) / sizeof(cuts[0]); c++) {
            uint64_t crc[3];
            const char *start[3] = {data, data, data + cuts[c]};
            size_t len[3] = {sizeof(data), cuts[c], sizeof(data) - cuts[c]};
            for (int i = 0; i < 3; i++) {
                struct s3d_sum s;
                uint8_t out[S3D_SUM_MAX];
                s3d_sum_init(&s, algs[a]);
                s3d_sum_update(&s, start[i], len[i]);
                crc[i] = s3d_crc_load(out, s3d_sum_final(&s, out));
            }
            assert_true(s3d_crc_combine(algs[a], crc[1], crc[2], len[2]) == crc[0]);
        }
    }
}

static void hmac_equals_rfc_4231(void **state)
{
    uint8_t out[S3D_SHA256_LEN];
    uint8_t want[S3D_SHA256_LEN];
    char key[131];

    (void)state;
    s3d_hmac_sha256(XF_STR_LIT("Jefe"), XF_STR_LIT("what do ya want for nothing?"), out);
    assert_true(xf_hex_decode(
        XF_STR_LIT("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"), want));
    assert_memory_equal(out, want, sizeof(want));
    memset(key, 0xaa, sizeof(key));
    s3d_hmac_sha256(xf_str_n(key, sizeof(key)),
                    XF_STR_LIT("Test Using Larger Than Block-Size Key - Hash Key First"),
                    out);
    assert_true(xf_hex_decode(
        XF_STR_LIT("60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"), want));
    assert_memory_equal(out, want, sizeof(want));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums_equal_the_published_values),
        cmocka_unit_test(whole_blocks_and_single_bytes_agree),
        cmocka_unit_test(crcs_of_parts_combine_to_that_of_the_whole),
        cmocka_unit_test(hmac_equals_rfc_4231),
    };

    return xf_test_run("s3d_digest", tests, NULL, NULL);
}
