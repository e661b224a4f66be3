/*
 * xml.c - libxml2's push parser over the filter, and what each S3 document is made of.
 *
 * Elements are numbered by a sorted table; a stack of numbers tells where we are. Leaves are stored
 * when they end, rows (Contents, Part, Upload, Tag) when they end. Strings live in an arena
 * until the reset.
 */
#include "common/s3/xml.h"

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/base/list.h"
#include "common/s3/plan.h"
#include "common/s3/uri.h"
#include "common/s3/xml_filter.h"

#include <libxml/parser.h>

#include <stdlib.h>

#define DOCS_MAX     256U /* documents of one libxml2 context: its dictionary only grows */
#define FILTERED_MAX (XF_XML_BODY_MAX * 8U) /* a piece may grow to six times its size */

/* X(name), sorted by strcmp. */
/* clang-format off */
#define ELEMENTS(X)                                                                             \
    X(Code) X(CommonPrefixes) X(CompleteMultipartUploadResult) X(Condition) X(Contents) X(CopyObjectResult)  \
    X(CopyPartResult) X(DeleteResult) X(ETag) X(EncodingType) X(Error) X(ErrorResponse)         \
    X(InitiateMultipartUploadResult) X(Initiated) X(IsRestoreInProgress) X(IsTruncated) X(Key)  \
    X(KeyCount) X(LastModified) X(ListBucketResult) X(ListMultipartUploadsResult)               \
    X(ListPartsResult) X(LocationConstraint) X(Marker) X(Message) X(NextContinuationToken)      \
    X(NextKeyMarker) X(NextMarker) X(NextPartNumberMarker) X(NextUploadIdMarker)                \
    X(ObjectOwnership) X(Part) X(PartNumber) X(Prefix) X(Region) X(RequestId) X(RestoreExpiryDate) X(RestoreStatus)        \
    X(ServerTime) X(Size) X(StorageClass) X(Tag) X(TagSet) X(Tagging) X(Upload) X(UploadId)     \
    X(Value)
/* clang-format on */
enum element {
#define ELEMENT_ENUM(name) E_##name,
    ELEMENTS(ELEMENT_ENUM)
#undef ELEMENT_ENUM
        E_OTHER
};
static const char *const element_names[] = {
#define ELEMENT_NAME(name) #name,
    ELEMENTS(ELEMENT_NAME)
#undef ELEMENT_NAME
};

struct rows { /* a growing array inside the document */
    void *ptr;
    size_t n;
    size_t cap;
};

struct known {
    const xmlChar *name;
    enum element e;
};

struct xf_xml {
    xmlParserCtxtPtr ctxt;
    unsigned docs;
    struct known known[64]; /* of this context */
    struct xf_xml_filter filter;
    struct xf_buf filtered;
    struct xf_buf text; /* of the present element */
    struct xf_arena strings;
    uint64_t bytes;
    bool broken;
    struct xf_err err; /* of the first fault */
    const char *fault; /* static text set inside libxml2's callbacks */

    enum element stack[XF_XML_DEPTH_MAX];
    uint32_t depth;
    bool closed; /* the root's end tag was read */
    bool is_leaf;

    struct xf_xml_doc doc;
    struct rows objects, prefixes, parts, uploads, tags, errors;
    struct xf_xml_object object;
    struct xf_xml_part part;
    struct xf_xml_upload upload;
    struct xf_xml_pair pair;
    bool has_truncated;
    bool has_key_count;
    bool has_marker;
    bool restore_running;
    bool restore_expiry;
    struct xf_str next_marker;
};

/* ---- memory ---- */

static struct xf_str keep(struct xf_xml *x, struct xf_str text)
{
    return text.len == 0 ? XF_STR_EMPTY : xf_arena_dup(&x->strings, text);
}

static void *row_add(struct xf_xml *x, struct rows *rows, size_t size)
{
    if (rows->n == XF_XML_ROWS_MAX) {
        x->fault = "too many entries on a page";
        return NULL;
    }
    if (rows->n == rows->cap) {
        rows->cap = rows->cap == 0 ? 16 : rows->cap * 2;
        rows->ptr = xf_xrealloc(rows->ptr, rows->cap, size);
    }
    rows->n++;
    return (char *)rows->ptr + (rows->n - 1) * size;
}

/* ---- leaves ---- */

