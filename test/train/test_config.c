/* test_config.c - layers of a configuration: precedence, includes, presets, overrides, ranges. */
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "support/test.h"
#include "train/config/config.h"

#include <sys/stat.h>

typedef struct rule_opts {
    double lr;
    double beta;
} rule_opts;

static const tn_field rule_fields[] = {
    TN_FIELD_F64(rule_opts, lr, "1e-3", 0, 1e3, "", "h"),
    TN_FIELD_F64(rule_opts, beta, "0.9", 0, 1, "", "h"),
    TN_FIELD_END,
};

static const tn_field plain_fields[] = {
    TN_FIELD_F64(rule_opts, lr, "0.1", 0, 1e3, "", "h"),
    TN_FIELD_END,
};

static const tn_choice adam = {.name = "adam", .fields = rule_fields, .size = sizeof(rule_opts)};
static const tn_choice sgd = {.name = "sgd", .fields = plain_fields, .size = sizeof(rule_opts)};
static const tn_choice *const rules[] = {&adam, &sgd, NULL};

typedef struct net_opts {
    tn_f64s hidden;
} net_opts;

static const tn_field net_fields[] = {
    TN_FIELD_F64S(net_opts, hidden, "[400]", 1, 1e4, "h"),
    TN_FIELD_END,
};

static const tn_choice deepfm = {.name = "deepfm", .fields = net_fields, .size = sizeof(net_opts)};
static const tn_choice wide = {.name = "wide", .fields = net_fields, .size = sizeof(net_opts)};
static const tn_choice *const nets[] = {&deepfm, &wide, NULL};

typedef struct common_opts {
    const char *preset;
} common_opts;

static const tn_field common_fields[] = {
    TN_FIELD_STR(common_opts, preset, "~", "h"),
    TN_FIELD_END,
};

typedef struct train_opts {
    uint32_t epochs;
    uint32_t batch;
    tn_variant optimizer;
    const tn_tree *sparse;
} train_opts;

static const tn_field train_fields[] = {
    TN_FIELD_U32(train_opts, epochs, "1", 1, 100, "", "h"),
    TN_FIELD_U32(train_opts, batch, "1024", 1, 1e6, "rows", "h"),
    TN_FIELD_VARIANT(train_opts, optimizer, "adam", rules, "h"),
    TN_FIELD_TREE_OF(train_opts, sparse, "adam", "type", "h"),
    TN_FIELD_END,
};

typedef struct data_opts {
    const char *format;
    tn_strs train;
} data_opts;

static const tn_field data_fields[] = {
    TN_FIELD_STR(data_opts, format, NULL, "h"),
    TN_FIELD_STRS(data_opts, train, "~", "h"),
    TN_FIELD_END,
};

typedef struct slot_opts {
    const char *name;
    const char *column;
    uint32_t dim;
} slot_opts;

static const tn_field slot_fields[] = {
    TN_FIELD_STR(slot_opts, name, NULL, "h"),
    TN_FIELD_STR(slot_opts, column, "~", "h"),
    TN_FIELD_U32(slot_opts, dim, "8", 1, 1024, "", "h"),
    TN_FIELD_END,
};

typedef struct all_opts {
    data_opts data;
    tn_tables slots;
    tn_variant model;
    train_opts train;
} all_opts;

static const tn_field fields[] = {
    TN_FIELD_TABLE(all_opts, data, data_opts, data_fields, "h"),
    TN_FIELD_TABLES(all_opts, slots, slot_opts, "~", slot_fields, "h"),
    TN_FIELD_VARIANT_WITH(all_opts, model, "deepfm", nets, common_opts, common_fields, "h"),
    TN_FIELD_TABLE(all_opts, train, train_opts, train_fields, "h"),
    TN_FIELD_END,
};

static const char *format_preset(const char *format)
{
    return strcmp(format, "criteo") == 0 ? "slots: [\"I{1..2}\", \"C{01..02}\"]\n"
                                           "train: {batch: 7, epochs: 7}\n"
                                         : NULL;
}

