/* tensornet_guess.c - layers by trying what their blocks may hold, variables by tf_checkpoint. */
#include "extra/tensornet/tensornet_guess.h"

#include "base/core/arena.h"
#include "base/core/number.h"
#include "extra/tensornet/tensorflow_index.h"
#include "extra/tensornet/tensornet_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct guessing {
    tn_tensornet_dir dir;
    tn_text bytes;
    tn_text *out;
} guessing;

/* ---- layers ---- */

/* Returns the width that a block names; 0: it names none. */
static uint32_t dim_of(const tn_text *bytes)
{
    const char *text = tn_text_str(bytes);
    const char *line = strncmp(text, "opt_name:", 9) == 0 ? strchr(text, '\n') : NULL;
    uint64_t dim = 0;
    if (line != NULL && strncmp(line, "\ndim:", 5) == 0) {
        const char *digits = line + 5;
        return tn_read_u64(digits, strcspn(digits, "\n"), &dim) == TN_NUM_OK &&
                       dim <= TN_TENSORNET_DIM_MAX
                   ? (uint32_t)dim
                   : 0;
    }
    if (line == NULL && bytes->size >= sizeof(uint32_t)) {
        dim = tn_load_u32(bytes->data);
    }
    return dim <= TN_TENSORNET_DIM_MAX ? (uint32_t)dim : 0;
}

/* Whether all blocks of rank 0 hold rows of that shape. */
static bool holds(guessing *g, const char *layer, const tn_tensornet_shape *shape, uint32_t ranks,
                  uint64_t *rows)
{
    bool good = true;
    *rows = 0;
    for (uint32_t b = 0; b < TN_TENSORNET_BLOCKS && good; b++) {
        char path[TN_PATH_SIZE];
        tn_tensornet_rows block = {0};
        const tn_tensornet_place at = {layer, 0, b};
        good = tn_tensornet_block(&g->dir, &at, path, &g->bytes, NULL) == TN_OK;
        const tn_bytes bytes = {.data = g->bytes.data, .size = g->bytes.size};
        good = good && tn_tensornet_rows_read(&block, shape, bytes, path, NULL) == TN_OK;
        for (uint64_t i = 0; i < block.n && good; i++) {
            good = block.sign[i] % ranks == 0 &&
                   ((block.sign[i] >> 32) & (TN_TENSORNET_BLOCKS - 1)) == b;
        }
        *rows += block.n;
        tn_tensornet_rows_done(&block);
    }
    return good;
}

static tn_status guess_layer(guessing *g, const char *layer, tn_error *err)
{
    static const tn_tensornet_shape shapes[] = {{TN_TENSORNET_ADAGRAD, 0, false},
                                                {TN_TENSORNET_ADAGRAD, 0, true},
                                                {TN_TENSORNET_ADAM, 0, false},
                                                {TN_TENSORNET_FTRL, 0, false}};
    char path[TN_PATH_SIZE];
    uint32_t ranks = 0;
    TN_TRY(tn_tensornet_ranks(&g->dir, layer, &ranks, err));
    const tn_tensornet_place first = {layer, 0, 0};
    TN_TRY(tn_tensornet_block(&g->dir, &first, path, &g->bytes, err));
    const uint32_t dim = dim_of(&g->bytes);
    TN_ASSERT(ranks > 0 && dim <= TN_TENSORNET_DIM_MAX);
    const bool is_text = strncmp(tn_text_str(&g->bytes), "opt_name:", 9) == 0;
    for (uint32_t i = 0; i < sizeof shapes / sizeof *shapes && dim > 0; i++) {
        tn_tensornet_shape shape = shapes[i];
        uint64_t rows = 0;
        shape.dim = dim;
        if (holds(g, layer, &shape, ranks, &rows)) {
            tn_text_addf(g->out,
                         "  - {layer: %s, segment: %s, optimizer: %s%s}  # dim %u, %" PRIu64
                         " rows of rank 0 of %u%s\n",
                         layer, layer, tn_tensornet_rules[shape.rule],
                         shape.cvm ? ", cvm: true" : "", dim, rows, ranks,
                         shape.rule == TN_TENSORNET_ADAM && !is_text
                             ? "; or ftrl: binary rows do not tell"
                             : "");
            return TN_OK;
        }
    }
    return tn_fail(err, TN_E_CKPT, "'%s' holds rows of no rule that is known, or is damaged", path);
}

static tn_status guess_layers(guessing *g, tn_error *err)
{
    char path[TN_PATH_SIZE];
    tn_text names = {0};
    uint32_t n = 0;
    TN_TRY(tn_path_join(g->dir.path, "sparse_table", path, err));
    TN_TRY(tn_dir_list(path, &names, &n, err));
    tn_text_adds(g->out, "sparse:\n");
    const char *name = tn_text_str(&names);
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < n && status == TN_OK; i++, name += strlen(name) + 1) {
        status = guess_layer(g, name, err);
    }
    tn_text_done(&names);
    return status;
}

/* ---- variables ---- */

/* The parameter that a variable becomes in a layer of the same name; NULL: none of a dense table.
 */
