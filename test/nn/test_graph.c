/* test_graph.c - passes, memory, threads and steps of a graph. */
#include "base/thread/team.h"
#include "nn/graph/embed.h"
#include "nn/graph/graphcore.h"
#include "nn/graph/params.h"
#include "nn/near.h"
#include "nn/nets.h"
#include "nn/passes/finish.h"
#include "support/mallocs.h"
#include "support/test.h"

CLOSER(tn_test_batch_free);

enum { ROWS = 300, SEED = 5 };

static tn_test_net train_net(tn_team *team, bool no_passes)
{
    tn_test_net n = tn_test_net_build(
        NULL,
        &(tn_graph_opts){.max_rows = ROWS, .train = true, .no_passes = no_passes, .team = team});
    tn_test_net_finish(&n);
    return n;
}

static void close_net(tn_test_net *n)
{
    tn_graph_free(n->g);
    tn_params_free(n->params);
}

/* What a step leaves: logits, dense gradients and new running values, gradients of rows. */
typedef struct outcome {
    tn_real logit[ROWS];
    tn_real *dense;
    tn_real *rows;
    size_t n_dense, n_rows;
} outcome;

static outcome step_of(tn_test_net *n, uint32_t rows)
{
    tn_test_batch *b FREED(tn_test_batch_free) = tn_test_batch_new(rows, SEED);
    tn_graph_feed feed = tn_test_feed(b, true);
    tn_forward(n->g, &feed);
    tn_backward(n->g);
    assert_null(tn_graph_not_finite(n->g));
    outcome o = {.n_dense = tn_params_size(n->params), .n_rows = tn_test_grads_size(b)};
    o.dense = tn_alloc(o.n_dense, sizeof *o.dense, "an outcome");
    o.rows = tn_alloc(o.n_rows, sizeof *o.rows, "an outcome");
    memcpy(o.dense, tn_params_grads(n->params), o.n_dense * sizeof *o.dense);
    memcpy(o.rows, feed.sparse->grads, o.n_rows * sizeof *o.rows);
    for (uint32_t r = 0; r < rows; r++) {
        o.logit[r] = *tn_val_row(n->logit, r);
    }
    return o;
}

static void free_outcome(outcome *o)
{
    tn_free(o->dense);
    tn_free(o->rows);
}

static void assert_same_bits(const outcome *a, const outcome *b, uint32_t rows)
{
    assert_memory_equal(a->logit, b->logit, rows * sizeof *a->logit);
    assert_memory_equal(a->dense, b->dense, a->n_dense * sizeof *a->dense);
    assert_memory_equal(a->rows, b->rows, a->n_rows * sizeof *a->rows);
}

TEST(the_same_bits_on_1_2_and_4_threads)
{
    tn_test_net alone CLEANUP(close_net) = train_net(NULL, false);
    outcome want = step_of(&alone, ROWS);
    for (uint32_t threads = 1; threads <= 4; threads *= 2) {
        tn_team *team FREED(tn_team_close) = NULL;
        assert_int_equal(tn_team_open(&team, threads, NULL), TN_OK);
        tn_test_net n CLEANUP(close_net) = train_net(team, false);
        for (int times = 0; times < 3; times++) {
            outcome got = step_of(&n, ROWS);
            assert_same_bits(&want, &got, ROWS);
            free_outcome(&got);
        }
    }
    free_outcome(&want);
}

static void assert_close(const tn_real *a, const tn_real *b, size_t n, double tolerance)
{
    for (size_t i = 0; i < n; i++) {
        double x = (double)a[i];
        double y = (double)b[i];
        fail_if(!(fabs(x - y) <= tolerance * fmax(1, fabs(x))), "[%zu] %g and %g", i, x, y);
    }
}

