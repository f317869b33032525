/* dictplan.c - the plan of a dictionary: the sets of segments its rows have, the tables the sets go
 * to, where everything lies in the file, and the heads that say so.
 */
#include "io/dict/dictplan.h"

#include "base/core/alloc.h"
#include "base/core/bytes.h"
#include "base/core/text.h"
#include "base/keys/record.h"
#include "base/math/crc32c.h"

#include <string.h>

tn_status tn_dict_segments(const tn_layout *layout, const char *names[TN_SEGMENTS_MAX], uint32_t *n,
                           tn_error *err)
{
    uint32_t count = 0;
    for (uint32_t r = 0; r < layout->n_records; r++) {
        const tn_record *record = &layout->record[r];
        for (uint32_t s = 0; s < record->n_segments; s++) {
            uint32_t i = 0;
            while (i < count && strcmp(names[i], record->segment[s].name) != 0) {
                i++;
            }
            if (i == TN_SEGMENTS_MAX) {
                return tn_fail(err, TN_E_LIMIT, "more than %d different segments", TN_SEGMENTS_MAX);
            }
            if (i == count) {
                names[count++] = record->segment[s].name;
            }
        }
    }
    *n = count;
    return TN_OK;
}

static bool same_layout(const tn_record *a, const tn_record *b)
{
    bool same = a->n_segments == b->n_segments;
    for (uint32_t i = 0; same && i < a->n_segments; i++) {
        same = a->segment[i].dim == b->segment[i].dim &&
               strcmp(a->segment[i].name, b->segment[i].name) == 0;
    }
    return same;
}

static void find_layouts(tn_dict_plan *p)
{
    const tn_layout *layout = p->spec->layout;
    for (uint32_t r = 0; r < layout->n_records; r++) {
        uint32_t like = 0;
        while (!same_layout(&layout->record[like], &layout->record[r])) {
            like++;
        }
        p->layout_of[r] = like;
    }
}

void tn_dict_plan_free(tn_dict_plan *p)
{
    if (p == NULL) {
        return;
    }
    for (uint32_t i = 0; p->set != NULL && i < p->n_sets; i++) {
        tn_free(p->set[i].group_rows);
    }
    tn_free(p->layout_of);
    tn_free(p->set);
    tn_free(p->table_of);
    tn_free(p->place_of);
    tn_free(p->table);
    tn_free(p);
}

tn_status tn_dict_plan_new(tn_dict_plan **out, const tn_dict_spec *spec, tn_error *err)
{
    *out = NULL;
    tn_dict_plan *p = NULL;
    TN_TRY(TN_ALLOC(p, 1, "a dictionary", err));
    p->spec = spec;
    p->layout_of = tn_try_alloc(spec->layout->n_records, sizeof *p->layout_of, "a dictionary", err);
    p->set = tn_try_alloc(TN_DICT_SETS_MAX, sizeof *p->set, "a dictionary", err);
    tn_status status = TN_E_MEMORY;
    p->table_of = tn_try_alloc(TN_DICT_SETS_MAX, sizeof *p->table_of, "a dictionary", err);
    p->place_of = tn_try_alloc(TN_DICT_SETS_MAX, sizeof *p->place_of, "a dictionary", err);
    if (p->layout_of != NULL && p->set != NULL && p->table_of != NULL && p->place_of != NULL) {
        status = tn_dict_segments(spec->layout, p->segment, &p->n_segments, err);
    }
    if (status != TN_OK) {
        tn_dict_plan_free(p);
        return status;
    }
    find_layouts(p);
    *out = p;
    return TN_OK;
}

