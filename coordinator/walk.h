/*
 * walk.h - is a listing making progress? The pure rules of paging through one shard.
 *
 * A walk is a chain of pages by continuation token. Within a walk keys must rise; a page that
 * begins at or below the walk's last key is either a repeat (a server that gives the same token or
 * page again) or proof that the server does not list in byte order. After a repeat tokens are not
 * trusted any more: every page is asked for by start-after = cursor. Disorder, or a page that makes
 * no progress then, ends the listing as incomplete. Only a page that says IsTruncated=false ends it
 * as complete. A crash starts a new walk after the stored cursor.
 */
#ifndef XF_COORDINATOR_WALK_H
#define XF_COORDINATOR_WALK_H

#include "common/base/err.h"
#include "common/base/str.h"

#include <stdint.h>

struct xf_xml_doc;

enum xf_walk_next {
    XF_WALK_PAGE,    /* commit this page, then go on with the token */
    XF_WALK_LAST,    /* commit this page; the listing is complete with it */
    XF_WALK_RESTART, /* the page is a repeat: drop it, ask again with start-after = cursor */
    XF_WALK_FAIL     /* the listing cannot be completed; err says why */
};

struct xf_walk {
    uint64_t seed;
    struct xf_buf token;    /* for the next request; empty: start-after = cursor */
    struct xf_buf last_key; /* of this walk; empty: none yet */
    bool no_tokens;         /* a token led back: go by start-after alone */
    uint32_t n_empty;       /* pages without a key, one after the other */
    uint64_t *seen;         /* hashes of the keys of the first page and of the last one */
    size_t n_first;
    size_t n_seen;
    size_t cap_seen;
};

/** seed: of the key hashes, any value. */
void xf_walk_init(struct xf_walk *w, uint64_t seed);
void xf_walk_fini(struct xf_walk *w);
/** Forget token and keys: the next request is by start-after (errors, pauses, a new process). */
void xf_walk_rewind(struct xf_walk *w);

/**
 * Judge a fully parsed page.
 *
 * cursor  last key committed; empty: none
 * err     set with XF_WALK_FAIL only, code XF_E_LISTING
 */
enum xf_walk_next xf_walk_page(struct xf_walk *w,
                               const struct xf_xml_doc *doc,
                               struct xf_str cursor,
                               struct xf_err *err);

#endif
