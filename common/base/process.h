/*
 * process.h - what a program that holds secrets asks of the kernel for itself.
 */
#ifndef XF_BASE_PROCESS_H
#define XF_BASE_PROCESS_H

/** Leave no core file: credentials are in memory. Call first in main(). */
void xf_process_no_core(void);

#endif
