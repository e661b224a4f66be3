/*
 * uri_test.c - endpoints, addressing styles, paths and copy sources.
 */
#include "common/base/mem.h"
#include "common/s3/uri.h"
#include "tests/lib/gen.h"
#include "tests/lib/test.h"

static struct xf_uri_endpoint parse(const char *text)
{
    struct xf_uri_endpoint ep;
    struct xf_err err;

    if (xf_uri_endpoint_parse(xf_str_c(text), &ep, &err) != XF_OK) {
        fail_msg("%s: %s", text, err.msg);
    }
    return ep;
}

static void endpoints_are_taken_apart(void **state)
{
    struct xf_uri_endpoint ep = parse("https://Host.Example:8443/s3/v1/");

    (void)state;
    assert_true(ep.https);
    assert_int_equal(ep.port, 8443);
    assert_string_equal(ep.host, "host.example");
    assert_string_equal(ep.base_path, "/s3/v1");
    assert_false(ep.is_ip);
    ep = parse("http://127.0.0.1");
    assert_int_equal(ep.port, 80);
    assert_true(ep.is_ip);
    ep = parse("http://[2001:DB8::1]:9000");
    assert_true(ep.is_ip6);
    assert_string_equal(ep.host, "2001:db8::1");
    assert_int_equal(ep.port, 9000);
    assert_true(parse("https://s3.eu-west-1.amazonaws.com").is_aws);
    assert_true(parse("https://s3-fips.us-gov-west-1.amazonaws.com").is_aws);
    assert_true(parse("https://s3.cn-north-1.amazonaws.com.cn").is_aws);
    assert_false(parse("https://s3.amazonaws.com.evil.example").is_aws);
    assert_false(parse("https://s3.evilamazonaws.com").is_aws);
}

static void bad_endpoints_are_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "host",
                                      "ftp://host",
                                      "http://",
                                      "http://:80",
                                      "http://h:0",
                                      "http://h:65536",
                                      "http://h:8x",
                                      "http://[::1",
                                      "http://[::1]x",
                                      "http://[nothex]",
                                      "http://user:geheim@h",
                                      "http://h/?a=b",
                                      "http://h/#f",
                                      "http://h/a b",
                                      "http://h ost",
                                      "https://s3.example/\xc3\xa9"};

    (void)state;
    for (size_t i = 0; i < XF_ARRAY_LEN(bad); i++) {
        struct xf_uri_endpoint ep;
        struct xf_err err;

        if (xf_uri_endpoint_parse(xf_str_c(bad[i]), &ep, &err) != XF_E_INVAL) {
            fail_msg("'%s' was taken", bad[i]);
        }
        assert_null(strstr(err.msg, "geheim"));
    }
}

static void aws_endpoints_follow_the_partition(void **state)
{
    static const struct {
        const char *region;
        const char *host;
        const char *partition;
    } rows[] = {
        {"us-east-1", "s3.us-east-1.amazonaws.com", "aws"},
        {"ap-southeast-7", "s3.ap-southeast-7.amazonaws.com", "aws"},
        {"mx-central-1", "s3.mx-central-1.amazonaws.com", "aws"},
        {"cn-north-1", "s3.cn-north-1.amazonaws.com.cn", "aws-cn"},
        {"us-gov-west-1", "s3.us-gov-west-1.amazonaws.com", "aws-us-gov"},
        {"eusc-de-east-1", "s3.eusc-de-east-1.amazonaws.eu", "aws-eusc"},
        {"us-iso-east-1", "s3.us-iso-east-1.c2s.ic.gov", "aws-iso"},
        {"us-isob-east-1", "s3.us-isob-east-1.sc2s.sgov.gov", "aws-iso-b"},
    };
    static const char *const bad[] = {
        "", "auto", "us-east-1.evil.com", "us-east-1/", "US-EAST-1", "xx-east-1"};
    struct xf_uri_endpoint ep;
    struct xf_err err;

    (void)state;
    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        assert_int_equal(xf_uri_endpoint_aws(xf_str_c(rows[i].region), 0, &ep, &err), XF_OK);
        assert_string_equal(ep.host, rows[i].host);
        assert_true(ep.is_aws);
        assert_string_equal(xf_uri_partition(xf_str_c(rows[i].region)), rows[i].partition);
    }
    for (size_t i = 0; i < XF_ARRAY_LEN(bad); i++) {
        assert_int_equal(xf_uri_endpoint_aws(xf_str_c(bad[i]), 0, &ep, &err), XF_E_INVAL);
    }
}

