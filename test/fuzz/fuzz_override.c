/* fuzz_override.c - any texts as key=value on the command line and as the whole configuration.
 *
 * Each line is one override. What binds without a fault must print to YAML that reads back and
 * prints the same.
 */
#include "base/core/arena.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/yaml.h"
#include "models/model.h"
#include "train/config/config.h"
#include "train/config/run_bind.h"

#include <string.h>

enum { OVERRIDES_MAX = 16, BYTES_MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // NOLINT: libFuzzer's name

static const char *no_format(const char *format)
{
    (void)format;
    return NULL;
}

static const tn_presets presets = {.format = no_format, .model = tn_model_preset};

static bool bind(tn_arena *arena, tn_diag *diag, const tn_tree *tree)
{
    tn_run *run = TN_NEW(arena, tn_run);
    const tn_binder b = {.arena = arena, .diag = diag};
    tn_run_bind(&b, tree, run);
    return diag->n_errors == 0;
}

static void check_round_trip(tn_arena *arena, const tn_tree *tree)
{
    tn_text once = {0};
    tn_text twice = {0};
    tn_diag diag = {0};
    const tn_print_opts opts = {.sources = true};
    const tn_print_opts plain = {0};
    tn_fields_print(&once, tn_run_fields, tree, &opts);
    const tn_yaml_in in = {tn_text_str(&once), once.size, "printed", true, NULL, 0};
    const tn_tree *again = tn_yaml_read(arena, &diag, &in);
    TN_ASSERT(again != NULL && bind(arena, &diag, again));
    tn_text_clear(&once);
    tn_fields_print(&once, tn_run_fields, tree, &plain);
    tn_fields_print(&twice, tn_run_fields, again, &plain);
    TN_ASSERT(strcmp(tn_text_str(&once), tn_text_str(&twice)) == 0);
    tn_diag_done(&diag);
    tn_text_done(&once);
    tn_text_done(&twice);
}

/* Cuts a copy of the bytes into lines, in place. */
static uint32_t split(char *text, const char *lines[OVERRIDES_MAX])
{
    uint32_t n = 0;
    for (char *at = text; *at != '\0' && n < OVERRIDES_MAX;) {
        lines[n++] = at;
        at += strcspn(at, "\n");
        if (*at == '\n') {
            *at++ = '\0';
        }
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) // NOLINT
{
    char text[BYTES_MAX + 1] = {0};
    memcpy(text, data, size < BYTES_MAX ? size : BYTES_MAX);
    const char *lines[OVERRIDES_MAX];
    tn_arena *arena = tn_arena_new(1 << 16);
    tn_diag diag = {0};
    const tn_config_in in = {.fields = tn_run_fields,
                             .presets = &presets,
                             .overrides = lines,
                             .n_overrides = split(text, lines)};
    const tn_tree *tree = tn_config_load(&in, arena, &diag);
    TN_ASSERT(tree != NULL || diag.n_errors > 0);
    if (tree != NULL && bind(arena, &diag, tree)) {
        check_round_trip(arena, tree);
    }
    tn_diag_done(&diag);
    tn_arena_free(arena);
    return 0;
}
