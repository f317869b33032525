/* test_field.c - option tables: defaults, values, and what the user is told. */
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "support/test.h"

typedef struct adam_opts {
    double lr;
    double beta1;
} adam_opts;

static const tn_field adam_fields[] = {
    TN_FIELD_F64(adam_opts, lr, "1e-3", 0, 1e3, "", "learning rate"),
    TN_FIELD_F64(adam_opts, beta1, "0.9", 0, 1, "", "decay of the mean"),
    TN_FIELD_END,
};

typedef struct sgd_opts {
    double lr;
} sgd_opts;

static const tn_field sgd_fields[] = {
    TN_FIELD_F64(sgd_opts, lr, "0.1", 0, 1e3, "", "learning rate"),
    TN_FIELD_END,
};

static const tn_choice adam = {.name = "adam", .fields = adam_fields, .size = sizeof(adam_opts)};
static const tn_choice sgd = {.name = "sgd", .fields = sgd_fields, .size = sizeof(sgd_opts)};
static const tn_choice none = {.name = "none"};
static const tn_choice *const optimizers[] = {&adam, &sgd, &none, NULL};

typedef struct common_opts {
    double l2;
} common_opts;

static const tn_field common_fields[] = {
    TN_FIELD_F64(common_opts, l2, "0", 0, 1, "", "weight decay"),
    TN_FIELD_END,
};

typedef struct slot_opts {
    const char *name;
    uint32_t dim;
} slot_opts;

static const tn_field slot_fields[] = {
    TN_FIELD_STR(slot_opts, name, NULL, "what to call it"),
    TN_FIELD_U32(slot_opts, dim, "~", 1, 1024, "floats", "width"),
    TN_FIELD_END,
};

typedef struct stop_opts {
    const char *monitor;
    uint32_t patience;
} stop_opts;

static const tn_field stop_fields[] = {
    TN_FIELD_STR(stop_opts, monitor, NULL, "metric to watch"),
    TN_FIELD_U32(stop_opts, patience, "2", 0, 100, "", "evaluations without gain"),
    TN_FIELD_END,
};

static const tn_field hook_fields[] = {
    TN_FIELD_U32(slot_opts, dim, "7", 1, 1024, "", "h"),
    TN_FIELD_STR(slot_opts, name, "~", "h"),
    TN_FIELD_END_OF(slot_opts),
};

static const char *const gemms[] = {"auto", "own", "blas", NULL};
static const char *const all[] = {"all", "auto", NULL};
static const char *const endless[] = {"inf", NULL};

typedef struct all_opts {
    bool fast;
    uint32_t epochs;
    uint32_t threads;
    uint64_t seed;
    double rate;
    double staleness;
    double grace;
    uint64_t memory;
    const char *dir;
    uint32_t gemm;
    tn_strs metrics;
    tn_f64s edges;
    stop_opts stop;
    tn_tables slots;
    tn_variant optimizer;
    tn_variant sparse;
    const tn_tree *label;
    const tn_tree *init;
    void *hook;
} all_opts;

