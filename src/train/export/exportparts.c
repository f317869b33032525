/* exportparts.c - see exportparts.h. */
#include "train/export/exportparts.h"

#include "base/file/file.h"
#include "train/checkpoint/ckptfiles.h"

#include <stdio.h>
#include <string.h>

tn_status tn_export_parts_init(tn_export_parts *p, const tn_worker *w, uint64_t step,
                               const char *folder, tn_arena *arena, tn_error *err)
{
    const tn_row_schema schema = tn_ckpt_row_schema(w, arena);
    *p = (tn_export_parts){.folder = folder,
                           .owners = &w->plan->owners,
                           .rank = w->rank,
                           .layout = tn_row_schema_layout(&schema, arena),
                           .head = {.step = step, .partitions = TN_PARTITIONS}};
    return tn_row_schema_hash(&schema, p->head.schema, err);
}

/* The head of a rank's file, and where it is. */
static tn_status file_of(const tn_export_parts *p, uint32_t rank, tn_snapshot_head *head,
                         char path[TN_PATH_SIZE], tn_error *err)
{
    char name[32];
    *head = p->head;
    head->first = p->owners->from[rank];
    head->last = p->owners->from[rank + 1] - 1;
    (void)snprintf(name, sizeof name, "rows-%u.tns", rank);
    return tn_path_join(p->folder, name, path, err);
}

/* ---- writing ---- */

typedef struct writing {
    const tn_export_rows *rows;
    tn_snapshot_writer *to;
} writing;

static tn_status write_row(void *arg, const tn_row_view *row, tn_error *err)
{
    const writing *w = arg;
    if (!tn_export_keeps(w->rows, row)) {
        return TN_OK;
    }
    const tn_snapshot_row out = {.key = row->key,
                                 .group = row->group,
                                 .present = row->present,
                                 .last_seen = row->last_seen,
                                 .show = row->show,
                                 .click = row->click,
                                 .values = row->data,
                                 .n_values = row->n_floats};
    return tn_snapshot_add(w->to, &out, err);
}

tn_status tn_export_part_write(const tn_export_parts *p, const tn_export_rows *r, tn_error *err)
{
    tn_snapshot_head head;
    char path[TN_PATH_SIZE];
    writing w = {.rows = r};
    TN_TRY(file_of(p, p->rank, &head, path, err));
    TN_TRY(tn_snapshot_create(&w.to, path, &head, err));
    tn_status status = TN_OK;
    for (uint32_t i = head.first; i <= head.last && status == TN_OK; i++) {
        status = tn_snapshot_begin(w.to, i, err);
        if (status == TN_OK) {
            status = tn_export_walk(r, i, write_row, &w, err);
        }
    }
    if (status != TN_OK) {
        tn_snapshot_abandon(w.to);
        return status;
    }
    tn_snapshot_done done;
    return tn_snapshot_commit(w.to, &done, err);
}

/* ---- reading ---- */

typedef struct reading {
    tn_row_visit *visit;
    void *arg;
} reading;

static tn_status give_row(void *arg, const tn_snapshot_row *row, tn_error *err)
{
    const reading *r = arg;
    const tn_row_view view = {.key = row->key,
                              .group = row->group,
                              .present = row->present,
                              .last_seen = row->last_seen,
                              .show = row->show,
                              .click = row->click,
                              .data = row->values,
                              .n_floats = row->n_values};
    return r->visit(r->arg, &view, err);
}

static uint32_t owner_of(const tn_export_parts *p, uint32_t partition)
{
    uint32_t rank = 0;
    while (p->owners->from[rank + 1] <= partition) {
        rank++;
    }
    return rank;
}

bool tn_export_part_is_other(const tn_export_parts *p, uint32_t partition)
{
    return owner_of(p, partition) != p->rank;
}

static bool is_expected(const tn_snapshot_head *have, const tn_snapshot_head *want)
{
    return have->step == want->step && have->first == want->first && have->last == want->last &&
           have->partitions == want->partitions && !have->delta &&
           memcmp(have->schema, want->schema, sizeof have->schema) == 0;
}

/* Opening takes some 100 us, little beside the rows of a partition; a handle of its own lets walks
 * run side by side. */
tn_status tn_export_part_walk(const tn_export_parts *p, uint32_t partition, tn_row_visit *visit,
                              void *arg, tn_error *err)
{
    tn_snapshot_head head;
    char path[TN_PATH_SIZE];
    tn_snapshot *from = NULL;
    reading r = {visit, arg};
    TN_TRY(file_of(p, owner_of(p, partition), &head, path, err));
    TN_TRY(tn_snapshot_open(&from, path, err));
    tn_status status = is_expected(tn_snapshot_head_of(from), &head)
                           ? tn_snapshot_read(from, partition, p->layout, give_row, &r, err)
                           : tn_fail(err, TN_E_CKPT, "'%s' holds rows of another model", path);
    tn_snapshot_close(from);
    return status;
}

tn_status tn_export_parts_remove(const tn_export_parts *p, tn_error *err)
{
    for (uint32_t r = 0; r < p->owners->n_peers; r++) {
        if (r != p->rank) {
            tn_snapshot_head head;
            char path[TN_PATH_SIZE];
            TN_TRY(file_of(p, r, &head, path, err));
            TN_TRY(tn_remove_file(path, err));
        }
    }
    return TN_OK;
}
