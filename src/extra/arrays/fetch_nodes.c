/* fetch_nodes.c - writes values of nodes as fetch.npz.
 *
 * A ZIP wants sizes before data and nobody knows the rows beforehand, so each array is spooled into
 * a file beside and copied when all is there: memory does not grow with the rows.
 */
#include "base/core/alloc.h"
#include "base/core/bytes.h"
#include "base/file/file.h"
#include "extra/arrays/npz.h"
#include "nn/graph/graph.h"
#include "nn/graph/op.h"
#include "train/eval/node_files.h"
#include "train/eval/predict.h"

#include <stdio.h>
#include <string.h>

/* One array on its way. */
typedef struct spool {
    const char *name; /* the caller's */
    tn_file *file;    /* without a name, beside the output */
    uint32_t cols;
} spool;

struct tn_fetch {
    char path[TN_PATH_SIZE];
    uint32_t n;
    spool *node;
    spool id; /* texts, each after its u32 length */
    size_t id_bytes;
    uint64_t rows;
    tn_text text;
};

static tn_status open_spool(const tn_fetch *f, spool *s, const char *name, tn_error *err)
{
    s->name = name;
    return tn_file_create_nameless(&s->file, f->path, err);
}

static tn_status open_all(tn_fetch *f, const char *path, const tn_strs *nodes, tn_error *err)
{
    int length = snprintf(f->path, sizeof f->path, "%s", path);
    if (length < 0 || (size_t)length >= sizeof f->path) {
        return tn_fail(err, TN_E_USAGE, "path longer than %d bytes: '%.64s..'", TN_PATH_SIZE - 1,
                       path);
    }
    TN_TRY(TN_ALLOC(f->node, (size_t)nodes->n + 1, "fetched nodes", err));
    for (uint32_t i = 0; i < nodes->n; i++) {
        if (strlen(nodes->item[i]) > TN_NPY_NAME_MAX || strcmp(nodes->item[i], "id") == 0) {
            return tn_fail(err, TN_E_CONFIG, "node '%.64s' cannot be fetched by its name",
                           nodes->item[i]);
        }
        f->n = i + 1;
        TN_TRY(open_spool(f, &f->node[i], nodes->item[i], err));
    }
    return open_spool(f, &f->id, "id", err);
}

static void abandon_fetch(tn_fetch *f)
{
    if (f == NULL) {
        return;
    }
    for (uint32_t i = 0; i < f->n; i++) {
        tn_file_abandon(f->node[i].file);
    }
    tn_file_abandon(f->id.file);
    tn_free(f->node);
    tn_text_done(&f->text);
    tn_free(f);
}

static tn_status open_fetch(tn_fetch **out, const char *path, const tn_strs *nodes, tn_error *err)
{
    *out = NULL;
    tn_fetch *f = NULL;
    TN_TRY(TN_ALLOC(f, 1, "fetched nodes", err));
    tn_status status = open_all(f, path, nodes, err);
    if (status != TN_OK) {
        abandon_fetch(f);
        return status;
    }
    *out = f;
    return TN_OK;
}

/* The next rows of node i; `at`: of the node within a row that another rank has scored. */
static tn_status add_values(spool *s, const tn_scores *scores, uint32_t i, uint32_t at,
                            tn_error *err)
{
    const tn_fetched *f = scores->fetched;
    const tn_node *n = f == NULL ? tn_fetch_node(scores->graph, s->name, err) : NULL;
    if (f == NULL && n == NULL) {
        return TN_E_CONFIG;
    }
    const uint32_t cols = f != NULL ? f->cols[i] : n->shape.cols;
    TN_ASSERT(s->cols == 0 || s->cols == cols);
    s->cols = cols;
    for (uint32_t r = 0; r < scores->batch->rows; r++) {
        const float *row =
            f != NULL ? f->value + (size_t)r * f->width + at : tn_val_row(n, scores->first + r);
        TN_TRY(tn_file_write(s->file, row, cols * sizeof(float), err));
    }
    return TN_OK;
}