static const tn_field fields[] = {
    TN_FIELD_BOOL(all_opts, fast, "false", "h"),
    TN_FIELD_U32(all_opts, epochs, "1", 1, 1e6, "passes", "h"),
    TN_FIELD_U32W(all_opts, threads, "all", 1, 1024, "", all, "h"),
    TN_FIELD_U64(all_opts, seed, "42", 0, 0x1p64, "", "h"),
    TN_FIELD_F64(all_opts, rate, "0.5", 0, 1, "", "h"),
    TN_FIELD_F64W(all_opts, staleness, "0", 0, 1e6, "steps", endless, "h"),
    TN_FIELD_DURATION(all_opts, grace, "20s", 0, 86400, "h"),
    TN_FIELD_SIZEW(all_opts, memory, "~", 1, 1e15, all, "h"),
    TN_FIELD_STR(all_opts, dir, "runs/x", "h"),
    TN_FIELD_CHOICE(all_opts, gemm, "auto", gemms, "h"),
    TN_FIELD_STRS(all_opts, metrics, "[auc, logloss]", "h"),
    TN_FIELD_F64S(all_opts, edges, "~", -10, 10, "h"),
    TN_FIELD_TABLE(all_opts, stop, stop_opts, stop_fields, "h"),
    TN_FIELD_TABLES(all_opts, slots, slot_opts, "[]", slot_fields, "h"),
    TN_FIELD_VARIANT(all_opts, optimizer, "adam", optimizers, "h"),
    TN_FIELD_VARIANT_WITH(all_opts, sparse, "{type: adam, lr: 0.05, l2: 0.5}", optimizers,
                          common_opts, common_fields, "h"),
    TN_FIELD_TREE_OF(all_opts, label, "{column: label}", "column", "h"),
    TN_FIELD_TREE_ONE(all_opts, init, "{uniform: [-1, 1]}", "h"),
    TN_ROW(TN_KIND_TABLE, all_opts, hook, void *, "{}", 0, 0, "", "h", .table = hook_fields,
           .apart = true),
    TN_FIELD_END,
};

/* What a text of YAML binds to. */
typedef struct bound {
    tn_arena *arena;
    tn_diag diag;
    all_opts opts;
} bound;

SET_UP
{
    static bound b;
    memset(&b, 0, sizeof b);
    b.arena = tn_arena_new(1 << 14);
    *state = &b;
}

TEAR_DOWN
{
    bound *b = *state;
    tn_diag_done(&b->diag);
    tn_arena_free(b->arena);
}

static const all_opts *bind(bound *b, const char *text)
{
    tn_diag_done(&b->diag);
    memset(&b->opts, 0x5A, sizeof b->opts);
    const tn_binder binder = {.arena = b->arena, .diag = &b->diag};
    const tn_tree *tree = text != NULL ? tn_tree_read_flow(b->arena, text, "test") : NULL;
    tn_fields_bind(&binder, fields, tree, &b->opts);
    return &b->opts;
}

static const all_opts *bind_well(bound *b, const char *text)
{
    const all_opts *o = bind(b, text);
    assert_string_equal(tn_text_str(&b->diag.text), "");
    return o;
}

static void assert_fault(bound *b, const char *text, const char *want)
{
    (void)bind(b, text);
    fail_if(strstr(tn_text_str(&b->diag.text), want) == NULL, "%s: '%s' is not in: %s", text, want,
            tn_text_str(&b->diag.text));
    assert_int_equal(b->diag.n_errors, 1);
}

TEST(defaults_are_those_of_the_table)
{
    const all_opts *o = bind(*state, "{stop: auc}");
    assert_false(o->fast);
    assert_int_equal(o->epochs, 1);
    assert_int_equal(o->threads, TN_WORD_U32(0));
    assert_int_equal(o->seed, 42);
    assert_true(o->rate == 0.5 && o->grace == 20);
    assert_int_equal(o->memory, TN_UNSET_U64);
    assert_string_equal(o->dir, "runs/x");
    assert_int_equal(o->gemm, 0);
    assert_int_equal(o->metrics.n, 2);
    assert_string_equal(o->metrics.item[1], "logloss");
    assert_int_equal(o->edges.n, 0);
    assert_string_equal(o->stop.monitor, "auc");
    assert_int_equal(o->slots.n, 0);
    assert_string_equal(o->optimizer.choice->name, "adam");
    assert_true(((const adam_opts *)o->optimizer.opts)->beta1 == 0.9);
    assert_true(((const adam_opts *)o->sparse.opts)->lr == 0.05);
    assert_true(((const common_opts *)o->sparse.shared)->l2 == 0.5);
    assert_string_equal(tn_tree_get(o->label, "column")->text, "label");
}

TEST(scalars_are_read_by_declared_type)
{
    const all_opts *o =
        bind_well(*state, "{stop: no, epochs: 010, rate: 1e-3, fast: no, dir: 12:30, gemm: blas}");
    assert_string_equal(o->stop.monitor, "no");
    assert_int_equal(o->epochs, 10);
    assert_true(o->rate == 1e-3);
    assert_false(o->fast);
    assert_int_equal(o->gemm, 2);
}

TEST(counts_sizes_and_durations_have_units)
{
    const all_opts *o = bind_well(
        *state, "{stop: x, epochs: 64k, seed: 18446744073709551614, grace: 2h30m, memory: 1.5GiB}");
    assert_int_equal(o->epochs, 64000);
    assert_true(o->seed == UINT64_MAX - 1);
    assert_true(o->grace == 9000);
    assert_true(o->memory == 3ULL << 29);
    o = bind_well(*state, "{stop: x, memory: auto}");
    assert_true(o->memory == TN_WORD_U64(1));
    o = bind_well(*state, "{stop: x, epochs: 1M, grace: 500ms, memory: 512MB}");
    assert_int_equal(o->epochs, 1000000);
    assert_true(o->grace == 0.5);
    assert_true(o->memory == 512000000);
    o = bind_well(*state, "{stop: x, epochs: 1e3, grace: 0, seed: 1.5k}");
    assert_int_equal(o->epochs, 1000);
    assert_int_equal(o->seed, 1500);
    assert_true(o->grace == 0);
}

TEST(numbers_may_be_words)
{
    const all_opts *o = bind_well(*state, "{stop: x, threads: auto, staleness: inf}");
    assert_int_equal(o->threads, TN_WORD_U32(1));
    assert_true(isinf(o->staleness));
    o = bind_well(*state, "{stop: x, threads: 8, staleness: 2}");
    assert_int_equal(o->threads, 8);
    assert_true(o->staleness == 2);
}

TEST(a_scalar_stands_for_the_first_option)
{
    const all_opts *o = bind_well(*state, "{stop: auc, slots: [user, {name: item, dim: 4}]}");
    assert_string_equal(o->stop.monitor, "auc");
    const slot_opts *slots = o->slots.item;
    assert_int_equal(o->slots.n, 2);
    assert_string_equal(slots[0].name, "user");
    assert_int_equal(slots[0].dim, TN_UNSET_U32);
    assert_int_equal(slots[1].dim, 4);
    assert_string_equal(tn_tree_get(o->slots.tree[1], "name")->text, "item");
}

TEST(a_section_apart_has_a_struct_of_its_own)
{
    const slot_opts *hook = bind_well(*state, "{stop: x}")->hook;
    assert_true(hook->dim == 7 && hook->name == NULL);
    hook = bind_well(*state, "{stop: x, hook: {name: door, dim: 3}}")->hook;
    assert_int_equal(hook->dim, 3);
    assert_string_equal(hook->name, "door");
    assert_fault(*state, "{stop: x, hook: {doors: 3}}", "unknown key 'doors'");
    hook = bind(*state, "{stop: x, hook: [1]}")->hook;
    assert_int_equal(hook->dim, 7);
}

