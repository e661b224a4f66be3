/*
 * spec_test.c - migrate.toml: values, defaults, what is refused, mapping and selection of keys.
 */
#include "tests/unit/job/spec_fx.h"

#include <stdlib.h>

static const char full[] =
    "format = 1\n"
    "[job]\nname = \"logs-to-oregon\"\npriority = 7\nallow_empty = true\nvanished = \"fail\"\n"
    "[source]\nurl = \"s3://prod-logs/2024/\"\nregion = \"us-east-1\"\n"
    "endpoint = \"http://LocalHost:9000/base/\"\nprofile = \"old-account\"\nrequester_pays = true\n"
    "[destination]\nurl = \"s3://prod-logs-west/archive/2024/\"\nregion = \"us-west-2\"\n"
    "access_key_env = \"NEW_ID\"\nsecret_key_env = \"NEW_SECRET\"\nsession_token_env = "
    "\"NEW_TOKEN\"\n"
    "storage_class = \"STANDARD_IA\"\npath_style = true\n"
    "[select]\ninclude = [\"*.gz\"]\nexclude = [\"tmp/*\", \"x?\"]\nmin_size = \"1KiB\"\n"
    "max_size = \"5TiB\"\nnewer_than = \"30d\"\nolder_than = 2024-06-01T00:00:00Z\n"
    "[copy]\nmode = \"relay\"\npart_size = \"16MiB\"\nmultipart_threshold = \"32MiB\"\n"
    "if_exists = \"overwrite\"\nmetadata = false\ntags = \"required\"\n"
    "[verify]\nmode = \"checksum\"\n"
    "[limits]\nbandwidth = \"10Gbit/s\"\nin_flight = 2048\n"
    "[retry]\nattempts = 3\n"
    "[report]\npath = \"reports/\"\n";

static void check_eq(struct xf_str got, const char *want)
{
    assert_int_equal(got.len, strlen(want));
    assert_memory_equal(got.ptr, want, got.len);
}

static void every_key_is_read(void **state)
{
    (void)state;
    XF_AUTO(xf_job_spec) s = parse_ok(full);
    check_eq(s->name, "logs-to-oregon");
    assert_true(s->priority == 7 && s->allow_empty && s->vanished == XF_JOB_VANISHED_FAIL);
    assert_int_equal(s->source.n_urls, 1);
    check_eq(s->source.urls[0].text, "s3://prod-logs/2024/");
    check_eq(s->source.urls[0].bucket, "prod-logs");
    check_eq(s->source.urls[0].prefix, "2024/");
    check_eq(s->source.region, "us-east-1");
    check_eq(s->source.endpoint, "http://localhost:9000/base");
    check_eq(s->source.profile, "old-account");
    assert_true(s->source.requester_pays && s->source.is_path_style);
    check_eq(s->destination.urls[0].prefix, "archive/2024/");
    check_eq(s->destination.access_key_env, "NEW_ID");
    check_eq(s->destination.secret_key_env, "NEW_SECRET");
    check_eq(s->destination.session_token_env, "NEW_TOKEN");
    check_eq(s->destination.storage_class, "STANDARD_IA");
    assert_true(s->destination.is_path_style && !s->destination.requester_pays);
    assert_true(s->select.include.len == 1 && s->select.exclude.len == 2);
    assert_true(s->select.min_size == 1024 && s->select.max_size == 5497558138880);
    assert_true(s->select.newer_than.is_age && s->select.older_than.ms == 1717200000000);
    assert_int_equal(s->mode, XF_JOB_MODE_RELAY);
    assert_true(s->part_size == 16777216 && s->multipart_threshold == 33554432);
    assert_int_equal(s->if_exists, XF_JOB_EXISTS_OVERWRITE);
    assert_true(!s->metadata && s->tags == XF_JOB_TAGS_REQUIRED &&
                s->verify == XF_JOB_VERIFY_CHECKSUM);
    assert_true(s->bandwidth.at[0].limit == 1250000000 && s->in_flight == 2048 && s->attempts == 3);
    check_eq(s->report_path, "reports/");
}

