/* test_warm_start.c - a new run begins with the weights of a checkpoint of another model. */
#include "train/begin/warm_start.h"

#include "base/math/key.h"
#include "config/tree.h"
#include "exportkit.h"
#include "nn/graph/params.h"
#include "ps/shard/dense.h"
#include "ps/table/table.h"
#include "support/test.h"
#include "train/begin/begun.h"
#include "train/checkpoint/checkpoint.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

CLOSER(tn_worker_free);

static const char widedeep[] = "{type: widedeep, hidden: [8]}";
static const char rules[] = "train.sparse={type: adagrad, rowwise: true, lr: 0.1, n0: 0.25}";
static const char *const plain[] = {rules, NULL};

/* The slots of exportkit with `user` called member, without `tags`, and with `twin`. */
#define OTHERS                                                                                     \
    "{name: item, type: str, share: item}, {name: hist, type: str, share: item, pool: mean}, "     \
    "{name: seq, type: int, pool: sum}, {name: twin, column: user}"
#define OTHER_SLOTS "slots=[{name: member, column: user}, " OTHERS "]"

static tn_worker *worker_of(const tn_model_plan *plan, const tn_binder *b)
{
    tn_error err = {0};
    tn_worker *w = NULL;
    if (tn_worker_new(&w, plan, &(tn_worker_opts){.training = true}, b, &err) != TN_OK) {
        fail_msg("%s", err.text);
    }
    return w;
}

static tn_worker *trained(exportkit *k)
{
    tn_worker *w = worker_of(k->plan, &k->binder);
    tn_saved which;
    tn_error err = {0};
    PATH_IN(path, k->dir, "run");
    assert_ok(tn_checkpoint_load(path, w, &which, &err), err.text);
    return w;
}

static tn_worker *other(exportkit *k, const char *const *overrides)
{
    return worker_of(exportkit_plan_of(k, overrides, NULL, &k->binder), &k->binder);
}

/* "PATH" with `words` behind it, as in checkpoint.from. */
static const tn_tree *from_run(exportkit *k, const char *words)
{
    char text[600];
    (void)snprintf(text, sizeof text, "{path: %s/run%s}", k->dir, words);
    return tn_tree_read_flow(k->arena, text, "test");
}

static tn_begun begin(exportkit *k, tn_worker *w, const char *words)
{
    tn_begun b = {0};
    tn_error err = {0};
    assert_ok(tn_warm_start(from_run(k, words), w, &b, &err), err.text);
    return b;
}

/* ---- looking at rows ---- */

typedef struct sought {
    uint64_t key;
    uint16_t group;
    uint32_t n_floats;
    float floats[256];
    double show;
    bool found;
} sought;

static tn_status see(void *arg, const tn_row_view *row, tn_error *err)
{
    (void)err;
    sought *s = arg;
    if (row->key == s->key && row->group == s->group) {
        assert_true(row->n_floats <= 256);
        s->found = true;
        s->n_floats = row->n_floats;
        s->show = row->show;
        memcpy(s->floats, row->data, row->n_floats * sizeof(float));
    }
    return TN_OK;
}

static sought find_row(const tn_worker *w, const char *group, uint64_t sign)
{
    const tn_layout *layout = w->plan->layout;
    sought s = {.key = tn_key_of(sign, tn_salt(group))};
    tn_error err = {0};
    while (strcmp(layout->group[s.group].name, group) != 0) {
        s.group++;
        assert_true(s.group < layout->n_groups);
    }
    assert_ok(tn_table_walk(w->shard.table, tn_partition_of(s.key, TN_PARTITIONS), see, &s, &err),
              err.text);
    return s;
}

static uint64_t rows_of(const tn_worker *w, const char *group)
{
    tn_group_rows rows[64];
    uint32_t g = 0;
    tn_table_count_groups(w->shard.table, rows);
    while (strcmp(w->plan->layout->group[g].name, group) != 0) {
        g++;
    }
    return rows[g].rows;
}

static tn_status add_bytes(void *arg, const tn_row_view *row, tn_error *err)
{
    (void)err;
    tn_text_add_u64le(arg, row->key);
    tn_text_add_u32le(arg, row->last_seen);
    tn_text_add(arg, &row->show, sizeof row->show);
    tn_text_add(arg, &row->click, sizeof row->click);
    tn_text_add(arg, row->data, row->n_floats * sizeof *row->data);
    return TN_OK;
}

static tn_text table_of(const tn_worker *w)
{
    tn_text out = {0};
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        assert_int_equal(tn_table_walk(w->shard.table, p, add_bytes, &out, NULL), TN_OK);
    }
    return out;
}

static void same_rows(const tn_worker *a, const tn_worker *b)
{
    tn_text x CLEANUP(tn_text_done) = table_of(a);
    tn_text y CLEANUP(tn_text_done) = table_of(b);
    assert_true(x.size > 0);
    assert_int_equal(x.size, y.size);
    assert_memory_equal(x.data, y.data, x.size);
}

