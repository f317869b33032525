/* columns.c - names, fields and ranges, as tables that parsers look things up in. */
#include "io/schema/columns.h"

#include "base/core/arena.h"
#include "base/math/key.h"
#include "io/schema/dataopts.h"

#include <stdlib.h>
#include <string.h>

enum { SPEC_BYTES = 192 }; /* of all tables, for a slot and its two names */

/* The tables under construction. `name` and `table` have room for every name there can be. */
typedef struct making {
    tn_columns *c;
    const char **name;
    uint32_t *name_size;
    uint32_t *table;
    uint32_t *readers; /* by name */
} making;

static uint32_t place_of(const tn_columns *c, const char *text, size_t size)
{
    uint32_t at = (uint32_t)tn_xxh64(text, size, 0) & c->mask;
    while (c->table[at] != 0) {
        uint32_t i = c->table[at] - 1;
        if (c->name_size[i] == size && memcmp(c->name[i], text, size) == 0) {
            break;
        }
        at = (at + 1) & c->mask;
    }
    return at;
}

uint32_t tn_columns_find(const tn_columns *columns, const char *text, size_t size)
{
    return columns->table[place_of(columns, text, size)] - 1; /* 0 becomes TN_NOWHERE */
}

/* The number of a name, a new one when it was not there; NULL: TN_NOWHERE. */
static uint32_t number_of(making *m, const char *name)
{
    if (name == NULL) {
        return TN_NOWHERE;
    }
    size_t size = strlen(name);
    uint32_t at = place_of(m->c, name, size);
    if (m->table[at] == 0) {
        m->name[m->c->n] = name;
        m->name_size[m->c->n] = (uint32_t)size;
        m->table[at] = ++m->c->n;
    }
    return m->table[at] - 1;
}

static void make_names(tn_columns *c, const tn_schema *s, tn_arena *arena)
{
    uint32_t names_max = 2 * s->n_specs + 4;
    uint32_t power = 8;
    while (power < 2 * names_max) {
        power *= 2;
    }
    making m = {.c = c,
                .name = TN_NEW_ARRAY(arena, const char *, names_max),
                .name_size = TN_NEW_ARRAY(arena, uint32_t, names_max),
                .table = TN_NEW_ARRAY(arena, uint32_t, power),
                .readers = TN_NEW_ARRAY(arena, uint32_t, names_max)};
    c->name = m.name;
    c->name_size = m.name_size;
    c->table = m.table;
    c->mask = power - 1;
    c->label = number_of(&m, s->label->column);
    c->weight = number_of(&m, s->data->weight);
    c->group = number_of(&m, s->data->group);
    c->record_id = number_of(&m, s->data->record_id);
    uint32_t *spec = TN_NEW_ARRAY(arena, uint32_t, s->n_specs);
    uint32_t *values = TN_NEW_ARRAY(arena, uint32_t, s->n_specs);
    c->readers_max = 1;
    for (uint32_t i = 0; i < s->n_specs; i++) {
        spec[i] = number_of(&m, s->spec[i].column);
        values[i] = number_of(&m, s->spec[i].values);
        uint32_t readers = ++m.readers[spec[i]];
        c->readers_max = readers > c->readers_max ? readers : c->readers_max;
    }
    c->spec = spec;
    c->values = values;
}

/* Copies what the innermost loops read of specs, side by side. */
static void find_runs(tn_columns *c, const tn_schema *s, tn_arena *arena)
{
    uint32_t *end = TN_NEW_ARRAY(arena, uint32_t, s->n_specs);
    uint32_t *slot = TN_NEW_ARRAY(arena, uint32_t, s->n_specs);
    uint64_t *salt = TN_NEW_ARRAY(arena, uint64_t, s->n_specs);
    for (uint32_t i = s->n_specs; i-- > 0;) {
        bool same = i + 1 < s->n_specs && s->spec[i].fast_path == s->spec[i + 1].fast_path;
        end[i] = same ? end[i + 1] : i + 1;
        slot[i] = s->spec[i].slot;
        salt[i] = s->spec[i].salt;
    }
    c->fast_path_end = end;
    c->slot = slot;
    c->salt = salt;
}