static uint64_t number(struct xf_xml *x, struct xf_str text, uint64_t max)
{
    uint64_t n = 0;

    if (!xf_str_u64(xf_str_trim(text), &n) || n > max) {
        x->fault = "a number is not a number";
        return 0;
    }
    return n;
}

static int64_t when(struct xf_str text)
{
    int64_t ms = 0;

    return xf_time_parse_rfc3339(xf_str_trim(text), &ms) ? ms : 0;
}

static bool truth(struct xf_xml *x, struct xf_str text)
{
    text = xf_str_trim(text);
    if (xf_str_eq_nocase(text, XF_STR_LIT("true"))) {
        return true;
    }
    if (!xf_str_eq_nocase(text, XF_STR_LIT("false"))) {
        x->fault = "a truth value is neither true nor false";
    }
    return false;
}

static struct xf_str bare_etag(struct xf_xml *x, struct xf_str text)
{
    return keep(x, xf_plan_etag_bare(text));
}

static void leaf_error(struct xf_xml *x, enum element e, struct xf_str text)
{
    struct xf_s3err_body *body = &x->doc.error;

    if (e == E_Code) {
        body->code = keep(x, xf_str_trim(text));
    } else if (e == E_Message) {
        body->message = keep(x, text);
    } else if (e == E_RequestId) {
        body->request_id = keep(x, xf_str_trim(text));
    } else if (e == E_Region) {
        body->region = keep(x, xf_str_trim(text));
    } else if (e == E_Condition) {
        body->condition = keep(x, xf_str_trim(text));
    } else if (e == E_ServerTime) {
        body->server_time = keep(x, xf_str_trim(text));
    }
}

static void leaf_object(struct xf_xml *x, enum element e, struct xf_str text)
{
    if (e == E_Key) {
        x->object.key = keep(x, text);
    } else if (e == E_ETag) {
        x->object.etag = bare_etag(x, text);
    } else if (e == E_Size) {
        x->object.size = number(x, text, UINT64_MAX);
    } else if (e == E_LastModified) {
        x->object.modified_ms = when(text);
    } else if (e == E_StorageClass) {
        x->object.storage_class = keep(x, xf_str_trim(text));
    }
}

static void leaf_part(struct xf_xml *x, enum element e, struct xf_str text)
{
    if (e == E_PartNumber) {
        x->part.part_no = (uint32_t)number(x, text, UINT32_MAX);
    } else if (e == E_ETag) {
        x->part.etag = bare_etag(x, text);
    } else if (e == E_Size) {
        x->part.size = number(x, text, UINT64_MAX);
    } else if (e == E_LastModified) {
        x->part.modified_ms = when(text);
    }
}

static void leaf_upload(struct xf_xml *x, enum element e, struct xf_str text)
{
    if (e == E_Key) {
        x->upload.key = keep(x, text);
    } else if (e == E_UploadId) {
        x->upload.upload_id = keep(x, text);
    } else if (e == E_Initiated) {
        x->upload.initiated_ms = when(text);
    }
}

/* Leaves right below the root of a page. */
static void leaf_page(struct xf_xml *x, enum element e, struct xf_str text)
{
    struct xf_xml_doc *doc = &x->doc;

    if (e == E_IsTruncated) {
        doc->is_truncated = truth(x, text);
        x->has_truncated = true;
    } else if (e == E_EncodingType) {
        doc->is_url_encoded = xf_str_eq_nocase(xf_str_trim(text), XF_STR_LIT("url"));
    } else if (e == E_NextContinuationToken) {
        doc->next_token = keep(x, text);
    } else if (e == E_NextMarker) {
        x->next_marker = keep(x, text);
    } else if (e == E_KeyCount) {
        x->has_key_count = true;
    } else if (e == E_Marker) {
        x->has_marker = true;
    } else if (e == E_Prefix) {
        doc->prefix = keep(x, text);
    } else if (e == E_NextKeyMarker) {
        doc->next_key_marker = keep(x, text);
    } else if (e == E_NextUploadIdMarker) {
        doc->next_upload_id_marker = keep(x, text);
    } else if (e == E_NextPartNumberMarker) {
        doc->next_part_marker =
            xf_str_trim(text).len > 0 ? (uint32_t)number(x, text, UINT32_MAX) : 0;
    }
}

