/* data_tool.c - the words of a command line become the input of a tool. */
#include "cli/data_tool.h"

#include "base/core/arena.h"
#include "base/core/log.h"
#include "base/file/output_file.h"
#include "base/thread/threads.h"
#include "cli/signals.h"
#include "config/diag.h"
#include "config/fieldtree.h"
#include "config/tree.h"
#include "config/yaml.h"
#include "io/format/format.h"
#include "train/config/choices.h"
#include "train/config/config.h"
#include "train/config/days.h"
#include "train/config/run.h"
#include "train/config/run_loss.h"
#include "train/config/run_tasks.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const tn_thread_words[] = {"all", NULL};
const char *const tn_compression_words[] = {"auto", "none", "gzip", "zlib", NULL};

/* Models are none of our business: whatever preset a configuration names is as good as empty. */
static const char *model_preset(const char *model, const char *preset)
{
    (void)model;
    (void)preset;
    return "{}";
}

static const tn_presets presets = {
    .format = tn_format_preset, .model = model_preset, .spread = tn_tasks_spread};

static bool begins_with(const char *text, const char *head)
{
    return strncmp(text, head, strlen(head)) == 0;
}

/* "format=csv" as "data.format=csv". Keys with a section stay, and so do sections; a key of `data`
 * that is a section, too, is that of `data`: here nothing is trained. */
static const char *with_section(tn_arena *arena, const char *word)
{
    size_t key = strcspn(word, ".=");
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s", (int)(key < 63 ? key : 63), word);
    bool of_data = tn_field_find(tn_data_fields, name) != NULL;
    bool section = tn_field_find(tn_run_fields, name) != NULL;
    if ((section && (word[key] == '.' || !of_data)) || begins_with(word, "day=")) {
        return word;
    }
    if (word[key] == '.' && !of_data) {
        return word; /* an unknown name is reported with the others */
    }
    size_t size = strlen(word) + sizeof "data.";
    char *out = TN_NEW_ARRAY(arena, char, size);
    (void)snprintf(out, size, "data.%s", word);
    return out;
}

/* Whether a tool listens to an option: a section of a file may say more, a word may not. */
static tn_status check_word(const char *asked, const char *word, bool target, tn_error *err)
{
    if (begins_with(word, "data.") || begins_with(word, "data=") ||
        (!target && (begins_with(word, "slots.") || begins_with(word, "slots=") ||
                     begins_with(word, "loss.") || begins_with(word, "loss=")))) {
        return TN_OK;
    }
    size_t key = strcspn(word, ".=");
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s", (int)(key < 63 ? key : 63), word);
    if (tn_field_find(tn_run_fields, name) == NULL) {
        return TN_OK; /* an unknown name is reported with the others */
    }
    return tn_fail(err, TN_E_CONFIG, "'%s' changes nothing here: only options of %s do", asked,
                   target ? "'data'"
                          : "'data' and 'slots', and 'loss', which says what labels are,");
}

/* data.train=["<path>", ..], as YAML. */
static const char *train_override(tn_arena *arena, const tn_strs *paths)
{
    tn_text text = {0};
    tn_text_adds(&text, "data.train=[");
    for (uint32_t i = 0; i < paths->n; i++) {
        tn_text_adds(&text, i > 0 ? ", " : "");
        tn_tree_print_scalar(&text, paths->item[i]);
    }
    tn_text_addc(&text, ']');
    const char *word = tn_tree_text(arena, tn_text_str(&text), text.size);
    tn_text_done(&text);
    return word;
}

/* The words of the command line, those of the input and those of the output apart. */
typedef struct word_lists {
    const char **in, **to;
    uint32_t n_in, n_to;
} word_lists;

static tn_status part_words(word_lists *out, tn_arena *arena, const tn_strs *words,
                            const tn_strs *from, tn_error *err)
{
    word_lists lists = {
        .in = TN_NEW_ARRAY(arena, const char *, words->n + 1),
        .to = TN_NEW_ARRAY(arena, const char *, words->n + 1),
    };
    for (uint32_t i = 0; i < words->n; i++) {
        const char *asked = words->item[i];
        bool target = begins_with(asked, "to.");
        const char *word = with_section(arena, asked + (target ? strlen("to.") : 0));
        TN_TRY(check_word(asked, word, target, err));
        if (target) {
            lists.to[lists.n_to++] = word;
        } else {
            lists.in[lists.n_in++] = word;
        }
    }
    if (from->n > 0) {
        lists.in[lists.n_in++] = train_override(arena, from);
    }
    *out = lists;
    return TN_OK;
}

/* Sections that no configuration has. */
static void check_sections(const tn_tree *root, tn_diag *diag)
{
    for (const tn_tree *t = root->first; t != NULL; t = t->next) {
        if (tn_field_find(tn_run_fields, t->key) == NULL) {
            tn_diag_error(diag, &t->key_at, "unknown key '%s'", t->key);
        }
    }
}

