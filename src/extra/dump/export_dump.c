/* export_dump.c - dict.tsv of an export: the rows of the table as text. */
#include "base/core/arena.h"
#include "base/file/file.h"
#include "base/math/key.h"
#include "base/thread/ordered_work.h"
#include "extra/dump/row_columns.h"
#include "ps/policy/admission.h"
#include "train/config/export_files.h"
#include "train/config/run.h"
#include "train/export/exportrows.h"
#include "train/step/model_plan.h"

typedef struct dump_job {
    const tn_export_rows *rows;
    const tn_row_columns *columns;
    tn_dump_head head;
    tn_file *file;
    uint64_t n; /* rows */
} dump_job;

/* A partition's lines. */
typedef struct dump_hand {
    const dump_job *job;
    tn_text lines;
    uint64_t n;
    tn_dump_value value[TN_DUMP_COLUMNS_MAX];
} dump_hand;

static tn_status print_row(void *arg, const tn_row_view *row, tn_error *err)
{
    dump_hand *h = arg;
    const dump_job *j = h->job;
    const bool states = j->rows->plan->run->export.state; /* the file restores rows exactly */
    const uint16_t present = states ? row->present : tn_admission_segments(j->rows->table, row);
    if (present == 0 && !states) {
        return TN_OK;
    }
    const tn_share_group *group = &j->rows->plan->layout->group[row->group];
    const uint16_t late = j->rows->plan->layout->record[group->record].waits;
    const bool waits = (row->present & late) != late;
    for (uint32_t c = 0; c < j->columns->n; c++) {
        const tn_row_place *p = tn_row_place_of(j->columns, row->group, c);
        bool there = p->n > 0 && (present >> p->segment & 1) != 0;
        const uint32_t at = waits ? p->at_waiting : p->at;
        h->value[c] = there ? (tn_dump_value){row->data + at, p->n} : (tn_dump_value){NULL, 0};
    }
    h->n++;
    tn_dump_row out = {
        .group = group->name,
        .sign = tn_sign_of(row->key, group->salt),
        .show = row->show,
        .click = row->click,
        .last_seen = row->last_seen,
        .value = h->value,
    };
    return tn_dump_print(&j->head, &out, &h->lines, err);
}

static tn_status print_partition(void *job, uint32_t piece, void *hand, tn_error *err)
{
    dump_hand *h = hand;
    h->job = job;
    h->n = 0;
    tn_text_clear(&h->lines);
    return tn_export_walk(h->job->rows, piece, print_row, h, err);
}

static tn_status put_partition(void *job, uint32_t piece, void *hand, tn_error *err)
{
    (void)piece;
    dump_job *j = job;
    const dump_hand *h = hand;
    j->n += h->n;
    TN_TRY(tn_text_check(&h->lines, "lines of a dump", err));
    return tn_file_write(j->file, tn_text_str(&h->lines), h->lines.size, err);
}

static void drop_lines(void *hand)
{
    dump_hand *h = hand;
    tn_text_done(&h->lines);
}

static tn_status dump_all(dump_job *j, const char *path, tn_export_done *out, tn_error *err)
{
    TN_ASSERT(j->columns->n <= TN_DUMP_COLUMNS_MAX);
    j->head = (tn_dump_head){
        .model_id = j->rows->model_id, .n = j->columns->n, .column = j->columns->column};
    TN_TRY(tn_dump_create(&j->file, path, &j->head, err));
    const tn_inorder how = {.job = j,
                            .n = TN_PARTITIONS,
                            .hand_bytes = sizeof(dump_hand),
                            .make = print_partition,
                            .join = put_partition,
                            .drop = drop_lines};
    tn_status status = tn_inorder_run(&how, j->rows->team, err);
    if (status != TN_OK) {
        tn_file_abandon(j->file);
        return status;
    }
    out->rows = j->n;
    out->bytes = tn_file_size(j->file);
    out->crc = tn_file_crc(j->file);
    return tn_file_commit(j->file, err);
}

/* With optimizer state when export.state is true. Memory: the lines of a partition for each thread.
 */
static tn_status export_dump(const tn_export_rows *r, const char *path, tn_export_done *out,
                             tn_error *err)
{
    tn_arena *arena = tn_arena_new(1 << 16);
    dump_job job = {.rows = r};
    tn_status status = tn_row_columns_new(&job.columns, r->table, r->plan->layout,
                                          r->plan->run->export.state, arena, err);
    if (status == TN_OK) {
        status = dump_all(&job, path, out, err);
    }
    tn_arena_free(arena);
    return status;
}

extern const tn_export_file tn_export_file_tsv;
const tn_export_file tn_export_file_tsv = {
    .word = "tsv", .name = "dict.tsv", .of_table = export_dump};
