/* data_ckpt.c - tnet-data ckpt: checkpoints of TensorNet, a map of one and one of a model. */
#include "cli/data_tool.h"

#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "extra/tensornet/tensornet.h"
#include "extra/tensornet/tensornet_export.h"
#include "extra/tensornet/tensornet_guess.h"
#include "train/checkpoint/checkpoint.h"
#include "train/config/run.h"
#include "train/step/worker.h"

#include <stdio.h>
#include <string.h>

typedef struct ckpt_flags {
    const char *tensornet, *map, *checkpoint, *dt;
    uint32_t ranks;
    bool text;
} ckpt_flags;

static const tn_field ckpt_fields[] = {
    TN_FLAG_STR(ckpt_flags, tensornet, "DIR", "export: TensorNet's model directory to write to"),
    TN_FLAG_STR(ckpt_flags, map, "FILE", "export: the map (~: that of checkpoint.from.tensornet)"),
    TN_FLAG_STR(ckpt_flags, checkpoint, "PATH",
                "export: a checkpoint, or a run directory (~: the newest of this run)"),
    TN_FLAG_STR(ckpt_flags, dt, "DAY", "export: name of the day (~: the date of the model's day)"),
    TN_FIELD_U32(ckpt_flags, ranks, "1", 1, TN_TENSORNET_RANKS_MAX, "ranks",
                 "export: processes of TensorNet that will load it"),
    TN_FLAG_BOOL(ckpt_flags, text, "export: rows as text, else binary"),
    TN_FIELD_END,
};

/* ---- map ---- */

static tn_status print_map(const tn_strs *words, tn_error *err)
{
    tn_text text = {0};
    if (words->n != 2) {
        return tn_fail(err, TN_E_USAGE, "'tnet-data ckpt map' takes a folder of TensorNet");
    }
    tn_status status = tn_tensornet_guess(words->item[1], &text, err);
    if (status == TN_OK) {
        (void)fputs(tn_text_str(&text), stdout);
    }
    tn_text_done(&text);
    return status;
}

/* ---- export ---- */

static tn_status write_model(tn_setup *s, const ckpt_flags *f, tn_worker *w, tn_error *err)
{
    const tn_tree *own = tn_tree_get(tn_tree_get(s->run.checkpoint.from, "tensornet"), "map");
    const tn_origin at = {.source = "command line"};
    const tn_tensornet_export_opts opts = {
        .map = f->map != NULL ? tn_tree_scalar(s->arena, f->map, at) : own,
        .dir = f->tensornet,
        .dt = f->dt,
        .ranks = f->ranks,
        .text = f->text};
    tn_saved which = {0};
    tn_tensornet_exported out;
    tn_text dir = {0};
    tn_run_dir(&s->run.run, &dir);
    tn_status status = tn_checkpoint_load(f->checkpoint != NULL ? f->checkpoint : tn_text_str(&dir),
                                          w, &which, err);
    tn_text_done(&dir);
    if (status == TN_OK) {
        status = tn_tensornet_export(w, &opts, &out, err);
    }
    if (status == TN_OK) {
        (void)printf("%s\n", out.path);
    }
    return status;
}

static tn_status export_model(tn_setup *s, const tn_options *options, const ckpt_flags *f,
                              tn_error *err)
{
    tn_options of_config = *options;
    tn_worker *w = NULL;
    if (options->words.n != 2 || f->tensornet == NULL) {
        return tn_fail(err, TN_E_USAGE,
                       "'tnet-data ckpt export' takes CONFIG and '--tensornet DIR'");
    }
    of_config.words = (tn_strs){1, options->words.item + 1};
    s->reads = true;
    s->from = f->checkpoint;
    TN_TRY(tn_main_load(s, &of_config, err));
    s->run.checkpoint.resume = "must"; /* the model that is exported */
    TN_TRY(tn_setup_plan(s, err));
    const tn_worker_opts opts = {.compares = true};
    TN_TRY(tn_worker_new(&w, s->plan, &opts, &s->binder, err));
    const tn_status status = write_model(s, f, w, err);
    tn_worker_free(w);
    return status;
}

static tn_status ckpt_work(tn_setup *s, const tn_options *options, const void *flags, tn_error *err)
{
    const char *word = options->words.item[0];
    if (strcmp(word, "map") == 0) {
        return print_map(&options->words, err);
    }
    if (strcmp(word, "export") == 0) {
        return export_model(s, options, flags, err);
    }
    return tn_fail(err, TN_E_USAGE, "unknown word '%s', neither map nor export", word);
}

extern const tn_data_tool tn_data_tool_ckpt;
const tn_data_tool tn_data_tool_ckpt = {
    .program = {.name = "tnet-data ckpt",
                .summary = "go from TensorNet's checkpoints to TNet's and back",
                .words = "map DIR | export CONFIG --tensornet DIR [key=value ..]",
                .flags = ckpt_fields,
                .config = tn_run_fields,
                .words_min = 2,
                .words_max = 2,
                .example = "tnet-data ckpt map models/ctr",
                .notes = "map       print what is what in TensorNet's checkpoint DIR, for\n"
                         "          checkpoint.from: {tensornet: {dir: DIR, map: FILE}}\n"
                         "export    write the model of CONFIG's run into DIR as TensorNet would\n"
                         "\n"
                         "'tnet-train CONFIG train.epochs=0' imports without training.\n"},
    .flags_size = sizeof(ckpt_flags),
    .work = ckpt_work,
};
