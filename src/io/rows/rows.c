/* rows.c - memory of a block of rows; begin and end of a row, of entries or in a grid; the rules of
 * whole slots. */
#include "io/rows/rows.h"

#include "base/core/alloc.h"
#include "io/rows/list_lengths.h"
#include "io/rows/rows_parsing.h"
#include "io/schema/dataopts.h"

#include <math.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

const tn_bare *tn_rows_bare(const tn_rows *rows)
{
    const tn_bare *bare = &rows->private->bare.now;
    return bare->key != NULL ? bare : NULL;
}

bool tn_rows_grow(void *at, uint32_t used, uint32_t need, size_t size, uint32_t *capacity)
{
    uint64_t wanted = (uint64_t)used + need;
    if (wanted <= *capacity) {
        return true;
    }
    uint64_t room = *capacity < FIRST_CAPACITY ? FIRST_CAPACITY : (uint64_t)*capacity * 2;
    room = room < wanted ? wanted : room;
    if (room > TN_ROWS_ITEMS_MAX + (uint64_t)TN_VALUES_MAX) {
        return false;
    }
    void *more = tn_try_alloc((size_t)room, size, "parsed rows", NULL);
    if (more == NULL) {
        return false;
    }
    void *old;
    memcpy(&old, at, sizeof old);
    if (used > 0) {
        memcpy(more, old, used * size);
    }
    tn_free(old);
    memcpy(at, &more, sizeof more);
    *capacity = (uint32_t)room;
    return true;
}

bool tn_rows_make_room(tn_rows *rows, uint32_t need)
{
    struct rows_private *p = rows->private;
    const tn_schema *s = rows->schema;
    uint32_t capacity = p->entries_max;
    if ((p->keep & TN_ROWS_SIGNS) != 0 &&
        !tn_rows_grow(&rows->token, rows->n_entries, need + s->n_slots, sizeof *rows->token,
                      &capacity)) {
        return false;
    }
    if ((p->keep & TN_ROWS_REALS) != 0 &&
        !tn_rows_grow(&rows->real, rows->n_entries, need + s->n_slots, sizeof *rows->real,
                      &p->reals_max)) {
        return false;
    }
    bool grown = tn_rows_grow(&rows->entry, rows->n_entries, need + s->n_slots, sizeof *rows->entry,
                              &p->entries_max);
    p->entries_end = grown ? rows->n_entries + need : p->entries_end;
    return grown;
}

/* Words of a row. */
static uint32_t grid_stride(const tn_rows *rows)
{
    uint32_t n = rows->schema->n_slots;
    return rows->private->bare.wide ? 1 + n : 2 + (n + 1) / 2;
}

uint64_t tn_rows_grid_key(const tn_rows *rows, uint32_t i, uint32_t slot)
{
    const tn_bare *bare = &rows->private->bare.now;
    const uint64_t *row = bare->key + (size_t)i * bare->stride;
    return bare->signs ? tn_key_of(tn_bare_sign(row, slot), rows->schema->slot[slot]->salt)
                       : row[1 + slot];
}

/* From here on grids are of keys, as is the one there is. False: no memory. */
static bool widen(tn_rows *rows)
{
    struct rows_bare *b = &rows->private->bare;
    const uint32_t n_slots = rows->schema->n_slots;
    const uint32_t max = b->grid_max;
    uint64_t *wide = tn_try_alloc(max, (1 + n_slots) * sizeof *wide, "parsed rows", NULL);
    if (wide == NULL) {
        return false;
    }
    for (uint32_t r = 0; r < rows->n; r++) {
        uint64_t *to = wide + (size_t)r * (1 + n_slots);
        to[0] = b->grid[(size_t)r * b->now.stride];
        for (uint64_t there = to[0]; there != 0; there &= there - 1) {
            uint32_t slot = (uint32_t)__builtin_ctzll(there);
            to[1 + slot] = tn_rows_grid_key(rows, r, slot);
        }
    }
    tn_free(b->grid);
    b->grid = wide;
    b->wide = true;
    b->now = (tn_bare){.key = wide, .stride = 1 + n_slots};
    return true;
}

