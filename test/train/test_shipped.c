/* test_shipped.c - every configuration in configs/ binds, and prints to one that is the same. */
#include "base/fieldtext.h"
#include "io/yaml.h"
#include "models/model.h"
#include "support/test.h"
#include "train/config.h"
#include "train/run.h"

#include <glob.h>
#include <string.h>

static const char *no_format(const char *format)
{
    (void)format;
    return NULL;
}

static const tn_presets presets = {no_format, tn_model_preset};

static void bind(const char *path, const tn_tree *tree, tn_arena *arena, tn_diag *diag)
{
    tn_run *run = TN_NEW(arena, tn_run);
    const tn_binder b = {.arena = arena, .diag = diag};
    if (tree != NULL) {
        tn_run_bind(&b, tree, run);
    }
    if (diag->n_errors > 0) {
        fail_msg("%s: %s", path, tn_text_str(&diag->text));
    }
}

static void print(tn_text *out, const tn_tree *tree, bool sources)
{
    const tn_print_opts opts = {.sources = sources};
    tn_fields_print(out, tn_run_fields, tree, &opts);
}

static void check(const char *path)
{
    tn_arena *arena = tn_arena_new(1 << 16);
    tn_diag diag = {0};
    const tn_config_in in = {.fields = tn_run_fields, .presets = &presets, .path = path};
    const tn_tree *tree = tn_config_load(&in, arena, &diag);
    bind(path, tree, arena, &diag);

    tn_text with_sources = {0};
    tn_text once = {0};
    tn_text twice = {0};
    print(&with_sources, tree, true);
    const tn_yaml_in printed = {with_sources.data, with_sources.size, "printed", true, NULL, 0};
    const tn_tree *again = tn_yaml_read(arena, &diag, &printed);
    bind(path, again, arena, &diag);
    print(&once, tree, false);
    print(&twice, again, false);
    assert_string_equal(tn_text_str(&once), tn_text_str(&twice));

    tn_text_done(&with_sources);
    tn_text_done(&once);
    tn_text_done(&twice);
    tn_diag_done(&diag);
    tn_arena_free(arena);
}

static void every_shipped_configuration_binds_and_prints_to_itself(void **state)
{
    (void)state;
    glob_t found;
    assert_int_equal(glob("configs/*.yaml", 0, NULL, &found), 0);
    (void)glob("configs/*/*.yaml", GLOB_APPEND, NULL, &found);
    uint32_t checked = 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (strstr(found.gl_pathv[i], "common.yaml") == NULL) { /* those are parts of others */
            check(found.gl_pathv[i]);
            checked++;
        }
    }
    globfree(&found);
    assert_true(checked >= 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shipped_configuration_binds_and_prints_to_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
