/* fault_parse.c - reads rules from JSON: tables of members, everything unknown is refused. */
#include "common/base/mem.h"
#include "tests/s3d/fault_int.h"

#include <stdio.h>
#include <stdlib.h>

void s3d_action_init(struct s3d_action *a)
{
    memset(a, 0, sizeof(*a));
    a->work = -1;
    a->cut_after = S3D_UNSET;
    a->stall_after = S3D_UNSET;
    a->stall_ms = -1;
    a->content_length = S3D_UNSET;
    a->read_cut = S3D_UNSET;
    a->read_stop = S3D_UNSET;
    a->store_size = S3D_UNSET;
    a->head_size = S3D_UNSET;
}

enum member_kind {
    M_TEXT,
    M_U64,
    M_I64,
    M_INT,
    M_BOOL,
    M_BOOL3,  /* int: -1 unset, 0, 1 */
    M_SPECIAL /* read elsewhere */
};

struct member {
    const char *name;
    enum member_kind kind;
    size_t offset;
};

#define RULE(name, kind)                             \
    {                                                \
#name, kind, offsetof(struct s3d_rule, name) \
    }
#define ACTION(name, kind)                             \
    {                                                  \
#name, kind, offsetof(struct s3d_action, name) \
    }
#define SPECIAL(name)      \
    {                      \
        name, M_SPECIAL, 0 \
    }

static const struct member rule_members[] = {
    RULE(id, M_TEXT),
    RULE(method, M_TEXT),
    RULE(bucket, M_TEXT),
    RULE(key, M_TEXT),
    RULE(key_prefix, M_TEXT),
    RULE(key_glob, M_TEXT),
    RULE(query, M_TEXT),
    RULE(header, M_TEXT),
    RULE(nth, M_U64),
    RULE(count, M_U64),
    RULE(every, M_U64),
    SPECIAL("op"),
    SPECIAL("percent"),
    SPECIAL("action"),
};

static const struct member action_members[] = {
    ACTION(delay_ms, M_I64),
    ACTION(work, M_BOOL3),
    ACTION(status, M_INT),
    ACTION(code, M_TEXT),
    ACTION(message, M_TEXT),
    ACTION(extra_xml, M_TEXT),
    ACTION(reply_lost, M_BOOL),
    ACTION(pad, M_U64),
    ACTION(pad_ms, M_I64),
    ACTION(cut_after, M_I64),
    ACTION(stall_after, M_I64),
    ACTION(stall_ms, M_I64),
    ACTION(drip, M_U64),
    ACTION(drip_ms, M_I64),
    ACTION(chunked, M_BOOL),
    ACTION(gzip, M_BOOL),
    ACTION(content_length, M_I64),
    ACTION(extra, M_U64),
    ACTION(read_cut, M_I64),
    ACTION(read_stop, M_I64),
    ACTION(ignore_copy_source, M_BOOL),
    ACTION(ignore_conditions, M_BOOL),
    ACTION(literal_copy_source, M_BOOL),
    ACTION(store_size, M_I64),
    ACTION(corrupt, M_BOOL),
    ACTION(head_size, M_I64),
    ACTION(etag, M_TEXT),
    ACTION(kms, M_BOOL),
    ACTION(abort_upload, M_BOOL),
    SPECIAL("body"),
    SPECIAL("headers"),
    SPECIAL("end"),
    SPECIAL("put"),
    SPECIAL("delete"),
    SPECIAL("list"),
};

static enum xf_code set_member(void *base,
                               const struct member *m,
                               const struct xf_json *obj,
                               const struct xf_json *value,
                               struct xf_err *err)
{
    void *field = (char *)base + m->offset;

    switch (m->kind) {
    case M_TEXT: {
        const char *text = xf_json_text(value);
        if (text == NULL) {
            return XF_FAIL(err, XF_E_INVAL, "'%s' has to be a string", m->name);
        }
        memcpy(field, &text, sizeof(text));
        break;
    }
    case M_U64: {
        uint64_t v = xf_json_get_u64(obj, m->name, UINT64_MAX);
        if (v == UINT64_MAX) {
            return XF_FAIL(err, XF_E_INVAL, "'%s' has to be a number from 0", m->name);
        }
        memcpy(field, &v, sizeof(v));
        break;
    }
    case M_I64:
    case M_INT: {
        int64_t v = xf_json_get_i64(obj, m->name, S3D_UNSET);
        int small = (int)v;
        if (v == S3D_UNSET || (m->kind == M_INT && (v < 100 || v > 999))) {
            return XF_FAIL(err, XF_E_INVAL, "'%s' has to be a number in its range", m->name);
        }
        memcpy(field,
               m->kind == M_I64 ? (const void *)&v : (const void *)&small,
               m->kind == M_I64 ? sizeof(v) : sizeof(small));
        break;
    }
    case M_BOOL:
    case M_BOOL3: {
        bool yes = xf_json_get_bool(obj, m->name, false);
        int three = yes ? 1 : 0;
        if (yes != xf_json_get_bool(obj, m->name, true)) {
            return XF_FAIL(err, XF_E_INVAL, "'%s' has to be true or false", m->name);
        }
        memcpy(field,
               m->kind == M_BOOL ? (const void *)&yes : (const void *)&three,
               m->kind == M_BOOL ? sizeof(yes) : sizeof(three));
        break;
    }
    case M_SPECIAL: break;
    }
    return XF_OK;
}

