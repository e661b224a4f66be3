/*
 * encoding.h - does a server encode the keys of its listings without saying so? (CASES C024)
 *
 * Keys are decoded only where a listing says <EncodingType>url</EncodingType>. Where it does not,
 * and a key has `%XX` or `+` in it, the listing alone cannot tell `a+b` from an encoded `a b`, and
 * a wrong guess loses objects. So one such key is asked for as it stands and decoded: the form
 * whose etag and size are the listed ones is right, for the whole listing. Threads: the owner's.
 */
#ifndef XF_COORDINATOR_ENCODING_H
#define XF_COORDINATOR_ENCODING_H

#include "common/base/arena.h"
#include "common/s3/client.h"

enum xf_encoding_state {
    XF_ENCODING_UNKNOWN, /* no key that could be taken for another so far */
    XF_ENCODING_RAW,
    XF_ENCODING_HIDDEN /* encoded, though not announced */
};

struct xf_encoding {
    enum xf_encoding_state state;
    struct xf_buf raw;     /* the key in question, as listed */
    struct xf_buf decoded; /* and decoded */
    struct xf_buf etag;
    uint64_t size;
    bool is_raw_asked;
    uint32_t undecided; /* keys that did not settle it: gone, or not to be seen */
};

void xf_encoding_init(struct xf_encoding *e);
void xf_encoding_fini(struct xf_encoding *e);

/** Is there a key on this page that has to be asked for first? Keeps it. */
bool xf_encoding_must_ask(struct xf_encoding *e, const struct xf_xml_doc *doc);
/** HEAD the kept key, in the form that is next. */
struct xf_s3_req *xf_encoding_ask(
    struct xf_encoding *e, struct xf_s3 *s3, struct xf_str bucket, xf_s3_done_fn *done, void *arg);
/** Take its answer (found, or not found). False: ask once more. */
bool xf_encoding_answer(struct xf_encoding *e, const struct xf_s3_result *res);

/**
 * The page as it is meant: `doc` itself, or in *out a copy with decoded keys, which live in the
 * arena.
 */
const struct xf_xml_doc *xf_encoding_page(const struct xf_encoding *e,
                                          const struct xf_xml_doc *doc,
                                          struct xf_arena *a,
                                          struct xf_xml_doc *out);

#endif
