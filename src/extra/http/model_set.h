/* model_set.h - the models that are served, by name, and their versions, which change under load.
 *
 *     ads   exports/ads        a folder: LATEST names the version, or PIN where that file is there
 *     news  exports/news/99a0  an export: this version for ever
 *
 *     version = tn_model_set_take(set, name, version);        any worker, for one request
 *     ... score ...
 *     tn_model_set_give(set, version);
 *
 * One thread, the watcher, opens and verifies what a folder names; then the new version takes the
 * place of the old one between two requests. Who took the old one goes on with it, and the watcher
 * closes it when the last request has given it back. What cannot be opened, fails its checksums or
 * is judged badly stays out: the old version serves on, a line in the log and a counter say why,
 * and it is tried again when the folder names another version, or after a minute.
 */
#pragma once

#include "base/core/error.h"
#include "config/values.h"
#include "extra/http/served_model.h"

#include <stdbool.h>
#include <stdint.h>

enum { TN_MODELS_MAX = 256, TN_MODEL_NAME_MAX = 128 };

typedef struct tn_model_set tn_model_set;

typedef struct tn_model_set_opts {
    tn_strs paths; /* exports, or folders of exports */
    tn_strs names; /* names of the first ones; others are called as their folder */
    tn_served_opts served;
    double poll_s; /* how often folders are looked at, beside inotify */
} tn_model_set_opts;

/* Opens all models. On failure *out is NULL: TN_E_USAGE for names that are no words of letters,
 * digits, '.', '_' and '-', or come twice; else as tn_served_open. */
tn_status tn_model_set_open(tn_model_set **out, const tn_model_set_opts *opts,
                            tn_error *err) TN_MUST_USE;
/* Ends the watcher and closes all versions, which must have been given back. NULL is fine. */
void tn_model_set_close(tn_model_set *set);

/* Has the watcher look at all folders now, also at what it has refused. Any thread. */
void tn_model_set_look(tn_model_set *set);

/* A version in use. */
typedef struct tn_model_version {
    tn_served *served;
    uint32_t model; /* its number, in the order of the paths */
    uint32_t in_use;
    double since_s; /* tn_wall_s when it was published */
} tn_model_version;

/* Judges a version that would take the place of another: a failure keeps it out. */
typedef tn_status tn_judge_fn(void *arg, tn_model_version *fresh, tn_error *err);

/* Begins to watch the folders; the watcher has each new version judged. */
tn_status tn_model_set_watch(tn_model_set *set, tn_judge_fn *judge, void *arg,
                             tn_error *err) TN_MUST_USE;

/* Takes the version of a model that is published now; name of size 0: the first model. Any thread.
 * NULL: there is no such model, or `version` is none of its ids, nor at least 8 digits with which
 * one begins; *found says which. */
tn_model_version *tn_model_set_take(tn_model_set *set, tn_bytes name, tn_bytes version,
                                    bool *found);
void tn_model_set_give(tn_model_set *set, tn_model_version *v);

uint32_t tn_model_set_count(const tn_model_set *set);
const char *tn_model_set_name(const tn_model_set *set, uint32_t at);

/* Counts of a model's changes of version. */
typedef struct tn_swap_counts {
    uint64_t done, failed;
} tn_swap_counts;
tn_swap_counts tn_model_set_swaps(tn_model_set *set, uint32_t at);
