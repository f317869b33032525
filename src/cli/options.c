/* options.c - reads argv by a table of options, and lists what is in the table.
 *
 * The arguments become a tree of texts, {peers: 4, dry_run: true}, which the table of the program's
 * options then binds like any other: the same checks, the same messages.
 */
#include "cli/options.h"

#include "base/core/arena.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = TN_OPTION_BYTES };

/* The options that every program has. */
typedef struct common_flag {
    const char *name; /* without "--" */
    char letter;      /* 0: none */
    tn_answer answer; /* NONE: verbosity */
    int verbosity;
    bool config; /* only of programs with a configuration */
    const char *help;
    const char *value; /* the word for an optional value; NULL: it takes none */
} common_flag;

/* Values of --completion. */
static const struct shell {
    const char *name;
    tn_answer answer;
} shells[] = {
    {"bash", TN_ANSWER_COMPLETION},
    {"zsh", TN_ANSWER_COMPLETION_ZSH},
    {"fish", TN_ANSWER_COMPLETION_FISH},
};

static const common_flag common_flags[] = {
    {"quiet", 'q', TN_ANSWER_NONE, -1, false, "warnings and errors only", NULL},
    {"verbose", 'v', TN_ANSWER_NONE, 1, false, "more than the usual", NULL},
    {"help", 'h', TN_ANSWER_HELP, 0, false, "this text", NULL},
    {"help-all", 0, TN_ANSWER_HELP_ALL, 0, true, "this text and all keys of the configuration",
     NULL},
    {"version", 0, TN_ANSWER_VERSION, 0, false, "name and version", NULL},
    {"man", 0, TN_ANSWER_MAN, 0, false, "this text as a manual page", NULL},
    {"completion", 0, TN_ANSWER_COMPLETION, 0, false,
     "words for bash, zsh or fish: source <(.. --completion=bash)", "SHELL"},
    {"schema", 0, TN_ANSWER_SCHEMA, 0, true, "JSON schema of the configuration, for editors", NULL},
    {"print-config-doc", 0, TN_ANSWER_CONFIG_DOC, 0, true, "all keys of the configuration", NULL},
    {NULL, 0, TN_ANSWER_NONE, 0, false, NULL, NULL},
};

typedef struct parser {
    const tn_program *p;
    tn_arena *arena;
    tn_tree *map; /* the program's own options */
    tn_options *out;
    const char **words;
    const char **overrides;
    int argc;
    char *const *argv;
    int at;              /* in argv */
    const tn_field *own; /* the program's own option that was taken last */
} parser;

/* "dry-run" from "dry_run". */
static const char *flag_name(const tn_field *f, char out[NAME_BYTES])
{
    (void)snprintf(out, NAME_BYTES, "%s", f->key);
    for (char *c = out; *c != '\0'; c++) {
        *c = (char)(*c == '_' ? '-' : *c);
    }
    return out;
}

static const common_flag *find_common(const tn_program *p, const char *name, size_t size)
{
    for (const common_flag *f = common_flags; f->name != NULL; f++) {
        bool long_form = strlen(f->name) == size && strncmp(f->name, name, size) == 0;
        if (long_form && (!f->config || p->config != NULL)) {
            return f;
        }
    }
    return NULL;
}

static const tn_field *find_flag(const tn_program *p, const char *name, size_t size)
{
    for (const tn_field *f = p->flags; f != NULL && f->kind != TN_KIND_END; f++) {
        char own[NAME_BYTES];
        (void)flag_name(f, own);
        if (strlen(own) == size && strncmp(own, name, size) == 0) {
            return f;
        }
    }
    return NULL;
}

/* The truth value that --no-x denies. */
static const tn_field *find_denied(const tn_program *p, const char *name)
{
    if (strncmp(name, "no-", 3) != 0) {
        return NULL;
    }
    const tn_field *f = find_flag(p, name + 3, strlen(name + 3));
    return f != NULL && f->kind == TN_KIND_BOOL ? f : NULL;
}

/* The first key of the configuration whose last word is `name`, as train.epochs of "epochs", in
 * the arena; NULL: none. */
