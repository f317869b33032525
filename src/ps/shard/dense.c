/* dense.c - norm and update of dense weights, in tiles, whatever the number of threads. */
#include "ps/shard/dense.h"

#include "base/core/alloc.h"
#include "base/thread/team.h"
#include "ps/optim/rule.h"

#include <pthread.h>
#include <string.h>

enum { TILE = 4096 };

typedef struct tile {
    size_t at;
    size_t n;
} tile;

struct tn_dense_store {
    const tn_rule *rule;
    bool plain; /* the rule leaves gradients as they are */
    float *weights;
    size_t size;
    tile *tiles;
    uint32_t n_tiles;
    uint32_t n_states; /* but for a count, which is t */
    tn_state spec[TN_STATES_MAX];
    float *state[TN_STATES_MAX];
    pthread_mutex_t lock; /* one push at a time; guards the weights, states and these two: */
    uint64_t t;
    double *norm2; /* one for each tile */
};

/* One call, as its tiles see it. */
typedef struct job {
    tn_dense_store *d;
    const float *grads;
    const tn_push *push;
    double clip;
} job;

/* Cuts the runs; with tiles NULL only counts. */
static uint32_t cut(const tn_dense_run *runs, uint32_t n_runs, tile *tiles)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < n_runs; r++) {
        for (size_t at = runs[r].begin; at < runs[r].end; at += TILE) {
            size_t left = runs[r].end - at;
            if (tiles != NULL) {
                tiles[n] = (tile){at, left < TILE ? left : TILE};
            }
            n++;
        }
    }
    return n;
}

static void check_runs(const tn_dense_run *runs, uint32_t n_runs, size_t size)
{
    for (uint32_t r = 0; r < n_runs; r++) {
        TN_ASSERT(runs[r].begin <= runs[r].end && runs[r].end <= size);
        TN_ASSERT(r == 0 || runs[r - 1].end <= runs[r].begin);
    }
}

static tn_status allocate(tn_dense_store *d, tn_error *err)
{
    TN_TRY(TN_ALLOC(d->tiles, d->n_tiles, "tiles of dense weights", err));
    TN_TRY(TN_ALLOC(d->norm2, d->n_tiles, "norms of dense weights", err));
    for (uint32_t i = 0; i < d->n_states; i++) {
        TN_ASSERT(!d->spec[i].count);
        TN_TRY(TN_ALLOC(d->state[i], d->size, "optimizer state", err));
    }
    return TN_OK;
}

tn_status tn_dense_new(tn_dense_store **out, const tn_dense_opts *opts, tn_error *err)
{
    *out = NULL;
    const tn_rule *rule = opts->rule;
    const char *fault = rule->optim->dense != NULL ? rule->optim->dense(rule->opts) : NULL;
    if (fault != NULL) {
        return tn_fail(err, TN_E_CONFIG, "optimizer '%s' cannot train dense weights: %s",
                       rule->optim->choice.name, fault);
    }
    check_runs(opts->runs, opts->n_runs, opts->size);
    tn_dense_store *d = NULL;
    TN_TRY(TN_ALLOC(d, 1, "a store of dense weights", err));
    *d = (tn_dense_store){
        .rule = rule, .plain = tn_rule_plain(rule), .weights = opts->weights, .size = opts->size};
    int failure = pthread_mutex_init(&d->lock, NULL);
    TN_ASSERT(failure == 0);
    d->n_states = tn_optim_states(rule->optim, rule->opts, d->spec);
    d->n_states -= d->n_states > 0 && d->spec[d->n_states - 1].count; /* it is the last */
    d->n_tiles = cut(opts->runs, opts->n_runs, NULL);
    tn_status status = allocate(d, err);
    if (status != TN_OK) {
        tn_dense_free(d);
        return status;
    }
    const uint32_t placed = cut(opts->runs, opts->n_runs, d->tiles);
    TN_ASSERT(placed == d->n_tiles);
    tn_dense_reset(d);
    *out = d;
    return TN_OK;
}

void tn_dense_free(tn_dense_store *d)
{
    if (d == NULL) {
        return;
    }
    pthread_mutex_destroy(&d->lock);
    for (uint32_t i = 0; i < TN_STATES_MAX; i++) {
        tn_free(d->state[i]);
    }
    tn_free(d->tiles);
    tn_free(d->norm2);
    tn_free(d);
}

