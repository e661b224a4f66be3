/*
 * walk_test.c - when a listing goes on, starts again after the cursor, ends, or fails.
 */
#include "common/base/mem.h"
#include "common/s3/xml.h"
#include "coordinator/walk.h"
#include "tests/lib/test.h"

#include <stdio.h>

/* A page of the keys "k<from>".."k<to>", three digits. */
struct page {
    char text[100][8];
    struct xf_xml_object objects[100];
    struct xf_xml_doc doc;
};

static const struct xf_xml_doc *page(struct page *p, int from, int to, const char *token)
{
    memset(p, 0, sizeof(*p));
    for (int i = from; i <= to; i++) {
        char *text = p->text[i - from];
        (void)snprintf(text, sizeof(p->text[0]), "k%03d", i);
        p->objects[p->doc.n_objects++].key = xf_str_c(text);
    }
    p->doc.root = XF_XML_LIST;
    p->doc.objects = p->objects;
    p->doc.is_truncated = token != NULL;
    p->doc.next_token = xf_str_c(token != NULL ? token : "");
    return &p->doc;
}

static void pages_by_token_until_the_last(void **state)
{
    struct xf_walk w;
    struct page p;
    struct xf_err err;
    (void)state;
    xf_walk_init(&w, 1);
    assert_int_equal(xf_walk_page(&w, page(&p, 1, 10, "a"), XF_STR_EMPTY, &err), XF_WALK_PAGE);
    assert_true(xf_str_eq_c(xf_buf_view(&w.token), "a"));
    assert_int_equal(xf_walk_page(&w, page(&p, 11, 20, "b"), XF_STR_LIT("k010"), &err),
                     XF_WALK_PAGE);
    assert_int_equal(xf_walk_page(&w, page(&p, 21, 25, NULL), XF_STR_LIT("k020"), &err),
                     XF_WALK_LAST);
    xf_walk_fini(&w);
}

static void c020_a_token_that_leads_back_is_given_up_for_start_after(void **state)
{
    struct xf_walk w;
    struct page p;
    struct xf_err err;
    (void)state;
    xf_walk_init(&w, 1);
    assert_int_equal(xf_walk_page(&w, page(&p, 1, 10, "x"), XF_STR_EMPTY, &err), XF_WALK_PAGE);
    /* page 1 again under another token: asked again by start-after, which this server honours */
    assert_int_equal(xf_walk_page(&w, page(&p, 1, 10, "y"), XF_STR_LIT("k010"), &err),
                     XF_WALK_RESTART);
    assert_int_equal(w.token.len, 0);
    assert_int_equal(xf_walk_page(&w, page(&p, 11, 20, "x"), XF_STR_LIT("k010"), &err),
                     XF_WALK_PAGE);
    assert_int_equal(w.token.len, 0); /* tokens are not trusted any more */
    assert_int_equal(xf_walk_page(&w, page(&p, 21, 22, NULL), XF_STR_LIT("k020"), &err),
                     XF_WALK_LAST);
    xf_walk_fini(&w);
}

static void c020_keys_that_repeat_after_the_restart_fail_the_listing(void **state)
{
    struct xf_walk w;
    struct page p;
    struct xf_err err;
    (void)state;
    xf_walk_init(&w, 1);
    assert_int_equal(xf_walk_page(&w, page(&p, 1, 10, "x"), XF_STR_EMPTY, &err), XF_WALK_PAGE);
    assert_int_equal(xf_walk_page(&w, page(&p, 1, 10, "x2"), XF_STR_LIT("k010"), &err),
                     XF_WALK_RESTART);
    assert_int_equal(xf_walk_page(&w, page(&p, 1, 10, "x3"), XF_STR_LIT("k010"), &err),
                     XF_WALK_FAIL);
    assert_int_equal(err.code, XF_E_LISTING);
    assert_non_null(strstr(err.msg, "no progress after key 'k010'"));
    xf_walk_fini(&w);
}