static void leaf_result(struct xf_xml *x, enum element e, struct xf_str text)
{
    if (e == E_ETag) {
        x->doc.etag = bare_etag(x, text);
    } else if (e == E_LastModified) {
        x->doc.modified_ms = when(text);
    } else if (e == E_UploadId) {
        x->doc.upload_id = keep(x, text);
    }
}

static void leaf_pair(struct xf_xml *x, enum element e, struct xf_str text)
{
    if (e == E_Key) {
        x->pair.key = keep(x, text);
    } else if (e == E_Value || e == E_Code) {
        x->pair.value = keep(x, text);
    }
}

static void leaf_listing(struct xf_xml *x, enum element e, enum element parent, struct xf_str text)
{
    if (parent == E_Contents) {
        leaf_object(x, e, text);
    } else if (parent == E_RestoreStatus && e == E_IsRestoreInProgress) {
        x->restore_running = truth(x, text);
    } else if (parent == E_RestoreStatus && e == E_RestoreExpiryDate) {
        x->restore_expiry = true;
    } else if (parent == E_CommonPrefixes && e == E_Prefix) {
        struct xf_str *row = row_add(x, &x->prefixes, sizeof(*row));

        if (row != NULL) {
            *row = keep(x, text);
        }
    } else if (x->depth == 1) {
        leaf_page(x, e, text);
    }
}

/* An element without children has ended; `parent` is the one around it. */
static void on_leaf(struct xf_xml *x, enum element e, enum element parent, struct xf_str text)
{
    switch (x->doc.root) {
    case XF_XML_ERROR:
        if (parent == E_Error) {
            leaf_error(x, e, text);
        }
        break;
    case XF_XML_LIST: leaf_listing(x, e, parent, text); break;
    case XF_XML_PARTS: parent == E_Part ? leaf_part(x, e, text) : leaf_page(x, e, text); break;
    case XF_XML_UPLOADS:
        if (parent == E_Upload) {
            leaf_upload(x, e, text);
        } else if (x->depth == 1) {
            leaf_page(x, e, text);
        }
        break;
    case XF_XML_COPY:
    case XF_XML_INITIATE:
    case XF_XML_COMPLETE:
        if (x->depth == 1) {
            leaf_result(x, e, text);
        }
        break;
    case XF_XML_TAGGING:
        if (parent == E_Tag) {
            leaf_pair(x, e, text);
        }
        break;
    case XF_XML_DELETE:
        if (parent == E_Error) {
            leaf_pair(x, e, text);
        }
        break;
    case XF_XML_LOCATION:
        if (x->depth == 0) {
            x->doc.text = keep(x, xf_str_trim(text));
        }
        break;
    case XF_XML_OTHER: x->doc.text = e == E_ObjectOwnership ? keep(x, text) : x->doc.text; break;
    case XF_XML_NONE:
    case XF_XML_ROOT_N: break;
    }
}

/* ---- rows ---- */

static void on_row_start(struct xf_xml *x, enum element e)
{
    if (e == E_Contents) {
        x->object = (struct xf_xml_object){0};
        x->restore_running = false;
        x->restore_expiry = false;
    } else if (e == E_Part) {
        x->part = (struct xf_xml_part){0};
    } else if (e == E_Upload) {
        x->upload = (struct xf_xml_upload){0};
    } else if (e == E_Tag || e == E_Error) {
        x->pair = (struct xf_xml_pair){0};
    }
}

static void end_object(struct xf_xml *x)
{
    struct xf_xml_object *row;

    if (x->object.key.len == 0) {
        x->fault = "an entry has no key";
        return;
    }
    x->object.is_restored = x->restore_expiry && !x->restore_running;
    row = row_add(x, &x->objects, sizeof(*row));
    if (row != NULL) {
        *row = x->object;
    }
}

static void end_part(struct xf_xml *x)
{
    struct xf_xml_part *row;

    if (x->part.part_no == 0) {
        x->fault = "a part has no number";
        return;
    }
    row = row_add(x, &x->parts, sizeof(*row));
    if (row != NULL) {
        *row = x->part;
    }
}

static void end_upload(struct xf_xml *x)
{
    struct xf_xml_upload *row;

    if (x->upload.key.len == 0 || x->upload.upload_id.len == 0) {
        x->fault = "an upload has no key or no id";
        return;
    }
    row = row_add(x, &x->uploads, sizeof(*row));
    if (row != NULL) {
        *row = x->upload;
    }
}