static void defaults_are_those_of_the_manual(void **state)
{
    (void)state;
    XF_AUTO(xf_job_spec) s = parse_ok(BOTH);
    assert_true(s->format == 1 && s->priority == 5 && !s->allow_empty &&
                s->vanished == XF_JOB_VANISHED_OK);
    check_eq(s->name, "a to b");
    assert_true(s->source.region.len == 0 && s->source.endpoint.len == 0 &&
                !s->source.is_path_style);
    assert_true(s->destination.storage_class.len == 0);
    assert_true(s->select.min_size == 0 && s->select.max_size == (uint64_t)INT64_MAX);
    assert_int_equal(s->mode, XF_JOB_MODE_AUTO);
    assert_int_equal(s->if_exists, XF_JOB_EXISTS_SKIP_SAME);
    assert_int_equal(s->tags, XF_JOB_TAGS_BEST_EFFORT);
    assert_int_equal(s->verify, XF_JOB_VERIFY_ETAG);
    assert_true(s->metadata && s->part_size == 67108864 && s->multipart_threshold == 67108864);
    assert_true(s->attempts == 8 && s->bandwidth.n == 0 && s->in_flight == 0 &&
                s->report_path.len == 0);
}

static void the_threshold_follows_the_part_size(void **state)
{
    (void)state;
    XF_AUTO(xf_job_spec) s = parse_ok(BOTH "[copy]\npart_size = \"8MiB\"\n");
    assert_true(s->multipart_threshold == 8388608);
}

/* ---- refusals
 * ------------------------------------------------------------------------------------ */

static void unknown_keys_are_errors_with_file_line_and_key(void **state)
{
    (void)state;
    check_refused(BOTH "[copy]\npart_sizes = \"64MiB\"\n",
                  "m.toml:6:1: unknown key 'copy.part_sizes'; did you mean 'part_size'?");
    check_refused(BOTH "[copi]\n", "m.toml:5:2: unknown section 'copi'; did you mean 'copy'?");
    check_refused("part_size = \"64MiB\"\n" BOTH,
                  "m.toml:1:1: unknown key 'part_size'; it belongs in [copy]");
    check_refused(SOURCE "storage_class = \"X\"\n" DESTINATION,
                  "m.toml:3:1: unknown key 'source.storage_class'; it belongs in [destination]");
    check_refused(
        BOTH "[copy]\nmode = \"fast\"\n",
        "m.toml:6:8: 'copy.mode' is \"fast\"; it must be \"auto\", \"server\" or \"relay\"");
    check_refused(BOTH "[copy]\npart_size = \"4MiB\"\n",
                  "m.toml:6:13: 'copy.part_size' is 4MiB, outside its range: 5MiB to 5GiB");
    check_refused(BOTH "[copy]\npart_size = \"5121MiB\"\n",
                  "m.toml:6:13: 'copy.part_size' is 5121MiB, outside its range: 5MiB to 5GiB");
    check_refused(BOTH "[job]\npriority = 0\n",
                  "m.toml:6:12: 'job.priority' is 0, outside its range: 1 to 9");
    check_refused("format = 2\n" BOTH, "m.toml:1:10: 'format' is 2, outside its range: 1 to 1");
    check_refused(BOTH "[job]\nname = \"a\\nb\"\n",
                  "m.toml:6:8: a job's name has no control characters");
}

static void later_keys_are_refused_as_not_supported_yet(void **state)
{
    (void)state;
    static const char *const sections[] = {"map", "sync", "notify"};
    static const char *const keys[] = {"versions", "max_failures", "budget_usd", "archived"};
    char text[256];
    for (size_t i = 0; i < XF_ARRAY_LEN(sections); i++) {
        (void)snprintf(text, sizeof(text), BOTH "[%s]\nx = 1\n", sections[i]);
        assert_null(parse(text));
        assert_int_equal(err.code, XF_E_UNSUPPORTED);
        assert_non_null(strstr(err.msg, "is not supported yet"));
    }
    for (size_t i = 0; i < XF_ARRAY_LEN(keys); i++) {
        (void)snprintf(text, sizeof(text), BOTH "%s = 1\n", keys[i]);
        assert_null(parse(text));
        assert_int_equal(err.code, XF_E_UNSUPPORTED);
        (void)snprintf(
            text, sizeof(text), "m.toml:5:1: 'destination.%s' is not supported yet", keys[i]);
        assert_string_equal(err.msg, text);
    }
    check_refused("[source]\nmanifest = \"s3://a/m.csv\"\n" DESTINATION,
                  "m.toml:2:1: 'source.manifest' is not supported yet: give url or urls");
    check_refused("[source]\nurl = \"file:///data\"\n" DESTINATION,
                  "m.toml:2:7: file:// urls are not supported yet; write s3://BUCKET/PREFIX");
    assert_int_equal(err.code, XF_E_UNSUPPORTED);
    check_refused(SOURCE "external_id = \"x\"\n" DESTINATION,
                  "m.toml:3:15: 'source.external_id' needs role_arn beside it");
    check_refused(SOURCE "role_arn = \"mover\"\n" DESTINATION,
                  "m.toml:3:12: 'source.role_arn' must be like "
                  "arn:aws:iam::123456789012:role/name");
    check_refused(SOURCE "role_arn = \"arn:aws:iam::1:role/x\"\naccess_key_env = \"A\"\n"
                         "secret_key_env = \"B\"\n" DESTINATION,
                  "m.toml:3:12: [source] has role_arn and access_key_env; the role is assumed with "
                  "a profile or the provider chain");
}

