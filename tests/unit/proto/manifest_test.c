/*
 * manifest_test.c - caps at their edge, when a manifest is full, damage, and how small it is.
 */
#include "common/base/arena.h"
#include "proto/manifest.h"
#include "proto/pack.h"
#include "tests/lib/test.h"

static struct xf_object object(const char *key)
{
    return (struct xf_object){.key = xf_str_c(key), .size = 1};
}

static enum xf_code add(struct xf_manifest_enc *e, const struct xf_object *o)
{
    struct xf_err err = {0};

    return xf_manifest_add(e, o, &err);
}

static void fields_at_their_caps_are_taken_and_one_more_is_not(void **state)
{
    static char text[XF_OBJECT_KEY_MAX + 1];
    struct xf_manifest_enc e;
    struct xf_object o = object("k");

    (void)state;
    memset(text, 'x', sizeof(text));
    xf_manifest_enc_init(&e, 0);
    o.key = xf_str_n(text, XF_OBJECT_KEY_MAX);
    assert_int_equal(add(&e, &o), XF_OK);
    o.key.len++;
    assert_int_equal(add(&e, &o), XF_E_INVAL);
    o.key.len = 0;
    assert_int_equal(add(&e, &o), XF_E_INVAL);
    o = object("k");
    o.etag = xf_str_n(text, XF_ETAG_MAX);
    o.storage_class = xf_str_n(text, XF_OBJECT_CLASS_MAX);
    o.version_id = xf_str_n(text, XF_OBJECT_VERSION_MAX);
    o.attempts = XF_OBJECT_ATTEMPTS_MAX;
    assert_int_equal(add(&e, &o), XF_OK);
    o.etag.len++;
    assert_int_equal(add(&e, &o), XF_E_INVAL);
    o.etag.len--;
    o.storage_class.len++;
    assert_int_equal(add(&e, &o), XF_E_INVAL);
    o.storage_class.len--;
    o.version_id.len++;
    assert_int_equal(add(&e, &o), XF_E_INVAL);
    o.version_id.len--;
    o.attempts++;
    assert_int_equal(add(&e, &o), XF_E_INVAL);
    assert_int_equal(e.n_objects, 2); /* a refusal added nothing */
    xf_manifest_enc_fini(&e);
}

static void manifests_of_version_1_are_read(void **state)
{
    static const char bytes[] = "M\x01\x00\x01" /* source 0, one object */
                                "\x00\x01k\x05\x00\x00\x00\x00\x03";
    struct xf_manifest m;
    struct xf_err err;

    (void)state;
    assert_int_equal(xf_manifest_decode(xf_str_n(bytes, sizeof(bytes) - 1), &m, &err), XF_OK);
    assert_int_equal(m.n, 1);
    assert_int_equal(m.objects[0].size, 5);
    assert_int_equal(m.objects[0].attempts, 3);
    assert_false(m.objects[0].is_left);
    xf_manifest_fini(&m);
}

static void thousand_objects_fill_it_and_reset_empties_it(void **state)
{
    struct xf_manifest_enc e;
    XF_AUTO_BUF b = {0};
    struct xf_manifest m;
    struct xf_err err = {0};
    char key[16] = "a0000";

    (void)state;
    xf_buf_init(&b, 0);
    xf_manifest_enc_init(&e, 3);
    for (int i = 0; i < XF_MANIFEST_MAX; i++) {
        struct xf_object o = object(key);

        key[4] = (char)('0' + i % 10);
        assert_int_equal(add(&e, &o), XF_OK);
    }
    assert_int_equal(add(&e, &(struct xf_object){.key = XF_STR_LIT("z")}), XF_E_LIMIT);
    xf_manifest_finish(&e, &b);
    assert_int_equal(xf_manifest_decode(xf_buf_view(&b), &m, &err), XF_OK);
    assert_int_equal(m.n, XF_MANIFEST_MAX);
    xf_manifest_fini(&m);
    xf_manifest_enc_reset(&e, 4);
    xf_buf_reset(&b);
    xf_manifest_finish(&e, &b);
    assert_int_equal(xf_manifest_decode(xf_buf_view(&b), &m, &err), XF_OK);
    assert_int_equal(m.n, 0);
    assert_int_equal(m.source_no, 4);
    xf_manifest_fini(&m);
    xf_manifest_enc_fini(&e);
}

static void manifest_of_the_longest_fields_stays_within_its_bytes(void **state)
{
    static char text[XF_OBJECT_KEY_MAX];
    struct xf_manifest_enc e;
    XF_AUTO_BUF b = {0};
    struct xf_manifest m;
    struct xf_err err = {0};
    uint32_t n = 0;
    enum xf_code rc = XF_OK;

    (void)state;
    xf_buf_init(&b, XF_MANIFEST_BYTES_MAX);
    xf_manifest_enc_init(&e, XF_SOURCE_NO_MAX);
    while (rc == XF_OK) {
        struct xf_object o = {.key = xf_str_n(text, sizeof(text)),
                              .etag = xf_str_n(text, XF_ETAG_MAX),
                              .version_id = xf_str_n(text, XF_OBJECT_VERSION_MAX),
                              .size = UINT64_MAX / 4096,
                              .mtime_ms = n % 2 == 0 ? INT64_MIN : INT64_MAX};

        memset(text, 'a' + (int)(n % 20), sizeof(text)); /* nothing is shared */
        rc = add(&e, &o);
        n += rc == XF_OK ? 1 : 0;
    }
    assert_int_equal(rc, XF_E_LIMIT);
    assert_int_equal(n, XF_MANIFEST_MAX); /* the count is what ends it */
    xf_manifest_finish(&e, &b);
    assert_false(b.full);
    assert_int_equal(xf_manifest_decode(xf_buf_view(&b), &m, &err), XF_OK);
    assert_int_equal(m.n, n);
    xf_manifest_fini(&m);
    xf_manifest_enc_fini(&e);
}

