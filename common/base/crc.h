/*
 * crc.h - the CRCs of S3's checksums: CRC32, CRC32C and CRC64NVME.
 *
 * Bytes are folded by carry-less multiplication where the CPU has it, CRC32C's short runs go to its
 * own instruction, and tables do the rest; which of them is chosen when the process starts. CRCs
 * of pieces combine to that of the whole, so parts may be summed in any order. Threads: no state.
 */
#ifndef XF_BASE_CRC_H
#define XF_BASE_CRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum xf_crc_kind { XF_CRC32, XF_CRC32C, XF_CRC64NVME, XF_CRC_KIND_N };

/** The CRC of what `crc` stands for (0: nothing) followed by these bytes. */
uint64_t xf_crc(enum xf_crc_kind kind, uint64_t crc, const void *p, size_t len);
/** The same by tables alone, for CPUs without the instructions. */
uint64_t xf_crc_portable(enum xf_crc_kind kind, uint64_t crc, const void *p, size_t len);
/** Does xf_crc() use instructions of this CPU? */
bool xf_crc_is_hard(void);

/** The CRC of A followed by B, from the CRCs of both and the bytes of B. */
uint64_t xf_crc_combine(enum xf_crc_kind kind, uint64_t a, uint64_t b, uint64_t b_len);

/** Bytes of the digest: 4 or 8. */
size_t xf_crc_len(enum xf_crc_kind kind);

#endif
