/* part_sums.h - what the store keeps beside a part's etag: its size and digests, as bytes. */
#ifndef XF_COORDINATOR_PART_SUMS_H
#define XF_COORDINATOR_PART_SUMS_H

#include "coordinator/store.h"
#include "proto/msg.h"

/** The bytes, in the operation's memory. */
struct xf_str xf_part_sums_pack(struct xf_store_op *op, const struct xf_msg_part *p);
/** Back into a part; views into the bytes. */
void xf_part_sums_unpack(struct xf_str sums, struct xf_msg_part *p);

#endif
