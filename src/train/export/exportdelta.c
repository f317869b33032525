/* exportdelta.c - see exportdelta.h: two ascending lists, merged, a partition at a time. */
#include "train/export/exportdelta.h"

#include "base/core/alloc.h"
#include "base/keys/keyset.h" /* tn_partition_of */

#include <string.h>

struct tn_export_delta {
    tn_dict_stack base;
    const tn_layout *layout;
    tn_dict_type type;
    uint32_t *number; /* per record * TN_SEGMENTS_MAX: the file's number of the segment */
    tn_dict_live *live;
    uint64_t n_live;
    const tn_dict_source *all;
};

/* One walk over a partition. */
typedef struct merge {
    const tn_export_delta *d;
    uint64_t next, end; /* of live */
    tn_dict_visit *visit;
    void *visitor;
    float mine[TN_DIM_MAX], theirs[TN_DIM_MAX];
    char bits[TN_DIM_MAX * sizeof(float)];
} merge;

static tn_status check_groups(const tn_export_delta *d, const char *path, tn_error *err)
{
    const tn_dict *top = d->base.layer[0];
    bool same = tn_dict_about_of(top).n_groups == d->layout->n_groups;
    for (uint32_t g = 0; same && g < d->layout->n_groups; g++) {
        same = tn_dict_salt(top, g) == d->layout->group[g].salt &&
               strcmp(tn_dict_group_name(top, g), d->layout->group[g].name) == 0;
    }
    return same
               ? TN_OK
               : tn_fail(err, TN_E_CKPT,
                         "'%s' is of a model with other slots\nhint: export all of this one", path);
}

static tn_status number_segments(tn_export_delta *d, tn_error *err)
{
    const char *names[TN_SEGMENTS_MAX];
    uint32_t n = 0;
    TN_TRY(tn_dict_segments(d->layout, names, &n, err));
    for (uint32_t r = 0; r < d->layout->n_records; r++) {
        const tn_record *record = &d->layout->record[r];
        for (uint32_t s = 0; s < record->n_segments; s++) {
            uint32_t k = 0;
            while (strcmp(names[k], record->segment[s].name) != 0) {
                k++;
            }
            d->number[r * TN_SEGMENTS_MAX + s] = k;
        }
    }
    return TN_OK;
}

static tn_status open_base(tn_export_delta *d, const char *base, tn_dict_spec *spec, tn_error *err)
{
    size_t n = ((size_t)spec->layout->n_records + 1) * TN_SEGMENTS_MAX;
    d->number = tn_try_alloc(n, sizeof *d->number, "a delta", err);
    if (d->number == NULL) {
        return TN_E_MEMORY;
    }
    TN_TRY(tn_dict_stack_open(&d->base, base, "dict.tnd", TN_VERIFY_FULL, err));
    if (d->base.n > TN_DICT_DELTAS_MAX) {
        return tn_fail(err, TN_E_CKPT,
                       "'%s' is the last of %d deltas, more are not read\nhint: export all of it",
                       base, TN_DICT_DELTAS_MAX);
    }
    if (!spec->check_groups) {
        return tn_fail(err, TN_E_CONFIG, "a delta needs export.check_groups: true");
    }
    TN_TRY(check_groups(d, base, err));
    TN_TRY(number_segments(d, err));
    const uint8_t *id = tn_dict_about_of(d->base.layer[0]).model_id;
    if (memcmp(id, spec->model_id, TN_MODEL_ID_BYTES) == 0) {
        return tn_fail(err, TN_E_CONFIG, "'%s' is this very model: nothing has changed", base);
    }
    memcpy(spec->base_id, id, TN_MODEL_ID_BYTES);
    spec->delta = true;
    return tn_dict_stack_list(&d->base, &d->live, &d->n_live, err);
}

tn_status tn_export_delta_open(tn_export_delta **out, const char *base, tn_dict_spec *spec,
                               tn_error *err)
{
    *out = NULL;
    tn_export_delta *d = tn_try_alloc(1, sizeof *d, "a delta", err);
    if (d == NULL) {
        return TN_E_MEMORY;
    }
    d->layout = spec->layout;
    d->type = spec->type;
    tn_status status = open_base(d, base, spec, err);
    if (status != TN_OK) {
        tn_export_delta_close(d);
        return status;
    }
    *out = d;
    return TN_OK;
}

