/* fileset.c - paths to files, files to parts. */
#include "io/read/fileset.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/core/log.h"
#include "base/file/file.h"
#include "base/file/output_file.h"
#include "io/arrow/cells_format.h"
#include "io/format/delimited.h"
#include "io/format/format.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"
#include "io/source/decompress.h"
#include "io/source/producer.h"
#include "io/source/remote.h"
#include "io/source/source.h"

#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES_MAX = 10000000, PARTS_MAX = 100000000, ARENA_BYTES = 1 << 16 };
enum {
    PARTS_OF_RANK = 4,         /* at least, where files can be cut */
    SHARED_FILES_MAX = 1 << 18 /* times ranks: with more of them each is some rank's alone */
};

/* Paths as they are found. */
typedef struct listing {
    tn_arena *arena;
    tn_file_entry *file;
    uint32_t n;
    uint32_t capacity;
    const char *secrets;
    tn_remote *remote; /* owned; NULL: no URI was met */
    bool local;        /* URIs are passed over */
} listing;

static tn_status add_file(listing *l, const char *path, uint64_t size, bool once, tn_error *err)
{
    TN_TRY(tn_alloc_check(err));
    if (l->n == l->capacity) {
        uint32_t more = l->capacity == 0 ? 64 : 2 * l->capacity;
        if (more > FILES_MAX) {
            return tn_fail(err, TN_E_LIMIT, "more than %d files", FILES_MAX);
        }
        TN_TRY(tn_arena_reserve(l->arena, (more + (size_t)1) * sizeof(tn_file_entry),
                                "names of files", err));
        tn_file_entry *file = TN_NEW_ARRAY(l->arena, tn_file_entry, more);
        if (l->n > 0) {
            memcpy(file, l->file, l->n * sizeof *file);
        }
        l->file = file;
        l->capacity = more;
    }
    size_t length = strlen(path) + 1;
    char *copy = tn_arena_alloc(l->arena, length, 1, 1);
    memcpy(copy, path, length);
    l->file[l->n++] = (tn_file_entry){.path = copy, .size = size, .once = once};
    return TN_OK;
}

static tn_status add_objects(listing *l, const char *uri, tn_error *err)
{
    tn_remote_object *object = NULL;
    uint32_t n = 0;
    if (l->local) {
        return TN_OK;
    }
    TN_TRY(l->remote != NULL ? TN_OK : tn_remotes()->open(&l->remote, l->secrets, err));
    TN_TRY(tn_remotes()->list(l->remote, uri, l->arena, &object, &n, err));
    for (uint32_t i = 0; i < n; i++) {
        TN_TRY(add_file(l, object[i].uri, object[i].size, false, err));
        l->file[l->n - 1].object = &object[i];
    }
    return TN_OK;
}

/* A file, or every file in a folder; `nested`: folders are passed over. */
static tn_status add_path(listing *l, const char *path, bool nested, tn_error *err);

static tn_status add_folder(listing *l, const char *path, tn_error *err)
{
    tn_text names = {0};
    tn_text full = {0};
    uint32_t n = 0;
    tn_status status = tn_dir_list(path, &names, &n, err);
    const char *name = tn_text_str(&names);
    uint32_t before = l->n;
    for (uint32_t i = 0; i < n && status == TN_OK; i++, name += strlen(name) + 1) {
        if (name[0] == '.' || name[0] == '_') {
            continue;
        }
        tn_text_clear(&full);
        tn_text_addf(&full, "%s%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/", name);
        status = tn_text_check(&full, "a path", err);
        status = status == TN_OK ? add_path(l, full.data, true, err) : status;
    }
    if (status == TN_OK && l->n == before) {
        status = tn_fail(err, TN_E_DATA, "no files in folder '%s'", path);
    }
    tn_text_done(&names);
    tn_text_done(&full);
    return status;
}

