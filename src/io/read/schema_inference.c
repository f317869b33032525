/* schema_inference.c - slots of libffm, libfm and vw files and the base of indices, from the head
 * of the first file. */
#include "io/read/schema_inference.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/core/log.h"
#include "base/core/number.h"
#include "io/format/delimited.h"
#include "io/format/format.h"
#include "io/read/block_reader.h"
#include "io/read/fileset.h"
#include "io/schema/dataopts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LINES_MAX = 10000, BASE_ROWS = 1000, SCAN_BYTES_MAX = 64 << 20 };

/* Findings in the lines so far. */
typedef struct seen {
    bool ffm;
    bool undecided; /* libfm: the first pair says whether there are fields */
    bool libfm;     /* a base counts for fields, too */
    bool zero;      /* index 0, within the first rows */
    uint32_t rows;
    uint32_t n_fields;                       /* the highest, and 1 */
    unsigned char field[TN_COLUMNS_MAX + 1]; /* 1: it occurs */
    tn_arena *arena;                         /* vw: of the names of namespaces */
    uint32_t n_names;
    uint32_t name_guess; /* most lines name the same ones in the same order */
    const char *name[TN_SLOTS_MAX + 1];
} seen;

/* False: no such field can be. */
static bool see_field(seen *s, uint64_t number)
{
    if (number <= TN_COLUMNS_MAX) {
        s->zero = s->zero || (s->libfm && number == 0 && s->rows < BASE_ROWS);
        s->field[number] = 1;
        s->n_fields = number >= s->n_fields ? (uint32_t)number + 1 : s->n_fields;
    }
    return number <= TN_COLUMNS_MAX;
}

/* The pieces of field:index:value that are numbers; what is damaged is left to the parser. */
static void see_pair(seen *s, tn_bytes pair)
{
    const char *colon = memchr(pair.data, ':', pair.size);
    size_t first = colon != NULL ? (size_t)(colon - pair.data) : pair.size;
    uint64_t number;
    if (s->undecided) {
        s->ffm = colon != NULL && memchr(colon + 1, ':', pair.size - first - 1) != NULL;
        s->undecided = false;
    }
    if (tn_read_u64(pair.data, first, &number) != TN_NUM_OK) {
        return;
    }
    if (!s->ffm) {
        s->zero = s->zero || (number == 0 && s->rows < BASE_ROWS);
        return;
    }
    if (colon == NULL || !see_field(s, number)) {
        return;
    }
    const char *index = colon + 1;
    const char *end = pair.data + pair.size;
    colon = memchr(index, ':', (size_t)(end - index));
    uint64_t i;
    size_t size = (size_t)((colon != NULL ? colon : end) - index);
    if (s->rows < BASE_ROWS && tn_read_u64(index, size, &i) == TN_NUM_OK && i == 0) {
        s->zero = true;
    }
}

static void see_line(seen *s, tn_bytes line, bool labelled)
{
    const char *p = line.data;
    const char *end = line.data + line.size;
    bool begun = false;
    while (p < end) {
        while (p < end && (tn_is_blank(*p) || *p == '\r')) {
            p++;
        }
        const char *from = p;
        while (p < end && !tn_is_blank(*p) && *p != '\r') {
            p++;
        }
        if (p == from || *from == '#') {
            break;
        }
        if (begun || !labelled) {
            see_pair(s, (tn_bytes){from, (size_t)(p - from), false});
        }
        begun = true;
    }
    s->rows += begun;
}

/* Adds the name of a namespace, or of a slot that was one. What is too long, or one too many, is
 * kept as far as it is needed to be refused. */
static void see_name(seen *s, tn_bytes name)
{
    enum { NAME_BYTES = 256 };
    name.size = name.size < NAME_BYTES ? name.size : NAME_BYTES;
    for (uint32_t i = 0; i < s->n_names; i++) {
        const uint32_t at = (s->name_guess + i) % s->n_names;
        if (strncmp(s->name[at], name.data, name.size) == 0 && s->name[at][name.size] == '\0') {
            s->name_guess = at + 1;
            return;
        }
    }
    if (s->n_names <= TN_SLOTS_MAX) {
        char *copy = tn_arena_alloc(s->arena, name.size + 1, 1, 1);
        memcpy(copy, name.data, name.size);
        s->name[s->n_names++] = copy;
    }
}

