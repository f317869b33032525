/* tnet_data.c - make, convert, check and describe data sets. */
#include "base/core/arena.h"
#include "cli/data_tool.h"
#include "cli/exits.h"
#include "cli/signals.h"
#include "config/diag.h"

#include <string.h>

static const tn_data_tool *const tools[] = {&tn_data_gen,  &tn_data_convert,  &tn_data_check,
                                            &tn_data_stat, &tn_data_sample,   &tn_data_infer,
                                            &tn_data_ckpt, &tn_data_lifecycle};

enum { N_TOOLS = sizeof tools / sizeof tools[0] };

static const tn_program program = {
    .name = "tnet-data",
    .summary = "make, convert, check and describe data sets",
    .words = "gen | convert | infer | check | stat | sample | ckpt | lifecycle ..",
    .words_min = 1,
    .words_max = 1,
    .example = "tnet-data check configs/widedeep.yaml",
    .notes = "gen       make synthetic clicks whose truth is known\n"
             "convert   write the same rows in another format\n"
             "infer     write a configuration that reads and learns some files\n"
             "check     read every record and say what is wrong\n"
             "stat      say what data holds, slot by slot\n"
             "sample    copy some of the rows, byte for byte\n"
             "ckpt      go from TensorNet's checkpoints to TNet's and back\n"
             "lifecycle say what rules of leaving would keep of a model\n"
             "\n"
             "'tnet-data gen --help' and so on say more.",
};

/* "gen" of "tnet-data gen" */
static const char *word_of(const tn_data_tool *tool)
{
    return strrchr(tool->program.name, ' ') + 1;
}

static tn_status find_tool(const char *word, const tn_data_tool **out, tn_error *err)
{
    const char *names[N_TOOLS];
    for (uint32_t i = 0; i < N_TOOLS; i++) {
        names[i] = word_of(tools[i]);
        if (strcmp(word, names[i]) == 0) {
            *out = tools[i];
            return TN_OK;
        }
    }
    const char *nearest = tn_nearest(word, names, N_TOOLS);
    if (nearest != NULL) {
        return tn_fail(err, TN_E_USAGE, "unknown word '%s' (did you mean '%s'?)", word, nearest);
    }
    return tn_fail(err, TN_E_USAGE, "unknown word '%s'\nhint: 'tnet-data --help' lists all", word);
}

/* Options may stand in front of the tool's word too: `tnet-data -q gen` is `tnet-data gen -q`. */
static int run(tn_argv args, tn_arena *arena)
{
    int at = 1;
    while (at < args.n && args.item[at][0] == '-') {
        at++;
    }
    if (at >= args.n) { /* a word is missing: there is no work */
        return tn_main_work(&(tn_main){.program = &program}, args, arena);
    }
    tn_error err = {0};
    const tn_data_tool *tool = NULL;
    if (find_tool(args.item[at], &tool, &err) != TN_OK) {
        return tn_exit_with(program.name, &err);
    }
    char **item = TN_NEW_ARRAY(arena, char *, (size_t)args.n);
    int n = 0;
    item[n++] = args.item[at];
    for (int i = 1; i < args.n; i++) {
        if (i != at) {
            item[n++] = args.item[i];
        }
    }
    const tn_main m = {.program = &tool->program,
                       .flags = tn_arena_alloc(arena, 1, tool->flags_size, sizeof(double)),
                       .work = tool->work};
    return tn_main_work(&m, (tn_argv){n, item}, arena);
}

int main(int argc, char **argv)
{
    tn_signals_start();
    tn_arena *arena = tn_arena_new(1 << 16);
    int code = run((tn_argv){argc, argv}, arena);
    tn_arena_free(arena);
    return tn_exit_done(program.name, code);
}
