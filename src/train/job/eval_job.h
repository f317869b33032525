/* eval_job.h - evaluates a model: chooses model and data, scores the rows, and makes of the scores
 * all that is asked for.
 *
 *     TN_TRY(tn_eval_job_new(&job, &setup, &opts, err));   refuses what cannot be, before any work
 *     TN_TRY(tn_eval_job_run(job, NULL, err));
 *     .. tn_eval_job_result(job) ..                        metrics, slices, intervals, comparison
 *     tn_eval_job_free(job);
 *
 * The setup is loaded with `reads`, and knows its rank (train/group/ranks.h); the job makes its
 * plan. In a group every rank runs the same job: rank 0 has the result and writes the files, the
 * others score their parts and have no result. Files appear when all of them are complete; after a
 * failure there are none. One thread.
 */
#pragma once

#include "train/job/setup.h"
#include "train/report/eval_result.h"

typedef struct tn_profile tn_profile; /* train/report/profile.h */

/* Receives every score; `shift` is to be added to a logit, for sampled negatives. */
typedef tn_status tn_eval_job_sink(void *arg, const tn_scores *scores, double shift, tn_error *err);

/* Everything is lent until the job is freed. */
typedef struct tn_eval_job_opts {
    const char *export;         /* the folder of an export; NULL: a checkpoint is evaluated */
    tn_strs data;               /* files; none: data.days, else data.test, else data.valid */
    const char *predictions;    /* file or URI for every score; NULL: none */
    tn_strs fetch;              /* names of nodes, also several in one item, with commas */
    const char *fetch_file;     /* the file that gets their values */
    tn_strs feed;               /* "NODE=FILE.npz": nodes whose values come from files */
    tn_calibrate_method method; /* how to fit a calibration; NONE: nothing is fitted */
    const char *calibration;    /* the file that gets the calibration */
    tn_eval_job_sink *sink;     /* gets every score; NULL: nobody wants them */
    void *sink_arg;
    uint32_t repeats;        /* how often each slot is dealt for its importance; 0: not at all */
    const char *compare;     /* another model, or a file of its predictions; NULL: none */
    const char *const *env;  /* for the configuration of a checkpoint to compare with */
    const atomic_bool *stop; /* true: end with TN_E_STOPPED */
} tn_eval_job_opts;

typedef struct tn_eval_job tn_eval_job;

/* TN_E_CONFIG, TN_E_USAGE: options that do not go together, or not with a group. TN_E_DATA: a day
 * that is to be evaluated is not there; TN_E_USAGE: a calibration on rows that were learned. */
tn_status tn_eval_job_new(tn_eval_job **out, tn_setup *s, const tn_eval_job_opts *opts,
                          tn_error *err) TN_MUST_USE;

/* Refuses outputs that cannot be written, or would replace an input; `more`: names of further ones,
 * some of them NULL. Fills the setup's inputs. TN_E_USAGE, TN_E_IO. */
tn_status tn_eval_job_check_outputs(tn_eval_job *j, const char *const *more, uint32_t n,
                                    tn_error *err) TN_MUST_USE;

/* `profile` gets the times of a checkpoint's evaluation; NULL: nobody wants them. TN_E_DATA: the
 * data hold no records; errors of the model's files, of outputs, of the group. */
tn_status tn_eval_job_run(tn_eval_job *j, tn_profile *profile, tn_error *err) TN_MUST_USE;

/* Returns the findings of rank 0 after a run that did not fail; they live as long as the job. */
tn_eval_result *tn_eval_job_result(tn_eval_job *j);

void tn_eval_job_free(tn_eval_job *j); /* NULL is fine */
