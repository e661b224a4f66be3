/*
 * xml.h - S3's answers, parsed while they arrive, under caps.
 *
 * One parser takes any of the documents below: the root element decides what it is, so an <Error>
 * in a 200 is seen as one. Elements are matched by local name, unknown ones are skipped, no DTD,
 * entity or network is touched. A document is complete only when its closing root tag was read.
 * Keys are bytes. Control characters that XML forbids, raw or as `&#x8;`, raw CR, and bytes that
 * are not UTF-8 all come out as the bytes they stand for (how: see xml_filter.h). Fields are
 * decoded from percent form only when the document says <EncodingType>url</EncodingType>, once,
 * with `+` as space. Threads: one owner per parser.
 */
#ifndef XF_S3_XML_H
#define XF_S3_XML_H

#include "common/base/err.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/s3/s3err.h"

#include <stdint.h>

#define XF_XML_BODY_MAX  (8U * 1024U * 1024U) /* of one answer */
#define XF_XML_DEPTH_MAX 16U
#define XF_XML_TEXT_MAX  (64U * 1024U) /* of one element's text */
#define XF_XML_ROWS_MAX \
    10000U /* entries of a page; S3 gives 1,000, some servers up to 10,000 parts */

enum xf_xml_root {
    XF_XML_NONE, /* no root element yet */
    XF_XML_ERROR,
    XF_XML_LIST,     /* ListBucketResult, V2 or V1 */
    XF_XML_COPY,     /* CopyObjectResult, CopyPartResult */
    XF_XML_INITIATE, /* InitiateMultipartUploadResult */
    XF_XML_COMPLETE, /* CompleteMultipartUploadResult */
    XF_XML_PARTS,    /* ListPartsResult */
    XF_XML_UPLOADS,  /* ListMultipartUploadsResult */
    XF_XML_TAGGING,
    XF_XML_DELETE,   /* DeleteResult */
    XF_XML_LOCATION, /* LocationConstraint */
    XF_XML_OTHER,    /* well-formed, but none of these */
    XF_XML_ROOT_N
};

struct xf_xml_object {
    struct xf_str key;
    struct xf_str etag;          /* without quotes */
    struct xf_str storage_class; /* empty: STANDARD */
    uint64_t size;
    int64_t modified_ms; /* wall; 0 when absent or unreadable */
    bool is_restored;    /* RestoreStatus: not in progress and with an expiry */
};

struct xf_xml_part {
    uint32_t part_no;
    struct xf_str etag; /* without quotes */
    uint64_t size;
    int64_t modified_ms;
};

struct xf_xml_upload {
    struct xf_str key;
    struct xf_str upload_id;
    int64_t initiated_ms;
};

struct xf_xml_pair {
    struct xf_str key;
    struct xf_str value;
};

/* A parsed document. Every string belongs to it and lives as long as the parser is not reset. */
struct xf_xml_doc {
    enum xf_xml_root root;
    struct xf_s3err_body error; /* XF_XML_ERROR */

    bool is_truncated;        /* pages */
    bool is_url_encoded;      /* EncodingType said so; fields here are decoded already */
    bool is_v1;               /* a listing without NextContinuationToken/KeyCount, with Marker */
    struct xf_str next_token; /* listing: NextContinuationToken; V1: NextMarker */
    struct xf_str next_key_marker;       /* uploads */
    struct xf_str next_upload_id_marker; /* uploads */
    uint32_t next_part_marker;           /* parts */
    struct xf_str prefix;                /* listing: as echoed */

    struct xf_str etag;      /* copy, complete: without quotes */
    int64_t modified_ms;     /* copy */
    struct xf_str upload_id; /* initiate */
    struct xf_str text;      /* location; ObjectOwnership of another document */

    const struct xf_xml_object *objects;
    size_t n_objects;
    const struct xf_str *prefixes; /* CommonPrefixes */
    size_t n_prefixes;
    const struct xf_xml_part *parts;
    size_t n_parts;
    const struct xf_xml_upload *uploads;
    size_t n_uploads;
    const struct xf_xml_pair *tags; /* tagging */
    size_t n_tags;
    const struct xf_xml_pair *errors; /* delete: key and S3 code of what failed */
    size_t n_errors;
};

struct xf_xml; /* a parser with its document */

struct xf_xml *xf_xml_new(void);
void xf_xml_free(struct xf_xml *xml);
XF_AUTO_DEFINE(xf_xml, xf_xml_free)
void xf_xml_reset(struct xf_xml *xml); /* for the next document; keeps its memory */

/**
 * Feed bytes as they come, in any pieces.
 *
 * Errors: XF_E_XML    not well-formed, or beyond a cap. Further pieces give the same error.
 */
enum xf_code xf_xml_feed(struct xf_xml *xml, const char *data, size_t len, struct xf_err *err);

/**
 * No more bytes come: is the document whole?
 *
 * Errors: XF_E_XML  empty, cut off, or broken before. A page that is truncated and has neither a
 * marker nor, of a listing, a key to go on from, or that lacks IsTruncated, is broken too.
 */
enum xf_code xf_xml_finish(struct xf_xml *xml, struct xf_err *err);

/* The document; complete only after xf_xml_finish() gave XF_OK. */
const struct xf_xml_doc *xf_xml_doc(const struct xf_xml *xml);

/* Bytes fed so far that were not blanks; 0: the body was empty or only padding. */
uint64_t xf_xml_seen(const struct xf_xml *xml);

#endif
