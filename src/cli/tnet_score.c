/* tnet_score.c - rows on stdin, predictions on stdout, by an export alone. */
#include "base/core/arena.h"
#include "cli/main.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/fieldtree.h"
#include "config/tree.h"
#include "io/read/reader.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"
#include "serve/exported_model.h"
#include "serve/score.h"
#include "train/config/config.h"
#include "train/eval/predict.h"

#include <stdio.h>
#include <string.h>

enum { BATCH_ROWS = 1024 };

typedef struct score_flags {
    tn_strs data;
    uint32_t verify;
    bool no_label;
    bool half_weights;
} score_flags;

static const char *const verify_words[] = {"full", "lazy", "none", NULL};

static const tn_field flags[] = {
    TN_FIELD_STRS(score_flags, data, "-", "what to score instead of stdin; again for more"),
    TN_FIELD_CHOICE(score_flags, verify, "full", verify_words,
                    "when checksums of the dictionary are looked at"),
    TN_FLAG_BOOL(score_flags, half_weights, "round the net's weights to 16 bits, as libtnet can"),
    TN_FLAG_BOOL(score_flags, no_label, "rows have no label; the same as label=none"),
    TN_FIELD_END,
};

static const tn_program program = {
    .name = "tnet-score",
    .summary = "score rows with an exported model",
    .words = "EXPORT_DIR [key=value ..]",
    .flags = flags,
    .config = tn_data_fields,
    .words_min = 1,
    .words_max = 1,
    .example = "tnet-score export/08d2.. <rows.tsv",
    .notes =
        "EXPORT_DIR is an export, or a folder of exports: what its LATEST names, or the only one.\n"
        "Reads rows as the model's data were written; key=value changes how, as in format=tsv\n"
        "or label=none. Prints id, label, weight, logit and pctr, one line per row; of a model\n"
        "that predicts no clicks prediction (of numbers) or score in place of both. A column\n"
        "group comes last where data.group names one.\n",
};

/* key=value as options of `data`; *out is NULL when there are none. */
static tn_status read_overrides(const tn_options *options, bool no_label, const tn_binder *b,
                                const tn_tree **out, tn_error *err)
{
    const char **item = TN_NEW_ARRAY(b->arena, const char *, (size_t)options->overrides.n + 1);
    for (uint32_t i = 0; i < options->overrides.n; i++) { /* data.label is label, as elsewhere */
        const char *one = options->overrides.item[i];
        item[i] = strncmp(one, "data.", 5) == 0 ? one + 5 : one;
    }
    const tn_config_in in = {
        .fields = tn_data_fields, .overrides = item, .n_overrides = options->overrides.n};
    const tn_tree *tree = tn_config_load(&in, b->arena, b->diag);
    for (const tn_tree *t = tree != NULL ? tree->first : NULL; t != NULL; t = t->next) {
        if (tn_field_find(tn_data_fields, t->key) == NULL) {
            uint32_t n = 0;
            const char *const *names = tn_field_keys(b->arena, tn_data_fields, NULL, false, &n);
            tn_diag_unknown(b->diag, &t->key_at, "key", t->key, names, n);
        }
    }
    TN_TRY(tn_diag_check(b->diag, err));
    TN_ASSERT(tree != NULL);
    if (no_label) {
        tn_tree *with = tn_tree_copy(b->arena, tree);
        tn_tree_put(b->arena, with, "label",
                    tn_tree_scalar(b->arena, "none", (tn_origin){.source = "--no-label"}));
        tree = with;
    }
    *out = tree->first != NULL ? tree : NULL;
    return TN_OK;
}

/* The scores of a batch for each of several tasks. */
typedef struct task_room {
    float score[TN_TASKS_MAX][BATCH_ROWS], given[TN_TASKS_MAX][BATCH_ROWS];
    tn_task_columns columns;
    tn_task_scores scores;
} task_room;

/* Has the scorer write the scores of all tasks; NULL: there is one label. */
static const tn_task_scores *take_tasks(tn_scorer *scorer, const tn_tasks *tasks, tn_arena *arena)
{
    task_room *room = tasks->n > 0 ? TN_NEW(arena, task_room) : NULL;
    for (uint32_t k = 0; k < tasks->n; k++) {
        room->columns.score[k] = room->score[k];
        room->columns.given[k] = room->given[k];
        room->scores.score[k] = room->score[k];
        room->scores.given[k] = room->given[k];
    }
    tn_scorer_set_columns(scorer, room != NULL ? &room->columns : NULL);
    return room != NULL ? &room->scores : NULL;
}

static tn_status score_all(tn_reader *reader, tn_scorer *scorer, const tn_exported_model *b,
                           tn_arena *arena, tn_error *err)
{
    const tn_schema *schema = b->schema;
    float logit[BATCH_ROWS];
    const tn_task_scores *task = take_tasks(scorer, b->tasks, arena);
    tn_text text = {0};
    tn_batch *batch = NULL;
    tn_status status = TN_OK;
    tn_prediction_head(&text, schema->data->target, b->tasks, schema->data->group != NULL);
    while (status == TN_OK && (status = tn_reader_next(reader, &batch, err)) == TN_OK) {
        status = tn_scorer_score(scorer, batch, logit, NULL, err);
        if (status == TN_OK) {
            const tn_scores scores = {.batch = batch, .logit = logit, .task = task};
            tn_prediction_lines(&text, schema, b->tasks, &scores);
            status = tn_text_check(&text, "predictions", err);
        }
        (void)fwrite(text.data, 1, text.size, stdout); /* tn_exit_done sees a failure */
        tn_text_clear(&text);
        tn_reader_recycle(reader, batch);
    }
    (void)fwrite(tn_text_str(&text), 1, text.size, stdout);
    tn_text_done(&text);
    return status == TN_END ? TN_OK : status;
}

static tn_status work(tn_setup *s, const tn_options *options, const void *asked, tn_error *err)
{
    const score_flags *f = asked;
    tn_exported_model *exported = NULL;
    tn_scorer *scorer = NULL;
    tn_reader *reader = NULL;
    tn_exported_model_opts opts = {
        .verify = (tn_verify)f->verify, .half_weights = f->half_weights, .labels = !f->no_label};
    char dir[TN_PATH_SIZE];
    TN_TRY(read_overrides(options, f->no_label, &s->binder, &opts.data, err));
    TN_TRY(tn_export_find(options->words.item[0], dir, err));
    tn_status status = tn_exported_model_open(&exported, dir, &opts, err);
    status = status == TN_OK ? tn_scorer_new(&scorer, exported, err) : status;
    if (status == TN_OK) {
        const tn_reader_opts read = {
            .paths = f->data, .batch_rows = BATCH_ROWS, .want_ids = true, .prefetch = 2};
        status = tn_reader_open(&reader, exported->schema, &read, err);
    }
    status = status == TN_OK ? score_all(reader, scorer, exported, s->arena, err) : status;
    tn_reader_close(reader);
    tn_scorer_free(scorer);
    tn_exported_model_close(exported);
    return status;
}

int main(int argc, char **argv)
{
    score_flags f;
    const tn_main m = {.program = &program, .flags = &f, .work = work};
    return tn_main_run(&m, (tn_argv){argc, argv});
}
