/* ckptfiles.c - see ckptfiles.h. */
#include "train/checkpoint/ckptfiles.h"

#include "train/checkpoint/ckpt_peers.h"
#include "train/checkpoint/ckptparts.h"

#include <stdio.h>
#include <string.h>

/* ---- the list ---- */

void tn_ckpt_files_init(tn_ckpt_files *f, tn_arena *arena, const tn_owners *owners)
{
    *f = (tn_ckpt_files){.arena = arena,
                         .owners = owners,
                         .file = TN_NEW_ARRAY(arena, tn_manifest_file, TN_CKPT_FILES_MAX),
                         .told = TN_NEW_ARRAY(arena, bool, owners->n_peers)};
}

void tn_ckpt_files_list(tn_ckpt_files *f, const char *name, const tn_manifest_file *file)
{
    TN_ASSERT(f->n < TN_CKPT_FILES_MAX);
    size_t size = strlen(name) + 1;
    uint32_t i = f->n++;
    for (; i > 0 && strcmp(f->file[i - 1].name, name) > 0; i--) {
        f->file[i] = f->file[i - 1]; /* by name, bytewise */
    }
    f->file[i] = *file;
    f->file[i].name = memcpy(TN_NEW_ARRAY(f->arena, char, size), name, size);
    f->bytes += file->bytes;
    f->written += file->rows;
}

void tn_ckpt_files_tell(tn_ckpt_files *f, uint32_t rank, uint64_t rows)
{
    TN_ASSERT(rank < f->owners->n_peers && !f->told[rank]);
    f->told[rank] = true;
    f->n_told++;
    f->rows += rows;
}

tn_status tn_ckpt_files_check(const tn_ckpt_files *f, tn_error *err)
{
    for (uint32_t rank = 0; rank < f->owners->n_peers; rank++) {
        if (!f->told[rank]) {
            return tn_fail(err, TN_E_PEER, "rank %u has not written its part of the checkpoint",
                           rank);
        }
    }
    return TN_OK;
}

static void shard_name(uint32_t first, uint32_t last, char out[TN_CKPT_FILE_NAME_SIZE])
{
    (void)snprintf(out, TN_CKPT_FILE_NAME_SIZE, "sparse-%04u-%04u.tns", first, last);
}

static void dense_name(uint32_t rank, char out[TN_CKPT_FILE_NAME_SIZE])
{
    (void)snprintf(out, TN_CKPT_FILE_NAME_SIZE, "dense-%04u.safetensors", rank);
}

/* Whether the list of a rank is what it owes: its dense file, then its partitions, in order. */
static bool is_owed(const tn_owners *owners, const tn_ckpt_wrote *wrote)
{
    uint32_t next = owners->from[wrote->rank];
    const uint32_t end = owners->from[wrote->rank + 1];
    for (uint32_t i = 0; i < wrote->n_files; i++) {
        char name[TN_CKPT_FILE_NAME_SIZE];
        const tn_manifest_file *file = &wrote->file[i];
        bool is_dense = i == 0;
        if (is_dense) {
            dense_name(wrote->rank, name);
        } else if (file->first == next && file->last >= next && file->last < end) {
            shard_name(file->first, file->last, name);
            next = file->last + 1;
        } else {
            return false;
        }
        if (strcmp(file->type, is_dense ? "dense" : "sparse") != 0 ||
            strcmp(file->name, name) != 0 || (is_dense && file->rows > 0)) {
            return false;
        }
    }
    return wrote->n_files > 0 && next == end;
}

tn_status tn_ckpt_files_add(tn_ckpt_files *f, const tn_ckpt_wrote *wrote, tn_error *err)
{
    if (wrote->rank >= f->owners->n_peers || f->told[wrote->rank] || !is_owed(f->owners, wrote)) {
        return tn_fail(err, TN_E_PEER, "rank %u has written other files of a checkpoint than its",
                       wrote->rank);
    }
    for (uint32_t i = 0; i < wrote->n_files; i++) {
        tn_manifest_file file = wrote->file[i];
        file.type = i == 0 ? "dense" : "sparse"; /* what they said is lent */
        tn_ckpt_files_list(f, wrote->file[i].name, &file);
    }
    tn_ckpt_files_tell(f, wrote->rank, wrote->rows);
    return TN_OK;
}

/* ---- what a worker owes ---- */

/* The last partition of the file that begins with `first`, when partitions hold about as many bytes
 * each. */
static uint32_t last_of_file(const tn_moment *m, uint32_t first)
{
    const tn_range *all = &m->partitions;
    uint64_t bytes = tn_cut_bytes(m->rows) / (all->to - all->from) + 1;
    uint64_t n = TN_SNAPSHOT_FILE_BYTES / bytes;
    n = n < 1 ? 1 : n;
    return n >= all->to - first ? all->to - 1 : first + (uint32_t)n - 1;
}

static tn_status write_table(tn_ckpt_own *own, tn_ckpt_files *files, tn_error *err)
{
    tn_moment *m = own->moment;
    tn_snapshot_head head = own->head;
    head.partitions = TN_PARTITIONS;
    TN_TRY(tn_row_schema_hash(&m->manifest.sparse, head.schema, err));
    for (uint32_t first = m->partitions.from; first < m->partitions.to; first = head.last + 1) {
        char name[TN_CKPT_FILE_NAME_SIZE];
        head.first = first;
        head.last = last_of_file(m, first);
        shard_name(head.first, head.last, name);
        tn_ckpt_part part = {.moment = m,
                             .head = &head,
                             .file = {.type = "sparse", .first = head.first, .last = head.last}};
        tn_status status = tn_ckpt_put_once(own->folder, name, tn_ckpt_write_shard, &part, err);
        own->lost_rows = status == TN_E_IO;
        TN_TRY(status);
        tn_ckpt_files_list(files, name, &part.file);
    }
    return TN_OK;
}

tn_status tn_ckpt_write_own(tn_ckpt_own *own, tn_ckpt_files *files, tn_error *err)
{
    tn_moment *m = own->moment;
    char name[TN_CKPT_FILE_NAME_SIZE];
    const uint64_t rows = tn_cut_rows(m->rows);
    TN_TRY(write_table(own, files, err));
    tn_cut_close(m->rows); /* nobody need copy rows aside any more */
    m->rows = NULL;
    tn_ckpt_part dense = {.moment = m, .file = {.type = "dense"}};
    dense_name(m->rank, name);
    TN_TRY(tn_ckpt_put(own->folder, name, tn_ckpt_write_dense, &dense, err));
    tn_ckpt_files_list(files, name, &dense.file);
    tn_ckpt_files_tell(files, m->rank, rows);
    return TN_OK;
}
