/* batch_builder.c - from rows to slots.
 *
 *     rows     a b - d    a b c -        a row and its keys by slot
 *     slot 2   key  c     end  0 1       `end` of each row: after its keys
 *
 * Keys come as entries, or without them, from many rows at once (tn_bare).
 */
#include "io/rows/batch_builder.h"

#include "base/core/alloc.h"
#include "base/core/bytes.h"
#include "base/core/compiler.h"
#include "io/rows/batch.h"
#include "io/rows/rows_parsing.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"

#include <string.h>

typedef struct slot_column {
    uint64_t *key;
    float *value;     /* NULL as long as none was needed */
    uint32_t *offset; /* rows + 1 */
    uint32_t n;
    uint32_t capacity;
    bool odd; /* some value is not 1; else `value` is not written */
} slot_column;

/* A row of a grid, which begins with its mask. */
typedef struct bare_row {
    const uint64_t *key;
} bare_row;

enum { FIRST_CAPACITY = 256, AHEAD = 6 /* columns */ };

enum { BARE_MAX = 32 };

struct tn_batch_builder {
    tn_batch batch; /* first: see tn_batch_builder_of */
    const tn_schema *schema;
    uint32_t rows_max;
    bool want_ids;
    slot_column *column;     /* n_slots; room for rows_max ends */
    bare_row bare[BARE_MAX]; /* the last n_bare rows */
    uint32_t n_bare;
    bool signs; /* all of these are of grids of signs, or of keys */
    uint64_t *group;
    float *weight;
    const tn_tasks *tasks; /* NULL: there is one label */
    tn_task_rows *task;    /* as the batch has them, in task_values */
    float *task_values;    /* [task][label, factor, weight][rows_max] */
    uint32_t *id_offset;
    char *id_text;
    uint32_t id_size;
    uint32_t id_capacity;
    bool has_weight; /* some row weighs other than 1 */
    bool has_group;
    bool has_id;
};

/* At least twice the room for the keys of a slot, and so much that `more` fit; false: no memory. */
static bool grow(slot_column *c, uint32_t more)
{
    uint64_t room = c->capacity == 0 ? FIRST_CAPACITY : UINT64_C(2) * c->capacity;
    uint64_t wanted = (uint64_t)c->n + more;
    room = room < wanted ? wanted : room;
    if (room > UINT32_MAX) {
        return false;
    }
    if (TN_GROW(c->key, c->n, (size_t)room, "a batch", NULL) != TN_OK ||
        (c->value != NULL && TN_GROW(c->value, c->n, (size_t)room, "a batch", NULL) != TN_OK)) {
        return false;
    }
    c->capacity = (uint32_t)room;
    return true;
}

static inline bool has_room(slot_column *c, uint32_t more)
{
    return more <= c->capacity - c->n || grow(c, more);
}

/* A value that is not 1: from here on values are kept, and those so far were 1. False: no memory.
 */
static bool begin_values(slot_column *c)
{
    if (c->value == NULL && TN_ALLOC(c->value, c->capacity, "a batch", NULL) != TN_OK) {
        return false;
    }
    for (uint32_t i = 0; i < c->n; i++) {
        c->value[i] = 1;
    }
    c->odd = true;
    return true;
}

/* Keys were added from `from` on, whose values are 1. */
static inline void end_keys(const slot_column *c, uint32_t from)
{
    for (uint32_t i = from; c->odd && i < c->n; i++) {
        c->value[i] = 1;
    }
}

/* Entries of one slot, as many as there are where a slot takes many; NULL: no memory. */
static inline const tn_entry *add_run(slot_column *c, const tn_entry *e, const tn_entry *end)
{
    const uint32_t slot = e->slot;
    const uint32_t one = 0x3f800000;
    do {
        uint32_t n = c->n;
        if (!has_room(c, 1)) {
            return NULL;
        }
        c->key[n] = e->key;
        if ((tn_load_u32(&e->value) ^ one) != 0 && !c->odd && !begin_values(c)) {
            return NULL;
        }
        if (c->odd) {
            c->value[n] = e->value;
        }
        c->n = n + 1;
        e++;
    } while (e < end && e->slot == slot);
    return e;
}

/* Adds entries, each to the column of its slot. This and all below: false without memory. */
static bool columns_add(slot_column *column, const tn_entry *entry, uint32_t n)
{
    const tn_entry *end = entry + n;
    const tn_entry *e = entry;
    while (e != NULL && e < end) {
        e = add_run(&column[e->slot], e, end);
    }
    return e != NULL;
}

/* Two slots from `s` on. Whether a row has a key here cannot be foretold, so it is copied either
 * way, and counts if there is one. */
