/* test_advice.c - what a run says of itself at its end: when it is true, and nothing when not. */
#include "extra/advice/advice.h"

#include "base/core/text.h"
#include "metrics/metrics.h"
#include "support/test.h"
#include "train/eval/evaluate.h"

CLOSER(tn_metrics_free);

/* `rows` rows, of which one in `every` is a click; clicks were scored with the chance `click`, all
 * others with `none`. */
static tn_metrics *scored(uint32_t rows, uint32_t every, double click, double none)
{
    tn_metrics *m = NULL;
    assert_int_equal(tn_metrics_new(&m, &(tn_metrics_opts){0}, NULL), TN_OK);
    for (uint32_t i = 0; i < rows; i++) {
        const bool is_click = i % every == 0;
        const double p = is_click ? click : none;
        const float logit = (float)log(p / (1 - p));
        const float label = is_click ? 1 : 0;
        const tn_scored row = {.n = 1, .logit = &logit, .label = &label};
        assert_int_equal(tn_metrics_add(m, &row, NULL), TN_OK);
    }
    return m;
}

/* Losses of n steps that fall from 1 to `last` within the share `fallen` of them. */
static const tn_loss_curve *curve_of(uint32_t n, double last, double fallen)
{
    static tn_loss_curve c;
    c.n = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double noise = i % 2 == 0 ? 0.01 : -0.01;
        tn_loss_curve_add(&c, 1 - (1 - last) * fmin(1, i / (n * fallen)) + noise);
    }
    return &c;
}

static void check(const tn_advice *a, const char *words)
{
    tn_text lines CLEANUP(tn_text_done) = {0};
    tn_advice_text(a, &lines);
    assert_string_equal(tn_text_str(&lines), words);
}

#define BEGUN " in all: the model has hardly begun to learn; "

TEST(few_steps_are_a_beginning)
{
    const char words[] = "499 steps" BEGUN "a larger train.epochs (it is 1) or a smaller "
                         "train.batch (it is 256) would help\n";
    check(&(tn_advice){.steps = 499, .curve = curve_of(499, .5, 1), .epochs = 1, .batch = 256},
          words);
    check(&(tn_advice){.steps = 500, .epochs = 1, .batch = 256}, "");
    check(&(tn_advice){.steps = 0, .epochs = 0, .batch = 256}, "");
    check(&(tn_advice){.steps = 1, .epochs = 1, .batch = 1},
          "1 step" BEGUN "a larger train.epochs (it is 1) would help\n");
    /* more passes would make it worse, or were not wanted */
    check(&(tn_advice){.steps = 499,
                       .curve = curve_of(499, .5, 1),
                       .epochs = 1,
                       .batch = 256,
                       .stops = true,
                       .cut = true},
          "");
    check(&(tn_advice){.steps = 499,
                       .curve = curve_of(499, .5, 1),
                       .epochs = 1,
                       .batch = 256,
                       .past_best = true},
          "");
    check(
        &(tn_advice){
            .steps = 499, .curve = curve_of(499, .5, 1), .epochs = 1, .batch = 256, .stops = true},
        words);
}

/* The advice names settings that the user has made. Of those that data chose it names the passes
 * alone, where data.valid shows that the last was the best, or would have let the run choose
 * more. */
TEST(only_what_the_user_can_mend_is_named)
{
    tn_metrics *m FREED(tn_metrics_free) = scored(1000, 2, .6, .4);
    const struct {
        bool epochs_chosen, batch_chosen, stops, valid;
        const char *words;
    } rows[] = {
        {false, true, false, true, "a larger train.epochs (it is 20)"},
        {true, true, true, true, "a larger train.epochs (it is 20)"},
        {true, false, false, true, "a smaller train.batch (it is 256)"},
        {true, true, false, true, "more rows in data.train"},
        {true, true, false, false, "data.valid, which lets a run take as many passes as help,"},
        {true, false, false, false,
         "data.valid, which lets a run take as many passes as help, or a smaller train.batch (it "
         "is "
         "256)"},
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char line[200];
        (void)snprintf(line, sizeof line, "40 steps" BEGUN "%s would help\n", rows[i].words);
        check(&(tn_advice){.steps = 40,
                           .curve = curve_of(40, .5, 1),
                           .epochs = 20,
                           .batch = 256,
                           .epochs_chosen = rows[i].epochs_chosen,
                           .batch_chosen = rows[i].batch_chosen,
                           .stops = rows[i].stops,
                           .valid = rows[i].valid ? m : NULL},
              line);
    }
}

