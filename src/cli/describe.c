/* describe.c - prints help, manual page, completion, schema and documentation from the tables of
 * options. */
#include "cli/options.h"

#include "config/fieldtext.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 64, HELP_COLUMN = 26, LINE_BYTES = 128 };

static const char exit_codes[] = "0 done, 1 internal, 2 usage, 3 configuration, 4 data, "
                                 "5 checkpoint, 6 peer or network,\n7 memory, 8 storage, "
                                 "9 diverged, 75 stopped and can go on, 130 second interrupt";

typedef void add_flag(tn_text *out, const char *left, const char *help);

/* "--peers N" */
static void write_own(char left[LINE_BYTES], const tn_field *f)
{
    static const char *const values[] = {
        [TN_KIND_U32] = "N",         [TN_KIND_U64] = "N",     [TN_KIND_F64] = "X",
        [TN_KIND_DURATION] = "TIME", [TN_KIND_SIZE] = "SIZE", [TN_KIND_STR] = "TEXT",
        [TN_KIND_CHOICE] = "WORD",   [TN_KIND_STRS] = "TEXT", [TN_KIND_F64S] = "X",
    };
    char name[NAME_BYTES];
    (void)tn_flag_name(f, name);
    bool named = f->kind == TN_KIND_STR && f->unit[0] != '\0';
    bool known = (size_t)f->kind < sizeof values / sizeof *values && values[f->kind] != NULL;
    const char *value = named ? f->unit : known ? values[f->kind] : "";
    if (named && f->words != NULL) {
        (void)snprintf(left, LINE_BYTES, "--%s[=%s]", name, value);
        return;
    }
    (void)snprintf(left, LINE_BYTES, "--%s%s%s", name, value[0] != '\0' ? " " : "", value);
}

static void each_flag(tn_text *out, const tn_program *p, add_flag *add)
{
    char left[LINE_BYTES];
    for (const tn_field *f = p->flags; f != NULL && f->kind != TN_KIND_END; f++) {
        write_own(left, f);
        add(out, left, f->help);
    }
    for (const tn_common_flag *f = tn_common_flags; f->name != NULL; f++) {
        if (f->config && p->config == NULL) {
            continue;
        }
        char letter[] = {'-', f->letter, ',', ' ', '\0'};
        (void)snprintf(left, sizeof left, "%s--%s", f->letter != 0 ? letter : "", f->name);
        add(out, left, f->help);
    }
}

static void add_help(tn_text *out, const char *left, const char *help)
{
    tn_text_addf(out, "  %-*s %s\n", HELP_COLUMN, left, help);
}

void tn_describe_help(tn_text *out, const tn_program *p)
{
    tn_text_addf(out, "usage: %s [option ..]%s%s\n", p->name, p->words[0] != '\0' ? " " : "",
                 p->words);
    if (p->example != NULL) {
        tn_text_addf(out, "as in: %s\n", p->example);
    }
    tn_text_addf(out, "\n%s\n\noptions:\n", p->summary);
    each_flag(out, p, add_help);
    if (p->notes != NULL) {
        tn_text_addf(out, "\n%s\n", p->notes);
    }
    if (p->config != NULL) {
        tn_text_adds(out, "\nkeys of the configuration, in CONFIG or as key=value:\n");
        tn_fields_help(out, p->config);
    }
    tn_text_addf(out, "\nexit codes: %s\n", exit_codes);
}

/* roff takes a leading dot or quote for a command, a backslash for an escape and '-' for a hyphen
 * that is not ASCII. */
static void add_roff(tn_text *out, const char *text)
{
    bool line_start = true;
    for (; *text != '\0'; text++) {
        if (line_start && (*text == '.' || *text == '\'')) {
            tn_text_adds(out, "\\&");
        }
        if (*text == '\\') {
            tn_text_adds(out, "\\e");
        } else {
            tn_text_adds(out, *text == '-' ? "\\" : "");
            tn_text_addc(out, *text);
        }
        line_start = *text == '\n';
    }
}

static void add_roff_flag(tn_text *out, const char *left, const char *help)
{
    tn_text_adds(out, ".TP\n\\fB");
    add_roff(out, left);
    tn_text_adds(out, "\\fR\n");
    add_roff(out, help);
    tn_text_addc(out, '\n');
}

static void add_heading(tn_text *out, const char *name)
{
    tn_text_addf(out, ".SH %s\n", name);
}

void tn_describe_man(tn_text *out, const tn_program *p)
{
    tn_text_addf(out, ".TH \"%s\" 1 \"\" \"TNet %s\"\n", p->name, TN_VERSION);
    add_heading(out, "NAME");
    add_roff(out, p->name);
    tn_text_adds(out, " \\- ");
    add_roff(out, p->summary);
    tn_text_addc(out, '\n');
    add_heading(out, "SYNOPSIS");
    tn_text_adds(out, "\\fB");
    add_roff(out, p->name);
    tn_text_adds(out, "\\fR [option ..] ");
    add_roff(out, p->words);
    tn_text_addc(out, '\n');
    if (p->example != NULL) {
        tn_text_adds(out, ".PP\nAs in: ");
        add_roff(out, p->example);
        tn_text_addc(out, '\n');
    }
    add_heading(out, "OPTIONS");
    each_flag(out, p, add_roff_flag);
    if (p->notes != NULL) {
        add_heading(out, "NOTES");
        tn_text_adds(out, ".nf\n");
        add_roff(out, p->notes);
        tn_text_adds(out, "\n.fi\n");
    }
    if (p->config != NULL) {
        tn_text keys = {0};
        tn_fields_help(&keys, p->config);
        add_heading(out, "CONFIGURATION");
        tn_text_adds(out, "Keys, in CONFIG or as key=value:\n.nf\n");
        add_roff(out, tn_text_str(&keys));
        tn_text_adds(out, ".fi\n");
        tn_text_done(&keys);
    }
    add_heading(out, "EXIT STATUS");
    add_roff(out, exit_codes);
    tn_text_addc(out, '\n');
}