static void variants_of_aws_endpoints_follow_their_flags(void **state)
{
    static const struct {
        const char *region;
        unsigned flags;
        const char *host; /* NULL: there is none */
    } rows[] = {
        {"us-east-1", XF_URI_AWS_FIPS, "s3-fips.us-east-1.amazonaws.com"},
        {"us-east-1", XF_URI_AWS_DUALSTACK, "s3.dualstack.us-east-1.amazonaws.com"},
        {"us-gov-west-1",
         (unsigned)XF_URI_AWS_FIPS | (unsigned)XF_URI_AWS_DUALSTACK,
         "s3-fips.dualstack.us-gov-west-1.amazonaws.com"},
        {"cn-north-1", XF_URI_AWS_DUALSTACK, "s3.dualstack.cn-north-1.amazonaws.com.cn"},
        {"cn-north-1", XF_URI_AWS_FIPS, NULL},
    };
    struct xf_uri_endpoint ep;
    struct xf_err err;

    (void)state;
    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        enum xf_code rc = xf_uri_endpoint_aws(xf_str_c(rows[i].region), rows[i].flags, &ep, &err);

        assert_int_equal(rc, rows[i].host != NULL ? XF_OK : XF_E_INVAL);
        if (rc == XF_OK) {
            assert_string_equal(ep.host, rows[i].host);
            assert_true(ep.is_aws);
        }
    }
    assert_string_equal(xf_uri_aws_suffix(XF_STR_LIT("us-iso-east-1")), "c2s.ic.gov");
    assert_string_equal(xf_uri_aws_suffix(XF_STR_LIT("nowhere")), "amazonaws.com");
}

static bool is_path(const char *endpoint, enum xf_uri_style style, const char *bucket)
{
    struct xf_uri_endpoint ep = parse(endpoint);

    return xf_uri_is_path_style(&ep, style, xf_str_c(bucket));
}

static void c065_style_follows_endpoint_and_bucket(void **state)
{
    (void)state;
    assert_false(is_path("https://s3.us-east-1.amazonaws.com", XF_URI_STYLE_AUTO, "plain"));
    assert_true(is_path("https://s3.us-east-1.amazonaws.com", XF_URI_STYLE_AUTO, "my.dotted"));
    assert_true(is_path("https://s3.us-east-1.amazonaws.com", XF_URI_STYLE_AUTO, "Upper_case"));
    assert_true(is_path("https://s3.us-east-1.amazonaws.com", XF_URI_STYLE_PATH, "plain"));
    assert_true(is_path("https://minio.example", XF_URI_STYLE_AUTO, "plain"));
    assert_false(is_path("https://oss.example", XF_URI_STYLE_VIRTUAL, "plain"));
    assert_true(is_path("https://oss.example", XF_URI_STYLE_VIRTUAL, "my.dotted"));
    assert_false(is_path("http://oss.example", XF_URI_STYLE_VIRTUAL, "my.dotted"));
    assert_true(is_path("http://127.0.0.1:9000", XF_URI_STYLE_VIRTUAL, "plain"));
    assert_true(is_path("http://[::1]:9000", XF_URI_STYLE_VIRTUAL, "plain"));
}

static void check_target(const char *endpoint,
                         enum xf_uri_style style,
                         const char *bucket,
                         const char *key,
                         const char *host,
                         const char *path)
{
    struct xf_uri_endpoint ep = parse(endpoint);
    bool path_style = xf_uri_is_path_style(&ep, style, xf_str_c(bucket));
    XF_AUTO_BUF h = {0};
    XF_AUTO_BUF p = {0};

    xf_uri_host(&h, &ep, path_style, xf_str_c(bucket));
    xf_uri_path(&p, &ep, path_style, xf_str_c(bucket), xf_str_c(key));
    assert_string_equal(h.ptr, host);
    assert_string_equal(p.ptr, path);
}

static void targets(void **state)
{
    (void)state;
    check_target("https://s3.us-east-1.amazonaws.com",
                 XF_URI_STYLE_AUTO,
                 "bkt",
                 "a b",
                 "bkt.s3.us-east-1.amazonaws.com",
                 "/a%20b");
    check_target("https://s3.us-east-1.amazonaws.com",
                 XF_URI_STYLE_AUTO,
                 "bkt",
                 "",
                 "bkt.s3.us-east-1.amazonaws.com",
                 "/");
    check_target(
        "https://host:8443/s3/v1", XF_URI_STYLE_AUTO, "bkt", "k", "host:8443", "/s3/v1/bkt/k");
    check_target("http://host:80", XF_URI_STYLE_AUTO, "bkt", "", "host", "/bkt");
    check_target("https://host:443", XF_URI_STYLE_AUTO, "bkt", "/lead", "host", "/bkt//lead");
    check_target(
        "http://[2001:db8::1]:9000", XF_URI_STYLE_AUTO, "bkt", "k", "[2001:db8::1]:9000", "/bkt/k");
}