static const char *model_preset(const char *model, const char *preset)
{
    if (preset == NULL) {
        return strcmp(model, "wide") == 0 ? "train: {batch: 5, epochs: 5}\n" : NULL;
    }
    bool known = strcmp(preset, "paper") == 0;
    return known ? "model: {hidden: [5, 5]}\ntrain: {batch: 8}\n" : NULL;
}

static const tn_presets presets = {.format = format_preset, .model = model_preset};

typedef struct fixture {
    tn_arena *arena;
    tn_diag diag;
    char dir[256];
    tn_config_in in;
} fixture;

SET_UP
{
    static fixture f;
    memset(&f, 0, sizeof f);
    f.arena = tn_arena_new(1 << 14);
    f.in = (tn_config_in){.fields = fields, .presets = &presets};
    tn_tmpdir_make(f.dir);
    *state = &f;
}

TEAR_DOWN
{
    fixture *f = *state;
    tn_diag_done(&f->diag);
    tn_arena_free(f->arena);
    tn_tmpdir_remove(f->dir);
}

/* Writes a file and returns its path, in one of a few buffers. */
static const char *file(const fixture *f, const char *name, const char *text)
{
    static char paths[4][400];
    static unsigned next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", f->dir, name);
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
    return path;
}

static const tn_tree *load(fixture *f)
{
    tn_diag_done(&f->diag);
    return tn_config_load(&f->in, f->arena, &f->diag);
}

static all_opts bind(fixture *f)
{
    all_opts opts = {0};
    const tn_tree *tree = load(f);
    fail_if(tree == NULL, "%s", tn_text_str(&f->diag.text));
    const tn_binder b = {.arena = f->arena, .diag = &f->diag};
    tn_fields_bind(&b, fields, tree, &opts);
    return opts;
}

static all_opts bind_well(fixture *f)
{
    all_opts opts = bind(f);
    assert_string_equal(tn_text_str(&f->diag.text), "");
    return opts;
}

static void assert_said(const fixture *f, const char *want)
{
    assert_says(tn_text_str(&f->diag.text), want);
}

static void set_overrides(fixture *f, const char *const *overrides, uint32_t n)
{
    f->in.overrides = overrides;
    f->in.n_overrides = n;
}

static const slot_opts *slot(const all_opts *opts, uint32_t i)
{
    assert_in_range(i, 0, opts->slots.n - 1);
    return (const slot_opts *)opts->slots.item + i;
}

TEST_ON(fixture *f, later_layers_win_key_by_key)
{
    (void)file(f, "common.yaml", "train: {epochs: 2, batch: 20, optimizer: {lr: 2}}\n");
    f->in.path =
        file(f, "a.yaml", "include: common.yaml\ndata: {format: criteo}\ntrain: {epochs: 3}\n");
    all_opts o = bind_well(f);
    assert_int_equal(o.train.epochs, 3);
    assert_int_equal(o.train.batch, 20);
    static const char *const env[] = {"HOME=/", "TNET_TRAIN__EPOCHS=4", "TNET_TRAIN__BATCH=40",
                                      NULL};
    f->in.env = env;
    static const char *const overrides[] = {"train.epochs=5", "train.epochs=6"};
    set_overrides(f, overrides, 2);
    o = bind_well(f);
    assert_int_equal(o.train.epochs, 6);
    assert_int_equal(o.train.batch, 40);
    assert_true(((const rule_opts *)o.train.optimizer.opts)->lr == 2);
}

TEST_ON(fixture *f, a_preset_lies_under_the_file_and_above_the_defaults)
{
    f->in.path = file(f, "a.yaml", "data: {format: criteo}\ntrain: {epochs: 3}\n");
    all_opts o = bind_well(f);
    assert_int_equal(o.train.batch, 7);
    assert_int_equal(o.train.epochs, 3);
    assert_int_equal(o.slots.n, 4);
    assert_string_equal(slot(&o, 3)->name, "C02");
    const tn_tree *tree = load(f);
    assert_string_equal(tn_tree_at(tree, "train.batch")->at.source, "preset criteo");
    assert_int_equal(tn_tree_at(tree, "train.epochs")->at.line, 2);
}

