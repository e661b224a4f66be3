/*
 * creds_test.c - the credential sources, their order, their errors, and that no error tells a
 * secret.
 */
#include "common/s3/creds.h"
#include "common/s3/provider.h"
#include "tests/lib/test.h"
#include "tests/lib/tmpdir.h"

#define SECRET "SECRETSECRETSECRET"

struct fx {
    struct xf_tmpdir *dir;
    const char *env[24]; /* name, value, ... */
    size_t n_env;
};

static int setup(void **state)
{
    struct fx *fx = xf_xcalloc(1, sizeof(*fx));

    fx->dir = xf_tmpdir_new();
    *state = fx;
    return 0;
}

static int teardown(void **state)
{
    struct fx *fx = *state;

    xf_tmpdir_free(fx->dir);
    xf_xfree(fx);
    return 0;
}

static const char *fake_getenv(void *arg, const char *name)
{
    const struct fx *fx = arg;

    for (size_t i = 0; i + 1 < fx->n_env; i += 2) {
        if (strcmp(fx->env[i], name) == 0) {
            return fx->env[i + 1];
        }
    }
    /* No test asks the metadata service of the machine it runs on. */
    return strcmp(name, "AWS_EC2_METADATA_DISABLED") == 0 ? "true" : NULL;
}

static void set(struct fx *fx, const char *name, const char *value)
{
    assert_true(fx->n_env + 2 <= XF_ARRAY_LEN(fx->env));
    fx->env[fx->n_env++] = name;
    fx->env[fx->n_env++] = value;
}

static void write_credentials(struct fx *fx, const char *text)
{
    set(fx, "AWS_SHARED_CREDENTIALS_FILE", xf_tmpdir_write(fx->dir, "credentials", xf_str_c(text)));
}

static void write_config(struct fx *fx, const char *text)
{
    set(fx, "AWS_CONFIG_FILE", xf_tmpdir_write(fx->dir, "config", xf_str_c(text)));
}

static struct xf_creds_source *source(struct fx *fx, const char *profile)
{
    struct xf_creds_opts o = {
        .profile = xf_str_c(profile), .getenv = fake_getenv, .getenv_arg = fx};
    struct xf_creds_source *s = NULL;
    struct xf_err err;

    assert_int_equal(xf_creds_source_new(&o, &s, &err), XF_OK);
    return s;
}

/* "access/token" of what the source gives, or the error's text. */
static const char *resolve(struct xf_creds_source *s, struct xf_buf *out)
{
    struct xf_creds *creds = NULL;
    struct xf_err err;

    xf_buf_reset(out);
    if (xf_creds_resolve(s, &creds, &err) == XF_OK) {
        xf_buf_put(out, xf_creds_access_key(creds));
        xf_buf_put_byte(out, '/');
        xf_buf_put(out, xf_creds_session_token(creds));
        assert_true(xf_str_eq_c(xf_creds_secret_key(creds), SECRET));
        xf_creds_unref(creds);
    } else {
        assert_int_equal(err.code, XF_E_CREDS);
        assert_null(strstr(err.msg, SECRET));
        xf_buf_put_c(out, err.msg);
    }
    return out->ptr;
}

static void check(struct fx *fx, const char *profile, const char *want)
{
    XF_AUTO(xf_creds_source) s = source(fx, profile);
    XF_AUTO_BUF got = {0};

    assert_string_equal(resolve(s, &got), want);
}

static void check_error(struct fx *fx, const char *profile, const char *part)
{
    XF_AUTO(xf_creds_source) s = source(fx, profile);
    XF_AUTO_BUF got = {0};

    if (strstr(resolve(s, &got), part) == NULL) {
        fail_msg("'%s' is not in: %s", part, got.ptr);
    }
}

static void environment_comes_first(void **state)
{
    struct fx *fx = *state;

    write_credentials(fx,
                      "[default]\naws_access_key_id = FILE\naws_secret_access_key = " SECRET
                      "\n[p]\naws_access_key_id=PFILE\naws_secret_access_key=" SECRET "\n");
    check(fx, "", "FILE/");
    set(fx, "AWS_ACCESS_KEY_ID", "ENV");
    check_error(fx, "", "AWS_ACCESS_KEY_ID is set without AWS_SECRET_ACCESS_KEY");
    set(fx, "AWS_SECRET_ACCESS_KEY", SECRET);
    check(fx, "", "ENV/");
    set(fx, "AWS_SESSION_TOKEN", "TOK");
    check(fx, "", "ENV/TOK");
    check(fx, "p", "PFILE/"); /* a profile that the job names goes before the environment */
}