static void c035_copy_sources(void **state)
{
    static const struct {
        const char *key;
        const char *version;
        const char *header;
    } rows[] = {
        {"c++", "", "/src/c%2B%2B"},
        {"100%", "", "/src/100%25"},
        {"a b", "", "/src/a%20b"},
        {"a%2Fb", "", "/src/a%252Fb"},
        {"x?v=1", "", "/src/x%3Fv%3D1"},
        {"x#y", "", "/src/x%23y"},
        {"Pose\xc2\xae.jpg", "", "/src/Pose%C2%AE.jpg"},
        {"22:24:03+0000.jpg", "", "/src/22%3A24%3A03%2B0000.jpg"},
        {"k?versionId=abc", "", "/src/k%3FversionId%3Dabc"},
        {"k", "3/L4 kq", "/src/k?versionId=3%2FL4%20kq"},
    };

    (void)state;
    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        XF_AUTO_BUF out = {0};

        xf_uri_copy_source(
            &out, XF_STR_LIT("src"), xf_str_c(rows[i].key), xf_str_c(rows[i].version));
        assert_string_equal(out.ptr, rows[i].header);
    }
}

static void c024_fields_are_decoded_once(void **state)
{
    static const char *const rows[][2] = {{"a+b", "a b"},
                                          {"a%2Bb", "a+b"},
                                          {"a%2520b", "a%20b"},
                                          {"100%.csv", "100%.csv"},
                                          {"100%25", "100%"},
                                          {"%", "%"},
                                          {"%4", "%4"},
                                          {"%zz", "%zz"},
                                          {"%ed%95%9C/x", "\xed\x95\x9c/x"}};

    (void)state;
    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        XF_AUTO_BUF out = {0};

        xf_uri_decode(&out, xf_str_c(rows[i][0]), true);
        assert_string_equal(out.ptr, rows[i][1]);
    }
}

static void encoding_and_decoding_are_inverse(void **state)
{
    struct xf_rng rng;

    (void)state;
    xf_rng_init(&rng, xf_test_seed());
    for (int i = 0; i < 2000; i++) {
        XF_AUTO_BUF key = {0};
        XF_AUTO_BUF encoded = {0};
        XF_AUTO_BUF back = {0};

        if (i % 2 == 0) {
            xf_gen_key(&rng, &key, 64);
        } else {
            xf_gen_bytes(&rng, &key, (size_t)xf_gen_between(&rng, 1, 64));
        }
        xf_buf_put_percent(&encoded, xf_buf_view(&key), true);
        xf_uri_decode(&back, xf_buf_view(&encoded), true);
        assert_int_equal(back.len, key.len);
        assert_memory_equal(back.ptr, key.ptr, key.len);
    }
}

static bool same(const char *a, const char *a_region, const char *b, const char *b_region)
{
    struct xf_uri_endpoint ea = parse(a);
    struct xf_uri_endpoint eb = parse(b);

    return xf_uri_same_service(&ea, xf_str_c(a_region), &eb, xf_str_c(b_region));
}

static void c009_only_one_service_copies_by_itself(void **state)
{
    (void)state;
    assert_true(same("http://h:9000", "us-east-1", "http://h:9000/", "eu-west-1"));
    assert_false(same("http://h:9000", "r", "http://h:9001", "r"));
    assert_false(same("http://h:9000", "r", "https://h:9000", "r"));
    assert_false(same("http://h/a", "r", "http://h/b", "r"));
    assert_true(same("https://s3.us-east-1.amazonaws.com",
                     "us-east-1",
                     "https://s3.eu-west-1.amazonaws.com",
                     "eu-west-1"));
    assert_false(same("https://s3.us-east-1.amazonaws.com",
                      "us-east-1",
                      "https://s3.cn-north-1.amazonaws.com.cn",
                      "cn-north-1"));
    assert_false(same(
        "https://s3.us-east-1.amazonaws.com", "us-east-1", "https://minio.example", "us-east-1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endpoints_are_taken_apart),
        cmocka_unit_test(bad_endpoints_are_refused),
        cmocka_unit_test(aws_endpoints_follow_the_partition),
        cmocka_unit_test(variants_of_aws_endpoints_follow_their_flags),
        cmocka_unit_test(c065_style_follows_endpoint_and_bucket),
        cmocka_unit_test(targets),
        cmocka_unit_test(c035_copy_sources),
        cmocka_unit_test(c024_fields_are_decoded_once),
        cmocka_unit_test(encoding_and_decoding_are_inverse),
        cmocka_unit_test(c009_only_one_service_copies_by_itself),
    };

    return xf_test_run("s3/uri", tests, NULL, NULL);
}