TEST_ON(fixture *f, any_layer_may_choose_the_preset)
{
    f->in.path = file(f, "a.yaml", "data: {format: csv}\nslots: [a]\n");
    assert_int_equal(bind_well(f).train.batch, 1024);
    static const char *const overrides[] = {"data.format=criteo", "model.preset=paper"};
    set_overrides(f, overrides, 1);
    assert_int_equal(bind_well(f).train.batch, 7);
    set_overrides(f, overrides, 2);
    all_opts o = bind_well(f);
    assert_int_equal(o.train.batch, 8);
    assert_int_equal(o.train.epochs, 7);
    assert_int_equal(((const net_opts *)o.model.opts)->hidden.n, 2);
    assert_int_equal(o.slots.n, 1); /* lists are replaced */
}

TEST_ON(fixture *f, defaults_of_a_model_lie_under_its_preset_and_the_file)
{
    f->in.path = file(f, "a.yaml", "data: {format: criteo}\nmodel: wide\n");
    assert_int_equal(bind_well(f).train.batch, 5); /* above the preset of the format */
    assert_string_equal(tn_tree_at(load(f), "train.batch")->at.source, "default of wide");
    f->in.path = file(f, "b.yaml", "model: {type: wide, preset: paper}\ndata: {format: x}\n");
    all_opts o = bind_well(f);
    assert_int_equal(o.train.batch, 8);
    assert_int_equal(o.train.epochs, 5);
    f->in.path = file(f, "c.yaml", "model: wide\ntrain: {batch: 9}\ndata: {format: x}\n");
    assert_int_equal(bind_well(f).train.batch, 9);
}

TEST_ON(fixture *f, an_unknown_model_preset_is_an_error)
{
    f->in.path = file(f, "a.yaml", "data: {format: x}\nmodel: {preset: papr}\n");
    (void)bind(f);
    assert_said(f, "a.yaml:2:17: error: model 'deepfm' has no preset 'papr'");
}

TEST_ON(fixture *f, includes_are_relative_to_the_including_file)
{
    PATH_IN(sub, f->dir, "sub");
    assert_int_equal(mkdir(sub, 0755), 0);
    (void)file(f, "sub/deep.yaml", "train: {epochs: 9, batch: 9}\n");
    (void)file(f, "sub/b.yaml", "include: deep.yaml\ntrain: {epochs: 8}\n");
    f->in.path = file(f, "a.yaml", "include: [sub/b.yaml]\ndata: {format: x}\n");
    all_opts o = bind_well(f);
    assert_int_equal(o.train.epochs, 8);
    assert_int_equal(o.train.batch, 9);
}

TEST_ON(fixture *f, one_file_may_be_included_twice_but_not_in_a_cycle)
{
    (void)file(f, "base.yaml", "train: {epochs: 9}\n");
    (void)file(f, "b.yaml", "include: base.yaml\n");
    (void)file(f, "c.yaml", "include: ./base.yaml\n");
    f->in.path = file(f, "a.yaml", "include: [b.yaml, c.yaml]\ndata: {format: x}\n");
    assert_int_equal(bind_well(f).train.epochs, 9);
    (void)file(f, "base.yaml", "\ninclude: ././a.yaml\n");
    assert_null(load(f));
    assert_said(f, "base.yaml:2:10: error: '");
    assert_said(f, "a.yaml' includes itself");
    assert_said(f, "hint: included in line 1 of '");
}

TEST_ON(fixture *f, a_missing_include_is_an_error_that_says_who_wanted_it)
{
    f->in.path = file(f, "a.yaml", "include: nowhere.yaml\n");
    assert_null(load(f));
    assert_said(f, "nowhere.yaml'");
    assert_said(f, "hint: included in line 1 of '");
    f->in.path = file(f, "a.yaml", "include: {a: 1}\n");
    assert_null(load(f));
    assert_said(f, "'include' must be a file or a list of files");
}