static tn_status add_path(listing *l, const char *path, bool nested, tn_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        bool named_wrong =
            errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG || errno == ELOOP;
        return tn_fail(err, named_wrong ? TN_E_DATA : TN_E_IO, "cannot find '%s': %s", path,
                       strerrordesc_np(errno));
    }
    if (S_ISDIR(st.st_mode)) {
        return nested ? TN_OK : add_folder(l, path, err);
    }
    bool regular = S_ISREG(st.st_mode);
    if (nested && !regular) {
        return TN_OK;
    }
    return add_file(l, path, regular ? (uint64_t)st.st_size : UINT64_MAX, !regular, err);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static tn_status add_pattern(listing *l, const char *pattern, tn_error *err)
{
    glob_t found;
    int result = glob(pattern, GLOB_NOSORT, NULL, &found); // NOLINT(concurrency-mt-unsafe)
    if (result == GLOB_NOSPACE) {
        return tn_fail(err, TN_E_MEMORY, "no memory to list '%s'", pattern);
    }
    tn_status status = TN_OK;
    if (result != 0 || found.gl_pathc == 0) {
        status = tn_fail(err, TN_E_DATA, "no file matches '%s'", pattern);
    } else {
        qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_bytes);
    }
    for (size_t i = 0; status == TN_OK && i < found.gl_pathc; i++) {
        status = add_path(l, found.gl_pathv[i], false, err);
    }
    globfree(&found);
    return status;
}

/* The first "{..,..}" of a pattern, with braces within it matched. False: there is none. */
static bool find_braces(const char *item, size_t *open, size_t *close)
{
    for (size_t i = 0; item[i] != '\0'; i++) {
        uint32_t depth = 0;
        bool comma = false;
        for (size_t k = i; item[i] == '{' && item[k] != '\0'; k++) {
            depth += item[k] == '{';
            depth -= item[k] == '}';
            comma = comma || (item[k] == ',' && depth == 1);
            if (depth == 0 && comma) {
                *open = i;
                *close = k;
                return true;
            }
            if (depth == 0) {
                break;
            }
        }
    }
    return false;
}

static tn_status add_item(listing *l, const char *item, tn_error *err);

/* "a{b,c}d" is the items "abd" and "acd", in this order, each of which must be there. */
static tn_status add_alternatives(listing *l, const char *item, size_t open, size_t close,
                                  tn_error *err)
{
    tn_text one = {0};
    tn_status status = TN_OK;
    for (size_t from = open + 1, to = from; from <= close && status == TN_OK; from = ++to) {
        for (uint32_t depth = 0; to < close && (item[to] != ',' || depth > 0); to++) {
            depth += item[to] == '{';
            depth -= item[to] == '}';
        }
        tn_text_clear(&one);
        tn_text_add(&one, item, open);
        tn_text_add(&one, item + from, to - from);
        tn_text_adds(&one, item + close + 1);
        status = tn_text_check(&one, "a path", err);
        status = status == TN_OK ? add_item(l, tn_text_str(&one), err) : status;
    }
    tn_text_done(&one);
    return status;
}

static tn_status add_item(listing *l, const char *item, tn_error *err)
{
    struct stat st;
    size_t open = 0;
    size_t close = 0;
    bool remote = false;
    TN_TRY(tn_remotes()->is(item, &remote, err));
    if (tn_source_is_once(item) || tn_producer_of(item) != NULL) {
        TN_TRY(add_file(l, item, UINT64_MAX, tn_source_is_once(item), err));
        l->file[l->n - 1].in_memory = !tn_source_is_once(item);
        return TN_OK;
    }
    if (!remote && (strpbrk(item, "*?[{") == NULL || stat(item, &st) == 0)) {
        return add_path(l, item, false, err);
    }
    if (find_braces(item, &open, &close)) {
        return add_alternatives(l, item, open, close, err);
    }
    if (remote) {
        return add_objects(l, item, err);
    }
    return strpbrk(item, "*?[") != NULL ? add_pattern(l, item, err) : add_path(l, item, false, err);
}

/* By the first bytes. */
static tn_status sniff(tn_source *source, bool binary, uint32_t *compression, tn_error *err)
{
    tn_bytes first;
    TN_TRY(tn_source_peek(source, &first, err));
    return tn_compression_of(first, binary, tn_source_path(source), compression, err);
}

static tn_status find_compression(listing *l, const tn_file_entry *file, bool binary, uint32_t *out,
                                  tn_error *err)
{
    tn_source *source = NULL;
    if (file->object != NULL) {
        TN_TRY(tn_remotes()->probe(l->remote, file->object, l->arena, err));
        const tn_bytes first = {file->object->first, file->object->n_first, false};
        return tn_compression_of(first, binary, file->path, out, err);
    }
    TN_TRY(tn_source_open(&source, file->path, 0, NULL, err));
    tn_status status = sniff(source, binary, out, err);
    tn_source_close(source);
    return status;
}

