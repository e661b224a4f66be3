/*
 * page.h - one listed page turned into work: batches, uploads, and objects that fail at once.
 *
 * Pure. Every selected key of the page comes out exactly once: in a batch's manifest when it is
 * below the multipart threshold, as an upload from there on, or as a failure when it has no legal
 * destination key or size. Keys at or below the cursor were queued before and are dropped; so are
 * those at or beyond the shard's end. Memory: one page.
 */
#ifndef XF_COORDINATOR_PAGE_H
#define XF_COORDINATOR_PAGE_H

#include "common/base/arena.h"
#include "common/base/err.h"
#include "common/base/str.h"
#include "proto/manifest.h"

#include <stdint.h>

struct xf_job_spec;
struct xf_xml_object;

struct xf_page_in {
    const struct xf_job_spec *spec;
    uint32_t source_no; /* url of the job, from 0 */
    int64_t start_ms;   /* the job's start, from which ages count */
    struct xf_str cursor; /* last key queued; empty: none */
    struct xf_str hi;     /* the shard's end, exclusive; empty: none */
    const struct xf_xml_object *objects;
    size_t n_objects;
    uint32_t batch_objects; /* 1 to XF_MANIFEST_MAX */
    uint64_t batch_bytes;   /* a batch is closed when it holds that much; at least 1 */
};

struct xf_page_batch {
    struct xf_buf manifest;
    uint32_t n_objects;
    uint64_t size_bytes;
};

struct xf_page_upload {
    struct xf_object object;
    uint64_t part_size;
    uint32_t n_parts;
};

struct xf_page_failure {
    struct xf_object object;
    enum xf_code code;
    struct xf_str message;
};

/* Strings live in the arena. */
struct xf_page {
    struct xf_page_batch *batches;
    size_t n_batches;
    struct xf_page_upload *uploads;
    size_t n_uploads;
    struct xf_page_failure *failures;
    size_t n_failures;
    uint64_t listed; /* selected objects: in batches, uploads and failures */
    uint64_t listed_bytes;
    uint64_t dropped;     /* at or below the cursor */
    bool is_past_end;     /* a key at or beyond `hi` was seen: the shard ends here */
    struct xf_str cursor; /* the new one */
    struct xf_arena arena;
};

/** Never fails: what is wrong with an object is its failure. The caller frees with xf_page_fini().
 */
void xf_page_build(const struct xf_page_in *in, struct xf_page *out);
void xf_page_fini(struct xf_page *p);

#endif
