/* tablerows.c - see tablerows.h */
#include "tablerows.h"
#include "base/keys/keyset.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "ps/optim/optim.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/math/rng.h"

#include <math.h>
#include <string.h>

enum { PARTS = 16 };

static const uint32_t whole[] = {0, TN_PARTITIONS};
static const tn_owners owner = {1, TN_PARTITIONS, whole};

/* Keys of numbers in the order that `stream` gives them: 0 .. n-1 permuted by a bijection. */
void tn_bench_batch_fill(tn_bench_batch *b, uint64_t n_keys, uint64_t stream, uint64_t from,
                         const tn_layout *layout)
{
    uint64_t seen[TN_BENCH_KEYS];
    memset(b->first, 0, sizeof b->first);
    b->layout = layout;
    for (uint32_t i = 0; i < TN_BENCH_KEYS; i++) {
        uint64_t number = stream != 0 ? tn_below(tn_draw(stream, from + i), n_keys) : from + i;
        seen[i] = tn_mix(number + 1);
        b->first[tn_partition_of(seen[i], TN_PARTITIONS) + 2]++;
    }
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        b->first[p + 2] += b->first[p + 1];
    }
    for (uint32_t i = 0; i < TN_BENCH_KEYS; i++) {
        b->key[b->first[tn_partition_of(seen[i], TN_PARTITIONS) + 1]++] = seen[i];
        b->show[i] = 1;
        b->click[i] = i % 4 == 0;
        b->group[i] = 0;
        b->at[i] = i * layout->record[0].width;
    }
}

tn_keyset tn_bench_keyset(const tn_bench_batch *b)
{
    return (tn_keyset){.owners = &owner,
                       .layout = b->layout,
                       .n = TN_BENCH_KEYS,
                       .floats = TN_BENCH_KEYS * b->layout->record[0].width,
                       .key = b->key,
                       .group = b->group,
                       .at = b->at,
                       .show = b->show,
                       .click = b->click,
                       .first = b->first};
}

static const void *options(const tn_optim *optim, bool usual, tn_arena *arena)
{
    const tn_origin here = {.source = "bench"};
    tn_diag diag = {0};
    tn_binder binder = {.arena = arena, .diag = &diag};
    tn_tree *map = tn_tree_new(arena, TN_TREE_MAP, here);
    static const char *const option[][2] = {
        {"rowwise", "true"}, {"lr", "0.1"}, {"n0", "1"}, {"l2", "0.05"}, {"grad_scale", "sum"}};
    for (size_t i = 0; usual && i < sizeof option / sizeof *option; i++) {
        tn_tree_put(arena, map, option[i][0], tn_tree_scalar(arena, option[i][1], here));
    }
    void *opts = tn_arena_alloc(arena, 1, optim->choice.size, TN_CACHE_LINE);
    tn_fields_bind(&binder, optim->choice.fields, map, opts);
    TN_ASSERT(diag.n_errors == 0);
    return opts;
}

void tn_bench_model_init(tn_bench_model *m, uint32_t dim, const tn_optim *optim, tn_arena *arena)
{
    *m = (tn_bench_model){.record = {.width = dim + 1,
                                     .n_segments = 2,
                                     .segment = {{"wide", 0, 1}, {"deep", 1, dim}}},
                          .group = {.name = "slot"}};
    m->layout = (tn_layout){1, &m->group, 1, &m->record};
    m->rule[0] =
        (tn_rule){.optim = optim != NULL ? optim : &tn_optim_adagrad,
                  .opts = options(optim != NULL ? optim : &tn_optim_adagrad, optim == NULL, arena),
                  .clip_row = (double)INFINITY,
                  .clip_value = (double)INFINITY,
                  .init = {TN_INIT_UNIFORM, -.01, .01}};
    m->rule[1] = m->rule[0];
    m->rules = (tn_rules){.layout = &m->layout, .rule = m->rule, .clip_global = (double)INFINITY};
}

tn_table *tn_bench_table(const tn_bench_model *m, uint64_t n_keys, tn_bench_batch *b, float *rows,
                         tn_samples *insert)
{
    tn_table *t = NULL;
    tn_table_opts opts = {.rules = &m->rules, .seed = 1, .huge_pages = true};
    tn_status status = tn_table_new(&t, &opts, NULL);
    TN_ASSERT(status == TN_OK);
    uint64_t ns = 0;
    uint64_t before = 0;
    uint64_t next = n_keys / PARTS;
    for (uint64_t from = 0; from < n_keys; from += TN_BENCH_KEYS) {
        tn_bench_batch_fill(b, n_keys, 0, from, &m->layout);
        tn_keyset keys = tn_bench_keyset(b);
        uint64_t start = tn_clock_ns();
        status = tn_table_pull(t, NULL, &keys, rows, NULL);
        ns += tn_clock_ns() - start;
        TN_ASSERT(status == TN_OK);
        uint64_t now = tn_table_rows(t);
        if (now >= next) {
            tn_sample(insert, (double)(now - before) / (double)ns * 1e3);
            next = now + n_keys / PARTS;
            before = now;
            ns = 0;
        }
    }
    return t;
}