tn_dict_set *tn_dict_plan_set(tn_dict_plan *p, const tn_dict_entry *e, tn_error *err)
{
    uint32_t layout = e->removed ? 0 : p->layout_of[p->spec->layout->group[e->group].record];
    uint16_t present = e->removed ? 0 : e->present;
    uint32_t i = p->last;
    if (i >= p->n_sets || p->set[i].layout != layout || p->set[i].present != present) {
        i = 0;
        while (i < p->n_sets && (p->set[i].layout != layout || p->set[i].present != present)) {
            i++;
        }
    }
    if (i == p->n_sets) {
        if (i == TN_DICT_SETS_MAX) {
            (void)tn_fail(err, TN_E_LIMIT, "more than %d sets of segments", TN_DICT_SETS_MAX);
            return NULL;
        }
        uint64_t *rows = tn_try_alloc(p->spec->layout->n_groups, sizeof *rows, "a dictionary", err);
        if (rows == NULL) {
            return NULL;
        }
        p->set[i] = (tn_dict_set){
            .layout = layout, .present = present, .met = (uint16_t)i, .group_rows = rows};
        p->n_sets++;
    }
    p->last = i;
    return &p->set[i];
}

static bool contains(uint16_t big, uint16_t small)
{
    return (big & small) == small;
}

static uint32_t bits_in(uint16_t present)
{
    return (uint32_t)__builtin_popcount(present);
}

/* Sets in the order of their tables: by layout, removed keys last, then by rows, then by segments.
 */
static bool comes_first(const tn_dict_set *a, const tn_dict_set *b)
{
    if ((a->present == 0) != (b->present == 0)) {
        return b->present == 0;
    }
    if (a->layout != b->layout) {
        return a->layout < b->layout;
    }
    if (a->rows != b->rows) {
        return a->rows > b->rows;
    }
    return bits_in(a->present) != bits_in(b->present) ? bits_in(a->present) > bits_in(b->present)
                                                      : a->present < b->present;
}

static void sort_sets(tn_dict_plan *p)
{
    for (uint32_t i = 1; i < p->n_sets; i++) {
        tn_dict_set moving = p->set[i];
        uint32_t k = i;
        for (; k > 0 && comes_first(&moving, &p->set[k - 1]); k--) {
            p->set[k] = p->set[k - 1];
        }
        p->set[k] = moving;
    }
}

static uint16_t all_of(const tn_dict_plan *p, const tn_dict_set *s)
{
    return (uint16_t)((1U << p->spec->layout->record[s->layout].n_segments) - 1);
}

static uint32_t padded(uint32_t bytes)
{
    return (bytes + 3) / 4 * 4;
}

static uint32_t segment_number(const tn_dict_plan *p, const char *name)
{
    uint32_t i = 0;
    while (strcmp(p->segment[i], name) != 0) {
        i++;
    }
    return i;
}

/* Where the segments of a table's rows lie. */
static void lay_out(const tn_dict_plan *p, tn_dict_plan_table *t)
{
    const tn_record *record = &p->spec->layout->record[t->set->layout];
    for (uint32_t s = 0; s < record->n_segments; s++) {
        if ((t->set->present >> s & 1) == 0) {
            continue;
        }
        tn_dict_column *c = &t->column[t->n_columns++];
        c->scale = TN_DICT_NO_SCALE;
        if (p->spec->type == TN_DICT_INT8) {
            c->scale = t->stride;
            t->stride += (uint32_t)sizeof(float);
        }
        c->offset = t->stride;
        c->at = record->segment[s].at;
        c->dim = record->segment[s].dim;
        c->segment = segment_number(p, record->segment[s].name);
        c->of_record = s;
        uint32_t bytes = tn_dict_bytes(p->spec->type, c->dim);
        t->stride += padded(bytes);
        t->has_gaps |= padded(bytes) != bytes;
    }
    t->is_run = p->spec->type == TN_DICT_F32;
    for (uint32_t i = 0; i < t->n_columns; i++) {
        t->is_run &= t->column[i].at - t->column[0].at == t->column[i].offset / sizeof(float);
    }
}

static uint32_t places_of(const tn_dict_plan *p)
{
    return TN_DICT_GROUP_TABLES - (p->spec->delta ? 1 : 0); /* one for removed keys */
}

/* How many sets have the layout of s, and whether one of them is the whole record. */
static uint32_t alike(const tn_dict_plan *p, const tn_dict_set *s, bool *has_all)
{
    uint32_t n = 0;
    *has_all = false;
    for (uint32_t i = 0; i < p->n_sets; i++) {
        const tn_dict_set *o = &p->set[i];
        if (o->layout == s->layout && o->present != 0) {
            n++;
            *has_all |= o->present == all_of(p, s);
        }
    }
    return n;
}