TEST_ON(fixture *f, overrides_reach_list_items_by_name)
{
    f->in.path = file(f, "a.yaml", "data: {format: criteo}\nslots: {I1: {dim: 3}}\n");
    static const char *const overrides[] = {"slots.C01.dim=4", "slots.I{1..2}.column=x"};
    set_overrides(f, overrides, 2);
    static const char *const env[] = {"TNET_SLOTS__C02__DIM=5", NULL};
    f->in.env = env;
    all_opts o = bind_well(f);
    assert_int_equal(slot(&o, 0)->dim, 3);
    assert_string_equal(slot(&o, 0)->column, "x");
    assert_string_equal(slot(&o, 1)->column, "x");
    assert_int_equal(slot(&o, 2)->dim, 4);
    assert_int_equal(slot(&o, 3)->dim, 5);
    static const char *const wrong[] = {"slots.C9.dim=4"};
    set_overrides(f, wrong, 1);
    (void)bind(f);
    assert_said(f, "command line: error: unknown name in 'slots': 'C9'");
    assert_said(f, "slots.C9.dim=4\n      ^~");
}

TEST_ON(fixture *f, a_lone_dash_is_a_name_not_a_list)
{
    f->in.path = file(f, "a.yaml", "data: {format: csv}\nslots: [a]\n");
    static const char *const overrides[] = {"data.format=-"};
    set_overrides(f, overrides, 1);
    const tn_tree *tree = load(f);
    assert_string_equal(tn_tree_at(tree, "data.format")->text, "-");
    f->in.n_overrides = 0;
    static const char *const env[] = {"TNET_DATA__FORMAT=-", NULL};
    f->in.env = env;
    assert_string_equal(tn_tree_at(load(f), "data.format")->text, "-");
    static const char *const marks[] = {"data.delimiter=,", "data.delimiter=|", "data.delimiter= "};
    for (uint32_t i = 0; i < 3; i++) {
        set_overrides(f, marks + i, 1);
        assert_string_equal(tn_tree_at(load(f), "data.delimiter")->text, strchr(marks[i], '=') + 1);
    }
}

TEST_ON(fixture *f, overrides_reach_into_shorthands)
{
    f->in.path = file(f, "a.yaml", "data: x\ntrain: {optimizer: sgd, sparse: sgd}\n");
    static const char *const overrides[] = {"train.optimizer.lr=0.5", "train.sparse.lr=3"};
    set_overrides(f, overrides, 2);
    all_opts o = bind_well(f);
    assert_string_equal(o.data.format, "x");
    assert_string_equal(o.train.optimizer.choice->name, "sgd");
    assert_true(((const rule_opts *)o.train.optimizer.opts)->lr == 0.5);
    assert_string_equal(tn_tree_at(o.train.sparse, "type")->text, "sgd");
    assert_string_equal(tn_tree_at(o.train.sparse, "lr")->text, "3");
}

TEST_ON(fixture *f, an_override_of_a_type_begins_anew_in_any_order)
{
    f->in.path = file(f, "a.yaml", "train: {optimizer: {lr: 2}, sparse: {wide: {type: adam}}}\n");
    static const char *const overrides[] = {"data=x", "train.optimizer=sgd",
                                            "train.sparse.wide.lr=3", "train.sparse.wide.type=sgd"};
    set_overrides(f, overrides, 4);
    all_opts o = bind_well(f);
    assert_true(((const rule_opts *)o.train.optimizer.opts)->lr == 0.1);
    assert_string_equal(tn_tree_at(o.train.sparse, "wide.lr")->text, "3");
}

TEST_ON(fixture *f, overrides_are_yaml_on_the_right)
{
    static const char *const overrides[] = {
        "data={format: x, train: [a, 'b=c']}",
        "train.optimizer={type: sgd, lr: 2}",
        "train.batch=",
        "model.hidden=[1, 2, 3]",
    };
    set_overrides(f, overrides, 4);
    all_opts o = bind_well(f);
    assert_int_equal(o.data.train.n, 2);
    assert_string_equal(o.data.train.item[1], "b=c");
    assert_int_equal(o.train.batch, 1024);
    assert_int_equal(((const net_opts *)o.model.opts)->hidden.n, 3);
}

