/*
 * process.h - what a program that holds secrets asks of the kernel for itself.
 */
#ifndef XF_BASE_PROCESS_H
#define XF_BASE_PROCESS_H

/**
 * Keep descriptors 0 to 2 taken when the caller closed them: else a database or a socket gets one,
 * and what is printed goes into it. Writes to a closed one still fail. Call before anything opens.
 */
void xf_process_hold_std(void);

/** Leave no core file: credentials are in memory. Call first in main(). */
void xf_process_no_core(void);

#endif
