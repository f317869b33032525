/* data_checks.c - finds files that two lists share, and slots that hold the answer. */
#include "train/config/data_checks.h"

#include "base/core/arena.h"
#include "base/core/text.h"
#include "base/file/file.h"
#include "config/diag.h"
#include "config/tree.h"
#include "io/format/format.h"
#include "io/read/fileset.h"
#include "io/schema/dataopts.h"
#include "io/source/remote.h"
#include "train/config/days.h"

#include <string.h>
#include <sys/stat.h>

enum {
    PIECE = 16 << 10,
    PIECES = 64,     /* bytes of a large file that are read, at equal distances */
    SMALL = 4 << 10, /* a file of fewer bytes may hold nothing but a header */
    SMALL_LINES = 2, /* a file of so many lines holds more than a header */
};

/* ---- files ---- */

typedef struct file_of {
    const char *path;
    struct stat st;
} file_of;

typedef struct files {
    uint32_t n;
    file_of *file;
} files;

/* Regular files that are there. */
static files find_files(const tn_strs *paths, tn_arena *arena)
{
    tn_strs names;
    tn_fileset_names(paths, arena, &names);
    files out = {.file = TN_NEW_ARRAY(arena, file_of, names.n + 1)};
    for (uint32_t i = 0; i < names.n; i++) {
        file_of *f = &out.file[out.n];
        f->path = names.item[i];
        out.n += stat(f->path, &f->st) == 0 && S_ISREG(f->st.st_mode) && f->st.st_size > 0;
    }
    return out;
}

static uint32_t count_lines(const char *bytes, size_t size)
{
    uint32_t n = 0;
    for (size_t i = 0; i < size; i++) {
        n += bytes[i] == '\n';
    }
    return n;
}

/* Whether pieces of two files of one size are equal, and more than a header. */
static bool have_same_pieces(const tn_infile *a, const tn_infile *b, uint64_t size)
{
    char mine[PIECE];
    char other[PIECE];
    uint32_t lines = 0;
    const uint64_t last = size > PIECE ? size - PIECE : 0;
    TN_ASSERT(size > 0);
    const uint64_t n = last / PIECE < PIECES ? last / PIECE + 2 : PIECES;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t at = last / (n - 1) * i + last % (n - 1) * i / (n - 1);
        const size_t bytes = size - at < PIECE ? (size_t)(size - at) : PIECE;
        if (tn_infile_read(a, at, mine, bytes, NULL) != TN_OK ||
            tn_infile_read(b, at, other, bytes, NULL) != TN_OK || memcmp(mine, other, bytes) != 0) {
            return false;
        }
        lines = i == 0 ? count_lines(mine, bytes) : lines;
    }
    return size > SMALL || lines >= SMALL_LINES;
}

static bool have_same_bytes(const file_of *a, const file_of *b)
{
    tn_infile *mine = NULL;
    tn_infile *other = NULL;
    if (a->st.st_size != b->st.st_size || tn_infile_open(&mine, a->path, NULL) != TN_OK) {
        return false;
    }
    bool same = tn_infile_open(&other, b->path, NULL) == TN_OK;
    if (same) {
        same = have_same_pieces(mine, other, (uint64_t)a->st.st_size);
        tn_infile_close(other);
    }
    tn_infile_close(mine);
    return same;
}

/* The paths that the model is trained on: of a run over days those of the days that are learned,
 * and unless these are known, those that are asked for. */
static tn_strs trained_paths(const tn_data_opts *data, const tn_learned_days *learned,
                             tn_arena *arena)
{
    if (data->pattern.n == 0) {
        return data->train;
    }
    const bool known = learned != NULL && learned->used;
    const tn_strs none = {0};
    const tn_strs asked = known ? none : tn_days_all_paths(data, arena);
    const tn_strs before = tn_days_learned_paths(data, learned, arena);
    const char **item = TN_NEW_ARRAY(arena, const char *, asked.n + before.n + 1);
    for (uint32_t i = 0; i < asked.n + before.n; i++) {
        item[i] = i < asked.n ? asked.item[i] : before.item[i - asked.n];
    }
    return (tn_strs){.n = asked.n + before.n, .item = item};
}

static bool is_same(const file_of *a, const file_of *b)
{
    return a->st.st_dev == b->st.st_dev && a->st.st_ino == b->st.st_ino;
}