/* Where sets are more than tables, there is one that holds them all: the whole record. */
static tn_status add_whole_records(tn_dict_plan *p, tn_error *err)
{
    const tn_layout *layout = p->spec->layout;
    for (uint32_t i = 0, n = p->n_sets; i < n; i++) {
        const tn_dict_set *s = &p->set[i];
        bool has_all = false;
        if (s->present == 0 || alike(p, s, &has_all) <= places_of(p) || has_all) {
            continue;
        }
        uint16_t group = 0;
        while (p->layout_of[layout->group[group].record] != s->layout) {
            group++;
        }
        tn_dict_entry whole = {.group = group, .present = all_of(p, s)};
        if (tn_dict_plan_set(p, &whole, err) == NULL) {
            return err != NULL ? err->code : TN_E_MEMORY;
        }
    }
    return TN_OK;
}

/* The most frequent sets of a layout and the whole record get a table of their own. */
static bool gets_table(const tn_dict_plan *p, const tn_dict_set *s, uint32_t made, bool made_all)
{
    bool has_all = false;
    bool crowded = alike(p, s, &has_all) > places_of(p);
    if (s->present == 0 || s->present == all_of(p, s) || !crowded) {
        return true;
    }
    return made + (made_all ? 0 : 1) < places_of(p);
}

static void add_table(tn_dict_plan *p, tn_dict_set *s)
{
    s->table = p->n_tables;
    tn_dict_plan_table *t = &p->table[p->n_tables++];
    t->set = s;
    lay_out(p, t);
}

static bool set_has_table(const tn_dict_plan *p, const tn_dict_set *s)
{
    return s->table < p->n_tables && p->table[s->table].set == s;
}

/* The smallest table of the layout that contains s; p->n_tables: none. */
static uint32_t smallest_around(const tn_dict_plan *p, const tn_dict_set *s)
{
    uint32_t best = p->n_tables;
    for (uint32_t t = 0; t < p->n_tables; t++) {
        const tn_dict_set *o = p->table[t].set;
        if (o->layout == s->layout && o->present != 0 && contains(o->present, s->present) &&
            (best == p->n_tables || bits_in(o->present) < bits_in(p->table[best].set->present))) {
            best = t;
        }
    }
    return best;
}

static tn_status check_rows(const tn_dict_plan *p, tn_error *err)
{
    for (uint32_t i = 0; i < p->n_tables; i++) {
        if (p->table[i].rows > UINT32_MAX) {
            return tn_fail(err, TN_E_LIMIT, "more than %u rows in a table of a dictionary",
                           UINT32_MAX);
        }
    }
    return TN_OK;
}

static void choose_tables(tn_dict_plan *p)
{
    uint32_t made = 0;
    bool made_all = false;
    for (uint32_t i = 0; i < p->n_sets; i++) {
        tn_dict_set *s = &p->set[i];
        s->table = UINT32_MAX;
        if (i == 0 || s->layout != p->set[i - 1].layout) {
            made = 0;
            made_all = false;
        }
        if (gets_table(p, s, made, made_all)) {
            made_all |= s->present == all_of(p, s);
            made++;
            add_table(p, s);
        }
    }
}

/* The smallest key of a partition; of the one behind the last, 0: 2^64. */
static uint64_t first_key(uint32_t partition, uint32_t partitions)
{
    uint64_t high = (((uint64_t)partition << 32) + partitions - 1) / partitions;
    return high << 32;
}

static void plan_buckets(const tn_dict_plan *p, tn_dict_plan_table *t)
{
    const tn_dict_spec *s = p->spec;
    t->base = first_key(s->first, s->partitions);
    uint64_t range = first_key(s->last + 1, s->partitions) - 1 - t->base;
    t->shift = TN_DICT_ONE_BUCKET;
    t->buckets = 1;
    while (t->rows > (uint64_t)TN_DICT_BUCKET_KEYS * t->buckets) {
        t->shift--;
        t->buckets = (uint32_t)((range >> t->shift) + 1);
    }
}