static void end_pair(struct xf_xml *x, struct rows *rows)
{
    struct xf_xml_pair *row = row_add(x, rows, sizeof(*row));

    if (row != NULL) {
        *row = x->pair;
    }
}

static void on_row_end(struct xf_xml *x, enum element e)
{
    enum xf_xml_root root = x->doc.root;

    if (root == XF_XML_LIST && e == E_Contents && x->depth == 1) {
        end_object(x);
    } else if (root == XF_XML_PARTS && e == E_Part && x->depth == 1) {
        end_part(x);
    } else if (root == XF_XML_UPLOADS && e == E_Upload && x->depth == 1) {
        end_upload(x);
    } else if (root == XF_XML_TAGGING && e == E_Tag) {
        end_pair(x, &x->tags);
    } else if (root == XF_XML_DELETE && e == E_Error && x->depth == 1) {
        end_pair(x, &x->errors);
    }
}

/* ---- libxml2 ---- */

static int by_name(const void *key, const void *row)
{
    return strcmp(key, *(const char *const *)row);
}

static enum element find_element(const xmlChar *name)
{
    const char *const *row = bsearch(
        name, element_names, XF_ARRAY_LEN(element_names), sizeof(element_names[0]), by_name);

    return row != NULL ? (enum element)(row - element_names) : E_OTHER;
}

/* libxml2 gives a name by the same pointer as long as its context lives. */
static enum element element_of(struct xf_xml *x, const xmlChar *name)
{
    struct known *k = &x->known[((uintptr_t)name >> 3) % XF_ARRAY_LEN(x->known)];

    if (k->name != name) {
        k->name = name;
        k->e = find_element(name);
    }
    return k->e;
}

static enum xf_xml_root root_of(enum element e)
{
    static const struct {
        enum element e;
        enum xf_xml_root root;
    } roots[] = {
        {E_Error, XF_XML_ERROR},
        {E_ErrorResponse, XF_XML_ERROR},
        {E_ListBucketResult, XF_XML_LIST},
        {E_CopyObjectResult, XF_XML_COPY},
        {E_CopyPartResult, XF_XML_COPY},
        {E_InitiateMultipartUploadResult, XF_XML_INITIATE},
        {E_CompleteMultipartUploadResult, XF_XML_COMPLETE},
        {E_ListPartsResult, XF_XML_PARTS},
        {E_ListMultipartUploadsResult, XF_XML_UPLOADS},
        {E_Tagging, XF_XML_TAGGING},
        {E_DeleteResult, XF_XML_DELETE},
        {E_LocationConstraint, XF_XML_LOCATION},
    };

    for (size_t i = 0; i < XF_ARRAY_LEN(roots); i++) {
        if (roots[i].e == e) {
            return roots[i].root;
        }
    }
    return XF_XML_OTHER;
}

/* NOLINTNEXTLINE(readability-function-size): libxml2 chose the parameters */
static void sax_start(void *arg,
                      const xmlChar *name,
                      const xmlChar *prefix,
                      const xmlChar *uri,
                      int n_namespaces,
                      const xmlChar **namespaces,
                      int n_attributes,
                      int n_defaulted,
                      const xmlChar **attributes)
{
    struct xf_xml *x = arg;
    enum element e = element_of(x, name);

    (void)prefix; /* by local name; attributes say nothing we need */
    (void)uri;
    (void)n_namespaces;
    (void)namespaces;
    (void)n_attributes;
    (void)n_defaulted;
    (void)attributes;
    if (x->fault != NULL) {
        return;
    }
    if (x->depth == XF_XML_DEPTH_MAX) {
        x->fault = "elements are nested too deep";
        return;
    }
    if (x->depth == 0) {
        x->doc.root = root_of(e);
    }
    x->stack[x->depth++] = e;
    x->is_leaf = true;
    xf_buf_reset(&x->text);
    on_row_start(x, e);
}

static void sax_end(void *arg, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri)
{
    struct xf_xml *x = arg;
    enum element e;

    (void)name; /* libxml2 checked that the tags match */
    (void)prefix;
    (void)uri;
    if (x->fault != NULL || x->depth == 0) {
        return;
    }
    e = x->stack[--x->depth];
    if (x->is_leaf) {
        if (x->text.full) {
            x->fault = "an element's text is too long";
            return;
        }
        on_leaf(x, e, x->depth > 0 ? x->stack[x->depth - 1] : E_OTHER, xf_buf_view(&x->text));
    }
    on_row_end(x, e);
    x->is_leaf = false;
    x->closed = x->depth == 0;
    xf_buf_reset(&x->text);
}