/* A file that cannot be opened twice is looked at when it is read. */
static tn_status find_compressions(listing *l, const tn_schema *schema, const tn_format *format,
                                   tn_error *err)
{
    const bool binary = format != NULL && format->binary;
    uint32_t compression = TN_COMPRESSION_AUTO;
    TN_TRY(tn_format_compression(format, schema->data->compression, &compression, err));
    for (uint32_t i = 0; i < l->n; i++) {
        l->file[i].compression = l->file[i].in_memory ? TN_COMPRESSION_NONE : compression;
        if (l->file[i].compression == TN_COMPRESSION_AUTO && !l->file[i].once) {
            TN_TRY(find_compression(l, &l->file[i], binary, &l->file[i].compression, err));
        }
    }
    return TN_OK;
}

static bool is_cut(const tn_file_entry *file, const tn_schema *schema)
{
    const bool ranged = file->object == NULL || file->object->ranged;
    return file->compression == TN_COMPRESSION_NONE && !file->once && ranged &&
           file->size != UINT64_MAX && schema->quote != TN_QUOTE_MULTILINE;
}

/* Bytes that all ranks together take of a file at a time, a part each. */
static uint64_t unit_bytes(const tn_fileset *files, const tn_schema *schema)
{
    const uint64_t part = schema->data->part_bytes;
    uint64_t cut = 0;
    for (uint32_t i = 0; i < files->n; i++) {
        cut += is_cut(&files->file[i], schema) ? files->file[i].size : 0;
    }
    const uint64_t most = part < UINT64_MAX / files->ranks ? part * files->ranks : UINT64_MAX;
    const uint64_t few = cut / PARTS_OF_RANK + 1;
    return few < most ? few : most;
}

/* How many parts a file is cut into. */
static uint64_t count_parts(const tn_fileset *files, const tn_schema *schema, uint32_t file,
                            uint64_t unit)
{
    const uint64_t size = files->file[file].size;
    if (!is_cut(&files->file[file], schema) || size < files->ranks) {
        return 1;
    }
    uint64_t units = size > 0 ? (size - 1) / unit + 1 : 1;
    const uint64_t most = size > 0 ? size / files->ranks : 1;
    units = units < most ? units : most;
    return units * files->ranks;
}

/* Returns the end of part k of n. */
static uint64_t end_of(uint64_t size, uint64_t k, uint64_t n, uint64_t step)
{
    const uint64_t more = size % n;
    const uint64_t even = size / n * (k + 1) + (k + 1 < more ? k + 1 : more);
    return step == 0 ? even : k + 1 < n ? (k + 1) * step : size;
}

static tn_status make_parts(tn_fileset *files, const tn_schema *schema, tn_error *err)
{
    files->ranks = files->n <= SHARED_FILES_MAX / files->ranks ? files->ranks : 1;
    const uint64_t step = files->ranks > 1 ? 0 : schema->data->part_bytes;
    const uint64_t unit = files->ranks > 1 ? unit_bytes(files, schema) : step;
    uint64_t n = 0;
    for (uint32_t i = 0; i < files->n; i++) {
        n += count_parts(files, schema, i, unit);
    }
    if (n > PARTS_MAX) {
        return tn_fail(err, TN_E_LIMIT,
                       "the data has %llu parts, more than %d\nhint: raise "
                       "data.part_bytes",
                       (unsigned long long)n, PARTS_MAX);
    }
    TN_TRY(tn_arena_reserve(files->arena, (n + 2) * sizeof(tn_part_info), "parts of files", err));
    tn_part_info *part = TN_NEW_ARRAY(files->arena, tn_part_info, n + 1);
    uint32_t p = 0;
    bool known = true;
    for (uint32_t i = 0; i < files->n; i++) {
        const uint64_t size = files->file[i].size;
        const bool cut = is_cut(&files->file[i], schema);
        const uint64_t of_file = count_parts(files, schema, i, unit);
        uint64_t from = 0;
        for (uint64_t k = 0; k < of_file; k++) {
            const uint64_t end = cut ? end_of(size, k, of_file, step) : UINT64_MAX;
            part[p++] = (tn_part_info){.source = i, .first = from, .end = end};
            from = end;
        }
        known = known && size != UINT64_MAX;
        files->bytes += known ? size : 0;
    }
    TN_ASSERT(p == n);
    files->bytes = known ? files->bytes : 0;
    files->part = part;
    files->n_parts = p;
    return TN_OK;
}