static const char *find_key(const parser *s, const char *name)
{
    const char *found = NULL;
    tn_text paths = {0};
    if (s->p->config == NULL) {
        return NULL;
    }
    tn_fields_paths(&paths, s->p->config);
    const char *path = tn_text_str(&paths);
    for (const char *end = strchr(path, '\n'); end != NULL && found == NULL;
         end = strchr(path, '\n')) {
        const size_t size = (size_t)(end - path);
        const size_t own = strlen(name);
        const bool ends = size == own || (size > own && path[size - own - 1] == '.');
        if (ends && memcmp(end - own, name, own) == 0) {
            found = tn_tree_text(s->arena, path, size);
        }
        path = end + 1;
    }
    tn_text_done(&paths);
    return found;
}

static tn_status unknown_option(const parser *s, const char *arg, size_t size, tn_error *err)
{
    enum { NAMES_MAX = 64 };
    const char *names[NAMES_MAX];
    uint32_t n = 0;
    for (const common_flag *f = common_flags; f->name != NULL; f++) {
        names[n++] = f->name;
    }
    for (const tn_field *f = s->p->flags; f != NULL && f->kind != TN_KIND_END; f++) {
        char own[NAME_BYTES];
        (void)flag_name(f, own);
        TN_ASSERT(n < NAMES_MAX);
        names[n++] = tn_tree_text(s->arena, own, strlen(own));
    }
    char word[NAME_BYTES];
    (void)snprintf(word, sizeof word, "%.*s", (int)(size < NAME_BYTES ? size : NAME_BYTES - 1),
                   arg);
    const char *key = find_key(s, word + strspn(word, "-"));
    if (key != NULL) {
        return tn_fail(
            err, TN_E_USAGE,
            "unknown option '%s'\nhint: '%s=VALUE', without dashes, sets this key of the "
            "configuration",
            word, key);
    }
    const char *nearest = tn_nearest(word + strspn(word, "-"), names, n);
    if (nearest != NULL) {
        return tn_fail(err, TN_E_USAGE, "unknown option '%s' (did you mean '--%s'?)", word,
                       nearest);
    }
    return tn_fail(err, TN_E_USAGE, "unknown option '%s'\nhint: '%s --help' lists all", word,
                   s->p->name);
}

/* Adds `value` for the option; a list of texts grows, everything else may be given once. */
static tn_status add_value(const parser *s, const tn_field *f, const char *value, tn_error *err)
{
    const tn_origin at = {.source = "command line"};
    tn_tree *scalar = tn_tree_scalar(s->arena, value, at);
    const tn_tree *old = tn_tree_get(s->map, f->key);
    if (old != NULL && f->kind != TN_KIND_STRS) {
        char own[NAME_BYTES];
        return tn_fail(err, TN_E_USAGE, "option '--%s' is given twice", flag_name(f, own));
    }
    tn_tree *value_tree = scalar;
    if (f->kind == TN_KIND_STRS) {
        value_tree =
            old != NULL ? tn_tree_copy(s->arena, old) : tn_tree_new(s->arena, TN_TREE_LIST, at);
        tn_tree_append(value_tree, scalar);
    }
    tn_tree_put(s->arena, s->map, f->key, value_tree);
    return TN_OK;
}

/* --name, --name=value, --name value, --no-name. */
static tn_status take_own(parser *s, const char *name, tn_error *err)
{
    size_t size = strcspn(name, "=");
    const char *value = name[size] == '=' ? name + size + 1 : NULL;
    const tn_field *f = find_flag(s->p, name, size);
    const tn_field *denied = f == NULL && value == NULL ? find_denied(s->p, name) : NULL;
    s->own = denied != NULL ? denied : f;
    if (denied != NULL) {
        return add_value(s, denied, "false", err);
    }
    if (f == NULL) {
        return unknown_option(s, name - 2, size + 2, err);
    }
    if (f->kind == TN_KIND_BOOL) {
        return add_value(s, f, value != NULL ? value : "true", err);
    }
    if (value == NULL && f->words != NULL && f->kind == TN_KIND_STR) {
        value = f->words[0];
    }
    if (value == NULL && s->at + 1 < s->argc) {
        value = s->argv[++s->at];
    }
    if (value == NULL) {
        return tn_fail(err, TN_E_USAGE, "option '--%s' needs a value", name);
    }
    return add_value(s, f, value, err);
}

