/* sync_step.c - pulls, pushes and norms of all ranks are collected, and become one update. */
#include "cluster/sync/sync_step.h"

#include "base/core/alloc.h"
#include "cluster/exchange/owner_messages.h"
#include "ps/optim/rule.h"
#include "ps/shard/shard.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { AHEAD = 2, DENSE_TILE = 4096 };

typedef enum phase { WANTS_PULLS, WANTS_PUSHES, WANTS_NORMS } phase;

/* Requests of one rank that were received for a step. */
typedef struct rank_part {
    bool pulled, pushed;
    tn_batch_note note;
    const float *dense;
    double loss;
} rank_part;

/* Requests of all ranks. */
typedef struct slot {
    tn_batch_union *joint;
    uint32_t n_pulls, n_pushes;
    bool united;
    double lr_factor;
    uint32_t day;
    rank_part *of;          /* n_ranks */
    const tn_keyset **keys; /* n_ranks; keys as tn_batch_union wants them */
    const float **grads;    /* n_ranks; gradients likewise */
} slot;

struct tn_sync_step {
    uint32_t n_ranks;
    tn_shard *shard;
    uint64_t step;
    phase phase;
    slot slot[AHEAD];     /* slots of steps `step` and `step` + 1, by step modulo 2 */
    tn_joint_batch batch; /* note of the last ROWS or SKIPPED, except for first_row */
    uint64_t *first_row;  /* n_ranks; likewise */
    float *rows;          /* rows_max: joint rows, then their gradients */
    size_t rows_max;
    size_t n_dense;
    float *dense;  /* n_dense: sum of the ranks' gradients */
    double *norm2; /* squared norm of each owner */
    bool *normed;
    uint32_t n_norms;
    tn_push push; /* push of the joint batch, once all have pushed */
    tn_gradients grads;
    double total;     /* answer of tn_sync_step_norm2 */
    double loss;      /* answer of tn_sync_step_loss */
    uint32_t summing; /* slot whose dense gradients are being added up */
};

static slot slot_new(const tn_exchange *x)
{
    const uint32_t n = x->shares->owners.n_peers;
    return (slot){.joint = tn_batch_union_new(x->arena, n, &x->shares->owners, x->layout),
                  .of = TN_NEW_ARRAY(x->arena, rank_part, n),
                  .keys = TN_NEW_ARRAY(x->arena, const tn_keyset *, n),
                  .grads = TN_NEW_ARRAY(x->arena, const float *, n)};
}

static void slot_clear(slot *s, uint32_t n_ranks)
{
    s->n_pulls = 0;
    s->n_pushes = 0;
    s->united = false;
    memset(s->of, 0, n_ranks * sizeof *s->of);
}

tn_status tn_sync_step_new(tn_sync_step **out, const tn_exchange *x, tn_error *err)
{
    const uint32_t n = x->shares->owners.n_peers;
    *out = NULL;
    tn_sync_step *l = TN_NEW(x->arena, tn_sync_step);
    *l = (tn_sync_step){.n_ranks = n,
                        .shard = x->shard,
                        .step = x->step,
                        .slot = {slot_new(x), slot_new(x)},
                        .first_row = TN_NEW_ARRAY(x->arena, uint64_t, n),
                        .norm2 = TN_NEW_ARRAY(x->arena, double, n),
                        .normed = TN_NEW_ARRAY(x->arena, bool, n),
                        .n_dense = tn_exchange_dense(x)};
    TN_TRY(TN_ALLOC(l->dense, l->n_dense + 1, "the steps of all ranks", err));
    *out = l;
    return TN_OK;
}

void tn_sync_step_free(tn_sync_step *l)
{
    if (l == NULL) {
        return;
    }
    for (uint32_t i = 0; i < AHEAD; i++) {
        tn_batch_union_free(l->slot[i].joint);
    }
    tn_free(l->rows);
    tn_free(l->dense);
}

static slot *slot_of(tn_sync_step *l, uint64_t step)
{
    return &l->slot[step % AHEAD];
}

static tn_status not_due(const tn_sync_step *l, uint32_t rank, const char *request, tn_error *err)
{
    return tn_fail(err, TN_E_PEER, "rank %u sent a %s that is not due in step %" PRIu64, rank,
                   request, l->step);
}

