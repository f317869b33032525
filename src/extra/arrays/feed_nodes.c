/* feed_nodes.c - sets nodes of a graph from npz files: the way back of fetch_nodes.c. */
#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/file/file.h"
#include "config/tree.h"
#include "extra/arrays/npz.h"
#include "nn/graph/graph.h"
#include "nn/graph/op.h"
#include "nn/vec/vec.h"
#include "train/eval/node_files.h"

#include <inttypes.h>
#include <string.h>

typedef struct source {
    const char *path; /* the caller's */
    tn_node *node;
    tn_map map;
    tn_npz_matrix values;
} source;

struct tn_feed {
    uint32_t n;
    uint64_t rows; /* set so far */
    source *source;
};

static tn_status read_names(const tn_strs *given, tn_arena *arena, tn_strs *nodes, tn_error *err)
{
    const char **name = TN_NEW_ARRAY(arena, const char *, given->n + 1);
    *nodes = (tn_strs){.n = given->n, .item = name};
    for (uint32_t i = 0; i < given->n; i++) {
        const char *equals = strrchr(given->item[i], '=');
        if (equals == NULL || equals == given->item[i] || equals[1] == '\0') {
            return tn_fail(err, TN_E_USAGE, "'--feed' is NODE=FILE.npz, not '%s'", given->item[i]);
        }
        name[i] = tn_tree_text(arena, given->item[i], (size_t)(equals - given->item[i]));
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(name[k], name[i]) == 0) {
                return tn_fail(err, TN_E_USAGE, "'--feed' has node '%s' twice", name[i]);
            }
        }
    }
    return TN_OK;
}

static tn_status open_source(source *s, const char *name, tn_error *err)
{
    TN_TRY(tn_map_file(&s->map, s->path, err));
    TN_TRY(tn_npz_find(&s->map, s->path, name, &s->values, err));
    return s->values.cols == s->node->shape.cols
               ? TN_OK
               : tn_fail(err, TN_E_DATA,
                         "'%s': array '%s' has %" PRIu64 " columns, the node has %u", s->path, name,
                         s->values.cols, s->node->shape.cols);
}

static void close_feed(tn_feed *f)
{
    for (uint32_t i = 0; f != NULL && f->source != NULL && i < f->n; i++) {
        tn_unmap(&f->source[i].map);
    }
    if (f != NULL) {
        tn_free(f->source);
        tn_free(f);
    }
}

static tn_status open_feed(tn_feed **out, const tn_strs *given, const tn_strs *nodes,
                           const tn_graph *graph, tn_error *err)
{
    tn_feed *f = NULL;
    *out = NULL;
    TN_TRY(TN_ALLOC(f, 1, "fed nodes", err));
    tn_status status = TN_ALLOC(f->source, (size_t)given->n + 1, "fed nodes", err);
    for (uint32_t i = 0; i < given->n && status == TN_OK; i++) {
        source *s = &f->source[f->n++];
        s->path = strrchr(given->item[i], '=') + 1;
        s->node = tn_graph_find(graph, nodes->item[i]);
        TN_ASSERT(s->node != NULL && s->node->op == NULL); /* tn_worker_opts.feed */
        status = open_source(s, nodes->item[i], err);
    }
    if (status != TN_OK) {
        close_feed(f);
        return status;
    }
    *out = f;
    return TN_OK;
}

static tn_status feed_rows(tn_feed *f, uint32_t rows, tn_error *err)
{
    for (uint32_t i = 0; i < f->n; i++) {
        const source *s = &f->source[i];
        TN_ASSERT(f->rows <= s->values.rows && s->values.cols == s->node->shape.cols);
        const size_t size = (size_t)s->values.cols * sizeof(float);
        if (rows > s->values.rows - f->rows) {
            return tn_fail(err, TN_E_DATA, "'%s' has %" PRIu64 " rows for node '%s', the data more",
                           s->path, s->values.rows, s->node->name);
        }
        for (uint32_t r = 0; r < rows; r++) {
            tn_real *row = tn_val_row(s->node, r);
            memcpy(row, s->values.data + (f->rows + r) * size, size);
            if (!tn_vec_finite(s->node->shape.cols, row)) {
                return tn_fail(err, TN_E_DATA, "'%s': row %" PRIu64 " of array '%s' is not finite",
                               s->path, f->rows + r, s->node->name);
            }
        }
    }
    f->rows += rows;
    return TN_OK;
}

static tn_status end_feed(const tn_feed *f, tn_error *err)
{
    for (uint32_t i = 0; i < f->n; i++) {
        const source *s = &f->source[i];
        if (s->values.rows > f->rows) {
            return tn_fail(err, TN_E_DATA,
                           "'%s' has %" PRIu64 " rows for node '%s', the data %" PRIu64, s->path,
                           s->values.rows, s->node->name, f->rows);
        }
    }
    return TN_OK;
}

extern const tn_feed_kind tn_feed_kind_npz;
const tn_feed_kind tn_feed_kind_npz = {.names = read_names,
                                       .open = open_feed,
                                       .next = feed_rows,
                                       .end = end_feed,
                                       .close = close_feed};