TEST_ON(fixture *f, a_bad_override_is_shown_with_a_caret)
{
    static const char *const overrides[] = {"data=x", "train.epohcs=3", "train.batch=0"};
    set_overrides(f, overrides, 3);
    (void)bind(f);
    assert_said(f, "command line: error: unknown key 'epohcs' (did you mean 'epochs'?)\n"
                   "train.epohcs=3\n"
                   "      ^~~~~~\n");
    assert_said(f, "command line: error: 'batch' is 0, not within 1 .. 1000000 rows\n"
                   "train.batch=0\n"
                   "            ^\n");
    static const char *const broken[] = {"data=[", "train..x=1", "=3", "no"};
    set_overrides(f, broken, 4);
    assert_null(load(f));
    assert_int_equal(f->diag.n_errors, 4);
    assert_said(f, "command line: error: a name is missing in '.x'");
    assert_said(f, "'no' is not of the form section.key=value");
}

TEST_ON(fixture *f, variables_without_sections_are_none_of_ours)
{
    static const char *const env[] = {"TNET_RANK=3", "TNET_FAIL=x", "TNET_DATA=y", "TNETX__Y=1",
                                      NULL};
    f->in.env = env;
    assert_string_equal(bind_well(f).data.format, "y");
    static const char *const wrong[] = {"TNET_TRAIN__EPOHCS=3", "TNET_DATA=y", NULL};
    f->in.env = wrong;
    (void)bind(f);
    assert_said(f, "TNET_TRAIN__EPOHCS: error: unknown key 'epohcs' (did you mean 'epochs'?)");
}

TEST_ON(fixture *f, the_order_of_the_environment_does_not_matter)
{
    static const char *const env[] = {"TNET_SLOTS__B__DIM=3", "TNET_DATA=y", "TNET_SLOTS=[a, b]",
                                      NULL};
    f->in.env = env;
    all_opts o = bind_well(f);
    assert_int_equal(slot(&o, 1)->dim, 3);
}

TEST_ON(fixture *f, ranges_expand_in_names_and_beside_them)
{
    f->in.path = file(f, "a.yaml",
                      "data: x\n"
                      "slots:\n"
                      "  - {name: \"a{9..11}\", column: \"x{9..11}_{9..11}\"}\n"
                      "  - b{001..2}c\n");
    all_opts o = bind_well(f);
    assert_int_equal(o.slots.n, 5);
    assert_string_equal(slot(&o, 0)->name, "a9");
    assert_string_equal(slot(&o, 2)->column, "x11_11");
    assert_string_equal(slot(&o, 3)->name, "b001c");
    assert_string_equal(slot(&o, 4)->name, "b002c");
}

TEST_ON(fixture *f, all_faults_of_all_layers_are_shown)
{
    (void)file(f, "common.yaml", "trian: {}\n");
    f->in.path = file(f, "a.yaml", "include: common.yaml\ntrain: {epochs: 0, epochs: 2}\n");
    static const char *const env[] = {"TNET_TRAIN__BATCH=x", NULL};
    f->in.env = env;
    static const char *const overrides[] = {"model.type=deepmf"};
    set_overrides(f, overrides, 1);
    (void)bind(f);
    assert_int_equal(f->diag.n_errors, 6);
    assert_said(f, "common.yaml:1:1: error: unknown key 'trian' (did you mean 'train'?)");
    assert_said(f, "duplicate key 'epochs'");
    assert_said(f, "'epochs' is 0");
    assert_said(f, "TNET_TRAIN__BATCH: error: 'batch' is not a number: 'x'");
    assert_said(f, "unknown model 'deepmf' (did you mean 'deepfm'?)");
    assert_said(f, "a.yaml:1:1: error: required key 'data.format' is missing");
    assert_said(f, "\nhint: format: ");
}

TEST_ON(fixture *f, a_preset_is_chosen_below_shorthands_and_defaults)
{
    f->in.path = file(f, "a.yaml", "data: criteo\nmodel: deepfm\n");
    static const char *const overrides[] = {"model.preset=paper"};
    set_overrides(f, overrides, 1);
    const all_opts o = bind_well(f);
    assert_int_equal(o.train.epochs, 7);
    assert_int_equal(o.train.batch, 8);
}
