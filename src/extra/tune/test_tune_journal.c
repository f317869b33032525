/* test_tune_journal.c - results come back, cut lines do not. */
#include "extra/tune/tune_journal.h"

#include "base/core/arena.h"
#include "support/test.h"

enum { RESULTS = 8 };

typedef struct place {
    char dir[256];
    tn_arena *arena;
    tn_error err;
    uint32_t n;
    tn_tune_result seen[RESULTS];
} place;

SET_UP
{
    static place p;
    p = (place){.arena = tn_arena_new(1 << 12)};
    tn_tmpdir_make(p.dir);
    *state = &p;
}

TEAR_DOWN
{
    place *p = *state;
    tn_tmpdir_remove(p->dir);
    tn_arena_free(p->arena);
}

static tn_status see(void *arg, const tn_tune_result *r, tn_error *err)
{
    place *p = arg;
    (void)err;
    assert_in_range(p->n, 0, RESULTS - 1);
    p->seen[p->n++] = *r;
    return TN_OK;
}

static tn_tune_journal *open_journal(place *p, const char *head)
{
    tn_tune_journal *j = NULL;
    p->n = 0;
    const tn_tune_reader reader = {p->arena, see, p};
    if (tn_tune_journal_open(&j, p->dir, head, &reader, &p->err) != TN_OK) {
        assert_null(j);
    }
    return j;
}

static void add(place *p, tn_tune_journal *j, tn_tune_result r)
{
    assert_ok(tn_tune_journal_add(j, &r, &p->err), p->err.text);
}

static void add_two(place *p)
{
    static const char *const values[] = {"train.batch=7", "model.hidden=[8, 4]"};
    tn_tune_journal *j = open_journal(p, "{\"kind\":\"tune\"}");
    assert_non_null(j);
    add(p, j,
        (tn_tune_result){.trial = 3,
                         .rung = 1,
                         .step = 118,
                         .value = 0.1 + 0.2,
                         .ended = true,
                         .values = {2, values}});
    add(p, j, (tn_tune_result){.trial = 4, .value = (double)NAN, .failure = "it \"fell\"\nover"});
    tn_tune_journal_close(j);
}

/* Replaces the journal by its first bytes, all but `less` of them. */
static void cut(place *p, size_t less)
{
    PATH_IN(path, p->dir, "journal.jsonl");
    tn_text text CLEANUP(tn_text_done) = {0};
    assert_ok(tn_file_read_all(path, 1 << 20, &text, &p->err), p->err.text);
    assert_ok(tn_file_replace(path, text.data, text.size - less, &p->err), p->err.text);
}

TEST_ON(place *p, results_come_back_bit_by_bit)
{
    add_two(p);
    tn_tune_journal *j = open_journal(p, "{\"kind\":\"tune\"}");
    assert_int_equal(p->n, 2);
    assert_int_equal(p->seen[0].trial, 3);
    assert_int_equal(p->seen[0].rung, 1);
    assert_int_equal(p->seen[0].step, 118);
    assert_true(p->seen[0].ended && p->seen[0].failure == NULL);
    const double value = 0.1 + 0.2;
    assert_memory_equal(&p->seen[0].value, &value, sizeof value);
    assert_int_equal(p->seen[0].values.n, 2);
    assert_string_equal(p->seen[0].values.item[1], "model.hidden=[8, 4]");
    assert_true(isnan(p->seen[1].value) && !p->seen[1].ended);
    assert_string_equal(p->seen[1].failure, "it \"fell\"\nover");
    assert_int_equal(p->seen[1].values.n, 0);
    tn_tune_journal_close(j);
}

TEST_ON(place *p, a_line_that_was_cut_is_no_result_and_the_next_one_is_whole)
{
    for (size_t less = 1; less <= 40; less += 13) { /* 1: only the end of the line is missing */
        PATH_IN(path, p->dir, "journal.jsonl");
        assert_ok(tn_remove_file(path, &p->err), p->err.text);
        add_two(p);
        cut(p, less);
        const uint32_t whole = less == 1 ? 2 : 1;
        tn_tune_journal *j = open_journal(p, "{\"kind\":\"tune\"}");
        assert_int_equal(p->n, whole);
        add(p, j, (tn_tune_result){.trial = 5, .value = 1});
        tn_tune_journal_close(j);
        j = open_journal(p, "{\"kind\":\"tune\"}");
        assert_int_equal(p->n, whole + 1);
        assert_int_equal(p->seen[whole].trial, 5);
        tn_tune_journal_close(j);
    }
}

TEST_ON(place *p, a_journal_of_another_tuning_is_refused_and_stays)
{
    add_two(p);
    assert_null(open_journal(p, "{\"kind\":\"tune\",\"eta\":4}"));
    assert_int_equal(p->err.code, TN_E_CKPT);
    assert_non_null(strstr(p->err.text, "journal.jsonl' is of another configuration"));
    tn_tune_journal *j = open_journal(p, "{\"kind\":\"tune\"}");
    assert_int_equal(p->n, 2);
    tn_tune_journal_close(j);
}

TEST_ON(place *p, two_do_not_write_one_journal)
{
    tn_tune_journal *j = open_journal(p, "{}");
    assert_null(open_journal(p, "{}"));
    assert_int_equal(p->err.code, TN_E_CKPT);
    tn_tune_journal_close(j);
}