static tn_status add_ids(tn_fetch *f, const tn_batch *batch, tn_error *err)
{
    for (uint32_t r = 0; r < batch->rows; r++) {
        tn_text_clear(&f->text);
        tn_record_id(batch, r, &f->text);
        TN_TRY(tn_text_check(&f->text, "a record id", err));
        uint32_t size = (uint32_t)f->text.size;
        f->id_bytes = size > f->id_bytes ? size : f->id_bytes;
        TN_TRY(tn_file_write(f->id.file, &size, sizeof size, err));
        TN_TRY(tn_file_write(f->id.file, f->text.data, size, err));
    }
    return TN_OK;
}

static tn_status fetch_rows(void *fetch, const tn_scores *scores, tn_error *err)
{
    tn_fetch *f = fetch;
    uint32_t at = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        TN_TRY(add_values(&f->node[i], scores, i, at, err));
        at += f->node[i].cols;
    }
    TN_ASSERT(scores->fetched == NULL || at == scores->fetched->width);
    f->rows += scores->batch->rows;
    return add_ids(f, scores->batch, err);
}

static tn_status put_node(tn_fetch *f, tn_npz *z, spool *s, tn_error *err)
{
    tn_map map = {0};
    TN_TRY(tn_file_map(&map, s->file, err));
    TN_ASSERT(map.size == f->rows * s->cols * sizeof(float));
    const tn_npy array = {.name = s->name,
                          .type = "<f4",
                          .item_bytes = sizeof(float),
                          .rank = 2,
                          .shape = {f->rows, s->cols}};
    tn_status status = tn_npz_add(z, &array, map.data, err);
    tn_unmap(&map);
    return status;
}

/* Texts of one length, padded with NULs, in a spool of their own. */
static tn_status pad_ids(tn_fetch *f, const tn_map *texts, spool *out, tn_error *err)
{
    TN_TRY(open_spool(f, out, "id", err));
    tn_bytes in = {texts->data, texts->size, false};
    tn_text_clear(&f->text);
    char *padded = tn_text_grow(&f->text, f->id_bytes);
    TN_TRY(tn_text_check(&f->text, "a record id", err));
    for (uint64_t r = 0; r < f->rows; r++) {
        uint32_t size = tn_get_u32(&in);
        const char *at = tn_get(&in, size);
        TN_ASSERT(at != NULL && size <= f->id_bytes);
        memset(padded, 0, f->id_bytes);
        memcpy(padded, at, size);
        TN_TRY(tn_file_write(out->file, padded, f->id_bytes, err));
    }
    TN_ASSERT(in.size == 0); /* as many as add_ids has written */
    return TN_OK;
}

static tn_status put_ids(tn_fetch *f, tn_npz *z, tn_error *err)
{
    tn_map texts = {0};
    tn_map map = {0};
    spool padded = {0};
    char type[24];
    f->id_bytes = f->id_bytes == 0 ? 1 : f->id_bytes;
    (void)snprintf(type, sizeof type, "|S%zu", f->id_bytes);
    TN_TRY(tn_file_map(&texts, f->id.file, err));
    tn_status status = pad_ids(f, &texts, &padded, err);
    if (status == TN_OK) {
        status = tn_file_map(&map, padded.file, err);
    }
    if (status == TN_OK) {
        const tn_npy array = {.name = "id",
                              .type = type,
                              .item_bytes = (uint32_t)f->id_bytes,
                              .rank = 1,
                              .shape = {f->rows}};
        status = tn_npz_add(z, &array, map.data, err);
        tn_unmap(&map);
    }
    tn_file_abandon(padded.file);
    tn_unmap(&texts);
    return status;
}

static tn_status write_npz(tn_fetch *f, tn_error *err)
{
    tn_npz *z = NULL;
    TN_TRY(tn_npz_create(&z, f->path, err));
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < f->n && status == TN_OK; i++) {
        status = put_node(f, z, &f->node[i], err);
    }
    if (status == TN_OK) {
        status = put_ids(f, z, err);
    }
    if (status != TN_OK) {
        tn_npz_abandon(z);
        return status;
    }
    return tn_npz_commit(z, err);
}

static tn_status commit_fetch(tn_fetch *f, tn_error *err)
{
    tn_status status = write_npz(f, err);
    abandon_fetch(f); /* the spools */
    return status;
}

extern const tn_fetch_kind tn_fetch_kind_npz;
const tn_fetch_kind tn_fetch_kind_npz = {
    .open = open_fetch, .sink = fetch_rows, .commit = commit_fetch, .abandon = abandon_fetch};