static bool same_param(const tn_worker *a, const tn_worker *b, const char *name)
{
    const tn_param_slice *p = tn_params_find(a->params, name);
    const tn_param_slice *q = tn_params_find(b->params, name);
    assert_true(p != NULL && q != NULL && p->rows == q->rows && p->cols == q->cols);
    return memcmp(tn_params_weights(a->params) + p->at, tn_params_weights(b->params) + q->at,
                  (size_t)p->rows * p->cols * sizeof(float)) == 0;
}

static void says(const tn_begun *b, const char *line)
{
    assert_says(tn_text_str(&b->table), line);
}

/* ---- tests ---- */

TEST(the_same_model_is_taken_whole)
{
    static const char *const deltas[] = {rules, "checkpoint.delta_every=4steps",
                                         "checkpoint.every=1epoch", "checkpoint.keep=9", NULL};
    const char *const *const ways[] = {plain, deltas};
    for (uint32_t i = 0; i < 2; i++) {
        OPEN(exportkit, k, widedeep, ways[i]);
        exportkit_train(&k);
        tn_worker *was FREED(tn_worker_free) = trained(&k);
        tn_worker *now FREED(tn_worker_free) = worker_of(k.plan, &k.binder);
        tn_begun b CLEANUP(tn_begun_done) = begin(&k, now, "");
        same_rows(was, now);
        assert_memory_equal(tn_params_weights(was->params), tn_params_weights(now->params),
                            tn_params_size(was->params) * sizeof(float));
        for (uint32_t s = 0; s < 2; s++) {
            assert_memory_equal(tn_dense_state(was->shard.dense, s),
                                tn_dense_state(now->shard.dense, s),
                                tn_params_size(was->params) * sizeof(float));
        }
        assert_true(tn_dense_t(was->shard.dense) > 0);
        assert_int_equal(tn_dense_t(was->shard.dense), tn_dense_t(now->shard.dense));
        assert_int_equal(b.count[TN_BEGUN_NEW] + b.count[TN_BEGUN_LEFT], 0);
        assert_int_equal(now->steps, 0); /* a run of its own */
    }
}

/* A delta as the checkpoint that is named: rows of it and of what it stands on. */
TEST(a_checkpoint_by_name_is_taken)
{
    static const char *const deltas[] = {rules, "checkpoint.delta_every=4steps",
                                         "checkpoint.every=1epoch", "checkpoint.keep=9", NULL};
    char path[300];
    uint32_t n = 0;
    OPEN(exportkit, k, widedeep, deltas);
    exportkit_train(&k);
    for (uint32_t ordinal = 1; ordinal < 9; ordinal++) {
        tn_error err = {0};
        tn_saved which;
        (void)snprintf(path, sizeof path, "%s/run/ckpt-%u", k.dir, ordinal);
        if (!tn_path_exists(path)) {
            continue;
        }
        tn_worker *was FREED(tn_worker_free) = worker_of(k.plan, &k.binder);
        tn_worker *now FREED(tn_worker_free) = worker_of(k.plan, &k.binder);
        assert_int_equal(tn_checkpoint_load(path, was, &which, &err), TN_OK);
        n += which.deltas > 0;
        const tn_tree *from = tn_tree_scalar(k.arena, path, (tn_origin){.source = "test"});
        assert_ok(tn_warm_start(from, now, NULL, &err), err.text);
        same_rows(was, now);
    }
    assert_true(n > 0); /* deltas were among them */
}

TEST(slots_move_begin_and_go)
{
    static const char *const overrides[] = {rules, OTHER_SLOTS, NULL};
    OPEN(exportkit, k, widedeep, plain);
    exportkit_train(&k);
    tn_worker *was FREED(tn_worker_free) = trained(&k);
    tn_worker *now FREED(tn_worker_free) = other(&k, overrides);
    tn_begun b CLEANUP(tn_begun_done) = begin(&k, now, ", rename: {user: member}");
    assert_int_equal(rows_of(now, "member"), rows_of(was, "user"));
    assert_int_equal(rows_of(now, "item"), rows_of(was, "item"));
    assert_int_equal(rows_of(now, "twin"), 0);
    for (uint64_t sign = 0; sign < 20; sign++) {
        const sought old = find_row(was, "user", sign);
        const sought moved = find_row(now, "member", sign);
        assert_true(old.found && moved.found && old.show > 0);
        assert_int_equal(old.n_floats, moved.n_floats);
        assert_memory_equal(old.floats, moved.floats, old.n_floats * sizeof(float));
        assert_true(old.show == moved.show);
        assert_true(old.key != moved.key); /* keys are salted by the name */
    }
    says(&b, "member                    taken  23 rows of 'user'");
    says(&b, "twin                      new    not in the checkpoint");
    says(&b, "tags                      left   not in the model");
    says(&b, "deep.1.W                  new    [20, 8], in the checkpoint [");
    says(&b, "deep.1.b                  taken  [1, 8]");
    says(&b, "adam                      new    states");
    assert_true(same_param(was, now, "deep.1.b"));
    assert_int_equal(tn_dense_t(now->shard.dense), 0);
    assert_non_null(strstr(tn_text_str(&b.json),
                           "{\"what\":\"slot\",\"name\":\"twin\",\"how\":\"new\",\"note\":\"not in "
                           "the checkpoint\"}"));
}

