/* scaleowner.c - see scaleowner.h. */
#include "scaleowner.h"
#include "config/field.h"

#include "base/core/alloc.h"

#include <math.h>

static tn_rule dense_rule(tn_arena *arena)
{
    const tn_optim *adam = &tn_optim_adam;
    tn_diag diag = {0};
    tn_binder binder = {.arena = arena, .diag = &diag};
    tn_tree *none = tn_tree_new(arena, TN_TREE_MAP, (tn_origin){.source = "bench"});
    void *opts = tn_arena_alloc(arena, 1, adam->choice.size, TN_CACHE_LINE);
    tn_fields_bind(&binder, adam->choice.fields, none, opts);
    TN_ASSERT(diag.n_errors == 0);
    return (tn_rule){
        .optim = adam, .opts = opts, .clip_row = (double)INFINITY, .clip_value = (double)INFINITY};
}

static void make_model(tn_scale_owner *own)
{
    own->arena = tn_arena_new(1 << 16);
    tn_bench_model_init(&own->base, TN_SCALE_WIDTH, own->arena);
    own->record = (tn_record){.width = TN_SCALE_WIDTH,
                              .n_segments = 2,
                              .segment = {{"wide", 0, 1}, {"deep", 1, TN_SCALE_WIDTH - 1}}};
    own->layout = (tn_layout){TN_SCALE_SLOTS, own->group, 1, &own->record};
    for (uint32_t g = 0; g < TN_SCALE_SLOTS; g++) {
        own->group[g].name = "slot";
        for (uint32_t s = 0; s < own->record.n_segments; s++) {
            own->rule[g * TN_SEGMENTS_MAX + s] = own->base.rule[0];
        }
    }
    own->rules = (tn_rules){.layout = &own->layout,
                            .rule = own->rule,
                            .dense = dense_rule(own->arena),
                            .clip_global = (double)INFINITY};
}

static void make_shard(tn_scale_owner *own)
{
    const tn_dense_run run = {0, own->dense};
    const tn_dense_opts dense = {.rule = &own->rules.dense,
                                 .weights = own->weights,
                                 .size = own->dense,
                                 .runs = &run,
                                 .n_runs = own->dense > 0};
    const tn_table_opts table = {.rules = &own->rules, .seed = 1};
    own->shard.rules = &own->rules;
    tn_status status = tn_table_new(&own->shard.table, &table, NULL);
    TN_ASSERT(status == TN_OK);
    status = tn_dense_new(&own->shard.dense, &dense, NULL);
    TN_ASSERT(status == TN_OK);
}

void tn_scale_owner_init(tn_scale_owner *own, const tn_shares *shares)
{
    const uint32_t n = shares->owners.n_peers;
    make_model(own);
    own->dense = shares->dense[1] - shares->dense[0];
    own->weights = tn_alloc(own->dense + 1, sizeof(float), "weights");
    make_shard(own);
    const tn_sync_step_opts opts = {.n_ranks = n,
                                    .shard = &own->shard,
                                    .owners = &shares->owners,
                                    .layout = &own->layout,
                                    .dense = own->dense};
    tn_status status = tn_sync_step_new(&own->steps, &opts, 0, NULL);
    TN_ASSERT(status == TN_OK);
    own->block = tn_alloc(n, sizeof *own->block, "keys");
    own->grads = tn_alloc(n, sizeof *own->grads, "gradients");
    own->dense_grad = tn_alloc(n, sizeof *own->dense_grad, "gradients");
    own->rows = tn_alloc(TN_SCALE_FLOATS, sizeof(float), "rows");
}

void tn_scale_owner_done(tn_scale_owner *own, uint32_t n_ranks)
{
    for (uint32_t r = 0; r < n_ranks; r++) {
        tn_keyblock_done(&own->block[r]);
        tn_free(own->grads[r]);
        tn_free(own->dense_grad[r]);
    }
    tn_sync_step_free(own->steps);
    tn_dense_free(own->shard.dense);
    tn_table_free(own->shard.table);
    tn_arena_free(own->arena);
    tn_free(own->block);
    tn_free((void *)own->grads);
    tn_free((void *)own->dense_grad);
    tn_free(own->rows);
    tn_free(own->weights);
}