static void c020_the_same_token_again_goes_on_by_start_after(void **state)
{
    struct xf_walk w;
    struct page p;
    struct xf_err err;
    (void)state;
    xf_walk_init(&w, 1);
    assert_int_equal(xf_walk_page(&w, page(&p, 1, 10, "t"), XF_STR_EMPTY, &err), XF_WALK_PAGE);
    assert_int_equal(xf_walk_page(&w, page(&p, 11, 20, "t"), XF_STR_LIT("k010"), &err),
                     XF_WALK_PAGE);
    assert_int_equal(w.token.len, 0);
    xf_walk_fini(&w);
}

static void c020_a_truncated_page_without_token_and_without_progress_fails(void **state)
{
    struct xf_walk w;
    struct page p;
    struct xf_err err;
    (void)state;
    xf_walk_init(&w, 1);
    assert_int_equal(xf_walk_page(&w, page(&p, 1, 10, ""), XF_STR_EMPTY, &err), XF_WALK_PAGE);
    assert_int_equal(xf_walk_page(&w, page(&p, 1, 10, ""), XF_STR_LIT("k010"), &err), XF_WALK_FAIL);
    xf_walk_fini(&w);
}

static void c020_empty_pages_without_end_fail(void **state)
{
    struct xf_walk w;
    struct page p;
    struct xf_err err;
    enum xf_walk_next next = XF_WALK_PAGE;
    int n = 0;
    (void)state;
    xf_walk_init(&w, 1);
    while (next == XF_WALK_PAGE && n < 5000) {
        char token[16];
        (void)snprintf(token, sizeof(token), "t%d", n++);
        next = xf_walk_page(&w, page(&p, 1, 0, token), XF_STR_EMPTY, &err);
    }
    assert_int_equal(next, XF_WALK_FAIL);
    assert_in_range(n, 2, 2000);
    xf_walk_fini(&w);
}

static void a_server_that_ignores_start_after_is_walked_again_by_token(void **state)
{
    struct xf_walk w;
    struct page p;
    struct xf_err err;
    (void)state;
    xf_walk_init(&w, 1); /* a new process: the cursor is k015 */
    assert_int_equal(xf_walk_page(&w, page(&p, 1, 10, "a"), XF_STR_LIT("k015"), &err),
                     XF_WALK_PAGE);
    assert_int_equal(xf_walk_page(&w, page(&p, 11, 20, "b"), XF_STR_LIT("k015"), &err),
                     XF_WALK_PAGE);
    xf_walk_fini(&w);
}

static void a_listing_out_of_order_fails_and_loses_nothing(void **state)
{
    struct xf_walk w;
    struct page p;
    struct xf_err err;
    (void)state;
    xf_walk_init(&w, 1);
    (void)page(&p, 1, 3, "a");
    p.objects[2].key = XF_STR_LIT("a");
    assert_int_equal(xf_walk_page(&w, &p.doc, XF_STR_EMPTY, &err), XF_WALK_FAIL);
    assert_non_null(strstr(err.msg, "byte order"));
    xf_walk_rewind(&w);
    /* ordered inside each page, but the second page holds earlier keys that were never seen */
    assert_int_equal(xf_walk_page(&w, page(&p, 50, 60, "a"), XF_STR_EMPTY, &err), XF_WALK_PAGE);
    assert_int_equal(xf_walk_page(&w, page(&p, 10, 20, NULL), XF_STR_LIT("k060"), &err),
                     XF_WALK_FAIL);
    assert_non_null(strstr(err.msg, "byte order"));
    xf_walk_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_by_token_until_the_last),
        cmocka_unit_test(c020_a_token_that_leads_back_is_given_up_for_start_after),
        cmocka_unit_test(c020_keys_that_repeat_after_the_restart_fail_the_listing),
        cmocka_unit_test(c020_the_same_token_again_goes_on_by_start_after),
        cmocka_unit_test(c020_a_truncated_page_without_token_and_without_progress_fails),
        cmocka_unit_test(c020_empty_pages_without_end_fail),
        cmocka_unit_test(a_server_that_ignores_start_after_is_walked_again_by_token),
        cmocka_unit_test(a_listing_out_of_order_fails_and_loses_nothing),
    };
    return xf_test_run("walk", tests, NULL, NULL);
}