static void sax_text(void *arg, const xmlChar *text, int len)
{
    struct xf_xml *x = arg;

    if (x->fault == NULL && x->is_leaf && len > 0) {
        xf_xml_unfilter(&x->text, text, (size_t)len);
    }
}

/* libxml2 would print to stderr without one. The code is in the context. */
static void sax_quiet(void *arg, xmlErrorPtr error)
{
    (void)arg;
    (void)error;
}

static void ctxt_new(struct xf_xml *x)
{
    xmlSAXHandler sax = {0};

    sax.initialized = XML_SAX2_MAGIC;
    sax.startElementNs = sax_start;
    sax.endElementNs = sax_end;
    sax.characters = sax_text;
    sax.ignorableWhitespace = sax_text;
    sax.serror = sax_quiet;
    x->ctxt = xmlCreatePushParserCtxt(&sax, x, NULL, 0, NULL);
    XF_ASSERT(x->ctxt != NULL);
    (void)xmlCtxtUseOptions(x->ctxt, XML_PARSE_NONET); /* gives back options it does not know */
    x->docs = 0;
    memset(x->known, 0, sizeof(x->known));
}

struct xf_xml *xf_xml_new(void)
{
    struct xf_xml *x = xf_xcalloc(1, sizeof(*x));

    xmlInitParser();
    xf_buf_init(&x->filtered, FILTERED_MAX);
    xf_buf_init(&x->text, XF_XML_TEXT_MAX);
    ctxt_new(x);
    xf_xml_filter_init(&x->filter);
    return x;
}

void xf_xml_free(struct xf_xml *x)
{
    if (x == NULL) {
        return;
    }
    xmlFreeParserCtxt(x->ctxt);
    xf_arena_fini(&x->strings);
    xf_buf_fini(&x->filtered);
    xf_buf_fini(&x->text);
    xf_xfree(x->objects.ptr);
    xf_xfree(x->prefixes.ptr);
    xf_xfree(x->parts.ptr);
    xf_xfree(x->uploads.ptr);
    xf_xfree(x->tags.ptr);
    xf_xfree(x->errors.ptr);
    xf_xfree(x);
}

void xf_xml_reset(struct xf_xml *x)
{
    struct rows *rows[] = {&x->objects, &x->prefixes, &x->parts, &x->uploads, &x->tags, &x->errors};

    x->docs++;
    if (x->docs >= DOCS_MAX || x->broken || xmlCtxtResetPush(x->ctxt, NULL, 0, NULL, NULL) != 0) {
        xmlFreeParserCtxt(x->ctxt);
        ctxt_new(x);
    }
    xf_arena_reset(&x->strings);
    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        rows[i]->n = 0;
    }
    xf_xml_filter_init(&x->filter);
    xf_buf_reset(&x->filtered);
    xf_buf_reset(&x->text);
    x->bytes = 0;
    x->broken = false;
    x->fault = NULL;
    x->depth = 0;
    x->closed = false;
    x->is_leaf = false;
    x->doc = (struct xf_xml_doc){0};
    x->has_truncated = false;
    x->has_key_count = false;
    x->has_marker = false;
    x->next_marker = XF_STR_EMPTY;
}

static enum xf_code broken(struct xf_xml *x, const char *what, struct xf_err *err)
{
    x->broken = true;
    (void)XF_FAIL(&x->err, XF_E_XML, "answer is not a usable document: %s", what);
    *err = x->err;
    return XF_E_XML;
}

enum xf_code xf_xml_feed(struct xf_xml *x, const char *data, size_t len, struct xf_err *err)
{
    const char *wrong;

    if (x->broken) {
        *err = x->err;
        return XF_E_XML;
    }
    x->bytes += len;
    if (x->bytes > XF_XML_BODY_MAX) {
        return broken(x, "larger than 8 MiB", err);
    }
    xf_buf_reset(&x->filtered);
    wrong = xf_xml_filter_run(&x->filter, data, len, &x->filtered);
    if (wrong == NULL && x->filtered.full) {
        wrong = "too many escapes";
    }
    if (wrong == NULL && x->filtered.len > 0 &&
        xmlParseChunk(x->ctxt, x->filtered.ptr, (int)x->filtered.len, 0) != 0) {
        wrong = "not well-formed";
    }
    if (x->fault != NULL) {
        wrong = x->fault;
    }
    return wrong != NULL ? broken(x, wrong, err) : XF_OK;
}