static void what_is_asked_of_new_objects_goes_together(void **state)
{
    (void)state;
    check_refused(SOURCE DESTINATION "kms_key = \"k\"\n",
                  "m.toml:5:11: 'destination.kms_key' needs sse = \"aws:kms\" beside it");
    check_refused(SOURCE DESTINATION "sse = \"AES256\"\nkms_key = \"k\"\n",
                  "m.toml:6:11: 'destination.kms_key' needs sse = \"aws:kms\" beside it");
    check_refused(SOURCE DESTINATION "sse = \"AES256\"\ncustomer_key_env = \"K\"\n",
                  "m.toml:5:7: [destination] has sse and customer_key_env; give one of them");
    check_refused(SOURCE "customer_key_env = \"K\"\n" DESTINATION "[copy]\nmode = \"server\"\n",
                  "m.toml:7:8: objects with a customer_key_env go by relay; use \"auto\" or "
                  "\"relay\"");
    check_refused(SOURCE "customer_key_env = \"K\"\nendpoint = \"http://10.0.0.1\"\n" DESTINATION,
                  "m.toml:3:20: 'source.customer_key_env' would be sent in clear: give a https:// "
                  "endpoint");
    check_refused(BOTH "[copy]\nsource_mtime = true\nmetadata = false\n",
                  "m.toml:6:16: source_mtime is metadata, but metadata = false");
    check_refused(SOURCE DESTINATION "storage_class_map = [\"A=B\", \"C\"]\n",
                  "m.toml:5:21: 'C' must be two storage classes with '=' between, such as "
                  "GLACIER_IR=STANDARD_IA");
    check_refused(
        SOURCE DESTINATION "acl = \"mine\"\n",
        "m.toml:5:7: 'destination.acl' is \"mine\"; it must be \"none\", \"private\", "
        "\"public-read\", \"public-read-write\", \"authenticated-read\", "
        "\"aws-exec-read\", \"bucket-owner-read\" or \"bucket-owner-full-control\"; did you "
        "mean \"none\"?");
}

static void a_class_is_mapped_set_or_kept(void **state)
{
    (void)state;
    XF_AUTO(xf_job_spec)
    mapped = parse_ok(SOURCE DESTINATION
                      "storage_class = \"STANDARD_IA\"\n"
                      "storage_class_map = [\"GLACIER_IR=ONEZONE_IA\", \"STANDARD=GLACIER_IR\"]\n"
                      "acl = \"private\"\nsse = \"aws:kms:dsse\"\n");
    XF_AUTO(xf_job_spec) kept = parse_ok(BOTH);

    check_eq(xf_job_spec_class(mapped, XF_STR_LIT("GLACIER_IR")), "ONEZONE_IA");
    check_eq(xf_job_spec_class(mapped, XF_STR_EMPTY), "GLACIER_IR");
    check_eq(xf_job_spec_class(mapped, XF_STR_LIT("STANDARD")), "GLACIER_IR");
    check_eq(xf_job_spec_class(mapped, XF_STR_LIT("REDUCED_REDUNDANCY")), "STANDARD_IA");
    check_eq(xf_job_spec_class(kept, XF_STR_LIT("STANDARD_IA")), "STANDARD_IA");
    check_eq(xf_job_spec_class(kept, XF_STR_LIT("STANDARD")), "");
    check_eq(xf_job_spec_acl(mapped), "private");
    check_eq(xf_job_spec_sse(mapped), "aws:kms:dsse");
    check_eq(xf_job_spec_acl(kept), "");
    check_eq(xf_job_spec_sse(kept), "");
}

