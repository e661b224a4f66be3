/*
 * glob_test.c - patterns of [select], odd keys included.
 */
#include "common/base/mem.h"
#include "common/job/glob.h"
#include "tests/lib/test.h"

#include <stdio.h>

struct match_case {
    const char *pattern;
    const char *text;
    bool matches;
};

static void patterns_match_the_whole_key(void **state)
{
    (void)state;
    static const struct match_case cases[] = {
        {"*", "", true},
        {"*", "a/b//c", true},
        {"*.gz", "a/b.gz", true},
        {"*.gz", "a/b.gz/", false},
        {"*.gz", ".gz", true},
        {"a*b*c", "a/x/b/y/c", true},
        {"a*b*c", "a/x/b/y/d", false},
        {"a**c", "ac", true},
        {"*ab", "aab", true},
        {"*aab", "aaab", true},
        {"abc", "abc", true},
        {"abc", "ab", false},
        {"abc", "abcd", false},
        {"?", "a", true},
        {"?", "", false},
        {"?", "ab", false},
        {"?", "\xC3\xA9", true},
        {"??", "\xC3\xA9", false},
        {"?", "\xF0\x9F\x98\x80", true},
        {"?", "\xFF", true},
        {"??", "\xC3x", true},
        {"[abc]", "b", true},
        {"[abc]", "d", false},
        {"[a-c]x", "bx", true},
        {"[a-c]x", "dx", false},
        {"[!a-c]", "d", true},
        {"[!a-c]", "b", false},
        {"[!a-c]", "", false},
        {"[]]", "]", true},
        {"[!]]", "]", false},
        {"[a-]", "-", true},
        {"[-a]", "-", true},
        {"[\\]a]", "]", true},
        {"[\xC3\xA0-\xC3\xBF]", "\xC3\xA9", true},
        {"[\xC3\xA0-\xC3\xBF]", "e", false},
        {"[0-9][0-9]*", "42x", true},
        {"\\*", "*", true},
        {"\\*", "x", false},
        {"\\[x]", "[x]", true},
        {"a\\\\b", "a\\b", true},
        {"x]", "x]", true},
        {"", "", false}, /* refused patterns match nothing */
        {"[a", "a", false},
        {"[c-a]", "b", false},
        {"a\\", "a\\", false},
    };
    for (size_t i = 0; i < XF_ARRAY_LEN(cases); i++) {
        if (xf_glob_match(xf_str_c(cases[i].pattern), xf_str_c(cases[i].text)) !=
            cases[i].matches) {
            fail_msg("pattern '%s', text '%s'", cases[i].pattern, cases[i].text);
        }
    }
}

static void c037_wildcards_in_keys_are_reached_by_escapes(void **state)
{
    (void)state;
    assert_true(xf_glob_match(XF_STR_LIT("junk\\*star/1"), XF_STR_LIT("junk*star/1")));
    assert_false(xf_glob_match(XF_STR_LIT("junk\\*star/1"), XF_STR_LIT("junkXstar/1")));
    assert_true(xf_glob_match(XF_STR_LIT("q\\?.wav"), XF_STR_LIT("q?.wav")));
    assert_false(xf_glob_match(XF_STR_LIT("q\\?.wav"), XF_STR_LIT("q1.wav")));
    assert_true(xf_glob_match(XF_STR_LIT("\\[8-0]x"), XF_STR_LIT("[8-0]x")));
    assert_non_null(xf_glob_check(XF_STR_LIT("[8-0]x")));
    assert_true(xf_glob_match(XF_STR_LIT("{a,b}"), XF_STR_LIT("{a,b}")));
    assert_true(xf_glob_match(XF_STR_LIT("back\\\\slash"), XF_STR_LIT("back\\slash")));
    assert_true(xf_glob_match(XF_STR_LIT("*"), XF_STR_LIT("nl\nx\0y")));
}

static void wrong_patterns_are_told(void **state)
{
    (void)state;
    assert_null(xf_glob_check(XF_STR_LIT("a*[b-d]?\\[")));
    assert_non_null(xf_glob_check(XF_STR_EMPTY));
    assert_non_null(xf_glob_check(XF_STR_LIT("[")));
    assert_non_null(xf_glob_check(XF_STR_LIT("[]")));
    assert_non_null(xf_glob_check(XF_STR_LIT("[!]")));
    assert_non_null(xf_glob_check(XF_STR_LIT("[a-\\")));
    assert_non_null(xf_glob_check(XF_STR_LIT("x\\")));
    char longest[XF_GLOB_MAX + 1];
    memset(longest, 'a', sizeof(longest));
    assert_null(xf_glob_check(xf_str_n(longest, XF_GLOB_MAX)));
    assert_non_null(xf_glob_check(xf_str_n(longest, XF_GLOB_MAX + 1)));
}

/* Would take for ever with a matcher that comes back to every star. */
static void many_stars_stay_fast(void **state)
{
    (void)state;
    char pattern[401];
    char text[1024];
    for (size_t i = 0; i < 400; i += 2) {
        pattern[i] = '*';
        pattern[i + 1] = 'a';
    }
    pattern[400] = 'b';
    memset(text, 'a', sizeof(text));
    for (int i = 0; i < 100; i++) {
        assert_false(
            xf_glob_match(xf_str_n(pattern, sizeof(pattern)), xf_str_n(text, sizeof(text))));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_match_the_whole_key),
        cmocka_unit_test(c037_wildcards_in_keys_are_reached_by_escapes),
        cmocka_unit_test(wrong_patterns_are_told),
        cmocka_unit_test(many_stars_stay_fast),
    };
    return xf_test_run("glob", tests, NULL, NULL);
}
