/* test_model.c - every model writes a list of layers that has the published number of parameters.
 */
#include "config/tree.h"
#include "models/modelkit.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

static uint64_t dense_params(uint32_t slots, uint32_t dim, const char *model)
{
    kit k;
    kit_init(&k, slots, dim, 0);
    if (!kit_list(&k, model) || !kit_build(&k)) {
        fail_msg("%s", tn_text_str(&k.diag.text));
    }
    uint64_t n = tn_params_trained(k.params);
    kit_done(&k);
    return n;
}

static void v14_tensornet_presets_have_their_parameters(void **state)
{
    (void)state;
    assert_int_equal(dense_params(4, 8, "{type: widedeep, hidden: [512, 256, 256], head: concat}"),
                     214277);
    assert_int_equal(dense_params(4, 8, "{type: deepfm, hidden: [512, 256, 256], head: concat}"),
                     214278);
    assert_int_equal(dense_params(4, 8, "{type: dcn, hidden: [512, 256, 256], layers: 3}"), 214497);
}

static void v14_bars_models_have_their_parameters(void **state)
{
    (void)state;
    const uint64_t ids = 5389; /* of Frappe */
    const char *deep = "hidden: [400, 400, 400], batch_norm: true}";
    char model[160];
    assert_int_equal(dense_params(10, 10, "{type: lr}") + ids, 5390);
    assert_int_equal(dense_params(10, 10, "{type: fm}") + 11 * ids, 59280);
    (void)snprintf(model, sizeof model, "{type: widedeep, %s", deep);
    assert_int_equal(dense_params(10, 10, model) + 11 * ids, 423280);
    (void)snprintf(model, sizeof model, "{type: deepfm, %s", deep);
    assert_int_equal(dense_params(10, 10, model) + 11 * ids, 423280);
    (void)snprintf(model, sizeof model, "{type: dcn, layers: 3, %s", deep);
    assert_int_equal(dense_params(10, 10, model) + 10 * ids, 418591);
    (void)snprintf(model, sizeof model, "{type: dcnv2, layers: 4, %s", deep);
    assert_int_equal(dense_params(10, 10, model) + 10 * ids, 458391);
}

static void a_printed_list_builds_the_same_parameters(void **state)
{
    (void)state;
    static const char *const models[] = {
        "{type: lr}",
        "{type: fm}",
        "{type: fm, within_slot: true}",
        "{type: ffm}",
        "{type: ffm, k: 3, within_slot: true, normalise: true, slots: {deep: [s0, s2]}}",
        "{type: fwfm}",
        "{type: fwfm, linear: per_field, normalise: true}",
        "{type: widedeep, hidden: [8, 4], head: sum}",
        "{type: widedeep, hidden: [8, 4], head: concat, dropout: 0.5}",
        "{type: deepfm, hidden: [8, 4], batch_norm: true}",
        "{type: deepfm, hidden: [8, 4], head: concat, activation: prelu}",
        "{type: dcn, hidden: [8], layers: 2}",
        "{type: dcnv2, hidden: [8], layers: 2, rank: 3, structure: stacked}",
        "{type: dcnv2, layers: 2, structure: cross_only}",
    };
    for (uint32_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        kit a;
        kit b;
        kit_init(&a, 3, 4, 2);
        kit_init(&b, 3, 4, 2);
        assert_true(kit_list(&a, models[i]) && kit_build(&a));
        tn_text text = {0};
        tn_text_adds(&text, "{type: graph, ");
        for (const tn_tree *t = a.list->first; t != NULL; t = t->next) {
            tn_text_addf(&text, "%s: ", t->key);
            tn_tree_print_flow(&text, t);
            tn_text_adds(&text, t->next != NULL ? ", " : "}");
        }
        if (!kit_list(&b, tn_text_str(&text)) || !kit_build(&b)) {
            fail_msg("%s\n%s", tn_text_str(&text), tn_text_str(&b.diag.text));
        }
        assert_int_equal(tn_params_count(a.params), tn_params_count(b.params));
        for (uint32_t k = 0; k < tn_params_count(a.params); k++) {
            const tn_param_slice *p = tn_params_get(a.params, k);
            const tn_param_slice *q = tn_params_get(b.params, k);
            assert_string_equal(p->name, q->name);
            assert_int_equal(p->rows * p->cols, q->rows * q->cols);
        }
        tn_text_done(&text);
        kit_done(&a);
        kit_done(&b);
    }
}

static void every_model_has_its_presets(void **state)
{
    (void)state;
    for (const tn_model *const *m = tn_all_models; *m != NULL; m++) {
        if (strcmp((*m)->choice.name, "graph") == 0) {
            continue;
        }
        tn_text there = {0};
        tn_model_list_presets((*m)->choice.name, &there);
        assert_string_equal(tn_text_str(&there), "bars-frappe, bars-criteo, bars-avazu, "
                                                 "bars-movielens, tensornet, paper");
        tn_text_done(&there);
        assert_non_null(tn_model_preset((*m)->choice.name, "bars-avazu"));
        assert_null(tn_model_preset((*m)->choice.name, "bars"));
    }
}

static void the_output_bias_is_found_behind_additions(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{type: lr}", "bias"},
        {"{type: fm}", "bias"},
        {"{type: ffm}", "bias"},
        {"{type: fwfm}", "bias"},
        {"{type: fwfm, linear: per_field}", "linear.b"},
        {"{type: widedeep, hidden: [4, 2], head: sum}", "deep.3.b"},
        {"{type: widedeep, hidden: [4, 2], head: concat}", "out.b"},
        {"{type: deepfm, hidden: [4], head: sum}", "deep.2.b"},
        {"{type: dcn, hidden: [4]}", "out.b"},
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        kit k;
        kit_init(&k, 2, 4, 0);
        assert_true(kit_list(&k, cases[i][0]) && kit_build(&k));
        assert_non_null(k.made.output_bias);
        assert_string_equal(k.made.output_bias, cases[i][1]);
        kit_done(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(v14_tensornet_presets_have_their_parameters),
        cmocka_unit_test(v14_bars_models_have_their_parameters),
        cmocka_unit_test(a_printed_list_builds_the_same_parameters),
        cmocka_unit_test(every_model_has_its_presets),
        cmocka_unit_test(the_output_bias_is_found_behind_additions),
    };
    return cmocka_run_group_tests_name("models/model", tests, NULL, NULL);
}