/* ---- the end ---- */

static void decode(struct xf_xml *x, struct xf_str *text)
{
    XF_AUTO_BUF plain = {0};

    if (text->len == 0 ||
        (memchr(text->ptr, '%', text->len) == NULL && memchr(text->ptr, '+', text->len) == NULL)) {
        return;
    }
    xf_uri_decode(&plain, *text, true);
    *text = keep(x, xf_buf_view(&plain));
}

static void decode_all(struct xf_xml *x)
{
    struct xf_xml_object *objects = x->objects.ptr;
    struct xf_xml_upload *uploads = x->uploads.ptr;
    struct xf_str *prefixes = x->prefixes.ptr;

    for (size_t i = 0; i < x->objects.n; i++) {
        decode(x, &objects[i].key);
    }
    for (size_t i = 0; i < x->uploads.n; i++) {
        decode(x, &uploads[i].key);
    }
    for (size_t i = 0; i < x->prefixes.n; i++) {
        decode(x, &prefixes[i]);
    }
    decode(x, &x->doc.prefix);
    decode(x, &x->doc.next_key_marker);
    decode(x, &x->next_marker);
}

static enum xf_code finish_page(struct xf_xml *x, struct xf_err *err)
{
    struct xf_xml_doc *doc = &x->doc;
    bool can_go_on = false;

    if (doc->is_url_encoded) {
        decode_all(x);
    }
    if (!x->has_truncated) {
        return broken(x, "a page without IsTruncated", err);
    }
    if (doc->root == XF_XML_LIST) {
        struct xf_xml_object *objects = x->objects.ptr;

        doc->is_v1 = x->has_marker && !x->has_key_count && doc->next_token.len == 0;
        if (doc->is_v1 && doc->is_truncated) {
            doc->next_token = x->next_marker.len == 0 && x->objects.n > 0
                                  ? objects[x->objects.n - 1].key
                                  : x->next_marker;
        }
        can_go_on = doc->next_token.len > 0 || x->objects.n > 0; /* by the last key */
    } else if (doc->root == XF_XML_PARTS) {
        can_go_on = doc->next_part_marker > 0;
    } else {
        can_go_on = doc->next_key_marker.len > 0;
    }
    if (doc->is_truncated && !can_go_on) {
        return broken(x, "a page says that more follow but not from where", err);
    }
    return XF_OK;
}

enum xf_code xf_xml_finish(struct xf_xml *x, struct xf_err *err)
{
    struct xf_xml_doc *doc = &x->doc;

    if (x->broken) {
        *err = x->err;
        return XF_E_XML;
    }
    if (x->filter.seen == 0) {
        return broken(x, "empty", err);
    }
    if (!x->closed || x->filter.depth != 0) {
        return broken(x, "cut off before its end", err);
    }
    if (xmlParseChunk(x->ctxt, "", 0, 1) != 0 || x->ctxt->wellFormed == 0) {
        return broken(x, "not well-formed", err);
    }
    if (doc->root == XF_XML_LIST || doc->root == XF_XML_PARTS || doc->root == XF_XML_UPLOADS) {
        XF_TRY(finish_page(x, err));
    }
    doc->objects = x->objects.ptr;
    doc->n_objects = x->objects.n;
    doc->prefixes = x->prefixes.ptr;
    doc->n_prefixes = x->prefixes.n;
    doc->parts = x->parts.ptr;
    doc->n_parts = x->parts.n;
    doc->uploads = x->uploads.ptr;
    doc->n_uploads = x->uploads.n;
    doc->tags = x->tags.ptr;
    doc->n_tags = x->tags.n;
    doc->errors = x->errors.ptr;
    doc->n_errors = x->errors.n;
    return XF_OK;
}

const struct xf_xml_doc *xf_xml_doc(const struct xf_xml *x)
{
    return &x->doc;
}

uint64_t xf_xml_seen(const struct xf_xml *x)
{
    return x->filter.seen;
}
