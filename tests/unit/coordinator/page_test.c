/*
 * page_test.c - each selected key of a page is queued exactly once, by its size.
 */
#include "common/base/mem.h"
#include "common/job/spec.h"
#include "common/s3/xml.h"
#include "coordinator/page.h"
#include "tests/lib/test.h"

#include <stdio.h>

enum { N = 1000 };
static const uint64_t mib = 1024 * 1024;

struct fx {
    struct xf_job_spec *spec;
    struct xf_xml_object objects[N];
    char keys[N][24];
    struct xf_page_in in;
};

static void open_fx(struct fx *fx, const char *more)
{
    struct xf_err err;
    XF_AUTO_BUF toml = {0};
    memset(fx, 0, sizeof(*fx));
    xf_buf_init(&toml, 0);
    xf_buf_putf(&toml,
                "[source]\nurl = \"s3://a/in/\"\nendpoint = \"http://127.0.0.1:1\"\n"
                "[destination]\nurl = \"s3://b/out/\"\nendpoint = \"http://127.0.0.1:1\"\n%s",
                more);
    assert_int_equal(xf_job_spec_parse(xf_buf_view(&toml), XF_STR_LIT("t.toml"), &fx->spec, &err),
                     XF_OK);
    for (int i = 0; i < N; i++) {
        (void)snprintf(fx->keys[i], sizeof(fx->keys[i]), "in/k%04d", i);
        fx->objects[i] = (struct xf_xml_object){.key = xf_str_c(fx->keys[i]),
                                                .etag = XF_STR_LIT("e"),
                                                .size = 1000,
                                                .modified_ms = 1000 + i};
    }
    fx->in = (struct xf_page_in){.spec = fx->spec,
                                 .objects = fx->objects,
                                 .n_objects = N,
                                 .batch_objects = 1000,
                                 .batch_bytes = 1 << 30};
}

static uint64_t count(const struct xf_page *p)
{
    uint64_t n = p->n_uploads;
    for (size_t i = 0; i < p->n_batches; i++) {
        n += p->batches[i].n_objects;
    }
    return n;
}

static void a_page_is_one_batch_of_its_small_objects(void **state)
{
    struct fx fx;
    struct xf_page p;
    struct xf_err err;
    (void)state;
    open_fx(&fx, "");
    fx.objects[7].size = 64 * mib;     /* at the threshold: in parts */
    fx.objects[8].size = 64 * mib - 1; /* below it */
    fx.objects[9].size = 0;
    assert_int_equal(xf_page_build(&fx.in, &p, &err), XF_OK);
    assert_int_equal(p.n_batches, 1);
    assert_int_equal(p.batches[0].n_objects, 999);
    assert_int_equal(p.n_uploads, 1);
    assert_true(xf_str_eq_c(p.uploads[0].key, "in/k0007"));
    assert_int_equal(p.listed, 1000);
    assert_int_equal(count(&p), 1000);
    assert_true(xf_str_eq_c(p.cursor, "in/k0999"));
    XF_AUTO_MANIFEST m = {0};
    assert_int_equal(xf_manifest_decode(xf_buf_view(&p.batches[0].manifest), &m, &err), XF_OK);
    assert_int_equal(m.n, 999);
    assert_true(xf_str_eq_c(m.objects[7].key, "in/k0008"));
    assert_int_equal(m.objects[7].size, 64 * mib - 1);
    xf_page_fini(&p);
    xf_job_spec_free(fx.spec);
}

static void batches_close_at_their_caps(void **state)
{
    struct fx fx;
    struct xf_page p;
    struct xf_err err;
    (void)state;
    open_fx(&fx, "");
    fx.in.batch_objects = 300;
    assert_int_equal(xf_page_build(&fx.in, &p, &err), XF_OK);
    assert_int_equal(p.n_batches, 4);
    assert_int_equal(p.batches[3].n_objects, 100);
    assert_int_equal(count(&p), 1000);
    xf_page_fini(&p);
    fx.in.batch_objects = 1000;
    fx.in.batch_bytes = 250000;
    assert_int_equal(xf_page_build(&fx.in, &p, &err), XF_OK);
    assert_int_equal(p.n_batches, 4);
    assert_int_equal(count(&p), 1000);
    xf_page_fini(&p);
    xf_job_spec_free(fx.spec);
}

static void c020_keys_at_or_below_the_cursor_are_not_queued_twice(void **state)
{
    struct fx fx;
    struct xf_page p;
    struct xf_err err;
    (void)state;
    open_fx(&fx, "");
    fx.in.cursor = XF_STR_LIT("in/k0499");
    assert_int_equal(xf_page_build(&fx.in, &p, &err), XF_OK);
    assert_int_equal(p.listed, 500);
    assert_int_equal(p.dropped, 500);
    xf_page_fini(&p);
    fx.in.cursor = XF_STR_LIT("in/k0999");
    assert_int_equal(xf_page_build(&fx.in, &p, &err), XF_OK);
    assert_int_equal(p.listed, 0);
    assert_int_equal(p.n_batches, 0);
    assert_true(xf_str_eq_c(p.cursor, "in/k0999"));
    xf_page_fini(&p);
    xf_job_spec_free(fx.spec);
}

static void what_select_leaves_out_still_moves_the_cursor(void **state)
{
    struct fx fx;
    struct xf_page p;
    struct xf_err err;
    (void)state;
    open_fx(&fx, "[select]\ninclude = [\"k00*\"]\n");
    assert_int_equal(xf_page_build(&fx.in, &p, &err), XF_OK);
    assert_int_equal(p.listed, 100);
    assert_true(xf_str_eq_c(p.cursor, "in/k0999"));
    xf_page_fini(&p);
    xf_job_spec_free(fx.spec);
}

static void a_key_that_cannot_be_queued_fails_the_listing(void **state)
{
    struct fx fx;
    struct xf_page p;
    struct xf_err err;
    char key[XF_OBJECT_KEY_MAX + 2];
    (void)state;
    open_fx(&fx, "");
    memset(key, 'z', sizeof(key));
    memcpy(key, "in/", 3);
    fx.objects[N - 1].key = xf_str_n(key, XF_OBJECT_KEY_MAX);
    assert_int_equal(xf_page_build(&fx.in, &p, &err), XF_OK);
    xf_page_fini(&p);
    fx.objects[N - 1].key = xf_str_n(key, XF_OBJECT_KEY_MAX + 1);
    assert_int_equal(xf_page_build(&fx.in, &p, &err), XF_E_LISTING);
    xf_page_fini(&p);
    xf_job_spec_free(fx.spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_is_one_batch_of_its_small_objects),
        cmocka_unit_test(batches_close_at_their_caps),
        cmocka_unit_test(c020_keys_at_or_below_the_cursor_are_not_queued_twice),
        cmocka_unit_test(what_select_leaves_out_still_moves_the_cursor),
        cmocka_unit_test(a_key_that_cannot_be_queued_fails_the_listing),
    };
    return xf_test_run("page", tests, NULL, NULL);
}