/* Signs from their specs to their slots, in lane `low`; bits of the slots. */
static uint64_t sort_signs(const tn_rows *rows, uint64_t there)
{
    const tn_token_vectors *l = &rows->private->lanes;
    const uint32_t *slot = rows->schema->columns->slot;
    uint64_t slots = 0;
    for (; there != 0; there &= there - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(there);
        if (slot[i] != TN_NOWHERE) {
            l->low[slot[i]] = l->sign[i];
            slots |= UINT64_C(1) << slot[i];
        }
    }
    return slots;
}

bool tn_rows_end_grid(tn_rows *rows, uint64_t there)
{
    const tn_schema *s = rows->schema;
    struct rows_bare *b = &rows->private->bare;
    tn_token_vectors lanes = rows->private->lanes;
    if (s->n_slots != s->n_specs) {
        there = sort_signs(rows, there);
        lanes.sign = lanes.low;
    }
    uint64_t *to = b->grid + (size_t)rows->n * b->now.stride;
    if (!b->wide && !tn_token_vectors_narrow(&lanes, s->n_slots, there, to + 1)) {
        if (!widen(rows)) {
            return false;
        }
        to = b->grid + (size_t)rows->n * b->now.stride;
    }
    if (b->wide) {
        tn_token_vectors_keys_to(&lanes, s->n_slots, s->columns->slot_salt, to + 1);
    }
    to[0] = there;
    rows->n_entries += (uint32_t)__builtin_popcountll(there);
    rows->n++;
    return true;
}

/* Makes entries of a grid. False: no memory. */
static bool leave_grid(tn_rows *rows)
{
    const tn_bare grid = rows->private->bare.now;
    uint32_t n = rows->n_entries;
    rows->n_entries = 0;
    bool grown = tn_rows_make_room(rows, n + 1);
    rows->n_entries = n;
    if (!grown) {
        return false;
    }
    tn_entry *to = rows->entry;
    for (uint32_t r = 0; r < rows->n; r++) {
        for (uint64_t there = grid.key[(size_t)r * grid.stride]; there != 0; there &= there - 1) {
            uint32_t slot = (uint32_t)__builtin_ctzll(there);
            *to++ = (tn_entry){tn_rows_grid_key(rows, r, slot), slot, 1};
        }
    }
    TN_ASSERT(to == rows->entry + n);
    rows->private->bare.now = (tn_bare){.key = NULL};
    return true;
}

/* All its keys are of slots that have one or none, and their x_j is 1. */
static bool has_grids(const tn_schema *schema)
{
    bool grids = !schema->ruled && schema->n_crosses == 0 && schema->n_slots > 0 &&
                 schema->n_specs <= TN_GRID_SLOTS;
    for (uint32_t i = 0; i < schema->n_specs; i++) {
        grids = grids && schema->spec[i].as != TN_AS_WEIGHTED && schema->spec[i].width == 0;
    }
    return grids;
}

void tn_rows_free(tn_rows *rows)
{
    if (rows == NULL) {
        return;
    }
    if (rows->private != NULL) {
        tn_free(rows->private->bare.grid);
        tn_free(rows->private->seen);
        tn_free(rows->private->filled);
        tn_free(rows->private->count);
        tn_free(rows->private->skip);
        tn_free(rows->private->most);
        tn_free(rows->private->part);
        tn_free(rows->private->table);
        tn_free(rows->private->span);
        tn_free(rows->private->cell);
        tn_free(rows->private->shape);
        tn_free(rows->private->place);
        tn_token_vectors_done(&rows->private->lanes);
        tn_text_done(&rows->private->scratch);
        tn_free(rows->private);
    }
    tn_free(rows->row);
    tn_free(rows->entry);
    tn_free(rows->numeric);
    tn_free(rows->text);
    tn_free(rows->token);
    tn_free(rows->numeric_token);
    tn_free(rows->real);
    tn_free(rows);
}

