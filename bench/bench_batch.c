/* bench_batch.c - P18, P19: what a step costs as batches and rows grow; one core.
 *
 *     bench_batch [--json] P18 CONFIG [SECONDS]           default 1 second a turn
 *     bench_batch [--json] P19 CONFIG .. [SECONDS]        configurations of ever more slots
 *
 *     P18    a step of one row: of logistic regression, which has no dense weights to speak of, so
 *            that all of it is overhead, and of the small net, which updates 50,000 of them; then
 *            rows per second at batch 128 beside 4096, and at 65,536
 *     P19    nanoseconds per value of whole steps of an FM, dim 8, beside the first configuration
 */
#include "base/core/number.h"
#include "base/thread/threads.h"
#include "figure.h"
#include "io/schema/schema.h"
#include "rig.h"
#include "train/step/model_plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TURNS = 7, WORD = 128, ROWS = 262144, CONFIGS_MAX = 8 };

static void load(const char *config, const char *const *model, uint32_t batch, tn_rig *rig)
{
    char rows[WORD];
    const char *set[4] = {"train.threads=1", rows, model[0], model[1]};
    (void)snprintf(rows, WORD, "train.batch=%u", batch);
    tn_rig_open(rig, config, model[1] != NULL ? 4 : 3, set);
    tn_rig_load(rig, ROWS / batch);
    (void)tn_rig_warm(rig);
}

static const char *const lr[] = {"model={type: lr}", NULL};
static const char *const small[] = {"model.hidden=[128, 64, 32]", NULL};
static const char *const big[] = {"model.hidden=[400, 400, 400]", NULL};

static void single_rows(const char *config, const char *const *model, const char *what,
                        double seconds, bool json)
{
    static tn_rig rig;
    static tn_samples us;
    us.n = 0;
    load(config, model, 1, &rig);
    for (int i = 0; i < TURNS; i++) {
        tn_sample(&us, 1e6 / tn_rig_turn(&rig, tn_rig_train_memory, seconds).rate);
    }
    tn_rig_close(&rig);
    tn_figure_print(&(tn_figure){.row = "P18",
                                 .what = what,
                                 .unit = "us",
                                 .is = tn_spread_of(&us),
                                 .target = 50,
                                 .at_most = true},
                    json);
}

static void batch_sizes(const char *config, const char *const *model, const char *net,
                        double seconds, bool json)
{
    enum { SIZES = 3 };
    static const uint32_t size[SIZES] = {4096, 128, 65536};
    static tn_rig rig[SIZES];
    static tn_samples rate[SIZES];
    char what[WORD];
    for (int k = 0; k < SIZES; k++) {
        rate[k].n = 0;
        load(config, model, size[k], &rig[k]);
    }
    for (int i = 0; i < TURNS; i++) {
        for (int k = 0; k < SIZES; k++) {
            tn_sample(&rate[k], 1e-3 * tn_rig_turn(&rig[k], tn_rig_train_memory, seconds).rate);
        }
    }
    for (int k = 0; k < SIZES; k++) {
        (void)snprintf(what, sizeof what, "%s, batch %u", net, size[k]);
        tn_rig_close(&rig[k]);
        tn_figure_print(&(tn_figure){.row = "P18",
                                     .what = what,
                                     .unit = "k rows/s",
                                     .is = tn_spread_of(&rate[k]),
                                     .yardstick = k > 0 ? tn_spread_of(&rate[0]).median : 0,
                                     .yardstick_is = "at batch 4096",
                                     .target = k > 0 ? .8 : (double)NAN,
                                     .aim = TN_AIM_YARDSTICK},
                        json);
    }
}

static void slots(int n, char *const *config, double seconds, bool json)
{
    static tn_rig rig[CONFIGS_MAX];
    static tn_samples ns[CONFIGS_MAX];
    static const char *const fm[] = {"model={type: fm}", "embedding.dim=8"};
    char what[WORD];
    for (int k = 0; k < n; k++) {
        load(config[k], fm, 1024, &rig[k]);
    }
    for (int i = 0; i < TURNS; i++) {
        for (int k = 0; k < n; k++) {
            double rows = tn_rig_turn(&rig[k], tn_rig_train_memory, seconds).rate;
            tn_sample(&ns[k], 1e9 / rows / rig[k].plan->schema->n_slots);
        }
    }
    for (int k = 0; k < n; k++) {
        (void)snprintf(what, sizeof what, "FM dim 8, %u slots: a value of a row",
                       rig[k].plan->schema->n_slots);
        tn_figure_print(&(tn_figure){.row = "P19",
                                     .what = what,
                                     .unit = "ns",
                                     .is = tn_spread_of(&ns[k]),
                                     .yardstick = k > 0 ? tn_spread_of(&ns[0]).median : 0,
                                     .yardstick_is = "with the fewest slots",
                                     .target = k > 0 ? 1.1 : (double)NAN,
                                     .aim = TN_AIM_YARDSTICK,
                                     .at_most = true},
                        json);
        tn_rig_close(&rig[k]);
    }
}

int main(int argc, char **argv)
{
    bool json = tn_json_wanted(&argc, argv);
    double seconds = 1;
    tn_flush_denormals();
    const char *last = argv[argc - 1];
    if (argc > 3 && tn_read_f64(last, strlen(last), &seconds) == TN_NUM_OK) {
        argc--;
    }
    if (argc > 2 && argc <= 2 + CONFIGS_MAX && strcmp(argv[1], "P19") == 0) {
        slots(argc - 2, argv + 2, seconds, json);
    } else if (argc == 3 && strcmp(argv[1], "P18") == 0) {
        single_rows(argv[2], lr, "a step of one row, logistic regression", seconds, json);
        single_rows(argv[2], small, "a step of one row, 128-64-32", seconds, json);
        batch_sizes(argv[2], small, "128-64-32", seconds, json);
        batch_sizes(argv[2], big, "400-400-400", seconds, json);
    } else {
        (void)fputs("usage: bench_batch [--json] P18 CONFIG [SECONDS]\n"
                    "       bench_batch [--json] P19 CONFIG .. [SECONDS]\n",
                    stderr);
        return 2;
    }
    return 0;
}
