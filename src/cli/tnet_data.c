/* tnet_data.c - make, convert, check and describe data sets. */
#include "base/diag.h"
#include "base/threads.h"
#include "cli/data_tool.h"
#include "cli/describe.h"
#include "cli/exits.h"
#include "cli/terminal.h"

#include <string.h>

static const tn_data_tool *const tools[] = {&tn_data_gen, &tn_data_convert, &tn_data_check,
                                            &tn_data_stat, &tn_data_sample};

enum { N_TOOLS = sizeof tools / sizeof tools[0] };

static const tn_program program = {
    .name = "tnet-data",
    .summary = "make, convert, check and describe data sets",
    .words = "gen | convert | check | stat | sample ..",
    .words_min = 1,
    .words_max = 1,
    .notes = "gen       make synthetic clicks whose truth is known\n"
             "convert   write the same rows in another format\n"
             "check     read every record and say what is wrong\n"
             "stat      say what data holds, slot by slot\n"
             "sample    copy some of the rows, byte for byte\n"
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

/* argv[0] is the tool's word. */
static int run_tool(const tn_data_tool *tool, int argc, char *const *argv, tn_arena *arena)
{
    tn_options options;
    tn_error err = {0};
    void *flags = tn_arena_alloc(arena, 1, tool->flags_size, sizeof(double));
    const tn_program *p = &tool->program;
    if (tn_options_parse(p, (tn_argv){argc, argv}, arena, &options, flags, &err) != TN_OK) {
        return tn_exit_with(p->name, &err);
    }
    if (tn_describe_answer(p, &options)) {
        return 0;
    }
    if (tn_options_check_words(p, &options, &err) != TN_OK) {
        return tn_exit_with(p->name, &err);
    }
    tn_terminal_log(options.verbosity, TN_LOG_INFO);
    tn_diag diag = {0};
    tn_data_call call = {.options = &options, .flags = flags, .diag = &diag};
    tn_status status = tool->run(&call, &err);
    int code = call.code;
    if (diag.n_errors > 0 || diag.n_warnings > 0) {
        int told = tn_exit_diag(p->name, &diag);
        code = told != 0 ? told : code;
        status = told != 0 ? TN_OK : status;
    }
    tn_diag_done(&diag);
    return status == TN_OK ? code : tn_exit_with(p->name, &err);
}

static int run(int argc, char *const *argv, tn_arena *arena)
{
    tn_error err = {0};
    const tn_data_tool *tool = NULL;
    if (argc > 1 && argv[1][0] != '-') {
        return find_tool(argv[1], &tool, &err) == TN_OK ? run_tool(tool, argc - 1, argv + 1, arena)
                                                        : tn_exit_with(program.name, &err);
    }
    tn_options options;
    if (tn_options_parse(&program, (tn_argv){argc, argv}, arena, &options, NULL, &err) != TN_OK) {
        return tn_exit_with(program.name, &err);
    }
    if (tn_describe_answer(&program, &options)) {
        return 0;
    }
    tn_status status = tn_options_check_words(&program, &options, &err);
    TN_ASSERT(status != TN_OK); /* no word came first */
    return tn_exit_with(program.name, &err);
}

int main(int argc, char **argv)
{
    tn_flush_denormals();
    tn_arena *arena = tn_arena_new(1 << 16);
    int code = run(argc, argv, arena);
    tn_arena_free(arena);
    return tn_exit_done(program.name, code);
}
