/* tnet_train.h - libtnet-train: configure, train, evaluate and export models from a program in C,
 * C++ or anything that calls C.
 *
 *     tnet_error err;
 *     tnet_run *run;
 *     const tnet_run_opts opts = {.size = sizeof opts, .config = "slots: [user, item]\n"
 *                                                                "model: deepfm\n"};
 *     if (tnet_run_new(&opts, &run, &err) ||
 *         tnet_run_data(run, TNET_TRAIN, &train, &err) ||        Arrow streams; or data.train names
 *         tnet_run_data(run, TNET_VALID, &valid, &err) ||        files
 *         tnet_run_train(run, &err) || tnet_run_export(run, "export", id, &err))
 *         complain(err.text);
 *     tnet_run_free(run);
 *
 * A run learns, writes and says the same as tnet-train with this configuration, data and seed, bit
 * for bit: the programs call the same functions. Words of configurations: docs/config.md.
 *
 * The model. A run has a folder, run.dir, where its checkpoints, metrics.jsonl and summary.json
 * are. When the configuration names none it is a folder below $TMPDIR, else /tmp, which
 * tnet_run_free removes; tnet_run_save copies the model out of it. tnet_run_train goes on from the
 * folder's newest checkpoint as tnet-train does: called again it finds all epochs learned, unless
 * train.epochs has grown or data.days names another day (tnet_run_set).
 *
 * Data. Files are named by the configuration. Rows in memory come by tnet_run_data as Arrow
 * streams, whose columns are found by their names, and mean what a CSV file of them would mean: the
 * model is the same. Files and streams may be used side by side, as data.train and data.valid;
 * data.format is that of the files, and need not be written where there are none. Types:
 * io/arrow/arrow_cells.h and docs/python.md.
 *
 * Hooks. They are called by the thread that is inside of a function of the run, but for `line`,
 * which may come from any thread of the run, also from two at once. Texts are lent for the call. A
 * hook must not call functions of its run but tnet_run_stop and tnet_run_checkpoint.
 *
 * Process. It is the host's. The library does none of this: print, end it (but see Memory), handle
 * or send signals, change the locale, limits, environment, working directory or options of malloc,
 * pin threads, or keep a thread running when a function has returned. It sets the calling thread's
 * floating-point mode to flush denormals for the length of a call.
 *
 * Errors. Functions return 0 (TNET_OK) or a code, those of the programs' exit codes, and then fill
 * *err, which may be NULL, with one sentence and its hints, as a program prints them. Faults of a
 * configuration are all in one text, a line each. After a failure the run may be used on: what was
 * learned before is in its folder.
 *
 * Threads. A run belongs to one thread at a time; several runs may work side by side in one
 * process. tnet_run_stop may be called from any thread and from signal handlers, and so may
 * tnet_run_checkpoint. A run that has been forked is of no use to the child: every function but
 * tnet_run_free is TNET_E_USAGE there, and that one frees memory alone.
 *
 * Memory. Where the system refuses memory a function returns TNET_E_MEMORY with what it was for,
 * and the run may be used on: rows, blocks of Arrow, tables, results. A few things without which no
 * error could be handed on (the tree of a configuration, names of files, lists of slots) then come
 * from 16 MiB of address space, which each run keeps for this and touches in no other case. Only
 * where a single call takes more than these after the refusal, as may a configuration of tens of
 * megabytes, does the process end, with code 7 and a line on stderr.
 *
 * Limits. One process: clusters are for the programs (cluster.peers is refused).
 */
#ifndef TNET_TRAIN_H
#define TNET_TRAIN_H

#include "tnet.h" /* installed beside this header; src/serve in the tree */