tn_status tn_sync_step_pull(tn_sync_step *l, uint32_t rank, const tn_batch_note *note,
                            const tn_keyset *keys, tn_error *err)
{
    TN_ASSERT(rank < l->n_ranks);
    slot *s = slot_of(l, l->step);
    if (s->of[rank].pulled) {
        s = slot_of(l, l->step + 1);
    }
    if (s->of[rank].pulled) {
        return not_due(l, rank, "pull", err);
    }
    s->of[rank] = (rank_part){.pulled = true, .note = *note};
    s->keys[rank] = keys;
    s->grads[rank] = NULL;
    s->n_pulls++;
    return TN_OK;
}

tn_status tn_sync_step_push(tn_sync_step *l, uint32_t rank, const tn_pushed *pushed, tn_error *err)
{
    TN_ASSERT(rank < l->n_ranks);
    slot *s = slot_of(l, l->step);
    if (l->phase != WANTS_PUSHES || s->of[rank].pushed) {
        return not_due(l, rank, "push", err);
    }
    s->of[rank].pushed = true;
    s->of[rank].dense = pushed->dense;
    s->of[rank].loss = pushed->loss;
    s->grads[rank] = s->keys[rank] != NULL ? pushed->grads : NULL;
    if (rank == 0) {
        s->lr_factor = pushed->lr_factor;
        s->day = pushed->day;
    }
    s->n_pushes++;
    return TN_OK;
}

/* Takes a part of the norm; a faster owner may send it before this one has all pushes. */
tn_status tn_sync_step_norm(tn_sync_step *l, uint32_t owner, double norm2, tn_error *err)
{
    TN_ASSERT(owner < l->n_ranks);
    if (l->phase == WANTS_PULLS || l->normed[owner]) {
        return not_due(l, owner, "norm", err);
    }
    l->normed[owner] = true;
    l->norm2[owner] = norm2;
    l->n_norms++;
    return TN_OK;
}

/* Makes the joint batch from the notes of all. */
static void add_notes(tn_sync_step *l, const slot *s)
{
    l->batch = (tn_joint_batch){.step = l->step, .over = true};
    for (uint32_t r = 0; r < l->n_ranks; r++) {
        const tn_batch_note *note = &s->of[r].note;
        l->first_row[r] = l->batch.rows;
        l->batch.rows += note->rows;
        l->batch.weight_sum += note->weight_sum;
        l->batch.over = l->batch.over && note->rows == 0;
        l->batch.meet = l->batch.meet || note->meet;
    }
}

static tn_status unite(tn_sync_step *l, slot *s, tn_team *team, tn_error *err)
{
    if (s->united || s->n_pulls < l->n_ranks) {
        return TN_OK;
    }
    TN_TRY(tn_batch_union_unite(s->joint, team, s->keys, err));
    s->united = true;
    return TN_OK;
}

static tn_status do_pulls(tn_sync_step *l, tn_team *team, tn_turn *turn, tn_error *err)
{
    slot *s = slot_of(l, l->step);
    if (s->n_pulls < l->n_ranks) {
        return TN_OK;
    }
    add_notes(l, s);
    if (l->batch.weight_sum == 0) {
        /* The step does not count: early pulls belong to the step that gets the same number. */
        slot_clear(s, l->n_ranks);
        slot was = *s;
        *s = *slot_of(l, l->step + 1);
        *slot_of(l, l->step + 1) = was;
        *turn = TN_TURN_SKIPPED;
        return TN_OK;
    }
    TN_TRY(unite(l, s, team, err));
    const tn_keyset *keys = tn_batch_union_keys(s->joint);
    TN_TRY(TN_RESERVE(l->rows, l->rows_max, keys->floats, "rows of the joint batch", err));
    TN_TRY(tn_shard_pull(l->shard, team, keys, l->rows, err));
    l->phase = WANTS_PUSHES;
    *turn = TN_TURN_ROWS;
    return TN_OK;
}

static void add_floats(float *restrict sum, const float *restrict part, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        sum[i] += part[i];
    }
}

static void add_dense_tile(void *job, uint32_t tile)
{
    const tn_sync_step *l = job;
    const slot *s = &l->slot[l->summing];
    size_t from = (size_t)tile * DENSE_TILE;
    size_t to = from + DENSE_TILE < l->n_dense ? from + DENSE_TILE : l->n_dense;
    memset(l->dense + from, 0, (to - from) * sizeof *l->dense);
    for (uint32_t r = 0; r < l->n_ranks; r++) {
        if (s->of[r].dense != NULL) {
            add_floats(l->dense, s->of[r].dense, from, to);
        }
    }
}