static void urls_are_checked(void **state)
{
    (void)state;
    check_refused(DESTINATION,
                  "m.toml: [source] needs a url, such as url = \"s3://BUCKET/PREFIX\"");
    check_refused(SOURCE,
                  "m.toml: [destination] needs a url, such as url = \"s3://BUCKET/PREFIX\"");
    check_refused("[source]\nurl = \"s3://a\"\nurls = [\"s3://b\"]\n" DESTINATION,
                  "m.toml:3:8: give url or urls in [source], not both");
    check_refused("[source]\nurl = \"https://a/b\"\n" DESTINATION,
                  "m.toml:2:7: a url is written s3://BUCKET/PREFIX; a server's address belongs in "
                  "source.endpoint");
    check_refused("[source]\nurl = \"s3:///b\"\n" DESTINATION,
                  "m.toml:2:7: the url names no bucket; write s3://BUCKET/PREFIX");
    check_refused(
        "[source]\nurl = \"s3://a b/\"\n" DESTINATION,
        "m.toml:2:7: the bucket's name in 's3://a b/' holds a character that none has (letters, "
        "digits, '.', '-', '_')");
    check_refused("[source]\nurl = \"s3://arn:aws:s3:us-east-1:1:accesspoint/x\"\n" DESTINATION,
                  "m.toml:2:7: ARNs are not supported yet; write s3://BUCKET/PREFIX");
    check_refused(
        BOTH "endpoint = \"ftp://x\"\n",
        "m.toml:5:12: endpoint must start with http:// or https://; write http://HOST:PORT or "
        "https://HOST");
    check_refused(BOTH "region = \"us east\"\n",
                  "m.toml:5:10: a region's name has letters, digits, '-' and '_' only");
    check_refused(BOTH "endpoint = \"http://x:1\"\nfips = true\n",
                  "m.toml:6:8: [destination] has fips and an endpoint; give the endpoint that is "
                  "meant, or none");
    check_refused(
        BOTH "endpoint = \"http://x:1\"\ndualstack = true\n",
        "m.toml:6:13: [destination] has dualstack and an endpoint; give the endpoint that "
        "is meant, or none");
    check_refused(BOTH "ca_file = \"ca.pem\"\n",
                  "m.toml:5:11: 'destination.ca_file' must be a whole path: other hosts read it");
    check_refused(
        BOTH "storage_class = \"standard\"\n",
        "m.toml:5:17: a storage class has capital letters, digits and '_', such as STANDARD_IA");
}

static void c032_prefixes_keep_every_byte(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"s3://b", "b", ""},
        {"s3://b/", "b", ""},
        {"s3://b//x", "b", "/x"},
        {"s3://b///", "b", "//"},
        {"s3://b/a//b/../c/./", "b", "a//b/../c/./"},
        {"s3://b/%2F?x#y&", "b", "%2F?x#y&"},
        {"s3://b/junk*star/", "b", "junk*star/"},
    };
    for (size_t i = 0; i < XF_ARRAY_LEN(cases); i++) {
        char text[256];
        (void)snprintf(text,
                       sizeof(text),
                       "[source]\nurl = '%s'\n[destination]\nurl = \"s3://other/y\"\n",
                       cases[i][0]);
        XF_AUTO(xf_job_spec) s = parse_ok(text);
        check_eq(s->source.urls[0].bucket, cases[i][1]);
        check_eq(s->source.urls[0].prefix, cases[i][2]);
    }
}

