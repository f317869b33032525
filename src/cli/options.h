/* options.h - argv by a table.
 *
 *     tnet-train [option ..] CONFIG [key=value ..]
 *
 * Options of one program are rows of an option table (config/field.h): `dry_run` is
 * --dry-run; a truth value takes no argument (--no-dry-run denies it), every other
 * kind takes one, as --peers 4 or --peers=4, or may do without, as --profile or --profile=FILE.
 * What all programs have is built in:
 *
 *     -q --quiet   -v --verbose   -h --help   --version   --man   --completion[=SHELL]
 *     --schema   --print-config-doc                       with a configuration
 *
 * "--" ends the options, "-" is a word. Faults are TN_E_USAGE, with a suggestion.
 */
#pragma once

#include "base/core/error.h"
#include "base/core/text.h"
#include "config/values.h"

typedef struct tn_program {
    const char *name;       /* "tnet-train" */
    const char *summary;    /* one line, lower case */
    const char *words;      /* "CONFIG [key=value ..]"; "" when there are none */
    const tn_field *flags;  /* the program's own options; NULL: none */
    const tn_field *config; /* table of key=value; NULL: the program takes none */
    const char *keys;       /* for --help: where those are listed; NULL: it lists them itself */
    uint32_t words_min;     /* without key=value */
    uint32_t words_max;
    const char *notes;   /* more lines for --help, or NULL */
    const char *example; /* a whole command, shown when there are too few words; or NULL */
    const struct tn_program *const *tools; /* its commands, NULL-terminated; NULL: it has none */
} tn_program;

/* A question that the program itself can answer without doing its work. */
typedef enum tn_answer {
    TN_ANSWER_NONE,
    TN_ANSWER_HELP,
    TN_ANSWER_HELP_ALL, /* with all keys of the configuration */
    TN_ANSWER_VERSION,
    TN_ANSWER_MAN,        /* roff, section 1 */
    TN_ANSWER_COMPLETION, /* for bash */
    TN_ANSWER_COMPLETION_ZSH,
    TN_ANSWER_COMPLETION_FISH,
    TN_ANSWER_SCHEMA,
    TN_ANSWER_CONFIG_DOC, /* docs/config.md */
} tn_answer;

typedef struct tn_argv {
    int n; /* argc */
    char *const *item;
} tn_argv;

typedef struct tn_options {
    tn_argv args; /* as they came */
    tn_answer answer;
    int verbosity; /* -1: -q; 1: -v; 0 */
    tn_strs words; /* CONFIG first, where there is one */
    tn_strs overrides;
} tn_options;

/* A text or path among a program's options; `value_` is what --help calls it: "PATH". */
#define TN_FLAG_STR(type, member, value, help)                                                     \
    TN_ROW(TN_KIND_STR, type, member, const char *, "~", 0, 0, value, help)
/* Defines the same, but the value may be left out and is the first of `bare` then; a value follows
 * '='. */
#define TN_FLAG_STR_OR(type, member, bare, value, help)                                            \
    TN_ROW(TN_KIND_STR, type, member, const char *, "~", 0, 0, value, help, .words = (bare))
#define TN_FLAG_BOOL(type, member, help) TN_FIELD_BOOL(type, member, "false", help)

/* Reads argv into *out and into *flags, a struct of p->flags. Texts point into argv and `arena`.
 * The number of words is not checked, since some options need none. */
tn_status tn_options_parse(const tn_program *p, tn_argv args, tn_arena *arena, tn_options *out,
                           void *flags, tn_error *err) TN_MUST_USE;

/* The command line without option `key` of p->flags, for starting the program anew;
 * NULL-terminated, in `arena`. `args` is one that tn_options_parse took. */
tn_argv tn_options_without(const tn_program *p, tn_argv args, const char *key, tn_arena *arena);

/* TN_E_USAGE when there are too few or too many words. */
tn_status tn_options_check_words(const tn_program *p, const tn_options *options,
                                 tn_error *err) TN_MUST_USE;

enum { TN_OPTION_BYTES = 64 }; /* limit of an option's name */

/* One option as people and shells know it. */
typedef struct tn_option_row {
    char letter;                /* 'q' in -q; 0: none */
    char name[TN_OPTION_BYTES]; /* without "--" */
    const char *value;          /* the word for its value; "": it takes none */
    bool bare;                  /* the value may be left out */
    const char *help;
} tn_option_row;

/* Calls `add` for each option of the program: its own, then those of all programs. */
typedef void tn_option_add(tn_text *out, const tn_option_row *row, const void *ctx);
void tn_options_each(tn_text *out, const tn_program *p, tn_option_add *add, const void *ctx);