static enum xf_code set_members(
    void *base, const struct member *table, size_t n, const struct xf_json *obj, struct xf_err *err)
{
    const struct xf_json *value;

    for (const char *name = xf_json_next(obj, NULL, &value); name != NULL;
         name = xf_json_next(obj, name, &value)) {
        const struct member *found = NULL;
        for (size_t i = 0; i < n; i++) {
            if (strcmp(table[i].name, name) == 0) {
                found = &table[i];
            }
        }
        if (found == NULL) {
            return XF_FAIL(err, XF_E_INVAL, "unknown member '%s'", name);
        }
        XF_TRY(set_member(base, found, obj, value, err));
    }
    return XF_OK;
}

static enum xf_code add_op(struct s3d_rule *r, const char *name, struct xf_err *err)
{
    enum s3d_op op;

    if (name == NULL || !s3d_op_parse(xf_str_c(name), &op)) {
        return XF_FAIL(
            err, XF_E_INVAL, "unknown operation '%s'", name == NULL ? "(not a string)" : name);
    }
    r->has_ops = true;
    r->ops[op] = true;
    return XF_OK;
}

static enum xf_code parse_ops(struct s3d_rule *r, const struct xf_json *op, struct xf_err *err)
{
    if (op == NULL) {
        return XF_OK;
    }
    if (!xf_json_is_array(op)) {
        return add_op(r, xf_json_text(op), err);
    }
    for (size_t i = 0; i < xf_json_len(op); i++) {
        XF_TRY(add_op(r, xf_json_text(xf_json_at(op, i)), err));
    }
    return XF_OK;
}

static enum xf_code
parse_headers(struct s3d_rule *r, const struct xf_json *headers, struct xf_err *err)
{
    const struct xf_json *value;

    if (headers == NULL) {
        return XF_OK;
    }
    if (!xf_json_is_object(headers)) {
        return XF_FAIL(err, XF_E_INVAL, "'headers' has to be an object");
    }
    for (const char *name = xf_json_next(headers, NULL, &value); name != NULL;
         name = xf_json_next(headers, name, &value)) {
        if (r->action.n_edits == S3D_EDITS_MAX) {
            return XF_FAIL(err, XF_E_INVAL, "more than %d headers", S3D_EDITS_MAX);
        }
        if (xf_json_text(value) == NULL && !xf_json_is_null(headers, name)) {
            return XF_FAIL(err, XF_E_INVAL, "header '%s' has to be a string or null", name);
        }
        r->edits[r->action.n_edits++] = (struct s3d_header_edit){name, xf_json_text(value)};
    }
    r->action.edits = r->edits;
    return XF_OK;
}