TEST(passes_change_only_rounding)
{
    tn_test_net with CLEANUP(close_net) = train_net(NULL, false);
    tn_test_net without CLEANUP(close_net) = train_net(NULL, true);
    outcome a = step_of(&with, ROWS);
    outcome b = step_of(&without, ROWS);
    assert_close(a.logit, b.logit, ROWS, 1e-5);
    assert_close(a.dense, b.dense, a.n_dense, 1e-5);
    assert_close(a.rows, b.rows, a.n_rows, 1e-5);
    free_outcome(&a);
    free_outcome(&b);
}

TEST(an_example_is_scored_alike_in_every_batch)
{
    tn_params *params = tn_params_new();
    tn_test_net n CLEANUP(close_net) =
        tn_test_net_build(params, &(tn_graph_opts){.max_rows = ROWS});
    tn_test_net_finish(&n);
    tn_test_batch *b FREED(tn_test_batch_free) = tn_test_batch_new(ROWS, SEED);
    tn_graph_feed feed = tn_test_feed(b, false);
    tn_forward(n.g, &feed);
    tn_real all[ROWS];
    for (uint32_t r = 0; r < ROWS; r++) {
        all[r] = *tn_val_row(n.logit, r);
    }
    for (uint32_t rows = 1; rows < 40; rows += 3) {
        feed.rows = rows;
        tn_forward(n.g, &feed);
        for (uint32_t r = 0; r < rows; r++) {
            tn_assert_value((double)*tn_val_row(n.logit, r), (double)all[r]);
        }
    }
}

TEST(a_warm_step_allocates_nothing)
{
    tn_team *team FREED(tn_team_close) = NULL;
    assert_int_equal(tn_team_open(&team, 2, NULL), TN_OK);
    tn_test_net n CLEANUP(close_net) = train_net(team, false);
    tn_test_batch *b FREED(tn_test_batch_free) = tn_test_batch_new(ROWS, SEED);
    tn_graph_feed feed = tn_test_feed(b, true);
    tn_forward(n.g, &feed);
    tn_backward(n.g);
    uint64_t before = tn_mallocs();
    for (int i = 0; i < 100; i++) {
        feed.rows = i % 2 == 0 ? ROWS : ROWS - 17;
        tn_forward(n.g, &feed);
        tn_backward(n.g);
    }
    assert_int_equal(tn_mallocs() - before, 0);
}

TEST(a_batch_without_rows_has_gradients_of_0)
{
    tn_test_net n CLEANUP(close_net) = train_net(NULL, false);
    outcome full = step_of(&n, ROWS);
    outcome empty = step_of(&n, 0);
    for (uint32_t i = 0; i < tn_params_count(n.params); i++) {
        const tn_param_slice *s = tn_params_get(n.params, i);
        for (size_t k = s->at; k < s->at + (size_t)s->rows * s->cols; k++) {
            tn_real want = s->state ? tn_params_weights(n.params)[k] : 0;
            tn_assert_value((double)empty.dense[k], (double)want);
        }
    }
    for (size_t i = 0; i < empty.n_rows; i++) {
        tn_assert_value((double)empty.rows[i], 0);
    }
    free_outcome(&full);
    free_outcome(&empty);
}

TEST(concat_is_a_layout_and_not_a_copy)
{
    tn_test_net n CLEANUP(close_net) = train_net(NULL, false);
    assert_ptr_equal(n.deep->val, n.e->val);
    assert_ptr_equal(n.deep->grad, n.e->grad);
    assert_ptr_equal(n.numeric->val, n.e->val + n.deep->shape.cols);
    assert_int_equal(n.deep->stride, n.e->stride);
    assert_null(n.numeric->grad);
}

TEST(matmul_bias_and_activation_become_one_dense)
{
    tn_test_net n CLEANUP(close_net) = train_net(NULL, false);
    const tn_node *h = tn_graph_find(n.g, "deep.2.act");
    assert_string_equal(h->op->name, "dense");
    assert_int_equal(h->n_in, 3);
    assert_false(tn_graph_find(n.g, "deep.2")->place->alive);
}

