/* test_scored_rows.c - rows come back as they were, and bytes that hold none are refused. */
#include "cluster/train/scored_rows.h"

#include "base/core/bytes.h"
#include "base/math/rng.h"
#include "cluster/scoredkit.h"
#include "io/schema/schema.h"
#include "support/test.h"

enum { ROWS = 200 };

static scoredkit k;
static tn_scored_form form;
static tn_scored_rows rows = {.form = &form};
static tn_text bytes;

SET_UP
{
    scoredkit_open(&k);
    form = tn_scored_form_of(k.run, k.schema, true, k.arena);
}

TEAR_DOWN
{
    tn_scored_rows_done(&rows);
    tn_text_done(&bytes);
    scoredkit_close(&k);
}

static void add(const tn_scores *scores)
{
    assert_int_equal(tn_scored_add(&form, scores, &bytes, NULL), TN_OK);
}

static void assert_read(tn_scored_rows *to, const tn_scores *want)
{
    assert_int_equal(tn_scored_read(to, bytes.data, bytes.size, NULL), TN_OK);
    const tn_scores *got = &to->scores;
    assert_int_equal(got->batch->rows, want->batch->rows);
    for (uint32_t row = 0; row < want->batch->rows; row++) {
        scoredkit_same(&form, got, row, want, row);
    }
}

TEST(only_keys_of_slices_travel)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < k.schema->n_slots; s++) {
        const char *name = k.schema->slot[s]->name;
        assert_int_equal(form.slot[s], strcmp(name, "user") == 0 || strcmp(name, "hist") == 0);
        n += form.slot[s];
    }
    assert_int_equal(n, 2);
}

TEST(what_is_written_comes_back)
{
    const tn_scores *full = scoredkit_draw(&k, 91, ROWS);
    add(full);
    assert_read(&rows, full);
    tn_text_clear(&bytes);
    const tn_scores *bare = scoredkit_draw_bare(&k, 92, ROWS);
    add(bare);
    assert_read(&rows, bare); /* of the same object, after another */
}

TEST(ids_stay_at_home_where_nobody_wants_them)
{
    const tn_scores *full = scoredkit_draw(&k, 91, ROWS);
    add(full);
    const size_t with = bytes.size;
    tn_text_clear(&bytes);
    form.ids = false;
    add(full);
    assert_true(bytes.size < with);
    assert_read(&rows, full);
    assert_null(rows.batch.id_offset);
}

TEST(any_run_of_whole_rows_is_a_message)
{
    const tn_scores *full = scoredkit_draw(&k, 93, ROWS);
    add(full);
    uint32_t seen = 0;
    for (size_t at = 0; at < bytes.size;) {
        const size_t most = 1 + at % 700;
        const size_t size = tn_scored_fitting(bytes.data + at, bytes.size - at, most);
        assert_true(size > 0);
        assert_int_equal(tn_scored_read(&rows, bytes.data + at, size, NULL), TN_OK);
        const tn_scores *got = &rows.scores;
        assert_true(size <= most || got->batch->rows == 1);
        for (uint32_t row = 0; row < got->batch->rows; row++) {
            scoredkit_same(&form, got, row, full, seen++);
        }
        at += size;
    }
    assert_int_equal(seen, ROWS);
    assert_int_equal(tn_scored_fitting(bytes.data, 0, 100), 0);
    assert_int_equal(tn_scored_read(&rows, "", 0, NULL), TN_OK);
    assert_int_equal(rows.batch.rows, 0);
}

TEST(a_view_is_its_rows)
{
    const tn_scores *full = scoredkit_draw(&k, 94, ROWS);
    const tn_scores *part = scoredkit_part(&k, full, 17, 40);
    assert_int_equal(part->batch->rows, 40);
    for (uint32_t row = 0; row < 40; row++) {
        scoredkit_same(&form, part, row, full, 17 + row);
    }
    add(part);
    assert_read(&rows, part);
}

static void assert_refused(const char *at, size_t size)
{
    tn_error err = {0};
    assert_int_equal(tn_scored_read(&rows, at, size, &err), TN_E_PEER);
    assert_non_null(strstr(err.text, "do not follow their format"));
    assert_int_equal(rows.batch.rows, 0);
}

TEST(bytes_that_end_within_a_row_are_refused)
{
    add(scoredkit_draw(&k, 95, 3));
    const size_t first = tn_scored_fitting(bytes.data, bytes.size, 1);
    for (size_t size = 1; size < first; size++) {
        assert_refused(bytes.data, size);
    }
    tn_store_u32(bytes.data, (uint32_t)first - 5); /* one less than it holds */
    assert_refused(bytes.data, first);
}

TEST(values_that_no_reader_lets_pass_are_refused)
{
    enum { SOURCE = 4, LABEL = 20, WEIGHT = 24 };
    static const float labels[] = {-0.5F, 1.5F, NAN, INFINITY};
    static const float weights[] = {-1, 0x1p21F, NAN};
    add(scoredkit_draw(&k, 96, 1));
    char *kept = TN_NEW_ARRAY(k.arena, char, bytes.size);
    memcpy(kept, bytes.data, bytes.size);
    for (uint32_t i = 0; i < 4; i++) {
        tn_store_f32(bytes.data + LABEL, labels[i]);
        assert_refused(bytes.data, bytes.size);
    }
    memcpy(bytes.data, kept, bytes.size);
    for (uint32_t i = 0; i < 3; i++) {
        tn_store_f32(bytes.data + WEIGHT, weights[i]);
        assert_refused(bytes.data, bytes.size);
    }
    memcpy(bytes.data, kept, bytes.size);
    tn_store_u32(bytes.data + SOURCE, UINT32_MAX);
    assert_refused(bytes.data, bytes.size);
    assert_int_equal(tn_scored_read(&rows, kept, bytes.size, NULL), TN_OK);
}

