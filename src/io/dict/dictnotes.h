/* dictnotes.h - what the writer of a dictionary remembers of each row: 12 bytes, in the order of
 * the rows; between the files of the writer only.
 *
 *     piece 0    key key key ..  | group group ..  | set set ..         a list, in one block
 *     piece 1    key ..
 *
 * A set is known by when it was met first (tn_dict_set.met). A walk over a piece notes its rows
 * on a pad, which grows and serves piece after piece; the copy that is kept has no spare room.
 */
#ifndef TN_IO_DICTNOTES_H
#define TN_IO_DICTNOTES_H

#include "base/core/error.h"
#include "base/thread/range.h"

#include <stddef.h>
#include <stdint.h>

typedef struct tn_dict_list {
    uint32_t n, most;
    uint64_t *key; /* where the block begins; NULL: no room yet */
    uint16_t *group, *set;
} tn_dict_list;

typedef struct tn_dict_notes {
    uint32_t n;         /* pieces */
    tn_dict_list *list; /* of each */
} tn_dict_notes;

tn_status tn_dict_notes_init(tn_dict_notes *n, uint32_t pieces, tn_error *err) TN_MUST_USE;
void tn_dict_notes_done(tn_dict_notes *n);

/* Makes room on a full pad; all that is on it stays. TN_E_LIMIT: 2^31 rows. */
tn_status tn_dict_pad_grow(tn_dict_list *pad, tn_error *err) TN_MUST_USE;
void tn_dict_pad_done(tn_dict_list *pad);

static inline tn_status tn_dict_note(tn_dict_list *pad, uint64_t key, uint16_t group, uint16_t set,
                                     tn_error *err)
{
    if (pad->n == pad->most) {
        TN_TRY(tn_dict_pad_grow(pad, err));
    }
    pad->key[pad->n] = key;
    pad->group[pad->n] = group;
    pad->set[pad->n++] = set;
    return TN_OK;
}

/* A copy of what is on the pad; any thread, each piece once. */
tn_status tn_dict_notes_keep(tn_dict_notes *n, uint32_t piece, const tn_dict_list *pad,
                             tn_error *err) TN_MUST_USE;

/* Those of some rows of a list that go to a table, where table_of says it of each set. `out` has
 * room for all of them; returns how many. */
uint32_t tn_dict_keys_of(const tn_dict_list *l, tn_range rows, const uint32_t *table_of,
                         uint32_t table, uint64_t *out);
uint32_t tn_dict_groups_of(const tn_dict_list *l, tn_range rows, const uint32_t *table_of,
                           uint32_t table, uint16_t *out);
/* How many of all. */
uint32_t tn_dict_rows_of(const tn_dict_list *l, const uint32_t *table_of, uint32_t table);

#endif
