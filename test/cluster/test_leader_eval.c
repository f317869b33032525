/* test_leader_eval.c - a checkpoint evaluated by several ranks on threads, over real sockets: what
 * they find is what one process finds, to the last bit. */
#include "cluster/train/leader.h"

#include "base/file/file.h"
#include "cluster/train/follower.h"
#include "config/diag.h"
#include "nn/gemm/gemm.h"
#include "support/test.h"
#include "train/checkpoint/checkpoint.h"
#include "train/eval/node_files.h"
#include "train/eval/predict.h"
#include "train/golden.h"
#include "train/grouprun.h"
#include "train/report/eval_result.h"
#include "train/step/model_plan.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

#include <pthread.h>

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

enum { RANKS_MAX = 4, TEXT = 1500, WORDS = 24 };

static char dir[256], run_dir[300], rows[300];

static const char *node_names[] = {"logit", "deep.1"};
static tn_strs nodes = {2, node_names};

/* OpenBLAS rounds a row's products by the rows beside it, which are others where ranks share the
 * data: without our own products, a model that has none. */
static const char *model = "deepfm";

SET_UP
{
    tn_products own;
    if (tn_products_find(&own, TN_PRODUCTS_OWN, NULL) != TN_OK) {
        model = "lr";
        nodes.n = 1;
    }
    tn_tmpdir_make(dir);
    (void)snprintf(rows, sizeof rows, "%s/rows.tsv", dir);
    (void)snprintf(run_dir, sizeof run_dir, "%s/run", dir);
    grouprun_deal(rows, 3, 8);
    grouprun one = {.config = model,
                    .n = 1,
                    .dir = run_dir,
                    .more = (const char *const[]){"train.epochs=1", NULL}};
    grouprun_well(&one);
}

TEAR_DOWN
{
    tn_tmpdir_remove(dir);
}

/* What a group of n does: rank 0 evaluates, the others follow. */
typedef struct group {
    uint32_t n;
    const char *const *more; /* overrides */
    bool predicts, fetches;
    uint32_t gives_up_after; /* rows: the first time rank 0 ends there; 0: never */
    uint32_t fails;          /* 1 + the rank whose data are not there; 0: none */

    tn_status status[RANKS_MAX];
    char text[RANKS_MAX][TEXT];
    tn_text json, predictions, fetched; /* of rank 0 */
    uint64_t records;
} group;

typedef struct seat {
    group *g;
    uint32_t rank;
    tn_membership membership;
    tn_arena *arena;
    const tn_model_plan *plan;
    tn_strs paths;
} seat;

static const tn_run_text text = {.config = "test\n", .hash = HASH};

static void plan(seat *s)
{
    char *where = TN_NEW_ARRAY(s->arena, char, TN_PATH_SIZE);
    const char **words = TN_NEW_ARRAY(s->arena, const char *, WORDS);
    const char **paths = TN_NEW_ARRAY(s->arena, const char *, 3);
    uint32_t n = 0;
    (void)snprintf(where, TN_PATH_SIZE, "run.dir=%s", run_dir);
    words[n++] = where;
    words[n++] = "train.threads=1";
    words[n++] = "data.part_bytes=1kB";
    words[n++] = "eval.batch=16";
    words[n++] = "run.deterministic=true";
    for (const char *const *w = s->g->more; *w != NULL; w++) {
        words[n++] = *w;
    }
    for (uint32_t i = 0; i < 3; i++) {
        char *path = TN_NEW_ARRAY(s->arena, char, TN_PATH_SIZE);
        const bool there = s->g->fails != s->rank + 1;
        (void)snprintf(path, TN_PATH_SIZE, "%s-%u%s", rows, i, there ? "" : "-none");
        paths[i] = path;
    }
    s->paths = (tn_strs){.n = 3, .item = paths};
    s->plan = golden_plan_at(s->arena, model, words, s->g->n > 1 ? &s->membership : NULL);
}

static tn_status limited(void *arg, const tn_scores *scores, tn_error *err)
{
    uint32_t *left = arg;
    if (*left < scores->batch->rows) {
        return tn_fail(err, TN_E_STOPPED, "enough");
    }
    *left -= scores->batch->rows;
    return TN_OK;
}

static tn_status evaluate_as(tn_worker *w, const tn_ranks *r, const tn_eval_request *request,
                             tn_evaluation *out, tn_error *err)
{
    return r->ops->evaluate(r->self, w, "data", request, out, err);
}

static tn_status tell(seat *s, tn_evaluation *e, tn_error *err)
{
    tn_eval_result f = {
        .data = "rows", .run = s->plan->run, .schema = s->plan->schema, .result = e};
    e->seconds = 0;
    s->g->records = e->counts.records;
    tn_eval_result_intervals(&f);
    return tn_eval_result_json(&f, &s->g->json, err);
}

