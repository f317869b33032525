/* rows_cross.c - slots whose keys are pairs (or more) of the keys of other slots.
 *
 *     entries of the row      a: a1       b: b1 b2
 *     cross: [a, b]           the keys of (a1, b1) and (a1, b2), x_j the product of theirs
 *
 * The sign of a combination is the XXH64 of the keys of its parts, eight bytes each, in the order
 * of the list, so it depends on the share groups of the parts and on nothing else. A slot without a
 * value leaves the cross without one.
 */
#include "base/core/alloc.h"
#include "io/rows/rows_parsing.h"

#include <math.h>
#include <string.h>

/* Entries of the parts, one part after the other. */
typedef struct parts {
    const tn_entry *entry; /* scratch of the rows */
    uint32_t n[TN_CROSS_PARTS_MAX];
    uint32_t at[TN_CROSS_PARTS_MAX];
    uint64_t combinations;
    bool own; /* some part is of this row, not of the one that all share */
} parts;

/* Returns whether all rows have the values of this slot in common. */
static bool is_common(const tn_rows *rows, uint32_t slot)
{
    return rows->common != NULL && rows->common_slot[slot];
}

/* Appends the entries of a slot to the scratch. False: no memory. */
static bool gather_part(tn_rows *rows, uint32_t slot, uint32_t *used)
{
    struct rows_private *p = rows->private;
    const tn_rows *from = is_common(rows, slot) ? rows->common : rows;
    const uint32_t first = from == rows ? rows->row[rows->n].first : from->row[0].first;
    const uint32_t end = from == rows ? rows->n_entries : tn_rows_end_of(from, 0);
    for (uint32_t i = first; i < end; i++) {
        if (from->entry[i].slot != slot) {
            continue;
        }
        if (!tn_rows_grow(&p->part, *used, 1, sizeof *p->part, &p->parts_max)) {
            return false;
        }
        p->part[(*used)++] = from->entry[i];
    }
    return true;
}

/* False: no memory. */
static bool gather_parts(tn_rows *rows, const tn_slot_spec *cross, parts *out)
{
    uint32_t used = 0;
    *out = (parts){.combinations = 1};
    for (uint32_t k = 0; k < cross->n_parts; k++) {
        out->at[k] = used;
        if (!gather_part(rows, cross->part[k], &used)) {
            return false;
        }
        out->n[k] = used - out->at[k];
        out->combinations *= out->n[k];
        out->combinations =
            out->combinations > TN_VALUES_MAX ? TN_VALUES_MAX + UINT64_C(1) : out->combinations;
        out->own = out->own || !is_common(rows, cross->part[k]);
    }
    out->entry = rows->private->part;
    return true;
}

/* Returns the entry of one combination, of which the last part changes first. */
static tn_entry combined(const parts *p, const tn_slot_spec *cross, uint64_t number)
{
    uint64_t key[TN_CROSS_PARTS_MAX];
    float value = 1;
    for (uint32_t k = cross->n_parts; k-- > 0; number /= p->n[k]) {
        const tn_entry *e = &p->entry[p->at[k] + number % p->n[k]];
        key[k] = e->key;
        value *= e->value;
    }
    const uint64_t sign = tn_xxh64(key, cross->n_parts * sizeof key[0], 0);
    return (tn_entry){tn_key_of(sign, cross->salt), cross->slot, value};
}

static tn_fault put_cross(tn_rows *rows, const tn_slot_spec *cross)
{
    parts p;
    if (!gather_parts(rows, cross, &p)) {
        return TN_FAULT_MEMORY;
    }
    const uint64_t before = rows->n_entries - rows->row[rows->n].first;
    if (p.combinations + before > TN_VALUES_MAX) {
        return TN_FAULT_VALUES;
    }
    if (!p.own || p.combinations == 0) {
        return TN_FAULT_NONE; /* the row that all share has this cross itself */
    }
    if (!tn_rows_make_room(rows, (uint32_t)p.combinations)) {
        return TN_FAULT_MEMORY;
    }
    for (uint64_t i = 0; i < p.combinations; i++) {
        const tn_entry e = combined(&p, cross, i);
        if (!(fabsf(e.value) <= TN_X_MAX)) {
            return TN_FAULT_X_RANGE;
        }
        if (rows->token != NULL) {
            rows->token[rows->n_entries] = (tn_token){0, TN_TOKEN_NONE};
        }
        if (rows->real != NULL) {
            rows->real[rows->n_entries] = (double)NAN;
        }
        rows->entry[rows->n_entries++] = e;
    }
    return TN_FAULT_NONE;
}

tn_fault tn_rows_put_crosses(tn_rows *rows, const tn_slot_spec **spec)
{
    const tn_schema *s = rows->schema;
    for (uint32_t i = 0; i < s->n_crosses; i++) {
        *spec = &s->spec[s->n_specs + i];
        const tn_fault fault = put_cross(rows, *spec);
        if (fault != TN_FAULT_NONE) {
            return fault;
        }
    }
    return TN_FAULT_NONE;
}
