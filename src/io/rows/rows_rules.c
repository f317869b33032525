/* rows_rules.c - rules that need all values of a slot: duplicates, max_len, absent, in this order.
 */
#include "base/core/alloc.h"
#include "base/math/key.h"
#include "io/rows/rows.h"
#include "io/rows/rows_parsing.h"
#include "io/schema/dataopts.h"

#include <math.h>
#include <string.h>

/* Stands for the slot of an entry that leaves. */
#define GONE UINT32_MAX

/* A sum of duplicates stays where the first one stood. */
static tn_fault merge(tn_rows *rows, uint32_t first, uint32_t again)
{
    const tn_slot_spec *spec = rows->schema->slot[rows->entry[again].slot];
    if (spec->duplicates == TN_DUPLICATES_ERROR) {
        return TN_FAULT_DUPLICATE;
    }
    float *sum = &rows->entry[first].value;
    *sum += rows->entry[again].value;
    rows->entry[again].slot = GONE;
    return isfinite(*sum) ? TN_FAULT_NONE : TN_FAULT_SUM;
}

/* The table holds places of entries, counted from 1; it is as wide as the row needs. */
static tn_fault find_duplicates(tn_rows *rows, const tn_slot_spec **at)
{
    struct rows_private *p = rows->private;
    uint32_t first = rows->row[rows->n].first;
    uint32_t power = 16;
    while (power < 2 * (rows->n_entries - first)) {
        power *= 2;
    }
    void *table = p->table;
    bool grown = tn_rows_grow(&table, 0, power, sizeof *p->table, &p->table_max);
    p->table = table;
    if (!grown) {
        return TN_FAULT_MEMORY;
    }
    memset(p->table, 0, power * sizeof *p->table);
    for (uint32_t i = first; i < rows->n_entries; i++) {
        const tn_entry *e = &rows->entry[i];
        *at = rows->schema->slot[e->slot];
        if ((*at)->duplicates == TN_DUPLICATES_KEEP) {
            continue;
        }
        uint32_t place = (uint32_t)(e->key + (uint64_t)e->slot * TN_CACHE_LINE) & (power - 1);
        while (p->table[place] != 0) {
            const tn_entry *other = &rows->entry[p->table[place] - 1];
            if (other->key == e->key && other->slot == e->slot) {
                break;
            }
            place = (place + 1) & (power - 1);
        }
        if (p->table[place] == 0) {
            p->table[place] = i + 1;
            continue;
        }
        tn_fault fault = merge(rows, p->table[place] - 1, i);
        if (fault != TN_FAULT_NONE) {
            return fault;
        }
    }
    return TN_FAULT_NONE;
}

static void count_values(tn_rows *rows)
{
    struct rows_private *p = rows->private;
    const tn_schema *s = rows->schema;
    memset(p->count, 0, s->n_slots * sizeof *p->count);
    for (uint32_t i = rows->row[rows->n].first; i < rows->n_entries; i++) {
        if (rows->entry[i].slot != GONE) {
            p->count[rows->entry[i].slot]++;
        }
    }
    for (uint32_t k = 0; k < s->n_slots; k++) { /* how many leave at the front */
        uint32_t max = s->slot[k]->max_len;
        bool cut = max > 0 && s->slot[k]->keep_last && p->count[k] > max;
        p->skip[k] = cut ? p->count[k] - max : 0;
    }
}

/* Closes the gaps, in place. */
static void keep_values(tn_rows *rows)
{
    struct rows_private *p = rows->private;
    uint32_t to = rows->row[rows->n].first;
    uint32_t end = rows->n_entries;
    for (uint32_t k = 0; k < rows->schema->n_slots; k++) {
        p->count[k] = 0;
    }
    for (uint32_t i = to; i < end; i++) {
        uint32_t slot = rows->entry[i].slot;
        if (slot == GONE) {
            continue;
        }
        const tn_slot_spec *spec = rows->schema->slot[slot];
        if (p->skip[slot] > 0) {
            p->skip[slot]--;
            continue;
        }
        if (spec->max_len > 0 && p->count[slot] == spec->max_len) {
            continue;
        }
        p->count[slot]++;
        rows->entry[to] = rows->entry[i];
        if (rows->token != NULL) {
            rows->token[to] = rows->token[i];
        }
        to++;
    }
    rows->n_entries = to;
}

/* Room for one key per slot was reserved behind the tokens. */
static void fill_absent(tn_rows *rows)
{
    const tn_schema *s = rows->schema;
    uint64_t nothing = tn_xxh64("", 0, 0);
    for (uint32_t k = 0; k < s->n_slots; k++) {
        if (!s->slot[k]->absent_key || rows->private->count[k] > 0) {
            continue;
        }
        if (rows->token != NULL) {
            rows->token[rows->n_entries] = (tn_token){0, TN_TOKEN_NONE};
        }
        rows->entry[rows->n_entries++] = (tn_entry){tn_key_of(nothing, s->slot[k]->salt), k, 1.0F};
    }
}

tn_fault tn_rows_apply_rules(tn_rows *rows, const tn_slot_spec **spec)
{
    tn_fault fault = find_duplicates(rows, spec);
    if (fault != TN_FAULT_NONE) {
        return fault;
    }
    count_values(rows);
    keep_values(rows);
    fill_absent(rows);
    return TN_FAULT_NONE;
}
