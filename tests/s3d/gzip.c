/* gzip.c - answers that a provider compresses on the way. */
#include "tests/s3d/gzip.h"

#include <zlib.h>

enum {
    GZIP_WINDOW = 15 + 16, /* zlib's sign for a gzip header */
    PIECE = 16384
};

static void pump(z_stream *z, struct xf_buf *out, int flush)
{
    int rc;

    do {
        char *room = xf_buf_reserve(out, PIECE);
        if (room == NULL) {
            return; /* larger than any test's object: cut there */
        }
        z->next_out = (Bytef *)room;
        z->avail_out = PIECE;
        rc = deflate(z, flush);
        out->len += PIECE - z->avail_out;
    } while (rc == Z_OK && z->avail_out == 0);
}

static void put_piece(z_stream *z, struct xf_buf *out, const char *p, size_t n)
{
    memcpy(&z->next_in, &p, sizeof(p)); /* zlib does not write to it, only its type says so */
    z->avail_in = (uInt)n;
    pump(z, out, Z_NO_FLUSH);
}

void s3d_gzip_answer(struct s3d_resp *p)
{
    z_stream z = {0};
    char scratch[PIECE];
    struct xf_buf out = {0};

    if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        return; /* no memory: the answer stays as it was */
    }
    for (uint64_t at = 0; p->data != NULL && at < p->data_len;) {
        const char *q;
        size_t n = s3d_body_peek(p->data, p->data_off + at, scratch, sizeof(scratch), &q);
        n = n < p->data_len - at ? n : (size_t)(p->data_len - at);
        put_piece(&z, &out, q, n);
        at += n;
    }
    if (p->data == NULL) {
        put_piece(&z, &out, p->body.ptr == NULL ? "" : p->body.ptr, p->body.len);
    }
    pump(&z, &out, Z_FINISH);
    (void)deflateEnd(&z); /* all was taken out above */
    s3d_body_unref(p->data);
    p->data = NULL;
    xf_buf_fini(&p->body);
    p->body = out;
    xf_buf_put_c(&p->headers, "Content-Encoding: gzip\r\n");
}
