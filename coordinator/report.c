/*
 * report.c - result rows to report lines.
 */
#include "coordinator/report.h"

#include "common/base/json.h"
#include "common/job/spec.h"

static bool is_failed(const struct xf_result *r)
{
    return r->outcome == XF_OUTCOME_FAILED || r->outcome == XF_OUTCOME_ARCHIVED;
}

/* TaskStatus of the S3 Batch layout; "pending" is ours: nothing is known of it yet. */
static const char *task_status(const struct xf_result *r)
{
    return is_failed(r) ? "failed" : r->outcome == XF_OUTCOME_PENDING ? "pending" : "succeeded";
}

static void put_csv_field(struct xf_buf *out, struct xf_str s)
{
    bool quote = false;

    for (size_t i = 0; i < s.len && !quote; i++) {
        char c = s.ptr[i];
        quote = c == ',' || c == '"' || c == '\n' || c == '\r';
    }
    if (!quote) {
        xf_buf_put(out, s);
        return;
    }
    xf_buf_put_byte(out, '"');
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '"') {
            xf_buf_put_byte(out, '"');
        }
        xf_buf_put_byte(out, s.ptr[i]);
    }
    xf_buf_put_byte(out, '"');
}

/* What a copy lacks. */
static const struct {
    enum xf_result_flag flag;
    const char *name;
} attributes[] = {{XF_RESULT_TAGS_DROPPED, "tags"},
                  {XF_RESULT_META_DROPPED, "metadata"},
                  {XF_RESULT_CLASS_DROPPED, "storage_class"}};

static bool lacks(const struct xf_result *r, size_t i)
{
    return xf_result_is_dropped(r) && (r->flags & (uint32_t)attributes[i].flag) != 0;
}

/* What became of it, in words: "copied (server, etag)", "skipped (same)", or the error's text. */
static void put_message(struct xf_buf *out, const struct xf_result *r)
{
    switch (r->outcome) {
    case XF_OUTCOME_COPIED:
        xf_buf_putf(out, "copied (%s, %s)", xf_mode_name(r->mode), xf_level_name(r->level));
        for (size_t i = 0; i < XF_ARRAY_LEN(attributes); i++) {
            if (lacks(r, i)) {
                xf_buf_putf(out, ", %s dropped", attributes[i].name);
            }
        }
        break;
    case XF_OUTCOME_SKIPPED: xf_buf_putf(out, "skipped (%s)", xf_skip_name(r->skip)); break;
    case XF_OUTCOME_FAILED:
        xf_buf_put_escaped(out, r->message.len > 0 ? r->message : xf_str_c(xf_code_text(r->code)));
        break;
    case XF_OUTCOME_VANISHED:
        xf_buf_put_c(out, "vanished: gone from the source since it was listed");
        break;
    case XF_OUTCOME_ARCHIVED:
        xf_buf_put_c(out, "archived: cannot be read without a restore");
        break;
    case XF_OUTCOME_PENDING: xf_buf_put_c(out, "pending"); break;
    case XF_OUTCOME_N: break;
    }
}

static struct xf_str error_code(const struct xf_result *r)
{
    if (r->outcome == XF_OUTCOME_ARCHIVED) {
        return XF_STR_LIT("archived");
    }
    if (r->outcome != XF_OUTCOME_FAILED) {
        return XF_STR_EMPTY;
    }
    return r->s3_code.len > 0 ? r->s3_code : xf_str_c(xf_code_name(r->code));
}

static void put_csv(struct xf_buf *out, struct xf_str bucket, const struct xf_result_row *row)
{
    const struct xf_result *r = &row->result;
    XF_AUTO_BUF text = {0};

    put_csv_field(out, bucket);
    xf_buf_put_byte(out, ',');
    xf_buf_put_percent(out, row->object.key, true);
    xf_buf_put_byte(out, ',');
    put_csv_field(out, row->object.version_id);
    xf_buf_putf(out, ",%s,", task_status(r));
    put_csv_field(out, error_code(r));
    xf_buf_put_byte(out, ',');
    if (r->http_status > 0) {
        xf_buf_putf(out, "%u", r->http_status);
    } else if (!is_failed(r) && r->outcome != XF_OUTCOME_PENDING) {
        xf_buf_put_c(out, "200");
    }
    xf_buf_put_byte(out, ',');
    xf_buf_init(&text, 0);
    put_message(&text, r);
    put_csv_field(out, xf_buf_view(&text));
    xf_buf_put_byte(out, '\n');
}