/* As long as losses fall, by more than chance. */
TEST(a_loss_that_falls_no_more_is_no_beginning)
{
    tn_advice a = {.steps = 400, .epochs = 1, .batch = 1};
    const char words[] = "400 steps" BEGUN "a larger train.epochs (it is 1) would help\n";
    a.curve = curve_of(400, .2, 1);
    check(&a, words);
    a.curve = curve_of(400, .2, .75); /* flat since */
    check(&a, "");
    a.curve = curve_of(400, .97, 1); /* it falls by what chance does */
    check(&a, "");
    a.curve = curve_of(400, .93, 1); /* by less than a hundredth in a tenth of the steps */
    check(&a, "");
    a.curve = curve_of(300, .2, 1);
    check(&a, words); /* a run that goes on says what is known of it */
    a.curve = curve_of(40, .2, 1);
    check(&a, "");
    a.curve = NULL;
    check(&a, "");
}

TEST(valid_that_rose_is_told_with_its_best_epoch)
{
    tn_metrics *m FREED(tn_metrics_free) = scored(1000, 2, .6, .4); /* logloss .5108 */
    tn_advice a = {.steps = 392, .epochs = 2, .batch = 256, .valid = m};
    a.curve = curve_of(392, .2, 1);
    a.best_step = 196;
    a.best_loss = .5;
    const char words[] = "valid.logloss was best at step 196, epoch 1 of 2: 0.5000, and is 0.5108 "
                         "now; 'train.stop.monitor=valid.logloss' keeps the best model\n";
    check(&a, words);
    a.past_best = true; /* it is kept */
    check(&a, "");
    a.past_best = false;
    a.best_loss = .5108;
    a.best_step = 392;
    check(&a, "392 steps" BEGUN "a larger train.epochs (it is 2) or a smaller train.batch (it is "
              "256) would help\n");
}

TEST(rows_of_one_class_are_told_and_nothing_else)
{
    tn_metrics *none FREED(tn_metrics_free) = scored(1000, 2000, .9, .1); /* but the first row */
    tn_metrics *all FREED(tn_metrics_free) = scored(1000, 1, .9, .1);
    tn_metrics *both FREED(tn_metrics_free) = scored(1000, 2, .6, .4);
    tn_advice a = {.steps = 10, .epochs = 1, .batch = 32, .train = all, .valid = both};
    check(&a, "data.train has no row without a click: there is nothing to learn from rows of one "
              "kind; is data.label right?\n");
    a.train = both;
    a.valid = all;
    check(&a, "data.valid has no row without a click: rows of one kind do not judge a model; is "
              "data.label right?\n");
    a.valid = none; /* one click is another class */
    tn_text lines CLEANUP(tn_text_done) = {0};
    tn_advice_text(&a, &lines);
    assert_null(strstr(tn_text_str(&lines), "no row"));
}

TEST(a_day_has_one_pass)
{
    check(&(tn_advice){.steps = 12, .epochs = 1, .batch = 1, .days = true},
          "12 steps" BEGUN "more days would help\n");
}

