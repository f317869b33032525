/* judge.h - what tnet-eval does between argv and its output: a model, data, findings.
 *
 *     tn_judge j = {.setup = &s, .checkpoint = NULL, ..};
 *     TN_TRY(tn_judge_run(&j, err));
 *     ... j.findings ...
 *     tn_judge_done(&j);                                   also after a failure
 */
#ifndef TN_CLI_JUDGE_H
#define TN_CLI_JUDGE_H

#include "cli/setup.h"
#include "serve/exported_model.h"
#include "train/report/eval_result.h"
#include "train/report/profile.h"

#include <stdatomic.h>

#define TN_FETCH_FILE "fetch.npz" /* in the working directory */

typedef struct tn_judge {
    tn_setup *setup;         /* loaded, not planned */
    const tn_strs *data;     /* paths; none: data.test, else data.valid */
    const char *checkpoint;  /* a checkpoint or a run directory; NULL: the run's */
    const char *export_dir;  /* NULL: a checkpoint is judged */
    const char *predictions; /* file for every score; NULL: none */
    const tn_strs *fetch;    /* names of nodes, for fetch.npz */
    const atomic_bool *stop; /* true: end with TN_E_STOPPED */
    tn_profile *profile;     /* of a checkpoint's evaluation; NULL: nobody wants it */

    /* made by tn_judge_run, where this process is rank 0 or alone; the others leave it to rank 0 */
    tn_evaluation evaluation;
    tn_findings findings;
    tn_text data_name, source;
    tn_sign_words *words; /* behind the hashes of slices; NULL: none */
    tn_bundle *bundle;    /* of the export; NULL: none */
} tn_judge;

tn_status tn_judge_run(tn_judge *j, tn_error *err) TN_MUST_USE;
void tn_judge_done(tn_judge *j);

#endif