TEST(a_variant_takes_the_defaults_of_its_choice)
{
    const all_opts *o = bind_well(*state, "{stop: x, optimizer: sgd, sparse: {type: sgd, l2: 1}}");
    assert_string_equal(o->optimizer.choice->name, "sgd");
    assert_true(((const sgd_opts *)o->optimizer.opts)->lr == 0.1);
    /* not the 0.05 that the fallback gives to adam */
    assert_true(((const sgd_opts *)o->sparse.opts)->lr == 0.1);
    assert_true(((const common_opts *)o->sparse.shared)->l2 == 1);
    o = bind_well(*state, "{stop: x, optimizer: {beta1: 0.5}, sparse: {beta1: 0.5}}");
    assert_true(((const adam_opts *)o->optimizer.opts)->beta1 == 0.5);
    assert_true(((const adam_opts *)o->sparse.opts)->lr == 0.05);
    /* whoever writes the type, and be it that of the fallback, gets what the table says of it */
    o = bind_well(*state, "{stop: x, sparse: {type: adam, l2: 0.25}}");
    assert_true(((const adam_opts *)o->sparse.opts)->lr == 1e-3);
    assert_true(((const common_opts *)o->sparse.shared)->l2 == 0.25);
    o = bind_well(*state, "{stop: x, sparse: adam}");
    assert_true(((const common_opts *)o->sparse.shared)->l2 == 0);
    o = bind_well(*state, "{stop: x, optimizer: none}");
    assert_null(o->optimizer.opts);
}

TEST(not_set_is_the_default)
{
    const all_opts *o = bind_well(*state, "{stop: x, epochs: ~, metrics: ~, memory: ~}");
    assert_int_equal(o->epochs, 1);
    assert_int_equal(o->metrics.n, 2);
    o = bind_well(*state, "{stop: x, dir: '~'}");
    assert_string_equal(o->dir, "~");
}

TEST(lists_may_be_single_values)
{
    const all_opts *o = bind_well(*state, "{stop: x, metrics: auc, edges: [-1, 2.5], slots: []}");
    assert_int_equal(o->metrics.n, 1);
    assert_int_equal(o->edges.n, 2);
    assert_true(o->edges.item[1] == 2.5);
}

