/* dictplan.c - the plan of a dictionary: the sets of segments its rows have, the tables the sets go
 * to, where everything lies in the file, and the heads that say so.
 */
#include "dict/dictplan.h"

#include "base/core/arena.h"
#include "base/core/text.h"
#include "base/keys/record.h"
#include "base/math/crc32c.h"

#include <string.h>

_Static_assert((int)TN_SEGMENTS_MAX <= (int)TN_DICT_SEGMENTS,
               "a record's segments fit the head of a table");

static uint32_t find_name(const char *const *names, uint32_t n, const char *name)
{
    uint32_t i = 0;
    while (i < n && strcmp(names[i], name) != 0) {
        i++;
    }
    return i;
}

tn_status tn_dict_segments(const tn_layout *layout, const char *names[TN_SEGMENTS_MAX], uint32_t *n,
                           tn_error *err)
{
    uint32_t count = 0;
    for (uint32_t r = 0; r < layout->n_records; r++) {
        const tn_record *record = &layout->record[r];
        for (uint32_t s = 0; s < record->n_segments; s++) {
            uint32_t i = find_name(names, count, record->segment[s].name);
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

void tn_dict_plan_done(tn_dict_plan *p)
{
    tn_arena_free(p->arena);
}

tn_status tn_dict_plan_init(tn_dict_plan *p, const tn_dict_spec *spec, tn_error *err)
{
    static const size_t set_bytes = sizeof(tn_dict_set) + sizeof(uint16_t);
    const uint32_t n_records = spec->layout->n_records;
    size_t bytes = TN_DICT_SETS_MAX * set_bytes + (n_records + 2) * sizeof(uint64_t);
    *p = (tn_dict_plan){.spec = spec};
    TN_TRY(tn_dict_segments(spec->layout, p->segment, &p->n_segments, err));
    TN_TRY(tn_arena_open(&p->arena, bytes, "a dictionary", err));
    p->set = TN_NEW_ARRAY(p->arena, tn_dict_set, TN_DICT_SETS_MAX);
    p->order = TN_NEW_ARRAY(p->arena, uint16_t, TN_DICT_SETS_MAX);
    p->layout_of = TN_NEW_ARRAY(p->arena, uint32_t, n_records);
    p->crowded = TN_NEW_ARRAY(p->arena, bool, n_records);
    find_layouts(p);
    return TN_OK;
}

static tn_status find_set(tn_dict_plan *p, uint32_t layout, uint16_t present, uint16_t *out,
                          tn_error *err)
{
    const size_t n_groups = p->spec->layout->n_groups;
    uint32_t i = 0;
    while (i < p->n_sets && (p->set[i].layout != layout || p->set[i].present != present)) {
        i++;
    }
    if (i == TN_DICT_SETS_MAX) {
        return tn_fail(err, TN_E_LIMIT, "more than %d sets of segments", TN_DICT_SETS_MAX);
    }
    if (i == p->n_sets) {
        size_t bytes = (n_groups + 1) * sizeof(uint64_t);
        TN_TRY(tn_arena_reserve(p->arena, bytes, "a dictionary", err));
        p->set[i] = (tn_dict_set){.layout = layout, .present = present};
        p->set[i].group_rows = TN_NEW_ARRAY(p->arena, uint64_t, n_groups);
        p->n_sets++;
    }
    *out = (uint16_t)i;
    return TN_OK;
}

tn_status tn_dict_plan_set(tn_dict_plan *p, const tn_dict_entry *e, uint16_t *out, tn_error *err)
{
    return e->removed ? find_set(p, 0, 0, out, err)
                      : find_set(p, p->layout_of[p->spec->layout->group[e->group].record],
                                 e->present, out, err);
}

static uint32_t bits_in(uint16_t present)
{
    return (uint32_t)__builtin_popcount(present);
}

/* Sets in the order of their tables: by layout, removed keys last, then by rows, by segments. */
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
    for (uint32_t i = 0; i < p->n_sets; i++) {
        uint32_t k = i;
        for (; k > 0 && comes_first(&p->set[i], &p->set[p->order[k - 1]]); k--) {
            p->order[k] = p->order[k - 1];
        }
        p->order[k] = (uint16_t)i;
    }
}

static uint16_t all_of(const tn_dict_plan *p, uint32_t layout)
{
    return (uint16_t)((1U << p->spec->layout->record[layout].n_segments) - 1);
}

/* Lays out the rows of a table. The scale of a kind lies right before its first segment. */
static void lay_out(tn_dict_plan *p, tn_dict_plan_table *t)
{
    const tn_record *record = &p->spec->layout->record[t->set->layout];
    tn_dict_table_head *h = &t->head;
    uint32_t scale[TN_DICT_TYPES] = {0}; /* 1 + the place of the scale; 0: none yet */
    h->kind = t->set->present == 0 ? TN_DICT_REMOVED : 0;
    t->is_run = true;
    for (uint32_t s = 0; s < record->n_segments; s++) {
        if ((t->set->present >> s & 1) == 0) {
            continue;
        }
        const tn_segment *from = &record->segment[s];
        const tn_dict_type type = tn_dict_type_for(p->spec->type, from->dim);
        const uint32_t bytes = tn_dict_bytes(type, from->dim);
        const bool scaled = tn_dict_is_scaled(type);
        if (scaled && scale[type] == 0) {
            scale[type] = h->stride + 1;
            h->stride += (uint32_t)sizeof(float);
        }
        h->segment[h->n_segments] = (tn_dict_segment_head){
            .offset = h->stride,
            .scale = scaled ? scale[type] - 1 : TN_DICT_NO_SCALE,
            .dim = (uint16_t)from->dim,
            .type = (uint8_t)type,
            .segment = (uint8_t)find_name(p->segment, p->n_segments, from->name)};
        t->column[h->n_segments++] = (tn_dict_column){.at = from->at, .of_record = s};
        t->is_run &= type == TN_DICT_F32 && from->at - t->column[0].at == h->stride / sizeof(float);
        t->has_gaps |= tn_dict_padded(bytes) != bytes;
        h->stride += tn_dict_padded(bytes);
        p->has_new_types |= type > TN_DICT_INT8;
    }
}

static uint32_t places_of(const tn_dict_plan *p)
{
    return TN_DICT_GROUP_TABLES - (p->spec->delta ? 1 : 0); /* one for removed keys */
}

/* Adds the whole record to the sets of each layout that has more sets than tables. */
static tn_status add_whole_records(tn_dict_plan *p, tn_error *err)
{
    for (uint32_t r = 0; r < p->spec->layout->n_records; r++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < p->n_sets; i++) {
            n += p->set[i].layout == r && p->set[i].present != 0;
        }
        p->crowded[r] = n > places_of(p);
        if (p->crowded[r]) {
            uint16_t whole = 0;
            TN_TRY(find_set(p, r, all_of(p, r), &whole, err));
        }
    }
    return TN_OK;
}

/* The smallest table of the layout that contains s; p->head.n_tables: none. */
static uint32_t smallest_around(const tn_dict_plan *p, const tn_dict_set *s)
{
    uint32_t best = p->head.n_tables;
    for (uint32_t t = 0; t < p->head.n_tables; t++) {
        const tn_dict_set *o = p->table[t].set;
        if (o->layout == s->layout && o->present != 0 && (o->present & s->present) == s->present &&
            (best == p->head.n_tables ||
             bits_in(o->present) < bits_in(p->table[best].set->present))) {
            best = t;
        }
    }
    return best;
}

/* Gives a table to the most frequent sets of a crowded layout and to the whole record; rows of
 * other sets go to the smallest table that contains them. */
static void choose_tables(tn_dict_plan *p)
{
    uint32_t made = 0;
    bool made_all = false;
    for (uint32_t i = 0; i < p->n_sets; i++) {
        tn_dict_set *s = &p->set[p->order[i]];
        bool all = s->present == all_of(p, s->layout);
        s->table = UINT32_MAX;
        if (i == 0 || s->layout != p->set[p->order[i - 1]].layout) {
            made = 0;
            made_all = false;
        }
        if (s->present == 0 || all || !p->crowded[s->layout] ||
            made + (made_all ? 0 : 1) < places_of(p)) {
            made_all |= all;
            made++;
            s->table = p->head.n_tables++;
            p->table[s->table].set = s;
            lay_out(p, &p->table[s->table]);
        }
    }
    for (uint32_t i = 0; i < p->n_sets; i++) {
        tn_dict_set *s = &p->set[i];
        s->table = s->table == UINT32_MAX ? smallest_around(p, s) : s->table;
        TN_ASSERT(s->table < p->head.n_tables);
        p->table[s->table].head.rows += s->rows;
        p->head.rows += s->rows;
    }
}

/* Returns the smallest key of a partition; after the last one 0, which means 2^64. */
static uint64_t first_key(uint32_t partition, uint32_t partitions)
{
    uint64_t high = (((uint64_t)partition << 32) + partitions - 1) / partitions;
    return high << 32;
}

static void plan_buckets(const tn_dict_spec *s, tn_dict_table_head *t)
{
    t->key_base = first_key(s->first, s->partitions);
    uint64_t range = first_key(s->last + 1, s->partitions) - 1 - t->key_base;
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

/* The header, and where all that follows it lies. */
static void place_all(tn_dict_plan *p)
{
    const tn_dict_spec *s = p->spec;
    tn_dict_header *h = &p->head;
    *h = (tn_dict_header){
        .magic = TN_DICT_MAGIC,
        .major = 1,
        .minor = p->has_new_types ? TN_DICT_MINOR : 0,
        .header_bytes = sizeof *h,
        .rows = h->rows,
        .groups_at = sizeof *h,
        .n_groups = s->layout->n_groups,
        .n_tables = h->n_tables,
        .json_bytes = (uint32_t)strlen(s->json),
        .flags = (s->delta ? (uint32_t)TN_DICT_DELTA : 0) |
                 (s->check_groups ? (uint32_t)TN_DICT_GROUP_ARRAYS : 0),
        .partitions = (uint16_t)s->partitions,
        .first = (uint16_t)s->first,
        .last = (uint16_t)s->last,
        .chunk_log = TN_DICT_CHUNK_LOG,
    };
    memcpy(h->model_id, s->model_id, sizeof h->model_id);
    memcpy(h->base_id, s->base_id, s->delta ? sizeof h->base_id : 0);
    h->names_at = h->groups_at + h->n_groups * sizeof(tn_dict_group_head) +
                  h->n_tables * sizeof(tn_dict_table_head);
    h->json_at = h->names_at;
    for (uint32_t g = 0; g < h->n_groups; g++) {
        h->json_at += strlen(s->layout->group[g].name) + 1;
    }
    uint64_t at = h->json_at + h->json_bytes;
    for (uint32_t i = 0; i < h->n_tables; i++) {
        tn_dict_table_head *t = &p->table[i].head;
        plan_buckets(s, t);
        t->start_at = aligned(at);
        t->key_at = aligned(t->start_at + ((uint64_t)t->buckets + 1) * sizeof(uint32_t));
        t->rows_at = aligned(t->key_at + t->rows * sizeof(uint64_t));
        at = t->rows_at + t->rows * t->stride;
        if (s->check_groups) {
            t->group_at = aligned(at);
            at = t->group_at + t->rows * sizeof(uint16_t);
        }
    }
    h->crc_at = aligned(at);
    h->n_crcs = (uint32_t)((h->crc_at - sizeof *h + TN_DICT_CHUNK - 1) / TN_DICT_CHUNK);
    h->file_bytes = h->crc_at + ((uint64_t)h->n_crcs + 1) * sizeof(uint32_t);
    h->crc = tn_crc32c(0, h, offsetof(tn_dict_header, crc));
}

tn_status tn_dict_plan_tables(tn_dict_plan *p, tn_error *err)
{
    TN_TRY(add_whole_records(p, err));
    sort_sets(p);
    size_t bytes = (p->n_sets + 1) * sizeof *p->table;
    TN_TRY(tn_arena_reserve(p->arena, bytes, "a dictionary", err));
    p->table = TN_NEW_ARRAY(p->arena, tn_dict_plan_table, p->n_sets);
    choose_tables(p);
    for (uint32_t i = 0; i < p->head.n_tables; i++) {
        if (p->table[i].head.rows > UINT32_MAX) {
            return tn_fail(err, TN_E_LIMIT, "more than %u rows in a table of a dictionary",
                           UINT32_MAX);
        }
    }
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
    for (uint32_t t = 0; t < p->head.n_tables; t++) {
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

void tn_dict_plan_head(const tn_dict_plan *p, tn_text *out)
{
    const tn_share_group *group = p->spec->layout->group;
    uint32_t name_at = 0;
    tn_text_add(out, &p->head, sizeof p->head);
    for (uint32_t g = 0; g < p->head.n_groups; g++) {
        tn_dict_group_head h = {
            .salt = group[g].salt,
            .name_at = name_at,
            .name_bytes = (uint16_t)strlen(group[g].name),
        };
        h.n_tables = (uint8_t)tables_of(p, g, h.table);
        name_at += h.name_bytes + 1U;
        tn_text_add(out, &h, sizeof h);
    }
    for (uint32_t i = 0; i < p->head.n_tables; i++) {
        tn_text_add(out, &p->table[i].head, sizeof p->table[i].head);
    }
    for (uint32_t g = 0; g < p->head.n_groups; g++) {
        tn_text_add(out, group[g].name, strlen(group[g].name) + 1);
    }
}
