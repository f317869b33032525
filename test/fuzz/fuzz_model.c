/* fuzz_model.c - any JSON as model.json: refused with a sentence, or a graph that runs.
 *
 * The weights that it may name stand in a member of its own, which only this program reads:
 * "fuzz_params":{"deep.1.W":[8,4]}.
 */
#include "base/core/error.h"
#include "io/schema/schema.h"
#include "nn/graph/embed.h"
#include "nn/graph/graph.h"
#include "nn/graph/params.h"
#include "serve/exported_model.h"
#include "serve/model_json.h"

#include <string.h>

enum { ROWS = 3, SLOTS = 64, NUMBERS = 64, PARAMS_MAX = 64, COUNT_MAX = 1 << 14 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // NOLINT: libFuzzer's name

/* False: names or shapes that no weights file could bring. */
static bool add_params(tn_exported_model *b, const tn_json *model)
{
    const tn_json *all = tn_json_get(model, "fuzz_params");
    uint32_t n = 0;
    for (const tn_json *p = all != NULL ? all->first : NULL; p != NULL; p = p->next) {
        uint64_t rows = 0;
        uint64_t cols = 0;
        if (p->key == NULL || p->kind != TN_JSON_LIST || p->n != 2 || ++n > PARAMS_MAX ||
            !tn_json_as_u64(p->first, &rows) || !tn_json_as_u64(p->first->next, &cols) ||
            rows == 0 || cols == 0 || rows > COUNT_MAX || cols > COUNT_MAX ||
            rows * cols > COUNT_MAX) {
            return false;
        }
        if (tn_params_reserve(b->params, strlen(p->key) + 1, NULL) != TN_OK) {
            return false;
        }
        (void)tn_params_add(b->params, p->key, (uint32_t)rows, (uint32_t)cols, true,
                            (tn_init){.kind = TN_INIT_CONSTANT});
    }
    tn_error err = {0};
    return tn_params_seal(b->params, &err) == TN_OK;
}

static void run_graph(const tn_exported_model *b)
{
    static const uint32_t offset[ROWS + 1];
    static const uint32_t index[1];
    static const float numeric[ROWS * NUMBERS];
    static const float row[1] = {0};
    static tn_bag bag[SLOTS];
    tn_error err = {0};
    tn_exported_graph x;
    if (tn_exported_graph_new(&x, b, ROWS, false, &err) != TN_OK) {
        TN_ASSERT(err.text[0] != '\0');
        return;
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        bag[i] = (tn_bag){.offset = offset, .index = index};
    }
    const tn_sparse sparse = {.rows = row, .bag = bag};
    const tn_graph_feed feed = {.rows = ROWS, .sparse = &sparse, .numeric = numeric};
    tn_forward(x.g, &feed);
    tn_graph_free(x.g);
}

/* Small enough to be run over and over. */
static bool is_small(const tn_exported_model *b)
{
    uint64_t cols = 0;
    for (uint32_t i = 0; i < b->n_inputs; i++) {
        cols += b->input[i].cols;
    }
    return cols <= COUNT_MAX && b->schema->n_slots <= SLOTS && b->schema->n_numeric <= NUMBERS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) // NOLINT
{
    tn_exported_model b = {0}; /* whose arenas assert that all they give was reserved */
    const tn_json *model = NULL;
    tn_error err = {0};
    if (tn_arena_open(&b.arena, 1 << 12, "fuzz", &err) == TN_OK &&
        tn_params_open(&b.params, &err) == TN_OK &&
        tn_json_parse(&model, (const char *)data, size, b.arena, "fuzz", &err) == TN_OK &&
        add_params(&b, model)) {
        const tn_exported_model_opts opts = {0};
        tn_model_json m = {0};
        tn_status status =
            tn_doc_get_rows(tn_model_document.rows, model, &m, b.arena, "fuzz", &err);
        if (status == TN_OK) {
            status = tn_exported_model_read(&b, &m, &opts, "fuzz", &err);
        }
        TN_ASSERT(status == TN_OK || err.text[0] != '\0');
        if (status == TN_OK && is_small(&b)) {
            run_graph(&b);
        }
    }
    tn_diag_done(&b.diag);
    tn_params_free(b.params);
    tn_arena_free(b.arena);
    return 0;
}