static inline void add_two(slot_column *two, uint32_t s, const bare_row *row, uint32_t n,
                           uint32_t r, bool signs)
{
    uint64_t *restrict first = two[0].key;
    uint64_t *restrict second = two[1].key;
    uint32_t *restrict first_end = two[0].offset + r + 1;
    uint32_t *restrict second_end = two[1].offset + r + 1;
    uint32_t a = two[0].n;
    uint32_t b = two[1].n;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t *keys = row[i].key;
        const uint32_t *low = (const uint32_t *)(keys + 2) + s; /* a grid of signs */
        uint64_t there = keys[0] >> s;
        uint64_t high = keys[1] >> s;
        first[a] = signs ? low[0] | (high & 1) << 32 : keys[1 + s];
        second[b] = signs ? low[1] | (high & 2) << 31 : keys[2 + s];
        a += (uint32_t)there & 1;
        b += (uint32_t)(there >> 1) & 1;
        first_end[i] = a;
        second_end[i] = b;
    }
    two[0].n = a;
    two[1].n = b;
}

static inline void add_one(slot_column *c, uint32_t s, const bare_row *row, uint32_t n, uint32_t r,
                           bool signs)
{
    uint64_t *restrict key = c->key;
    uint32_t *restrict end = c->offset + r + 1;
    uint32_t at = c->n;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t *keys = row[i].key;
        key[at] = signs ? tn_bare_sign(keys, s) : keys[1 + s];
        at += (uint32_t)(keys[0] >> s) & 1;
        end[i] = at;
    }
    c->n = at;
}

/* Keys in place of signs. */
TN_HOT static void mix_signs(uint64_t *key, uint32_t n, uint64_t salt)
{
    for (uint32_t i = 0; i < n; i++) {
        key[i] = tn_key_of(key[i], salt);
    }
}

/* Asks for what n rows will write: columns are many, and each of them is gone to rarely. */
static inline void prefetch(const slot_column *c, uint32_t n, uint32_t r)
{
    enum { KEYS = TN_CACHE_LINE / sizeof(uint64_t), ENDS = TN_CACHE_LINE / sizeof(uint32_t) };
    for (uint32_t i = 0; i < n && n <= c->capacity - c->n; i += KEYS) {
        __builtin_prefetch(c->key + c->n + i, 1);
    }
    for (uint32_t i = 0; i < n; i += ENDS) {
        __builtin_prefetch(c->offset + r + i, 1);
    }
}

/* All slots of n rows of a grid; the first of them is row `r` of the batch. */
static inline bool columns_add_grid(slot_column *column, const tn_schema *schema,
                                    const bare_row *row, uint32_t n, uint32_t r, bool signs)
{
    const uint32_t n_slots = schema->n_slots;
    for (uint32_t s = 0; s < n_slots; s += 2) {
        slot_column *two = &column[s];
        bool odd = s + 1 == n_slots;
        for (uint32_t k = s + AHEAD; k < s + AHEAD + 2 && k < n_slots; k++) {
            prefetch(&column[k], n, r);
        }
        uint32_t from[2] = {two[0].n, odd ? 0 : two[1].n};
        if (!has_room(&two[0], n) || (!odd && !has_room(&two[1], n))) {
            return false;
        }
        if (odd) {
            add_one(two, s, row, n, r, signs);
        } else {
            add_two(two, s, row, n, r, signs);
        }
        for (uint32_t k = 0; k < 2U - odd; k++) {
            if (signs) {
                mix_signs(two[k].key + from[k], two[k].n - from[k],
                          schema->columns->slot_salt[s + k]);
            }
            end_keys(&two[k], from[k]);
        }
    }
    return true;
}

static const char what[] = "a batch";

static tn_status alloc_columns(tn_batch_builder *f, tn_error *err)
{
    uint32_t n_slots = f->schema->n_slots;
    TN_TRY(TN_ALLOC(f->column, (size_t)n_slots + 1, what, err));
    TN_TRY(TN_ALLOC(f->batch.slot, (size_t)n_slots + 1, what, err));
    for (uint32_t s = 0; s < n_slots; s++) {
        TN_TRY(TN_ALLOC(f->column[s].offset, (size_t)f->rows_max + 1, what, err));
    }
    return TN_OK;
}

/* Values of a task, in this order. */
enum { TASK_LABEL, TASK_FACTOR, TASK_WEIGHT, TASK_VALUES };

static float *task_values(const tn_batch_builder *f, uint32_t k, uint32_t which)
{
    const size_t n = (size_t)f->rows_max + 1;
    return f->task_values + ((size_t)k * TASK_VALUES + which) * n;
}

