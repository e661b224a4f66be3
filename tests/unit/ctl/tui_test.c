/* tui_test.c - figures for people: widths hold, and no byte of a name reaches the terminal raw. */
#include "ctl/tui.h"
#include "tests/lib/test.h"

static struct xf_buf b;

static int fresh(void **state)
{
    (void)state; /* the buffer is global */
    xf_buf_init(&b, 0);
    return 0;
}

static int drop(void **state)
{
    (void)state; /* the buffer is global */
    xf_buf_fini(&b);
    return 0;
}

static void figures_are_short_and_readable(void **state)
{
    static const struct {
        double bytes;
        const char *text;
    } rows[] = {{0, "0 B"},
                {999, "999 B"},
                {1000, "1.0 KiB"},
                {1536, "1.5 KiB"},
                {1048576, "1.0 MiB"},
                {5e15, "4.4 PiB"}};

    (void)state; /* the buffer is global */
    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        xf_buf_reset(&b);
        xf_tui_put_bytes(&b, rows[i].bytes);
        assert_string_equal(b.ptr, rows[i].text);
    }
    xf_buf_reset(&b);
    xf_tui_put_count(&b, 1234567);
    xf_tui_put_count(&b, 0);
    xf_tui_put_count(&b, UINT64_MAX);
    assert_string_equal(b.ptr, "1,234,567018,446,744,073,709,551,615");
    xf_buf_reset(&b);
    xf_tui_put_seconds(&b, 59);
    xf_tui_put_seconds(&b, 3661);
    xf_tui_put_seconds(&b, 90061);
    xf_tui_put_seconds(&b, -1);
    assert_string_equal(b.ptr, "00:5901:01:011 d 01:01:01-");
}

static void a_bar_is_as_wide_as_asked(void **state)
{
    (void)state; /* the buffer is global */
    xf_tui_put_bar(&b, 0.5, 12);
    assert_string_equal(b.ptr, "[#####.....]");
    xf_buf_reset(&b);
    xf_tui_put_bar(&b, 2, 4);
    assert_string_equal(b.ptr, "[##]");
}

static struct xf_json *job(const char *name)
{
    struct xf_json *st = NULL;
    struct xf_err err;
    struct xf_str text =
        XF_STR_LIT("{\"id\":\"j-1\",\"state\":\"running\",\"phase\":\"copy\",\"reason\":null,"
                   "\"listing\":{\"complete\":false},"
                   "\"objects\":{\"listed\":2000,\"copied\":500,\"skipped\":0,\"failed\":1,"
                   "\"vanished\":0,\"archived\":0,"
                   "\"in_flight\":99,\"pending\":1400},\"bytes\":{\"listed\":2048,\"copied\":1024},"
                   "\"rate\":{\"objects_s\":10.0,\"bytes_s\":5.0},\"eta_s\":61}");

    assert_int_equal(xf_json_parse(text, &st, &err), XF_OK);
    xf_json_set_c(st, "name", name);
    return st;
}

static void a_job_fits_any_width_and_its_name_is_escaped(void **state)
{
    XF_AUTO(xf_json) st =
        job("evil\x1b[2J\xc2\x9b name that is much longer than a narrow terminal is wide");

    (void)state; /* the buffer is global */
    for (size_t width = 20; width < 200; width += 7) {
        struct xf_tui tui = {.terminal = true, .width = width};
        xf_buf_reset(&b);
        xf_tui_put_job(&b, st, &tui);
        assert_null(memchr(b.ptr, '\x1b', b.len));
        struct xf_str rest = xf_buf_view(&b);
        struct xf_str line;
        while (xf_str_cut(&rest, '\n', &line)) {
            assert_true(line.len <= width);
        }
        assert_non_null(strstr(b.ptr, "1,400")); /* no figure is cut */
        assert_non_null(strstr(b.ptr, "01:01"));
    }
}

static void a_job_tells_what_matters(void **state)
{
    XF_AUTO(xf_json) st = job("logs");
    struct xf_tui tui = {.width = 120};

    (void)state; /* the buffer is global */
    xf_tui_put_job(&b, st, &tui);
    assert_non_null(strstr(b.ptr, "j-1 logs  running (copy)"));
    assert_non_null(strstr(b.ptr, "25.1% of 2,000 listed so far"));
    assert_non_null(strstr(b.ptr, "copied 500  failed 1  in flight 99  pending 1,400"));
    assert_non_null(strstr(b.ptr, "eta 01:01"));
    xf_buf_reset(&b);
    xf_tui_put_job_line(&b, st);
    assert_null(memchr(b.ptr, '\n', b.len));
    assert_non_null(strstr(b.ptr, "j-1 running listed=2000+ copied=500 failed=1"));
}

