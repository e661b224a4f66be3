/*
 * conf_test.c - the coordinator's options: defaults, ranges, refusals with their place.
 */
#include "common/base/toml.h"
#include "coordinator/coord_conf.h"
#include "tests/lib/test.h"
#include "tests/lib/tmpdir.h"

static void defaults_are_the_design_s(void **state)
{
    struct xf_coord_conf c;
    struct xf_conf *conf = NULL;
    struct xf_err err;
    (void)state;
    assert_int_equal(xf_coord_conf_defaults(&c, &conf, &err), XF_OK);
    assert_true(xf_str_eq_c(c.listen, "tcp://127.0.0.1:7600"));
    assert_true(xf_str_eq_c(c.http, "127.0.0.1:7680"));
    assert_int_equal(c.lease_ttl_ms, 15000);
    assert_int_equal(c.beat_ms, 2000);
    assert_int_equal(c.checkpoint_ms, 2000);
    assert_int_equal(c.checkpoint_outcomes, 500);
    assert_int_equal(c.batch_objects, 1000);
    assert_int_equal(c.store_max_bytes, 0);
    assert_false(c.require_token);
    xf_conf_free(conf);
}

static void refused(const char *text, const char *what)
{
    struct xf_coord_conf c;
    struct xf_conf *conf = NULL;
    struct xf_err err;
    XF_AUTO(xf_tmpdir) tmp = xf_tmpdir_new();
    const char *path = xf_tmpdir_write(tmp, "c.toml", xf_str_c(text));
    assert_int_equal(xf_conf_load_file(&xf_coord_conf_table, path, &c, &conf, &err), XF_E_CONFIG);
    assert_non_null(strstr(err.msg, "c.toml:2"));
    assert_non_null(strstr(err.msg, what));
    xf_conf_free(conf);
}

static void what_is_wrong_is_told_with_its_place(void **state)
{
    (void)state;
    refused("[lease]\nttl = \"1ms\"\n", "ttl");
    refused("[batch]\nobjects = 1001\n", "1000");
    refused("[batch]\nobject = 10\n", "objects");
    refused("[store]\nmax_bytes = 5\n", "max_bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_the_design_s),
        cmocka_unit_test(what_is_wrong_is_told_with_its_place),
    };
    return xf_test_run("conf", tests, NULL, NULL);
}