tn_status tn_rows_new(tn_rows **out, const tn_schema *schema, uint32_t keep, tn_error *err)
{
    *out = NULL;
    tn_rows *rows = NULL;
    TN_TRY(TN_ALLOC(rows, 1, "a block of rows", err));
    struct rows_private *p = tn_try_alloc(1, sizeof *p, "a block of rows", err);
    rows->private = p;
    if (p == NULL) {
        goto fail;
    }
    rows->schema = schema;
    p->keep = keep;
    p->bare.grids = (keep & TN_ROWS_BARE) != 0 && has_grids(schema);
    p->marks = tn_delimiter_masks_find();
    if (TN_ALLOC(p->seen, schema->n_specs, "a block of rows", err) != TN_OK ||
        TN_ALLOC(p->filled, schema->n_specs, "a block of rows", err) != TN_OK ||
        TN_ALLOC(p->count, (size_t)schema->n_slots + 1, "a block of rows", err) != TN_OK ||
        TN_ALLOC(p->skip, (size_t)schema->n_slots + 1, "a block of rows", err) != TN_OK ||
        TN_ALLOC(p->most, (size_t)schema->n_slots + 1, "a block of rows", err) != TN_OK) {
        goto fail;
    }
    *out = rows;
    return TN_OK;
fail:
    tn_rows_free(rows);
    return TN_E_MEMORY;
}

const float *tn_rows_aside(const tn_rows *rows, uint32_t i)
{
    const tn_schema *s = rows->schema;
    return rows->numeric == NULL ? NULL
                                 : rows->numeric + (size_t)i * tn_schema_numbers(s) + s->n_numeric;
}

void tn_rows_clear(tn_rows *rows)
{
    rows->n = 0;
    rows->n_entries = 0;
    rows->text_size = 0;
    rows->duplicate_key = 0;
    rows->private->bare.now = (tn_bare){.key = NULL};
}

/* The values that a record can hold: none takes less than a byte, but several slots may read the
 * same one. */
static uint32_t values_of(const tn_rows *rows, size_t record_bytes)
{
    uint64_t values = ((uint64_t)record_bytes + 1) * rows->schema->columns->readers_max;
    return values < TN_VALUES_MAX ? (uint32_t)values : (uint32_t)TN_VALUES_MAX;
}

tn_status tn_rows_more(tn_rows *rows, tn_error *err)
{
    enum { VALUES_AT_ONCE = 256 };
    struct rows_private *p = rows->private;
    if (rows->n_entries < p->entries_end) {
        return TN_OK;
    }
    if (rows->n_entries - rows->row[rows->n].first >= TN_VALUES_MAX) {
        return tn_fail(err, TN_E_LIMIT, "more than %d values in a row", TN_VALUES_MAX);
    }
    if (rows->n_entries >= TN_ROWS_ITEMS_MAX) {
        return tn_fail(err, TN_E_LIMIT, "more than %u values in one block", TN_ROWS_ITEMS_MAX);
    }
    return tn_rows_make_room(rows, VALUES_AT_ONCE)
               ? TN_OK
               : tn_fail(err, TN_E_MEMORY, "no memory for the values of a row");
}

