/* test_peer_column_stats.c - statistics over a joint batch whose rows lie with three peers: the
 * vectors of numerics.md come out as if one process had all of them. */
#include "base/keys/init.h"
#include "nn/graph/peer_column_stats.h"
#include "nn/loss/further_loss.h"
#include "nn/loss/loss.h"
#include "nn/near.h"
#include "nn/passes/finish.h"
#include "support/test.h"

#include <pthread.h>

enum { PEERS = 3, ROWS = 4, COLS = 2, NUMBERS_MAX = 16 };

/* Peers on threads, who exchange through memory. */
typedef struct world {
    pthread_barrier_t all_wrote, all_read;
    double number[PEERS * NUMBERS_MAX];
    bool fails;
    uint32_t from[PEERS + 1]; /* peer p has the rows from[p] .. from[p + 1] - 1 */
    const double *x, *dy;
} world;

typedef struct peer {
    world *w;
    uint32_t rank;
    double all[PEERS * NUMBERS_MAX];
    uint32_t n_exchanges;
    tn_feed_peers peers;
    pthread_t thread;
    tn_trial t;
    tn_node *x, *gamma, *beta;
    tn_node *state[2]; /* running mean and variance */
} peer;

static const double *exchange(void *arg, const double *own, uint32_t n)
{
    peer *p = arg;
    world *w = p->w;
    assert_true(n <= NUMBERS_MAX);
    p->n_exchanges++;
    if (w->fails) {
        return NULL;
    }
    memcpy(w->number + p->rank * (size_t)n, own, n * sizeof *own);
    (void)pthread_barrier_wait(&w->all_wrote);
    memcpy(p->all, w->number, PEERS * (size_t)n * sizeof *own);
    (void)pthread_barrier_wait(&w->all_read);
    return p->all;
}

static void open_world(world *w, const uint32_t *from, const double *x, const double *dy)
{
    *w = (world){.x = x, .dy = dy};
    memcpy(w->from, from, sizeof w->from);
    (void)pthread_barrier_init(&w->all_wrote, NULL, PEERS);
    (void)pthread_barrier_init(&w->all_read, NULL, PEERS);
}

static void close_world(world *w)
{
    (void)pthread_barrier_destroy(&w->all_wrote);
    (void)pthread_barrier_destroy(&w->all_read);
}

static tn_node *weights(tn_graph *g, const char *name, uint32_t cols)
{
    return tn_param(g, NULL, name, (tn_shape){1, cols}, (tn_init){.kind = TN_INIT_CONSTANT});
}

static void join(peer *p, world *w, uint32_t rank)
{
    p->w = w;
    p->rank = rank;
    p->peers = (tn_feed_peers){exchange, p, PEERS};
    p->t.feed.rows = w->from[rank + 1] - w->from[rank];
    p->t.feed.peers = &p->peers;
    p->t.feed.joint_rows = w->from[PEERS];
    p->t.feed.joint_weight = w->from[PEERS];
    p->t.feed.info.first_row = w->from[rank];
}

static void *step(void *arg)
{
    peer *p = arg;
    const uint32_t cols = p->x->shape.cols;
    const uint32_t from = p->w->from[p->rank];
    for (uint32_t r = 0; r < p->t.feed.rows; r++) {
        for (uint32_t c = 0; c < cols; c++) {
            const size_t at = (size_t)(from + r) * cols + c;
            tn_val_row(p->x, r)[c] = (tn_real)p->w->x[at];
            if (p->t.factor != NULL) {
                tn_val_row(p->t.factor, r)[c] = (tn_real)p->w->dy[at];
            }
        }
    }
    tn_forward(p->t.g, &p->t.feed);
    if (p->t.factor != NULL) {
        tn_backward(p->t.g);
    }
    return NULL;
}

static void run(peer *p)
{
    for (uint32_t r = 0; r < PEERS; r++) {
        assert_int_equal(pthread_create(&p[r].thread, NULL, step, &p[r]), 0);
    }
    for (uint32_t r = 0; r < PEERS; r++) {
        assert_int_equal(pthread_join(p[r].thread, NULL), 0);
    }
}

static void close_peers(peer *p)
{
    for (uint32_t r = 0; r < PEERS; r++) {
        tn_graph_free(p[r].t.g);
    }
}

/* The rows that a peer has of a matrix of the joint batch. */
static void assert_rows(const peer *p, const char *what, const tn_node *n, const tn_real *matrix,
                        const double *want)
{
    if (p->t.feed.rows > 0) {
        tn_assert_near(what, n, matrix, want + (size_t)p->w->from[p->rank] * n->shape.cols);
    }
}