/* Finishes the step after the update. */
static tn_status finish(tn_sync_step *l, tn_turn *turn)
{
    slot *s = slot_of(l, l->step);
    l->loss = 0;
    for (uint32_t r = 0; r < l->n_ranks; r++) {
        l->loss += s->of[r].loss;
    }
    slot_clear(s, l->n_ranks);
    memset(l->normed, 0, l->n_ranks * sizeof *l->normed);
    l->n_norms = 0;
    l->step++;
    l->phase = WANTS_PULLS;
    *turn = TN_TURN_APPLIED;
    return TN_OK;
}

static tn_status do_pushes(tn_sync_step *l, tn_team *team, tn_turn *turn, tn_error *err)
{
    slot *s = slot_of(l, l->step);
    if (s->n_pushes < l->n_ranks) {
        return unite(l, slot_of(l, l->step + 1), team, err); /* unite early pulls while waiting */
    }
    tn_batch_union_add(s->joint, team, s->grads, l->rows);
    l->summing = (uint32_t)(l->step % AHEAD);
    uint32_t tiles = (uint32_t)((l->n_dense + DENSE_TILE - 1) / DENSE_TILE);
    tn_team_run(team, tiles, add_dense_tile, l);
    l->push = (tn_push){.step = l->step,
                        .weight_sum = l->batch.weight_sum,
                        .lr_factor = s->lr_factor,
                        .day = s->day};
    l->grads =
        (tn_gradients){.keys = tn_batch_union_keys(s->joint), .rows = l->rows, .dense = l->dense};
    if (isfinite(l->shard->rules->clip_global)) {
        l->total = tn_shard_norm2(l->shard, team, &l->grads, &l->push);
        l->phase = WANTS_NORMS;
        *turn = TN_TURN_NORM;
        return TN_OK;
    }
    TN_TRY(tn_shard_update(l->shard, team, &l->grads, &l->push, &l->total, err));
    return finish(l, turn);
}

static tn_status do_norms(tn_sync_step *l, tn_team *team, tn_turn *turn, tn_error *err)
{
    if (l->n_norms < l->n_ranks) {
        return unite(l, slot_of(l, l->step + 1), team, err);
    }
    l->total = 0;
    for (uint32_t r = 0; r < l->n_ranks; r++) {
        l->total += l->norm2[r];
    }
    TN_TRY(tn_shard_apply(l->shard, team, &l->grads, &l->push, l->total, err));
    return finish(l, turn);
}

tn_status tn_sync_step_advance(tn_sync_step *l, tn_team *team, tn_turn *turn, tn_error *err)
{
    *turn = TN_TURN_NONE;
    switch (l->phase) {
    case WANTS_PUSHES:
        return do_pushes(l, team, turn, err);
    case WANTS_NORMS:
        return do_norms(l, team, turn, err);
    case WANTS_PULLS:
    default:
        return do_pulls(l, team, turn, err);
    }
}

tn_joint_batch tn_sync_step_note(const tn_sync_step *l, uint32_t rank)
{
    TN_ASSERT(rank < l->n_ranks);
    tn_joint_batch note = l->batch;
    note.first_row = l->first_row[rank];
    return note;
}

bool tn_sync_step_can_give(const tn_sync_step *l, uint32_t rank)
{
    return l->phase == WANTS_PUSHES && !l->slot[l->step % AHEAD].of[rank].pushed;
}

void tn_sync_step_give(tn_sync_step *l, tn_team *team, uint32_t rank, float *to)
{
    TN_ASSERT(tn_sync_step_can_give(l, rank));
    slot *s = slot_of(l, l->step);
    if (s->keys[rank] != NULL) {
        tn_batch_union_give(s->joint, team, rank, l->rows, to);
    }
}

uint32_t tn_sync_step_waits_for(const tn_sync_step *l)
{
    const rank_part *of = l->slot[l->step % AHEAD].of;
    for (uint32_t r = 0; r < l->n_ranks; r++) {
        if (!(l->phase == WANTS_PULLS    ? of[r].pulled
              : l->phase == WANTS_PUSHES ? of[r].pushed
                                         : l->normed[r])) {
            return 1 + r;
        }
    }
    return 0;
}

double tn_sync_step_norm2(const tn_sync_step *l)
{
    return l->total;
}

double tn_sync_step_loss(const tn_sync_step *l)
{
    return l->loss;
}