static void named_variables_and_nothing_else(void **state)
{
    struct fx *fx = *state;
    struct xf_creds_opts o = {.access_key_env = XF_STR_LIT("SRC_KEY"),
                              .secret_key_env = XF_STR_LIT("SRC_SECRET"),
                              .getenv = fake_getenv,
                              .getenv_arg = fx};
    struct xf_creds_source *s = NULL;
    struct xf_err err;
    XF_AUTO_BUF got = {0};

    set(fx, "AWS_ACCESS_KEY_ID", "ENV");
    set(fx, "AWS_SECRET_ACCESS_KEY", SECRET);
    assert_int_equal(xf_creds_source_new(&o, &s, &err), XF_OK);
    assert_non_null(strstr(resolve(s, &got), "SRC_KEY is not set"));
    set(fx, "SRC_KEY", "SRC");
    assert_non_null(strstr(resolve(s, &got), "SRC_SECRET is not set"));
    set(fx, "SRC_SECRET", SECRET);
    assert_string_equal(resolve(s, &got), "SRC/");
    xf_creds_source_free(s);

    o.secret_key_env = XF_STR_EMPTY;
    assert_int_equal(xf_creds_source_new(&o, &s, &err), XF_E_INVAL);
    o.secret_key_env = XF_STR_LIT("SRC_SECRET");
    o.profile = XF_STR_LIT("p");
    assert_int_equal(xf_creds_source_new(&o, &s, &err), XF_E_INVAL);
}

static void profiles_of_both_files(void **state)
{
    struct fx *fx = *state;

    write_config(fx,
                 "# comment\n[default]\nregion = eu-west-1\n\n[profile other]\n"
                 "aws_access_key_id = CONF\naws_secret_access_key = " SECRET
                 "\naws_session_token = T\nregion=us-west-2\ns3 =\n  addressing_style = path\n"
                 "[sso-session x]\nsso_region = a\n[plain]\nregion = ignored\n");
    write_credentials(fx, "; none here\n");
    check(fx, "other", "CONF/T");
    check_error(fx, "plain", "profile 'plain' does not exist");
    check_error(fx, "", "profile 'default' has no keys");
    set(fx, "AWS_PROFILE", "other");
    check(fx, "", "CONF/T");
}

static void regions(void **state)
{
    struct fx *fx = *state;
    XF_AUTO(xf_creds_source) s = source(fx, "");
    XF_AUTO(xf_creds_source) p = source(fx, "other");
    XF_AUTO_BUF got = {0};
    struct xf_err err;

    write_config(fx, "[default]\nregion = eu-west-1\n[profile other]\nregion=us-west-2\n");
    assert_int_equal(xf_creds_region(s, &got, &err), XF_OK);
    assert_string_equal(got.ptr, "eu-west-1");
    set(fx, "AWS_DEFAULT_REGION", "ap-south-1");
    assert_int_equal(xf_creds_region(s, &got, &err), XF_OK);
    assert_string_equal(got.ptr, "ap-south-1");
    assert_int_equal(xf_creds_region(p, &got, &err), XF_OK);
    assert_string_equal(got.ptr, "us-west-2");
}

static void broken_files_name_file_and_line(void **state)
{
    static const struct {
        const char *text;
        const char *part;
    } rows[] = {
        {"[default]\naws_access_key_id\n", "credentials:2: neither a section nor"},
        {"a = b\n", "credentials:1: option before the first section"},
        {"[default\n", "credentials:1: section without ']'"},
        {"[]\n", "credentials:1: section without a name"},
        {"[default] x\n", "credentials:1: text after ']'"},
        {"  x = y\n", "credentials:1: indented line"},
        {"[default]\n= y\n", "credentials:2: '=' without a key"},
        {"[default]\n" SECRET "\n", "credentials:2: "},
        {"[default]\naws_access_key_id = A\n",
         "credentials:2: profile 'default' has "
         "aws_access_key_id but no aws_secret_access_key"},
        {"[default]\naws_access_key_id = A B\naws_secret_access_key = " SECRET "\n",
         "credentials:2: profile 'default': access key holds a blank"},
        {"[default]\naws_access_key_id = A\naws_secret_access_key = " SECRET "\x01x\n",
         "secret key holds a blank"},
        {"[default]\nrole_arn = arn:aws:iam::1:role/r\n",
         "credentials:2: profile 'default': role_arn needs exactly one of source_profile"},
        {"[default]\ncredential_process = /bin/false\n",
         "credentials:2: profile 'default': credential_process: '/bin/false' ended with exit"},
        {"[default]\ncredential_process = /bin/echo \"x\n",
         "credentials:2: profile 'default': credential_process: a quote is not closed"},
        {"[default]\ncredential_process = /bin/echo '{}'\n", "access key is empty"},
        {"[default]\nsso_session = x\n",
         "credentials:2: profile 'default' uses sso_session, which is not supported"},
    };
    struct fx *fx = *state;

    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        fx->n_env = 0;
        write_credentials(fx, rows[i].text);
        check_error(fx, "", rows[i].part);
    }
    fx->n_env = 0;
    check_error(fx, "", "no credentials");
    set(fx, "AWS_SHARED_CREDENTIALS_FILE", xf_tmpdir_path(fx->dir)); /* a folder */
    check_error(fx, "", xf_tmpdir_path(fx->dir));
}

