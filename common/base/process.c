/* process.c - limits of the own process. */
#include "common/base/process.h"

#include <sys/resource.h>

void xf_process_no_core(void)
{
    const struct rlimit none = {0, 0};

    (void)setrlimit(RLIMIT_CORE, &none); /* lowering a limit is always allowed */
}
