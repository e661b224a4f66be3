/*
 * list.h - intrusive doubly linked list with a head node.
 *
 * A node that is in no list points to itself or is all zero; removing it again is harmless.
 */
#ifndef XF_BASE_LIST_H
#define XF_BASE_LIST_H

#include "common/base/mem.h"

struct xf_list {
    struct xf_list *next;
    struct xf_list *prev;
};

static inline void xf_list_init(struct xf_list *l)
{
    l->next = l;
    l->prev = l;
}
static inline bool xf_list_is_empty(const struct xf_list *l)
{
    return l->next == l || l->next == NULL;
}
static inline bool xf_list_is_linked(const struct xf_list *node)
{
    return node->next != NULL && node->next != node;
}
static inline void xf_list_insert(struct xf_list *before, struct xf_list *node)
{
    node->prev = before->prev;
    node->next = before;
    before->prev->next = node;
    before->prev = node;
}
static inline void xf_list_push_back(struct xf_list *l, struct xf_list *node)
{
    xf_list_insert(l, node);
}
static inline void xf_list_push_front(struct xf_list *l, struct xf_list *node)
{
    xf_list_insert(l->next, node);
}
static inline void xf_list_remove(struct xf_list *node)
{
    if (node->next != NULL) {
        node->prev->next = node->next;
        node->next->prev = node->prev;
    }
    node->next = node;
    node->prev = node;
}
/** First node taken off, NULL when empty. */
static inline struct xf_list *xf_list_pop_front(struct xf_list *l)
{
    struct xf_list *n = l->next;

    if (n == l || n == NULL) {
        return NULL;
    }
    xf_list_remove(n);
    return n;
}
/* The node may be removed inside the loop. */
/* NOLINTBEGIN(bugprone-macro-parentheses): `node` is declared here */
#define XF_LIST_FOREACH(node, list)                                                   \
    for (struct xf_list *node = (list)->next, *xf_next_ = node->next; node != (list); \
         node = xf_next_, xf_next_ = node->next)
/* NOLINTEND(bugprone-macro-parentheses): as above */

#endif
