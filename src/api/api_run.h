/* api_run.h - the run of tnet_train.h, and how a function of that header works on it.
 *
 * Each function makes a setup anew of the run's configuration and overrides, as a program does of
 * its command line, works, and drops it: nothing but files is left between two of them.
 */
#pragma once

#include "api/tnet_train.h"
#include "base/core/embedder.h"
#include "base/core/spare.h"
#include "base/file/file.h"
#include "io/arrow/arrow_stream.h"
#include "train/job/setup.h"

#include <sys/types.h>

/* Streams: TNET_TRAIN .. TNET_TEST, and that of one call. */
enum { TN_API_STREAMS = 4, TN_API_OWN_STREAM = 3 };

struct tnet_run {
    pid_t pid; /* the process that made it */
    char *config, *path;
    bool is_folder; /* `path` is that of a run or of a checkpoint */
    bool in_memory; /* no data.format is written: all rows are in memory */
    bool awaits;    /* nor is data.train: tnet_run_data gives it */
    char **override;
    size_t n_overrides;
    tnet_hooks hooks;
    tnet_stream given[TN_API_STREAMS]; /* open NULL: none */
    tn_arrow_source *source[TN_API_STREAMS];
    tn_producers producers;
    tn_spare *spare; /* for small things when memory has run out; see SPARE_BYTES */
    tn_embedder embedder;
    atomic_bool stop;  /* the present call is to end */
    atomic_bool saves; /* training is to save a checkpoint, and go on */
    atomic_bool ends;  /* a hook wants training to end */
    char dir[TN_PATH_SIZE];
    bool owns_dir; /* made for this run, and removed with it */
};

/* The work of a call; see tn_api_call. */
typedef struct tn_api_job {
    /* Works on a setup that is loaded. */
    tn_status (*work)(tnet_run *run, tn_setup *s, void *arg, tn_error *err);
    void *arg;
    bool reads;               /* it reads a checkpoint: see tn_setup.reads */
    bool checks;              /* it looks at the configuration alone: rows may be given later */
    const tnet_stream *rows;  /* rows of this call alone, at the path TN_API_ROWS; NULL: none */
    const char *const *extra; /* further overrides; NULL-terminated, or NULL */
} tn_api_job;

#define TN_API_ROWS TN_PRODUCER_PREFIX "rows"

/* Does a job for the caller: checks the process, enters the embedder, sets the floating-point mode,
 * loads the setup, works, and undoes all that. Returns the code for the caller. */
int tn_api_call(tnet_run *run, const tn_api_job *job, tnet_error *err);

/* Fills the caller's error, which may be NULL, from a failure; returns its code. */
int tn_api_fail(tnet_error *out, const tn_error *err);
int tn_api_refuse(tnet_error *out, tn_status status, const char *what); /* by a sentence */