uint32_t tn_fileset_unit(const tn_fileset *files, uint32_t part)
{
    const bool alone = files->ranks == 1 || part + 1 == files->n_parts ||
                       files->part[part + 1].source != files->part[part].source;
    return alone ? 1 : files->ranks;
}

/* ---- the line of a byte, found only when a message needs it ----
 *
 * Nobody counts lines while parsing, and a part may begin anywhere. The first fault of a part
 * counts from the nearest place whose line is known; that place and every beginning of a part on
 * the way are kept, so that any number of faults costs one more pass over the file, not one each.
 *
 *     file     |....part 0....|....part 1....|....part 2....|
 *     known    0              17             x    ^ the furthest place asked for: line 40
 */

enum { PIECE_BYTES = 1 << 16 };

#define UNKNOWN UINT64_MAX

/* A byte of a file, and how many lines end before it. */
typedef struct mark {
    uint64_t at;
    uint64_t lines; /* UNKNOWN: not counted yet */
} mark;

struct tn_line_numbers {
    pthread_mutex_t lock;
    /* guarded by `lock`; n_parts, NULL before the first question: */
    mark *begin;    /* per part: its begin */
    mark *furthest; /* per part: the furthest byte asked for */
};

/* NULL is fine. */
static void line_numbers_free(struct tn_line_numbers *lines)
{
    if (lines != NULL) {
        (void)pthread_mutex_destroy(&lines->lock);
        tn_free(lines->begin);
        tn_free(lines->furthest);
        tn_free(lines);
    }
}

tn_status tn_fileset_new(tn_fileset **out, const tn_strs *paths, const tn_schema *schema,
                         uint32_t ranks, tn_error *err)
{
    TN_ASSERT(ranks > 0);
    *out = NULL;
    tn_arena *arena = tn_arena_new(ARENA_BYTES);
    tn_fileset *files = TN_NEW(arena, tn_fileset);
    listing l = {.arena = arena, .secrets = schema->data->secrets};
    tn_status status = paths->n > 0 ? TN_OK : tn_fail(err, TN_E_DATA, "no data files are named");
    for (uint32_t i = 0; i < paths->n && status == TN_OK; i++) {
        status = add_item(&l, paths->item[i], err);
    }
    const tn_format *format = tn_format_find(schema->data->format);
    files->binary = format != NULL && format->binary;
    files->container = format != NULL ? format->container : NULL;
    files->record_max = schema->data->record_bytes_max;
    files->arena = arena;
    files->remote = l.remote;
    files->n = l.n;
    files->file = l.file;
    files->ranks = ranks;
    status = status == TN_OK ? find_compressions(&l, schema, format, err) : status;
    status = status == TN_OK ? make_parts(files, schema, err) : status;
    if (status == TN_OK) {
        status = TN_ALLOC(files->lines, 1, "counts of lines", err);
    }
    if (status != TN_OK) {
        tn_fileset_free(files);
        return status;
    }
    (void)pthread_mutex_init(&files->lines->lock, NULL);
    *out = files;
    return TN_OK;
}

void tn_fileset_names(const tn_strs *paths, tn_arena *arena, tn_strs *out)
{
    listing l = {.arena = arena, .local = true};
    for (uint32_t i = 0; i < paths->n; i++) {
        const tn_status status = add_item(&l, paths->item[i], NULL);
        (void)status; /* one that is not found adds nothing */
    }
    const char **name = TN_NEW_ARRAY(arena, const char *, (size_t)l.n + 1);
    for (uint32_t k = 0; k < l.n; k++) {
        name[k] = l.file[k].path;
    }
    *out = (tn_strs){.n = l.n, .item = name};
}

tn_status tn_fileset_inputs(const tn_strs *paths, tn_inputs *out, tn_error *err)
{
    tn_arena *arena = tn_arena_new(ARENA_BYTES);
    tn_status status = TN_OK;
    tn_strs names;
    tn_fileset_names(paths, arena, &names);
    for (uint32_t i = 0; i < names.n && status == TN_OK; i++) {
        status = tn_inputs_add(out, names.item[i], err);
    }
    tn_arena_free(arena);
    return status;
}