TEST(a_model_behind_the_click_rate_is_told)
{
    tn_metrics *wrong FREED(tn_metrics_free) = scored(1000, 2, .4, .6);
    tn_metrics *right FREED(tn_metrics_free) = scored(1000, 2, .6, .4);
    tn_advice a = {.steps = 1000, .epochs = 1, .batch = 32, .valid = wrong};
    check(&a, "valid.ne 1.322 is above 1: the click rate alone would predict better; smaller "
              "learning rates may help (train.optimizer.lr, train.sparse.lr)\n");
    tn_metrics *none = scored(1000, 2, .4, .4);
    tn_advice blind = {
        .steps = 1000, .epochs = 1, .batch = 32, .calibrates = true, .valid = none, .linear = true};
    check(&blind, "valid.ne 1.029 is above 1, and valid.auc 0.500 near that of chance: nothing "
                  "that holds for other rows was found; pairs of slots may tell what each alone "
                  "does not (model: fm or deepfm instead of lr), or other slots may tell more\n");
    blind.linear = false; /* it knows pairs */
    check(&blind, "valid.ne 1.029 is above 1, and valid.auc 0.500 near that of chance: nothing "
                  "that holds for other rows was found; larger first values (embedding.init), "
                  "another model or other slots may tell more\n");
    tn_metrics *rate = scored(1000, 2, .5, .5); /* a model that has learned no more says this */
    const tn_scored click = {.n = 1, .logit = &(float){.05F}, .label = &(float){1}};
    tn_error err;
    for (uint32_t i = 0; i < 10; i++) {
        assert_int_equal(tn_metrics_add(rate, &click, &err), TN_OK);
    }
    blind.valid = rate;
    check(&blind, "valid.auc 0.510 is near that of chance: nothing that holds for other rows was "
                  "found; larger first values (embedding.init), another model or other slots may "
                  "tell more\n");
    tn_metrics_free(rate);
    tn_metrics_free(none);
    a.steps = 0; /* nobody expects anything of weights without training */
    check(&a, "");
    a.steps = 1000;
    a.valid = right;
    check(&a, "");
}

/* The advice is silent then about a sum of chances, and about few steps. */
TEST(a_divergence_explains_the_rest)
{
    tn_metrics *wrong FREED(tn_metrics_free) = scored(10000, 2, .1, .6);
    tn_metrics *back FREED(tn_metrics_free) =
        scored(10000, 2, .6, .2); /* has found its way since */
    tn_advice a = {.steps = 100, .epochs = 1, .batch = 32, .valid = wrong, .diverged = true};
    const char far[] =
        "valid.ne 2.322 is far above 1: the run has diverged; smaller learning rates "
        "(train.optimizer.lr, train.sparse.lr) would help\n";
    check(&a, far);
    a.diverged = false; /* nobody has said so before */
    check(&a, far);
    a.ordered = true;
    check(&a, "valid.ne 2.322 is above 1: the rows that were learned last, all of one kind, weigh "
              "too much; mix the files, or hold back more rows (data.shuffle)\n");
    a.ordered = false;
    tn_text lines = {0};
    a.diverged = true;
    a.valid = back;
    a.curve = curve_of(100, .5, 1);
    tn_advice_text(&a, &lines);
    assert_non_null(strstr(tn_text_str(&lines), "100 steps in all"));
    assert_non_null(strstr(tn_text_str(&lines), "valid.copc 1.250"));
    tn_text_done(&lines);
    a.valid = NULL; /* nothing shows that it has */
    check(&a, "");
}