static uint64_t aligned(uint64_t at)
{
    return (at + TN_DICT_ALIGN - 1) / TN_DICT_ALIGN * TN_DICT_ALIGN;
}

static void place_all(tn_dict_plan *p)
{
    const tn_layout *layout = p->spec->layout;
    uint64_t names_bytes = 0;
    p->names_at = TN_DICT_HEADER + (uint64_t)layout->n_groups * TN_DICT_GROUP +
                  (uint64_t)p->n_tables * TN_DICT_TABLE;
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        names_bytes += strlen(layout->group[g].name) + 1;
    }
    p->json_at = p->names_at + names_bytes;
    p->json_bytes = strlen(p->spec->json);
    uint64_t at = p->json_at + p->json_bytes;
    for (uint32_t i = 0; i < p->n_tables; i++) {
        tn_dict_plan_table *t = &p->table[i];
        plan_buckets(p, t);
        t->start_at = aligned(at);
        t->key_at = aligned(t->start_at + ((uint64_t)t->buckets + 1) * sizeof(uint32_t));
        t->rows_at = aligned(t->key_at + t->rows * sizeof(uint64_t));
        at = t->rows_at + t->rows * t->stride;
        if (p->spec->check_groups) {
            t->group_at = aligned(at);
            at = t->group_at + t->rows * sizeof(uint16_t);
        }
    }
    p->crc_at = aligned(at);
}

tn_status tn_dict_plan_tables(tn_dict_plan *p, tn_error *err)
{
    TN_TRY(add_whole_records(p, err));
    sort_sets(p);
    TN_TRY(TN_ALLOC(p->table, (size_t)p->n_sets + 1, "a dictionary", err));
    choose_tables(p);
    for (uint32_t i = 0; i < p->n_sets; i++) {
        tn_dict_set *s = &p->set[i];
        s->table = set_has_table(p, s) ? s->table : smallest_around(p, s);
        TN_ASSERT(s->table < p->n_tables);
        p->table_of[s->met] = s->table;
        p->place_of[s->met] = i;
        p->table[s->table].rows += s->rows;
        p->rows += s->rows;
    }
    TN_TRY(check_rows(p, err));
    place_all(p);
    return TN_OK;
}

/* ---- heads ---- */

/* Rows of a group in a table. */
static uint64_t rows_in(const tn_dict_plan *p, uint32_t table, uint32_t group)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < p->n_sets; i++) {
        rows += p->set[i].table == table ? p->set[i].group_rows[group] : 0;
    }
    return rows;
}

/* Tables of a group, fullest first. */
static uint32_t tables_of(const tn_dict_plan *p, uint32_t group,
                          uint16_t table[TN_DICT_GROUP_TABLES])
{
    uint64_t rows[TN_DICT_GROUP_TABLES];
    uint32_t n = 0;
    for (uint32_t t = 0; t < p->n_tables; t++) {
        uint64_t here = rows_in(p, t, group);
        if (here == 0) {
            continue;
        }
        TN_ASSERT(n < TN_DICT_GROUP_TABLES);
        uint32_t k = n++;
        for (; k > 0 && rows[k - 1] < here && p->table[t].set->present != 0; k--) {
            rows[k] = rows[k - 1];
            table[k] = table[k - 1];
        }
        rows[k] = here;
        table[k] = (uint16_t)t;
    }
    return n;
}

static uint32_t chunks_of(const tn_dict_plan *p)
{
    return (uint32_t)((p->crc_at - TN_DICT_HEADER + TN_DICT_CHUNK - 1) / TN_DICT_CHUNK);
}

