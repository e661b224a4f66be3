/* list_test.c - listings: pages, order, delimiter, encoding, and the dialects that rules ask for.
 */
#include "tests/lib/test.h"
#include "tests/unit/s3d/client.h"

#include <stdio.h>
#include <string.h>

static struct s3d_server *server;

static int setup(void **state)
{
    static const char *const keys[] = {"/bkt/a",
                                       "/bkt/a/1",
                                       "/bkt/a/2",
                                       "/bkt/a-b",
                                       "/bkt/a%20b",
                                       "/bkt/a%2Bb",
                                       "/bkt/a%2520b",
                                       "/bkt/b/x/1",
                                       "/bkt/b/x/2",
                                       "/bkt/c%08b",
                                       "/bkt/z"};
    struct s3d_opts o;

    (void)state;
    server_opts(&o);
    o.synths[o.n_synths++] = "many:2500:10:dirs";
    server = server_start(&o);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        does(server, "PUT", keys[i], "", "x", 200);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    s3d_server_free(server);
    return 0;
}

/* All keys of one page, joined by '|'. */
static char *keys_of(const char *xml, const char *name)
{
    struct xf_buf b = {0};
    char open[32];
    (void)snprintf(open, sizeof(open), "<%s>", name);

    for (const char *p = strstr(xml, open); p != NULL; p = strstr(p + 1, open)) {
        const char *end = strchr(p + strlen(open), '<');
        if (b.len > 0) {
            xf_buf_put_byte(&b, '|');
        }
        xf_buf_put_mem(&b, p + strlen(open), (size_t)(end - p) - strlen(open));
    }
    return xf_buf_take(&b);
}

static void lists(const char *target, const char *want)
{
    XF_AUTO_FREE char *xml = must(server, "GET", target, "", "", 200);
    XF_AUTO_FREE char *keys = keys_of(xml, "Key");

    assert_string_equal(keys, want);
}

static void keys_come_in_byte_order(void **state)
{
    (void)state;
    lists("/bkt?list-type=2&encoding-type=url",
          "a|a+b|a%2520b|a%2Bb|a-b|a/1|a/2|b/x/1|b/x/2|c%08b|z");
    lists("/bkt?list-type=2", "a|a b|a%20b|a+b|a-b|a/1|a/2|b/x/1|b/x/2|c&#x8;b|z");
    lists("/bkt?list-type=2&prefix=a%2F", "a/1|a/2");
    lists("/bkt?list-type=2&prefix=a&start-after=a-b", "a/1|a/2");
    lists("/bkt?list-type=2&start-after=b/x/1", "b/x/2|c&#x8;b|z");
    lists("/bkt?prefix=a&marker=a-b", "a/1|a/2");
    lists("/bkt?list-type=2&prefix=nope", "");
    does(server, "GET", "/bkt?list-type=2&encoding-type=x", "", "", 400);
    does(server, "GET", "/bkt?list-type=2&continuation-token=x", "", "", 400);
    does(server, "GET", "/bkt?list-type=2&max-keys=x", "", "", 400);
}

static void a_delimiter_folds_keys(void **state)
{
    XF_AUTO_FREE char *xml =
        must(server, "GET", "/bkt?list-type=2&delimiter=/&prefix=", "", "", 200);
    XF_AUTO_FREE char *keys = keys_of(xml, "Key");
    XF_AUTO_FREE char *count = tag(xml, "KeyCount");

    (void)state;
    assert_string_equal(keys, "a|a b|a%20b|a+b|a-b|c&#x8;b|z");
    assert_non_null(strstr(xml,
                           "<CommonPrefixes><Prefix>a/</Prefix></"
                           "CommonPrefixes><CommonPrefixes><Prefix>b/</Prefix></CommonPrefixes>"));
    assert_string_equal(count, "9");
    lists("/bkt?list-type=2&delimiter=/&prefix=b/x/", "b/x/1|b/x/2");
}

/* Walk all pages; the number of keys, each above the one before. */
static int walk(const char *base, const char *token_tag, const char *param)
{
    char target[2048];
    char last[1100] = "";
    int n = 0;
    XF_AUTO_FREE char *token = xf_xstrdup("");

    for (int page = 0; page < 10000; page++) {
        struct xf_buf enc = {0};
        xf_buf_put_percent(&enc, xf_str_c(token), false);
        (void)snprintf(target,
                       sizeof(target),
                       "%s%s%s%s",
                       base,
                       token[0] != '\0' ? "&" : "",
                       token[0] != '\0' ? param : "",
                       enc.ptr == NULL ? "" : enc.ptr);
        xf_buf_fini(&enc);
        XF_AUTO_FREE char *xml = must(server, "GET", target, "", "", 200);
        for (const char *p = strstr(xml, "<Key>"); p != NULL; p = strstr(p + 1, "<Key>")) {
            const char *end = strstr(p, "</Key>");
            size_t len = (size_t)(end - p) - 5;
            assert_true(len < sizeof(last));
            assert_true(xf_str_cmp(xf_str_n(p + 5, len), xf_str_c(last)) > 0);
            memcpy(last, p + 5, len);
            last[len] = '\0';
            n++;
        }
        XF_AUTO_FREE char *more = tag(xml, "IsTruncated");
        xf_xfree(token);
        token = strcmp(token_tag, "last") == 0 ? xf_xstrdup(last) : tag(xml, token_tag);
        if (strcmp(more, "false") == 0) {
            return n;
        }
        assert_true(token[0] != '\0');
    }
    return -1;
}

