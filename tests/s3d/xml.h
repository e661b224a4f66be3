/*
 * xml.h - S3's XML: escaping, the table of error codes, and the small documents that clients send.
 */
#ifndef XF_TESTS_S3D_XML_H
#define XF_TESTS_S3D_XML_H

#include "common/base/str.h"
#include "tests/s3d/digest.h"

#define S3D_XML_HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
#define S3D_XML_NS   " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""

/** Text with the five entities; control bytes as numeric references. */
void s3d_xml_text(struct xf_buf *out, struct xf_str s);
/** <name>text</name> */
void s3d_xml_tag(struct xf_buf *out, const char *name, struct xf_str text);
void s3d_xml_tag_u64(struct xf_buf *out, const char *name, uint64_t v);
void s3d_xml_tag_time(struct xf_buf *out, const char *name, int64_t wall_ms);

/** HTTP status of an error code; 400 when unknown. */
int s3d_error_status(const char *code);
/** The usual code of a status ("SlowDown" for 503). */
const char *s3d_error_code(int status);

struct s3d_xml_part {
    uint64_t part_no;
    struct xf_str etag;           /* as sent */
    struct xf_str sum[S3D_SUM_N]; /* base64, empty when absent */
};

/*
 * A parsed document: one of the lists is filled. Texts live in `text`, which must stay.
 */
struct s3d_xml_doc {
    struct xf_buf text; /* all texts; the views are made when parsing is over */
    struct s3d_xml_part *parts;
    size_t n_parts;
    struct s3d_param_pair {
        struct xf_str key;
        struct xf_str value;
    } * pairs; /* tags, or keys to delete */
    size_t n_pairs;
    bool quiet;
    struct xf_str location;
};

enum s3d_xml_kind { S3D_XML_COMPLETE, S3D_XML_DELETE, S3D_XML_TAGGING, S3D_XML_BUCKET };

/** False when malformed or of another kind. Fini in any case. */
bool s3d_xml_parse(enum s3d_xml_kind kind, struct xf_str body, struct s3d_xml_doc *doc);
void s3d_xml_doc_fini(struct s3d_xml_doc *doc);

#endif