static void c016_overlap_of_source_and_destination_is_refused(void **state)
{
    (void)state;
    check_refused("[source]\nurl = \"s3://b/x/\"\n[destination]\nurl = \"s3://b/x/copy/\"\n",
                  "m.toml:4:7: source 's3://b/x/' and destination 's3://b/x/copy/' overlap in one "
                  "bucket: the "
                  "job would read what it wrote");
    assert_null(parse("[source]\nurl = \"s3://b/x/\"\n[destination]\nurl = \"s3://b/x/\"\n"));
    assert_null(parse("[source]\nurl = \"s3://b/x/y/\"\n[destination]\nurl = \"s3://b/x/\"\n"));
    assert_null(parse("[source]\nurl = \"s3://b\"\n[destination]\nurl = \"s3://b/x/\"\n"));
    assert_null(parse("[source]\nurl = \"s3://b/x\"\n[destination]\nurl = \"s3://b/xy\"\n"));
    /* one host by two names */
    assert_null(
        parse("[source]\nurl = \"s3://b/x\"\nendpoint = \"http://localhost:9000\"\n[destination]\n"
              "url = \"s3://b/x\"\nendpoint = \"http://127.0.0.1:9000\"\n"));
    /* the AWS endpoint written out */
    assert_null(
        parse("[source]\nurl = \"s3://b/x\"\nendpoint = \"https://s3.us-east-1.amazonaws.com\"\n"
              "[destination]\nurl = \"s3://b/x\"\nregion = \"us-east-1\"\n"));
    /* neighbours, other buckets and other servers are fine */
    xf_job_spec_free(
        parse_ok("[source]\nurl = \"s3://b/x/\"\n[destination]\nurl = \"s3://b/y/\"\n"));
    xf_job_spec_free(parse_ok("[source]\nurl = \"s3://b/x\"\n[destination]\nurl = \"s3://c/x\"\n"));
    xf_job_spec_free(
        parse_ok("[source]\nurl = \"s3://b/x\"\nendpoint = \"http://127.0.0.1:9000\"\n"
                 "[destination]\nurl = \"s3://b/x\"\nendpoint = \"http://127.0.0.1:9001\"\n"));
    xf_job_spec_free(
        parse_ok("[source]\nurl = \"s3://b/x\"\nregion = \"cn-north-1\"\n[destination]\n"
                 "url = \"s3://b/x\"\nregion = \"us-east-1\"\n"));
}

static void overlapping_urls_of_one_side_are_refused(void **state)
{
    (void)state;
    check_refused("[source]\nurls = [\"s3://a/x\", \"s3://a/xy/\"]\n[destination]\n"
                  "urls = [\"s3://b/1/\", \"s3://b/2/\"]\n",
                  "m.toml:2:8: 's3://a/x' and 's3://a/xy/' overlap: one prefix begins the other");
    check_refused("[source]\nurls = [\"s3://a/x/\", \"s3://a/y/\"]\n[destination]\n"
                  "urls = [\"s3://b/\", \"s3://b/2/\"]\n",
                  "m.toml:4:8: 's3://b/' and 's3://b/2/' overlap: one prefix begins the other");
    check_refused(
        "[source]\nurls = [\"s3://a/x/\", \"s3://a/y/\"]\n" DESTINATION,
        "m.toml:4:7: 2 source urls and 1 destination url(s): give [destination] urls with one url "
        "for each of the source's, so that no two objects get the same key");
}

static void several_urls_map_in_pairs(void **state)
{
    (void)state;
    XF_AUTO(xf_job_spec) s =
        parse_ok("[source]\nurls = [\"s3://a/x/\", \"s3://c/y/\"]\n[destination]\n"
                 "urls = [\"s3://b/1/\", \"s3://b/2/\"]\n");
    XF_AUTO_BUF out = {0};
    xf_buf_init(&out, 0);
    assert_int_equal(xf_job_spec_map_key(s, 1, XF_STR_LIT("y/k"), &out, &err), XF_OK);
    assert_string_equal(out.ptr, "2/k");
    assert_int_equal(xf_job_spec_map_key(s, 0, XF_STR_LIT("x/k"), &out, &err), XF_OK);
    assert_string_equal(out.ptr, "1/k");
}

static void c009_server_mode_across_services_names_both(void **state)
{
    (void)state;
    check_refused(
        "[source]\nurl = \"s3://data/k\"\nendpoint = \"http://127.0.0.1:9000\"\n[destination]\n"
        "url = \"s3://data/out/k\"\nendpoint = \"http://127.0.0.1:9001/\"\n[copy]\nmode = "
        "\"server\"\n",
        "m.toml:8:8: mode = \"server\" needs one service on both sides, but the source is "
        "http://127.0.0.1:9000 and the destination is http://127.0.0.1:9001; use \"auto\" or "
        "\"relay\"");
    check_refused(
        SOURCE "region = \"cn-north-1\"\n" DESTINATION "[copy]\nmode = \"server\"\n",
        "m.toml:7:8: mode = \"server\" needs one service on both sides, but the source is AWS "
        "(partition aws-cn) and the destination is AWS (partition aws); use \"auto\" or \"relay\"");
    XF_AUTO(xf_job_spec) s = parse_ok(SOURCE "region = \"us-east-1\"\n" DESTINATION
                                             "region = \"eu-west-1\"\n[copy]\nmode = \"server\"\n");
    assert_true(xf_job_spec_is_same_service(s));
}

