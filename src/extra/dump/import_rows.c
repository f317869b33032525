/* import_rows.c - reads rows of a dump into a worker: which column is which, what a row lacks. */
#include "base/math/key.h"
#include "config/tree.h"
#include "extra/dump/row_columns.h"
#include "train/begin/begun.h"
#include "train/begin/import.h"
#include "train/begin/incoming_row.h"
#include "train/begin/weight_source.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <string.h>

typedef struct rows_job {
    const char *path;
    tn_worker *w;
    const tn_row_columns *columns;
    tn_dump *dump;
    uint32_t *file_column; /* per column of ours: that of the file, or NOWHERE */
    bool *fresh;           /* per column: the file has no states of this segment */
    tn_incoming row;
} rows_job;

#define NOWHERE UINT32_MAX

static uint32_t find_column(const tn_dump_head *head, const char *name)
{
    for (uint32_t i = 0; i < head->n; i++) {
        if (strcmp(head->column[i].name, name) == 0) {
            return i;
        }
    }
    return NOWHERE;
}

/* A segment whose states the file does not hold at all starts fresh; some of them are a misfit. */
static tn_status match_columns(rows_job *j, tn_arena *arena, tn_error *err)
{
    const tn_row_columns *c = j->columns;
    const tn_dump_head *head = tn_dump_head_of(j->dump);
    uint32_t *have = TN_NEW_ARRAY(arena, uint32_t, c->n); /* states of the segment */
    tn_misfits m = {0};
    for (uint32_t i = 0; i < c->n; i++) {
        const bool is_weights = c->weights[i] == i;
        const uint32_t k = find_column(head, c->column[i].name);
        j->file_column[i] = k;
        if (k == NOWHERE && is_weights) {
            tn_misfits_add(&m, "no column", c->column[i].name);
        } else if (k != NOWHERE && c->column[i].whole) {
            tn_dump_set_whole(j->dump, k);
        }
        have[c->weights[i]] += k != NOWHERE && !is_weights;
    }
    for (uint32_t i = 0; i < c->n; i++) {
        j->fresh[i] = have[c->weights[i]] == 0;
        if (c->weights[i] != i && !j->fresh[i] && j->file_column[i] == NOWHERE) {
            tn_misfits_add(&m, "no column", c->column[i].name);
        }
    }
    for (uint32_t k = 0; k < head->n; k++) {
        uint32_t i = 0;
        while (i < c->n && strcmp(c->column[i].name, head->column[k].name) != 0) {
            i++;
        }
        if (i == c->n) {
            tn_misfits_add(&m, "nothing takes column", head->column[k].name);
        }
    }
    return tn_misfits_fail(&m, j->path, err);
}

static tn_status bad_row(const rows_job *j, const char *what, const char *name, tn_error *err)
{
    return tn_fail(err, TN_E_CKPT, "%s:%llu: error: %s '%s'", j->path,
                   (unsigned long long)tn_dump_line(j->dump), what, name);
}

static uint32_t find_group(const tn_layout *layout, const char *name)
{
    uint32_t g = 0;
    while (g < layout->n_groups && strcmp(layout->group[g].name, name) != 0) {
        g++;
    }
    return g;
}

static tn_status take_column(const rows_job *j, const tn_dump_row *row, uint32_t group,
                             uint32_t column, tn_error *err)
{
    const tn_row_place *p = tn_row_place_of(j->columns, group, column);
    uint32_t k = j->file_column[column];
    if (k == NOWHERE) {
        return TN_OK; /* states that start fresh */
    }
    const tn_dump_value *v = &row->value[k];
    if (v->n != p->n && !(v->n == 0 && p->n > 0)) {
        return bad_row(j, "another number of values than the model has in",
                       j->columns->column[column].name, err);
    }
    if (v->n > 0) {
        memcpy(j->row.data + p->at, v->at, v->n * sizeof *v->at);
    }
    return TN_OK;
}

/* A state that the file has not for a segment whose weights are there. */
static bool lacks_states(const rows_job *j, const tn_dump_row *row, uint32_t group,
                         uint32_t weights)
{
    TN_ASSERT(weights < j->columns->n && j->file_column[weights] != NOWHERE);
    const tn_row_columns *c = j->columns;
    const tn_row_place *w = tn_row_place_of(c, group, weights);
    if (j->fresh[weights] || row->value[j->file_column[weights]].n == 0) {
        return true;
    }
    for (uint32_t i = 0; i < c->n; i++) {
        const tn_row_place *p = tn_row_place_of(c, group, i);
        if (p->n > 0 && p->segment == w->segment && p->state != TN_STATES_MAX &&
            row->value[j->file_column[i]].n == 0) {
            return true;
        }
    }
    return false;
}

static tn_status take_row(rows_job *j, const tn_dump_row *row, tn_error *err)
{
    const tn_row_columns *c = j->columns;
    uint32_t group = find_group(c->layout, row->group);
    if (group == c->layout->n_groups) {
        return bad_row(j, "the model has no group", row->group, err);
    }
    const bool waits = tn_record_of(c->layout, group)->waits != 0;
    uint16_t present = 0;
    tn_incoming_begin(&j->row, group);
    for (uint32_t i = 0; i < c->n; i++) {
        TN_TRY(take_column(j, row, group, i, err));
    }
    for (uint32_t i = 0; i < c->n; i++) {
        const tn_row_place *p = tn_row_place_of(c, group, i);
        if (p->n > 0 && p->state == TN_STATES_MAX) {
            const bool there = !waits || row->value[j->file_column[i]].n > 0;
            present |= (uint16_t)((uint32_t)there << p->segment);
            if (lacks_states(j, row, group, i)) {
                tn_incoming_fresh(&j->row, group, p->segment);
            }
        }
    }
    tn_row_view view = {
        .key = tn_key_of(row->sign, c->layout->group[group].salt),
        .group = (uint16_t)group,
        .present = present,
        .last_seen = row->last_seen,
        .show = row->show,
        .click = row->click,
    };
    return tn_incoming_put(&j->row, &view, err);
}

static tn_status read_rows(rows_job *j, tn_arena *arena, tn_error *err)
{
    const tn_layout *layout = j->w->plan->layout;
    TN_TRY(tn_row_columns_new(&j->columns, j->w->shard.table, layout, true, arena, err));
    TN_TRY(tn_dump_open(&j->dump, j->path, err));
    j->file_column = TN_NEW_ARRAY(arena, uint32_t, j->columns->n);
    j->fresh = TN_NEW_ARRAY(arena, bool, j->columns->n);
    TN_TRY(tn_incoming_open(&j->row, j->w, err));
    TN_TRY(match_columns(j, arena, err));
    const tn_dump_row *row = NULL;
    tn_status status = TN_OK;
    while ((status = tn_dump_next(j->dump, &row, err)) == TN_OK) {
        TN_TRY(take_row(j, row, err));
    }
    return status == TN_END ? TN_OK : status;
}

static tn_status take_dump(const tn_tree *from, tn_worker *w, tn_begun *begun, tn_error *err)
{
    tn_arena *arena = tn_arena_new(1 << 16);
    rows_job job = {.path = tn_tree_get(from, "rows")->text, .w = w};
    tn_status status = read_rows(&job, arena, err);
    tn_dump_close(job.dump);
    tn_incoming_done(&job.row);
    tn_arena_free(arena);
    if (status == TN_OK) {
        tn_begun_add(begun, "rows", "all", TN_BEGUN_TAKEN, "'%s'", job.path);
    }
    return status;
}

extern const tn_weight_source tn_weight_source_dump;
const tn_weight_source tn_weight_source_dump = {.key = "rows", .take = take_dump};