static void see_namespaces(seen *s, tn_bytes line)
{
    const char *p = memchr(line.data, '|', line.size);
    s->rows += !tn_line_is_blank(line);
    while (p != NULL) {
        size_t left = (size_t)(line.data + line.size - ++p);
        size_t size = 0;
        while (size < left && !tn_is_blank(p[size]) && strchr(":|\r", p[size]) == NULL) {
            size++;
        }
        see_name(s, size > 0 ? (tn_bytes){p, size, false} : (tn_bytes){"_", 1, false});
        p = memchr(p, '|', left);
    }
}

/* The lines of the first file, as far as they are looked at. */
static tn_status see_file(seen *s, const tn_schema *schema, const tn_fileset *files, tn_error *err)
{
    tn_block_reader *reader = NULL;
    tn_block block = {0};
    uint64_t bytes = 0;
    TN_TRY(tn_block_reader_new(&reader, schema, files, NULL, err));
    for (uint32_t p = 0; p < files->n_parts && files->part[p].source == 0 && block.fault == TN_OK;
         p++) {
        tn_block_reader_go(reader, p);
        for (block.last = false; !block.last && s->rows < LINES_MAX && bytes < SCAN_BYTES_MAX;) {
            tn_block_reader_next(reader, &block);
            bytes += block.bytes.size;
            for (uint32_t i = 0; i < block.n_records && s->rows < LINES_MAX; i++) {
                const tn_extent *r = &block.record[i];
                const tn_bytes line = {block.bytes.data + r->at, r->size, false};
                if (s->arena != NULL) {
                    see_namespaces(s, line);
                } else {
                    see_line(s, line, !schema->label->none);
                }
            }
        }
    }
    tn_status status = block.damage || block.fault == TN_OK
                           ? TN_OK /* the reader of the data will report the fault */
                           : tn_fail(err, block.fault, "%s", block.err.text);
    tn_block_done(&block);
    tn_block_reader_free(reader);
    return status;
}

static tn_status see_data(seen *s, const tn_schema *schema, tn_error *err)
{
    tn_fileset *files = NULL;
    TN_TRY(tn_fileset_new(&files, &schema->data->train, schema, 1, err));
    tn_status status = TN_OK;
    if (files->file[0].once) {
        status = tn_fail(err, TN_E_DATA,
                         "cannot look ahead in '%s'\nhint: list the slots and set data.index_base",
                         files->file[0].path);
    } else {
        status = see_file(s, schema, files, err);
    }
    tn_fileset_free(files);
    return status;
}

/* The columns of the first file that data.train names, from its header or from data.columns.
 * Nothing where the format has no columns, or they cannot be seen without taking bytes from those
 * who read them later. */
static void name_columns(const tn_schema *schema, tn_text *out)
{
    const tn_format *format = tn_format_find(schema->data->format);
    tn_listing there = {0};
    tn_text line = {0};
    tn_fileset *files = NULL;
    if (format == NULL || format->head == NULL || schema->data->train.n == 0 ||
        tn_fileset_new(&files, &schema->data->train, schema, 1, NULL) != TN_OK) {
        return;
    }
    if (!schema->header ||
        (!files->file[0].once && tn_fileset_header(files, 0, schema, &line, NULL) == TN_OK)) {
        tn_listing_add(&there, (tn_bytes){tn_text_str(&line), line.size, false}, schema);
    }
    tn_text_done(&line);
    if (there.n > 0) {
        tn_text_addf(out, "the columns of '%s' are %s", files->file[0].path,
                     tn_text_str(&there.names));
    }
    tn_text_done(&there.names);
    tn_fileset_free(files);
}

/* Makes slots of which nothing is said: each option is that of an empty row of tn_slot_fields. */
static tn_slot_opts *make_slots(tn_arena *arena, uint32_t n, tn_tables *out)
{
    tn_slot_opts *slot = TN_NEW_ARRAY(arena, tn_slot_opts, n);
    for (uint32_t i = 0; i < n; i++) {
        slot[i] = (tn_slot_opts){.field = TN_UNSET_U32,
                                 .dim = TN_UNSET_U32,
                                 .keep = TN_KEEP_LAST,
                                 .missing = TN_UNSET_U32,
                                 .lr = (double)NAN,
                                 .l2 = (double)NAN,
                                 .decay = (double)NAN,
                                 .cvm = TN_UNSET_U32};
    }
    *out = (tn_tables){.n = n, .item = slot};
    return slot;
}