static void etags_come_back_as_they_were_listed(void **state)
{
    static const char *const etags[] = {
        "",
        "d41d8cd98f00b204e9800998ecf8427e",
        "D41D8CD98F00B204E9800998ECF8427E",
        "d41d8cd98f00b204e9800998ecf8427e-1",
        "d41d8cd98f00b204e9800998ecf8427e-10000",
        "d41d8cd98f00b204e9800998ecf8427e-0",
        "d41d8cd98f00b204e9800998ecf8427e-01",
        "d41d8cd98f00b204e9800998ecf8427e-",
        "d41d8cd98f00b204e9800998ecf8427e-9999999999",
        "d41d8cd98f00b204e9800998ecf8427e-1x",
        "d41d8cd98f00b204e9800998ecf8427",
        "d41d8cd98f00b204e9800998ecf8427e0",
        "\"quoted\"",
        "W/\"weak\"",
    };
    struct xf_manifest_enc e;
    XF_AUTO_BUF b = {0};
    struct xf_manifest m;
    struct xf_err err = {0};

    (void)state;
    xf_buf_init(&b, 0);
    xf_manifest_enc_init(&e, 0);
    for (size_t i = 0; i < XF_ARRAY_LEN(etags); i++) {
        struct xf_object o = object("k");

        o.etag = xf_str_c(etags[i]);
        assert_int_equal(add(&e, &o), XF_OK);
    }
    xf_manifest_finish(&e, &b);
    assert_int_equal(xf_manifest_decode(xf_buf_view(&b), &m, &err), XF_OK);
    for (size_t i = 0; i < XF_ARRAY_LEN(etags); i++) {
        assert_true(xf_str_eq_c(m.objects[i].etag, etags[i]));
    }
    xf_manifest_fini(&m);
    xf_manifest_enc_fini(&e);
}

static void thousand_usual_objects_take_less_than_50_bytes_each(void **state)
{
    struct xf_manifest_enc e;
    XF_AUTO_BUF b = {0};
    XF_AUTO_BUF key = {0};

    (void)state;
    xf_buf_init(&b, 0);
    xf_buf_init(&key, 0);
    xf_manifest_enc_init(&e, 0);
    for (unsigned i = 0; i < XF_MANIFEST_MAX; i++) {
        struct xf_object o = {.size = 1000000 + i * 77777,
                              .etag = XF_STR_LIT("9b2cf535f27731c974343645a3985328"),
                              .mtime_ms = 1767225600000 + (int64_t)i * 1000,
                              .storage_class = XF_STR_LIT("STANDARD")};

        xf_buf_reset(&key);
        xf_buf_putf(&key, "logs/2026/01/17/host-%03u/access-%06u.log.gz", i / 50, i);
        o.key = xf_buf_view(&key);
        assert_int_equal(add(&e, &o), XF_OK);
    }
    xf_manifest_finish(&e, &b);
    assert_true(b.len < (size_t)XF_MANIFEST_MAX * 50);
    xf_manifest_enc_fini(&e);
}

static void damaged_manifests_are_refused_and_leave_nothing(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } bad[] = {
        {"", 0},
        {"M", 1},
        {"X\x01\x00\x00", 4},
        {"M\x03\x00\x00", 4},                                   /* another version */
        {"M\x01\x00\xe9\x07", 5},                               /* 1001 objects */
        {"M\x01\x80\x80\x04\x00", 6},                           /* source 65536 */
        {"M\x00\x00\x00", 4},                                   /* nor that */
        {"M\x01\x00\x01", 4},                                   /* an object that is not there */
        {"M\x01\x00\x00\x00", 5},                               /* a byte too many */
        {"M\x01\x80\x00\x00", 5},                               /* a number longer than needed */
        {"M\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00", 12},  /* an empty key */
        {"M\x01\x00\x01\x01\x01k\x00\x00\x00\x00\x00\x00", 13}, /* shares with nothing */
        {"M\x01\x00\x01\x00\x01k\x00\x04\x00\x00\x00\x00", 13}, /* unknown form of etag */
        {"M\x01\x00\x01\x00\x01k\x00\x00\x00\x02\x00\x00", 13}, /* class 2 of none */
    };
    struct xf_manifest m;
    struct xf_err err = {0};

    (void)state;
    for (size_t i = 0; i < XF_ARRAY_LEN(bad); i++) {
        assert_int_equal(xf_manifest_decode(xf_str_n(bad[i].bytes, bad[i].len), &m, &err),
                         XF_E_PROTO);
        assert_int_equal(m.n, 0);
        assert_null(m.objects);
    }
    assert_int_equal(xf_manifest_decode(
                         xf_str_n("M\x01\x00\x01\x00\x01k\x00\x00\x00\x00\x00\x00", 13), &m, &err),
                     XF_OK);
    xf_manifest_fini(&m);
    xf_manifest_fini(&m); /* harmless */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(manifests_of_version_1_are_read),
        cmocka_unit_test(fields_at_their_caps_are_taken_and_one_more_is_not),
        cmocka_unit_test(thousand_objects_fill_it_and_reset_empties_it),
        cmocka_unit_test(manifest_of_the_longest_fields_stays_within_its_bytes),
        cmocka_unit_test(etags_come_back_as_they_were_listed),
        cmocka_unit_test(thousand_usual_objects_take_less_than_50_bytes_each),
        cmocka_unit_test(damaged_manifests_are_refused_and_leave_nothing),
    };

    return xf_test_run("manifest", tests, NULL, NULL);
}
