/* cache_write.c - writing a .tnb file, block by block; index and tail when all is there. */
#include "base/core/alloc.h"
#include "base/file/output_file.h"
#include "base/math/crc32c.h"
#include "io/read/cache_layout.h"

enum { ONCE = 1 << 8 };

struct tn_tnb_writer {
    const tn_fileset *files;
    tn_output *file;
    uint64_t *mtime_ns; /* files->n */
    tn_tnb_part *part;  /* files->n_parts; n_blocks 0: not yet */
    uint32_t now;       /* the part that is being added */
    uint64_t n_blocks;
    tn_text block_bytes; /* u32 of each block, as they were added */
};

static tn_status write_header(const tn_tnb_writer *w, const tn_schema *schema, tn_error *err)
{
    static const char zeros[8] = {0};
    tn_text shape = {0};
    tn_text head = {0};
    tn_tnb_shape(schema, &shape);
    tn_text_add(&head, TN_TNB_MAGIC, 8);
    tn_text_add_u16(&head, TN_TNB_MAJOR);
    tn_text_add_u16(&head, TN_TNB_MINOR);
    tn_text_add_u32le(&head, TN_TNB_ORDER);
    tn_text_add_u32le(&head, (uint32_t)shape.size);
    tn_text_add_u32le(&head, tn_crc32c(0, tn_text_str(&shape), shape.size));
    tn_text_add_u64le(&head, schema->data->part_bytes);
    tn_text_add_u32le(&head, schema->n_slots);
    tn_text_add_u32le(&head, schema->n_numeric);
    for (uint32_t i = 0; i < 5; i++) {
        tn_text_add_u32le(&head, 0);
    }
    tn_text_add_u32le(&head, tn_crc32c(0, tn_text_str(&head), head.size));
    TN_ASSERT(head.failed || head.size == TN_TNB_HEADER);
    tn_text_add(&head, tn_text_str(&shape), shape.size);
    tn_text_add(&head, zeros, (8 - shape.size % 8) % 8);
    tn_status status = tn_text_check(&head, "the head of a binary cache", err);
    if (status == TN_OK && shape.size > TN_TNB_SHAPE_MAX) {
        status = tn_fail(err, TN_E_LIMIT, "the slots are too many words for a binary cache");
    }
    if (status == TN_OK) {
        status = tn_output_write(w->file, head.data, head.size, err);
    }
    tn_text_done(&shape);
    tn_text_done(&head);
    return status;
}

static tn_status look_at_sources(const tn_tnb_writer *w, tn_error *err)
{
    for (uint32_t i = 0; i < w->files->n; i++) {
        const tn_file_entry *f = &w->files->file[i];
        uint64_t size;
        if (!f->once && (!tn_tnb_look(f->path, &size, &w->mtime_ns[i]) || size != f->size)) {
            return tn_fail(err, TN_E_DATA, "'%s' changes while it is read", f->path);
        }
    }
    return TN_OK;
}

static tn_status begin(tn_tnb_writer *w, const char *path, const tn_schema *schema, tn_error *err)
{
    const tn_fileset *files = w->files;
    w->mtime_ns = tn_try_alloc((size_t)files->n + 1, sizeof *w->mtime_ns, "a binary cache", err);
    w->part = tn_try_alloc((size_t)files->n_parts + 1, sizeof *w->part, "a binary cache", err);
    if (w->mtime_ns == NULL || w->part == NULL) {
        return TN_E_MEMORY;
    }
    w->now = files->n_parts;
    w->block_bytes.size_max = (size_t)UINT32_MAX;
    TN_TRY(look_at_sources(w, err));
    TN_TRY(tn_output_open(&w->file, path, NULL, err));
    return write_header(w, schema, err);
}

tn_status tn_tnb_create(tn_tnb_writer **out, const char *path, const tn_schema *schema,
                        const tn_fileset *files, tn_error *err)
{
    *out = NULL;
    tn_tnb_writer *w = tn_try_alloc(1, sizeof *w, "a binary cache", err);
    if (w == NULL) {
        return TN_E_MEMORY;
    }
    w->files = files;
    tn_status status = begin(w, path, schema, err);
    if (status != TN_OK) {
        tn_tnb_abandon(w);
        return status;
    }
    *out = w;
    return TN_OK;
}

const char *tn_tnb_tmp(const tn_tnb_writer *w)
{
    return tn_output_tmp(w->file);
}