/* Index of a word in a table; -1 when it is not there. */
static int word(const char *const *words, size_t n, const char *text)
{
    for (size_t i = 0; text != NULL && i < n; i++) {
        if (strcmp(words[i], text) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static enum xf_code parse_word(const struct xf_json *obj,
                               const char *name,
                               const char *const *words,
                               size_t n,
                               int *out,
                               struct xf_err *err)
{
    const struct xf_json *v = xf_json_get(obj, name);

    *out = 0;
    if (v == NULL) {
        return XF_OK;
    }
    *out = word(words, n, xf_json_text(v));
    if (*out < 0) {
        return XF_FAIL(err, XF_E_INVAL, "unknown value of '%s'", name);
    }
    return XF_OK;
}

static enum xf_code
parse_list(struct s3d_dialect *d, const struct xf_json *list, struct xf_err *err)
{
    static const char *const encodings[] = {
        "aws", "percent20", "raw_fields", "unannounced", "raw", "charref"};
    static const char *const orders[] = {"bytes", "reverse", "utf16", "directory"};
    static const char *const tokens[] = {"good", "same", "constant", "empty", "none"};
    static const struct member members[] = {
        {"repeat_page", M_BOOL, offsetof(struct s3d_dialect, repeat_page)},
        {"ignore_start_after", M_BOOL, offsetof(struct s3d_dialect, ignore_start_after)},
        {"v1_only", M_BOOL, offsetof(struct s3d_dialect, v1_only)},
        {"drop_last", M_U64, offsetof(struct s3d_dialect, drop_last)},
        SPECIAL("encoding"),
        SPECIAL("order"),
        SPECIAL("token"),
    };
    int encoding;
    int order;
    int token;

    if (!xf_json_is_object(list)) {
        return XF_FAIL(err, XF_E_INVAL, "'list' has to be an object");
    }
    XF_TRY(set_members(d, members, XF_ARRAY_LEN(members), list, err));
    XF_TRY(parse_word(list, "encoding", encodings, XF_ARRAY_LEN(encodings), &encoding, err));
    XF_TRY(parse_word(list, "order", orders, XF_ARRAY_LEN(orders), &order, err));
    XF_TRY(parse_word(list, "token", tokens, XF_ARRAY_LEN(tokens), &token, err));
    d->encoding = (enum s3d_list_encoding)encoding;
    d->order = (enum s3d_list_order)order;
    d->token = (enum s3d_list_token)token;
    return XF_OK;
}

static enum xf_code parse_end(struct s3d_rule *r, const struct xf_json *action, struct xf_err *err)
{
    static const char *const ends[] = {"fin", "rst"};
    int end;

    XF_TRY(parse_word(action, "end", ends, XF_ARRAY_LEN(ends), &end, err));
    r->action.rst = end == 1;
    return XF_OK;
}

static enum xf_code
parse_sides(struct s3d_rule *r, const struct xf_json *action, struct xf_err *err)
{
    const struct xf_json *put = xf_json_get(action, "put");
    const struct xf_json *del = xf_json_get(action, "delete");

    if (put != NULL) {
        XF_TRY(s3d_side_put_parse(put, false, &r->put, err));
        r->action.put = r->put;
    }
    if (del != NULL) {
        XF_TRY(s3d_side_put_parse(del, true, &r->del, err));
        r->action.del = r->del;
    }
    return XF_OK;
}

static enum xf_code
parse_action(struct s3d_rule *r, const struct xf_json *action, struct xf_err *err)
{
    s3d_action_init(&r->action);
    if (action == NULL || !xf_json_is_object(action)) {
        return XF_FAIL(err, XF_E_INVAL, "'action' is missing or no object");
    }
    r->action.any = true;
    XF_TRY(set_members(&r->action, action_members, XF_ARRAY_LEN(action_members), action, err));
    const struct xf_json *body = xf_json_get(action, "body");
    if (body != NULL) {
        if (xf_json_text(body) == NULL) {
            return XF_FAIL(err, XF_E_INVAL, "'body' has to be a string");
        }
        r->body = xf_str_c(xf_json_text(body));
        r->action.body = &r->body;
    }
    XF_TRY(parse_headers(r, xf_json_get(action, "headers"), err));
    XF_TRY(parse_end(r, action, err));
    XF_TRY(parse_sides(r, action, err));
    const struct xf_json *list = xf_json_get(action, "list");
    return list == NULL ? XF_OK : parse_list(&r->action.list, list, err);
}

static enum xf_code parse_rule(struct s3d_rule *r, struct xf_err *err)
{
    const struct xf_json *j = r->json;

    if (!xf_json_is_object(j)) {
        return XF_FAIL(err, XF_E_INVAL, "not an object");
    }
    r->id = "";
    r->nth = 1;
    r->every = 1;
    XF_TRY(set_members(r, rule_members, XF_ARRAY_LEN(rule_members), j, err));
    if (r->nth == 0 || r->every == 0) {
        return XF_FAIL(err, XF_E_INVAL, "'nth' and 'every' count from 1");
    }
    r->percent = xf_json_get_f64(j, "percent", 100);
    XF_TRY(parse_ops(r, xf_json_get(j, "op"), err));
    return parse_action(r, xf_json_get(j, "action"), err);
}

enum xf_code s3d_rules_parse(struct xf_str json, struct xf_list *out, struct xf_err *err)
{
    struct xf_json *parsed = NULL;

    XF_TRY(xf_json_parse(json, &parsed, err));
    XF_AUTO(xf_json) all = parsed;
    if (!xf_json_is_array(all)) {
        return XF_FAIL(err, XF_E_INVAL, "rules have to be an array");
    }
    for (size_t i = 0; i < xf_json_len(all); i++) {
        struct s3d_rule *r = xf_xcalloc(1, sizeof(*r));
        atomic_init(&r->refs, 1);
        xf_list_push_back(out, &r->in_list);
        /* a copy of its own, so that its texts live as long as the rule */
        XF_AUTO_FREE char *text = xf_json_dump(xf_json_at(all, i), false);
        XF_TRY(xf_json_parse(xf_str_c(text), &r->json, err));
        if (parse_rule(r, err) != XF_OK) {
            return XF_WRAP(err, "rule %zu", i);
        }
    }
    return XF_OK;
}

enum xf_code s3d_rates_parse(struct xf_str text, double rate[S3D_RATE_N], struct xf_err *err)
{
    static const char *const names[] = {"503", "reset", "truncate", "copy200err", "stall"};
    struct xf_str f;
    struct xf_str name;

    while (xf_str_cut(&text, ',', &f)) {
        struct xf_str rest = f;
        (void)xf_str_cut(&rest, '=', &name); /* f is not empty */
        XF_AUTO_FREE char *n = xf_str_dup(name);
        XF_AUTO_FREE char *v = xf_str_dup(rest);
        char *end = v;
        int i = word(names, XF_ARRAY_LEN(names), n);
        double percent = strtod(v, &end);
        if (i < 0 || end == v || *end != '\0' || !(percent >= 0 && percent <= 100)) {
            return XF_FAIL(
                err,
                XF_E_INVAL,
                "fault rate '%.*s' is not one of 503, reset, truncate, copy200err, stall = percent",
                XF_STR_ARG(f));
        }
        rate[i] = percent;
    }
    return XF_OK;
}
