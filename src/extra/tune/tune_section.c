/* tune_section.c - section `tune` of a configuration, which all programs read and check. */
#include "config/field.h"
#include "extra/tune/tune_private.h"

const char *const tn_tune_methods[] = {"halving", "random", "grid", NULL};
static const char *const auto_word[] = {"auto", NULL};

const tn_field tn_section_tune[] = {
    TN_FIELD_TREE_ONE(
        tn_tune_section, space, "~",
        "options and the values to try: {KEY: [list], KEY: {log: [low, high]}, {range: "
        "..}, {int: .., log: true}}; ~: rate, batch and sizes"),
    TN_FIELD_STR(tn_tune_section, goal, "~",
                 "valid.<metric> or valid.<task>.<metric> that is to be best; ~: as train.stop, "
                 "else valid.auc, or the metric of the loss"),
    TN_FIELD_CHOICE(tn_tune_section, method, "halving", tn_tune_methods,
                    "all begin and the best go on; all are whole; every combination of lists"),
    TN_FIELD_U32(tn_tune_section, trials, "27", 1, TN_TRIALS_MAX, "trials",
                 "that begin; the first is the configuration as it is; of grid at most"),
    TN_FIELD_U32(tn_tune_section, eta, "3", 2, 100, "",
                 "one of so many goes on, to as many times the rows"),
    TN_FIELD_U64(tn_tune_section, rows, "~", 1, 0x1p53, "rows",
                 "of a whole run, for the shares of halving; ~: counted or estimated"),
    TN_FIELD_DURATION(tn_tune_section, time, "~", 0, 1e9, "no trial goes on after"),
    TN_FIELD_U32W(tn_tune_section, parallel, "auto", 1, TN_PROGRAMS_MAX, "trials", auto_word,
                  "at once, which share the processors; auto: one on each"),
    TN_FIELD_END_OF(tn_tune_section),
};
