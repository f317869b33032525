/* ckptcheck.c - see ckptcheck.h. */
#include "train/checkpoint/ckptcheck.h"

#include "base/core/alloc.h"
#include "base/file/file.h"
#include "base/math/crc32c.h"
#include "ps/snapshot/snapshot.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { PIECE_BYTES = 1 << 20 };

static bool is_missing(const char *path)
{
    struct stat st;
    return lstat(path, &st) != 0 && errno == ENOENT;
}

/* A file that is not there is damage; its folder may lack with it, but not lie behind a link to
 * nowhere. Whatever else keeps one from being opened (rights, descriptors, the disk, a server that
 * does not answer) says nothing about its bytes. */
static tn_status blame(tn_status status, const char *folder, const char *file, tn_error *err)
{
    const bool missing =
        status == TN_E_IO && is_missing(file) && (tn_path_is_dir(folder) || is_missing(folder));
    return missing ? tn_fail(err, TN_E_CKPT, "'%s' is not there", file) : status;
}

tn_status tn_ckpt_read_manifest(const char *path, tn_arena *arena, tn_manifest *out, tn_error *err)
{
    char file[TN_PATH_SIZE];
    tn_text text = {0};
    TN_TRY(tn_path_join(path, "MANIFEST", file, err));
    tn_status status = tn_file_read_all(file, TN_MANIFEST_BYTES_MAX, &text, err);
    if (status == TN_OK) {
        status = tn_manifest_read(out, &text, arena, file, err);
    }
    tn_text_done(&text);
    return blame(status, path, file, err);
}

static tn_status check_crc(const tn_infile *f, uint32_t want, tn_error *err)
{
    char *piece = tn_try_alloc(1, PIECE_BYTES, "a piece of a checkpoint", err);
    if (piece == NULL) {
        return TN_E_MEMORY;
    }
    tn_status status = TN_OK;
    uint32_t crc = 0;
    uint64_t size = tn_infile_size(f);
    for (uint64_t at = 0; at < size && status == TN_OK; at += PIECE_BYTES) {
        size_t bytes = size - at < PIECE_BYTES ? (size_t)(size - at) : PIECE_BYTES;
        status = tn_infile_read(f, at, piece, bytes, err);
        crc = status == TN_OK ? tn_crc32c(crc, piece, bytes) : crc;
    }
    tn_free(piece);
    if (status == TN_OK && crc != want) {
        return tn_fail(err, TN_E_CKPT, "'%s' at bytes 0 to %llu: crc %08x, %08x in the manifest",
                       tn_infile_path(f), (unsigned long long)size, crc, want);
    }
    return status;
}

/* NULL, or in what the shard differs from the manifest. */
static const char *difference(const tn_manifest *m, const tn_manifest_file *file,
                              const tn_snapshot *s, const uint8_t *schema)
{
    const tn_snapshot_head *head = tn_snapshot_head_of(s);
    if (head->run_id != m->run_id || head->step != m->step) {
        return "of another run or step";
    }
    if (memcmp(head->schema, schema, TN_SNAPSHOT_SCHEMA_BYTES) != 0) {
        return "of another layout of rows";
    }
    if (head->partitions != m->sparse.partitions || head->first != file->first ||
        head->last != file->last) {
        return "of other partitions";
    }
    if (head->delta != (m->base != 0)) {
        return "of another kind";
    }
    return tn_snapshot_rows(s) != file->rows ? "of another number of rows" : NULL;
}

static tn_status check_shard(const char *name, const tn_manifest *m, const tn_manifest_file *file,
                             tn_error *err)
{
    uint8_t schema[TN_SNAPSHOT_SCHEMA_BYTES];
    tn_snapshot *s = NULL;
    TN_TRY(tn_row_schema_hash(&m->sparse, schema, err));
    TN_TRY(tn_snapshot_open(&s, name, err));
    const char *why = difference(m, file, s, schema);
    tn_snapshot_close(s);
    if (why != NULL) {
        return tn_fail(err, TN_E_CKPT, "'%s' is a file %s than its manifest's", name, why);
    }
    return TN_OK;
}

static tn_status check_file(const char *path, const tn_manifest *m, const tn_manifest_file *file,
                            tn_error *err)
{
    char name[TN_PATH_SIZE];
    tn_infile *f = NULL;
    TN_TRY(tn_path_join(path, file->name, name, err));
    TN_TRY(blame(tn_infile_open(&f, name, err), path, name, err));
    bool is_shard = strcmp(file->type, "sparse") == 0;
    tn_status status = TN_OK;
    if (tn_infile_size(f) != file->bytes) {
        status = tn_fail(err, TN_E_CKPT, "'%s' has %llu bytes, %llu in the manifest", name,
                         (unsigned long long)tn_infile_size(f), (unsigned long long)file->bytes);
    } else if (!is_shard) {
        status = check_crc(f, file->crc, err);
    }
    tn_infile_close(f);
    return status == TN_OK && is_shard ? check_shard(name, m, file, err) : status;
}

tn_status tn_ckpt_check_files(const char *path, const tn_manifest *m, tn_error *err)
{
    for (uint32_t i = 0; i < m->n_files; i++) {
        TN_TRY(check_file(path, m, &m->file[i], err));
    }
    return TN_OK;
}