static void same_service_is_one_endpoint_or_one_partition(void **state)
{
    (void)state;
    static const struct {
        const char *source;
        const char *destination;
        bool same;
    } cases[] = {
        {"", "", true},
        {"region = 'us-gov-west-1'", "region = 'us-gov-east-1'", true},
        {"region = 'us-gov-west-1'", "region = 'us-east-1'", false},
        {"endpoint = 'http://h:9000'", "endpoint = 'http://H:9000/'", true},
        {"endpoint = 'http://h'", "endpoint = 'http://h:80'", true},
        {"endpoint = 'http://h'", "endpoint = 'https://h'", false},
        {"endpoint = 'http://h:9000'", "endpoint = 'http://h:9001'", false},
        {"endpoint = 'http://h/a'", "endpoint = 'http://h/b'", false},
        {"endpoint = 'http://localhost:1'", "endpoint = 'http://127.0.0.1:1'", false},
        {"endpoint = 'http://h:9000'", "", false},
        {"endpoint = 'https://s3.eu-west-1.amazonaws.com'", "region = 'us-east-1'", true},
    };
    for (size_t i = 0; i < XF_ARRAY_LEN(cases); i++) {
        char text[512];
        (void)snprintf(text,
                       sizeof(text),
                       SOURCE "%s\n" DESTINATION "%s\n",
                       cases[i].source,
                       cases[i].destination);
        XF_AUTO(xf_job_spec) s = parse_ok(text);
        if (xf_job_spec_is_same_service(s) != cases[i].same) {
            fail_msg("%s", text);
        }
    }
}

static void path_style_follows_the_endpoint(void **state)
{
    (void)state;
    static const struct {
        const char *side;
        bool is_path;
    } cases[] = {
        {"", false},
        {"endpoint = 'http://127.0.0.1:9000'", true},
        {"endpoint = 'http://[::1]:9000'", true},
        {"endpoint = 'http://localhost'", true},
        {"endpoint = 'https://minio.example.com'", true},
        {"endpoint = 'https://s3.us-east-1.amazonaws.com'", false},
        {"endpoint = 'https://minio.example.com'\npath_style = false", false},
        {"path_style = true", true},
    };
    for (size_t i = 0; i < XF_ARRAY_LEN(cases); i++) {
        char text[512];
        (void)snprintf(text, sizeof(text), SOURCE "%s\n" DESTINATION, cases[i].side);
        XF_AUTO(xf_job_spec) s = parse_ok(text);
        if (s->source.is_path_style != cases[i].is_path) {
            fail_msg("%s", text);
        }
    }
}

static void c070_secrets_are_refused_and_never_shown(void **state)
{
    (void)state;
    static const char *const texts[] = {
        SOURCE "access_key = \"SECRETSECRET\"\n" DESTINATION,
        SOURCE "secret_access_key = \"SECRETSECRET\"\n" DESTINATION,
        SOURCE "secret_key = SECRETSECRET/SECRETSECRET\n" DESTINATION,
        SOURCE "secret_key = SECRETSECRETSECRETSECRETSECRET\n" DESTINATION,
        "[source]\nurl = \"s3://ID:SECRETSECRET@a/x\"\n" DESTINATION,
        SOURCE "endpoint = \"http://ID:SECRETSECRET@h:9000\"\n" DESTINATION,
        SOURCE "access_key_env = \"AKIASECRETSECRET1234\"\nsecret_key_env = \"X\"\n" DESTINATION,
        SOURCE "access_key_env = \"X\"\nsecret_key_env = "
               "\"aSECRETSECRET1SECRETSECRET2SECRETSECRET3z\"\n" DESTINATION,
        SOURCE "access_key_env = \"X\"\nsecret_key_env = \"SECRETSECRET/+\"\n" DESTINATION,
        "secret_key = \"SECRETSECRET\"\n" BOTH,
    };
    for (size_t i = 0; i < XF_ARRAY_LEN(texts); i++) {
        if (parse(texts[i]) != NULL) {
            fail_msg("accepted: %s", texts[i]);
        }
        if (strstr(err.msg, "SECRETSECRET") != NULL) {
            fail_msg("shown: %s", err.msg);
        }
    }
    check_refused(texts[0],
                  "m.toml:3:1: 'source.access_key' is not accepted: a job holds no secrets; name a "
                  "profile, or the environment variables that hold them (access_key_env and "
                  "secret_key_env)");
}

