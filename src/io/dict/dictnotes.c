/* dictnotes.c - lists of a dictionary's rows: key, group and set of each. */
#include "io/dict/dictnotes.h"

#include "base/core/alloc.h"

#include <string.h>

enum { FIRST_ROWS = 1 << 10 };

static const size_t row_bytes = sizeof(uint64_t) + 2 * sizeof(uint16_t);

tn_status tn_dict_notes_init(tn_dict_notes *n, uint32_t pieces, tn_error *err)
{
    n->list = tn_try_alloc((size_t)pieces + 1, sizeof *n->list, "keys of a dictionary", err);
    n->n = n->list != NULL ? pieces : 0;
    return n->list != NULL ? TN_OK : TN_E_MEMORY;
}

void tn_dict_notes_done(tn_dict_notes *n)
{
    for (uint32_t i = 0; i < n->n; i++) {
        tn_free(n->list[i].key);
    }
    tn_free(n->list);
    *n = (tn_dict_notes){0};
}

/* `out` with room for `most` rows, and those of `from` in it. */
static tn_status copy(tn_dict_list *out, uint32_t most, const tn_dict_list *from, tn_error *err)
{
    uint64_t *key = tn_try_alloc(most, row_bytes, "keys of a dictionary", err);
    if (key == NULL) {
        return TN_E_MEMORY;
    }
    uint16_t *group = (uint16_t *)(void *)(key + most);
    *out =
        (tn_dict_list){.n = from->n, .most = most, .key = key, .group = group, .set = group + most};
    if (from->n > 0) {
        memcpy(out->key, from->key, from->n * sizeof *out->key);
        memcpy(out->group, from->group, from->n * sizeof *out->group);
        memcpy(out->set, from->set, from->n * sizeof *out->set);
    }
    return TN_OK;
}

tn_status tn_dict_pad_grow(tn_dict_list *pad, tn_error *err)
{
    if (pad->most > UINT32_MAX / 2) {
        return tn_fail(err, TN_E_LIMIT, "more than %u rows in a piece of a dictionary", pad->most);
    }
    tn_dict_list more;
    TN_TRY(copy(&more, pad->most == 0 ? (uint32_t)FIRST_ROWS : 2 * pad->most, pad, err));
    tn_dict_pad_done(pad);
    *pad = more;
    return TN_OK;
}

void tn_dict_pad_done(tn_dict_list *pad)
{
    tn_free(pad->key);
    *pad = (tn_dict_list){0};
}

tn_status tn_dict_notes_keep(tn_dict_notes *n, uint32_t piece, const tn_dict_list *pad,
                             tn_error *err)
{
    TN_ASSERT(piece < n->n && n->list[piece].key == NULL);
    return pad->n > 0 ? copy(&n->list[piece], pad->n, pad, err) : TN_OK;
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

uint32_t tn_dict_rows_of(const tn_dict_list *l, const uint32_t *table_of, uint32_t table)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        n += table_of[l->set[i]] == table;
    }
    return n;
}
