/* trainrun.h - whole runs of test/golden/deepfm_bn.yaml, with shuffling and dropout, and what
 * became of them. 24 steps in three epochs.
 */
#pragma once

#include "base/core/text.h"

#include <stdatomic.h>

typedef struct tn_saved tn_saved;
struct tn_profile;

typedef struct trainrun {
    tn_status status;
    uint32_t hash; /* of the newest checkpoint, model_hash; 0: none that loads */
    char text[1500];
    bool has_valid, has_test; /* evaluations that it ended with */
} trainrun;

/* Trains into `dir` with overrides that end in NULL (or are NULL). `stop` may be NULL. */
trainrun trainrun_do(const char *dir, const char *const *more, const atomic_bool *stop);

/* The same without `stop`, recorded. */
trainrun trainrun_record(const char *dir, const char *const *more, struct tn_profile *profile);

/* The same with a bar off the terminal; what people were shown is appended to `shown`, a line each.
 */
trainrun trainrun_show(const char *dir, const char *const *more, tn_text *shown);

/* The same in a folder of its own; must succeed. */
uint32_t trainrun_hash(const char *const *more);

/* Runs from now on tell `line` of what they show; NULL: nobody. */
typedef void trainrun_line(void *arg, const char *text);
void trainrun_watch(trainrun_line *line, void *arg);

/* The hash of what checkpoint `n` of `dir` loads to; 0: it does not load. `more`: an option that
 * the run had. */
uint32_t trainrun_hash_of(const char *dir, uint64_t n, tn_saved *which);
uint32_t trainrun_hash_with(const char *dir, uint64_t n, const char *more, tn_saved *which);

/* Makes a byte in the middle of its shard file a wrong one. */
void trainrun_damage(const char *dir, uint64_t n);