static void add_word(tn_text *out, const char *left, const char *help)
{
    (void)help;
    const char *name = strstr(left, "--");
    TN_ASSERT(name != NULL);
    tn_text_add(out, name, strcspn(name, " ["));
    tn_text_addc(out, ' ');
}

void tn_describe_completion(tn_text *out, const tn_program *p)
{
    char function[NAME_BYTES];
    (void)snprintf(function, sizeof function, "_%s", p->name);
    for (char *c = function; *c != '\0'; c++) {
        *c = (char)(*c == '-' || *c == ' ' ? '_' : *c);
    }
    tn_text_addf(out, "# bash completion of %s\n%s() {\n", p->name, function);
    tn_text_adds(out, "    local cur=${COMP_WORDS[COMP_CWORD]}\n"
                      "    case $cur in\n"
                      "    -*) mapfile -t COMPREPLY < <(compgen -W '");
    each_flag(out, p, add_word);
    tn_text_adds(out, "' -- \"$cur\") ;;\n    *) mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"");
    if (p->config != NULL) {
        tn_text paths = {0};
        tn_fields_paths(&paths, p->config);
        tn_text_adds(out, "; compgen -S = -W '");
        for (const char *c = tn_text_str(&paths); *c != '\0'; c++) {
            tn_text_add(out, *c == '\n' ? " " : c, 1);
        }
        tn_text_adds(out, "' -- \"$cur\"");
        tn_text_done(&paths);
    }
    tn_text_addf(out, ") ;;\n    esac\n}\ncomplete -o nospace -o filenames -F %s %s\n", function,
                 p->name);
}

void tn_describe_version(tn_text *out, const tn_program *p)
{
    tn_text_addf(out, "%s %s\n", p->name, TN_VERSION);
}

void tn_describe_schema(tn_text *out, const tn_program *p)
{
    tn_fields_schema(out, p->config, "TNet configuration");
}

void tn_describe_config_doc(tn_text *out, const tn_program *p)
{
    tn_text_adds(
        out, "# Configuration\n\n"
             "Made from the option tables by `tnet-train --print-config-doc`; a test keeps "
             "it equal.\n\n"
             "- Precedence: default < preset < `include` < file < environment "
             "(`TNET_TRAIN__EPOCHS`) < command line\n"
             "  (`train.epochs=3`, YAML on the right; `slots.C1.dim=4` reaches an item by "
             "its name).\n"
             "- `tnet-train --schema > tnet.schema.json` and a first line `# yaml-language-server: "
             "$schema=tnet.schema.json` let an\n"
             "  editor complete and check the keys.\n"
             "- The file may be `-`, standard input; its includes are relative to the working "
             "directory.\n"
             "- Counts may end in `k`, `M` or `G` (thousands, millions, 10^9). Durations "
             "carry a unit: `500ms`, `20s`, `10min`,\n"
             "  `2h30m`. Sizes carry one too: `64kB`, `512MB`, `12GiB`. `~` is not set: "
             "the default holds.\n"
             "- A section or a rule may be shortened to its first option: `optimizer: "
             "adam` is `optimizer: {type: adam}`.\n"
             "- A layer that gives a rule (optimizer, schedule, loss) another type begins it "
             "anew: options of the layers below are\n"
             "  dropped. Another `model.type` keeps those that the new model has too. Trees "
             "such as `{uniform: [a, b]}` are replaced\n"
             "  as a whole.\n");
    tn_fields_markdown(out, p->config);
}

bool tn_describe_answer(const tn_program *p, const tn_options *options)
{
    static void (*const answers[])(tn_text * out, const tn_program *p) = {
        [TN_ANSWER_NONE] = NULL,
        [TN_ANSWER_HELP] = tn_describe_help,
        [TN_ANSWER_VERSION] = tn_describe_version,
        [TN_ANSWER_MAN] = tn_describe_man,
        [TN_ANSWER_COMPLETION] = tn_describe_completion,
        [TN_ANSWER_SCHEMA] = tn_describe_schema,
        [TN_ANSWER_CONFIG_DOC] = tn_describe_config_doc,
    };
    TN_ASSERT((size_t)options->answer < sizeof answers / sizeof *answers);
    if (answers[options->answer] == NULL) {
        return false;
    }
    tn_text out = {0};
    answers[options->answer](&out, p);
    (void)fwrite(tn_text_str(&out), 1, out.size, stdout);
    tn_text_done(&out);
    return true;
}