TEST(a_bad_value_is_refused_in_words)
{
    static const struct {
        const char *text;
        const char *want;
    } cases[] = {
        {"{stop: x, epochs: 0}", "'epochs' is 0, not within 1 .. 1000000 passes\n"},
        {"{stop: x, epochs: -1}", "'epochs' is -1, not within 1 .. 1000000 passes\n"},
        {"{stop: x, epochs: 99999999999999999999}", "'epochs' is 99999999999999999999, not within"},
        {"{stop: x, epochs: 2.5}", "'epochs' is not a whole number: '2.5'"},
        {"{stop: x, epochs: many}", "'epochs' is not a number: 'many'"},
        {"{stop: x, epochs: 64K}", "'epochs' is not a number: '64K'"},
        {"{stop: x, epochs: ''}", "'epochs' is not a number: ''"},
        {"{stop: x, epochs: 0x10}", "'epochs' is not a number: '0x10'"},
        {"{stop: x, epochs: [1]}", "'epochs' must be a single value, not a list"},
        {"{stop: x, threads: al}", "'threads' is not a number: 'al'"},
        {"{stop: x, rate: nan}", "'rate' is not a number: 'nan'"},
        {"{stop: x, rate: inf}", "'rate' is not a number: 'inf'"},
        {"{stop: x, rate: 1.5}", "'rate' is 1.5, not within 0 .. 1\n"},
        {"{stop: x, grace: 20}",
         "'grace' is not a duration: '20'\nhint: write a number with a unit"},
        {"{stop: x, grace: 20x}", "'grace' is not a duration: '20x'"},
        {"{stop: x, grace: 2h30}", "'grace' is not a duration: '2h30'"},
        {"{stop: x, grace: -1s}", "'grace' is -1s, not within 0 .. 86400 s\n"},
        {"{stop: x, memory: 5}", "'memory' is not a size: '5'"},
        {"{stop: x, memory: 1.5B}", "'memory' is not a whole number of bytes: '1.5B'"},
        {"{stop: x, memory: 9999TiB}", "'memory' is 9999TiB, not within 1 .. "},
        {"{stop: x, fast: maybe}", "'fast' is not true or false: 'maybe'"},
        {"{stop: x, gemm: blass}", "unknown value of 'gemm': 'blass' (did you mean 'blas'?)"},
        {"{stop: x, optimizer: adma}", "unknown optimizer 'adma' (did you mean 'adam'?)"},
        {"{stop: x, optimizer: [adam]}", "'optimizer' must be a name, or a map with a 'type'"},
        {"{stop: x, optimizer: {lrr: 1}}", "unknown key 'lrr' (did you mean 'lr'?)"},
        {"{stop: x, sparse: {tpye: sgd}}", "unknown key 'tpye' (did you mean 'type'?)"},
        {"{stop: x, metrics: {a: 1}}", "'metrics' must be a list"},
        {"{stop: x, metrics: [[a]]}", "'metrics' must be a single value, not a list"},
        {"{stop: x, edges: '1,2'}", "'1,2'\nhint: a list is written [400, 200]\n"},
        {"{stop: x, edges: [1 2]}", "'1 2'\nhint: a list is written [400, 200]\n"},
        {"{stop: x, edges: [1, 11]}", "'edges' is 11, not within -10 .. 10"},
        {"{stop: [x]}", "'stop' must be a map"},
        {"{stop: x, slots: {a: 1}}", "'slots' must be a list"},
        {"{stop: x, slots: [{name: a, dim: 0}]}", "'dim' is 0, not within 1 .. 1024 floats"},
        {"{stop: x, slots: [[a]]}", "an item of 'slots' must be a map"},
        {"{stop: x, slots: [{dim: 3}]}", "required key 'slots.name' is missing"},
        {"{stop: {patience: 3}}", "required key 'stop.monitor' is missing"},
        {"{epochs: 3}", "required key 'stop.monitor' is missing"},
        {"{stop: x, epochz: 3}", "unknown key 'epochz' (did you mean 'epochs'?)"},
        {"{stop: x, learn: 3}", "unknown key 'learn'\n"},
        {"{stop: {monitor: x, watch: 3}}", "unknown key 'watch' (did you mean 'stop.monitor'?)"},
        {"{stop: x, patience: 3}", "unknown key 'patience' (did you mean 'stop.patience'?)"},
        {"{stop: x, beta1: .5}",
         "unknown key 'beta1' (did you mean 'optimizer.beta1' or 'sparse.beta1'?)"},
        {"{stop: {monitor: x, epochs: 3}}",
         "unknown key 'epochs' (did you mean the section 'epochs'?)"},
        /* of another choice: it stands where it belongs, and is no suggestion */
        {"{stop: x, optimizer: {type: sgd, beta1: .5}}", "unknown key 'beta1'\n"},
        {"{stop: x, sparse: {type: sgd, beta1: .5}}", "\nhint: there are: type "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_fault(*state, cases[i].text, cases[i].want);
    }
}

TEST(a_field_at_fault_has_its_default)
{
    const all_opts *o = bind(*state, "{stop: x, epochs: 0, metrics: {a: 1}, optimizer: adma}");
    assert_int_equal(o->epochs, 1);
    assert_int_equal(o->metrics.n, 2);
    assert_string_equal(o->optimizer.choice->name, "adam");
}

TEST_ON(bound *b, a_list_is_no_configuration)
{
    (void)bind(b, "[a]");
    assert_non_null(strstr(tn_text_str(&b->diag.text), "this must be a map"));
}

TEST_ON(bound *b, every_fault_is_shown_not_only_the_first)
{
    (void)bind(b, "{epochs: 0, rate: 2, zzz: 1, optimizer: {lr: -1, q: 2}}");
    assert_int_equal(b->diag.n_errors, 6);
}

TEST_ON(bound *b, bind_some_leaves_other_keys_alone)
{
    const tn_binder binder = {.arena = b->arena, .diag = &b->diag};
    slot_opts slot = {0};
    tn_fields_bind_some(&binder, slot_fields,
                        tn_tree_read_flow(b->arena, "{name: a, other: 1}", "t"), &slot);
    assert_int_equal(b->diag.n_errors, 0);
    assert_string_equal(slot.name, "a");
}