TEST(what_is_known_by_heart_is_told)
{
    tn_metrics *train FREED(tn_metrics_free) = scored(1000, 2, .70, .30);
    tn_metrics *near FREED(tn_metrics_free) = scored(1000, 2, .67, .33);
    tn_metrics *far FREED(tn_metrics_free) = scored(1000, 2, .65, .35);
    tn_metrics *rare FREED(tn_metrics_free) = scored(1000, 50, .05, .02);
    tn_advice a = {.steps = 1000, .epochs = 2, .batch = 32, .train = train, .valid = far};
    check(&a,
          "valid.logloss 0.4308 is far above that of train, 0.3567: the model knows its rows by "
          "heart; 'train.stop.monitor=valid.logloss' ends a run at its best\n");
    a.epochs = 1; /* each row was scored before it was learned */
    check(&a, "");
    a.epochs = 2;
    a.stops = true;
    check(&a, "");
    a.stops = false;
    a.steps = 100; /* more of them would not help */
    a.curve = curve_of(100, .5, 1);
    tn_text lines = {0};
    tn_advice_text(&a, &lines);
    assert_null(strstr(tn_text_str(&lines), "hardly begun"));
    assert_non_null(strstr(tn_text_str(&lines), "by heart"));
    tn_text_done(&lines);
    a.steps = 1000;
    a.valid = near; /* by 1.12 */
    check(&a, "");
    a.valid = NULL;
    check(&a, "");
    a.train = rare; /* another click rate is another loss */
    a.valid = far;
    check(&a, "");
    a.train = train;
    a.valid = rare; /* worse for its click rate, and yet a smaller loss */
    check(&a, "");
    tn_metrics *less FREED(tn_metrics_free) =
        scored(40, 4, .684, .316); /* likewise, and the loss hardly larger */
    a.valid = less;
    check(&a, "");
}

TEST(a_sum_of_chances_that_is_off_is_told)
{
    tn_metrics *few FREED(tn_metrics_free) = scored(10000, 5, .17, .17);
    tn_metrics *many FREED(tn_metrics_free) = scored(10000, 5, .25, .25);
    tn_metrics *near = scored(100000, 5, .193, .193);
    tn_metrics *chance = scored(200, 5, .17, .17);
    tn_metrics *lone = scored(10, 20, .01, .01); /* one click where .1 were predicted */
    tn_advice a = {.steps = 1000, .epochs = 1, .batch = 32, .valid = few};
    tn_text lines = {0};
    tn_advice_text(&a, &lines);
    assert_memory_equal(tn_text_str(&lines), "valid.ne", 8); /* one chance for all misses it */
    assert_string_equal(
        strchr(tn_text_str(&lines), '\n') + 1,
        "valid.copc 1.176: 2000 clicks where 1700 were predicted; 'eval.calibrate=platt' "
        "corrects that in tnet-eval and tnet-export: the same command with it fits "
        "the map\n");
    tn_text_clear(&lines);
    tn_metrics *none = scored(1000, 2000, .2, .1); /* one click where 100 were predicted */
    a.valid = none;
    tn_advice_text(&a, &lines);
    assert_non_null(strstr(tn_text_str(&lines), "valid.copc 0.010: 1 clicks where 100 were"));
    tn_metrics_free(none);
    tn_text_clear(&lines);
    a.valid = many;
    tn_advice_text(&a, &lines);
    assert_non_null(strstr(tn_text_str(&lines), "valid.copc 0.800: 2000 clicks where 2500 were"));
    tn_metrics *dozen = scored(1000, 10, .142, .142); /* 100 where 142 were */
    tn_metrics *silent[] = {near, chance, lone, dozen};
    for (uint32_t i = 0; i < 4; i++) {
        tn_text_clear(&lines);
        a.valid = silent[i];
        tn_advice_text(&a, &lines);
        assert_null(strstr(tn_text_str(&lines), "copc"));
    }
    tn_text_done(&lines);
    for (uint32_t i = 0; i < 4; i++) {
        tn_metrics_free(silent[i]);
    }
}

TEST(keys_that_were_never_met_are_told)
{
    const tn_unknown_keys many = {.values = 1000, .unknown = 101, .slot = "user", .share = 0.4};
    const tn_unknown_keys few = {.values = 1000, .unknown = 100, .slot = "user", .share = 0.4};
    const tn_unknown_keys none = {0};
    tn_advice a = {.steps = 1000, .epochs = 1, .batch = 32, .keys = &many};
    check(&a, "data.valid: 10 % of all keys were not met in training (slot 'user': 40 %) and add "
              "nothing to a score; coarser slots beside them (a category, a region) tell the model "
              "something of new ones\n");
    a.keys = &few;
    check(&a, "");
    a.keys = &none;
    check(&a, "");
}