/* Values of nodes, of every row. */
static tn_status fetch(seat *s, tn_worker *w, const tn_ranks *r, tn_error *err)
{
    tn_fetch *f = NULL;
    tn_evaluation e = {0};
    PATH_IN(file, dir, "fetch.npz");
    TN_TRY(tn_fetch_built()->open(&f, file, &nodes, err));
    const tn_eval_request request = {.paths = &s->paths,
                                     .want_ids = true,
                                     .sink = tn_fetch_built()->sink,
                                     .sink_arg = f,
                                     .fetch = &nodes};
    tn_status status = evaluate_as(w, r, &request, &e, err);
    tn_evaluation_done(&e);
    if (status != TN_OK) {
        tn_fetch_built()->abandon(f);
        return status;
    }
    TN_TRY(tn_fetch_built()->commit(f, err));
    return tn_file_read_all(file, 1 << 20, &s->g->fetched, err);
}

static tn_status judge(seat *s, tn_worker *w, const tn_ranks *r, tn_error *err)
{
    tn_predictions *p = NULL;
    tn_evaluation e = {0};
    tn_eval_request request = {.paths = &s->paths, .want_ids = s->g->predicts};
    PATH_IN(file, dir, "p.tsv");
    if (s->g->predicts) {
        TN_TRY(tn_predictions_open(&p, &(tn_predictions_opts){.path = file, .sampling = 1}, err));
        request.sink = tn_predictions_sink;
        request.sink_arg = p;
    }
    tn_status status = evaluate_as(w, r, &request, &e, err);
    if (status == TN_OK) {
        status = tell(s, &e, err);
    }
    tn_evaluation_done(&e);
    if (p == NULL || status != TN_OK) {
        tn_predictions_abandon(p);
        return status;
    }
    TN_TRY(tn_predictions_commit(p, err));
    char more[TN_PATH_SIZE]; /* of the last source, all of which are written alike */
    (void)snprintf(more, sizeof more, "%s/p.2.tsv", dir);
    TN_TRY(tn_file_read_all(file, 1 << 20, &s->g->predictions, err));
    tn_text last CLEANUP(tn_text_done) = {0};
    status = tn_file_read_all(more, 1 << 20, &last, err);
    tn_text_add(&s->g->predictions, tn_text_str(&last), last.size);
    return status;
}

/* An evaluation that ends before it is over leaves the group good for another. */
static tn_status give_up(seat *s, tn_worker *w, const tn_ranks *r, tn_error *err)
{
    uint32_t left = s->g->gives_up_after;
    tn_evaluation e = {0};
    const tn_eval_request request = {.paths = &s->paths, .sink = limited, .sink_arg = &left};
    assert_int_equal(evaluate_as(w, r, &request, &e, err), TN_E_STOPPED);
    assert_null(e.metrics);
    return TN_OK;
}

static tn_status lead_all(seat *s, tn_worker *w, const tn_ranks *r, tn_error *err)
{
    tn_saved which;
    char path[TN_PATH_SIZE];
    TN_TRY(r->ops->form(r->self, NULL, err));
    TN_TRY(tn_checkpoint_load(run_dir, w, &which, err));
    (void)snprintf(path, sizeof path, "%s/%s", run_dir, which.name);
    TN_TRY(r->ops->load(r->self, path, err));
    if (s->g->gives_up_after > 0) {
        TN_TRY(give_up(s, w, r, err));
    }
    return s->g->fetches ? fetch(s, w, r, err) : judge(s, w, r, err);
}

static tn_status lead_group(seat *s, const tn_binder *b, tn_error *err)
{
    tn_worker *w = NULL;
    tn_ranks ranks = tn_ranks_alone;
    const tn_worker_opts opts = {
        .compares = true, .fetch = nodes.item, .n_fetch = s->g->fetches ? nodes.n : 0};
    tn_status status = tn_worker_new(&w, s->plan, &opts, b, err);
    if (status == TN_OK) {
        const tn_ranks_opts how = {.worker = w, .text = &text};
        status = tn_ranks_open(&ranks, &how, err);
    }
    if (status == TN_OK) {
        status = lead_all(s, w, &ranks, err);
    }
    (void)ranks.ops->close(ranks.self, status, err->text);
    tn_worker_free(w);
    return status;
}

static void *run(void *arg)
{
    seat *s = arg;
    group *g = s->g;
    s->arena = tn_arena_new(1 << 16);
    tn_diag diag CLEANUP(tn_diag_done) = {0};
    tn_binder b = {.arena = s->arena, .diag = &diag};
    tn_error err = {0};
    const tn_watch watch = {0};
    const tn_rank_data data = {&s->paths, g->fetches ? &nodes : NULL};
    plan(s);
    g->status[s->rank] = s->rank == 0 ? lead_group(s, &b, &err)
                                      : tn_follower_serve(s->plan, &text, &watch, &data, &b, &err);
    (void)snprintf(g->text[s->rank], TEXT, "%s", err.text);
    tn_arena_free(s->arena);
    return NULL;
}