static void home_holds_the_usual_files(void **state)
{
    struct fx *fx = *state;

    set(fx, "HOME", xf_tmpdir_path(fx->dir));
    check_error(fx, "", "/.aws/credentials");
    xf_tmpdir_write(fx->dir,
                    "keys",
                    XF_STR_LIT("\xef\xbb\xbf[default]\r\naws_access_key_id = H\r\n"
                               "aws_secret_access_key = " SECRET "\r\n"));
    set(fx, "AWS_SHARED_CREDENTIALS_FILE", "~/keys");
    check(fx, "", "H/");
}

static void c059_files_are_read_again(void **state)
{
    struct fx *fx = *state;
    XF_AUTO(xf_creds_source) s = source(fx, "");
    XF_AUTO_BUF got = {0};

    write_credentials(fx, "[default]\naws_access_key_id = OLD\naws_secret_access_key = " SECRET);
    assert_string_equal(resolve(s, &got), "OLD/");
    xf_tmpdir_write(fx->dir,
                    "credentials",
                    XF_STR_LIT("[default]\naws_access_key_id = NEW\naws_secret_access_key = " SECRET
                               "\naws_session_token = T\n"));
    assert_string_equal(resolve(s, &got), "NEW/T");
}

static void expiration_is_understood(void **state)
{
    struct fx *fx = *state;
    XF_AUTO(xf_creds_source) s = source(fx, "");
    struct xf_creds *creds = NULL;
    struct xf_err err;

    set(fx, "AWS_ACCESS_KEY_ID", "ENV");
    set(fx, "AWS_SECRET_ACCESS_KEY", SECRET);
    set(fx, "AWS_CREDENTIAL_EXPIRATION", "2013-05-24T00:00:00Z");
    assert_int_equal(xf_creds_resolve(s, &creds, &err), XF_OK);
    assert_true(xf_creds_expires_ms(creds) == 1369353600000);
    xf_creds_unref(creds);
}

static void c070_keys_are_shown_masked(void **state)
{
    struct xf_creds *creds = NULL;
    struct xf_err err;
    XF_AUTO_BUF shown = {0};

    (void)state;
    assert_int_equal(
        xf_creds_new(
            XF_STR_LIT("AKIAIOSFODNN7EXAMPLE"), XF_STR_LIT(SECRET), XF_STR_EMPTY, 0, &creds, &err),
        XF_OK);
    xf_creds_masked_key(creds, &shown);
    assert_string_equal(shown.ptr, "AKIA****MPLE");
    xf_creds_unref(creds);
    assert_int_equal(
        xf_creds_new(XF_STR_LIT("short"), XF_STR_LIT(SECRET), XF_STR_EMPTY, 0, &creds, &err),
        XF_OK);
    xf_buf_reset(&shown);
    xf_creds_masked_key(creds, &shown);
    assert_string_equal(shown.ptr, "****");
    xf_creds_unref(creds);
    assert_int_equal(
        xf_creds_new(XF_STR_LIT("A"), XF_STR_LIT(SECRET "\n"), XF_STR_EMPTY, 0, &creds, &err),
        XF_E_INVAL);
    assert_null(strstr(err.msg, SECRET));
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(environment_comes_first),
        T(named_variables_and_nothing_else),
        T(profiles_of_both_files),
        T(regions),
        T(broken_files_name_file_and_line),
        T(home_holds_the_usual_files),
        T(c059_files_are_read_again),
        T(expiration_is_understood),
        T(c070_keys_are_shown_masked),
    };

    return xf_test_run("s3/creds", tests, NULL, NULL);
}
