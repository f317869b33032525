/* row_columns.c - lists the columns of a dump, and where in a row of the table each is. */
#include "extra/dump/row_columns.h"

#include "dict/dictwrite.h"

#include <stdio.h>
#include <string.h>

typedef struct making {
    tn_row_columns *out;
    tn_arena *arena;
    bool states;
} making;

static const char *dotted(tn_arena *arena, const char *segment, const char *state)
{
    size_t size = strlen(segment) + strlen(state) + 2;
    char *name = TN_NEW_ARRAY(arena, char, size);
    (void)snprintf(name, size, "%s.%s", segment, state);
    return name;
}

/* The column called `name`, made when it is not there yet. */
static tn_status column_of(making *m, const char *name, bool whole, uint32_t *out, tn_error *err)
{
    tn_row_columns *c = m->out;
    uint32_t i = 0;
    while (i < c->n && strcmp(c->column[i].name, name) != 0) {
        i++;
    }
    if (i == TN_DUMP_COLUMNS_MAX) {
        return tn_fail(err, TN_E_LIMIT, "more than %d columns in a dump", TN_DUMP_COLUMNS_MAX);
    }
    if (i == c->n) {
        c->column[c->n++] = (tn_dump_column){name, whole};
    }
    TN_ASSERT(c->column[i].whole == whole);
    *out = i;
    return TN_OK;
}

/* The segment's number in a record; false: it has none of that name. */
static bool find_segment(const tn_record *record, const char *name, uint32_t *out)
{
    for (uint32_t s = 0; s < record->n_segments; s++) {
        if (strcmp(record->segment[s].name, name) == 0) {
            *out = s;
            return true;
        }
    }
    return false;
}

/* Columns that a segment has in one record. `place` NULL: only counts them in. */
static tn_status add_segment(making *m, uint32_t record, uint32_t s, tn_row_place *place,
                             tn_error *err)
{
    const tn_segment *segment = &m->out->layout->record[record].segment[s];
    tn_place_in_row in = tn_table_place(m->out->table, record, s);
    const uint32_t waiting = tn_table_place_waiting(m->out->table, record, s);
    uint32_t weights = 0;
    uint32_t column = 0;
    TN_ASSERT(in.n_states <= TN_STATES_MAX);
    TN_TRY(column_of(m, segment->name, false, &weights, err));
    m->out->weights[weights] = weights;
    if (place != NULL) {
        place[weights] = (tn_row_place){in.w, segment->dim, waiting, s, TN_STATES_MAX};
    }
    for (uint32_t i = 0; m->states && i < in.n_states; i++) {
        const tn_state *state = &in.spec[i];
        const char *name = dotted(m->arena, segment->name, state->name);
        TN_TRY(column_of(m, name, state->count, &column, err));
        m->out->weights[column] = weights;
        if (place != NULL) {
            uint32_t n = state->per_row || state->count ? 1 : segment->dim;
            place[column] = (tn_row_place){in.state[i], n, waiting + in.state[i] - in.w, s, i};
        }
    }
    return TN_OK;
}

/* Adds columns of segment `name` in all records, so that states follow their segment. */
static tn_status add_columns(making *m, const char *name, tn_error *err)
{
    const tn_layout *layout = m->out->layout;
    uint32_t s = 0;
    for (uint32_t r = 0; r < layout->n_records; r++) {
        if (find_segment(&layout->record[r], name, &s)) {
            TN_TRY(add_segment(m, r, s, NULL, err));
        }
    }
    return TN_OK;
}

static tn_status place_columns(making *m, uint32_t record, tn_error *err)
{
    tn_row_columns *c = m->out;
    const uint32_t n = c->n;
    for (uint32_t s = 0; s < c->layout->record[record].n_segments; s++) {
        TN_TRY(add_segment(m, record, s, c->place + (size_t)record * c->n, err));
    }
    TN_ASSERT(c->n == n); /* all were found before */
    for (uint32_t i = 0; i < n; i++) {
        const tn_row_place *p = &c->place[(size_t)record * n + i];
        c->floats[record] = p->at + p->n > c->floats[record] ? p->at + p->n : c->floats[record];
    }
    return TN_OK;
}

tn_status tn_row_columns_new(const tn_row_columns **out, const tn_table *table,
                             const tn_layout *layout, bool states, tn_arena *arena, tn_error *err)
{
    tn_row_columns *c = TN_NEW(arena, tn_row_columns);
    *c = (tn_row_columns){.layout = layout, .table = table};
    making m = {.out = c, .arena = arena, .states = states};
    const char *names[TN_SEGMENTS_MAX];
    uint32_t n_names = 0;
    TN_TRY(tn_dict_segments(layout, names, &n_names, err));
    for (uint32_t i = 0; i < n_names; i++) {
        TN_TRY(add_columns(&m, names[i], err));
    }
    c->place = TN_NEW_ARRAY(arena, tn_row_place, (size_t)layout->n_records * c->n);
    c->floats = TN_NEW_ARRAY(arena, uint32_t, layout->n_records);
    for (uint32_t r = 0; r < layout->n_records; r++) {
        TN_TRY(place_columns(&m, r, err));
    }
    *out = c;
    return TN_OK;
}