/* The answer to the question of a common option with a value. */
static tn_status find_answer(const common_flag *f, const char *value, tn_answer *out, tn_error *err)
{
    if (f->value == NULL) {
        return tn_fail(err, TN_E_USAGE, "option '--%s' takes no value", f->name);
    }
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(shells[i].name, value) == 0) {
            *out = shells[i].answer;
            return TN_OK;
        }
    }
    return tn_fail(err, TN_E_USAGE, "option '--%s' takes bash, zsh or fish, not '%s'", f->name,
                   value);
}

/* Takes an option that every program has; `value` is what follows its '=', or NULL. */
static tn_status take_common(parser *s, const common_flag *f, const char *value, tn_error *err)
{
    tn_answer answer = f->answer;
    if (value != NULL) {
        TN_TRY(find_answer(f, value, &answer, err));
    }
    if (answer != TN_ANSWER_NONE && s->out->answer == TN_ANSWER_NONE) {
        s->out->answer = answer; /* the first question is answered */
    }
    s->out->verbosity += f->verbosity;
    return TN_OK;
}

static tn_status take_letters(parser *s, const char *arg, tn_error *err)
{
    for (const char *c = arg + 1; *c != '\0'; c++) {
        const common_flag *f = common_flags;
        while (f->name != NULL && f->letter != *c) {
            f++;
        }
        if (f->name == NULL) {
            return unknown_option(s, arg, strlen(arg), err);
        }
        TN_TRY(take_common(s, f, NULL, err));
    }
    return TN_OK;
}

/* section.key=value: a path or URL before the '=' is a word. */
static bool is_override(const tn_program *p, const char *arg)
{
    size_t size = strcspn(arg, "=");
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_-.{}";
    return p->config != NULL && size > 0 && arg[size] == '=' && strspn(arg, letters) >= size;
}

static void take_word(const parser *s, const char *arg)
{
    if (is_override(s->p, arg)) {
        s->overrides[s->out->overrides.n++] = arg;
    } else {
        s->words[s->out->words.n++] = arg;
    }
}

static tn_status take(parser *s, tn_error *err)
{
    const char *arg = s->argv[s->at];
    if (arg[0] != '-' || arg[1] == '\0') {
        take_word(s, arg);
        return TN_OK;
    }
    if (arg[1] != '-') {
        return take_letters(s, arg, err);
    }
    size_t size = strcspn(arg, "=");
    const common_flag *common = find_common(s->p, arg + 2, size - 2);
    if (common != NULL) {
        return take_common(s, common, arg[size] == '=' ? arg + size + 1 : NULL, err);
    }
    return take_own(s, arg + 2, err);
}

static tn_status bind_flags(const parser *s, void *flags, tn_error *err)
{
    tn_diag diag = {0};
    const tn_binder b = {.arena = s->arena, .diag = &diag};
    tn_status status = TN_OK;
    tn_fields_bind(&b, s->p->flags, s->map, flags);
    if (diag.n_errors > 0) {
        if (diag.text.size > 0 && diag.text.data[diag.text.size - 1] == '\n') {
            diag.text.data[diag.text.size - 1] = '\0';
        }
        status = tn_fail(err, TN_E_USAGE, "%s", tn_text_str(&diag.text));
    }
    tn_diag_done(&diag);
    return status;
}

static parser begin(const tn_program *p, tn_argv args, tn_arena *arena, tn_options *out)
{
    size_t n = args.n > 0 ? (size_t)args.n : 0;
    return (parser){.p = p,
                    .arena = arena,
                    .map = tn_tree_new(arena, TN_TREE_MAP, (tn_origin){.source = "command line"}),
                    .out = out,
                    .words = TN_NEW_ARRAY(arena, const char *, n),
                    .overrides = TN_NEW_ARRAY(arena, const char *, n),
                    .argc = args.n,
                    .argv = args.item,
                    .at = 1};
}