static void put_line(struct xf_buf *out, struct xf_json *j)
{
    XF_AUTO_FREE char *text = xf_json_dump(j, false);

    xf_buf_put_c(out, text);
    xf_buf_put_byte(out, '\n');
    xf_json_free(j);
}

static void put_json(struct xf_buf *out, struct xf_str bucket, const struct xf_result_row *row)
{
    const struct xf_result *r = &row->result;
    struct xf_json *j = xf_json_object();
    XF_AUTO_BUF text = {0};

    xf_buf_init(&text, 0);
    put_message(&text, r);
    xf_json_set_c(j, "type", "object");
    xf_json_set_bytes(j, "bucket", bucket);
    xf_json_set_bytes(j, "key", row->object.key);
    xf_json_set_bytes(j, "version_id", row->object.version_id);
    xf_json_set_u64(j, "size", row->object.size);
    xf_json_set_c(j, "outcome", xf_outcome_name(r->outcome));
    xf_json_set_c(j, "mode", xf_mode_name(r->mode));
    xf_json_set_c(j, "verified", xf_level_name(r->level));
    xf_json_set_bytes(j, "etag", r->etag);
    xf_json_set_bytes(j, "error", error_code(r));
    xf_json_set_u64(j, "http_status", r->http_status);
    xf_json_set_bytes(j, "message", xf_buf_view(&text));
    xf_json_set_u64(j, "attempts", (uint64_t)row->object.attempts + r->attempts);
    xf_json_set_bool(j, "retryable", (r->flags & (uint32_t)XF_RESULT_RETRYABLE) != 0);
    struct xf_json *dropped = xf_json_array();
    for (size_t i = 0; i < XF_ARRAY_LEN(attributes); i++) {
        if (lacks(r, i)) {
            xf_json_append_c(dropped, attributes[i].name);
        }
    }
    xf_json_put(j, "dropped", dropped);
    put_line(out, j);
}

void xf_report_results(const struct xf_report_opts *o,
                       const struct xf_result_row *rows,
                       size_t n,
                       struct xf_buf *out)
{
    for (size_t i = 0; i < n; i++) {
        if (o->only_failed && !is_failed(&rows[i].result)) {
            continue;
        }
        struct xf_str bucket = rows[i].source_no < o->spec->source.n_urls
                                   ? o->spec->source.urls[rows[i].source_no].bucket
                                   : XF_STR_EMPTY;
        if (o->is_json) {
            put_json(out, bucket, &rows[i]);
        } else {
            put_csv(out, bucket, &rows[i]);
        }
    }
}

void xf_report_notices(const struct xf_report_opts *o,
                       const struct xf_notice_row *rows,
                       size_t n,
                       struct xf_buf *out)
{
    struct xf_str bucket = o->spec->source.urls[0].bucket;

    for (size_t i = 0; i < n; i++) {
        if (!xf_str_eq_c(rows[i].code, "listing")) {
            continue;
        }
        if (o->is_json) {
            struct xf_json *j = xf_json_object();
            xf_json_set_c(j, "type", "listing");
            xf_json_set_bytes(j, "bucket", bucket);
            xf_json_set_c(j, "outcome", "failed");
            xf_json_set_c(j, "error", "listing");
            xf_json_set_bytes(j, "message", rows[i].text);
            put_line(out, j);
        } else {
            put_csv_field(out, bucket);
            xf_buf_put_c(out, ",,,failed,listing,,");
            put_csv_field(out, rows[i].text);
            xf_buf_put_byte(out, '\n');
        }
    }
}

void xf_report_cursor_put(const struct xf_report_cursor *c, struct xf_buf *out)
{
    xf_buf_putf(out, "%c:%lld", c->uploads ? 'u' : 'b', (long long)c->after);
}

bool xf_report_cursor_parse(struct xf_str text, struct xf_report_cursor *c)
{
    *c = (struct xf_report_cursor){.is_past_notices = text.len > 0};
    if (text.len == 0) {
        return true;
    }
    if (text.len < 3 || (text.ptr[0] != 'u' && text.ptr[0] != 'b') || text.ptr[1] != ':') {
        return false;
    }
    c->uploads = text.ptr[0] == 'u';
    return xf_str_i64(xf_str_sub(text, 2, text.len), &c->after) && c->after >= 0;
}
