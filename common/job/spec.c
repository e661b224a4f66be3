/*
 * spec.c - the table of migrate.toml, and the parse.
 *
 * The table is the one list of keys: parser, template, help, canonical text and JSON come from it.
 * It fills a struct xf_job_raw; spec_check.c checks what one row cannot say and completes the spec.
 */
#include "common/job/spec.h"

#include "common/base/toml.h"
#include "common/job/glob.h"
#include "common/job/spec_int.h"

#include <string.h>

#define AT(member) offsetof(struct xf_job_raw, member)

static const char *const mode_names[] = {"auto", "server", "relay", NULL};
static const char *const exists_names[] = {"skip-same", "overwrite", "skip", "fail", NULL};
static const char *const tags_names[] = {"best-effort", "required", "none", NULL};
static const char *const verify_names[] = {"etag", "none", "size", "checksum", "full", NULL};
static const char *const sse_names[XF_JOB_SSE_N + 1] = {
    "bucket", "AES256", "aws:kms", "aws:kms:dsse", NULL};
static const char *const acl_names[] = {"none",
                                        "private",
                                        "public-read",
                                        "public-read-write",
                                        "authenticated-read",
                                        "aws-exec-read",
                                        "bucket-owner-read",
                                        "bucket-owner-full-control",
                                        NULL};
static const char *const vanished_names[] = {"ok", "fail", NULL};

#define NO_SECRETS                                                                         \
    "a job holds no secrets; name a profile, or the environment variables that hold them " \
    "(access_key_env and secret_key_env)"
#define LATER(key, advice)                                                              \
    {                                                                                   \
        .name = (key), .type = XF_CONF_STRING, .flags = XF_CONF_LATER, .help = (advice) \
    }
#define LATER_SECTION(key)                                             \
    {                                                                  \
        .name = (key), .type = XF_CONF_SECTION, .flags = XF_CONF_LATER \
    }
#define SECRET(key)                                                                         \
    {                                                                                       \
        .name = (key), .type = XF_CONF_STRING, .flags = XF_CONF_REFUSED, .help = NO_SECRETS \
    }

/* The keys that both sides take, after their url. `side` is a name, so it stands without
 * parentheses. */