static void add_header(const tn_dict_plan *p, tn_text *out)
{
    const tn_dict_spec *s = p->spec;
    char h[TN_DICT_HEADER] = {0};
    tn_store_u64(h, TN_DICT_MAGIC);
    tn_store_u16(h + 8, 1);
    tn_store_u32(h + 12, TN_DICT_HEADER);
    memcpy(h + 16, s->model_id, TN_MODEL_ID_BYTES);
    if (s->delta) {
        memcpy(h + 32, s->base_id, TN_MODEL_ID_BYTES);
    }
    tn_store_u64(h + 48, p->crc_at + ((uint64_t)chunks_of(p) + 1) * sizeof(uint32_t));
    tn_store_u64(h + 56, p->rows);
    tn_store_u64(h + 64, TN_DICT_HEADER);
    tn_store_u64(h + 72, p->names_at);
    tn_store_u64(h + 80, p->json_at);
    tn_store_u64(h + 88, p->crc_at);
    tn_store_u32(h + 96, s->layout->n_groups);
    tn_store_u32(h + 100, p->n_tables);
    tn_store_u32(h + 104, (uint32_t)p->json_bytes);
    tn_store_u32(h + 108, chunks_of(p));
    tn_store_u32(h + 112, (s->delta ? (uint32_t)TN_DICT_DELTA : 0) |
                              (s->check_groups ? (uint32_t)TN_DICT_GROUP_ARRAYS : 0));
    tn_store_u16(h + 116, (uint16_t)s->partitions);
    tn_store_u16(h + 118, (uint16_t)s->first);
    tn_store_u16(h + 120, (uint16_t)s->last);
    tn_store_u16(h + 122, TN_DICT_CHUNK_LOG);
    tn_store_u32(h + 124, tn_crc32c(0, h, TN_DICT_HEADER - sizeof(uint32_t)));
    tn_text_add(out, h, sizeof h);
}

static void add_groups(const tn_dict_plan *p, tn_text *out)
{
    const tn_layout *layout = p->spec->layout;
    uint32_t name_at = 0;
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        char head[TN_DICT_GROUP] = {0};
        uint16_t table[TN_DICT_GROUP_TABLES];
        uint32_t n = tables_of(p, g, table);
        uint32_t length = (uint32_t)strlen(layout->group[g].name);
        tn_store_u64(head, layout->group[g].salt);
        tn_store_u32(head + 8, name_at);
        tn_store_u16(head + 12, (uint16_t)length);
        head[14] = (char)n;
        for (uint32_t i = 0; i < n; i++) {
            tn_store_u16(head + 16 + (size_t)i * 2, table[i]);
        }
        name_at += length + 1;
        tn_text_add(out, head, sizeof head);
    }
}

static void add_tables(const tn_dict_plan *p, tn_text *out)
{
    for (uint32_t i = 0; i < p->n_tables; i++) {
        const tn_dict_plan_table *t = &p->table[i];
        char head[TN_DICT_TABLE] = {0};
        tn_store_u64(head, t->rows);
        tn_store_u64(head + 8, t->start_at);
        tn_store_u64(head + 16, t->key_at);
        tn_store_u64(head + 24, t->rows_at);
        tn_store_u64(head + 32, t->group_at);
        tn_store_u64(head + 40, t->base);
        tn_store_u32(head + 48, t->buckets);
        tn_store_u32(head + 52, t->stride);
        head[56] = (char)t->shift;
        head[57] = (char)t->n_columns;
        tn_store_u16(head + 58, t->set->present == 0 ? TN_DICT_REMOVED : 0);
        for (uint32_t k = 0; k < t->n_columns; k++) {
            char *at = head + TN_DICT_SEGMENTS_AT + (size_t)k * TN_DICT_SEGMENT;
            const tn_dict_column *c = &t->column[k];
            tn_store_u32(at, c->offset);
            tn_store_u32(at + 4, c->scale);
            tn_store_u16(at + 8, (uint16_t)c->dim);
            at[10] = (char)p->spec->type;
            at[11] = (char)c->segment;
        }
        tn_text_add(out, head, sizeof head);
    }
}

void tn_dict_plan_head(const tn_dict_plan *p, tn_text *out)
{
    const tn_layout *layout = p->spec->layout;
    add_header(p, out);
    add_groups(p, out);
    add_tables(p, out);
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        tn_text_add(out, layout->group[g].name, strlen(layout->group[g].name) + 1);
    }
}