/* Says what row i is to each task. `r`: its place in the batch. */
static void add_tasks(tn_batch_builder *f, const tn_rows *rows, uint32_t i, uint32_t r)
{
    const tn_parsed_row *row = &rows->row[i];
    const float *aside = tn_rows_aside(rows, i);
    bool contradicts = false;
    for (uint32_t k = 0; k < f->tasks->n; k++) {
        const tn_task_row is = tn_task_row_of(f->tasks, k, row->label, aside);
        task_values(f, k, TASK_LABEL)[r] = is.label;
        task_values(f, k, TASK_FACTOR)[r] = is.factor;
        task_values(f, k, TASK_WEIGHT)[r] = is.factor * row->weight;
        f->task[k].counted += is.factor != 0;
        f->task[k].clicks += is.factor != 0 && is.label > 0.5F;
        contradicts = contradicts || tn_task_contradicts(f->tasks, k, row->label, aside);
    }
    f->batch.contradictions += contradicts;
}

static void end_tasks(const tn_batch_builder *f)
{
    for (uint32_t k = 0; k < f->tasks->n; k++) {
        f->task[k].label = task_values(f, k, TASK_LABEL);
        f->task[k].factor = task_values(f, k, TASK_FACTOR);
        f->task[k].weight = task_values(f, k, TASK_WEIGHT);
    }
}

static tn_status alloc_rows(tn_batch_builder *f, tn_error *err)
{
    size_t n = (size_t)f->rows_max + 1;
    TN_TRY(TN_ALLOC(f->batch.label, n, what, err));
    TN_TRY(TN_ALLOC(f->weight, n, what, err));
    TN_TRY(TN_ALLOC(f->group, n, what, err));
    if (f->schema->n_numeric > 0) {
        TN_TRY(TN_ALLOC(f->batch.numeric, n * f->schema->n_numeric, what, err));
    }
    if (f->tasks != NULL) {
        TN_TRY(TN_ALLOC(f->task, f->tasks->n, what, err));
        TN_TRY(TN_ALLOC(f->task_values, n * f->tasks->n * TASK_VALUES, what, err));
    }
    if (f->want_ids) {
        TN_TRY(TN_ALLOC(f->id_offset, n, what, err));
        TN_TRY(TN_ALLOC(f->batch.source, n, what, err));
        TN_TRY(TN_ALLOC(f->batch.source_at, n, what, err));
    }
    return TN_OK;
}

void tn_batch_builder_free(tn_batch_builder *f)
{
    if (f == NULL) {
        return;
    }
    for (uint32_t s = 0; f->column != NULL && s < f->schema->n_slots; s++) {
        tn_free(f->column[s].key);
        tn_free(f->column[s].value);
        tn_free(f->column[s].offset);
    }
    tn_free(f->column);
    tn_free(f->batch.slot);
    tn_free(f->batch.label);
    tn_free(f->batch.numeric);
    tn_free(f->batch.source);
    tn_free(f->batch.source_at);
    tn_free(f->weight);
    tn_free(f->task);
    tn_free(f->task_values);
    tn_free(f->group);
    tn_free(f->id_offset);
    tn_free(f->id_text);
    tn_free(f);
}

void tn_batch_builder_clear(tn_batch_builder *f)
{
    for (uint32_t s = 0; s < f->schema->n_slots; s++) {
        f->column[s].n = 0;
        f->column[s].odd = false;
        f->column[s].offset[0] = 0;
    }
    f->n_bare = 0;
    f->batch.rows = 0;
    f->batch.n_keys = 0;
    f->batch.contradictions = 0;
    for (uint32_t k = 0; f->tasks != NULL && k < f->tasks->n; k++) {
        f->task[k] = (tn_task_rows){0};
    }
    f->id_size = 0;
    f->has_weight = false;
    f->has_group = f->schema->data->group != NULL;
    f->has_id = false;
}

tn_status tn_batch_builder_new(tn_batch_builder **out, const tn_schema *schema, uint32_t rows_max,
                               bool want_ids, tn_error *err)
{
    *out = NULL;
    tn_batch_builder *f = NULL;
    TN_TRY(TN_ALLOC(f, 1, what, err));
    f->schema = schema;
    f->rows_max = rows_max;
    f->want_ids = want_ids;
    f->tasks = tn_tasks_count(schema->data->tasks) > 1 ? schema->data->tasks : NULL;
    if (alloc_columns(f, err) != TN_OK || alloc_rows(f, err) != TN_OK) {
        tn_batch_builder_free(f);
        return TN_E_MEMORY;
    }
    tn_batch_builder_clear(f);
    *out = f;
    return TN_OK;
}

/* Many rows at once and slot by slot, so that each column is gone to once. False: no memory. */
static bool copy_bare(tn_batch_builder *f)
{
    const uint32_t n = f->n_bare;
    f->n_bare = 0;
    return n == 0 ||
           columns_add_grid(f->column, f->schema, f->bare, n, f->batch.rows - n, f->signs);
}

tn_status tn_batch_builder_settle(tn_batch_builder *f, tn_error *err)
{
    return copy_bare(f)
               ? TN_OK
               : tn_fail(err, TN_E_MEMORY, "no memory for a batch of %u rows", f->rows_max);
}