tn_status tn_tnb_add(tn_tnb_writer *w, uint32_t part, const tn_text *block, uint32_t rows,
                     tn_error *err)
{
    tn_tnb_part *p = &w->part[part];
    TN_ASSERT(part < w->files->n_parts && (part == w->now || p->n_blocks == 0));
    TN_TRY(tn_text_check(block, "a block of a binary cache", err));
    if (part != w->now) {
        p->at = tn_output_size(w->file);
        p->first_block = w->n_blocks;
        w->now = part;
    }
    p->n_blocks++;
    p->rows += rows;
    w->n_blocks++;
    tn_text_add_u32le(&w->block_bytes, (uint32_t)block->size);
    TN_TRY(tn_text_check(&w->block_bytes, "the index of a binary cache", err));
    return tn_output_write(w->file, block->data, block->size, err);
}

static void add_sources(const tn_tnb_writer *w, tn_text *index)
{
    for (uint32_t i = 0; i < w->files->n; i++) {
        const tn_file_entry *f = &w->files->file[i];
        uint32_t bytes = (uint32_t)strlen(f->path);
        tn_text_add_u64le(index, f->size);
        tn_text_add_u64le(index, w->mtime_ns[i]);
        tn_text_add_u32le(index, f->compression | (f->once ? ONCE : 0U));
        tn_text_add_u32le(index, bytes);
        tn_text_add(index, f->path, bytes);
    }
}

/* In the order of the sources, whatever the order they were added in. */
static void add_parts(const tn_tnb_writer *w, tn_text *index)
{
    for (uint32_t i = 0; i < w->files->n_parts; i++) {
        const tn_part_info *info = &w->files->part[i];
        const tn_tnb_part *p = &w->part[i];
        TN_ASSERT(p->n_blocks > 0);
        tn_text_add_u32le(index, info->source);
        tn_text_add_u32le(index, p->n_blocks);
        tn_text_add_u64le(index, info->first);
        tn_text_add_u64le(index, info->end);
        tn_text_add_u64le(index, p->at);
        tn_text_add_u64le(index, p->rows);
    }
    for (uint32_t i = 0; i < w->files->n_parts; i++) {
        const tn_tnb_part *p = &w->part[i];
        tn_text_add(index, w->block_bytes.data + p->first_block * sizeof(uint32_t),
                    p->n_blocks * sizeof(uint32_t));
    }
}

static tn_status write_index(const tn_tnb_writer *w, tn_error *err)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < w->files->n_parts; i++) {
        rows += w->part[i].rows;
    }
    tn_text index = {.size_max = (size_t)UINT32_MAX};
    tn_text tail = {0};
    tn_text_add_u32le(&index, w->files->n);
    tn_text_add_u32le(&index, w->files->n_parts);
    tn_text_add_u64le(&index, w->n_blocks);
    tn_text_add_u64le(&index, rows);
    add_sources(w, &index);
    add_parts(w, &index);
    tn_status status = tn_text_check(&index, "the index of a binary cache", err);
    if (status == TN_OK) {
        tn_text_add_u64le(&tail, tn_output_size(w->file));
        tn_text_add_u64le(&tail, index.size);
        tn_text_add_u32le(&tail, tn_crc32c(0, index.data, index.size));
        tn_text_add_u32le(&tail, tn_crc32c(0, tn_text_str(&tail), tail.size));
        tn_text_add(&tail, TN_TNB_END, 8);
        status = tn_text_check(&tail, "the end of a binary cache", err);
    }
    if (status == TN_OK) {
        status = tn_output_write(w->file, index.data, index.size, err);
    }
    if (status == TN_OK) {
        status = tn_output_write(w->file, tail.data, tail.size, err);
    }
    tn_text_done(&index);
    tn_text_done(&tail);
    return status;
}

/* The sources are what they were when the cache was begun. */
static tn_status look_again(const tn_tnb_writer *w, tn_error *err)
{
    for (uint32_t i = 0; i < w->files->n; i++) {
        const tn_file_entry *f = &w->files->file[i];
        uint64_t size;
        uint64_t mtime;
        if (f->once) {
            continue;
        }
        if (!tn_tnb_look(f->path, &size, &mtime) || size != f->size || mtime != w->mtime_ns[i]) {
            return tn_fail(err, TN_E_DATA, "'%s' changed while it was read", f->path);
        }
    }
    return TN_OK;
}

tn_status tn_tnb_commit(tn_tnb_writer *w, tn_error *err)
{
    tn_status status = write_index(w, err);
    if (status == TN_OK) {
        status = look_again(w, err);
    }
    if (status == TN_OK) {
        tn_output *file = w->file;
        w->file = NULL; /* gone either way */
        status = tn_output_commit(file, err);
    }
    tn_tnb_abandon(w);
    return status;
}

void tn_tnb_abandon(tn_tnb_writer *w)
{
    if (w == NULL) {
        return;
    }
    tn_output_abandon(w->file);
    tn_text_done(&w->block_bytes);
    tn_free(w->mtime_ns);
    tn_free(w->part);
    tn_free(w);
}
