/* rows_grid.c - see rows_grid.h. */
#include "io/rows/rows_grid.h"

#include "base/core/alloc.h"
#include "io/schema/columns.h"

uint64_t tn_rows_put_grid(const tn_rows *rows, uint64_t there, uint64_t *keys)
{
    const uint64_t *sign = rows->private->lanes.sign;
    const uint32_t *slot = rows->schema->columns->slot;
    uint64_t slots = 0;
    for (; there != 0; there &= there - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(there);
        if (slot[i] != TN_NOWHERE) {
            keys[slot[i]] = sign[i];
            slots |= UINT64_C(1) << slot[i];
        }
    }
    return slots;
}

bool tn_rows_leave_grid(tn_rows *rows)
{
    const tn_bare grid = rows->private->bare.now;
    uint32_t n = rows->n_entries;
    rows->n_entries = 0;
    bool grown = tn_rows_grow_entries(rows, n + 1);
    rows->n_entries = n;
    if (!grown) {
        return false;
    }
    tn_entry *to = rows->entry;
    for (uint32_t r = 0; r < rows->n; r++) {
        const uint64_t *keys = grid.key + (size_t)r * grid.stride + 1;
        for (uint64_t there = keys[-1]; there != 0; there &= there - 1) {
            uint32_t slot = (uint32_t)__builtin_ctzll(there);
            *to++ = (tn_entry){keys[slot], slot, 1};
        }
    }
    TN_ASSERT(to == rows->entry + n);
    rows->private->bare.now = (tn_bare){.key = NULL};
    return true;
}

/* One row; its mask, or 0 where slots do not ascend or are none. */
static inline uint64_t put_row(const char *key, const char *slot, uint32_t n, uint32_t n_slots,
                               uint64_t *to)
{
    uint64_t there = 0;
    uint32_t next = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t s = tn_load_u16(slot + sizeof(uint16_t) * i);
        if (s < next || s >= n_slots) {
            return 0;
        }
        to[s] = tn_load_u64(key + sizeof(uint64_t) * i);
        there |= UINT64_C(1) << s;
        next = s + 1;
    }
    return there;
}

bool tn_rows_put_as_grid(tn_rows *rows, const char *key, const char *slot, const char *end,
                         uint32_t n_rows)
{
    struct rows_bare *b = &rows->private->bare;
    uint32_t n_slots = rows->schema->n_slots;
    uint32_t stride = n_slots + 1;
    void *grid = b->grid;
    bool good = n_slots <= TN_GRID_SLOTS &&
                tn_rows_grow(&grid, 0, n_rows + 1, stride * sizeof *b->grid, &b->grid_max);
    b->grid = grid;
    uint64_t *to = b->grid;
    for (uint32_t r = 0, from = 0; good && r < n_rows; r++, to += stride) {
        uint32_t until = tn_load_u32(end + sizeof(uint32_t) * r);
        to[0] = put_row(key + sizeof(uint64_t) * from, slot + sizeof(uint16_t) * from, until - from,
                        n_slots, to + 1);
        good = to[0] != 0 || until == from;
        from = until;
    }
    if (good && n_rows > 0) {
        b->now = (tn_bare){.key = b->grid, .stride = stride};
    }
    return good;
}