void tn_export_delta_close(tn_export_delta *d)
{
    if (d != NULL) {
        tn_dict_stack_close(&d->base);
        tn_free(d->number);
        tn_free(d->live);
        tn_free(d);
    }
}

/* Whether the dictionary would hold the same values of one segment as the base does. */
static bool same_segment(merge *m, const tn_dict_entry *e, uint32_t s, const tn_dict_row *row)
{
    const tn_export_delta *d = m->d;
    uint32_t record = d->layout->group[e->group].record;
    const tn_segment *segment = &d->layout->record[record].segment[s];
    uint32_t number = d->number[record * TN_SEGMENTS_MAX + s];
    bool there = tn_dict_get(row, number, segment->dim, m->theirs);
    bool wanted = (e->present >> s & 1) != 0;
    if (!wanted || !there) {
        return wanted == there;
    }
    const float *values = tn_dict_values(e, s, segment->at);
    float scale = tn_dict_encode(d->type, segment->dim, values, m->bits);
    tn_dict_decode(d->type, segment->dim, m->bits, scale, m->mine);
    return memcmp(m->mine, m->theirs, segment->dim * sizeof *m->mine) == 0;
}

static tn_status changed(merge *m, const tn_dict_entry *e, bool *out, tn_error *err)
{
    const tn_export_delta *d = m->d;
    const tn_dict_query query = {e->key, e->group};
    tn_dict_row row;
    TN_TRY(tn_dict_stack_find(&d->base, 1, &query, &row, err));
    const tn_record *record = tn_record_of(d->layout, e->group);
    *out = row.at == NULL;
    for (uint32_t s = 0; s < record->n_segments && !*out; s++) {
        *out = !same_segment(m, e, s, &row);
    }
    return TN_OK;
}

/* Keys of the base before (key, group) have no row any more. */
static tn_status remove_before(merge *m, uint64_t key, uint32_t group, tn_error *err)
{
    while (m->next < m->end) {
        const tn_dict_live *l = &m->d->live[m->next];
        if (l->key > key || (l->key == key && l->group >= group)) {
            break;
        }
        const tn_dict_entry gone = {.key = l->key, .group = (uint16_t)l->group, .removed = true};
        m->next++;
        TN_TRY(m->visit(m->visitor, &gone, err));
    }
    return TN_OK;
}

static tn_status sift(void *arg, const tn_dict_entry *e, tn_error *err)
{
    merge *m = arg;
    bool differs = false;
    if (e->present == 0) {
        return TN_OK; /* not in the dictionary: like a row that is gone */
    }
    TN_TRY(remove_before(m, e->key, e->group, err));
    if (m->next < m->end) {
        const tn_dict_live *l = &m->d->live[m->next];
        m->next += l->key == e->key && l->group == e->group;
    }
    TN_TRY(changed(m, e, &differs, err));
    return differs ? m->visit(m->visitor, e, err) : TN_OK;
}

/* The first key of the base that is in this partition or behind it. */
static uint64_t first_of(const tn_export_delta *d, uint32_t partition)
{
    uint64_t from = 0;
    uint64_t to = d->n_live;
    while (from < to) {
        uint64_t middle = from + (to - from) / 2;
        if (tn_partition_of(d->live[middle].key, d->all->n_pieces) < partition) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

static tn_status walk(void *arg, uint32_t piece, tn_dict_visit *visit, void *visitor, tn_error *err)
{
    const tn_export_delta *d = arg;
    merge *m = tn_try_alloc(1, sizeof *m, "a delta", err);
    if (m == NULL) {
        return TN_E_MEMORY;
    }
    m->d = d;
    m->next = first_of(d, piece);
    m->end = first_of(d, piece + 1);
    m->visit = visit;
    m->visitor = visitor;
    tn_status status = d->all->walk(d->all->arg, piece, sift, m, err);
    if (status == TN_OK) {
        status = remove_before(m, UINT64_MAX, UINT32_MAX, err);
    }
    tn_free(m);
    return status;
}

tn_dict_source tn_export_delta_source(tn_export_delta *d, const tn_dict_source *all)
{
    d->all = all;
    return (tn_dict_source){.n_pieces = all->n_pieces, .walk = walk, .arg = d};
}