static const char *ending_of(const char *name, size_t *layer)
{
    static const char *const pairs[][2] = {
        {"/kernel:0", ".W"}, {"/bias:0", ".b"}, {"/gamma:0", ".gamma"}, {"/beta:0", ".beta"}};
    const size_t size = strlen(name);
    for (uint32_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const size_t n = strlen(pairs[i][0]);
        if (size > n && strcmp(name + size - n, pairs[i][0]) == 0) {
            *layer = size - n;
            return pairs[i][1];
        }
    }
    return NULL;
}

static void print_variable(const tn_tensorflow_variable *v, const char *ending, size_t layer,
                           tn_text *out)
{
    tn_text name = {0};
    tn_text_adds(out, "  - {name: ");
    tn_text_addf(out, "\"%s\", shape: [", v->name);
    for (uint32_t i = 0; i < v->rank; i++) {
        tn_text_addf(out, "%s%" PRIu64, i > 0 ? ", " : "", v->shape[i]);
    }
    for (size_t i = 0; i < layer; i++) {
        const char c = v->name[i];
        tn_text_add(&name, c == '/' ? "." : &c, 1);
    }
    tn_text_addf(out, "], to: %s%s}\n", tn_text_str(&name), ending);
    tn_text_done(&name);
}

static void print_norms(const tn_tensorflow_variables *all, tn_text *out)
{
    uint32_t table = 0;
    for (uint32_t i = 0; i < all->n; i++) {
        size_t layer = 0;
        const char *ending = ending_of(all->variable[i].name, &layer);
        if (ending != NULL && strcmp(ending, ".gamma") == 0) {
            const char *name = all->variable[i].name;
            tn_text_addf(out, "%s  - {table: %u, mean: %.*s.mean, var: %.*s.var}\n",
                         table == 0 ? "bn:\n" : "", table, (int)layer, name, (int)layer, name);
            table++;
        }
    }
}

static void print_variables(const tn_tensorflow_variables *all, uint64_t total, tn_text *out)
{
    uint64_t values = 0;
    tn_text_adds(out, "dense:\n");
    for (uint32_t i = 0; i < all->n; i++) {
        const tn_tensorflow_variable *v = &all->variable[i];
        size_t layer = 0;
        const char *ending = ending_of(v->name, &layer);
        uint64_t n = 1;
        for (uint32_t k = 0; k < v->rank; k++) {
            n *= v->shape[k];
        }
        if (ending != NULL) {
            print_variable(v, ending, layer, out);
            values += n;
        }
    }
    if (values != total) {
        tn_text_addf(out,
                     "  # dense_table/0 has %" PRIu64 " values and these variables %" PRIu64
                     ": a variable is missing, or one is not in the table\n",
                     total, values);
    }
}

static tn_status guess_variables(guessing *g, tn_error *err)
{
    char path[TN_PATH_SIZE];
    char index_path[TN_PATH_SIZE];
    tn_text data = {0};
    tn_tensornet_dense head = {0};
    tn_tensorflow_variables all = {0};
    tn_arena *arena = tn_arena_new(1 << 16);
    tn_status status = tn_tensornet_file(&g->dir, "dense_table/0/0", false, path, &g->bytes, err);
    if (status == TN_OK) {
        const tn_bytes bytes = {.data = g->bytes.data, .size = g->bytes.size};
        status = tn_tensornet_dense_read(&head, 0, bytes, path, err);
    }
    if (status == TN_OK) {
        status =
            tn_tensornet_file(&g->dir, "tf_checkpoint.index", false, index_path, &g->bytes, err);
        if (status != TN_OK && !tn_path_exists(index_path)) {
            status = tn_fail(err, TN_E_CKPT,
                             "'%s' is not there, which alone names the dense variables and their "
                             "shapes\nhint: write the map by hand, as in from-tensornet.md",
                             index_path);
        }
    }
    if (status == TN_OK) {
        status = tn_tensornet_file(&g->dir, "tf_checkpoint.data-00000-of-00001", false, path, &data,
                                   err);
    }
    if (status == TN_OK) {
        const tn_bytes index = {.data = g->bytes.data, .size = g->bytes.size};
        const tn_bytes values = {.data = data.data, .size = data.size};
        status = tn_tensorflow_variables_read(&all, index, values, arena, index_path, err);
    }
    if (status == TN_OK) {
        print_variables(&all, head.n, g->out);
        if (tn_path_join(g->dir.path, "bn_table", path, NULL) == TN_OK && tn_path_is_dir(path)) {
            print_norms(&all, g->out);
        }
    }
    tn_tensornet_dense_done(&head);
    tn_text_done(&data);
    tn_arena_free(arena);
    return status;
}

tn_status tn_tensornet_guess(const char *dir, tn_text *out, tn_error *err)
{
    guessing g = {.out = out};
    TN_TRY(tn_tensornet_dir_open(&g.dir, dir, err));
    tn_text_addf(out, "# A map for the TensorNet checkpoint %s, day %s.\n", dir, g.dir.dt);
    tn_status status = guess_layers(&g, err);
    if (status == TN_OK) {
        status = guess_variables(&g, err);
    }
    tn_text_done(&g.bytes);
    return status == TN_OK ? tn_text_check(out, "a map", err) : status;
}