static tn_status load(tn_data_input *in, const char *config, const word_lists *words,
                      const tn_tree **root, tn_error *err)
{
    tn_setup *s = in->setup;
    const tn_config_in from = {
        .fields = tn_run_fields,
        .presets = &presets,
        .path = config,
        .env = (const char *const *)environ,
        .overrides = words->in,
        .n_overrides = words->n_in,
    };
    const tn_tree *tree = tn_config_load(&from, s->arena, &s->diag);
    *root = tree != NULL ? tn_days_unfold(&s->binder, tree) : NULL;
    const tn_config_in to = {
        .fields = tn_run_fields,
        .overrides = words->to,
        .n_overrides = words->n_to,
    };
    const tn_tree *target = words->n_to > 0 ? tn_config_load(&to, s->arena, &s->diag) : NULL;
    in->to = tn_tree_get(target, "data");
    if (*root != NULL) {
        check_sections(*root, &s->diag);
    }
    return *root == NULL || (words->n_to > 0 && target == NULL)
               ? tn_fail(err, TN_E_CONFIG, "the configuration could not be read")
               : TN_OK;
}

const tn_tree *tn_data_preset(tn_setup *s, const tn_format *format)
{
    char word[64];
    const char *const words[] = {word};
    (void)snprintf(word, sizeof word, "data.format=%s", format->name);
    const tn_config_in in = {
        .fields = tn_run_fields, .presets = &presets, .overrides = words, .n_overrides = 1};
    return format->preset != NULL ? tn_config_load(&in, s->arena, &s->diag) : NULL;
}

static tn_status open_input(tn_data_input *in, const tn_options *options, tn_data_ask ask,
                            tn_error *err)
{
    tn_setup *s = in->setup;
    word_lists words;
    const tn_strs from = {ask.from != NULL, &ask.from};
    TN_TRY(part_words(&words, s->arena, &options->overrides, ask.files ? &options->words : &from,
                      err));
    const char *config = options->words.n > 0 && !ask.files ? options->words.item[0] : NULL;
    const tn_tree *root = NULL;
    TN_TRY(load(in, config, &words, &root, err));
    in->root = root;
    if (ask.complete != NULL) {
        TN_TRY(ask.complete(in, &root, err));
    }
    TN_TRY(tn_dataset_bind(&in->from, root, ask.flags, tn_loss_target(root), &s->binder, err));
    if (in->to == NULL) { /* else the other format may read them */
        tn_format_check_slots(&s->binder, in->from.data.format, &in->from.slots);
        TN_TRY(tn_diag_check(&s->diag, err));
    }
    in->paths = in->from.data.train;
    if (in->paths.n == 0) {
        return tn_fail(err, TN_E_USAGE,
                       "no data to read\nhint: '--from PATH' or 'train=PATH' names it, '-' is "
                       "standard input");
    }
    TN_TRY(tn_inputs_of(&s->inputs, root, config, &in->from.data, err));
    return tn_data_team(ask.threads, &in->team, err);
}

tn_status tn_data_use(tn_setup *s, const tn_options *options, tn_data_ask ask,
                      tn_status (*use)(tn_data_input *in, const void *flags, tn_error *err),
                      const void *flags, tn_error *err)
{
    tn_data_input in = {.setup = s};
    tn_status status = open_input(&in, options, ask, err);
    status = status == TN_OK ? use(&in, flags, err) : status;
    tn_team_close(in.team);
    return status;
}

tn_status tn_data_team(uint32_t threads, tn_team **out, tn_error *err)
{
    return tn_team_open(out, threads == TN_WORD_U32(0) ? tn_cpu_count() : threads, err);
}

tn_status tn_data_sink(const char *path, const char *format, const tn_inputs *inputs,
                       uint32_t compression, tn_sink **out, tn_error *err)
{
    TN_TRY(tn_format_compression(tn_format_find(format), compression, &compression, err));
    const tn_output_with with = {.inputs = inputs, .tell = true, .announce = tn_signals_remove};
    return tn_sink_open(out, path, &with, compression, err);
}

tn_status tn_data_keep(const char *path, bool force, tn_error *err)
{
    struct stat there;
    return !force && !tn_output_is_stdout(path) && stat(path, &there) == 0 && S_ISREG(there.st_mode)
               ? tn_fail(err, TN_E_USAGE,
                         "'%s' is there already\nhint: '--force' replaces it, with what may have "
                         "been changed in it",
                         path)
               : TN_OK;
}

FILE *tn_data_counts_to(const char *path)
{
    return tn_output_is_stdout(path) ? stderr : stdout;
}

void tn_data_print_counts(FILE *out, const tn_row_scan_counts *n)
{
    (void)fprintf(out, "rows %llu, blank %llu, bad %llu, duplicate names %llu",
                  (unsigned long long)n->rows, (unsigned long long)n->blank,
                  (unsigned long long)n->bad, (unsigned long long)n->duplicate_key);
}
