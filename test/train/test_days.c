/* test_days.c - days, the paths of their files, and which of them are learned. */
#include "base/core/text.h"
#include "support/test.h"
#include "train/config/days.h"
#include "train/config/run.h"

static uint32_t day_of(const char *text)
{
    uint32_t day = 0;
    assert_true(tn_day_read(text, &day));
    return day;
}

/* Reads `n` words; what is read, or what is wrong, as text. */
static void assert_reads(const char *const *word, uint32_t n, const char *want)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    tn_text out CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    const uint32_t *day = NULL;
    uint32_t days = 0;
    const tn_strs words = {.n = n, .item = word};
    if (tn_days_read(&words, arena, &day, &days, &err) == TN_OK) {
        for (uint32_t i = 0; i < days; i++) {
            char text[TN_DAY_TEXT];
            tn_day_text(day[i], text);
            tn_text_addf(&out, "%s%s", i > 0 ? " " : "", text);
        }
    } else {
        assert_int_equal(err.code, TN_E_CONFIG);
        tn_text_adds(&out, err.text);
    }
    assert_string_equal(tn_text_str(&out), want);
}

#define READS(want, ...)                                                                           \
    assert_reads((const char *const[]){__VA_ARGS__},                                               \
                 sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *), want)

TEST(hours_are_an_hour_a_range_or_a_list)
{
    READS("2026-11-07T05", "2026-11-07T05");
    READS("2026-11-07T22 2026-11-07T23 2026-11-08T00", "2026-11-07T22..2026-11-08T00");
    READS("2026-11-07T00 2026-11-07T01 2026-11-09T23", "2026-11-07T00..T01", "2026-11-09T23");
    assert_int_equal(tn_day_of(TN_HOUR_MIN + 24 * 20764 + 23), 20764);
    assert_int_equal(tn_day_of(20764), 20764);
}

TEST(days_are_a_date_a_range_or_a_list)
{
    READS("2026-11-07", "2026-11-07");
    READS("2024-02-28 2024-02-29 2024-03-01", "2024-02-28..2024-03-01");
    READS("2026-12-31 2027-01-01 2027-01-05", "2026-12-31..2027-01-01", "2027-01-05");
}

#define HOUR ", nor an hour like 2026-11-07T05"

TEST(what_are_no_days_is_told)
{
    READS("'2026-11-31' of data.days is not a date like 2026-11-07" HOUR, "2026-11-31");
    READS("'today' of data.days is not a date like 2026-11-07" HOUR, "today");
    READS("'' of data.days is not a date like 2026-11-07" HOUR, "2026-11-01..");
    READS("'' of data.days is not a date like 2026-11-07" HOUR, "");
    READS("'2026-11-07x' of data.days is not a date like 2026-11-07" HOUR, "2026-11-07x");
    READS("data.days '2026-11-02..2026-11-01' ends before it begins", "2026-11-02..2026-11-01");
    READS("data.days go back: '2026-11-02' comes behind '2026-11-01..2026-11-02'",
          "2026-11-01..2026-11-02", "2026-11-02");
    READS("data.days are more than 100000 days", "1970-01-01..9999-12-31");
}

/* The paths of a day, a blank between them; "-": the pattern is refused. */
static void assert_paths(const char *pattern, const char *day, const char *want)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    tn_text out CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    const tn_strs patterns = {.n = 1, .item = &pattern};
    if (tn_days_check_pattern(pattern, &err) == TN_OK) {
        const tn_strs paths = tn_days_paths(&patterns, day_of(day), arena);
        for (uint32_t i = 0; i < paths.n; i++) {
            tn_text_addf(&out, "%s%s", i > 0 ? " " : "", paths.item[i]);
        }
    } else {
        assert_int_equal(err.code, TN_E_CONFIG);
        assert_non_null(strstr(err.text, pattern));
        tn_text_adds(&out, "-");
    }
    assert_string_equal(tn_text_str(&out), want);
}

TEST(a_day_stands_anywhere_in_a_path)
{
    assert_paths("logs/{day:%Y%m%d}/part-*", "2026-01-09", "logs/20260109/part-*");
    assert_paths("{day:%F}", "2026-01-09", "2026-01-09");
    assert_paths("a/{day:%y/%m}/b{day:%d}.tsv", "2026-11-30", "a/26/11/b30.tsv");
    assert_paths("{day:%Y-%j%%}", "2024-12-31", "2024-366%");
}

TEST(hours_are_24_paths)
{
    assert_paths("{day:%Y%m%d}/{hour:%H}", "2026-11-07",
                 "20261107/00 20261107/01 20261107/02 20261107/03 20261107/04 20261107/05 "
                 "20261107/06 20261107/07 20261107/08 20261107/09 20261107/10 20261107/11 "
                 "20261107/12 20261107/13 20261107/14 20261107/15 20261107/16 20261107/17 "
                 "20261107/18 20261107/19 20261107/20 20261107/21 20261107/22 20261107/23");
}