bool tn_data_is_trained(const tn_data_opts *data, const tn_learned_days *learned,
                        const tn_strs *paths, tn_text *which)
{
    if (data->held != TN_HELD_NONE && paths->item == data->valid.item) {
        return false; /* only rows of these files that are not learned */
    }
    tn_arena *arena = tn_arena_new(1 << 14);
    const tn_strs train = trained_paths(data, learned, arena);
    const files asked = find_files(paths, arena);
    const files trained = find_files(&train, arena);
    bool found = false;
    for (uint32_t i = 0; i < paths->n && !found; i++) {
        found = tn_uri_is(paths->item[i]) && tn_strs_has(&train, paths->item[i]);
        if (found) {
            tn_text_addf(which, "'%s' is also in data.train", paths->item[i]);
        }
    }
    for (uint64_t i = 0; i < (uint64_t)asked.n * trained.n && !found; i++) {
        const file_of *a = &asked.file[i / trained.n];
        const file_of *b = &trained.file[i % trained.n];
        const bool same = is_same(a, b);
        found = same || have_same_bytes(a, b);
        if (found && strcmp(a->path, b->path) == 0) {
            tn_text_addf(which, "'%s' is also in data.train", a->path);
        } else if (found) {
            tn_text_addf(which, "'%s' is also in data.train: %s '%s'", a->path,
                         same ? "it is" : "it holds the bytes of", b->path);
        }
    }
    tn_arena_free(arena);
    return found;
}

/* ---- slots ---- */

static const char *label_column(const tn_data_opts *data)
{
    const tn_tree *t = data->label;
    const tn_tree *column =
        !tn_tree_is_null(t) && t->kind == TN_TREE_MAP ? tn_tree_get(t, "column") : t;
    if (tn_tree_is_null(column) || column->kind != TN_TREE_SCALAR) {
        return "label";
    }
    return !column->quoted && column == t && strcmp(t->text, "none") == 0 ? NULL : column->text;
}

static bool is(const char *column, const char *other)
{
    return column != NULL && other != NULL && strcmp(column, other) == 0;
}

/* The answer that a slot would give to the model. */
typedef struct answer {
    const char *column; /* NULL: none */
    const char *what;   /* "the label" */
} answer;

static bool reads(const tn_slot_opts *slot, const char *column)
{
    if (slot->cross.n > 0) {
        return false; /* it is made of others */
    }
    return is(slot->column != NULL ? slot->column : slot->name, column) || is(slot->values, column);
}

static answer answer_of(const tn_data_opts *data, const tn_slot_opts *slot)
{
    const char *label = label_column(data);
    const uint32_t n = data->tasks != NULL ? data->tasks->n_aside : 0;
    if (reads(slot, label)) {
        return (answer){label, "the label"};
    }
    if (reads(slot, data->weight)) {
        return (answer){data->weight, "the weight"};
    }
    for (uint32_t i = 0; i < n; i++) {
        const tn_aside *aside = &data->aside[i];
        TN_ASSERT(aside->column != NULL);
        if (reads(slot, aside->column)) {
            return (answer){aside->column,
                            aside->label != NULL ? "a task's label" : "a task's weight"};
        }
    }
    return (answer){NULL, NULL};
}

/* Records have columns of names, one of which may be a record's id. */
static bool has_columns(const tn_format *f)
{
    return tn_format_reads(f->data_options, "group") &&
           tn_format_reads(f->data_options, "record_id");
}

void tn_data_check_slots(const tn_binder *b, const tn_data_opts *data, const tn_tables *slots)
{
    const tn_format *format = data->format != NULL ? tn_format_find(data->format) : NULL;
    if (data->label_slots != TN_LABEL_SLOTS_REFUSE || format == NULL || !has_columns(format)) {
        return;
    }
    for (uint32_t i = 0; i < slots->n; i++) {
        const tn_slot_opts *o = (const tn_slot_opts *)slots->item + i;
        const answer found = answer_of(data, o);
        if (found.column != NULL) {
            static const tn_origin nowhere = {.source = "slots"};
            tn_diag_error(b->diag, slots->tree != NULL ? &slots->tree[i]->at : &nowhere,
                          "slot '%s' reads the column '%s', which is %s", o->name, found.column,
                          found.what);
            tn_diag_hint(b->diag, "a model that reads it knows the answer: leave the slot out, or "
                                  "say data.label_slots=allow");
        }
    }
}
