/* process.c - limits of the own process. */
#include "common/base/process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

void xf_process_hold_std(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            /* The lowest free one is fd; the wrong way round, so that its use is an error. */
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY); /* kept open */
        }
    }
}

void xf_process_no_core(void)
{
    const struct rlimit none = {0, 0};

    (void)setrlimit(RLIMIT_CORE, &none); /* lowering a limit is always allowed */
}