/* The keys of a row. */
static inline uint32_t count_keys(const tn_rows *rows, const tn_bare *b, uint32_t i)
{
    return b != NULL ? (uint32_t)__builtin_popcountll(b->key[(size_t)i * b->stride])
                     : tn_rows_end_of(rows, i) - rows->row[i].first;
}

/* Remembers a row whose keys are still to be copied, with others of its form. False: no memory. */
static bool add_bare(tn_batch_builder *f, const tn_bare *b, uint32_t i)
{
    const bool other = f->n_bare > 0 && f->signs != b->signs;
    if ((other || f->n_bare == BARE_MAX) && !copy_bare(f)) {
        return false;
    }
    f->signs = b->signs;
    f->bare[f->n_bare++] = (bare_row){b->key + (size_t)i * b->stride};
    return true;
}

static bool add_entries(tn_batch_builder *f, const tn_entry *entry, uint32_t n)
{
    bool good = copy_bare(f) && columns_add(f->column, entry, n);
    for (uint32_t s = 0; good && s < f->schema->n_slots; s++) {
        f->column[s].offset[f->batch.rows + 1] = f->column[s].n;
    }
    return good;
}

/* Appends the bytes of a record id to those of the others; false: no memory. */
static bool add_id(tn_batch_builder *f, const char *text, uint32_t size)
{
    f->id_offset[f->batch.rows] = f->id_size;
    if (!tn_rows_grow(&f->id_text, f->id_size, size, 1, &f->id_capacity)) {
        return false;
    }
    if (size > 0) {
        memcpy(f->id_text + f->id_size, text, size);
        f->has_id = true;
    }
    f->id_size += size;
    return true;
}

tn_status tn_batch_builder_add(tn_batch_builder *f, const tn_rows *rows, uint32_t i,
                               uint32_t source, tn_error *err)
{
    const tn_parsed_row *row = &rows->row[i];
    uint32_t r = f->batch.rows;
    const tn_bare *bare = tn_rows_bare(rows);
    uint32_t n = count_keys(rows, bare, i);
    uint32_t n_numeric = f->schema->n_numeric;
    TN_ASSERT(r < f->rows_max);
    if (n > UINT32_MAX - f->batch.n_keys) {
        return tn_fail(err, TN_E_LIMIT, "more than %u keys in a batch", UINT32_MAX);
    }
    bool good = bare != NULL ? add_bare(f, bare, i) : add_entries(f, rows->entry + row->first, n);
    if (good && f->want_ids) {
        const char *id = row->id.size > 0 ? rows->text + row->id.at : ""; /* no text at all: NULL */
        good = add_id(f, id, row->id.size);
        f->batch.source[r] = source;
        f->batch.source_at[r] = row->at;
    }
    if (!good) {
        return tn_fail(err, TN_E_MEMORY, "no memory for a batch of %u rows", f->rows_max);
    }
    f->batch.n_keys += n;
    f->batch.label[r] = row->label;
    f->weight[r] = row->weight;
    f->has_weight = f->has_weight || row->weight != 1;
    f->group[r] = row->group;
    f->has_group = f->has_group || row->group != TN_NO_GROUP;
    if (n_numeric > 0) {
        memcpy(f->batch.numeric + (size_t)r * n_numeric,
               rows->numeric + (size_t)i * tn_schema_numbers(f->schema), n_numeric * sizeof(float));
    }
    if (f->tasks != NULL) {
        add_tasks(f, rows, i, r);
    }
    f->batch.rows = r + 1;
    return TN_OK;
}

uint32_t tn_batch_builder_rows(const tn_batch_builder *f)
{
    return f->batch.rows;
}

tn_batch *tn_batch_builder_end(tn_batch_builder *f)
{
    tn_batch *b = &f->batch;
    TN_ASSERT(f->n_bare == 0);
    b->n_slots = f->schema->n_slots;
    b->n_numeric = f->schema->n_numeric;
    for (uint32_t s = 0; s < b->n_slots; s++) {
        const slot_column *c = &f->column[s];
        b->slot[s] = (tn_slot){c->offset, c->key, c->odd ? c->value : NULL};
    }
    b->weight = f->has_weight ? f->weight : NULL;
    b->group = f->has_group ? f->group : NULL;
    if (f->tasks != NULL) {
        end_tasks(f);
        b->task = f->task;
    }
    b->id_offset = f->has_id ? f->id_offset : NULL;
    b->id_text = f->has_id ? f->id_text : NULL;
    if (f->has_id) {
        f->id_offset[b->rows] = f->id_size;
    }
    return b;
}

tn_batch_builder *tn_batch_builder_of(tn_batch *batch)
{
    return (tn_batch_builder *)(void *)batch; /* its first member */
}
