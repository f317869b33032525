/* test_space.c - values of trials: within bounds, the same for the same seed. */
#include "extra/tune/space.h"

#include "base/codec/json.h"
#include "config/diag.h"
#include "config/yaml.h"
#include "support/test.h"

typedef struct place {
    tn_arena *arena;
    tn_diag diag;
    tn_space space;
} place;

SET_UP
{
    static place p;
    p = (place){.arena = tn_arena_new(1 << 12)};
    *state = &p;
}

TEAR_DOWN
{
    place *p = *state;
    tn_diag_done(&p->diag);
    tn_arena_free(p->arena);
}

static void read_space(place *p, const char *yaml)
{
    const tn_yaml_in in = {.text = yaml, .size = strlen(yaml), .source = "test", .lines = true};
    const tn_binder b = {.arena = p->arena, .diag = &p->diag};
    const tn_tree *tree = tn_yaml_read(p->arena, &p->diag, &in);
    assert_non_null(tree);
    tn_space_read(&p->space, tree, &b);
}

/* The text after '=' of value i of a trial. */
static const char *drawn(place *p, uint32_t trial, uint32_t i)
{
    const tn_strs values = tn_space_draw(&p->space, 42, trial, p->arena);
    assert_int_equal(values.n, p->space.n);
    return strchr(values.item[i], '=') + 1;
}

TEST_ON(place *p, the_first_trial_changes_nothing)
{
    read_space(p, "{train.batch: [1, 2]}");
    assert_int_equal(tn_space_draw(&p->space, 42, 0, p->arena).n, 0);
    assert_int_equal(tn_space_draw(&p->space, 42, 1, p->arena).n, 1);
}

TEST_ON(place *p, numbers_are_drawn_within_their_bounds_and_reach_them)
{
    enum { TRIALS = 2000 };
    read_space(p, "{a.x: {range: [-1, 3]}, a.y: {log: [1e-4, 1e-2]}, a.z: {int: [2, 5]}, "
                  "a.w: {int: [1, 1000], log: true}}");
    assert_int_equal(p->diag.n_errors, 0);
    uint32_t below[4] = {0};
    uint32_t of_z[6] = {0};
    static const double low[] = {-1, 1e-4, 2, 1};
    static const double high[] = {3, 1e-2, 5, 1000};
    static const double middle[] = {1, 1e-3, 3.5, 31.1};
    for (uint32_t t = 1; t <= TRIALS; t++) {
        for (uint32_t i = 0; i < 4; i++) {
            const double x = strtod(drawn(p, t, i), NULL);
            assert_true(x >= low[i] && x <= high[i]);
            below[i] += x < middle[i];
        }
        of_z[strtoul(drawn(p, t, 2), NULL, 10)]++;
    }
    for (uint32_t i = 0; i < 4; i++) { /* half of them, four standard deviations of 22 */
        assert_in_range(below[i], TRIALS / 2 - 90, TRIALS / 2 + 90);
    }
    for (uint32_t z = 2; z <= 5; z++) {
        assert_in_range(of_z[z], TRIALS / 4 - 80, TRIALS / 4 + 80);
    }
}

TEST_ON(place *p, a_draw_depends_on_seed_option_and_trial_alone)
{
    read_space(p, "{a.x: {range: [0, 1]}, a.y: {range: [0, 1]}}");
    const char *x = drawn(p, 7, 0);
    assert_string_equal(x, drawn(p, 7, 0));
    assert_string_not_equal(x, drawn(p, 8, 0));
    assert_string_not_equal(x, drawn(p, 7, 1));
    assert_string_not_equal(strchr(tn_space_draw(&p->space, 43, 7, p->arena).item[0], '=') + 1, x);
    read_space(p, "{a.y: {range: [0, 1]}, a.x: {range: [0, 1]}}");
    assert_string_equal(x, drawn(p, 7, 1));
}

