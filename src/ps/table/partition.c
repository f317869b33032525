/* partition.c - see partition.h. */
#include "ps/table/partition.h"

#include "base/core/alloc.h"

void tn_shelf_init(tn_shelf *s, uint32_t stride, bool marked)
{
    *s = (tn_shelf){.marked = marked};
    tn_slab_init(&s->slab, stride);
}

void tn_shelf_clear(tn_shelf *s, tn_extents *e)
{
    tn_index_clear(&s->index, e);
    tn_slab_clear(&s->slab, e);
    tn_extents_refund(e, s->mark_words * sizeof s->mark[0]);
    tn_free(s->mark);
    s->mark = NULL;
    s->mark_words = 0;
}

tn_row *tn_shelf_find(const tn_shelf *s, uint64_t key, uint16_t group, uint32_t *number)
{
    uint32_t hash = tn_index_hash(key);
    const tn_index_block *b = tn_index_block_of(&s->index, hash);
    if (b == NULL) {
        return NULL;
    }
    uint32_t tag = tn_index_tag(hash);
    uint32_t at = hash & s->index.mask;
    for (uint32_t entry = b->entry[at]; entry != 0; entry = b->entry[at]) {
        if (entry >> TN_INDEX_NUMBER_BITS == tag) {
            *number = (entry & TN_INDEX_NUMBER) - 1;
            tn_row *row = tn_slab_at(&s->slab, *number);
            if (tn_row_is(row, key, group)) {
                return row;
            }
        }
        at = (at + 1) & s->index.mask;
    }
    return NULL;
}

/* As many marks as the slab has room for rows. */
static tn_status more_marks(tn_shelf *s, tn_extents *e, tn_error *err)
{
    const uint32_t bits = 64;
    uint32_t words = s->slab.capacity / bits + 1;
    if (!s->marked || s->mark_words >= words) {
        return TN_OK;
    }
    words *= 2;
    tn_extents_charge(e, (words - s->mark_words) * sizeof s->mark[0]);
    uint64_t *mark = tn_try_alloc(words, sizeof *mark, "marks of rows", err);
    if (mark == NULL) {
        tn_extents_refund(e, (words - s->mark_words) * sizeof s->mark[0]);
        return TN_E_MEMORY;
    }
    if (s->mark != NULL) {
        memcpy(mark, s->mark, s->mark_words * sizeof *mark);
    }
    tn_free(s->mark);
    s->mark = mark;
    s->mark_words = words;
    return TN_OK;
}

void tn_shelf_unmark(tn_shelf *s)
{
    if (s->mark != NULL) {
        memset(s->mark, 0, s->mark_words * sizeof *s->mark);
    }
}

tn_status tn_shelf_add(tn_shelf *s, tn_extents *e, uint64_t key, uint16_t group, tn_row **out,
                       tn_error *err)
{
    uint32_t hash = tn_index_hash(key);
    TN_TRY(tn_index_reserve(&s->index, &s->slab, hash, e, err));
    TN_TRY(tn_slab_reserve(&s->slab, e, err));
    TN_TRY(more_marks(s, e, err));
    tn_row *row = tn_slab_add(&s->slab);
    tn_row_set_id(row, key, group);
    tn_index_put(&s->index, hash, s->slab.n_rows - 1);
    *out = row;
    return TN_OK;
}

bool tn_shelf_remove(tn_shelf *s, uint64_t key, uint16_t group)
{
    uint32_t number = 0;
    tn_row *row = tn_shelf_find(s, key, group, &number);
    if (row == NULL) {
        return false;
    }
    uint32_t last = s->slab.n_rows - 1;
    tn_row *moved = tn_slab_at(&s->slab, last);
    tn_index_remove(&s->index, &s->slab, tn_index_hash(key), number);
    if (last != number) {
        tn_index_renumber(&s->index, tn_index_hash(tn_row_key(moved, 0)), last, number);
        memcpy(row, moved, s->slab.stride);
    }
    memset(moved, 0, s->slab.stride); /* as tn_slab_add hands rows out */
    s->slab.n_rows--;
    return true;
}
