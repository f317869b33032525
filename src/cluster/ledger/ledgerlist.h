/* ledgerlist.h - lists of numbers 0 .. n-1, each in at most one list of its kind; all in O(1).
 *
 *     tn_links *links = one for each number, shared by all lists of a kind
 *     tn_list_add(&list, links, i);  for (i = list.first; i != TN_NOBODY; i = links[i].next) ..
 */
#ifndef TN_CLUSTER_LEDGERLIST_H
#define TN_CLUSTER_LEDGERLIST_H

#include "base/core/error.h"

#include <stdint.h>

#define TN_NOBODY UINT32_MAX

typedef struct tn_links {
    uint32_t before, next;
} tn_links;

typedef struct tn_list {
    uint32_t first, last, n;
} tn_list;

static inline void tn_list_init(tn_list *list)
{
    *list = (tn_list){.first = TN_NOBODY, .last = TN_NOBODY};
}

/* Puts i behind `before`; TN_NOBODY: at the front. */
static inline void tn_list_put(tn_list *list, tn_links *links, uint32_t before, uint32_t i)
{
    uint32_t next = before == TN_NOBODY ? list->first : links[before].next;
    links[i] = (tn_links){.before = before, .next = next};
    if (before == TN_NOBODY) {
        list->first = i;
    } else {
        links[before].next = i;
    }
    if (next == TN_NOBODY) {
        list->last = i;
    } else {
        links[next].before = i;
    }
    list->n++;
}

static inline void tn_list_add(tn_list *list, tn_links *links, uint32_t i)
{
    tn_list_put(list, links, list->last, i);
}

/* i must be in this list. */
static inline void tn_list_remove(tn_list *list, tn_links *links, uint32_t i)
{
    TN_ASSERT(list->n > 0);
    const tn_links at = links[i];
    if (at.before == TN_NOBODY) {
        list->first = at.next;
    } else {
        links[at.before].next = at.next;
    }
    if (at.next == TN_NOBODY) {
        list->last = at.before;
    } else {
        links[at.next].before = at.before;
    }
    list->n--;
}

#endif
