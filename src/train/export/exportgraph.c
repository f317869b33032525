/* exportgraph.c - the graph that is served: norms folded, dropout gone, sampling corrected. */
#include "base/math/fmath.h"
#include "nn/op/ops.h"
#include "nn/passes/graphjson.h"
#include "train/export/exportjson.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *text_in(tn_arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = TN_NEW_ARRAY(arena, char, size);
    memcpy(copy, text, size);
    return copy;
}

/* "pctr", or one with a number where the user's model has such a node. */
static const char *free_name(const tn_graph *g, const char *stem, tn_arena *arena)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s", stem);
    for (uint32_t i = 2; tn_graph_find(g, name) != NULL; i++) {
        (void)snprintf(name, sizeof name, "%s.%u", stem, i);
    }
    return text_in(arena, name);
}

static tn_status copy_weights(tn_params *to, tn_params *from, tn_error *err)
{
    for (uint32_t i = 0; i < tn_params_count(to); i++) {
        const tn_param_slice *s = tn_params_get(to, i);
        const tn_param_slice *old = tn_params_find(from, s->name);
        TN_ASSERT(old != NULL && old->rows == s->rows && old->cols == s->cols);
        const float *w = tn_params_weights(from) + old->at;
        size_t n = (size_t)s->rows * s->cols;
        for (size_t k = 0; k < n; k++) {
            if (!isfinite(w[k])) {
                return tn_fail(err, TN_E_CKPT, "a weight of '%s' is not finite", s->name);
            }
        }
        memcpy(tn_params_weights(to) + s->at, w, n * sizeof *w);
    }
    return TN_OK;
}

/* Negatives were kept with probability q, so the logit is too high by -ln q. */
static void correct_bias(tn_params *params, const char *bias, double q)
{
    const tn_param_slice *s = tn_params_find(params, bias);
    TN_ASSERT(s != NULL && s->rows == 1 && s->cols == 1);
    float *w = tn_params_weights(params) + s->at;
    *w = (float)((double)*w + tn_ln(q));
}

static tn_status build(tn_export_graph *x, const tn_blueprint *plan, tn_params *from,
                       const tn_binder *b, tn_error *err)
{
    tn_net net = {.g = x->g, .params = x->params, .dense_init = plan->dense_init};
    tn_list_source source = {plan->list, plan->inputs, plan->features, plan->layout};
    tn_list_graph made;
    if (!tn_list_build(&net, &source, b, &made)) {
        return tn_diag_check(b->diag, err);
    }
    double q = plan->run->data.negative_sampling;
    x->logit = made.logit;
    if (q < 1 && made.output_bias == NULL) {
        x->logit =
            tn_scale(x->g, free_name(x->g, "logit.unsampled", b->arena), x->logit, 1, tn_ln(q));
    }
    x->pctr = tn_sigmoid_act(x->g, free_name(x->g, "pctr", b->arena), x->logit);
    TN_TRY(tn_params_seal(x->params, err));
    TN_TRY(copy_weights(x->params, from, err));
    if (q < 1 && made.output_bias != NULL) {
        correct_bias(x->params, made.output_bias, q);
    }
    tn_wanted wanted = {.logit = x->logit, .fetch = &x->pctr->name, .n_fetch = 1};
    TN_TRY(tn_graph_finish(x->g, &wanted, err));
    tn_text nodes = {0};
    tn_graph_json_nodes(x->g, &nodes);
    tn_status status = tn_text_check(&nodes, "nodes of a graph", err);
    if (status == TN_OK) {
        x->nodes = text_in(b->arena, nodes.data);
    }
    tn_text_done(&nodes);
    return status;
}

tn_status tn_export_graph_new(tn_export_graph *out, const tn_blueprint *plan, tn_params *from,
                              const tn_binder *b, tn_error *err)
{
    tn_export_graph x = {
        .g = tn_graph_new(&(tn_graph_opts){.max_rows = 1, .frozen = true}),
        .params = tn_params_new(),
    };
    tn_status status = build(&x, plan, from, b, err);
    if (status != TN_OK) {
        tn_export_graph_done(&x);
        return status;
    }
    *out = x;
    return TN_OK;
}

void tn_export_graph_done(tn_export_graph *x)
{
    tn_graph_free(x->g);
    tn_params_free(x->params);
}