tn_status tn_fileset_first(const tn_strs *paths, tn_arena *arena, const char **out, tn_error *err)
{
    listing l = {.arena = arena, .local = true};
    for (uint32_t i = 0; i < paths->n && l.n == 0; i++) {
        TN_TRY(add_item(&l, paths->item[i], err));
    }
    if (l.n == 0 || l.file[0].once) {
        return tn_fail(err, TN_E_DATA, "cannot look ahead in '%s'\nhint: list the slots",
                       paths->n > 0 ? paths->item[0] : "");
    }
    *out = l.file[0].path;
    return TN_OK;
}

tn_status tn_fileset_look(const tn_strs *paths, const char *secrets, tn_error *err)
{
    tn_arena *arena = tn_arena_new(ARENA_BYTES);
    listing l = {.arena = arena, .secrets = secrets};
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < paths->n && status == TN_OK; i++) {
        status = add_item(&l, paths->item[i], err);
    }
    tn_remotes()->close(l.remote);
    tn_arena_free(arena);
    return status;
}

tn_status tn_fileset_check_hosts(const tn_data_opts *data, const tn_strs *more, bool warn,
                                 tn_error *err)
{
    const tn_strs *const lists[] = {&data->train, &data->pattern, &data->valid, &data->test, more};
    const uint32_t n = sizeof lists / sizeof lists[0];
    return data->secrets != NULL ? tn_remotes()->check_hosts(data->secrets, lists, n, warn, err)
                                 : TN_OK;
}

void tn_fileset_free(tn_fileset *files)
{
    if (files != NULL) {
        line_numbers_free(files->lines);
        tn_remotes()->close(files->remote);
        tn_arena_free(files->arena);
    }
}

const tn_format *tn_fileset_format(const tn_fileset *files, uint32_t file, const tn_schema *schema)
{
    return files->file[file].in_memory ? &tn_cells_format : tn_format_find(schema->data->format);
}

tn_status tn_fileset_open(const tn_fileset *files, uint32_t file, uint64_t from,
                          const atomic_bool *stop, tn_source **out, tn_error *err)
{
    const tn_file_entry *f = &files->file[file];
    uint32_t compression = f->compression;
    tn_source *source = NULL;
    *out = NULL;
    TN_TRY(f->object != NULL
               ? tn_source_open_object(&source, files->remote, f->object, from, stop, err)
               : tn_source_open(&source, f->path, from, stop, err));
    tn_status status = TN_OK;
    if (compression == TN_COMPRESSION_AUTO) { /* a pipe: never read before */
        status = sniff(source, files->binary, &compression, err);
    }
    if (status == TN_OK && compression != TN_COMPRESSION_NONE) {
        tn_source_set_container(source, files->container, files->record_max);
        status = tn_source_decompress(source, compression, err);
    }
    if (status != TN_OK) {
        tn_source_close(source);
        return status;
    }
    *out = source;
    return TN_OK;
}

