/* fsm.c - lookup by name in a state table. */
#include "common/base/fsm.h"

#include <string.h>

unsigned xf_fsm_find(const struct xf_fsm_state *table, size_t n, const char *name)
{
    for (unsigned i = 0; i < n; i++) {
        if (table[i].name != NULL && strcmp(table[i].name, name) == 0) {
            return i;
        }
    }
    return (unsigned)n;
}