static void credentials_are_given_in_one_way(void **state)
{
    (void)state;
    check_refused(SOURCE "access_key_env = \"X\"\n" DESTINATION,
                  "m.toml:3:18: [source] needs access_key_env and secret_key_env together");
    check_refused(SOURCE "secret_key_env = \"X\"\n" DESTINATION,
                  "m.toml:3:18: [source] needs access_key_env and secret_key_env together");
    check_refused(SOURCE "session_token_env = \"X\"\n" DESTINATION,
                  "m.toml:3:21: 'source.session_token_env' needs access_key_env and secret_key_env "
                  "beside it");
    check_refused(SOURCE
                  "access_key_env = \"X\"\nsecret_key_env = \"Y\"\nprofile = \"p\"\n" DESTINATION,
                  "m.toml:5:11: [source] has a profile and access_key_env; give one of them");
}

static void selections_that_match_nothing_are_refused(void **state)
{
    (void)state;
    check_refused(BOTH "[select]\nmin_size = \"2B\"\nmax_size = \"1B\"\n",
                  "m.toml:7:12: select.max_size is below select.min_size: nothing would match");
    check_refused(
        BOTH "[select]\nnewer_than = \"1d\"\nolder_than = \"1d\"\n",
        "m.toml:7:14: select.newer_than begins after select.older_than ends: nothing would match");
    check_refused(
        BOTH "[select]\ninclude = [\"[a\"]\n",
        "m.toml:6:11: pattern '[a': '[' needs its ']' and ranges that run upwards; write '\\[' for "
        "the character");
    check_refused(BOTH "[select]\ninclude = []\n",
                  "m.toml:6:11: 'select.include' needs at least 1 item(s)");
}

/* ---- keys
 * ---------------------------------------------------------------------------------------- */

static void mapping_replaces_the_prefix_byte_for_byte(void **state)
{
    (void)state;
    static const char *const cases[][4] = {
        /* source, destination, key, mapped */
        {"s3://a/x/", "s3://b/y/", "x/k", "y/k"},
        {"s3://a", "s3://b", "/1.txt", "/1.txt"},
        {"s3://a//", "s3://b", "//x", "/x"},
        {"s3://a/path", "s3://b/out", "path2/b", "out2/b"},
        {"s3://a/path", "s3://b/out", "path", "out"},
        {"s3://a/a//", "s3://b/z", "a//b/../c", "zb/../c"},
        {"s3://a/x/", "s3://b", "x/a//", "a//"},
    };
    XF_AUTO_BUF out = {0};
    xf_buf_init(&out, 0);
    for (size_t i = 0; i < XF_ARRAY_LEN(cases); i++) {
        char text[256];
        (void)snprintf(text,
                       sizeof(text),
                       "[source]\nurl = '%s'\n[destination]\nurl = '%s'\n",
                       cases[i][0],
                       cases[i][1]);
        XF_AUTO(xf_job_spec) s = parse_ok(text);
        assert_int_equal(xf_job_spec_map_key(s, 0, xf_str_c(cases[i][2]), &out, &err), XF_OK);
        assert_string_equal(out.ptr, cases[i][3]);
    }
}

static void a_destination_key_past_the_limit_is_that_keys_error(void **state)
{
    (void)state;
    XF_AUTO(xf_job_spec) s =
        parse_ok("[source]\nurl = 's3://a/x/'\n[destination]\nurl = 's3://b/yyy/'\n");
    XF_AUTO_BUF out = {0};
    xf_buf_init(&out, 0);
    char key[XF_JOB_KEY_MAX];
    memset(key, 'k', sizeof(key));
    memcpy(key, "x/", 2);
    assert_int_equal(xf_job_spec_map_key(s, 0, xf_str_n(key, XF_JOB_KEY_MAX - 2), &out, &err),
                     XF_OK);
    assert_int_equal(out.len, XF_JOB_KEY_MAX);
    assert_int_equal(xf_job_spec_map_key(s, 0, xf_str_n(key, XF_JOB_KEY_MAX - 1), &out, &err),
                     XF_E_LIMIT);
    assert_string_equal(err.msg, "the destination key would have 1025 bytes; S3 takes 1024");
    assert_int_equal(out.len, 0);
    XF_AUTO(xf_job_spec) top =
        parse_ok("[source]\nurl = 's3://a/x/'\n[destination]\nurl = 's3://b'\n");
    assert_int_equal(xf_job_spec_map_key(top, 0, XF_STR_LIT("x/"), &out, &err), XF_E_EMPTY);
}

