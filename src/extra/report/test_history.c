/* test_history.c - the curves of training are those of metrics.jsonl. */
#include "extra/report/history.h"

#include "support/test.h"

/* The member of a file that holds `lines`; NULL: there is no file. Returns when the model was
 * trained. */
static double member_of(const char *lines, uint64_t step, tn_text *out)
{
    TMPDIR(dir);
    PATH_IN(path, dir, "metrics.jsonl");
    if (lines != NULL) {
        assert_int_equal(tn_file_replace(path, lines, strlen(lines), NULL), TN_OK);
    }
    double when = 0;
    assert_int_equal(tn_history_json(path, step, out, &when, NULL), TN_OK);
    return when;
}

static void assert_has(const tn_text *page, const char *text)
{
    assert_says(tn_text_str(page), text);
}

TEST(curves_have_the_records_values)
{
    tn_text page CLEANUP(tn_text_done) = {0};
    (void)member_of("{\"kind\":\"start\",\"step\":0,\"resumed_from\":null}\n"
                    "{\"kind\":\"train\",\"step\":0,\"loss\":1,\"auc\":null,\"lr\":0.5}\n"
                    "{\"kind\":\"train\",\"step\":50,\"loss\":3,\"auc\":null,\"lr\":0.5}\n"
                    "{\"kind\":\"eval\",\"step\":50,\"data\":\"valid\",\"loss\":2}\n"
                    "{\"kind\":\"train\",\"step\":100,\"loss\":2,\"auc\":null,\"lr\":0.5}\n"
                    "{\"kind\":\"eval\",\"step\":100,\"data\":\"test\",\"loss\":9}\n"
                    "{\"kind\":\"eval\",\"step\":100,\"data\":\"day 2026-11-08\",\"loss\":1}\n",
                    100, &page);
    assert_has(&page, "3 records of training, 2 evaluations.");
    assert_has(&page, "\"last\":100,\"marks\":[{\"class\":\"ideal\",\"x\":100,");
    assert_has(&page, "{\"title\":\"loss\",\"train\":[[0,1],[50,3],[100,2]],"
                      "\"valid\":[[50,2],[100,1]]}");
    assert_has(&page, "{\"title\":\"learning rate\",\"train\":[[0,0.5],[50,0.5],[100,0.5]],");
    assert_has(&page, "{\"title\":\"AUC\",\"train\":[],\"valid\":[]}"); /* nothing to draw */
    assert_null(strstr(tn_text_str(&page), "esumed"));
}

TEST(a_resumed_run_replaces_what_was_behind_its_checkpoint)
{
    tn_text page CLEANUP(tn_text_done) = {0};
    (void)member_of("{\"kind\":\"train\",\"step\":0,\"loss\":1}\n"
                    "{\"kind\":\"train\",\"step\":80,\"loss\":9}\n"
                    "{\"kind\":\"eval\",\"step\":80,\"data\":\"valid\",\"loss\":9}\n"
                    "{\"kind\":\"tra\n"
                    "{\"kind\":\"start\",\"step\":50,\"resumed_from\":\"ckpt-7\"}\n"
                    "{\"kind\":\"train\",\"step\":100,\"loss\":2}\n",
                    50, &page);
    assert_has(&page, "2 records of training, 0 evaluations.");
    assert_has(&page, "Resumed from ckpt-7 at step 50.");
    assert_has(&page, "1 lines are no records.");
    assert_has(&page,
               "{\"class\":\"resumed\",\"x\":50,\"tip\":\"resumed from ckpt-7 at step 50\"}");
    assert_has(&page, "{\"title\":\"loss\",\"train\":[[0,1],[100,2]],\"valid\":[]}");
}

TEST(a_model_is_as_old_as_the_record_of_its_step)
{
    static const char lines[] = "{\"kind\":\"train\",\"step\":10,\"t\":1700000000.5}\n"
                                "{\"kind\":\"train\",\"step\":20,\"t\":1700000100}\n"
                                "{\"kind\":\"train\",\"step\":30}\n";
    tn_text page CLEANUP(tn_text_done) = {0};
    assert_true(isnan(member_of(lines, 9, &page)));
    assert_true(member_of(lines, 10, &page) == 1700000000.5);
    assert_true(member_of(lines, 25, &page) == 1700000100);
    assert_true(isnan(member_of(lines, 30, &page)));
}

/* A spike of one record among 100,000 is drawn, in a page that does not grow with them. */
TEST(what_stands_out_is_kept_of_many_records)
{
    tn_text lines CLEANUP(tn_text_done) = {0};
    tn_text page CLEANUP(tn_text_done) = {0};
    for (uint32_t i = 0; i < 100000; i++) {
        tn_text_addf(&lines, "{\"kind\":\"train\",\"step\":%u,\"loss\":%s}\n", i,
                     i == 33333   ? "5"
                     : i == 66666 ? "0"
                     : i % 2 == 0 ? "1"
                                  : "1.5");
    }
    (void)member_of(tn_text_str(&lines), 5, &page);
    assert_has(&page, "100000 records of training");
    assert_has(&page, "[33333,5]");
    assert_has(&page, "[66666,0]");
    assert_in_range(page.size, 4000, 16000);
}

TEST(what_is_not_there_is_said)
{
    tn_text page CLEANUP(tn_text_done) = {0};
    (void)member_of(NULL, 5, &page);
    assert_has(&page, "metrics.jsonl is not there");
    tn_text_clear(&page);
    double when = 0;
    assert_int_equal(tn_history_json(NULL, 5, &page, &when, NULL), TN_OK);
    assert_true(isnan(when));
    assert_has(&page, "No history: an export");
    tn_text_clear(&page);
    (void)member_of("", 5, &page);
    assert_has(&page, "0 records of training");
}
