/* pushnorm.c - the norm of a push is added up in tiles, in double. */
#include "cluster/async/pushnorm.h"

#include "base/keys/record.h"
#include "base/thread/team.h"
#include "ps/optim/rule.h"
#include "ps/shard/dense.h"

enum { KEY_TILES = 128, CHUNK = 1024 };

typedef struct job {
    const tn_exchange *x;
    const float *rows;
    const tn_gradients *grads;
    const tn_push *push;
    double sum[KEY_TILES + 1]; /* sums of keys; the last one: of runs */
} job;

static double key_norm2(const job *j, uint32_t k, float *g)
{
    const tn_rules *rules = j->x->shard->rules;
    const tn_keyset *keys = j->grads->keys;
    const uint32_t group = keys->group[k];
    const tn_record *record = tn_record_of(rules->layout, group);
    double sum = 0;
    for (uint32_t i = 0; i < record->n_segments; i++) {
        const tn_segment *seg = &record->segment[i];
        const uint32_t at = keys->at[k] + seg->at;
        const tn_trained part = {.n = seg->dim,
                                 .w = j->rows + at,
                                 .grad = j->grads->rows + at,
                                 .show = keys->show[k],
                                 .is_row = true};
        sum += tn_rule_grad(&rules->rule[group * TN_SEGMENTS_MAX + i], j->push, &part, 1, g);
    }
    return sum;
}

static double run_norm2(const job *j, const tn_dense_run *run)
{
    float g[CHUNK];
    double sum = 0;
    for (size_t at = run->begin; at < run->end; at += CHUNK) {
        const size_t left = run->end - at;
        const tn_trained part = {.n = left < CHUNK ? left : CHUNK,
                                 .w = j->x->weights + at,
                                 .grad = j->grads->dense + at};
        sum += tn_rule_grad(&j->x->shard->rules->dense, j->push, &part, 1, g);
    }
    return sum;
}

static void do_tile(void *arg, uint32_t tile)
{
    job *j = arg;
    double sum = 0;
    if (tile == KEY_TILES) {
        for (uint32_t i = 0; i < j->x->n_trained; i++) {
            sum += run_norm2(j, &j->x->trained[i]);
        }
    } else {
        float g[TN_DIM_MAX];
        const uint64_t n = j->grads->keys->n;
        const uint32_t to = (uint32_t)(n * (tile + 1) / KEY_TILES);
        for (uint32_t k = (uint32_t)(n * tile / KEY_TILES); k < to; k++) {
            sum += key_norm2(j, k, g);
        }
    }
    j->sum[tile] = sum;
}

double tn_pushnorm2(tn_team *team, const tn_exchange *x, const float *rows,
                    const tn_gradients *grads, const tn_push *push)
{
    job j = {.x = x, .rows = rows, .grads = grads, .push = push};
    tn_team_run(team, KEY_TILES + 1, do_tile, &j);
    double sum = j.sum[KEY_TILES];
    for (uint32_t i = 0; i < KEY_TILES; i++) {
        sum += j.sum[i];
    }
    return sum;
}