/* The header in the first bytes of a file. TN_END: more of them are needed. */
static tn_status find_header(tn_bytes window, bool last, const tn_schema *schema, tn_bytes *out,
                             tn_error *err)
{
    const tn_format *format = tn_format_find(schema->data->format);
    const size_t skip = window.size >= 3 && memcmp(window.data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    window.data += skip;
    window.size -= skip;
    do {
        TN_TRY(format->cut(&window, last, schema, out, err));
    } while (tn_delimited_is_nothing(*out, schema));
    return TN_OK;
}

tn_status tn_fileset_header(const tn_fileset *files, uint32_t file, const tn_schema *schema,
                            tn_text *out, tn_error *err)
{
    enum { STEP = 1 << 16 };
    tn_source *source = NULL;
    tn_bytes header = {"", 0, false};
    TN_ASSERT(out->size == 0);
    TN_TRY(tn_fileset_open(files, file, 0, NULL, &source, err));
    tn_status status = TN_END;
    for (size_t n = STEP; status == TN_END && n == STEP;) {
        char *to = tn_text_grow(out, STEP);
        status = tn_text_check(out, "a header", err);
        status = status == TN_OK ? tn_source_read(source, to, STEP, &n, err) : status;
        if (status == TN_OK) {
            out->size -= STEP - n;
            const tn_bytes window = {out->data, out->size, false};
            status = find_header(window, n < STEP, schema, &header, err);
        }
    }
    tn_source_close(source);
    if (status == TN_OK && header.size > 0) {
        memmove(out->data, header.data, header.size);
    }
    out->size = header.size;
    return status == TN_END ? TN_OK : status;
}

uint64_t tn_count_lines(const char *data, size_t size)
{
    uint64_t n = 0;
    const char *end = data + size;
    for (const char *p = data; p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++) {
        n++;
    }
    return n;
}

/* Room for what will be known; false: no memory. */
static bool make_room(struct tn_line_numbers *l, const tn_fileset *files)
{
    uint32_t n = files->n_parts;
    if (l->furthest != NULL) {
        return true;
    }
    if ((l->begin == NULL && TN_ALLOC(l->begin, n, "counts of lines", NULL) != TN_OK) ||
        TN_ALLOC(l->furthest, n, "counts of lines", NULL) != TN_OK) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t first = files->part[i].first;
        l->begin[i] = (mark){first, first == 0 ? 0 : UNKNOWN};
        l->furthest[i] = (mark){first, UNKNOWN};
    }
    return true;
}

/* The last part of `file` that begins at or before a byte. */
static uint32_t part_of(const tn_fileset *files, uint32_t file, uint64_t offset)
{
    uint32_t from = 0;
    uint32_t n = files->n_parts;
    while (n > 1) {
        uint32_t half = n / 2;
        const tn_part_info *p = &files->part[from + half];
        bool before = p->source < file || (p->source == file && p->first <= offset);
        from = before ? from + half : from;
        n = before ? n - half : half;
    }
    TN_ASSERT(files->part[from].source == file);
    return from;
}

/* The nearest place at or before a byte of part `p` whose line is known. */
static mark nearest(const struct tn_line_numbers *l, uint32_t p, uint64_t offset)
{
    for (;; p--) {
        if (l->furthest[p].lines != UNKNOWN && l->furthest[p].at <= offset) {
            return l->furthest[p];
        }
        if (l->begin[p].lines != UNKNOWN) { /* the first part of a file has one */
            return l->begin[p];
        }
    }
}

/* Counts on to byte `to`; false: it cannot be read. */
static bool count_to(tn_source *source, mark *m, uint64_t to)
{
    char piece[PIECE_BYTES];
    while (m->at < to) {
        size_t n = 0;
        uint64_t left = to - m->at;
        size_t size = left < sizeof piece ? (size_t)left : sizeof piece;
        if (tn_source_read(source, piece, size, &n, NULL) != TN_OK || n < size) {
            return false;
        }
        m->lines += tn_count_lines(piece, n);
        m->at += n;
    }
    return true;
}

static bool count_lines_of(struct tn_line_numbers *l, const tn_fileset *files, uint32_t file,
                           mark *m)
{
    uint64_t offset = m->at;
    uint32_t last = part_of(files, file, offset);
    tn_source *source = NULL;
    *m = nearest(l, last, offset);
    if (tn_fileset_open(files, file, m->at, NULL, &source, NULL) != TN_OK) {
        return false;
    }
    bool good = true;
    for (uint32_t p = part_of(files, file, m->at) + 1; good && p <= last; p++) {
        good = count_to(source, m, files->part[p].first);
        l->begin[p].lines = good ? m->lines : UNKNOWN;
    }
    good = good && count_to(source, m, offset);
    if (good && (l->furthest[last].lines == UNKNOWN || l->furthest[last].at < offset)) {
        l->furthest[last] = *m;
    }
    tn_source_close(source);
    return good;
}

bool tn_fileset_lines_before(const tn_fileset *files, uint32_t file, uint64_t offset, uint64_t *out)
{
    struct tn_line_numbers *l = files->lines;
    mark m = {offset, 0};
    (void)pthread_mutex_lock(&l->lock);
    bool good = make_room(l, files) && count_lines_of(l, files, file, &m);
    (void)pthread_mutex_unlock(&l->lock);
    if (good) {
        *out = m.lines;
    }
    return good;
}