static void states_at(const tn_dense_store *d, size_t at, float *state[TN_STATES_MAX])
{
    for (uint32_t i = 0; i < d->n_states; i++) {
        state[i] = d->state[i] + at;
    }
}

void tn_dense_reset(tn_dense_store *d)
{
    d->t = 0;
    for (uint32_t i = 0; i < d->n_tiles; i++) {
        const tile *x = &d->tiles[i];
        float *state[TN_STATES_MAX] = {NULL};
        states_at(d, x->at, state);
        tn_optim_init(d->rule->optim, d->rule->opts, x->n, d->weights + x->at, state);
    }
}

static tn_trained trained(const job *j, const tile *x)
{
    return (tn_trained){.n = x->n, .w = j->d->weights + x->at, .grad = j->grads + x->at};
}

static void norm_tile(void *arg, uint32_t i)
{
    const job *j = arg;
    tn_trained x = trained(j, &j->d->tiles[i]);
    if (j->d->plain) {
        j->d->norm2[i] = tn_square_sum(x.n, x.grad);
        return;
    }
    TN_ASSERT(x.n <= TILE);
    float g[TILE];
    j->d->norm2[i] = tn_rule_grad(j->d->rule, j->push, &x, 1, g);
}

double tn_dense_norm2(tn_dense_store *d, tn_team *team, const float *grads, const tn_push *push)
{
    TN_ASSERT(d->n_tiles == 0 || grads != NULL);
    job j = {.d = d, .grads = grads, .push = push};
    double sum = 0;
    pthread_mutex_lock(&d->lock);
    tn_team_run(team, d->n_tiles, norm_tile, &j);
    for (uint32_t i = 0; i < d->n_tiles; i++) {
        sum += d->norm2[i];
    }
    pthread_mutex_unlock(&d->lock);
    return sum;
}

static void push_tile(void *arg, uint32_t i)
{
    const job *j = arg;
    const tn_dense_store *d = j->d;
    const tile *where = &d->tiles[i];
    tn_trained x = trained(j, where);
    tn_update u = {
        .lr = tn_rule_common(d->rule)->lr * j->push->lr_factor,
        .t = d->t,
        .step = j->push->step + 1,
    };
    float *state[TN_STATES_MAX] = {NULL};
    states_at(d, where->at, state);
    if (j->clip == 1 && d->plain) {
        tn_rule_update(d->rule, &u, x.n, d->weights + where->at, state, x.grad);
        return;
    }
    TN_ASSERT(x.n <= TILE);
    float g[TILE];
    (void)tn_rule_grad(d->rule, j->push, &x, j->clip, g);
    tn_rule_update(d->rule, &u, x.n, d->weights + where->at, state, g);
}

void tn_dense_push(tn_dense_store *d, tn_team *team, const float *grads, const tn_push *push,
                   double clip)
{
    TN_ASSERT(clip >= 0 && clip <= 1);
    TN_ASSERT(d->n_tiles == 0 || grads != NULL);
    job j = {.d = d, .grads = grads, .push = push, .clip = clip};
    pthread_mutex_lock(&d->lock);
    d->t++;
    tn_team_run(team, d->n_tiles, push_tile, &j);
    pthread_mutex_unlock(&d->lock);
}

void tn_dense_copy(tn_dense_store *d, float *to)
{
    if (d->size > 0) {
        pthread_mutex_lock(&d->lock);
        memcpy(to, d->weights, d->size * sizeof *to);
        pthread_mutex_unlock(&d->lock);
    }
}

void tn_dense_set(tn_dense_store *d, size_t at, size_t n, const float *values)
{
    TN_ASSERT(at <= d->size && n <= d->size - at);
    if (n > 0) {
        pthread_mutex_lock(&d->lock);
        memcpy(d->weights + at, values, n * sizeof *values);
        pthread_mutex_unlock(&d->lock);
    }
}

uint32_t tn_dense_states(const tn_dense_store *d, tn_state out[TN_STATES_MAX])
{
    memcpy(out, d->spec, d->n_states * sizeof *out);
    return d->n_states;
}

float *tn_dense_state(tn_dense_store *d, uint32_t i)
{
    TN_ASSERT(i < d->n_states);
    return d->state[i];
}

uint64_t tn_dense_t(const tn_dense_store *d)
{
    return d->t;
}

void tn_dense_set_t(tn_dense_store *d, uint64_t t)
{
    d->t = t;
}
