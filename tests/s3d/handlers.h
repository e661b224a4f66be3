/*
 * handlers.h - what each operation does, by file: bucket, object, tags, copy, multipart, list.
 *
 * A handler runs when the request's body is in and its modelled latency is over. It finds r->b set
 * (for operations on a bucket) and leaves an answer in r->resp, or a hash under way.
 */
#ifndef XF_TESTS_S3D_HANDLERS_H
#define XF_TESTS_S3D_HANDLERS_H

#include "tests/s3d/req.h"

/** Do the request's work. */
void s3d_handle(struct s3d_req *r);

/* put.c: data coming in */
/** Before the body of PutObject or UploadPart: prepare r->intake. False: refused, the answer is
 * there. */
bool s3d_data_begin(struct s3d_req *r);
/** After it: digests against what was announced; the body and its MD5. False: refused. */
bool s3d_data_end(struct s3d_req *r,
                  struct s3d_body **body,
                  uint8_t md5[S3D_MD5_LEN],
                  uint8_t sum[S3D_SUM_MAX]);
void s3d_put_object(struct s3d_req *r);
/** If-None-Match and If-Match of a write. False: refused. */
bool s3d_write_cond(struct s3d_req *r, struct s3d_put_cond *cond);
/** Store r->obj under the request's key; false: refused. */
bool s3d_store_object(struct s3d_req *r, const struct s3d_put_cond *cond);
/** Apply the rule's wishes to what will be stored: size, corruption, ETag. */
void s3d_obj_spoil(struct s3d_req *r, struct s3d_obj *o);
/** `ETag: ...` line (or the rule's ETag) into the answer. */
void s3d_etag_header(struct s3d_req *r, const struct s3d_obj *o);
/** The ETag to show in XML. */
void s3d_etag_shown(struct s3d_req *r, const struct s3d_obj *o, char out[S3D_ETAG_MAX * 2]);

/* get.c */
void s3d_get_object(struct s3d_req *r); /* GET and HEAD */
void s3d_delete_object(struct s3d_req *r);
void s3d_get_tags(struct s3d_req *r);
void s3d_put_tags(struct s3d_req *r);
void s3d_delete_tags(struct s3d_req *r);

/* copy.c */
void s3d_copy_object(struct s3d_req *r);
void s3d_copy_part(struct s3d_req *r);

/* multipart.c, uploads_list.c */
void s3d_create_upload(struct s3d_req *r);
void s3d_upload_part(struct s3d_req *r);
void s3d_complete_upload(struct s3d_req *r);
void s3d_abort_upload(struct s3d_req *r);
void s3d_list_parts(struct s3d_req *r);
void s3d_list_uploads(struct s3d_req *r);
/** Part number and upload id of the query. False: refused. */
bool s3d_part_params(struct s3d_req *r, size_t *part_no, struct xf_str *upload_id);
/** Put r->part into its upload; false: refused (no such upload). */
bool s3d_store_part(struct s3d_req *r, size_t part_no, struct xf_str upload_id);

/* list.c */
void s3d_list_objects(struct s3d_req *r);
/** Form-encoding of listings: letters, digits, "-_.*" and "/" stay, space is "+" (or "%20"). */
void s3d_list_encode(struct xf_buf *out, struct xf_str s, bool space_is_plus);

/* bucket.c */
void s3d_bucket_op(struct s3d_req *r);
void s3d_delete_many(struct s3d_req *r);

#endif
