/* ckptwrite.c - writing the files of a checkpoint; see ckptparts.h. */
#include "train/checkpoint/ckptparts.h"

#include "base/file/file.h"
#include "base/file/safetensors.h"

#include <stdio.h>
#include <string.h>

/* Commits a file, or abandons it when writing failed. */
static tn_status finish(tn_ckpt_part *part, tn_file *file, tn_status status, tn_error *err)
{
    if (status != TN_OK) {
        tn_file_abandon(file);
        return status;
    }
    part->file.bytes = tn_file_size(file);
    part->file.crc = tn_file_crc(file);
    return tn_file_commit(file, err);
}

tn_status tn_ckpt_write_text(void *part, const char *path, tn_error *err)
{
    tn_ckpt_part *p = part;
    tn_file *file = NULL;
    TN_TRY(tn_file_create(&file, path, err));
    return finish(p, file, tn_file_write(file, tn_text_str(p->text), p->text->size, err), err);
}

/* ---- table ---- */

static void describe_segment(const tn_worker *w, uint32_t group, uint32_t s, tn_row_segment *out)
{
    const tn_layout *layout = w->plan->layout;
    const tn_segment *segment = &tn_record_of(layout, group)->segment[s];
    const tn_rule *rule = &w->plan->rules->rule[group * TN_SEGMENTS_MAX + s];
    *out = (tn_row_segment){
        .name = segment->name, .optimizer = rule->optim->choice.name, .dim = segment->dim};
    tn_state state[TN_STATES_MAX];
    out->n_states = rule->optim->states(rule->opts, state);
    for (uint32_t k = 0; k < out->n_states; k++) {
        out->state[k] = (tn_row_state){.name = state[k].name,
                                       .words = state[k].per_row ? 1 : segment->dim,
                                       .count = state[k].count};
    }
}

tn_row_schema tn_ckpt_row_schema(const tn_worker *w, tn_arena *arena)
{
    const tn_layout *layout = w->plan->layout;
    tn_row_record *record = TN_NEW_ARRAY(arena, tn_row_record, layout->n_records);
    tn_row_group *group = TN_NEW_ARRAY(arena, tn_row_group, layout->n_groups);
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        const tn_share_group *from = &layout->group[g];
        group[g] = (tn_row_group){from->name, from->salt, from->record};
        tn_row_record *r = &record[from->record];
        r->n_segments = layout->record[from->record].n_segments;
        for (uint32_t s = 0; s < r->n_segments; s++) {
            describe_segment(w, g, s, &r->segment[s]);
        }
    }
    return (tn_row_schema){.partitions = TN_PARTITIONS,
                           .n_records = layout->n_records,
                           .n_groups = layout->n_groups,
                           .record = record,
                           .group = group};
}

static tn_status write_row(void *arg, const tn_row_view *row, tn_error *err)
{
    tn_snapshot_row out = {
        .key = row->key,
        .group = row->group,
        .present = row->present,
        .last_seen = row->last_seen,
        .show = row->show,
        .click = row->click,
        .values = row->data,
        .n_values = row->n_floats,
    };
    return tn_snapshot_add(arg, &out, err);
}

static tn_status write_partitions(tn_snapshot_writer *writer, const tn_ckpt_part *p, tn_error *err)
{
    for (uint32_t i = p->head->first; i <= p->head->last; i++) {
        TN_TRY(tn_snapshot_begin(writer, i, err));
        TN_TRY(tn_cut_walk(p->moment->rows, i, write_row, writer, err));
    }
    return TN_OK;
}

tn_status tn_ckpt_write_shard(void *part, const char *path, tn_error *err)
{
    tn_ckpt_part *p = part;
    tn_snapshot_writer *writer = NULL;
    TN_TRY(tn_snapshot_create(&writer, path, p->head, err));
    tn_status status = write_partitions(writer, p, err);
    if (status != TN_OK) {
        tn_snapshot_abandon(writer);
        return status;
    }
    tn_snapshot_done done;
    TN_TRY(tn_snapshot_commit(writer, &done, err));
    p->file.bytes = done.bytes;
    p->file.rows = done.rows;
    p->file.crc = done.crc;
    return TN_OK;
}

/* ---- arrays ---- */

static tn_status write_tensors(tn_ckpt_part *p, const char *path, const tn_safetensors *doc,
                               tn_error *err)
{
    tn_file *file = NULL;
    TN_TRY(tn_file_create(&file, path, err));
    return finish(p, file, tn_safetensors_write(file, doc, err), err);
}

tn_status tn_ckpt_write_dense(void *part, const char *path, tn_error *err)
{
    tn_ckpt_part *p = part;
    const tn_moment *m = p->moment;
    char begin[24];
    char end[24];
    (void)snprintf(begin, sizeof begin, "%zu", m->begin);
    (void)snprintf(end, sizeof end, "%zu", m->end);
    const tn_tensor_meta meta[] = {{"begin", begin}, {"end", end}};
    tn_safetensors doc = {.n_meta = 2, .n_tensors = m->n_dense, .meta = meta, .tensor = m->dense};
    return write_tensors(p, path, &doc, err);
}

tn_status tn_ckpt_write_metrics(void *part, const char *path, tn_error *err)
{
    tn_ckpt_part *p = part;
    const tn_moment *m = p->moment;
    tn_tensor tensor[] = {
        {.name = "hist.click",
         .dtype = "U64",
         .rank = 2,
         .shape = {2, TN_MOMENT_BINS},
         .data = (const char *)m->histogram,
         .size = 2UL * TN_MOMENT_BINS * sizeof(uint64_t)},
        {.name = "sums.click",
         .dtype = "U64",
         .rank = 2,
         .shape = {TN_MOMENT_SUMS, 2},
         .data = (const char *)m->sums,
         .size = sizeof m->sums},
    };
    if (!m->changes.failed) {
        tensor[0] = (tn_tensor){.name = m->delta ? "hist.click.changes" : "hist.click.cells",
                                .dtype = "U64",
                                .rank = 2,
                                .shape = {m->changes.size / (2 * sizeof *m->histogram), 2},
                                .data = m->changes.data,
                                .size = m->changes.size};
    }
    tn_safetensors doc = {.n_tensors = 2, .tensor = tensor};
    return write_tensors(p, path, &doc, err);
}