static tn_test_net scorer(tn_params *params, bool frozen, bool no_passes)
{
    tn_test_net n = tn_test_net_build(
        params, &(tn_graph_opts){.max_rows = ROWS, .frozen = frozen, .no_passes = no_passes});
    tn_wanted wanted = {.logit = n.logit};
    assert_int_equal(tn_graph_finish(n.g, &wanted, NULL), TN_OK);
    return n;
}

/* Running values that are none of the first ones. */
static void give_statistics(tn_params *params)
{
    for (uint32_t i = 0; i < tn_params_count(params); i++) {
        const tn_param_slice *s = tn_params_get(params, i);
        for (uint32_t c = 0; s->state && c < s->cols; c++) {
            tn_params_weights(params)[s->at + c] = (tn_real)(.5 + .1 * c);
        }
    }
}

TEST(frozen_weights_swallow_the_batch_norm)
{
    tn_test_net trained CLEANUP(close_net) = train_net(NULL, false);
    give_statistics(trained.params);
    tn_test_net plain = scorer(trained.params, false, false);
    tn_test_net frozen = scorer(trained.params, true, false);
    tn_test_batch *b FREED(tn_test_batch_free) = tn_test_batch_new(ROWS, SEED);
    tn_graph_feed feed = tn_test_feed(b, false);
    feed.label = NULL;
    tn_forward(plain.g, &feed);
    tn_forward(frozen.g, &feed);
    for (uint32_t r = 0; r < ROWS; r++) {
        double x = (double)*tn_val_row(plain.logit, r);
        assert_true(fabs(x - (double)*tn_val_row(frozen.logit, r)) <= 2e-5 * fmax(1, fabs(x)));
    }
    const tn_node *n;
    for (uint32_t i = 0; (n = tn_graph_node(frozen.g, i)) != NULL; i++) {
        assert_false(n->place->alive && n->op == &tn_op_batch_norm);
        assert_false(n->place->alive && n->op == &tn_op_dropout);
    }
    assert_string_equal(tn_graph_find(frozen.g, "deep.1.act")->op->name, "dense");
    tn_graph_free(plain.g);
    tn_graph_free(frozen.g);
}

TEST(scoring_reuses_memory)
{
    tn_test_net trained CLEANUP(close_net) = train_net(NULL, false);
    tn_test_net score = scorer(trained.params, false, false);
    tn_test_net wasteful = scorer(trained.params, false, true);
    assert_true(score.g->block_size < wasteful.g->block_size);
    assert_true(wasteful.g->block_size < trained.g->block_size);
    tn_graph_free(score.g);
    tn_graph_free(wasteful.g);
}

/* A tile of rows goes through many nodes while others have not begun (sweep.c): a row may only be
 * overwritten by the same row of another matrix. */
TEST(only_rows_of_equal_width_share_memory)
{
    tn_test_net trained CLEANUP(close_net) = train_net(NULL, false);
    tn_test_net score = scorer(trained.params, false, false);
    const tn_node *a;
    const tn_node *b;
    for (uint32_t i = 0; (a = tn_graph_node(score.g, i)) != NULL; i++) {
        for (uint32_t k = 0; (b = tn_graph_node(score.g, k)) != NULL && k < i; k++) {
            bool roots = a->place->alive && b->place->alive && !a->is_param && !b->is_param &&
                         a->place->home == NULL && b->place->home == NULL;
            if (roots && a->val < b->val + (size_t)ROWS * b->stride &&
                b->val < a->val + (size_t)ROWS * a->stride) {
                assert_ptr_equal(a->val, b->val);
                assert_int_equal(a->stride, b->stride);
            }
        }
    }
    tn_graph_free(score.g);
}

