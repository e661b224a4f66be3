/* err.c - the code table and the text of an error. */
#include "common/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct code_row {
    const char *name;
    enum xf_class cls;
    int exit_status;
    const char *text;
};

static const struct code_row codes[XF_CODE_N] = {[XF_OK] = {"ok", XF_CLASS_NONE, 0, "ok"},
#define XF_CODE_ROW(name_, label_, class_, exit_, text_) \
    [XF_E_##name_] = {label_, XF_CLASS_##class_, exit_, text_},
                                                 XF_CODES(XF_CODE_ROW)
#undef XF_CODE_ROW
};

static const char *const class_names[XF_CLASS_N] = {
    [XF_CLASS_NONE] = "none",
    [XF_CLASS_FATAL] = "permanent",
    [XF_CLASS_RETRY] = "transient",
    [XF_CLASS_SLOW_DOWN] = "throttled",
    [XF_CLASS_REPLAN] = "changed",
    [XF_CLASS_LOCAL] = "local",
};

static bool code_known(enum xf_code code)
{
    return (unsigned)code < (unsigned)XF_CODE_N;
}

const char *xf_code_name(enum xf_code code)
{
    return code_known(code) ? codes[code].name : "unknown";
}

const char *xf_code_text(enum xf_code code)
{
    return code_known(code) ? codes[code].text : "unknown error";
}

enum xf_class xf_code_class(enum xf_code code)
{
    return code_known(code) ? codes[code].cls : XF_CLASS_FATAL;
}

const char *xf_class_name(enum xf_class cls)
{
    return (unsigned)cls < (unsigned)XF_CLASS_N ? class_names[cls] : "unknown";
}

int xf_code_exit(enum xf_code code)
{
    return code_known(code) ? codes[code].exit_status : 1;
}

enum xf_code xf_code_parse(const char *name)
{
    for (int i = 0; i < (int)XF_CODE_N; i++) {
        if (strcmp(name, codes[i].name) == 0) {
            return (enum xf_code)i;
        }
    }
    return XF_CODE_N;
}

enum xf_code
xf_err_set(struct xf_err *err, enum xf_code code, int sub, const char *where, const char *fmt, ...)
{
    va_list ap;

    err->code = code;
    err->sub = sub;
    err->where = where;
    va_start(ap, fmt);
    if (vsnprintf(err->msg, sizeof(err->msg), fmt, ap) < 0) {
        err->msg[0] = '\0';
    }
    va_end(ap);
    return code;
}

enum xf_code xf_err_wrap(struct xf_err *err, const char *fmt, ...)
{
    char head[XF_ERR_MSG_MAX];
    char tail[XF_ERR_MSG_MAX];
    va_list ap;

    va_start(ap, fmt);
    if (vsnprintf(head, sizeof(head), fmt, ap) < 0) {
        head[0] = '\0';
    }
    va_end(ap);
    memcpy(tail, err->msg, sizeof(tail));
    tail[sizeof(tail) - 1] = '\0';
    size_t used = strlen(head);
    memcpy(err->msg, head, used);
    if (used + 2 < sizeof(err->msg)) {
        memcpy(err->msg + used, ": ", 2);
        used += 2;
    }
    size_t rest = strlen(tail);
    if (rest > sizeof(err->msg) - 1 - used) {
        rest = sizeof(err->msg) - 1 - used;
    }
    memcpy(err->msg + used, tail, rest);
    err->msg[used + rest] = '\0';
    return err->code;
}

void xf_err_clear(struct xf_err *err)
{
    err->code = XF_OK;
    err->sub = 0;
    err->where = "";
    err->msg[0] = '\0';
}

const char *xf_errno_text(int errnum)
{
    const char *text = strerrordesc_np(errnum);

    return text != NULL ? text : "unknown error";
}

void xf_assert_failed(const char *where, const char *what)
{
    (void)fprintf(
        stderr, "xfer: bug at %s: assertion '%s' failed\n", where, what); /* we abort anyway */
    abort();
}
