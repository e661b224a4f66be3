/*
 * page.h - one listed page turned into work: batches of small objects, and uploads.
 *
 * Pure. Every selected key of the page comes out exactly once: in a batch's manifest when it is
 * below the multipart threshold, as an upload from there on. What is wrong with an object (no legal
 * destination key, too large) is found by the agent that takes it, and becomes its failure. Keys at
 * or below the cursor were queued before and are dropped. Those beyond the shard's end are left to
 * the store, which alone knows it. Memory: one page.
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
    uint32_t source_no;   /* url of the job, from 0 */
    int64_t start_ms;     /* the job's start, from which ages count */
    struct xf_str cursor; /* last key queued; empty: none */
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

/* Strings live in the arena. */
struct xf_page {
    struct xf_page_batch *batches;
    size_t n_batches;
    struct xf_object *uploads;
    size_t n_uploads;
    uint64_t listed; /* selected objects: in batches and uploads */
    uint64_t listed_bytes;
    uint64_t dropped;     /* at or below the cursor */
    struct xf_str cursor; /* the new one */
    struct xf_arena arena;
};

/**
 * The caller frees with xf_page_fini(), also after an error.
 *
 * Errors: XF_E_LISTING  a key or field is longer than what can be queued: the listing cannot be
 *         completed, since the object must not be passed over.
 */
XF_MUST_CHECK enum xf_code
xf_page_build(const struct xf_page_in *in, struct xf_page *out, struct xf_err *err);
void xf_page_fini(struct xf_page *p);

#endif