tn_status tn_options_parse(const tn_program *p, tn_argv args, tn_arena *arena, tn_options *out,
                           void *flags, tn_error *err)
{
    TN_ASSERT((p->flags == NULL) == (flags == NULL));
    tn_options options = {.args = args};
    parser s = begin(p, args, arena, &options);
    for (; s.at < s.argc && strcmp(s.argv[s.at], "--") != 0; s.at++) {
        TN_TRY(take(&s, err));
    }
    for (s.at++; s.at < s.argc; s.at++) {
        take_word(&s, s.argv[s.at]);
    }
    if (p->flags != NULL) {
        TN_TRY(bind_flags(&s, flags, err));
    }
    options.words.item = s.words;
    options.overrides.item = s.overrides;
    *out = options;
    return TN_OK;
}

tn_argv tn_options_without(const tn_program *p, tn_argv args, const char *key, tn_arena *arena)
{
    TN_ASSERT(args.n > 0);
    tn_options ignored = {0};
    parser s = begin(p, args, arena, &ignored);
    char **kept = TN_NEW_ARRAY(arena, char *, (size_t)args.n + 1);
    int n = 0;
    kept[n++] = args.item[0];
    for (bool ended = false; s.at < s.argc; s.at++) {
        int first = s.at;
        s.own = NULL;
        ended = ended || strcmp(s.argv[s.at], "--") == 0;
        tn_status status = ended ? TN_OK : take(&s, NULL);
        TN_ASSERT(status == TN_OK);
        bool dropped = s.own != NULL && strcmp(s.own->key, key) == 0;
        for (int i = first; i <= s.at && !dropped; i++) {
            kept[n++] = s.argv[i];
        }
    }
    kept[n] = NULL;
    return (tn_argv){n, kept};
}

/* The n-th word of "CONFIG [key=value ..]"; one of a choice of commands has no name. */
static tn_status word_missing(const tn_program *p, uint32_t n, tn_error *err)
{
    const char *at = p->words;
    for (; n > 0; n--) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    size_t size = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    return tn_fail(
        err, TN_E_USAGE, "no %.*s is given\nhint: %s %s%s%s\nhint: '%s --help' says more",
        size > 0 ? (int)size : 7, size > 0 ? at : "command", p->name, p->words,
        p->example != NULL ? ", as in: " : "", p->example != NULL ? p->example : "", p->name);
}

tn_status tn_options_check_words(const tn_program *p, const tn_options *options, tn_error *err)
{
    if (options->words.n >= p->words_min && options->words.n <= p->words_max) {
        return TN_OK;
    }
    if (options->words.n < p->words_min) {
        return word_missing(p, options->words.n, err);
    }
    return tn_fail(err, TN_E_USAGE, "one word too many: '%s'\nhint: %s %s",
                   options->words.item[p->words_max], p->name, p->words);
}

/* "--peers N" */
static tn_option_row row_of(const tn_field *f)
{
    static const char *const values[] = {
        [TN_KIND_U32] = "N",         [TN_KIND_U64] = "N",     [TN_KIND_F64] = "X",
        [TN_KIND_DURATION] = "TIME", [TN_KIND_SIZE] = "SIZE", [TN_KIND_STR] = "TEXT",
        [TN_KIND_CHOICE] = "WORD",   [TN_KIND_STRS] = "TEXT", [TN_KIND_F64S] = "X",
    };
    bool named = f->kind == TN_KIND_STR && f->unit[0] != '\0';
    bool known = (size_t)f->kind < sizeof values / sizeof *values && values[f->kind] != NULL;
    tn_option_row row = {
        .value = named   ? f->unit
                 : known ? values[f->kind]
                         : "",
        .bare = named && f->words != NULL,
        .help = f->help,
    };
    (void)flag_name(f, row.name);
    return row;
}

void tn_options_each(tn_text *out, const tn_program *p, tn_option_add *add, const void *ctx)
{
    for (const tn_field *f = p->flags; f != NULL && f->kind != TN_KIND_END; f++) {
        const tn_option_row row = row_of(f);
        add(out, &row, ctx);
    }
    for (const common_flag *f = common_flags; f->name != NULL; f++) {
        if (f->config && p->config == NULL) {
            continue;
        }
        tn_option_row row = {.letter = f->letter,
                             .value = f->value != NULL ? f->value : "",
                             .bare = f->value != NULL,
                             .help = f->help};
        (void)snprintf(row.name, sizeof row.name, "%s", f->name);
        add(out, &row, ctx);
    }
}
