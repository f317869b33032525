/* batch_gather.c - rows copied slot by slot. */
#include "io/rows/batch_gather.h"

#include "base/core/alloc.h"
#include "io/rows/batch.h"
#include "io/schema/schema.h"

#include <string.h>

/* Room in the arrays of a slot. */
typedef struct slot_room {
    size_t offset, key, value;
} slot_room;

struct tn_batch_gather {
    const tn_schema *schema;
    tn_batch batch;
    slot_room *room; /* n_slots */
    size_t numeric_max;
};

tn_status tn_batch_gather_new(tn_batch_gather **out, const tn_schema *schema, tn_error *err)
{
    tn_batch_gather *g = NULL;
    *out = NULL;
    TN_TRY(TN_ALLOC(g, 1, "rows of a batch", err));
    g->schema = schema;
    g->batch.n_slots = schema->n_slots;
    g->batch.n_numeric = schema->n_numeric;
    if (TN_ALLOC(g->batch.slot, schema->n_slots, "slots of a batch", err) != TN_OK ||
        TN_ALLOC(g->room, schema->n_slots, "slots of a batch", err) != TN_OK) {
        tn_batch_gather_free(g);
        return TN_E_MEMORY;
    }
    *out = g;
    return TN_OK;
}

void tn_batch_gather_free(tn_batch_gather *g)
{
    if (g == NULL) {
        return;
    }
    for (uint32_t i = 0; g->batch.slot != NULL && i < g->batch.n_slots; i++) {
        tn_free(g->batch.slot[i].offset);
        tn_free(g->batch.slot[i].key);
        tn_free(g->batch.slot[i].value);
    }
    tn_free(g->batch.slot);
    tn_free(g->room);
    tn_free(g->batch.numeric);
    tn_free(g);
}

static uint32_t row_of(const tn_gathered *what, bool dealt, uint32_t i)
{
    return dealt ? what->deal[what->first + i] : what->first + i;
}

/* Returns whether a slot is the one that is dealt, or of its sequence: these have one length. */
static bool is_dealt(const tn_schema *schema, const tn_gathered *what, uint32_t slot)
{
    if (what->spec == TN_NOWHERE) {
        return false;
    }
    const char *a = schema->spec[what->spec].sequence;
    const char *b = schema->slot[slot]->sequence;
    return schema->spec[what->spec].slot == slot || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static tn_status gather_slot(tn_batch_gather *g, const tn_slot *from, uint32_t slot,
                             const tn_gathered *what, tn_error *err)
{
    tn_slot *to = &g->batch.slot[slot];
    slot_room *room = &g->room[slot];
    const bool dealt = is_dealt(g->schema, what, slot);
    TN_TRY(TN_RESERVE(to->offset, room->offset, (size_t)what->n + 1, "a slot", err));
    to->offset[0] = 0;
    for (uint32_t i = 0; i < what->n; i++) {
        const uint32_t row = row_of(what, dealt, i);
        to->offset[i + 1] = to->offset[i] + from->offset[row + 1] - from->offset[row];
    }
    const uint32_t n = to->offset[what->n];
    TN_TRY(TN_RESERVE(to->key, room->key, n, "a slot", err));
    if (from->value != NULL) {
        TN_TRY(TN_RESERVE(to->value, room->value, n, "a slot", err));
    } else {
        tn_free(to->value);
        to->value = NULL;
        room->value = 0;
    }
    for (uint32_t i = 0; i < what->n; i++) {
        const uint32_t at = from->offset[row_of(what, dealt, i)];
        const size_t count = to->offset[i + 1] - to->offset[i];
        if (count > 0) {
            memcpy(to->key + to->offset[i], from->key + at, count * sizeof *to->key);
        }
        if (count > 0 && to->value != NULL) {
            memcpy(to->value + to->offset[i], from->value + at, count * sizeof *to->value);
        }
    }
    g->batch.n_keys += n;
    return TN_OK;
}

static tn_status gather_numeric(tn_batch_gather *g, const tn_batch *from, const tn_gathered *what,
                                tn_error *err)
{
    const uint32_t cols = from->n_numeric;
    const tn_slot_spec *dealt = what->spec != TN_NOWHERE ? &g->schema->spec[what->spec] : NULL;
    const uint32_t first = dealt != NULL ? dealt->numeric : TN_NOWHERE;
    const uint32_t end = first != TN_NOWHERE ? first + tn_spec_cols(dealt) : 0;
    TN_TRY(TN_RESERVE(g->batch.numeric, g->numeric_max, (size_t)what->n * cols, "numbers", err));
    for (uint32_t i = 0; i < what->n; i++) {
        for (uint32_t c = 0; c < cols; c++) {
            g->batch.numeric[(size_t)i * cols + c] =
                from->numeric[(size_t)row_of(what, c >= first && c < end, i) * cols + c];
        }
    }
    return TN_OK;
}

tn_status tn_batch_gather_rows(tn_batch_gather *g, const tn_batch *from, const tn_gathered *what,
                               tn_batch **out, tn_error *err)
{
    TN_ASSERT(from->n_slots == g->schema->n_slots && what->n <= from->rows &&
              what->first <= from->rows - what->n);
    tn_batch *to = &g->batch;
    *out = NULL;
    to->rows = what->n;
    to->n_keys = 0;
    for (uint32_t s = 0; s < from->n_slots; s++) {
        TN_TRY(gather_slot(g, &from->slot[s], s, what, err));
    }
    if (from->n_numeric > 0) {
        TN_TRY(gather_numeric(g, from, what, err));
    }
    to->label = from->label + what->first;
    to->weight = from->weight != NULL ? from->weight + what->first : NULL;
    to->group = from->group != NULL ? from->group + what->first : NULL;
    *out = to;
    return TN_OK;
}
