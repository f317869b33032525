/* localize_memory.c - one block for all arrays of a localizer, as large as its largest batch. */
#include "base/core/alloc.h"
#include "io/localize/localize_private.h"

#define KEYS_MAX (UINT32_C(1) << 31)

/* The next piece of the block, on a cache line of its own; NULL while only measuring. */
static void *carve(char *block, size_t *used, size_t count, size_t size)
{
    char *at = block != NULL ? block + *used : NULL;
    *used += (count * size + TN_CACHE_LINE - 1) / TN_CACHE_LINE * TN_CACHE_LINE;
    return at;
}

/* Puts all arrays into `block` and returns its size; with NULL, only that. */
static size_t lay_out(tn_localizer *l, char *block)
{
    size_t n = l->keys_max;
    size_t more = l->opts.occurrences ? n : 0;
    size_t used = 0;
    l->table = carve(block, &used, tn_key_table_size(l->keys_max), sizeof *l->table);
    l->seen = carve(block, &used, n + 1, sizeof *l->seen);
    l->count = carve(block, &used, n + 1, sizeof *l->count);
    l->seen_group = carve(block, &used, n + 1, sizeof *l->seen_group);
    l->number_at = carve(block, &used, n, sizeof *l->number_at);
    l->counts = carve(block, &used, l->rows_max, sizeof *l->counts);
    l->key = carve(block, &used, n, sizeof *l->key);
    l->group = carve(block, &used, n, sizeof *l->group);
    l->at = carve(block, &used, n + 1, sizeof *l->at);
    l->show = carve(block, &used, n, sizeof *l->show);
    l->click = carve(block, &used, n, sizeof *l->click);
    l->index = carve(block, &used, n, sizeof *l->index);
    l->occurrence_first = carve(block, &used, n + 2, sizeof *l->occurrence_first);
    l->occurrence = carve(block, &used, more, sizeof *l->occurrence);
    l->no_offset = carve(block, &used, (size_t)l->rows_max + 1, sizeof *l->no_offset);
    return used;
}

/* Slots of one group side by side, groups in their order. */
static void sort_slots(tn_localizer *l, const tn_localizer_opts *opts)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < opts->layout->n_groups; g++) {
        l->group_from[g] = n;
        l->width[g] = tn_record_of(opts->layout, g)->width;
        for (uint32_t s = 0; s < opts->n_slots; s++) {
            if (opts->slot_group[s] == g && opts->slot_used[s]) {
                l->slot_of[n++] = s;
            }
        }
    }
    l->group_from[opts->layout->n_groups] = n;
}

/* No group has two slots. */
static bool are_apart(const tn_localizer *l)
{
    bool apart = true;
    for (uint32_t g = 0; g < l->opts.layout->n_groups; g++) {
        apart &= l->group_from[g + 1] - l->group_from[g] <= 1;
    }
    return apart;
}

tn_status tn_localizer_new(tn_localizer **out, const tn_localizer_opts *opts, tn_error *err)
{
    static const char what[] = "a localizer";
    *out = NULL;
    uint32_t n_groups = opts->layout->n_groups;
    tn_localizer *l = tn_try_alloc(1, sizeof *l, what, err);
    if (l == NULL) {
        return TN_E_MEMORY;
    }
    l->opts = *opts;
    l->opts.slot_group = NULL; /* read once, in sort_slots */
    l->opts.slot_used = NULL;
    l->slot_of = tn_try_alloc((size_t)opts->n_slots + 1, sizeof *l->slot_of, what, err);
    l->group_from = tn_try_alloc((size_t)n_groups + 1, sizeof *l->group_from, what, err);
    l->width = tn_try_alloc((size_t)n_groups + 1, sizeof *l->width, what, err);
    l->bag = tn_try_alloc((size_t)opts->n_slots + 1, sizeof *l->bag, what, err);
    l->index_at = tn_try_alloc((size_t)opts->n_slots + 1, sizeof *l->index_at, what, err);
    l->first = tn_try_alloc((size_t)opts->owners->n_partitions + 1, sizeof *l->first, what, err);
    if (l->slot_of == NULL || l->group_from == NULL || l->width == NULL || l->bag == NULL ||
        l->index_at == NULL || l->first == NULL) {
        tn_localizer_free(l);
        return TN_E_MEMORY;
    }
    sort_slots(l, opts);
    l->apart = opts->occurrences && opts->by_slot && are_apart(l);
    l->opts.occurrences = opts->occurrences && !l->apart;
    *out = l;
    return TN_OK;
}

void tn_localizer_free(tn_localizer *localizer)
{
    if (localizer != NULL) {
        tn_free(localizer->slot_of);
        tn_free(localizer->group_from);
        tn_free(localizer->width);
        tn_free(localizer->bag);
        tn_free(localizer->index_at);
        tn_free(localizer->first);
        tn_free(localizer->block);
        tn_free(localizer);
    }
}

tn_status tn_localizer_make_room(tn_localizer *l, const tn_batch *batch, tn_error *err)
{
    uint64_t keys = 0;
    for (uint32_t s = 0; s < l->opts.n_slots; s++) {
        keys += batch->slot[s].offset[batch->rows];
    }
    if (keys >= KEYS_MAX) {
        return tn_fail(err, TN_E_LIMIT, "%llu keys in a batch, more than %u",
                       (unsigned long long)keys, KEYS_MAX - 1);
    }
    if (l->block != NULL && keys <= l->keys_max && batch->rows <= l->rows_max) {
        return TN_OK;
    }
    uint64_t most = keys + keys / 8 + TN_KEY_TABLE_MIN; /* the next one may be a little larger */
    tn_free(l->block);
    l->block = NULL;
    l->keys_max = most < KEYS_MAX ? (uint32_t)most : KEYS_MAX - 1;
    l->rows_max = batch->rows > l->rows_max ? batch->rows : l->rows_max;
    l->block = tn_try_alloc(1, lay_out(l, NULL), "localized keys", err);
    if (l->block == NULL) {
        l->keys_max = 0;
        return TN_E_MEMORY;
    }
    (void)lay_out(l, l->block);
    return TN_OK;
}