static void evaluate(group *g)
{
    seat seats[RANKS_MAX];
    pthread_t thread[RANKS_MAX];
    char at[RANKS_MAX][TN_ENDPOINT_SIZE];
    const char *address[RANKS_MAX];
    const char *host[RANKS_MAX] = {NULL};
    assert_int_equal(setenv("TNET_FAST", "4", 1), 0);    // NOLINT(concurrency-mt-unsafe)
    assert_int_equal(setenv("TNET_SILENCE", "1", 1), 0); // NOLINT(concurrency-mt-unsafe)
    for (uint32_t r = 0; r < g->n; r++) {
        (void)snprintf(at[r], sizeof at[r], "ipc://%s/%u.sock", dir, r);
        address[r] = at[r];
    }
    for (uint32_t r = 0; r < g->n; r++) {
        seats[r] = (seat){.g = g,
                          .rank = r,
                          .membership = {.rank = r,
                                         .size = g->n,
                                         .job = 9,
                                         .address = address,
                                         .host = host,
                                         .bind = at[r],
                                         .how = "test"}};
        assert_int_equal(pthread_create(&thread[r], NULL, run, &seats[r]), 0);
    }
    for (uint32_t r = 0; r < g->n; r++) {
        assert_int_equal(pthread_join(thread[r], NULL), 0);
    }
}

static void evaluate_well(group *g)
{
    evaluate(g);
    for (uint32_t r = 0; r < g->n; r++) {
        fail_if(g->status[r] != TN_OK, "rank %u of %u: %s", r, g->n, g->text[r]);
    }
}

static void done(group *g)
{
    tn_text_done(&g->json);
    tn_text_done(&g->predictions);
    tn_text_done(&g->fetched);
}

/* But for the time in front. */
static const char *found(const group *g)
{
    const char *comma = strchr(tn_text_str(&g->json), ',');
    assert_non_null(comma);
    return comma;
}

/* Groups of 2 to 4 find what one process finds. */
static void assert_same(const group *how)
{
    group one = *how;
    one.n = 1;
    evaluate_well(&one);
    assert_int_equal(one.records, 256);
    for (uint32_t n = 2; n <= RANKS_MAX; n++) {
        group g = *how;
        g.n = n;
        evaluate_well(&g);
        assert_int_equal(g.records, one.records);
        assert_string_equal(found(&g), found(&one));
        assert_int_equal(g.predictions.size, one.predictions.size);
        if (how->predicts) {
            assert_memory_equal(g.predictions.data, one.predictions.data, one.predictions.size);
        }
        done(&g);
    }
    done(&one);
}

#define GROUPED "eval.metrics=[auc,logloss,gauc,gauc_skipped]"

TEST(m3_integers_of_all_ranks_add_up)
{
    const char *const plain[] = {"eval.metrics=[auc,logloss,copc]", NULL};
    assert_same(&(group){.more = plain});
}

TEST(exact_auc_and_its_intervals_are_those_of_one_process)
{
    const char *const exact[] = {"eval.auc=exact", NULL};
    assert_same(&(group){.more = exact});
}

TEST(groups_may_span_ranks)
{
    const char *const grouped[] = {GROUPED, "data.group=city", NULL};
    assert_same(&(group){.more = grouped});
}

TEST(slices_may_span_ranks)
{
    const char *const sliced[] = {"eval.slices=[city,hist,user]", "eval.slices_min_rows=3", NULL};
    assert_same(&(group){.more = sliced});
}

TEST(predictions_are_those_of_one_process_with_all_else)
{
    const char *const all[] = {GROUPED,
                               "data.group=city",
                               "eval.auc=exact",
                               "eval.slices=[hist]",
                               "eval.slices_min_rows=3",
                               NULL};
    const char *const nameless[] = {"data.record_id=~", NULL};
    assert_same(&(group){.more = all, .predicts = true});
    assert_same(&(group){.more = nameless, .predicts = true});
}

TEST(values_of_nodes_are_those_of_one_process)
{
    const char *const more[] = {"eval.metrics=[auc]", NULL};
    if (tn_fetch_built() == NULL) {
        skip(); /* src/extra/arrays is not built */
    }
    group one = {.n = 1, .more = more, .fetches = true};
    evaluate_well(&one);
    assert_true(one.fetched.size > sizeof(float) * 256 * nodes.n);
    for (uint32_t n = 2; n <= RANKS_MAX; n++) {
        group g = {.n = n, .more = more, .fetches = true};
        evaluate_well(&g);
        assert_int_equal(g.fetched.size, one.fetched.size);
        assert_memory_equal(g.fetched.data, one.fetched.data, one.fetched.size);
        done(&g);
    }
    done(&one);
}

TEST(rank_0_may_give_up_and_begin_anew)
{
    const char *const exact[] = {"eval.auc=exact", NULL};
    for (uint32_t rows_before = 1; rows_before < 300; rows_before += 120) {
        assert_same(&(group){.more = exact, .gives_up_after = rows_before});
    }
}

TEST(a_rank_that_fails_ends_all_with_its_sentence)
{
    const char *const exact[] = {"eval.auc=exact", NULL};
    group g = {.n = 3, .more = exact, .fails = 3};
    evaluate(&g);
    for (uint32_t r = 0; r < 3; r++) {
        assert_int_equal(g.status[r], TN_E_DATA);
        assert_non_null(strstr(g.text[r], "rank 2: "));
        assert_non_null(strstr(g.text[r], "rows.tsv-0-none"));
    }
    done(&g);
}