static void a_job_that_ended_tells_how_long_it_took(void **state)
{
    XF_AUTO(xf_json) st = job("logs");
    struct xf_tui tui = {.width = 120};

    (void)state; /* the buffer is global */
    xf_json_set_c(st, "state", "completed");
    xf_json_set_c(st, "started_at", "2026-03-01T10:00:00Z");
    xf_json_set_c(st, "finished_at", "2026-03-01T10:00:10Z");
    xf_tui_put_job(&b, st, &tui);
    assert_non_null(strstr(b.ptr, "1.0 KiB of 2.0 KiB  took 00:10  50 objects/s  102 B/s\n"));
    assert_null(strstr(b.ptr, "eta"));
    xf_buf_reset(&b);
    xf_json_set_c(st, "finished_at", "2026-03-01T10:00:00Z"); /* within a second */
    xf_tui_put_job(&b, st, &tui);
    assert_non_null(strstr(b.ptr, "took 00:00  501 objects/s"));
    xf_buf_reset(&b);
    xf_json_set_null(st, "started_at"); /* cancelled before it began */
    xf_tui_put_job(&b, st, &tui);
    assert_non_null(strstr(b.ptr, "1.0 KiB of 2.0 KiB\n"));
}

static void a_window_tells_what_it_has_no_room_for(void **state)
{
    static const struct {
        size_t height;
        const char *text;
    } rows[] = {{6, "1\n2\n3\n4\n5\n"},
                {5, "1\n2\n3\n... no room for 2 more lines\n"},
                {4, "1\n2\n... no room for 3 more lines\n"}};

    (void)state; /* the buffer is global */
    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        struct xf_tui tui = {.width = 80, .height = rows[i].height};
        xf_buf_reset(&b);
        xf_tui_put_window(&b, XF_STR_LIT("1\n2\n3\n4\n5\n"), &tui);
        assert_string_equal(b.ptr, rows[i].text);
    }
}

/* On 80 columns too: an operator must see why an agent gets no work. */
static void agents_tell_their_reason_and_leave_no_blanks(void **state)
{
    XF_AUTO(xf_json) agents = NULL;
    struct xf_err err;
    struct xf_tui tui = {.width = 80};

    (void)state; /* the buffer is global */
    assert_int_equal(
        xf_json_parse(
            XF_STR_LIT("[{\"id\":\"copy-1\",\"state\":\"unfit\",\"reason\":\"job j-1: [source]: "
                       "environment variable OLD_KEY is not set on this host, so set it there\","
                       "\"in_flight\":1,\"leases\":2,\"objects_s\":3,\"bytes_s\":4,"
                       "\"last_seen_s\":5}]"),
            &agents,
            &err),
        XF_OK);
    xf_tui_put_agents(&b, agents, &tui);
    assert_string_equal(
        b.ptr,
        "agent   state     in flight  leases  objects/s          rate    seen\n"
        "copy-1  unfit             1       2          3         4 B/s     5 s\n"
        "   job j-1: [source]: environment variable OLD_KEY is not set on this host, so\n"
        "   set it there\n");
}

/* What earlier calls leave behind on the stack. */
static __attribute__((noinline)) void dirty_the_stack(void)
{
    volatile unsigned char bytes[4096];

    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = 0xfe;
    }
}

static void no_agents_are_told_too(void **state)
{
    XF_AUTO(xf_json) none = xf_json_array();
    struct xf_tui tui = {.width = 80};

    (void)state; /* the buffer is global */
    xf_buf_put_byte(&b, ' ');
    dirty_the_stack();
    xf_tui_put_agents(&b, none, &tui);
    assert_string_equal(b.ptr, " no agents\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(figures_are_short_and_readable, fresh, drop),
        cmocka_unit_test_setup_teardown(a_bar_is_as_wide_as_asked, fresh, drop),
        cmocka_unit_test_setup_teardown(a_job_fits_any_width_and_its_name_is_escaped, fresh, drop),
        cmocka_unit_test_setup_teardown(a_job_tells_what_matters, fresh, drop),
        cmocka_unit_test_setup_teardown(no_agents_are_told_too, fresh, drop),
        cmocka_unit_test_setup_teardown(a_job_that_ended_tells_how_long_it_took, fresh, drop),
        cmocka_unit_test_setup_teardown(a_window_tells_what_it_has_no_room_for, fresh, drop),
        cmocka_unit_test_setup_teardown(agents_tell_their_reason_and_leave_no_blanks, fresh, drop),
    };

    return xf_test_run("tui", tests, NULL, NULL);
}
