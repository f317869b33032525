/* test_shipped.c - every configuration in configs/ binds, and prints to one that is the same. */
#include "config/diag.h"
#include "config/field.h"
#include "config/yaml.h"
#include "models/model.h"
#include "support/test.h"
#include "train/config/config.h"
#include "train/config/run_bind.h"

static const char *no_format(const char *format)
{
    (void)format;
    return NULL;
}

static const tn_presets presets = {.format = no_format, .model = tn_model_preset};

static void bind(const char *path, const tn_tree *tree, tn_arena *arena, tn_diag *diag)
{
    tn_run *run = TN_NEW(arena, tn_run);
    const tn_binder b = {.arena = arena, .diag = diag};
    if (tree != NULL) {
        tn_run_bind(&b, tree, run);
    }
    fail_if(diag->n_errors > 0, "%s: %s", path, tn_text_str(&diag->text));
}

static void print(tn_text *out, const tn_tree *tree, bool sources)
{
    const tn_print_opts opts = {.sources = sources};
    tn_fields_print(out, tn_run_fields, tree, &opts);
}

static void check(const char *path)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    tn_diag diag CLEANUP(tn_diag_done) = {0};
    const tn_config_in in = {.fields = tn_run_fields, .presets = &presets, .path = path};
    const tn_tree *tree = tn_config_load(&in, arena, &diag);
    bind(path, tree, arena, &diag);

    tn_text with_sources CLEANUP(tn_text_done) = {0};
    tn_text once CLEANUP(tn_text_done) = {0};
    tn_text twice CLEANUP(tn_text_done) = {0};
    print(&with_sources, tree, true);
    const tn_yaml_in printed = {with_sources.data, with_sources.size, "printed", true, NULL, 0};
    const tn_tree *again = tn_yaml_read(arena, &diag, &printed);
    bind(path, again, arena, &diag);
    print(&once, tree, false);
    print(&twice, again, false);
    assert_string_equal(tn_text_str(&once), tn_text_str(&twice));
}

/* Checks the files of a folder; returns how many. Those called common.yaml are parts of others. */
static uint32_t check_folder(const char *folder)
{
    tn_text names CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    uint32_t n = 0;
    uint32_t checked = 0;
    assert_ok(tn_dir_list(folder, &names, &n, &err), err.text);
    const char *name = tn_text_str(&names);
    for (uint32_t i = 0; i < n; i++, name += strlen(name) + 1) {
        const char *end = strrchr(name, '.');
        if (end != NULL && strcmp(end, ".yaml") == 0 && strcmp(name, "common.yaml") != 0) {
            char path[300];
            (void)snprintf(path, sizeof path, "%s/%s", folder, name);
            check(path);
            checked++;
        }
    }
    return checked;
}

TEST(every_shipped_configuration_binds_and_prints_to_itself)
{
    assert_true(check_folder("configs") >= 6);
    assert_true(check_folder("configs/frappe") >= 4);
}
