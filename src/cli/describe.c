/* describe.c - says what is in the tables of a program: help, manual page, schema, documentation.
 * completion.c has the scripts for shells.
 */
#include "cli/describe.h"

#include "cli/completion.h"
#include "config/field.h"

#include <stdio.h>

enum { HELP_COLUMN = 26, LINE_BYTES = 128 };

static const char exit_codes[] = "0 done, 1 internal, 2 usage, 3 configuration, 4 data, "
                                 "5 checkpoint, 6 peer or network,\n7 memory, 8 storage, "
                                 "9 diverged, 75 stopped and can go on, 130 second interrupt";

/* "-q, --quiet", "--peers N", "--profile[=FILE]" */
static void write_option(char left[LINE_BYTES], const tn_option_row *row)
{
    const char letter[] = {'-', row->letter, ',', ' ', '\0'};
    const bool takes = row->value[0] != '\0';
    (void)snprintf(left, LINE_BYTES, "%s--%s%s%s%s", row->letter != 0 ? letter : "", row->name,
                   row->bare ? "[="
                   : takes   ? " "
                             : "",
                   row->value, row->bare ? "]" : "");
}

static void add_help(tn_text *out, const tn_option_row *row, const void *ctx)
{
    (void)ctx;
    char left[LINE_BYTES];
    write_option(left, row);
    tn_text_addf(out, "  %-*s %s\n", HELP_COLUMN, left, row->help);
}

static void describe(tn_text *out, const tn_program *p, bool with_keys)
{
    tn_text_addf(out, "usage: %s [option ..]%s%s\n", p->name, p->words[0] != '\0' ? " " : "",
                 p->words);
    if (p->example != NULL) {
        tn_text_addf(out, "as in: %s\n", p->example);
    }
    tn_text_addf(out, "\n%s\n\noptions:\n", p->summary);
    tn_options_each(out, p, add_help, NULL);
    if (p->notes != NULL) {
        tn_text_addf(out, "\n%s\n", p->notes);
    }
    if (p->keys != NULL) {
        tn_text_addf(out, "\nkeys of the configuration: %s\n", p->keys);
    } else if (p->config != NULL && with_keys) {
        tn_text_adds(out, "\nkeys of the configuration, in CONFIG or as key=value:\n");
        tn_fields_help(out, p->config);
    } else if (p->config != NULL) {
        tn_text_addf(out, "\nkeys of the configuration: '%s --help-all' and docs/config.md\n",
                     p->name);
    }
    tn_text_addf(out, "\nexit codes: %s\n", exit_codes);
}

static void describe_help(tn_text *out, const tn_program *p)
{
    describe(out, p, false);
}

static void describe_all(tn_text *out, const tn_program *p)
{
    describe(out, p, true);
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

static void add_roff_flag(tn_text *out, const tn_option_row *row, const void *ctx)
{
    (void)ctx;
    char left[LINE_BYTES];
    write_option(left, row);
    tn_text_adds(out, ".TP\n\\fB");
    add_roff(out, left);
    tn_text_adds(out, "\\fR\n");
    add_roff(out, row->help);
    tn_text_addc(out, '\n');
}

static void add_heading(tn_text *out, const char *name)
{
    tn_text_addf(out, ".SH %s\n", name);
}

static void describe_man(tn_text *out, const tn_program *p)
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
    tn_options_each(out, p, add_roff_flag, NULL);
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

static void describe_version(tn_text *out, const tn_program *p)
{
    tn_text_addf(out, "%s %s\n", p->name, TN_VERSION);
}

static void describe_schema(tn_text *out, const tn_program *p)
{
    tn_fields_schema(out, p->config, "TNet configuration");
}

static void describe_config_doc(tn_text *out, const tn_program *p)
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
             "- Options of `data` and `slots` that say what a row means belong to the model: later "
             "commands compare them with the checkpoint's,\n"
             "  see [training](training.md#what-belongs-to-the-model).\n"
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

void tn_describe(tn_text *out, const tn_program *p, tn_answer answer)
{
    static void (*const answers[])(tn_text * out, const tn_program *p) = {
        [TN_ANSWER_HELP] = describe_help,
        [TN_ANSWER_HELP_ALL] = describe_all,
        [TN_ANSWER_VERSION] = describe_version,
        [TN_ANSWER_MAN] = describe_man,
        [TN_ANSWER_COMPLETION] = tn_completion_bash,
        [TN_ANSWER_COMPLETION_ZSH] = tn_completion_zsh,
        [TN_ANSWER_COMPLETION_FISH] = tn_completion_fish,
        [TN_ANSWER_SCHEMA] = describe_schema,
        [TN_ANSWER_CONFIG_DOC] = describe_config_doc,
    };
    TN_ASSERT(answer != TN_ANSWER_NONE && (size_t)answer < sizeof answers / sizeof *answers);
    answers[answer](out, p);
}

bool tn_describe_answer(const tn_program *p, const tn_options *options)
{
    if (options->answer == TN_ANSWER_NONE) {
        return false;
    }
    tn_text out = {0};
    tn_describe(&out, p, options->answer);
    (void)fwrite(tn_text_str(&out), 1, out.size, stdout);
    tn_text_done(&out);
    return true;
}
