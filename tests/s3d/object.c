/* object.c - one stored object as a value. */
#include "tests/s3d/object.h"

#include <stdio.h>

void s3d_obj_copy(const struct s3d_obj *o, struct s3d_obj *out)
{
    *out = *o;
    (void)s3d_attrs_ref(out->attrs); /* the copy's own */
    if ((o->flags & S3D_OBJ_GEN) == 0) {
        (void)s3d_body_ref(out->u.body); /* the copy's own */
    }
}

void s3d_obj_fini(struct s3d_obj *o)
{
    if ((o->flags & S3D_OBJ_GEN) == 0) {
        s3d_body_unref(o->u.body);
    }
    o->u.body = NULL;
    s3d_attrs_unref(o->attrs);
    o->attrs = NULL;
    o->flags = 0;
}

struct s3d_body *s3d_obj_body(const struct s3d_obj *o)
{
    if ((o->flags & S3D_OBJ_GEN) != 0) {
        return s3d_body_new_gen(o->u.seed, 0, o->size, false);
    }
    return s3d_body_ref(o->u.body);
}

void s3d_obj_fix_md5(struct s3d_obj *o)
{
    if ((o->flags & S3D_OBJ_MD5_LAZY) == 0) {
        return;
    }
    struct s3d_body *b = s3d_obj_body(o);
    s3d_body_md5(b, o->md5);
    s3d_body_unref(b);
    o->flags = (uint16_t)(o->flags & ~S3D_OBJ_MD5_LAZY);
}

void s3d_obj_etag(const struct s3d_obj *o, char out[S3D_ETAG_MAX])
{
    static const char digits[] = "0123456789abcdef";
    char *p = out;

    *p++ = '"';
    for (size_t i = 0; i < S3D_MD5_LEN; i++) {
        *p++ = digits[o->md5[i] >> 4];
        *p++ = digits[o->md5[i] & 15];
    }
    if (o->n_parts > 0) {
        p += snprintf(p, 8, "-%u", (unsigned)o->n_parts);
    }
    *p++ = '"';
    *p = '\0';
}

static struct xf_str bare(struct xf_str tag)
{
    tag = xf_str_trim(tag);
    if (xf_str_starts(tag, XF_STR_LIT("W/"))) {
        tag = xf_str_sub(tag, 2, tag.len);
    }
    if (tag.len >= 2 && tag.ptr[0] == '"' && tag.ptr[tag.len - 1] == '"') {
        tag = xf_str_sub(tag, 1, tag.len - 1);
    }
    return tag;
}

bool s3d_etag_matches(const struct s3d_obj *o, struct xf_str header)
{
    char etag[S3D_ETAG_MAX];
    struct xf_str part;

    s3d_obj_etag(o, etag);
    struct xf_str mine = bare(xf_str_c(etag));
    while (xf_str_cut(&header, ',', &part)) {
        struct xf_str want = bare(part);
        if (xf_str_eq_c(want, "*") || xf_str_eq_nocase(want, mine)) {
            return true;
        }
    }
    return false;
}
