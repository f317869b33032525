/* dictnotes.c - see dictnotes.h. */
#include "io/dictnotes.h"

#include "base/alloc.h"

/* A small dictionary costs little, a large one has its lists in huge pages. */
enum { FIRST_ROWS = 1 << 12, ROWS_MAX = 1 << 18, GROWTH = 4 };

static void free_list(tn_dict_list *l)
{
    tn_free(l->key);
    tn_free(l->group);
    tn_free(l->set);
    tn_free(l);
}

void tn_dict_notes_done(tn_dict_notes *n)
{
    while (n->first != NULL) {
        tn_dict_list *next = n->first->next;
        free_list(n->first);
        n->first = next;
    }
    n->last = NULL;
}

static uint32_t next_size(const tn_dict_list *last)
{
    if (last == NULL) {
        return FIRST_ROWS;
    }
    return last->most < ROWS_MAX / GROWTH ? last->most * GROWTH : (uint32_t)ROWS_MAX;
}

tn_status tn_dict_notes_grow(tn_dict_notes *n, tn_error *err)
{
    TN_ASSERT(n->last == NULL || n->last->n == n->last->most);
    tn_dict_list *l = tn_try_alloc(1, sizeof *l, "keys of a dictionary", err);
    if (l == NULL) {
        return TN_E_MEMORY;
    }
    l->most = next_size(n->last);
    l->key = tn_try_alloc(l->most, sizeof *l->key, "keys of a dictionary", err);
    l->group = tn_try_alloc(l->most, sizeof *l->group, "keys of a dictionary", err);
    l->set = tn_try_alloc(l->most, sizeof *l->set, "keys of a dictionary", err);
    if (l->key == NULL || l->group == NULL || l->set == NULL) {
        free_list(l);
        return TN_E_MEMORY;
    }
    if (n->last == NULL) {
        n->first = l;
    } else {
        n->last->next = l;
    }
    n->last = l;
    return TN_OK;
}

/* Every row is written to `out`, the next one over it when it was not of the table: no branch that
 * could be guessed wrong. */
uint32_t tn_dict_keys_of(const tn_dict_list *l, tn_range rows, const uint32_t *table_of,
                         uint32_t table, uint64_t *out)
{
    uint32_t n = 0;
    TN_ASSERT(rows.to <= l->n);
    for (uint32_t i = rows.from; i < rows.to; i++) {
        out[n] = l->key[i];
        n += table_of[l->set[i]] == table;
    }
    return n;
}

uint32_t tn_dict_groups_of(const tn_dict_list *l, tn_range rows, const uint32_t *table_of,
                           uint32_t table, uint16_t *out)
{
    uint32_t n = 0;
    TN_ASSERT(rows.to <= l->n);
    for (uint32_t i = rows.from; i < rows.to; i++) {
        out[n] = l->group[i];
        n += table_of[l->set[i]] == table;
    }
    return n;
}