#ifdef __cplusplus
extern "C" {
#endif

enum { TNET_TRAIN_ABI = 1 };

/* Codes beyond those of tnet.h. */
enum {
    TNET_E_CONFIG = 3,   /* the configuration is wrong, or is not that of the model */
    TNET_E_STOPPED = 75, /* tnet_run_stop was called, or a hook asked for it; the model is kept */
};

struct ArrowArrayStream; /* https://arrow.apache.org/docs/format/CStreamInterface.html */

typedef struct tnet_run tnet_run;

/* Members that are added later come at the end: `size` says which the caller knows. */
typedef struct tnet_progress {
    size_t size;
    uint64_t steps, rows;
    double epochs;  /* learned so far, 1.5: half of the second */
    double done;    /* share of the run, 0 to 1; NAN: not known */
    double seconds; /* since training began */
    double loss;    /* mean of the last window */
} tnet_progress;

typedef struct tnet_value {
    const char *data, *metric; /* "valid", "auc" */
    double value;
} tnet_value;

typedef struct tnet_hooks {
    size_t size;
    void *arg;
    /* A line for people, as a program prints it. level 0: an error, 1: a warning, 2: what happens;
     * transient: a progress line, which the next one replaces. */
    void (*line)(void *arg, int level, const char *text, int transient);
    /* Each line of metrics.jsonl, one JSON object of n bytes. */
    void (*record)(void *arg, const char *json, size_t n);
    /* After steps, at most ten times a second. Other than 0: the run stops, as by tnet_run_stop. */
    int (*progress)(void *arg, const tnet_progress *p);
    /* After each evaluation of data.valid. Other than 0: training ends here as by early stopping.
     * */
    int (*evaluated)(void *arg, uint64_t step, const tnet_value *values, size_t n);
    /* A metric of the caller's own, of the rows of data.valid, which `evaluated` then has by the
     * name "custom": labels, probabilities (of a model that predicts no clicks the scores), and
     * weights or NULL. */
    double (*metric)(void *arg, const float *label, const float *p, const float *weight, size_t n);
} tnet_hooks;

typedef struct tnet_run_opts {
    size_t size;
    const char *config;           /* YAML; NULL: `path` alone */
    const char *path;             /* a file of YAML; with `config`: names it in messages, and
                                     includes are found beside it. Of tnet_run_open: a
                                     folder. May be NULL */
    const char *const *overrides; /* "train.epochs=2"; win over the configuration */
    size_t n_overrides;
    const tnet_hooks *hooks; /* copied; NULL: none */
} tnet_run_opts;

/* Returns TNET_TRAIN_ABI of the library that runs: programs that were compiled with another one do
 * not fit it. */
TNET_API int tnet_train_abi(void);

/* Reads and checks the configuration. TNET_E_CONFIG: all that is wrong with it. */
TNET_API int tnet_run_new(const tnet_run_opts *opts, tnet_run **out, tnet_error *err);

/* The same of a run that is there: opts->path is its folder, or that of a checkpoint, whose
 * configuration it has. */
TNET_API int tnet_run_open(const tnet_run_opts *opts, tnet_run **out, tnet_error *err);

TNET_API void tnet_run_free(tnet_run *run); /* NULL is fine */

/* Changes an option for the calls that follow: "train.epochs=3". */
TNET_API int tnet_run_set(tnet_run *run, const char *override, tnet_error *err);

enum { TNET_TRAIN, TNET_VALID, TNET_TEST };

/* Rows in memory. `open` fills *out with a stream that begins at the first row; it is asked once
 * for each pass over the data, and every time must bring the same rows in the same order. 0, or
 * another number: there is none, and `why`, of 512 bytes, has the reason. The stream is moved: the
 * run releases it, on the thread that reads, which is another one than the caller's. */
typedef struct tnet_stream {
    size_t size;
    int (*open)(void *arg, struct ArrowArrayStream *out, char *why);
    void *arg;
    int once; /* other than 0: `open` may be called once; rows are kept in a file for more passes */
} tnet_stream;

/* Gives data.train, data.valid or data.test to the run, whose stream is copied; NULL takes it
 * away. */
TNET_API int tnet_run_data(tnet_run *run, int which, const tnet_stream *stream, tnet_error *err);

/* Trains until the run is over. TNET_E_STOPPED: it was stopped, and is saved. */
TNET_API int tnet_run_train(tnet_run *run, tnet_error *err);

/* The same, begun as tnet-train does by its words --resume, --fresh and --again. TNET_E_USAGE: they
 * do not go together. */
enum {
    TNET_RESUME = 1, /* go on from the newest checkpoint, which must exist */
    TNET_FRESH = 2,  /* begin anew; what is there is kept in the folder earlier-<n> */
    TNET_AGAIN = 4,  /* learn the day of data.days although it is learned */
};
TNET_API int tnet_run_train_as(tnet_run *run, unsigned how, tnet_error *err);

/* Has training save a checkpoint after the present step, and go on, as SIGUSR1 does of tnet-train;
 * from any thread, also from a signal handler. */
TNET_API void tnet_run_checkpoint(tnet_run *run);

/* Has the function that the run is in, or else the next one, end soon with TNET_E_STOPPED; the one
 * after it works again. */
TNET_API void tnet_run_stop(tnet_run *run);

/* Judges the newest checkpoint by `stream`, or, where that is NULL, by data.test, else data.valid.
 * *json: what `tnet-eval --json` prints; free it by tnet_text_free. */
TNET_API int tnet_run_evaluate(tnet_run *run, const tnet_stream *stream, char **json,
                               tnet_error *err);

/* Measures the worth of each slot to the newest checkpoint: deals its values among the rows at
 * random, `repeats` times (1 to 100), and judges the scores. *json: as above, and
 * "importance":[{"slot":"user","auc":0.12,"logloss":0.03},..] has the loss of each metric. */
TNET_API int tnet_run_importance(tnet_run *run, const tnet_stream *stream, int repeats, char **json,
                                 tnet_error *err);

/* Scores rows by the newest checkpoint, in their order, a block at a time: logits and
 * probabilities, calibrated where the run is; of a model that predicts no clicks both are the
 * score. Other than 0 from `take` ends it with TNET_E_STOPPED. Labels, weights and
 * groups are not needed. */
typedef int tnet_take_scores(void *arg, const float *logits, const float *clicks, size_t n);
TNET_API int tnet_run_predict(tnet_run *run, const tnet_stream *stream, tnet_take_scores *take,
                              void *arg, tnet_error *err);

/* The same of one of several tasks, by its name; NULL: of the first, as above. TNET_E_USAGE: there
 * is no such task. */
TNET_API int tnet_run_predict_task(tnet_run *run, const tnet_stream *stream, const char *task,
                                   tnet_take_scores *take, void *arg, tnet_error *err);

/* Writes an export of the newest checkpoint to <to>/<id>, as tnet-export does; to NULL: export.to.
 * `id` gets 32 hex digits and a NUL. */
TNET_API int tnet_run_export(tnet_run *run, const char *to, char id[33], tnet_error *err);

/* Copies the newest checkpoint, whole, to a folder that is not there yet; tnet_run_open opens
 * it. */
TNET_API int tnet_run_save(tnet_run *run, const char *dir, tnet_error *err);

/* Returns the folder of the run; lent. */
TNET_API const char *tnet_run_dir(const tnet_run *run);

TNET_API void tnet_text_free(char *text); /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif
