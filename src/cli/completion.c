/* completion.c - writes the option tables as completion scripts of bash, zsh and fish.
 *
 * A program with commands, as tnet-data, gets one script: the first word is a command, and the
 * options after it are those of the command. The keys of the configuration are written once, since
 * all commands of a program read the same configuration.
 */
#include "cli/completion.h"

#include "config/field.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 64 };

/* "gen" of "tnet-data gen" */
static const char *command_of(const tn_program *tool)
{
    const char *space = strrchr(tool->name, ' ');
    return space != NULL ? space + 1 : tool->name;
}

/* "_tnet_data" */
static const char *name_function(const tn_program *p, char out[NAME_BYTES])
{
    (void)snprintf(out, NAME_BYTES, "_%s", p->name);
    for (char *c = out; *c != '\0'; c++) {
        *c = (char)(*c == '-' || *c == ' ' ? '_' : *c);
    }
    return out;
}

/* Appends text between single quotes; bytes of `escaped` get a backslash. */
static void add_quoted(tn_text *out, const char *text, const char *escaped)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            tn_text_adds(out, "'\\''");
            continue;
        }
        tn_text_adds(out, strchr(escaped, *text) != NULL ? "\\" : "");
        tn_text_addc(out, *text);
    }
}

/* The table of the program's configuration, or that of its commands; NULL: none. */
static const tn_field *find_config(const tn_program *p)
{
    const tn_field *config = p->config;
    for (const tn_program *const *tool = p->tools; config == NULL && tool != NULL && *tool != NULL;
         tool++) {
        config = (*tool)->config;
    }
    return config;
}

/* Appends every path of the configuration, with `end` and a space after each. */
static void add_keys(tn_text *out, const tn_program *p, const char *end)
{
    const tn_field *config = find_config(p);
    if (config == NULL) {
        return;
    }
    tn_text paths = {0};
    tn_fields_paths(&paths, config);
    for (const char *c = tn_text_str(&paths); *c != '\0'; c++) {
        if (*c == '\n') {
            tn_text_addf(out, "%s ", end);
        } else {
            tn_text_addc(out, *c);
        }
    }
    tn_text_done(&paths);
}

/* ---- bash ---- */

static void add_bash_option(tn_text *out, const tn_option_row *row, const void *ctx)
{
    (void)ctx;
    tn_text_addf(out, "--%s ", row->name);
}

static void add_bash_words(tn_text *out, const tn_program *p)
{
    tn_text_adds(out, "        case $cur in\n        -*) words='");
    tn_options_each(out, p, add_bash_option, NULL);
    tn_text_adds(out, "' ;;\n        *) files=1");
    tn_text_adds(out, p->config != NULL ? " keys=$all" : "");
    tn_text_adds(out, " ;;\n        esac\n");
}

void tn_completion_bash(tn_text *out, const tn_program *p)
{
    char function[NAME_BYTES];
    (void)name_function(p, function);
    tn_text_addf(out,
                 "# bash completion of %s\n%s() {\n"
                 "    local cur=${COMP_WORDS[COMP_CWORD]} words='' keys='' files='' all='",
                 p->name, function);
    add_keys(out, p, "");
    tn_text_adds(out, "'\n    case $COMP_CWORD,${COMP_WORDS[1]} in\n");
    if (p->tools != NULL) {
        tn_text_adds(out, "    1,*) words='");
        tn_options_each(out, p, add_bash_option, NULL);
        for (const tn_program *const *tool = p->tools; *tool != NULL; tool++) {
            tn_text_addf(out, "%s ", command_of(*tool));
        }
        tn_text_adds(out, "' ;;\n");
    }
    for (const tn_program *const *tool = p->tools; tool != NULL && *tool != NULL; tool++) {
        tn_text_addf(out, "    *,%s)\n", command_of(*tool));
        add_bash_words(out, *tool);
        tn_text_adds(out, "        ;;\n");
    }
    tn_text_adds(out, "    *)\n");
    add_bash_words(out, p);
    tn_text_addf(out,
                 "        ;;\n    esac\n"
                 "    mapfile -t COMPREPLY < <(\n"
                 "        [ -z \"$files\" ] || compgen -f -- \"$cur\"\n"
                 "        compgen -W \"$words\" -- \"$cur\"\n"
                 "        compgen -S = -W \"$keys\" -- \"$cur\"\n"
                 "    )\n}\ncomplete -o nospace -o filenames -F %s %s\n",
                 function, p->name);
}

/* ---- zsh ---- */

