/*
 * script.h - a scripted HTTP server on the test's own loop: the n-th request gets the n-th reply.
 *
 * It lives on loopback, on a port that the system chose. Requests are kept as they came, so that a
 * test can look at the bytes on the wire.
 */
#ifndef XF_TESTS_UNIT_S3_SCRIPT_H
#define XF_TESTS_UNIT_S3_SCRIPT_H

#include "common/base/str.h"
#include "common/rt/loop.h"

struct script;

enum script_after {
    SCRIPT_KEEP,  /* wait for the next request */
    SCRIPT_CLOSE, /* FIN after the reply */
    SCRIPT_RESET, /* RST after the reply */
    SCRIPT_STALL, /* nothing more, and the connection stays */
};

struct script_reply {
    const char *text; /* head and body; NULL: nothing */
    size_t text_len;  /* 0: up to the NUL */
    uint64_t fill;    /* then so many bytes 'x' */
    enum script_after after;
    bool before_body; /* answer when the request's head is there, its body unread */
    int drip_ms;      /* between single bytes of text after the head; 0: all at once */
};

struct script *script_new(struct xf_loop *loop);
void script_free(struct script *s);
XF_AUTO_DEFINE(script, script_free)

unsigned script_port(const struct script *s);
/* Add a reply; text is borrowed. */
void script_add(struct script *s, struct script_reply reply);
/* Add a plain one. */
void script_say(struct script *s, const char *text);

size_t script_requests(const struct script *s);
size_t script_connections(const struct script *s);
/* Head of the n-th request (from 0), as it came, NUL-terminated. */
const char *script_head(const struct script *s, size_t n);
struct xf_str script_body(const struct script *s, size_t n);

#endif
