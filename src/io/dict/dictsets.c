/* dictsets.c - which sets of segments the rows of a dictionary have; see dictplan.h. */
#include "io/dict/dictplan.h"

#include "base/core/alloc.h"

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

tn_status tn_dict_plan_new(tn_dict_plan **out, const tn_dict_spec *spec, tn_error *err)
{
    *out = NULL;
    tn_dict_plan *p = tn_try_alloc(1, sizeof *p, "a dictionary", err);
    if (p == NULL) {
        return TN_E_MEMORY;
    }
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
