/*
 * toml_fuzz.c - any bytes as a TOML text: refused with a place, or a tree that can be walked.
 */
#include "common/base/mem.h"
#include "common/base/toml.h"
#include "tests/lib/fuzz.h"

#include <string.h>

/* Touches every value; gives how many there are. */
static size_t walk(const struct xf_toml_value *v, size_t depth)
{
    size_t n = 1;
    XF_ASSERT(depth <= XF_TOML_DEPTH_MAX);
    XF_ASSERT(v->pos.line >= 1 && v->pos.col >= 1);
    if (v->type == XF_TOML_STRING) {
        XF_ASSERT(xf_str_is_utf8(v->str));
    } else if (v->type == XF_TOML_ARRAY) {
        for (size_t i = 0; i < v->array.len; i++) {
            n += walk(v->array.items[i], depth + 1);
        }
    } else if (v->type == XF_TOML_TABLE) {
        for (size_t i = 0; i < v->table.len; i++) {
            const struct xf_toml_entry *e = &v->table.entries[i];
            XF_ASSERT(xf_str_is_utf8(e->key));
            XF_ASSERT(xf_toml_get(v, e->key) == e); /* no key twice */
            n += walk(e->value, depth + 1);
        }
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct xf_err err;
    struct xf_toml *doc = NULL;
    enum xf_code code = xf_toml_parse(xf_str_n(data, size), XF_STR_LIT("fuzz.toml"), &doc, &err);
    if (code == XF_OK) {
        XF_ASSERT(walk(xf_toml_root(doc), 0) <= 2 * size + 2);
    } else {
        XF_ASSERT(doc == NULL && code == XF_E_CONFIG && err.code == code);
        XF_ASSERT(strncmp(err.msg, "fuzz.toml:", 10) == 0);
    }
    xf_toml_free(doc);
    return 0;
}