TEST(only_what_is_asked_for_is_taken)
{
    OPEN(exportkit, k, widedeep, plain);
    exportkit_train(&k);
    tn_worker *was FREED(tn_worker_free) = trained(&k);
    tn_worker *fresh FREED(tn_worker_free) = worker_of(k.plan, &k.binder);
    tn_worker *now FREED(tn_worker_free) = worker_of(k.plan, &k.binder);
    tn_begun b = begin(&k, now, ", rows: [hist, tags], dense: [deep.1.*]");
    assert_int_equal(rows_of(now, "item"), rows_of(was, "item")); /* the group of `hist` */
    assert_int_equal(rows_of(now, "tags"), rows_of(was, "tags"));
    assert_int_equal(rows_of(now, "user"), 0);
    assert_true(same_param(was, now, "deep.1.W") && same_param(fresh, now, "deep.2.W"));
    assert_false(same_param(fresh, now, "deep.1.W"));
    says(&b, "user                      new    left out by rows");
    says(&b, "deep.2.W                  new    [8, 1], left out by dense");
    tn_begun_done(&b);
    b = begin(&k, now, ", rows: none, dense: all"); /* instead of what is there */
    assert_int_equal(tn_table_rows(now->shard.table), 0);
    assert_true(same_param(was, now, "deep.2.W"));
    tn_begun_done(&b);
}

/* States of another rule begin anew; a segment that was not there as in a new row. */
TEST(what_a_row_lacks_begins_as_in_a_new_one)
{
    static const char *const overrides[] = {
        "train.sparse={wide: {type: adagrad, rowwise: true, n0: 0.5}, deep: {type: ftrl}}", NULL};
    float wide[2];
    OPEN(exportkit, k, "{type: lr}", plain);
    exportkit_train(&k);
    tn_worker *was FREED(tn_worker_free) = trained(&k);
    const char *const grown[] = {overrides[0], "model={type: widedeep, hidden: [8]}", NULL};
    tn_worker *now FREED(tn_worker_free) = other(&k, grown);
    tn_begun b = begin(&k, now, "");
    says(&b, "23 rows; vectors of 'deep' new");
    uint32_t moved = 0;
    for (uint64_t sign = 0; sign < 20; sign++) {
        const sought old = find_row(was, "user", sign);
        const sought row = find_row(now, "user", sign);
        const tn_place_in_row p = tn_table_place(now->shard.table, 0, 0);
        const tn_place_in_row deep = tn_table_place(now->shard.table, 0, 1);
        memcpy(wide, old.floats, sizeof wide);
        assert_memory_equal(&wide[0], &row.floats[p.w], sizeof(float));
        assert_memory_equal(&wide[1], &row.floats[p.state[0]], sizeof(float));
        for (uint32_t i = 0; i < 4; i++) {
            const float w = row.floats[deep.w + i];
            assert_true(w >= -0.5F && w <= 0.5F);
            moved += w != 0;
        }
    }
    assert_int_equal(moved, 80);
    tn_begun_done(&b);
    tn_worker *third FREED(tn_worker_free) =
        other(&k, (const char *const[]){"train.sparse={type: adam}", NULL});
    b = begin(&k, third, "");
    says(&b, "23 rows; states of 'wide' new");
    tn_begun_done(&b);
    tn_worker *fourth FREED(tn_worker_free) =
        other(&k, (const char *const[]){"train.sparse={type: sgd}", NULL});
    b = begin(&k, fourth, "");
    says(&b, "23 rows; states of 'wide' new");
    tn_begun_done(&b);
}