static void assert_sum(const peer *p, size_t node, uint32_t col, double want)
{
    double sum = 0;
    for (uint32_t r = 0; r < PEERS; r++) {
        const tn_node *n = node == 0 ? p[r].gamma : p[r].beta;
        sum += (double)n->grad[col];
    }
    tn_assert_value(sum, want);
}

static const double v3_x[] = {1, 2, 2, 0, 4, 1, 5, -3};
static const double v3_dy[] = {1, 0, 0, 1, -1, 2, .5, .5};
static const uint32_t one_has_none[] = {0, 3, 3, 4};

static void open_batch_norm(peer *p, world *w)
{
    for (uint32_t r = 0; r < PEERS; r++) {
        tn_graph *g = tn_trial_graph(ROWS, true);
        p[r] = (peer){.x = tn_input(g, "x", COLS, true)};
        p[r].gamma = weights(g, "gamma", COLS);
        p[r].beta = weights(g, "beta", COLS);
        p[r].state[0] = tn_running(g, NULL, "mean", (tn_shape){1, COLS}, 0);
        p[r].state[1] = tn_running(g, NULL, "var", (tn_shape){1, COLS}, 1);
        tn_node *params[] = {p[r].gamma, p[r].beta, p[r].state[0], p[r].state[1]};
        p[r].t = tn_trial_open(g,
                               tn_apply(g, &tn_op_batch_norm, "y",
                                        TN_IN(p[r].x, params[0], params[1], params[2], params[3]),
                                        &(tn_batch_norm_attr){1e-5, 0.9, true}),
                               ROWS, true);
        tn_put(p[r].gamma, (const double[]){1.5, .5});
        tn_put(p[r].beta, (const double[]){.1, -.2});
        tn_put(p[r].state[1], (const double[]){1, 1});
        join(&p[r], w, r);
    }
}

TEST(v3_batch_norm_over_three_peers)
{
    static const double y[] = {-1.797362801, .33452172, -.848681401, -.2,
                               1.048681401,  .06726086, 1.997362801, -1.00178258};
    static const double dx[] = {.450625183,  -.252943259, -.308320696, .033407608,
                                -.877531055, .291123464,  .735226568,  -.071587812};
    world w CLEANUP(close_world);
    peer p[PEERS];
    open_world(&w, one_has_none, v3_x, v3_dy);
    open_batch_norm(p, &w);
    run(p);
    for (uint32_t r = 0; r < PEERS; r++) {
        assert_int_equal(p[r].n_exchanges, 2);
        assert_rows(&p[r], "y", p[r].t.y, p[r].t.y->val, y);
        assert_rows(&p[r], "dx", p[r].x, p[r].x->grad, dx);
        tn_assert_near("new mean", p[r].state[0], p[r].state[0]->grad, (const double[]){.3, 0});
        tn_assert_near("new var", p[r].state[1], p[r].state[1]->grad,
                       (const double[]){1.233333333, 1.366666667});
        for (uint32_t k = 0; k < 2; k++) {
            assert_memory_equal(p[r].state[k]->grad, p[0].state[k]->grad, COLS * sizeof(tn_real));
        }
    }
    assert_sum(p, 0, 0, -1.264908534);
    assert_sum(p, 0, 1, .26726086);
    assert_sum(p, 1, 0, .5);
    assert_sum(p, 1, 1, 3.5);
    close_peers(p);
}

/* What comes out is void then, but nothing is read that is not there. */
TEST(a_failed_exchange_goes_on_with_the_own_part)
{
    world w CLEANUP(close_world);
    peer p[PEERS];
    open_world(&w, one_has_none, v3_x, v3_dy);
    w.fails = true;
    open_batch_norm(p, &w);
    run(p);
    tn_assert_near("new mean", p[0].state[0], p[0].state[0]->grad,
                   (const double[]){.1 * 7 / 3, .1});
    tn_assert_near("new mean", p[1].state[0], p[1].state[0]->grad, (const double[]){0, 0});
    close_peers(p);
}

TEST(alone_after_a_joint_step_the_batch_counts_again)
{
    world w CLEANUP(close_world);
    peer p[PEERS];
    open_world(&w, (const uint32_t[]){0, 4, 4, 4}, v3_x, v3_dy);
    open_batch_norm(p, &w);
    run(p);
    p[0].t.feed.peers = NULL;
    (void)step(&p[0]);
    assert_int_equal(p[0].n_exchanges, 2);
    assert_null(tn_parts_of(p[0].t.y)->all);
    tn_assert_near("new mean", p[0].state[0], p[0].state[0]->grad, (const double[]){.3, 0});
    close_peers(p);
}