/* Finds the only reader of each name, where that is one slot; and the first word of each name. */
static void make_words(tn_columns *c, const tn_schema *s, tn_arena *arena)
{
    uint64_t *word = TN_NEW_ARRAY(arena, uint64_t, (size_t)c->n + 1);
    uint32_t *only = TN_NEW_ARRAY(arena, uint32_t, (size_t)c->n + 1);
    uint32_t *readers = TN_NEW_ARRAY(arena, uint32_t, (size_t)c->n + 1);
    const uint32_t rest[] = {c->label, c->weight, c->group, c->record_id};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) {
        if (rest[i] != TN_NOWHERE) {
            readers[rest[i]]++;
        }
    }
    for (uint32_t i = 0; i < s->n_specs; i++) {
        readers[c->spec[i]]++;
        if (c->values[i] != TN_NOWHERE) {
            readers[c->values[i]]++;
        }
    }
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t size = c->name_size[i] < sizeof *word ? c->name_size[i] : (uint32_t)sizeof *word;
        memcpy(&word[i], c->name[i], size);
        only[i] = TN_NOWHERE;
    }
    for (uint32_t i = 0; i < s->n_specs; i++) {
        if (readers[c->spec[i]] == 1 && s->spec[i].values == NULL) {
            only[c->spec[i]] = i;
        }
    }
    c->alone = true;
    for (uint32_t i = 0; i < s->n_specs; i++) {
        c->alone = c->alone && only[c->spec[i]] == i;
    }
    c->word = word;
    c->only = only;
}

static void fault_at(const tn_binder *b, const tn_slot_spec *spec, const char *text)
{
    const tn_origin at = {.source = "slots"};
    tn_diag_error(b->diag, &at, "slot '%s' %s", spec->name, text);
}

/* Several slots may have no field at all (other formats); none may share one. */
static void make_fields(tn_columns *c, const tn_schema *s, const tn_binder *b)
{
    uint32_t *of = TN_NEW_ARRAY(b->arena, uint32_t, (size_t)c->n_fields + 1);
    memset(of, 0xff, ((size_t)c->n_fields + 1) * sizeof *of);
    for (uint32_t i = 0; i < s->n_specs; i++) {
        uint32_t field = s->spec[i].field;
        if (field == TN_UNSET_U32) {
            continue;
        }
        if (of[field] != TN_NOWHERE) {
            fault_at(b, &s->spec[i], "has the field of another slot");
        }
        of[field] = i;
    }
    c->spec_of_field = of;
}

/* For the libsvm family without fields; ranges must not overlap. */
static void make_ranges(tn_columns *c, const tn_schema *s, const tn_binder *b)
{
    uint32_t *by = TN_NEW_ARRAY(b->arena, uint32_t, s->n_specs);
    for (uint32_t i = 0; i < s->n_specs; i++) { /* by insertion: most lists are in order */
        uint32_t at = i;
        while (at > 0 && s->spec[by[at - 1]].range_from > s->spec[i].range_from) {
            by[at] = by[at - 1];
            at--;
        }
        by[at] = i;
    }
    c->n_ranges = s->n_specs;
    c->spec_by_range = by;
    if (strcmp(s->data->format, "libsvm") != 0) {
        return;
    }
    for (uint32_t i = 1; i < s->n_specs; i++) {
        if (s->spec[by[i - 1]].range_to >= s->spec[by[i]].range_from) {
            fault_at(b, &s->spec[by[i]], "has a range that overlaps another slot's");
        }
    }
}

uint32_t tn_columns_of_index(const tn_columns *columns, const tn_schema *schema, uint64_t index)
{
    uint32_t from = 0;
    uint32_t n = columns->n_ranges;
    while (n > 1) { /* the last spec that begins at or before the index */
        uint32_t half = n / 2;
        bool above = schema->spec[columns->spec_by_range[from + half]].range_from <= index;
        from = above ? from + half : from;
        n = above ? n - half : half;
    }
    const tn_slot_spec *spec = &schema->spec[columns->spec_by_range[from]];
    bool inside = spec->range_from <= index && index <= spec->range_to;
    return inside ? columns->spec_by_range[from] : TN_NOWHERE;
}

tn_status tn_columns_new(const tn_columns **out, const tn_schema *schema, const tn_binder *b,
                         tn_error *err)
{
    uint32_t n_fields = 0;
    for (uint32_t i = 0; i < schema->n_specs; i++) {
        uint32_t field = schema->spec[i].field;
        n_fields = field != TN_UNSET_U32 && field >= n_fields ? field + 1 : n_fields;
    }
    const size_t bytes = ((size_t)schema->n_specs + 4) * SPEC_BYTES +
                         ((size_t)n_fields + 1) * sizeof(uint32_t) + sizeof(tn_columns);
    TN_TRY(tn_arena_reserve(b->arena, bytes, "columns", err));
    tn_columns *c = TN_NEW(b->arena, tn_columns);
    c->n_fields = n_fields;
    make_names(c, schema, b->arena);
    find_runs(c, schema, b->arena);
    make_words(c, schema, b->arena);
    make_fields(c, schema, b);
    make_ranges(c, schema, b);
    *out = c;
    return TN_OK;
}
