/* modelkit.c - see modelkit.h. */
#include "models/modelkit.h"
#include "base/keys/record.h"
#include "config/field.h"
#include "nn/layer/layers.h"

#include "base/math/key.h"
#include "config/tree.h"

#include <stdio.h>
#include <string.h>

void kit_init(kit *k, uint32_t slots, uint32_t dim, uint32_t numeric)
{
    memset(k, 0, sizeof *k);
    k->arena = tn_arena_new(1 << 16);
    tn_model_slot *slot = TN_NEW_ARRAY(k->arena, tn_model_slot, slots);
    tn_share_group *group = TN_NEW_ARRAY(k->arena, tn_share_group, slots);
    uint32_t *class = TN_NEW_ARRAY(k->arena, uint32_t, slots);
    for (uint32_t i = 0; i < slots; i++) {
        char *name = TN_NEW_ARRAY(k->arena, char, 16);
        (void)snprintf(name, 16, "s%u", i);
        slot[i] = (tn_model_slot){.name = name, .slot = i, .group = i, .dim = dim};
        group[i] = (tn_share_group){.name = name, .salt = tn_salt(name)};
    }
    tn_model_number *number = TN_NEW_ARRAY(k->arena, tn_model_number, numeric + 1);
    for (uint32_t i = 0; i < numeric; i++) {
        char *name = TN_NEW_ARRAY(k->arena, char, 16);
        (void)snprintf(name, 16, "n%u", i);
        number[i] = (tn_model_number){.name = name, .at = i, .cols = 1};
    }
    tn_model_sequence *sequence = TN_NEW(k->arena, tn_model_sequence);
    uint32_t *item = TN_NEW_ARRAY(k->arena, uint32_t, 2);
    item[0] = slots - 1; /* and item[1], its target, is slot 0 */
    *sequence = (tn_model_sequence){
        .name = "clicks", .n = 1, .item = item, .n_target = 1, .target = item + 1, .max_len = 5};
    k->features = (tn_features){.n_sequences = slots > 1,
                                .sequence = sequence,
                                .n_slots = slots,
                                .slot = slot,
                                .n_numeric = numeric,
                                .n_numbers = numeric,
                                .number = number,
                                .n_groups = slots,
                                .group = group,
                                .group_class = class};
}

void kit_done(kit *k)
{
    tn_graph_free(k->graph);
    tn_params_free(k->params);
    tn_diag_done(&k->diag);
    tn_arena_free(k->arena);
}

typedef struct holder {
    tn_variant model;
} holder;

static const tn_field holder_fields[] = {
    TN_FIELD_VARIANT_WITH(holder, model, NULL, tn_model_choices, tn_model_common,
                          tn_model_common_fields, "the network"),
    TN_FIELD_END,
};

bool kit_list(kit *k, const char *model)
{
    tn_binder b = {.arena = k->arena, .diag = &k->diag};
    tn_tree *map = tn_tree_new(k->arena, TN_TREE_MAP, (tn_origin){.source = "test"});
    tn_tree_put(k->arena, map, "model",
                tn_tree_copy(k->arena, tn_tree_read_flow(k->arena, model, "test")));
    holder h;
    tn_fields_bind(&b, holder_fields, map, &h);
    if (k->diag.n_errors == 0) {
        k->list = tn_model_list(&h.model, &k->features, &b);
    }
    return k->diag.n_errors == 0;
}

bool kit_build(kit *k)
{
    tn_binder b = {.arena = k->arena, .diag = &k->diag};
    k->inputs = tn_inputs_read(k->list, &k->features, &b);
    k->layout = k->inputs != NULL ? tn_layout_make(k->inputs, &k->features, &b) : NULL;
    if (k->layout == NULL) {
        return false;
    }
    tn_graph_free(k->graph);
    tn_params_free(k->params);
    k->params = tn_params_new();
    tn_graph_opts usual = {.max_rows = 8, .train = true, .seed = 1};
    k->graph = tn_graph_new(k->opts.max_rows > 0 ? &k->opts : &usual);
    tn_net net = {
        .g = k->graph, .params = k->params, .dense_init = {.kind = TN_INIT_GLOROT_UNIFORM}};
    tn_list_source source = {k->list, k->inputs, &k->features, k->layout, .whole = false};
    return tn_list_build(&net, &source, &b, &k->made);
}