TEST(v1_dice_over_three_peers)
{
    static const double x[] = {1, -2, 3, .5};
    static const double dy[] = {1, -1, .5, 2};
    static const double y[] = {.451706067, -.903412133, 2.3948818, .399146967};
    world w CLEANUP(close_world);
    peer p[PEERS];
    tn_node *alpha[PEERS + 1];
    open_world(&w, (const uint32_t[]){0, 1, 1, 2}, x, dy);
    tn_graph *alone = tn_trial_graph(2, true);
    tn_node *ax = tn_input(alone, "x", COLS, true);
    alpha[PEERS] = weights(alone, "alpha", COLS);
    tn_node *params[] = {alpha[PEERS], tn_running(alone, NULL, "mean", (tn_shape){1, COLS}, 0),
                         tn_running(alone, NULL, "var", (tn_shape){1, COLS}, 1)};
    tn_trial t = tn_trial_open(
        alone, tn_apply(alone, &tn_op_dice, "y", TN_IN(ax, params[0], params[1], params[2]), NULL),
        2, true);
    for (uint32_t r = 0; r < PEERS; r++) {
        tn_graph *g = tn_trial_graph(2, true);
        p[r] = (peer){.x = tn_input(g, "x", COLS, true)};
        alpha[r] = weights(g, "alpha", COLS);
        tn_node *its[] = {alpha[r], tn_running(g, NULL, "mean", (tn_shape){1, COLS}, 0),
                          tn_running(g, NULL, "var", (tn_shape){1, COLS}, 1)};
        p[r].t = tn_trial_open(
            g, tn_apply(g, &tn_op_dice, "y", TN_IN(p[r].x, its[0], its[1], its[2]), NULL), 2, true);
        tn_put(alpha[r], (const double[]){.25, .25});
        join(&p[r], &w, r);
    }
    ax->shape.rows = t.factor->shape.rows = 2;
    tn_put(ax, x);
    tn_put(alpha[PEERS], (const double[]){.25, .25});
    tn_trial_run(&t, dy);
    run(p);
    double dx[4];
    for (uint32_t i = 0; i < 4; i++) {
        dx[i] = (double)tn_grad_row(ax, i / COLS)[i % COLS];
    }
    for (uint32_t r = 0; r < PEERS; r++) {
        assert_rows(&p[r], "y", p[r].t.y, p[r].t.y->val, y);
        assert_rows(&p[r], "dx", p[r].x, p[r].x->grad, dx);
    }
    for (uint32_t c = 0; c < COLS; c++) {
        tn_assert_value((double)(alpha[0]->grad[c] + alpha[1]->grad[c] + alpha[2]->grad[c]),
                        (double)alpha[PEERS]->grad[c]);
    }
    close_peers(p);
    tn_graph_free(alone);
}

/* Two losses, each with the other beside it: the larger one counts, the smaller one does not. */
static tn_node *two_losses(tn_graph *g, tn_node *x)
{
    static const tn_further_loss_attr excess = {TN_LOSS_EXCESS};
    tn_node *a = tn_apply(g, &tn_op_slice, "a", TN_IN(x), &(tn_slice_attr){0, 1});
    tn_node *b = tn_apply(g, &tn_op_slice, "b", TN_IN(x), &(tn_slice_attr){1, 1});
    tn_node *first = tn_apply(g, &tn_op_further_loss, "first", TN_IN(b, b, a), &excess);
    tn_node *second = tn_apply(g, &tn_op_further_loss, "second", TN_IN(a, a, b), &excess);
    return tn_apply(g, &tn_op_concat, "y", TN_IN(first, second), NULL);
}

TEST(losses_of_further_scores_over_three_peers)
{
    /* means 3 and 0: b + 3 a, and a */
    static const double y[] = {5, 1, 6, 2, 13, 4, 12, 5};
    world w CLEANUP(close_world);
    peer p[PEERS];
    open_world(&w, one_has_none, v3_x, v3_dy);
    tn_graph *alone = tn_trial_graph(ROWS, true);
    tn_node *ax = tn_input(alone, "x", COLS, true);
    tn_trial t = tn_trial_open(alone, two_losses(alone, ax), ROWS, true);
    for (uint32_t r = 0; r < PEERS; r++) {
        tn_graph *g = tn_trial_graph(ROWS, true);
        p[r] = (peer){.x = tn_input(g, "x", COLS, true)};
        p[r].t = tn_trial_open(g, two_losses(g, p[r].x), ROWS, true);
        join(&p[r], &w, r);
    }
    tn_put(ax, v3_x);
    tn_trial_run(&t, v3_dy);
    run(p);
    double dx[ROWS * COLS];
    for (uint32_t i = 0; i < ROWS * COLS; i++) {
        dx[i] = (double)tn_grad_row(ax, i / COLS)[i % COLS];
    }
    for (uint32_t r = 0; r < PEERS; r++) {
        assert_rows(&p[r], "y", p[r].t.y, p[r].t.y->val, y);
        assert_rows(&p[r], "dx", p[r].x, p[r].x->grad, dx);
    }
    close_peers(p);
    tn_graph_free(alone);
}

