/* fuzz_yaml.c - any bytes as YAML: a tree that prints and reads back equal, or a reported fault. */
#include "base/core/arena.h"
#include "base/core/error.h"
#include "config/diag.h"
#include "config/tree.h"
#include "config/yaml.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // NOLINT: libFuzzer's name

static tn_tree *read(tn_arena *arena, tn_diag *diag, const char *text, size_t size)
{
    const tn_yaml_in in = {text, size, "fuzz", true, NULL, 0};
    return tn_yaml_read(arena, diag, &in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) // NOLINT
{
    tn_arena *arena = tn_arena_new(1 << 14);
    tn_diag diag = {0};
    tn_text printed = {0};
    tn_text again = {0};
    const tn_tree *tree = read(arena, &diag, (const char *)data, size);
    TN_ASSERT(tree != NULL || diag.n_errors > 0);
    if (tree != NULL) {
        tn_tree_print_flow(&printed, tree);
        tn_diag second = {0};
        const tn_tree *copy = read(arena, &second, tn_text_str(&printed), printed.size);
        TN_ASSERT(copy != NULL || printed.size > TN_YAML_BYTES_MAX);
        if (copy != NULL) {
            tn_tree_print_flow(&again, copy);
            TN_ASSERT(strcmp(tn_text_str(&printed), tn_text_str(&again)) == 0);
        }
        tn_diag_done(&second);
    }
    tn_text_done(&again);
    tn_text_done(&printed);
    tn_diag_done(&diag);
    tn_arena_free(arena);
    return 0;
}
