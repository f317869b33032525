/* batch_column.c - see batch_column.h */
#include "io/rows/batch_column.h"

#include "base/core/alloc.h"
#include "base/core/bytes.h"

#include <string.h>

enum { FIRST_CAPACITY = 256, AHEAD = 6 /* columns */ };

void tn_column_done(tn_column *c)
{
    tn_free(c->key);
    tn_free(c->value);
    tn_free(c->offset);
}

/* At least twice the room for the keys of a slot, and so much that `more` fit; false: no memory. */
static bool grow(tn_column *c, uint32_t more)
{
    uint64_t room = c->capacity == 0 ? FIRST_CAPACITY : UINT64_C(2) * c->capacity;
    uint64_t wanted = (uint64_t)c->n + more;
    room = room < wanted ? wanted : room;
    if (room > UINT32_MAX) {
        return false;
    }
    uint64_t *key = tn_try_alloc((size_t)room, sizeof *key, "a batch", NULL);
    float *value = tn_try_alloc((size_t)room, sizeof *value, "a batch", NULL);
    if (key == NULL || value == NULL) {
        tn_free(key);
        tn_free(value);
        return false;
    }
    if (c->n > 0) {
        memcpy(key, c->key, c->n * sizeof *key);
        memcpy(value, c->value, c->n * sizeof *value); /* zeros, where they are not written */
    }
    tn_free(c->key);
    tn_free(c->value);
    c->key = key;
    c->value = value;
    c->capacity = (uint32_t)room;
    return true;
}

static inline bool has_room(tn_column *c, uint32_t more)
{
    return more <= c->capacity - c->n || grow(c, more);
}

/* A value that is not 1: from here on values are kept, and those so far were 1. */
static void begin_values(tn_column *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        c->value[i] = 1;
    }
    c->odd = true;
}

/* Keys were added from `from` on, whose values are 1. */
static inline void end_keys(const tn_column *c, uint32_t from)
{
    for (uint32_t i = from; c->odd && i < c->n; i++) {
        c->value[i] = 1;
    }
}

/* Entries of one slot, as many as there are where a slot takes many; NULL: no memory. */
static inline const tn_entry *add_run(tn_column *c, const tn_entry *e, const tn_entry *end)
{
    const uint32_t slot = e->slot;
    const uint32_t one = 0x3f800000;
    do {
        uint32_t n = c->n;
        if (!has_room(c, 1)) {
            return NULL;
        }
        c->key[n] = e->key;
        if ((tn_load_u32(&e->value) ^ one) != 0 && !c->odd) {
            begin_values(c);
        }
        if (c->odd) {
            c->value[n] = e->value;
        }
        c->n = n + 1;
        e++;
    } while (e < end && e->slot == slot);
    return e;
}

bool tn_columns_add(tn_column *column, const tn_entry *entry, uint32_t n)
{
    const tn_entry *end = entry + n;
    const tn_entry *e = entry;
    while (e != NULL && e < end) {
        e = add_run(&column[e->slot], e, end);
    }
    return e != NULL;
}

bool tn_column_add_even(tn_column *c, uint32_t s, const tn_bare_row *row, uint32_t n, uint32_t *end)
{
    if (!has_room(c, n)) {
        return false;
    }
    uint32_t from = c->n;
    uint64_t *key = c->key + from;
    for (uint32_t i = 0; i < n; i++) {
        key[i] = row[i].key[s];
        end[i] = from + i + 1;
    }
    c->n = from + n;
    end_keys(c, from);
    return true;
}

/* Two slots from `s` on. Whether a row has a key here cannot be foretold, so it is copied either
 * way, and counts if there is one. */
static void add_two(tn_column *two, uint32_t s, const tn_bare_row *row, uint32_t n, uint32_t r)
{
    uint64_t *restrict first = two[0].key;
    uint64_t *restrict second = two[1].key;
    uint32_t *restrict first_end = two[0].offset + r + 1;
    uint32_t *restrict second_end = two[1].offset + r + 1;
    uint32_t a = two[0].n;
    uint32_t b = two[1].n;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t *keys = row[i].key;
        uint64_t there = keys[-1] >> s;
        first[a] = keys[s];
        second[b] = keys[s + 1];
        a += (uint32_t)there & 1;
        b += (uint32_t)(there >> 1) & 1;
        first_end[i] = a;
        second_end[i] = b;
    }
    two[0].n = a;
    two[1].n = b;
}

static void add_one(tn_column *c, uint32_t s, const tn_bare_row *row, uint32_t n, uint32_t r)
{
    uint64_t *restrict key = c->key;
    uint32_t *restrict end = c->offset + r + 1;
    uint32_t at = c->n;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t *keys = row[i].key;
        key[at] = keys[s];
        at += (uint32_t)(keys[-1] >> s) & 1;
        end[i] = at;
    }
    c->n = at;
}

/* Asks for what n rows will write: columns are many, and each of them is gone to rarely. */
static inline void prefetch(const tn_column *c, uint32_t n, uint32_t r)
{
    enum { KEYS = TN_CACHE_LINE / sizeof(uint64_t), ENDS = TN_CACHE_LINE / sizeof(uint32_t) };
    for (uint32_t i = 0; i < n && n <= c->capacity - c->n; i += KEYS) {
        __builtin_prefetch(c->key + c->n + i, 1);
    }
    for (uint32_t i = 0; i < n; i += ENDS) {
        __builtin_prefetch(c->offset + r + i, 1);
    }
}

bool tn_columns_add_grid(tn_column *column, uint32_t n_slots, const tn_bare_row *row, uint32_t n,
                         uint32_t r)
{
    for (uint32_t s = 0; s < n_slots; s += 2) {
        tn_column *two = &column[s];
        bool odd = s + 1 == n_slots;
        for (uint32_t k = s + AHEAD; k < s + AHEAD + 2 && k < n_slots; k++) {
            prefetch(&column[k], n, r);
        }
        uint32_t from[2] = {two[0].n, odd ? 0 : two[1].n};
        if (!has_room(&two[0], n) || (!odd && !has_room(&two[1], n))) {
            return false;
        }
        if (odd) {
            add_one(two, s, row, n, r);
        } else {
            add_two(two, s, row, n, r);
            end_keys(&two[1], from[1]);
        }
        end_keys(&two[0], from[0]);
    }
    return true;
}

/* Whether a row has a key of the slot cannot be foretold either. */
bool tn_column_add_any(tn_column *c, uint32_t s, tn_bare_row *rows, uint32_t n, uint32_t *end)
{
    uint32_t from = c->n;
    for (uint32_t i = 0; i < n; i++) {
        tn_bare_row *row = &rows[i];
        do {
            if (!has_room(c, 1)) {
                return false;
            }
            uint32_t taken = (row->n > 0) & (*row->slot == s);
            c->key[c->n] = *row->key;
            c->n += taken;
            row->key += taken;
            row->slot += taken;
            row->n -= taken;
        } while ((row->n > 0) & (*row->slot == s));
        end[i] = c->n;
    }
    end_keys(c, from);
    return true;
}

bool tn_column_add_all(tn_column *c, const tn_bare_row *row, uint32_t n, uint32_t *end)
{
    uint32_t from = c->n;
    for (uint32_t i = 0; i < n; i++) {
        if (!has_room(c, row[i].n)) {
            return false;
        }
        if (row[i].n > 0) {
            memcpy(c->key + c->n, row[i].key, row[i].n * sizeof *row[i].key);
        }
        c->n += row[i].n;
        end[i] = c->n;
    }
    end_keys(c, from);
    return true;
}