TEST_ON(place *p, a_value_of_a_list_is_yaml_on_one_line)
{
    read_space(p, "{model.hidden: [[16], [32, 16]], train.sparse: [~, {type: adam, lr: 1e-3}]}");
    assert_int_equal(p->diag.n_errors, 0);
    assert_string_equal(p->space.range[0].values.item[1], "[32, 16]");
    assert_string_equal(p->space.range[1].values.item[0], "~");
    assert_string_equal(p->space.range[1].values.item[1], "{type: adam, lr: 1e-3}");
}

TEST_ON(place *p, a_grid_has_each_combination_once)
{
    read_space(p, "{a.x: [1, 2], a.y: [p, q, r]}");
    assert_int_equal(tn_space_combinations(&p->space), 6);
    static const char *const all[] = {"1p", "1q", "1r", "2p", "2q", "2r"};
    for (uint32_t i = 0; i < 6; i++) {
        const tn_strs v = tn_space_combination(&p->space, i, p->arena);
        char found[] = {v.item[0][strlen("a.x=")], v.item[1][strlen("a.y=")], '\0'};
        assert_string_equal(found, all[i]);
    }
    read_space(p, "{a.x: [1, 2], a.y: {range: [0, 1]}}");
    assert_int_equal(tn_space_combinations(&p->space), 0);
}

TEST_ON(place *p, more_combinations_than_trials_are_not_counted)
{
    read_space(p, "{a.a: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], a.b: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], "
                  "a.c: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], a.d: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], "
                  "a.e: [0, 1]}");
    assert_int_equal(tn_space_combinations(&p->space), TN_TRIALS_MAX + 1);
}

TEST_ON(place *p, faults_are_named_at_their_place)
{
    static const char *const faults[][2] = {
        {"[1, 2]", "tune.space is not a map"},
        {"{}", "tune.space is not a map"},
        {"{lr: [1, 2]}", "'lr' is no option that trials may change"},
        {"{run.dir: [a, b]}", "'run.dir' is no option that trials may change"},
        {"{data.valid: [a, b]}", "'data.valid' is no option that trials may change"},
        {"{a.x: []}", "'a.x' has no values to try"},
        {"{a.x: 3}", "'a.x' has no values to try"},
        {"{a.x: {log: [0, 1]}}", "'a.x' has no values to try"},
        {"{a.x: {range: [1, 1]}}", "'a.x' has no values to try"},
        {"{a.x: {range: [2, 1]}}", "'a.x' has no values to try"},
        {"{a.x: {range: [0, 1, 2]}}", "'a.x' has no values to try"},
        {"{a.x: {range: [0, b]}}", "'a.x' has no values to try"},
        {"{a.x: {int: [0.5, 2]}}", "'a.x' has no values to try"},
        {"{a.x: {int: [0, 2], log: true}}", "'a.x' has no values to try"},
        {"{a.x: {int: [1, 2], log: maybe}}", "'a.x' has no values to try"},
        {"{a.x: {int: [1, 2], step: 1}}", "'a.x' has no values to try"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        read_space(p, faults[i][0]);
        assert_int_equal(p->diag.n_errors, 1);
        assert_non_null(strstr(tn_text_str(&p->diag.text), faults[i][1]));
        tn_diag_done(&p->diag);
        p->diag = (tn_diag){0};
    }
}

TEST_ON(place *p, the_space_is_what_optuna_reads)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    read_space(p, "{a.x: {log: [1e-4, 1e-2]}, a.y: {int: [2, 5]}, a.z: [[8], true]}");
    tn_space_json(&p->space, &text);
    assert_string_equal(
        tn_text_str(&text),
        "{\"a.x\":{\"name\":\"FloatDistribution\",\"attributes\":{\"log\":true,\"low\":0.0001,"
        "\"high\":0.01,\"step\":null}},\"a.y\":{\"name\":\"IntDistribution\",\"attributes\":{"
        "\"log\":false,\"low\":2,\"high\":5,\"step\":1}},\"a.z\":{\"name\":"
        "\"CategoricalDistribution\",\"attributes\":{\"choices\":[\"[8]\",\"true\"]}}}\n");
}
