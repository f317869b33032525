/* dictnotes.h - what the writer of a dictionary remembers of each row: 12 bytes, in the order of
 * the rows; between the files of the writer only.
 *
 *     list    key key key ..  | group group ..  | set set ..      a list: 4 k rows, later ones more
 *     list    ..
 *
 * A set is known by when it was met first (tn_dict_set.met).
 */
#ifndef TN_IO_DICTNOTES_H
#define TN_IO_DICTNOTES_H

#include "base/error.h"
#include "base/range.h"

#include <stddef.h>
#include <stdint.h>

typedef struct tn_dict_list {
    uint32_t n, most;
    uint64_t *key;
    uint16_t *group, *set;
    struct tn_dict_list *next;
} tn_dict_list;

typedef struct tn_dict_notes {
    tn_dict_list *first, *last; /* NULL: no row yet */
} tn_dict_notes;

void tn_dict_notes_done(tn_dict_notes *n);

/* Makes room behind a full list. */
tn_status tn_dict_notes_grow(tn_dict_notes *n, tn_error *err) TN_MUST_USE;

static inline tn_status tn_dict_note(tn_dict_notes *n, uint64_t key, uint16_t group, uint16_t set,
                                     tn_error *err)
{
    if (n->last == NULL || n->last->n == n->last->most) {
        TN_TRY(tn_dict_notes_grow(n, err));
    }
    tn_dict_list *l = n->last;
    l->key[l->n] = key;
    l->group[l->n] = group;
    l->set[l->n++] = set;
    return TN_OK;
}

/* Those of some rows of a list that go to a table, where table_of says it of each set. `out` has
 * room for all of them; returns how many. */
uint32_t tn_dict_keys_of(const tn_dict_list *l, tn_range rows, const uint32_t *table_of,
                         uint32_t table, uint64_t *out);
uint32_t tn_dict_groups_of(const tn_dict_list *l, tn_range rows, const uint32_t *table_of,
                           uint32_t table, uint16_t *out);

#endif
