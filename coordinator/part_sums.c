/*
 * part_sums.c - a byte of flags, the size (big endian), then md5, crc32c, and what is left: the sum
 * by the upload's algorithm.
 */
#include "coordinator/part_sums.h"

enum { HAS_MD5 = 1, HAS_CRC = 2, HAS_SUM = 4, SIZE_LEN = 8 };

struct xf_str xf_part_sums_pack(struct xf_store_op *op, const struct xf_msg_part *p)
{
    char sums[1 + SIZE_LEN + XF_MD5_LEN + XF_CRC_LEN + XF_PART_SUM_MAX];
    size_t n = 1 + SIZE_LEN;

    sums[0] = 0;
    for (size_t i = 0; i < SIZE_LEN; i++) {
        sums[1 + i] = (char)(unsigned char)(p->size >> (8 * (SIZE_LEN - 1 - i)));
    }
    if (p->md5.len == XF_MD5_LEN) {
        sums[0] = (char)(sums[0] | HAS_MD5);
        memcpy(sums + n, p->md5.ptr, XF_MD5_LEN);
        n += XF_MD5_LEN;
    }
    if (p->crc32c.len == XF_CRC_LEN) {
        sums[0] = (char)(sums[0] | HAS_CRC);
        memcpy(sums + n, p->crc32c.ptr, XF_CRC_LEN);
        n += XF_CRC_LEN;
    }
    if (p->sum.len > 0) { /* the message bounds it */
        sums[0] = (char)(sums[0] | HAS_SUM);
        memcpy(sums + n, p->sum.ptr, p->sum.len);
        n += p->sum.len;
    }
    return xf_store_op_dup(op, xf_str_n(sums, n));
}

void xf_part_sums_unpack(struct xf_str sums, struct xf_msg_part *p)
{
    size_t at = 1 + SIZE_LEN;

    if (sums.len < at) {
        return; /* not ours: the agent finds the part too short */
    }
    for (size_t i = 0; i < SIZE_LEN; i++) {
        p->size = p->size << 8 | (unsigned char)sums.ptr[1 + i];
    }
    if ((sums.ptr[0] & HAS_MD5) != 0 && sums.len >= at + XF_MD5_LEN) {
        p->md5 = xf_str_sub(sums, at, at + XF_MD5_LEN);
        at += XF_MD5_LEN;
    }
    if ((sums.ptr[0] & HAS_CRC) != 0 && sums.len >= at + XF_CRC_LEN) {
        p->crc32c = xf_str_sub(sums, at, at + XF_CRC_LEN);
        at += XF_CRC_LEN;
    }
    if ((sums.ptr[0] & HAS_SUM) != 0) {
        p->sum = xf_str_sub(sums, at, sums.len);
    }
}