static bool reserve_numbers(tn_rows *rows)
{
    struct rows_private *p = rows->private;
    uint32_t n = tn_schema_numbers(rows->schema);
    if (n == 0) {
        return true;
    }
    uint32_t capacity = p->numeric_max;
    if ((p->keep & TN_ROWS_SIGNS) != 0 &&
        !tn_rows_grow(&rows->numeric_token, rows->n, 1, n * sizeof(tn_token), &capacity)) {
        return false;
    }
    if (!tn_rows_grow(&rows->numeric, rows->n, 1, n * sizeof(float), &p->numeric_max)) {
        return false;
    }
    for (uint32_t i = 0, k = 0; i < n; k++) {
        const tn_slot_spec *spec = rows->schema->numeric[k];
        for (const uint32_t end = i + tn_spec_cols(spec); i < end; i++) {
            rows->numeric[(size_t)rows->n * n + i] = spec->absent;
            if (rows->numeric_token != NULL) {
                rows->numeric_token[(size_t)rows->n * n + i] = (tn_token){0, TN_TOKEN_NONE};
            }
        }
    }
    return true;
}

static tn_status make_room(tn_rows *rows, uint32_t values, tn_error *err)
{
    if (rows->n >= TN_ROWS_ITEMS_MAX || rows->n_entries >= TN_ROWS_ITEMS_MAX) {
        return tn_fail(err, TN_E_LIMIT, "more than %u rows or values in one block",
                       TN_ROWS_ITEMS_MAX);
    }
    if (!tn_rows_grow(&rows->row, rows->n, 1, sizeof *rows->row, &rows->private->rows_max) ||
        !tn_rows_make_room(rows, values) || !reserve_numbers(rows)) {
        return tn_fail(err, TN_E_MEMORY, "no memory for parsed rows");
    }
    return TN_OK;
}

static void open_row(tn_rows *rows)
{
    struct rows_private *p = rows->private;
    rows->row[rows->n] = (tn_parsed_row){.label = NAN,
                                         .weight = 1,
                                         .first = rows->n_entries,
                                         .id = {rows->text_size, 0},
                                         .group = TN_NO_GROUP};
    p->text_first = rows->text_size;
    if (++p->serial == 0) { /* once in four billion rows */
        memset(p->seen, 0, rows->schema->n_specs * sizeof *p->seen);
        p->serial = 1;
    }
}

tn_status tn_rows_begin(tn_rows *rows, size_t record_bytes, tn_error *err)
{
    struct rows_private *p = rows->private;
    uint32_t values = values_of(rows, record_bytes);
    if (p->bare.now.stride > 0 && !leave_grid(rows)) {
        return tn_fail(err, TN_E_MEMORY, "no memory for parsed rows");
    }
    if (rows->n < p->rows_max && tn_schema_numbers(rows->schema) == 0 &&
        (uint64_t)rows->n_entries + values + rows->schema->n_slots <= p->entries_max) {
        p->entries_end = rows->n_entries + values;
    } else {
        TN_TRY(make_room(rows, values, err));
    }
    open_row(rows);
    return TN_OK;
}

bool tn_rows_begin_grid(tn_rows *rows)
{
    struct rows_private *p = rows->private;
    struct rows_bare *b = &p->bare;
    uint32_t stride = grid_stride(rows);
    if (!b->grids || (b->now.stride == 0 && rows->n > 0) || rows->n >= TN_ROWS_ITEMS_MAX) {
        return false;
    }
    if (rows->n >= b->grid_max || rows->n >= p->rows_max || tn_schema_numbers(rows->schema) > 0 ||
        p->entries_max == 0) {
        /* one entry is what tn_rows_token makes of a value that is unusual */
        if (!tn_rows_grow(&rows->row, rows->n, 1, sizeof *rows->row, &p->rows_max) ||
            !tn_rows_grow(&b->grid, rows->n, 1, stride * sizeof *b->grid, &b->grid_max) ||
            !reserve_numbers(rows) || (p->entries_max == 0 && !tn_rows_make_room(rows, 1))) {
            return false;
        }
    }
    b->now = (tn_bare){.key = b->grid, .stride = stride, .signs = !b->wide};
    open_row(rows);
    return true;
}