static void add_zsh_option(tn_text *out, const tn_option_row *row, const void *ctx)
{
    (void)ctx;
    const bool takes = row->value[0] != '\0';
    tn_text_adds(out, " \\\n            ");
    if (row->letter != 0) {
        tn_text_addf(out, "'(-%c --%s)'{-%c,--%s}'[", row->letter, row->name, row->letter,
                     row->name);
    } else {
        tn_text_addf(out, "'--%s%s[", row->name, row->bare ? "=-" : takes ? "=" : "");
    }
    add_quoted(out, row->help, "[]\\");
    tn_text_adds(out, "]");
    if (takes) {
        tn_text_addf(out, "%s%s:_files", row->bare ? "::" : ":", row->value);
    }
    tn_text_adds(out, "'");
}

static void add_zsh_arguments(tn_text *out, const tn_program *p, const char *words)
{
    tn_text_adds(out, "        _arguments -s -S");
    tn_options_each(out, p, add_zsh_option, NULL);
    if (words != NULL) {
        tn_text_addf(out, " \\\n            '*:word:%s'", words);
    }
    tn_text_addc(out, '\n');
}

static void add_zsh_tools(tn_text *out, const tn_program *p, const char *words)
{
    tn_text_adds(out, "    local -a commands\n    commands=(");
    for (const tn_program *const *tool = p->tools; *tool != NULL; tool++) {
        tn_text_addf(out, "\n        '%s:", command_of(*tool));
        add_quoted(out, (*tool)->summary, ":\\");
        tn_text_adds(out, "'");
    }
    tn_text_adds(out, "\n    )\n"
                      "    if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n"
                      "        _describe command commands\n        return\n    fi\n"
                      "    case $words[2] in\n");
    for (const tn_program *const *tool = p->tools; *tool != NULL; tool++) {
        tn_text_addf(out, "    %s)\n        shift words\n        (( CURRENT-- ))\n",
                     command_of(*tool));
        add_zsh_arguments(out, *tool, words);
        tn_text_adds(out, "        ;;\n");
    }
    tn_text_adds(out, "    *)\n");
    add_zsh_arguments(out, p, NULL);
    tn_text_adds(out, "        ;;\n    esac\n");
}

void tn_completion_zsh(tn_text *out, const tn_program *p)
{
    char function[NAME_BYTES];
    char words[NAME_BYTES + 8];
    (void)snprintf(words, sizeof words, "%s_words", name_function(p, function));
    tn_text_addf(out, "#compdef %s\n# zsh completion of %s\n%s() {\n    local -a keys\n    keys=(",
                 p->name, p->name, words);
    add_keys(out, p, "");
    tn_text_addf(out,
                 ")\n    _alternative 'files:file:_files' 'keys:key:compadd -S = -a keys'\n}\n"
                 "%s() {\n",
                 function);
    if (p->tools != NULL) {
        add_zsh_tools(out, p, words);
    } else {
        add_zsh_arguments(out, p, words);
    }
    tn_text_addf(out, "}\n%s \"$@\"\n", function);
}

/* ---- fish ---- */

/* A program whose own options are written, or those of one of its commands. */
typedef struct fish_part {
    const char *program;
    const char *command; /* NULL: the program's own options */
} fish_part;

static void add_fish_start(tn_text *out, const fish_part *part)
{
    tn_text_addf(out, "complete -c %s", part->program);
    if (part->command != NULL) {
        tn_text_addf(out, " -n '__fish_seen_subcommand_from %s'", part->command);
    }
}

static void add_fish_option(tn_text *out, const tn_option_row *row, const void *ctx)
{
    const fish_part *part = ctx;
    add_fish_start(out, part);
    if (row->letter != 0) {
        tn_text_addf(out, " -s %c", row->letter);
    }
    tn_text_addf(out, " -l %s%s -d '", row->name, row->value[0] != '\0' && !row->bare ? " -r" : "");
    add_quoted(out, row->help, "\\");
    tn_text_adds(out, "'\n");
}

static void add_fish_keys(tn_text *out, const tn_program *p, const fish_part *part)
{
    add_fish_start(out, part);
    tn_text_adds(out, " -a '");
    add_keys(out, p, "=");
    tn_text_adds(out, "'\n");
}

void tn_completion_fish(tn_text *out, const tn_program *p)
{
    tn_text_addf(out, "# fish completion of %s\n", p->name);
    if (p->tools == NULL) {
        const fish_part own = {p->name, NULL};
        tn_options_each(out, p, add_fish_option, &own);
        add_fish_keys(out, p, &own);
        return;
    }
    for (const tn_program *const *tool = p->tools; *tool != NULL; tool++) {
        const fish_part part = {p->name, command_of(*tool)};
        tn_text_addf(out, "complete -c %s -n __fish_use_subcommand -f -a %s -d '", p->name,
                     part.command);
        add_quoted(out, (*tool)->summary, "\\");
        tn_text_adds(out, "'\n");
        tn_options_each(out, *tool, add_fish_option, &part);
        add_fish_keys(out, *tool, &part);
    }
}