TEST(v4_data_norm_over_three_peers)
{
    static const double batch[3][3] = {{1, 2, 3}, {5}, {2, 4}};
    static const uint32_t from[3][PEERS + 1] = {{0, 1, 2, 3}, {0, 0, 1, 1}, {0, 1, 1, 2}};
    static const double want[3][3] = {{3, 2, .666666667}, {3, 3, 2.444444444}, {4, 3, 1.722222222}};
    static const double dy[3] = {0};
    world w CLEANUP(close_world);
    peer p[PEERS];
    open_world(&w, from[0], batch[0], dy);
    for (uint32_t r = 0; r < PEERS; r++) {
        tn_graph *g = tn_trial_graph(3, true);
        p[r] = (peer){.x = tn_input(g, "x", 1, true)};
        p[r].state[0] = tn_running(g, NULL, "sums", (tn_shape){6, 1}, 0);
        tn_node *params[] = {weights(g, "gamma", 1), weights(g, "beta", 1), p[r].state[0]};
        tn_node *y =
            tn_apply(g, &tn_op_data_norm, "y", TN_IN(p[r].x, params[0], params[1], params[2]),
                     &(tn_data_norm_attr){1e-5, 2});
        p[r].t = tn_trial_open(g, y, 3, true);
    }
    for (uint32_t i = 0; i < 3; i++) {
        memcpy(w.from, from[i], sizeof w.from);
        w.x = batch[i];
        for (uint32_t r = 0; r < PEERS; r++) {
            join(&p[r], &w, r);
        }
        run(p);
        for (uint32_t r = 0; r < PEERS; r++) {
            tn_real *sums = p[r].state[0]->val;
            memcpy(sums, p[r].state[0]->grad, 6 * sizeof *sums);
            assert_memory_equal(sums, p[0].state[0]->grad, 6 * sizeof *sums);
            const tn_wide s = tn_wide_get(sums, 1, 0);
            tn_assert_value(s.n, want[i][0]);
            tn_assert_value(s.mean, want[i][1]);
            tn_assert_value(s.m2 / s.n, want[i][2]);
            assert_int_equal(p[r].n_exchanges, i + 1); /* none for backward */
        }
    }
    close_peers(p);
}

TEST(zscore_freezes_at_the_same_row_of_the_joint_batch)
{
    static const double batch[2][3] = {{1, 2, 3}, {5, 2, 8}};
    world w CLEANUP(close_world);
    peer p[PEERS];
    open_world(&w, (const uint32_t[]){0, 2, 2, 3}, batch[0], NULL);
    for (uint32_t r = 0; r < PEERS; r++) {
        tn_graph *g = tn_trial_graph(3, true);
        p[r] = (peer){.x = tn_input(g, "x", 1, false)};
        p[r].state[0] = tn_running(g, NULL, "sums", (tn_shape){6, 1}, 0);
        tn_node *y =
            tn_apply(g, &tn_op_zscore, "y", TN_IN(p[r].x, p[r].state[0]), &(tn_zscore_attr){4});
        tn_wanted wanted = {.logit = y,
                            .loss = tn_apply(g, &tn_loss_mse.op, "loss", TN_IN(y), NULL)};
        assert_int_equal(tn_graph_finish(g, &wanted, NULL), TN_OK);
        p[r].t = (tn_trial){.g = g, .y = y, .feed = {.info = {.training = true}}};
        join(&p[r], &w, r);
    }
    for (uint32_t i = 0; i < 2; i++) {
        w.x = batch[i];
        run(p);
        for (uint32_t r = 0; r < PEERS; r++) {
            memcpy(p[r].state[0]->val, p[r].state[0]->grad, 6 * sizeof(tn_real));
        }
    }
    for (uint32_t r = 0; r < PEERS; r++) {
        const tn_wide s = tn_wide_get(p[r].state[0]->val, 1, 0); /* 1 2 3 5 */
        tn_assert_value(s.n, 4);
        tn_assert_value(s.mean, 2.75);
        tn_assert_value(s.m2, 8.75);
    }
    close_peers(p);
}