/* NOLINTBEGIN(bugprone-macro-parentheses): a member name cannot have them */
#define SIDE_ROWS(side)                                                                           \
    {.name = #side ".region",                                                                     \
     .type = XF_CONF_STRING,                                                                      \
     .offset = AT(spec.side.region),                                                              \
     .max = 64,                                                                                   \
     .def_note = "from the environment or the profile, else us-east-1",                           \
     .example = "\"us-east-1\"",                                                                  \
     .help = "The bucket's region; looked for where it is not given."},                           \
        {.name = #side ".endpoint",                                                               \
         .type = XF_CONF_STRING,                                                                  \
         .offset = AT(spec.side.endpoint),                                                        \
         .max = 1024,                                                                             \
         .def_note = "AWS",                                                                       \
         .example = "\"http://127.0.0.1:9000\"",                                                  \
         .help = "URL of an S3-compatible server: http:// or https://, host, port, base path."},  \
        {.name = #side ".path_style",                                                             \
         .type = XF_CONF_SWITCH,                                                                  \
         .offset = AT(side.path_style),                                                           \
         .def_note = "true with an endpoint, false on AWS",                                       \
         .example = "true",                                                                       \
         .help = "Write the bucket into the URL's path instead of its host name."},               \
        {.name = #side ".fips",                                                                   \
         .type = XF_CONF_SWITCH,                                                                  \
         .offset = AT(spec.side.fips),                                                            \
         .def_note = "AWS_USE_FIPS_ENDPOINT of each host, else false",                            \
         .example = "true",                                                                       \
         .help = "Use AWS's endpoints whose TLS is validated for FIPS 140."},                     \
        {.name = #side ".dualstack",                                                              \
         .type = XF_CONF_SWITCH,                                                                  \
         .offset = AT(spec.side.dualstack),                                                       \
         .def_note = "AWS_USE_DUALSTACK_ENDPOINT of each host, else false",                       \
         .example = "true",                                                                       \
         .help = "Use AWS's endpoints that have IPv6 addresses as well."},                        \
        {.name = #side ".ca_file",                                                                \
         .type = XF_CONF_STRING,                                                                  \
         .offset = AT(spec.side.ca_file),                                                         \
         .max = 4096,                                                                             \
         .def_note = "s3.ca_file of each daemon, else AWS_CA_BUNDLE",                             \
         .example = "\"/etc/ssl/old-cloud.pem\"",                                                 \
         .help = "PEM file of CAs that sign this endpoint's certificate, on the coordinator's "   \
                 "and each agent's host; the system's are trusted as well."},                     \
        {.name = #side ".requester_pays",                                                         \
         .type = XF_CONF_BOOL,                                                                    \
         .offset = AT(spec.side.requester_pays),                                                  \
         .def = "false",                                                                          \
         .help = "Agree to pay for requests to a requester-pays bucket."},                        \
        {.name = #side ".profile",                                                                \
         .type = XF_CONF_STRING,                                                                  \
         .offset = AT(spec.side.profile),                                                         \
         .max = 255,                                                                              \
         .def_note = "the AWS provider chain",                                                    \
         .example = "\"old-account\"",                                                            \
         .help = "Profile of the shared AWS files, on the coordinator's and each agent's host."}, \
        {.name = #side ".role_arn",                                                               \
         .type = XF_CONF_STRING,                                                                  \
         .offset = AT(spec.side.role_arn),                                                        \
         .max = 2048,                                                                             \
         .def_note = "none",                                                                      \
         .example = "\"arn:aws:iam::123456789012:role/mover\"",                                   \
         .help = "Role that each host assumes with what its profile or provider chain gives."},   \
        {.name = #side ".external_id",                                                            \
         .type = XF_CONF_STRING,                                                                  \
         .offset = AT(spec.side.external_id),                                                     \
         .max = 1224,                                                                             \
         .def_note = "none",                                                                      \
         .example = "\"example-12345\"",                                                          \
         .help = "What the role's owner asks for beside role_arn."},                              \
        {.name = #side ".access_key_env",                                                         \
         .type = XF_CONF_STRING,                                                                  \
         .offset = AT(spec.side.access_key_env),                                                  \
         .max = 255,                                                                              \
         .def_note = "none",                                                                      \
         .example = "\"OLD_ACCESS_KEY_ID\"",                                                      \
         .help = "Name of the environment variable that holds the access key id."},               \
        {.name = #side ".secret_key_env",                                                         \
         .type = XF_CONF_STRING,                                                                  \
         .offset = AT(spec.side.secret_key_env),                                                  \
         .max = 255,                                                                              \
         .def_note = "none",                                                                      \
         .example = "\"OLD_SECRET_ACCESS_KEY\"",                                                  \
         .help = "Name of the environment variable that holds the secret key."},                  \
        {.name = #side ".session_token_env",                                                      \
         .type = XF_CONF_STRING,                                                                  \
         .offset = AT(spec.side.session_token_env),                                               \
         .max = 255,                                                                              \
         .def_note = "none",                                                                      \
         .example = "\"OLD_SESSION_TOKEN\"",                                                      \
         .help = "Name of the environment variable that holds a session token, beside the two."}, \
    {                                                                                             \
        .name = #side ".customer_key_env", .type = XF_CONF_STRING,                                \
        .offset = AT(spec.side.customer_key_env), .max = 255, .def_note = "none",                 \
        .example = "\"OBJECTS_KEY\"",                                                             \
        .help = "SSE-C: name of the agents' environment variable that holds the objects' own "    \
                "encryption key, 32 bytes in base64. Such objects go by relay."                   \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

static const struct xf_conf_opt rows[] = {
    {.name = "format",
     .type = XF_CONF_INT,
     .offset = AT(spec.format),
     .min = 1,
     .max = 1,
     .def = "1",
     .flags = XF_CONF_SHOWN,
     .help = "Version of this file's form."},

    {.name = "job", .type = XF_CONF_SECTION, .help = "The job as a whole."},
    {.name = "job.name",
     .type = XF_CONF_STRING,
     .offset = AT(spec.name),
     .max = 128,
     .def_note = "the two buckets' names",
     .flags = XF_CONF_SHOWN,
     .example = "\"logs-to-oregon\"",
     .help = "What status and reports call the job."},
    {.name = "job.priority",
     .type = XF_CONF_INT,
     .offset = AT(spec.priority),
     .min = 1,
     .max = 9,
     .def = "5",
     .help = "1 is low, 9 is high; agents serve higher jobs first."},
    {.name = "job.allow_empty",
     .type = XF_CONF_BOOL,
     .offset = AT(spec.allow_empty),
     .def = "false",
     .help = "Let a job end as completed when its source holds no object."},
    {.name = "job.vanished",
     .type = XF_CONF_ENUM,
     .offset = AT(spec.vanished),
     .names = vanished_names,
     .def = "ok",
     .help = "Whether objects that were deleted since their listing make the job fail."},

    {.name = "source", .type = XF_CONF_SECTION, .help = "Where objects are read."},
    {.name = "source.url",
     .type = XF_CONF_STRING,
     .offset = AT(source.url),
     .def_note = "none; url or urls must be given",
     .flags = XF_CONF_SHOWN,
     .example = "\"s3://prod-logs/2024/\"",
     .help = "s3://BUCKET/PREFIX. Every key that begins with the prefix is taken, byte for byte: "
             "\"logs\" takes \"logs2/x\" too, \"logs/\" does not."},
    {.name = "source.urls",
     .type = XF_CONF_LIST,
     .offset = AT(source.urls),
     .min = 1,
     .max = XF_JOB_URLS_MAX,
     .def_note = "none",
     .example = "[\"s3://prod-logs/2023/\", \"s3://prod-logs/2024/\"]",
     .help =
         "Several urls instead of one; they must not overlap, and the destination has as many."},
    SIDE_ROWS(source),

    {.name = "destination", .type = XF_CONF_SECTION, .help = "Where objects are written."},
    {.name = "destination.url",
     .type = XF_CONF_STRING,
     .offset = AT(destination.url),
     .def_note = "none; url or urls must be given",
     .flags = XF_CONF_SHOWN,
     .example = "\"s3://prod-logs-west/archive/2024/\"",
     .help = "s3://BUCKET/PREFIX. The source's prefix is replaced by this one, byte for byte."},
    {.name = "destination.urls",
     .type = XF_CONF_LIST,
     .offset = AT(destination.urls),
     .min = 1,
     .max = XF_JOB_URLS_MAX,
     .def_note = "none",
     .example = "[\"s3://prod-logs-west/2023/\", \"s3://prod-logs-west/2024/\"]",
     .help = "One url for each of the source's urls, in the same order."},
    SIDE_ROWS(destination),
    {.name = "destination.storage_class",
     .type = XF_CONF_STRING,
     .offset = AT(spec.destination.storage_class),
     .max = 64,
     .def_note = "keep the source's",
     .example = "\"STANDARD_IA\"",
     .help = "Storage class of the new objects, such as STANDARD or GLACIER_IR."},
    {.name = "destination.storage_class_map",
     .type = XF_CONF_LIST,
     .offset = AT(spec.destination.storage_map),
     .def_note = "none",
     .example = "[\"REDUCED_REDUNDANCY=STANDARD\", \"GLACIER_IR=STANDARD_IA\"]",
     .help = "Source's class and the new object's; objects of other classes go by storage_class."},
    {.name = "destination.acl",
     .type = XF_CONF_ENUM,
     .offset = AT(spec.destination.acl),
     .names = acl_names,
     .def = "none",
     .help = "Canned ACL of the new objects. \"none\" sends none: the bucket's owner has them, and "
             "buckets without ACLs take them. The source's own grants are not copied."},
    {.name = "destination.sse",
     .type = XF_CONF_ENUM,
     .offset = AT(spec.destination.sse),
     .names = sse_names,
     .def = "bucket",
     .help = "Encryption of the new objects by the service; \"bucket\": as the bucket is set."},
    {.name = "destination.kms_key",
     .type = XF_CONF_STRING,
     .offset = AT(spec.destination.kms_key),
     .max = 2048,
     .def_note = "the account's own",
     .example = "\"arn:aws:kms:us-west-2:123456789012:key/new\"",
     .help =
         "KMS key of the new objects, beside sse = \"aws:kms\"; the source's key is never taken."},

    {.name = "select",
     .type = XF_CONF_SECTION,
     .help = "Which objects are copied; all of the source's by default. Patterns match the whole "
             "key after "
             "the url's prefix: * any characters, '/' too; ? one; [a-z] one of a set; \\ the next "
             "as it is."},
    {.name = "select.include",
     .type = XF_CONF_LIST,
     .offset = AT(spec.select.include),
     .min = 1,
     .def_note = "everything",
     .example = "[\"*.gz\"]",
     .help = "Only keys that match one of these patterns."},
    {.name = "select.exclude",
     .type = XF_CONF_LIST,
     .offset = AT(spec.select.exclude),
     .def_note = "nothing",
     .example = "[\"tmp/*\"]",
     .help = "Not the keys that match one of these patterns, even when included."},
    {.name = "select.min_size",
     .type = XF_CONF_SIZE,
     .offset = AT(spec.select.min_size),
     .def = "0B",
     .help = "Only objects of this size or more."},
    {.name = "select.max_size",
     .type = XF_CONF_SIZE,
     .offset = AT(spec.select.max_size),
     .def = "9223372036854775807B",
     .def_note = "no limit",
     .example = "\"5TiB\"",
     .help = "Only objects of this size or less."},
    {.name = "select.newer_than",
     .type = XF_CONF_WHEN,
     .offset = AT(spec.select.newer_than),
     .def_note = "no limit",
     .example = "\"30d\"",
     .help =
         "Only objects modified at this moment or later; an age counts back from the job's start."},
    {.name = "select.older_than",
     .type = XF_CONF_WHEN,
     .offset = AT(spec.select.older_than),
     .def_note = "no limit",
     .example = "2024-01-31T00:00:00Z",
     .help = "Only objects modified before this moment."},

    {.name = "copy", .type = XF_CONF_SECTION, .help = "How objects are copied."},
    {.name = "copy.mode",
     .type = XF_CONF_ENUM,
     .offset = AT(spec.mode),
     .names = mode_names,
     .def = "auto",
     .help = "\"server\": the service copies by itself; \"relay\": bytes go through the agents; "
             "\"auto\": "
             "server where both sides are one service, else relay."},
    {.name = "copy.part_size",
     .type = XF_CONF_SIZE,
     .offset = AT(spec.part_size),
     .min = (int64_t)XF_JOB_PART_MIN,
     .max = (int64_t)XF_JOB_PART_MAX,
     .def = "64MiB",
     .help =
         "Size of the parts of large objects; larger where an object would need more than 10,000."},
    {.name = "copy.multipart_threshold",
     .type = XF_CONF_SIZE,
     .offset = AT(multipart_threshold),
     .min = (int64_t)XF_JOB_PART_MIN,
     .max = (int64_t)XF_JOB_PART_MAX,
     .def_note = "part_size",
     .example = "\"64MiB\"",
     .help = "Objects of this size or more are copied in parts."},
    {.name = "copy.if_exists",
     .type = XF_CONF_ENUM,
     .offset = AT(spec.if_exists),
     .names = exists_names,
     .def = "skip-same",
     .help = "What happens to an object whose key exists at the destination: skipped when it is "
             "the same, "
             "overwritten, always skipped, or failed."},
    {.name = "copy.metadata",
     .type = XF_CONF_BOOL,
     .offset = AT(spec.metadata),
     .def = "true",
     .help = "Copy Content-Type, Cache-Control and the like, and user metadata."},
    {.name = "copy.tags",
     .type = XF_CONF_ENUM,
     .offset = AT(spec.tags),
     .names = tags_names,
     .def = "best-effort",
     .help = "Copy object tags: where permitted, or as a condition of success, or not."},
    {.name = "copy.object_lock",
     .type = XF_CONF_BOOL,
     .offset = AT(spec.object_lock),
     .def = "false",
     .help = "Copy retention and legal hold. An object whose lock the destination does not take "
             "fails."},
    {.name = "copy.source_mtime",
     .type = XF_CONF_BOOL,
     .offset = AT(spec.source_mtime),
     .def = "false",
     .help =
         "Keep the time when the source was written as metadata \"mtime\" (seconds since 1970), "
         "where an object has none of that name."},

    {.name = "verify", .type = XF_CONF_SECTION, .help = "How copies are proved."},
    {.name = "verify.mode",
     .type = XF_CONF_ENUM,
     .offset = AT(spec.verify),
     .names = verify_names,
     .def = "etag",
     .help = "What must be equal on both sides after the copy."},

    {.name = "limits",
     .type = XF_CONF_SECTION,
     .help = "What the job may use; no limits by default."},
    {.name = "limits.bandwidth",
     .type = XF_CONF_STRING,
     .offset = AT(bandwidth),
     .max = XF_SCHEDULE_TEXT_MAX,
     .def_note = "no limit",
     .example = "\"10Gbit/s\"",
     .help = "Bytes through all agents together: a rate, or rates by the time of day at the "
             "coordinator's host, as in \"08:00,2Gbit/s 20:00,off\"."},
    {.name = "limits.request_rate",
     .type = XF_CONF_STRING,
     .offset = AT(request_rate),
     .max = XF_SCHEDULE_TEXT_MAX,
     .def_note = "no limit",
     .example = "\"3000/s\"",
     .help = "S3 requests a second of all agents together, written in the same way."},
    {.name = "limits.in_flight",
     .type = XF_CONF_INT,
     .offset = AT(spec.in_flight),
     .min = 1,
     .max = 100000,
     .unit = "requests",
     .def_note = "found by itself",
     .example = "2048",
     .help = "Requests at a time, for each agent."},

    {.name = "retry", .type = XF_CONF_SECTION, .help = "When an object fails."},
    {.name = "retry.attempts",
     .type = XF_CONF_INT,
     .offset = AT(spec.attempts),
     .min = 1,
     .max = XF_JOB_ATTEMPTS_MAX,
     .def = "8",
     .help = "Tries for each object, over all passes, before it counts as failed."},

    {.name = "report", .type = XF_CONF_SECTION, .help = "The list of what was done."},
    {.name = "report.path",
     .type = XF_CONF_STRING,
     .offset = AT(spec.report_path),
     .def_note = "none; see `xferctl report`",
     .example = "\"reports/\"",
     .help = "Folder on xferctl's host, written at the end of `submit --wait` and `run`."},

    LATER_SECTION("map"),
    LATER_SECTION("sync"),
    LATER_SECTION("notify"),
    LATER("*.manifest", "give url or urls"),
    LATER("*.inventory", "give url or urls"),
    LATER("*.versions", NULL),
    LATER("*.max_failures", NULL),
    LATER("*.budget_usd", NULL),
    LATER("*.archived", NULL),
    SECRET("*.access_key"),
    SECRET("*.access_key_id"),
    SECRET("*.aws_access_key_id"),
    SECRET("*.secret_key"),
    SECRET("*.secret_access_key"),
    SECRET("*.aws_secret_access_key"),
    SECRET("*.session_token"),
    SECRET("*.aws_session_token"),
    SECRET("*.token"),
    SECRET("*.password"),
};

const struct xf_conf_table xf_job_spec_table = {
    .opts = rows,
    .n = XF_ARRAY_LEN(rows),
    .size = sizeof(struct xf_job_raw),
    .what = "A job of xfer: what to copy, from where, to where. Check it with "
            "`xferctl submit --dry-run FILE`, start it with `xferctl submit FILE` or `xferctl run "
            "FILE`.",
};

void xf_job_spec_free(struct xf_job_spec *s)
{
    if (s == NULL) {
        return;
    }
    struct xf_job_raw *raw = XF_CONTAINER_OF(s, struct xf_job_raw, spec);
    xf_conf_free(raw->conf);
    xf_xfree(raw->urls);
    xf_xfree(raw);
}

enum xf_code xf_job_spec_parse(struct xf_str text,
                               struct xf_str name,
                               struct xf_job_spec **out,
                               struct xf_err *err)
{
    struct xf_toml *parsed = NULL;
    *out = NULL;
    XF_TRY(xf_toml_parse(text, name, &parsed, err));
    XF_AUTO(xf_toml) doc = parsed;
    struct xf_job_raw *raw = xf_xcalloc(1, sizeof(*raw));
    struct xf_conf *conf = NULL;
    enum xf_code code = xf_conf_load(&xf_job_spec_table, doc, raw, &conf, err);
    raw->conf = conf;
    if (code == XF_OK) {
        code = xf_job_spec_complete(raw, err);
    }
    if (code != XF_OK) {
        xf_job_spec_free(&raw->spec);
        return code;
    }
    *out = &raw->spec;
    return XF_OK;
}

/* ---- what is asked of a new object ---- */

struct xf_str xf_job_spec_acl(const struct xf_job_spec *s)
{
    int acl = s->destination.acl;

    return acl == 0 ? XF_STR_EMPTY : xf_str_c(acl_names[acl]);
}

struct xf_str xf_job_spec_sse(const struct xf_job_spec *s)
{
    int sse = s->destination.sse;

    return sse == XF_JOB_SSE_BUCKET ? XF_STR_EMPTY : xf_str_c(sse_names[sse]);
}

struct xf_str xf_job_spec_class(const struct xf_job_spec *s, struct xf_str from)
{
    const struct xf_conf_list *map = &s->destination.storage_map;
    struct xf_str own = from.len > 0 ? from : XF_STR_LIT("STANDARD");

    for (size_t i = 0; i < map->len; i++) {
        size_t eq = xf_str_find(map->items[i], '=', 0);
        if (xf_str_eq(xf_str_sub(map->items[i], 0, eq), own)) {
            return xf_str_sub(map->items[i], eq + 1, map->items[i].len);
        }
    }
    if (s->destination.storage_class.len > 0) {
        return s->destination.storage_class;
    }
    return xf_str_eq_c(own, "STANDARD") ? XF_STR_EMPTY : own;
}

/* ---- keys
 * ---------------------------------------------------------------------------------------- */

enum xf_code xf_job_spec_map_key(const struct xf_job_spec *s,
                                 size_t url_idx,
                                 struct xf_str key,
                                 struct xf_buf *out,
                                 struct xf_err *err)
{
    XF_ASSERT(url_idx < s->source.n_urls);
    struct xf_str from = s->source.urls[url_idx].prefix;
    struct xf_str to = s->destination.urls[url_idx].prefix;
    XF_ASSERT(xf_str_starts(key, from));
    size_t len = to.len + (key.len - from.len);
    xf_buf_reset(out);
    if (len == 0) {
        return XF_FAIL(
            err, XF_E_EMPTY, "the destination key would be empty: the key is the prefix itself");
    }
    if (len > XF_JOB_KEY_MAX) {
        return XF_FAIL(err,
                       XF_E_LIMIT,
                       "the destination key would have %zu bytes; S3 takes %d",
                       len,
                       XF_JOB_KEY_MAX);
    }
    xf_buf_put(out, to);
    xf_buf_put(out, xf_str_sub(key, from.len, key.len));
    return XF_OK;
}

static bool matches_any(const struct xf_conf_list *globs, struct xf_str rel)
{
    for (size_t i = 0; i < globs->len; i++) {
        if (xf_glob_match(globs->items[i], rel)) {
            return true;
        }
    }
    return false;
}

static int64_t moment(const struct xf_conf_when *w, int64_t start_ms)
{
    return w->is_age ? start_ms - w->ms : w->ms;
}

bool xf_job_spec_selects(const struct xf_job_spec *s,
                         struct xf_str rel,
                         uint64_t size,
                         int64_t mtime_ms,
                         int64_t start_ms)
{
    const struct xf_job_select *sel = &s->select;
    if (size < sel->min_size || size > sel->max_size) {
        return false;
    }
    if (sel->newer_than.is_set && mtime_ms < moment(&sel->newer_than, start_ms)) {
        return false;
    }
    if (sel->older_than.is_set && mtime_ms >= moment(&sel->older_than, start_ms)) {
        return false;
    }
    return (sel->include.len == 0 || matches_any(&sel->include, rel)) &&
           !matches_any(&sel->exclude, rel);
}