/* `base`: what a number of the data is ahead of its field. */
static void slots_of_fields(const seen *s, uint32_t base, tn_arena *arena, tn_tables *out)
{
    enum { NAME_BYTES = 16 };
    uint32_t n = 0;
    for (uint32_t f = base; f < s->n_fields; f++) {
        n += s->field[f];
    }
    tn_slot_opts *slot = make_slots(arena, n, out);
    uint32_t i = 0;
    for (uint32_t f = base; f < s->n_fields; f++) {
        if (s->field[f] == 0) {
            continue;
        }
        char *name = tn_arena_alloc(arena, NAME_BYTES, 1, 1);
        (void)snprintf(name, NAME_BYTES, "f%u", f - base);
        slot[i].name = name;
        slot[i++].field = f - base;
    }
}

static void slots_of_names(const seen *s, tn_arena *arena, tn_tables *out)
{
    tn_slot_opts *slot = make_slots(arena, s->n_names, out);
    for (uint32_t i = 0; i < s->n_names; i++) {
        slot[i].name = s->name[i];
        slot[i].type = TN_SIGN_STR;
    }
}

/* Slots of what was seen; `base` is that of indices. */
static void make_found(const seen *s, uint32_t base, tn_arena *arena, tn_tables *out)
{
    if (s->arena != NULL) {
        slots_of_names(s, arena, out);
        tn_log(TN_LOG_INFO, "found %u namespaces in the first %u rows: slots of 'type: str'",
               out->n, s->rows);
    } else if (s->ffm) {
        slots_of_fields(s, s->libfm ? base : 0, arena, out);
        tn_log(TN_LOG_INFO, "found %u fields in the first %u rows: slots f<number>", out->n,
               s->rows);
    } else {
        make_slots(arena, 1, out)->name = "_";
    }
}

static bool has_fields(const tn_tables *slots)
{
    bool has = false;
    for (uint32_t i = 0; i < slots->n; i++) {
        has |= ((const tn_slot_opts *)slots->item)[i].field != TN_UNSET_U32;
    }
    return has;
}

/* `slots` as given, or those of the format when none are. A base that is found replaces
 * *index_base. */
static tn_status scan_first_file(const tn_schema *schema, const tn_tables *slots, tn_arena *arena,
                                 tn_tables *out, uint32_t *index_base, tn_error *err)
{
    const tn_format *format = tn_format_find(schema->data->format);
    bool ffm = strcmp(schema->data->format, "libffm") == 0;
    bool libfm = strcmp(schema->data->format, "libfm") == 0;
    bool want_base = schema->data->index_base == TN_AUTO && format != NULL &&
                     tn_format_reads(format->data_options, "index_base");
    bool want_slots = slots->n == 0 && (ffm || libfm || schema->namespaces);
    *out = *slots;
    if (slots->n == 0 && format != NULL && format->pairs && !want_slots) {
        make_slots(arena, 1, out)->name = "_";
    }
    if (!want_base && !want_slots) {
        return TN_OK;
    }
    seen *s = NULL;
    TN_TRY(TN_ALLOC(s, 1, "the head of the data", err));
    s->ffm = ffm || (libfm && has_fields(slots));
    s->libfm = libfm;
    s->undecided = libfm && want_slots;
    s->arena = schema->namespaces ? arena : NULL;
    tn_status status = see_data(s, schema, err);
    if (status == TN_OK && want_base) {
        *index_base = s->zero ? 0 : 1;
        tn_log(TN_LOG_INFO, "data.index_base: auto is %u", *index_base);
    }
    if (status == TN_OK && want_slots) {
        make_found(s, *index_base, arena, out);
    }
    tn_free(s);
    return status;
}

tn_status tn_schema_new(const tn_schema **out, const tn_data_opts *data, const tn_tables *slots,
                        const tn_binder *b, tn_error *err)
{
    *out = NULL;
    tn_schema *s = NULL;
    tn_tables found;
    tn_text columns = {0};
    TN_TRY(tn_schema_begin(&s, data, b, err));
    const tn_format *format = tn_format_find(data->format);
    s->ranges = format != NULL && tn_format_reads(format->slot_options, "range");
    s->namespaces = format != NULL && format->namespaces;
    TN_TRY(scan_first_file(s, slots, b->arena, &found, &s->index_base, err));
    if (found.n == 0) {
        name_columns(s, &columns);
    }
    tn_status status = tn_schema_finish(s, &found, tn_text_str(&columns), b, err);
    tn_text_done(&columns);
    TN_TRY(status);
    *out = s;
    return TN_OK;
}