/* A new key of a run would begin with these very vectors. */
TEST(a_new_segment_is_drawn_like_one_of_a_new_key)
{
    static const char *const overrides[] = {rules, "model={type: widedeep, hidden: [8]}", NULL};
    OPEN(exportkit, k, "{type: lr}", plain);
    exportkit_train(&k);
    tn_worker *now FREED(tn_worker_free) = other(&k, overrides);
    tn_begun b CLEANUP(tn_begun_done) = begin(&k, now, "");
    tn_worker *created FREED(tn_worker_free) = other(&k, overrides);
    const sought row = find_row(now, "user", 3);
    const uint64_t key = row.key;
    const uint16_t group = row.group;
    const uint32_t width = tn_record_of(now->plan->layout, group)->width;
    const uint32_t at = 0;
    uint32_t first[TN_PARTITIONS + 1] = {0};
    for (uint32_t p = tn_partition_of(key, TN_PARTITIONS); p < TN_PARTITIONS; p++) {
        first[p + 1] = 1;
    }
    float pulled[64];
    const tn_keyset keys = {.n = 1,
                            .key = &key,
                            .group = &group,
                            .at = &at,
                            .first = first,
                            .floats = width,
                            .owners = &created->shares->owners,
                            .layout = now->plan->layout};
    assert_int_equal(tn_table_pull(created->shard.table, created->team, &keys, pulled, NULL),
                     TN_OK);
    const tn_place_in_row deep = tn_table_place(now->shard.table, 0, 1);
    assert_true(width >= 5);
    assert_memory_equal(&row.floats[deep.w], pulled + 1, 4 * sizeof(float));
}

static void fails(exportkit *k, tn_worker *w, const char *words, tn_status want, const char *text)
{
    tn_error err = {0};
    assert_int_equal(tn_warm_start(from_run(k, words), w, NULL, &err), want);
    assert_says(err.text, text);
}

TEST(other_widths_are_refused_unless_left_out)
{
    static const char *const wider[] = {
        rules, "slots=[{name: user, dim: 6}, {name: seq, type: int, pool: sum}]", NULL};
    OPEN(exportkit, k, widedeep, plain);
    exportkit_train(&k);
    tn_worker *w FREED(tn_worker_free) = other(&k, wider);
    fails(&k, w, "", TN_E_CONFIG, "slot 'user': 'deep' is 6 wide, in the checkpoint 4");
    fails(&k, w, "", TN_E_CONFIG, "checkpoint.from.rows");
    tn_begun b CLEANUP(tn_begun_done) = begin(&k, w, ", rows: [seq]");
    assert_true(rows_of(w, "seq") > 0);
    assert_int_equal(rows_of(w, "user"), 0);
}

TEST(words_that_mean_nothing_are_refused)
{
    tn_error err = {0};
    OPEN(exportkit, k, widedeep, plain);
    exportkit_train(&k);
    tn_worker *w FREED(tn_worker_free) = worker_of(k.plan, &k.binder);
    fails(&k, w, ", rows: some", TN_E_CONFIG, "checkpoint.from.rows is not all, none or [slot");
    fails(&k, w, ", dense: {a: b}", TN_E_CONFIG, "checkpoint.from.dense is not all, none or");
    fails(&k, w, ", rename: [a]", TN_E_CONFIG, "checkpoint.from.rename is not {old: new");
    fails(&k, w, ", rows: [nobody]", TN_E_CONFIG, "the model has no slot 'nobody'");
    fails(&k, w, ", dense: [deeep.*]", TN_E_CONFIG, "the model has no parameter 'deeep.*'");
    fails(&k, w, ", rename: {nobody: user}", TN_E_CONFIG, "no slot or parameter 'nobody'");
    fails(&k, w, ", rename: {user: nobody}", TN_E_CONFIG, "can become 'nobody'");
    fails(&k, w, ", rename: {seq: user}", TN_E_CONFIG, "become one");
    fails(&k, w, ", density: 1", TN_E_CONFIG, "checkpoint.from has no 'density'");
    fails(&k, w, "/ckpt-77", TN_E_CKPT, "no checkpoint '");
    const tn_tree *nothing = tn_tree_scalar(k.arena, k.dir, (tn_origin){.source = "test"});
    assert_int_equal(tn_warm_start(nothing, w, NULL, &err), TN_E_CKPT);
    assert_non_null(strstr(err.text, "no checkpoint in '"));
}

TEST(a_damaged_checkpoint_is_named)
{
    char path[600];
    tn_text bytes CLEANUP(tn_text_done) = {0};
    OPEN(exportkit, k, widedeep, plain);
    exportkit_train(&k);
    tn_worker *w FREED(tn_worker_free) = worker_of(k.plan, &k.binder);
    (void)snprintf(path, sizeof path, "%s/run/ckpt-1/sparse-0000-1023.tns", k.dir);
    assert_int_equal(tn_file_read_all(path, 1 << 26, &bytes, NULL), TN_OK);
    bytes.data[bytes.size / 3] ^= 0x40;
    assert_int_equal(tn_file_replace(path, bytes.data, bytes.size, NULL), TN_OK);
    fails(&k, w, "/ckpt-1", TN_E_CKPT, "sparse-0000-1023.tns");
    (void)snprintf(path, sizeof path, "%s/run/ckpt-1", k.dir);
    assert_true(tn_path_is_dir(path)); /* somebody else's: it stays */
}