void tn_rows_expect(tn_rows *rows, uint32_t n)
{
    struct rows_private *p = rows->private;
    const size_t stride = grid_stride(rows);
    uint32_t more = n / 8; /* the next block may have some more */
    bool grown =
        n <= p->rows_max || tn_rows_grow(&rows->row, 0, n + more, sizeof *rows->row, &p->rows_max);
    if (grown && p->bare.grids && n > p->bare.grid_max) {
        (void)tn_rows_grow(&p->bare.grid, 0, n + more, stride * sizeof(uint64_t),
                           &p->bare.grid_max);
    }
}

void tn_rows_rollback(tn_rows *rows)
{
    rows->n_entries = rows->row[rows->n].first;
    rows->text_size = rows->private->text_first;
}

/* ---- rules that need all values of a slot: duplicates, max_len, absent, in this order ---- */

/* The slot of an entry that leaves. */
#define GONE UINT32_MAX

/* Adds a duplicate to the first one, which keeps its place. */
static tn_fault merge(tn_rows *rows, uint32_t first, uint32_t again)
{
    const tn_slot_spec *spec = rows->schema->slot[rows->entry[again].slot];
    if (spec->duplicates == TN_DUPLICATES_ERROR) {
        return TN_FAULT_DUPLICATE;
    }
    float *sum = &rows->entry[first].value;
    *sum += rows->entry[again].value;
    rows->entry[again].slot = GONE;
    return fabsf(*sum) <= TN_X_MAX ? TN_FAULT_NONE : TN_FAULT_SUM;
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
    if (!tn_rows_grow(&p->table, 0, power, sizeof *p->table, &p->table_max)) {
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

static tn_fault count_values(tn_rows *rows, const tn_slot_spec **at)
{
    struct rows_private *p = rows->private;
    const tn_schema *s = rows->schema;
    memset(p->count, 0, s->n_slots * sizeof *p->count);
    for (uint32_t i = rows->row[rows->n].first; i < rows->n_entries; i++) {
        if (rows->entry[i].slot != GONE) {
            p->count[rows->entry[i].slot]++;
        }
    }
    for (uint32_t k = 0; k < s->n_slots; k++) {
        const uint32_t max = s->slot[k]->max_len;
        p->most[k] = max > 0 && p->count[k] > max ? max : p->count[k];
    }
    if (!tn_list_lengths_cut(s, p->count, p->most, p->uneven)) {
        *at = p->uneven[0];
        return TN_FAULT_UNEVEN;
    }
    for (uint32_t k = 0; k < s->n_slots; k++) {
        p->skip[k] = s->slot[k]->keep_last ? p->count[k] - p->most[k] : 0;
    }
    return TN_FAULT_NONE;
}

/* Closes the gaps, in place. */
static void keep_values(tn_rows *rows)
{
    struct rows_private *p = rows->private;
    uint32_t to = rows->row[rows->n].first;
    uint32_t end = rows->n_entries;
    memset(p->count, 0, rows->schema->n_slots * sizeof *p->count);
    for (uint32_t i = to; i < end; i++) {
        uint32_t slot = rows->entry[i].slot;
        if (slot == GONE) {
            continue;
        }
        if (p->skip[slot] > 0) {
            p->skip[slot]--;
            continue;
        }
        if (p->count[slot] == p->most[slot]) {
            continue;
        }
        p->count[slot]++;
        rows->entry[to] = rows->entry[i];
        if (rows->token != NULL) {
            rows->token[to] = rows->token[i];
        }
        if (rows->real != NULL) {
            rows->real[to] = rows->real[i];
        }
        to++;
    }
    rows->n_entries = to;
}

/* Adds absent keys, for which room was reserved after the tokens. */
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
        if (rows->real != NULL) {
            rows->real[rows->n_entries] = (double)NAN;
        }
        rows->entry[rows->n_entries++] = (tn_entry){tn_key_of(nothing, s->slot[k]->salt), k, 1.0F};
    }
}