TEST(patterns_tell_days_apart)
{
    assert_paths("a/{day:%Y%m}", "2026-11-07", "-");
    assert_paths("a/{day:%m%d}", "2026-11-07", "-");
    assert_paths("a/{day:%Y%m%d}/{hour:%d}", "2026-11-07", "-");
    assert_paths("a/{day:%Y%m%d%H}", "2026-11-07", "-");
    assert_paths("a/{day:%Y%m%d%}", "2026-11-07", "-");
    assert_paths("a/{day:%Y%m%d", "2026-11-07", "-");
    assert_paths("a/{day}", "2026-11-07", "-");
    assert_paths("a/{day:}", "2026-11-07", "-");
    assert_paths("a/{day:%B}", "2026-11-07", "-");
    assert_false(tn_days_is_pattern("a/{1..3}/day:%Y"));
}

static void assert_learned(const tn_learned_days *s, const char *want)
{
    tn_text out CLEANUP(tn_text_done) = {0};
    tn_days_put(s, &out);
    assert_string_equal(tn_text_str(&out), want);
}

TEST(learned_days_join)
{
    tn_learned_days s = {0};
    static const char *const days[] = {"2026-11-03", "2026-11-01", "2026-11-05", "2026-11-04",
                                       "2026-11-02", "2026-12-02", "2026-11-05"};
    static const char *const want[] = {
        "day 2026-11-03 is learned",
        "days 2026-11-01, 2026-11-03 are learned",
        "days 2026-11-01, 2026-11-03, 2026-11-05 are learned",
        "days 2026-11-01, 2026-11-03..05 are learned",
        "days 2026-11-01..05 are learned",
        "days 2026-11-01..05, 2026-12-02 are learned",
        "days 2026-11-01..05, 2026-12-02 are learned",
    };
    assert_learned(&s, "no day is learned");
    for (uint32_t i = 0; i < sizeof days / sizeof days[0]; i++) {
        assert_int_equal(tn_days_add(&s, day_of(days[i]), NULL), TN_OK);
        assert_learned(&s, want[i]);
        assert_true(tn_days_has(&s, day_of(days[i])));
    }
    assert_false(tn_days_has(&s, day_of("2026-10-31")));
    assert_false(tn_days_has(&s, day_of("2026-11-06")));
    for (uint32_t d = day_of("2026-11-06"); d < day_of("2026-12-02"); d++) {
        assert_int_equal(tn_days_add(&s, d, NULL), TN_OK);
    }
    assert_learned(&s, "days 2026-11-01..2026-12-02 are learned");
}

TEST(gaps_have_a_limit)
{
    tn_learned_days s = {0};
    tn_error err = {0};
    for (uint32_t i = 0; i < TN_DAY_RANGES_MAX; i++) {
        assert_int_equal(tn_days_add(&s, 3 * i, &err), TN_OK);
    }
    assert_int_equal(tn_days_add(&s, 3 * TN_DAY_RANGES_MAX, &err), TN_E_LIMIT);
    assert_int_equal(s.n, TN_DAY_RANGES_MAX);
    assert_int_equal(tn_days_add(&s, 1, &err), TN_OK); /* touches one */
}

/* The day to judge by, behind these that are learned; 0: there is none. */
static uint32_t judged_by(const char *dir, const char *first, const char *last, const char *newest)
{
    char path[300];
    (void)snprintf(path, sizeof path, "%s/{day:%%Y%%m%%d}", dir);
    const char *const item = path;
    const uint32_t day[] = {day_of("2026-11-01"), day_of("2026-11-02"), day_of("2026-11-05")};
    const tn_data_opts data = {
        .pattern = {1, &item}, .day = day, .n_days = 3, .next = true, .valid_rows = 7};
    tn_learned_days learned = {.used = true, .n = first != NULL};
    if (first != NULL) {
        learned.range[0] = (tn_day_range){day_of(first), day_of(last)};
        learned.day = day_of(newest);
    }
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    tn_valid_rows rows;
    tn_error err = {0};
    const tn_status status = tn_valid_rows_find(&data, &learned, arena, &rows, &err);
    assert_true(status == TN_OK || status == TN_E_DATA);
    const uint32_t found = status == TN_OK ? rows.day : 0;
    assert_true(status != TN_OK || (rows.paths.n == 1 && rows.rows_max == 7));
    return found;
}

TEST(a_model_is_judged_by_the_day_behind_those_that_are_learned)
{
    char path[300];
    static const char *const there[] = {"20261101", "20261102", "20261105", "20261106"};
    TMPDIR(dir);
    for (uint32_t i = 0; i < 4; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, there[i]);
        assert_int_equal(tn_file_replace(path, "1\n", 2, NULL), TN_OK);
    }
    assert_int_equal(judged_by(dir, NULL, NULL, NULL), 0);
    assert_int_equal(judged_by(dir, "2026-11-01", "2026-11-01", "2026-11-01"),
                     day_of("2026-11-02"));
    assert_int_equal(judged_by(dir, "2026-11-01", "2026-11-02", "2026-11-02"),
                     day_of("2026-11-05")); /* data.days names it */
    assert_int_equal(judged_by(dir, "2026-11-01", "2026-11-05", "2026-11-05"),
                     day_of("2026-11-06")); /* the calendar */
    assert_int_equal(judged_by(dir, "2026-11-01", "2026-11-06", "2026-11-06"), 0);
    /* A day that was learned once more has one behind it that is learned, too. */
    assert_int_equal(judged_by(dir, "2026-11-01", "2026-11-05", "2026-11-01"), 0);
}