/* Two tasks of these rows, drawn. */
static const tn_scores *with_tasks(const tn_scores *of, tn_batch *batch, tn_scores *out,
                                   tn_task_scores *score)
{
    static const tn_tasks two = {.n = 2,
                                 .task = {{.name = "click", .of = TN_NO_TASK}, {.name = "buy"}}};
    const uint64_t s = tn_stream2(99, TN_RNG_GENERATE, 0);
    const size_t n = of->batch->rows;
    tn_task_rows *is = TN_NEW_ARRAY(k.arena, tn_task_rows, 2);
    *score = (tn_task_scores){0};
    for (uint32_t t = 0; t < 2; t++) {
        float *value = TN_NEW_ARRAY(k.arena, float, 5 * n);
        for (size_t i = 0; i < n; i++) {
            value[i] = (float)tn_below(tn_draw(s, 8 * i + t), 2);
            value[n + i] = (float)tn_below(tn_draw(s, 8 * i + 2 + t), 3) / 2;
            value[2 * n + i] = value[n + i] * of->batch->weight[i];
            value[3 * n + i] = (float)i + (float)t / 4;
            value[4 * n + i] = (float)i + (float)t / 2;
        }
        is[t] = (tn_task_rows){.label = value, .factor = value + n, .weight = value + 2 * n};
        score->score[t] = value + 3 * n;
        score->given[t] = t == 1 ? value + 4 * n : NULL;
    }
    form.tasks = &two;
    *batch = *of->batch;
    batch->task = is;
    *out = *of;
    out->batch = batch;
    out->task = score;
    return out;
}

static void same_tasks(const tn_scores *got, const tn_scores *want, uint32_t from)
{
    for (uint32_t t = 0; t < 2; t++) {
        const size_t size = got->batch->rows * sizeof(float);
        const tn_task_rows *a = &got->batch->task[t];
        const tn_task_rows *b = &want->batch->task[t];
        assert_memory_equal(a->label, b->label + from, size);
        assert_memory_equal(a->factor, b->factor + from, size);
        assert_memory_equal(a->weight, b->weight + from, size);
        assert_memory_equal(got->task->score[t], want->task->score[t] + from, size);
    }
    assert_null(got->task->given[0]);
    assert_memory_equal(got->task->given[1], want->task->given[1] + from,
                        got->batch->rows * sizeof(float));
}

TEST(what_rows_are_to_each_task_comes_back)
{
    tn_batch batch;
    tn_scores scores;
    tn_task_scores score;
    const tn_scores *full = with_tasks(scoredkit_draw(&k, 91, ROWS), &batch, &scores, &score);
    add(full);
    assert_read(&rows, full);
    same_tasks(&rows.scores, full, 0);
    tn_scored_view view;
    tn_slot slot[64];
    tn_scored_view_of(&form, &rows.scores, 7, 30, slot, &view);
    same_tasks(&view.scores, full, 7);
}

TEST(labels_and_factors_of_tasks_that_no_reader_lets_pass_are_refused)
{
    enum { TASKS = 40, SECOND = TASKS + 16, FACTOR_AT = SECOND + 4 };
    static const float bad[] = {-1, NAN, 0x1p21F};
    tn_batch batch;
    tn_scores scores;
    tn_task_scores score;
    add(with_tasks(scoredkit_draw(&k, 91, 1), &batch, &scores, &score));
    for (uint32_t at = SECOND; at <= FACTOR_AT; at += 4) {
        const float kept = tn_load_f32(bytes.data + at);
        for (uint32_t i = 0; i < 3; i++) {
            tn_store_f32(bytes.data + at, bad[i]);
            assert_refused(bytes.data, bytes.size);
        }
        tn_store_f32(bytes.data + at, kept);
    }
    assert_int_equal(tn_scored_read(&rows, bytes.data, bytes.size, NULL), TN_OK);
}

TEST(any_bytes_are_safe)
{
    add(scoredkit_draw(&k, 97, 20));
    char *copy = TN_NEW_ARRAY(k.arena, char, bytes.size);
    const uint64_t s = tn_stream2(98, TN_RNG_GENERATE, 0);
    for (uint64_t i = 0; i < 3000; i++) {
        memcpy(copy, bytes.data, bytes.size);
        for (uint64_t n = 0; n < 3; n++) {
            copy[tn_below(tn_draw(s, 8 * i + n), bytes.size)] = (char)tn_draw(s, 8 * i + 4 + n);
        }
        tn_status status = tn_scored_read(&rows, copy, bytes.size, NULL);
        assert_true(status == TN_OK || status == TN_E_PEER);
    }
}

TEST(a_row_may_be_too_long)
{
    const tn_scores *one = scoredkit_draw(&k, 99, 1);
    tn_batch b = *one->batch;
    uint32_t offset[2] = {0, TN_SCORED_ROW_MAX};
    b.id_offset = offset;
    b.id_text = TN_NEW_ARRAY(k.arena, char, TN_SCORED_ROW_MAX);
    const tn_scores scores = {.batch = &b, .logit = one->logit};
    tn_error err = {0};
    assert_int_equal(tn_scored_add(&form, &scores, &bytes, &err), TN_E_LIMIT);
    assert_non_null(strstr(err.text, "16777216 at most"));
}