TEST(a_fetched_node_stays_and_is_not_fused)
{
    tn_test_net n CLEANUP(close_net) = tn_test_net_build(NULL, &(tn_graph_opts){.max_rows = ROWS});
    const char *fetch[] = {"deep.2", "deep.1.drop", "deep.1.act"};
    tn_wanted wanted = {.logit = n.logit, .fetch = fetch, .n_fetch = 3};
    assert_int_equal(tn_graph_finish(n.g, &wanted, NULL), TN_OK);
    tn_params_init(n.params, 42);
    tn_test_batch *b FREED(tn_test_batch_free) = tn_test_batch_new(ROWS, SEED);
    tn_graph_feed feed = tn_test_feed(b, false);
    tn_forward(n.g, &feed);
    const tn_node *z = tn_graph_find(n.g, "deep.2");
    const tn_node *drop = tn_graph_find(n.g, "deep.1.drop");
    for (uint32_t r = 0; r < ROWS; r += 50) {
        double y = (double)*tn_val_row(n.hidden, r);
        assert_true(fabs(tanh((double)*tn_val_row(z, r)) - y) < 1e-6);
        tn_assert_value((double)*tn_val_row(drop, r), (double)*tn_val_row(drop->in[0], r));
    }
}

TEST(fetching_what_does_not_exist_is_an_error)
{
    tn_test_net n CLEANUP(close_net) = tn_test_net_build(NULL, &(tn_graph_opts){.max_rows = ROWS});
    tn_error err = {0};
    const char *fetch[] = {"depp.2"};
    tn_wanted wanted = {.logit = n.logit, .fetch = fetch, .n_fetch = 1};
    assert_int_equal(tn_graph_finish(n.g, &wanted, &err), TN_E_CONFIG);
    assert_string_equal(err.text, "no node 'depp.2' in the graph (did you mean 'deep.2'?)");
}

TEST(no_memory_is_reported)
{
    for (uint64_t nth = 1; nth < 10; nth++) {
        tn_test_net n = tn_test_net_build(NULL, &(tn_graph_opts){.max_rows = ROWS, .train = true});
        tn_error err = {0};
        tn_wanted wanted = {.logit = n.logit, .loss = n.loss};
        tn_alloc_fail_at(nth);
        tn_status status = tn_graph_finish(n.g, &wanted, &err);
        tn_alloc_fail_at(0);
        close_net(&n);
        if (status == TN_OK) {
            assert_true(nth > 3);
            return;
        }
        assert_int_equal(status, TN_E_MEMORY);
    }
    fail_msg("finishing a graph takes more than 9 pieces of memory");
}

TEST(what_is_not_finite_is_named)
{
    tn_test_net n CLEANUP(close_net) = train_net(NULL, false);
    const tn_param_slice *s = tn_params_find(n.params, "deep.2.W");
    tn_params_weights(n.params)[s->at + 3] = (tn_real)NAN;
    tn_test_batch *b FREED(tn_test_batch_free) = tn_test_batch_new(ROWS, SEED);
    tn_graph_feed feed = tn_test_feed(b, true);
    tn_forward(n.g, &feed);
    assert_true(isnan(tn_graph_loss(n.g)) != 0);
    assert_string_equal(tn_graph_not_finite(n.g), "deep.2.W");
}

TEST(a_parameter_used_twice_adds_up)
{
    tn_graph *g = tn_trial_graph(2, true);
    tn_node *x = tn_input(g, "x", 2, true);
    tn_node *w = tn_param(g, NULL, "w", (tn_shape){2, 2}, (tn_init){.kind = TN_INIT_CONSTANT});
    tn_node *y = tn_apply(g, &tn_op_matmul, "y",
                          TN_IN(tn_apply(g, &tn_op_matmul, "h", TN_IN(x, w), NULL), w), NULL);
    tn_trial t = tn_trial_open(g, y, 2, true);
    tn_put(x, (const double[]){1, 2, 3, 4});
    tn_put(w, (const double[]){2, 0, 1, -1});
    tn_trial_run(&t, (const double[]){1, 0, 0, 1});
    /* h = x w = [4 -2; 10 -4]; dw = h^T dy + x^T (dy w^T) */
    tn_assert_near("dw", w, w->grad, (const double[]){4 + 2, 10 - 2, -2 + 4, -4 - 2});
    tn_graph_free(g);
}