/* Whether each vector that the row gives is as long as its slot says. */
static tn_fault check_vectors(const tn_rows *rows, const tn_slot_spec **at)
{
    const struct rows_private *p = rows->private;
    for (uint32_t i = 0; i < rows->schema->n_numbers; i++) {
        const tn_slot_spec *spec = rows->schema->numeric[i];
        const size_t k = (size_t)(spec - rows->schema->spec);
        if (spec->width > 0 && p->seen[k] == p->serial && p->filled[k] != spec->width) {
            *at = spec;
            return TN_FAULT_WIDTH;
        }
    }
    return TN_FAULT_NONE;
}

tn_fault tn_rows_end(tn_rows *rows, const tn_slot_spec **spec)
{
    if (rows->schema->vectors) {
        const tn_fault fault = check_vectors(rows, spec);
        if (fault != TN_FAULT_NONE) {
            return fault;
        }
    }
    if (rows->schema->ruled) {
        tn_fault fault = find_duplicates(rows, spec);
        fault = fault == TN_FAULT_NONE ? count_values(rows, spec) : fault;
        if (fault != TN_FAULT_NONE) {
            return fault;
        }
        keep_values(rows);
        fill_absent(rows);
    }
    tn_fault fault = TN_FAULT_NONE;
    if (rows->schema->n_crosses > 0) {
        fault = tn_rows_put_crosses(rows, spec);
    }
    rows->n += fault == TN_FAULT_NONE;
    return fault;
}

void tn_rows_explain(const tn_rows *rows, const tn_slot_spec *spec, tn_fault fault, tn_text *out)
{
    const struct rows_private *p = rows->private;
    if (fault == TN_FAULT_WIDTH) {
        const uint32_t n = p->filled[spec - rows->schema->spec];
        tn_text_addf(out, "%u number%s in slot '%s', which is a vector of %u", n, n == 1 ? "" : "s",
                     spec->name, spec->width);
    } else if (fault == TN_FAULT_UNEVEN) {
        TN_ASSERT(p->uneven[0] != NULL && p->uneven[1] != NULL);
        tn_text_addf(
            out, "the lists of sequence '%s' have several lengths: %u values of '%s', %u of '%s'",
            p->uneven[0]->sequence, p->count[p->uneven[0]->slot], p->uneven[0]->name,
            p->count[p->uneven[1]->slot], p->uneven[1]->name);
    }
}

/* There is always room for an entry more than those that count: see grow_entries. */
void tn_rows_put_lanes(tn_rows *rows)
{
    const tn_token_vectors *l = &rows->private->lanes;
    const uint64_t *restrict key = l->sign;
    const uint64_t *restrict size = l->size;
    const uint32_t *restrict slot = rows->schema->columns->slot;
    tn_entry *restrict to = rows->entry + rows->n_entries;
    uint32_t n_specs = rows->schema->n_specs;
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_specs; i++) {
        to[n] = (tn_entry){key[i], slot[i], 1};
        n += size[i] != 0;
    }
    rows->n_entries += n;
}

uint16_t *tn_rows_places(tn_rows *rows, size_t line_bytes)
{
    struct rows_private *p = rows->private;
    if (!tn_rows_grow(&p->place, 0, (uint32_t)line_bytes + 1 + TN_DELIMITER_MASKS_SPARE,
                      sizeof *p->place, &p->places_max)) {
        return NULL;
    }
    p->place[0] = UINT16_MAX;
    return p->place;
}

bool tn_rows_add_text(tn_rows *rows, const char *text, size_t size, tn_token *out)
{
    if (size >= TN_ROWS_ITEMS_MAX ||
        !tn_rows_grow(&rows->text, rows->text_size, (uint32_t)size, 1, &rows->private->text_max)) {
        return false;
    }
    if (size > 0) {
        memcpy(rows->text + rows->text_size, text, size);
    }
    *out = (tn_token){rows->text_size, (uint32_t)size};
    rows->text_size += (uint32_t)size;
    return true;
}
