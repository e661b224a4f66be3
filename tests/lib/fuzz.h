/*
 * fuzz.h - the entry point that every fuzz target defines.
 */
#ifndef XF_TESTS_LIB_FUZZ_H
#define XF_TESTS_LIB_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* The name is from libFuzzer. Returns 0; a finding is a crash. Called by libFuzzer, or by
 * fuzz_replay.c for each corpus file.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