static void pages_give_every_key_once(void **state)
{
    (void)state;
    assert_int_equal(walk("/many?list-type=2", "NextContinuationToken", "continuation-token="),
                     2500);
    assert_int_equal(
        walk("/many?list-type=2&max-keys=7", "NextContinuationToken", "continuation-token="), 2500);
    assert_int_equal(walk("/many?list-type=2&max-keys=250", "last", "start-after="), 2500);
    assert_int_equal(walk("/many?max-keys=500", "last", "marker="), 2500);
    assert_int_equal(walk("/bkt?list-type=2&max-keys=1&delimiter=/",
                          "NextContinuationToken",
                          "continuation-token="),
                     7);
    XF_AUTO_FREE char *xml = must(server, "GET", "/many?list-type=2&max-keys=5000", "", "", 200);
    XF_AUTO_FREE char *count = tag(xml, "KeyCount");
    assert_string_equal(count, "1000");
}

static void rule(const char *list)
{
    char json[256];

    does(server, "DELETE", "/-/faults", "", "", 200);
    (void)snprintf(json, sizeof(json), "[{\"bucket\":\"bkt\",\"action\":{\"list\":%s}}]", list);
    does(server, "POST", "/-/faults", "", json, 200);
}

static char *page(const char *target)
{
    return must(server, "GET", target, "", "", 200);
}

static void c024_encoding_dialects(void **state)
{
    static const char target[] = "/bkt?list-type=2&encoding-type=url&prefix=a%2520";
    static const char space[] = "/bkt?list-type=2&encoding-type=url&start-after=a&max-keys=1";

    (void)state;
    rule("{\"encoding\":\"percent20\"}");
    lists(space, "a%20b");
    rule("{\"encoding\":\"unannounced\"}");
    lists(space, "a+b");
    XF_AUTO_FREE char *xml = page(space);
    assert_null(strstr(xml, "EncodingType"));
    rule("{\"encoding\":\"raw_fields\"}");
    XF_AUTO_FREE char *raw = page(target);
    assert_non_null(strstr(raw, "<Prefix>a%20</Prefix>"));
    assert_non_null(strstr(raw, "<Key>a%2520b</Key>"));
    rule("{\"encoding\":\"raw\"}");
    lists("/bkt?list-type=2&encoding-type=url&prefix=c", "c\bb");
    rule("{\"encoding\":\"charref\"}");
    lists("/bkt?list-type=2&encoding-type=url&prefix=c", "c&#x8;b");
    does(server, "DELETE", "/-/faults", "", "", 200);
}

static void c020_token_dialects(void **state)
{
    static const char first[] = "/bkt?list-type=2&max-keys=2";
    char second[256];

    (void)state;
    rule("{\"token\":\"none\"}");
    XF_AUTO_FREE char *none = page(first);
    assert_null(strstr(none, "NextContinuationToken"));
    assert_non_null(strstr(none, "<IsTruncated>true"));
    rule("{\"token\":\"empty\"}");
    XF_AUTO_FREE char *empty = page(first);
    assert_non_null(strstr(empty, "<NextContinuationToken></NextContinuationToken>"));
    rule("{\"token\":\"same\"}");
    XF_AUTO_FREE char *one = page(first);
    XF_AUTO_FREE char *token = tag(one, "NextContinuationToken");
    (void)snprintf(second, sizeof(second), "%s&continuation-token=%s", first, token);
    XF_AUTO_FREE char *two = page(second);
    XF_AUTO_FREE char *again = tag(two, "NextContinuationToken");
    assert_string_equal(again, token);
    rule("{\"repeat_page\":true}");
    XF_AUTO_FREE char *p1 = page(first);
    XF_AUTO_FREE char *t1 = tag(p1, "NextContinuationToken");
    (void)snprintf(second, sizeof(second), "%s&continuation-token=%s", first, t1);
    XF_AUTO_FREE char *p2 = page(second);
    XF_AUTO_FREE char *t2 = tag(p2, "NextContinuationToken");
    XF_AUTO_FREE char *k1 = keys_of(p1, "Key");
    XF_AUTO_FREE char *k2 = keys_of(p2, "Key");
    assert_string_equal(k1, k2);
    assert_string_not_equal(t1, t2);
    does(server, "DELETE", "/-/faults", "", "", 200);
}

static void c026_order_and_version_dialects(void **state)
{
    (void)state;
    rule("{\"order\":\"reverse\"}");
    lists("/bkt?list-type=2&prefix=a/", "a/2|a/1");
    rule("{\"order\":\"directory\"}");
    lists("/bkt?list-type=2&prefix=a", "a|a/1|a/2|a b|a%20b|a+b|a-b");
    rule("{\"drop_last\":1}");
    lists("/bkt?list-type=2&prefix=a/", "a/1");
    rule("{\"ignore_start_after\":true}");
    lists("/bkt?list-type=2&prefix=a/&start-after=a/1", "a/1|a/2");
    rule("{\"v1_only\":true}");
    XF_AUTO_FREE char *xml = page("/bkt?list-type=2&max-keys=1");
    assert_null(strstr(xml, "KeyCount"));
    assert_null(strstr(xml, "NextContinuationToken"));
    does(server, "DELETE", "/-/faults", "", "", 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_come_in_byte_order),
        cmocka_unit_test(a_delimiter_folds_keys),
        cmocka_unit_test(pages_give_every_key_once),
        cmocka_unit_test(c024_encoding_dialects),
        cmocka_unit_test(c020_token_dialects),
        cmocka_unit_test(c026_order_and_version_dialects),
    };

    return xf_test_run("s3d_list", tests, setup, teardown);
}
