/*
 * fsm.h - state tables: what may follow what, by name.
 */
#ifndef XF_BASE_FSM_H
#define XF_BASE_FSM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XF_TO(state) (UINT32_C(1) << (state))
enum xf_fsm_flags { XF_FSM_INITIAL = 1, XF_FSM_FINAL = 2 };

struct xf_fsm_state {
    const char *name;
    uint32_t to; /* XF_TO() of each state that may follow */
    unsigned flags;
};

/** May `from` become `to`? n is the table's length; out of range is never allowed. */
static inline bool
xf_fsm_may(const struct xf_fsm_state *table, size_t n, unsigned from, unsigned to)
{
    return from < n && to < n && (table[from].to & XF_TO(to)) != 0;
}
static inline const char *xf_fsm_name(const struct xf_fsm_state *table, size_t n, unsigned state)
{
    return state < n && table[state].name != NULL ? table[state].name : "unknown";
}
/** State with that name, or n. */
unsigned xf_fsm_find(const struct xf_fsm_state *table, size_t n, const char *name);

#endif
