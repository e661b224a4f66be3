/*
 * ini.h - one section of an AWS shared credentials or config file.
 *
 * Strict: a line is a section, `key = value`, a comment, blank, or indented below a key (kept out).
 * Anything else is an error that names file and line, never the line's text, which may be a secret.
 */
#ifndef XF_S3_INI_H
#define XF_S3_INI_H

#include "common/base/err.h"
#include "common/base/str.h"

struct xf_ini_option {
    struct xf_str key; /* lower case */
    struct xf_str value;
    unsigned line;
};

#define XF_INI_OPTIONS_MAX    64
#define XF_INI_FILE_MAX_BYTES (1024U * 1024U)

struct xf_ini_section {
    bool found;
    struct xf_ini_option options[XF_INI_OPTIONS_MAX];
    size_t n;
    struct xf_buf text; /* the file; options point into it; wiped by fini */
};

/**
 * Read section `name` (`profile name` in a config file; `default` in both).
 *
 * A file that does not exist gives an empty section. When a section or key comes twice, the last
 * one counts. Errors: XF_E_CREDS  unreadable, too large, or a line that is none of the above.
 */
enum xf_code xf_ini_read(const char *path,
                         struct xf_str name,
                         bool is_config,
                         struct xf_ini_section *out,
                         struct xf_err *err);
/* The same from text, which is copied; `path` is for errors. */
enum xf_code xf_ini_parse(const char *path,
                          struct xf_str text,
                          struct xf_str name,
                          bool is_config,
                          struct xf_ini_section *out,
                          struct xf_err *err);
const struct xf_ini_option *xf_ini_get(const struct xf_ini_section *section, const char *key);
void xf_ini_fini(struct xf_ini_section *section);
#define XF_AUTO_INI __attribute__((cleanup(xf_ini_fini))) struct xf_ini_section

#endif
