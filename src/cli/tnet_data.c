/* tnet_data.c - make, convert, check and describe data sets. */
#include "base/core/arena.h"
#include "cli/data_tool.h"
#include "cli/exits.h"
#include "cli/signals.h"
#include "config/absent.h"
#include "config/diag.h"

#include <string.h>

#define TN_DATA_TOOL(name) extern const tn_data_tool tn_data_tool_##name;
#include "cli/data_tools.def"
#undef TN_DATA_TOOL

static const tn_data_tool *const tools[] = {
#define TN_DATA_TOOL(name) &tn_data_tool_##name,
#include "cli/data_tools.def"
#undef TN_DATA_TOOL
};

enum { N_TOOLS = sizeof tools / sizeof tools[0] };

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
    TN_TRY(tn_absent_check(word, TN_E_USAGE, err));
    const char *nearest = tn_nearest(word, names, N_TOOLS);
    if (nearest != NULL) {
        return tn_fail(err, TN_E_USAGE, "unknown word '%s' (did you mean '%s'?)", word, nearest);
    }
    return tn_fail(err, TN_E_USAGE, "unknown word '%s'\nhint: 'tnet-data --help' lists all", word);
}

/* Copies a text into the arena and frees it. */
static const char *keep(tn_arena *arena, tn_text *text)
{
    char *copy = TN_NEW_ARRAY(arena, char, text->size + 1);
    memcpy(copy, tn_text_str(text), text->size);
    tn_text_done(text);
    return copy;
}

/* The program with all of its tools in its help, in `arena`. */
static const tn_program *describe(tn_arena *arena)
{
    tn_text words = {0};
    tn_text notes = {0};
    for (uint32_t i = 0; i < N_TOOLS; i++) {
        tn_text_addf(&words, "%s | ", word_of(tools[i]));
        tn_text_addf(&notes, "%-9s %s\n", word_of(tools[i]), tools[i]->program.summary);
    }
    words.size -= strlen("| ");
    tn_text_adds(&words, "..");
    tn_text_adds(&notes, "\n'tnet-data convert --help' and so on say more.");
    const tn_program **programs = TN_NEW_ARRAY(arena, const tn_program *, N_TOOLS + 1);
    for (uint32_t i = 0; i < N_TOOLS; i++) {
        programs[i] = &tools[i]->program;
    }
    tn_program *p = TN_NEW(arena, tn_program);
    *p = (tn_program){
        .name = "tnet-data",
        .summary = "make, convert, check and describe data sets",
        .words = keep(arena, &words),
        .words_min = 1,
        .words_max = 1,
        .example = tn_is_absent("check") ? NULL : "tnet-data check configs/widedeep.yaml",
        .notes = keep(arena, &notes),
        .tools = programs,
    };
    return p;
}

/* Options may precede the tool's word, too: `tnet-data -q stat` is `tnet-data stat -q`. */
static int run(tn_argv args, tn_arena *arena)
{
    int at = 1;
    while (at < args.n && args.item[at][0] == '-') {
        at++;
    }
    if (at >= args.n) { /* a word is missing: there is no work */
        return tn_main_work(&(tn_main){.program = describe(arena)}, args, arena);
    }
    tn_error err = {0};
    const tn_data_tool *tool = NULL;
    if (find_tool(args.item[at], &tool, &err) != TN_OK) {
        return tn_exit_with("tnet-data", &err);
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
    return tn_exit_done("tnet-data", code);
}