static bool selects(const char *select, const char *rel, uint64_t size, int64_t mtime_ms)
{
    char text[512];
    (void)snprintf(text, sizeof(text), BOTH "[select]\n%s\n", select);
    XF_AUTO(xf_job_spec) s = parse_ok(text);
    return xf_job_spec_selects(s, xf_str_c(rel), size, mtime_ms, 1704067200000 /* 2024-01-01 */);
}

static void selection_follows_include_exclude_size_and_age(void **state)
{
    (void)state;
    assert_true(selects("", "anything", 0, 0));
    assert_true(selects("include = ['*.gz', '*.zst']", "d/x.zst", 1, 0));
    assert_false(selects("include = ['*.gz', '*.zst']", "d/x.txt", 1, 0));
    assert_false(selects("include = ['*']\nexclude = ['tmp/*']", "tmp/x", 1, 0));
    assert_true(selects("exclude = ['tmp/*']", "a/tmp/x", 1, 0));
    assert_true(selects("min_size = '10B'\nmax_size = '20B'", "k", 10, 0));
    assert_true(selects("min_size = '10B'\nmax_size = '20B'", "k", 20, 0));
    assert_false(selects("min_size = '10B'\nmax_size = '20B'", "k", 9, 0));
    assert_false(selects("min_size = '10B'\nmax_size = '20B'", "k", 21, 0));
    assert_true(selects("max_size = '0B'", "k", 0, 0));
    assert_false(selects("max_size = '0B'", "k", 1, 0));
}

static void ages_split_without_a_gap(void **state)
{
    (void)state;
    int64_t day = 86400000;
    int64_t start = 1704067200000;
    assert_true(selects("newer_than = '1d'", "k", 1, start - day));
    assert_false(selects("newer_than = '1d'", "k", 1, start - day - 1));
    assert_false(selects("older_than = '1d'", "k", 1, start - day));
    assert_true(selects("older_than = '1d'", "k", 1, start - day - 1));
    assert_true(selects("newer_than = 2024-01-01T00:00:00+01:00", "k", 1, start - 3600000));
    assert_false(selects("newer_than = 2024-01-01", "k", 1, start - 1));
    assert_true(selects("newer_than = 2024-01-01", "k", 1, start));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_read),
        cmocka_unit_test(defaults_are_those_of_the_manual),
        cmocka_unit_test(the_threshold_follows_the_part_size),
        cmocka_unit_test(unknown_keys_are_errors_with_file_line_and_key),
        cmocka_unit_test(later_keys_are_refused_as_not_supported_yet),
        cmocka_unit_test(what_is_asked_of_new_objects_goes_together),
        cmocka_unit_test(a_class_is_mapped_set_or_kept),
        cmocka_unit_test(urls_are_checked),
        cmocka_unit_test(c032_prefixes_keep_every_byte),
        cmocka_unit_test(c016_overlap_of_source_and_destination_is_refused),
        cmocka_unit_test(overlapping_urls_of_one_side_are_refused),
        cmocka_unit_test(several_urls_map_in_pairs),
        cmocka_unit_test(c009_server_mode_across_services_names_both),
        cmocka_unit_test(same_service_is_one_endpoint_or_one_partition),
        cmocka_unit_test(path_style_follows_the_endpoint),
        cmocka_unit_test(c070_secrets_are_refused_and_never_shown),
        cmocka_unit_test(credentials_are_given_in_one_way),
        cmocka_unit_test(selections_that_match_nothing_are_refused),
        cmocka_unit_test(mapping_replaces_the_prefix_byte_for_byte),
        cmocka_unit_test(a_destination_key_past_the_limit_is_that_keys_error),
        cmocka_unit_test(selection_follows_include_exclude_size_and_age),
        cmocka_unit_test(ages_split_without_a_gap),
    };
    return xf_test_run("spec", tests, NULL, NULL);
}
