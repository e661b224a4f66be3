/*
 * xml_filter.h - makes any S3 answer palatable to an XML 1.0 parser without losing a byte.
 *
 * S3 keys are bytes; XML 1.0 has no way to write most control characters, and some servers send
 * them raw, as `&#x8;`, or as bytes that are not UTF-8. The filter rewrites the document while it
 * passes:
 *   - it declares ISO-8859-1, so every byte from 0x80 on is one character for the parser;
 *   - declaration, comments and processing instructions are dropped, CDATA becomes plain text, a
 * DOCTYPE is refused;
 *   - every reference is resolved here and its UTF-8 bytes are written as text;
 *   - a byte below 0x20 (TAB and LF excepted) becomes the reference to U+0100 plus the byte, which
 * no input can otherwise produce, since no byte and no reference comes out above U+00FF.
 * xf_xml_unfilter() turns what the parser reports back into the bytes.
 */
#ifndef XF_S3_XML_FILTER_H
#define XF_S3_XML_FILTER_H

#include "common/base/str.h"

#include <stdint.h>

#define XF_XML_REF_MAX 12 /* characters between & and ; */

struct xf_xml_filter {
    int state;
    uint32_t depth;
    bool started; /* the declaration is written */
    char prev;    /* the byte before, where it matters */
    char quote;
    unsigned n; /* bytes in held */
    char held[XF_XML_REF_MAX + 1];
    uint64_t seen; /* bytes that were not blanks outside the root */
};

void xf_xml_filter_init(struct xf_xml_filter *f);

/* Rewrite a piece into out (appended). NULL, or what is wrong (static text). */
const char *
xf_xml_filter_run(struct xf_xml_filter *f, const char *data, size_t len, struct xf_buf *out);

/* Text as the parser reports it (UTF-8, whole characters) back into bytes, appended. */
void xf_xml_unfilter(struct xf_buf *out, const unsigned char *text, size_t len);

#endif
