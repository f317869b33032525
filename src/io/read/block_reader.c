/* block_reader.c - parts of files, as blocks of whole records.
 *
 * The first record of a part is found first: marks and heads of files are passed over, and a part
 * that begins inside a file begins with the next record.
 */
#include "io/read/block_reader.h"

#include "base/core/alloc.h"
#include "base/core/log.h"
#include "base/file/file.h"
#include "io/format/format.h"
#include "io/read/fileset.h"
#include "io/rows/rows_parsing.h"
#include "io/schema/dataopts.h"
#include "io/source/source.h"

#include <string.h>

#define WINDOW_BYTES_MAX ((size_t)3 << 30)

struct tn_block_reader {
    const tn_schema *schema;
    const tn_fileset *files;
    const tn_format *format; /* format of the source that is read */
    const atomic_bool *stop;
    tn_lane *lane;
    tn_head *head;   /* files->n; column NULL: not read yet */
    uint64_t *start; /* n_parts, binary: its first record, as far as it is known; 0: it is not */

    uint64_t n_blocks; /* handed out */
    uint32_t part;
    tn_source *source; /* NULL: the part is not open yet */
    uint64_t offset;   /* offset of rest.data[0] */
    uint64_t line;     /* line of rest.data[at]; 0: not known */
    uint64_t taken;    /* bytes off the disk, as last reported */
    tn_text rest;      /* bytes that were read */
    size_t at;         /* bytes of `rest` that were handed out */
    bool ended;        /* the source has ended */
    bool over;         /* the part has ended */
    bool damaged;      /* the record at `at` is to be passed over */
};

enum { HOP_BYTES = 1 << 18, HEADER_BYTES_MAX = 64 };

static inline const tn_part_info *part_of(const tn_block_reader *reader)
{
    return &reader->files->part[reader->part];
}

static inline tn_bytes window_of(const tn_block_reader *reader)
{
    return (tn_bytes){reader->rest.data + reader->at, reader->rest.size - reader->at, false};
}

/* Closes the source and forgets what was read. */
static void leave_part(tn_block_reader *reader)
{
    tn_source_close(reader->source);
    reader->source = NULL;
    tn_text_clear(&reader->rest);
    reader->at = 0;
    reader->ended = false;
    reader->damaged = false;
}

/* Reads on until the window holds `size` bytes or the source ends. */
static tn_status fill_window(tn_block_reader *reader, size_t size, tn_error *err)
{
    tn_text *rest = &reader->rest;
    size_t have = rest->size - reader->at;
    if (reader->ended || have >= size) {
        return TN_OK;
    }
    if (reader->at > 0) {
        memmove(rest->data, rest->data + reader->at, have);
        rest->size = have;
        reader->offset += reader->at;
        reader->at = 0;
    }
    rest->size_max = WINDOW_BYTES_MAX;
    char *to = tn_text_grow(rest, size - have);
    TN_TRY(tn_text_check(rest, "a block of records", err));
    size_t n = 0;
    tn_status status = tn_source_read(reader->source, to, size - have, &n, err);
    rest->size = have + n;
    reader->ended = n < size - have;
    return status;
}

/* A mark at the beginning of text: UTF-8's is dropped, UTF-16's refused. */
static tn_status take_mark(tn_block_reader *reader, tn_error *err)
{
    TN_TRY(fill_window(reader, TN_BLOCK_BYTES, err));
    tn_bytes window = window_of(reader);
    if (window.size >= 2 &&
        (memcmp(window.data, "\xff\xfe", 2) == 0 || memcmp(window.data, "\xfe\xff", 2) == 0)) {
        return tn_fail(err, TN_E_DATA, "%s:1:1: error: looks like UTF-16\nhint: " TN_HINT_UTF16,
                       tn_source_path(reader->source));
    }
    if (window.size >= 3 && memcmp(window.data, "\xef\xbb\xbf", 3) == 0) {
        reader->at += 3;
    }
    return TN_OK;
}

/* Reads the head off the front of the window. */
static tn_status take_head(tn_block_reader *reader, tn_head *head, tn_error *err)
{
    const tn_record_location place = {.source = tn_source_path(reader->source), .line = 1};
    for (size_t size = TN_BLOCK_BYTES;; size *= 2) {
        TN_TRY(fill_window(reader, size, err));
        tn_bytes window = window_of(reader);
        tn_bytes before = window;
        tn_status status =
            reader->format->head(&window, reader->ended, reader->schema, &place, head, err);
        if (status == TN_OK) {
            reader->at += before.size - window.size;
            reader->line += tn_count_lines(before.data, before.size - window.size);
        }
        if (status != TN_END) {
            return status;
        }
        if (reader->ended) { /* an empty file has no header and no records */
            return TN_OK;
        }
    }
}

static tn_status open_at(tn_block_reader *reader, uint64_t from, tn_error *err)
{
    bool start_of_text = from == 0 && !reader->format->binary;
    leave_part(reader);
    reader->offset = from;
    reader->line = start_of_text;
    reader->taken = from;
    TN_TRY(tn_fileset_open(reader->files, part_of(reader)->source, from, reader->stop,
                           &reader->source, err));
    if (part_of(reader)->end < UINT64_MAX - TN_BLOCK_BYTES) { /* the last record may go on */
        tn_source_until(reader->source, part_of(reader)->end + TN_BLOCK_BYTES);
    }
    tn_source_trace(reader->source, reader->lane);
    return start_of_text ? take_mark(reader, err) : TN_OK;
}

/* Opens the source and moves past its head, which is kept. A head that is known already stays as it
 * is, since parsers may be reading it: parts come in any order. */
static tn_status open_with_head(tn_block_reader *reader, tn_head *head, tn_error *err)
{
    tn_head read = {0};
    TN_TRY(open_at(reader, 0, err));
    TN_TRY(
        TN_ALLOC(read.column, (size_t)reader->schema->columns->n + 1, "the head of a file", err));
    tn_status status = take_head(reader, &read, err);
    if (status == TN_OK && head->column == NULL) {
        *head = read;
    } else {
        tn_free(read.column);
    }
    return status;
}

/* Moves to the first line that begins at byte `first` or later. */
static tn_status find_line(tn_block_reader *reader, uint64_t first, tn_error *err)
{
    TN_TRY(open_at(reader, first - 1, err));
    reader->line = 0; /* also where a line was known: it is passed over */
    for (;;) {
        TN_TRY(fill_window(reader, TN_BLOCK_BYTES, err));
        tn_bytes window = window_of(reader);
        const char *end = window.size > 0 ? memchr(window.data, '\n', window.size) : NULL;
        reader->at += end != NULL ? (size_t)(end - window.data) + 1 : window.size;
        if (end != NULL || reader->ended) {
            return TN_OK;
        }
    }
}

static uint64_t position(const tn_block_reader *reader)
{
    return reader->offset + reader->at;
}

/* Passes over bytes, be they read or not. */
static tn_status advance(tn_block_reader *reader, uint64_t size, tn_error *err)
{
    for (;;) {
        size_t have = reader->rest.size - reader->at;
        if (size <= have || reader->ended) {
            reader->at += size <= have ? (size_t)size : have;
            return TN_OK;
        }
        size -= have;
        reader->at = reader->rest.size;
        TN_TRY(fill_window(reader, HOP_BYTES, err));
    }
}

/* Moves past one record, or past all that is damaged, which the reader of that part reports. *moved
 * is false when nothing is left. */
static tn_status hop(tn_block_reader *reader, bool *moved, tn_error *err)
{
    uint64_t from = position(reader);
    size_t want = HEADER_BYTES_MAX;
    bool found = true; /* a record may begin here */
    do {
        TN_TRY(fill_window(reader, want, err));
        uint64_t step = found ? reader->format->hop(window_of(reader), reader->schema) : 0;
        if (step == 0) {
            step = reader->format->resync(window_of(reader), reader->ended, reader->schema, &found);
        }
        TN_TRY(advance(reader, step, err));
        want = step == 0 ? 2 * want : HEADER_BYTES_MAX;
    } while (!found);
    *moved = position(reader) != from;
    return TN_OK;
}

/* The same for framed records: hops from record to record, from the nearest place that is known.
 * Every part on the way learns where it begins, so a file is passed over once at most. */
static tn_status find_record(tn_block_reader *reader, tn_error *err)
{
    const tn_part_info *part = reader->files->part;
    uint32_t at = reader->part;
    while (part[at].first > 0 && reader->start[at] == 0) {
        at--;
    }
    TN_TRY(open_at(reader, reader->start[at], err));
    bool moved = true;
    for (; at <= reader->part; at++) {
        while (moved && position(reader) < part[at].first) {
            TN_TRY(hop(reader, &moved, err));
        }
        reader->start[at] = position(reader);
    }
    return TN_OK;
}

/* Opens the part and goes to its first record. */
static tn_status open_part(tn_block_reader *reader, tn_error *err)
{
    const tn_part_info *part = part_of(reader);
    tn_head *head = &reader->head[part->source];
    bool headed = reader->format->head != NULL;
    if (headed && (part->first == 0 || head->column == NULL)) {
        TN_TRY(open_with_head(reader, head, err));
    } else if (part->first == 0) {
        TN_TRY(open_at(reader, 0, err));
    }
    if (part->first == 0) {
        return TN_OK;
    }
    return reader->format->binary ? find_record(reader, err) : find_line(reader, part->first, err);
}

void tn_block_done(tn_block *block)
{
    tn_text_done(&block->bytes);
    tn_free(block->record);
    *block = (tn_block){.record = NULL};
}

tn_status tn_block_reader_new(tn_block_reader **out, const tn_schema *schema,
                              const tn_fileset *files, const atomic_bool *stop, tn_error *err)
{
    *out = NULL;
    if (tn_format_find(schema->data->format) == NULL) {
        return tn_fail(err, TN_E_CONFIG, "unknown data.format '%s'", schema->data->format);
    }
    tn_block_reader *reader = NULL;
    TN_TRY(TN_ALLOC(reader, 1, "a feed", err));
    *reader = (tn_block_reader){.schema = schema, .files = files, .stop = stop, .over = true};
    if (TN_ALLOC(reader->head, files->n, "heads of files", err) != TN_OK ||
        TN_ALLOC(reader->start, (size_t)files->n_parts + 1, "parts", err) != TN_OK) {
        tn_block_reader_free(reader);
        return TN_E_MEMORY;
    }
    *out = reader;
    return TN_OK;
}

void tn_block_reader_free(tn_block_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    leave_part(reader);
    tn_text_done(&reader->rest);
    for (uint32_t i = 0; reader->head != NULL && i < reader->files->n; i++) {
        tn_free(reader->head[i].column);
    }
    tn_free(reader->head);
    tn_free(reader->start);
    tn_free(reader);
}

void tn_block_reader_trace(tn_block_reader *reader, tn_lane *lane)
{
    reader->lane = lane;
}

void tn_block_reader_go(tn_block_reader *reader, uint32_t part)
{
    TN_ASSERT(part < reader->files->n_parts);
    leave_part(reader);
    reader->part = part;
    reader->format = tn_fileset_format(reader->files, part_of(reader)->source, reader->schema);
    reader->over = false;
}

/* Moves to the first place at which a record may begin again. */
static tn_status pass_damage(tn_block_reader *reader, tn_block *block, tn_error *err)
{
    size_t want = TN_BLOCK_BYTES;
    while (reader->damaged) {
        TN_TRY(fill_window(reader, want, err));
        bool found = false;
        tn_bytes window = window_of(reader);
        size_t step = reader->format->resync(window, reader->ended, reader->schema, &found);
        reader->at += step;
        block->passed += step;
        reader->damaged = !found;
        want = step == 0 ? 2 * want : TN_BLOCK_BYTES;
        reader->line += reader->line > 0 && !reader->damaged;
    }
    return TN_OK;
}

/* How many lines the records of a block are. */
static uint64_t lines_of(const tn_block_reader *reader, const tn_block *block)
{
    if (reader->schema->quote != TN_QUOTE_MULTILINE || block->n_records == 0) {
        return block->n_records;
    }
    size_t from = block->record[0].at;
    return tn_count_lines(reader->rest.data + from, reader->at - from);
}

/* Returns the line at the cursor, after the records of a block; 0: not known, or binary. */
static uint64_t line_here(const tn_block_reader *reader, const tn_block *block)
{
    uint64_t lines = 0;
    if (reader->line > 0) {
        return reader->line + lines_of(reader, block);
    }
    bool found =
        !reader->format->binary &&
        tn_fileset_lines_before(reader->files, block->file, reader->offset + reader->at, &lines);
    return found ? lines + 1 : 0;
}

/* The fault of a cut, with the place where it is. */
static tn_status name_damage(const tn_block_reader *reader, tn_block *block, const tn_error *what)
{
    tn_bytes window = window_of(reader);
    const char *end = window.size > 0 ? memchr(window.data, '\n', window.size) : NULL;
    window.size = end != NULL ? (size_t)(end - window.data) : window.size;
    const tn_record_location place = {.source = reader->files->file[block->file].path,
                                      .line = line_here(reader, block),
                                      .offset = reader->offset + reader->at};
    return tn_record_location_fail(&place, window, NULL, &block->err, "%s", what->text);
}

/* Cuts what the window holds. TN_END: more bytes are needed for the next record. */
static tn_status cut_records(tn_block_reader *reader, tn_block *block)
{
    uint64_t end = part_of(reader)->end;
    while (reader->offset + reader->at < end) {
        tn_bytes window = window_of(reader);
        tn_bytes record;
        tn_error what;
        tn_status status =
            reader->format->cut(&window, reader->ended, reader->schema, &record, &what);
        if (status == TN_END) {
            return TN_END;
        }
        if (status != TN_OK) {
            block->damage = reader->format->resync != NULL;
            reader->damaged = block->damage;
            return name_damage(reader, block, &what);
        }
        if (block->n_records == block->records_max &&
            !tn_rows_grow(&block->record, block->n_records, 1, sizeof *block->record,
                          &block->records_max)) {
            return tn_fail(&block->err, TN_E_MEMORY, "no memory for the records of a block");
        }
        block->record[block->n_records++] =
            (tn_extent){(uint32_t)(record.data - reader->rest.data), (uint32_t)record.size};
        reader->at = (size_t)(window.data - reader->rest.data);
    }
    return TN_OK;
}

/* Hands over the bytes that hold the records, and keeps those after them. */
static tn_status hand_over(tn_block_reader *reader, tn_block *block)
{
    tn_text rest = block->bytes;
    reader->line += reader->line > 0 ? lines_of(reader, block) : 0;
    tn_text_clear(&rest);
    rest.size_max = WINDOW_BYTES_MAX;
    tn_text_add(&rest, reader->rest.data + reader->at, reader->rest.size - reader->at);
    block->bytes = reader->rest;
    block->offset = reader->offset;
    reader->rest = rest;
    reader->offset += reader->at;
    reader->at = 0;
    uint64_t taken = tn_source_taken(reader->source);
    block->taken = taken - reader->taken;
    reader->taken = taken;
    return tn_text_check(&reader->rest, "a block of records", &block->err);
}

static tn_status fill_block(tn_block_reader *reader, tn_block *block)
{
    tn_error *err = &block->err;
    if (reader->source == NULL) {
        TN_TRY(open_part(reader, err));
    }
    TN_TRY(pass_damage(reader, block, err));
    block->line = reader->line;
    tn_status status = TN_END;
    for (size_t want = TN_BLOCK_BYTES; status == TN_END; want *= 2) {
        TN_TRY(fill_window(reader, want, err));
        status = cut_records(reader, block);
        if (block->n_records > 0 || reader->ended) {
            break;
        }
    }
    reader->over = status == TN_OK || (status == TN_END && reader->ended);
    TN_TRY(hand_over(reader, block));
    return status == TN_END ? TN_OK : status;
}

static void clear(const tn_block_reader *reader, tn_block *block)
{
    block->n_records = 0;
    block->file = part_of(reader)->source;
    block->passed = 0;
    block->taken = 0;
    block->damage = false;
    block->err = (tn_error){0};
}

void tn_block_reader_next(tn_block_reader *reader, tn_block *block)
{
    TN_ASSERT(!reader->over);
    block->sequence = reader->n_blocks++;
    clear(reader, block);
    block->fault = fill_block(reader, block);
    block->head = reader->head[block->file].column != NULL ? &reader->head[block->file] : NULL;
    reader->over = reader->over || (block->fault != TN_OK && !block->damage);
    block->last = reader->over;
    bool next = block->last && block->fault == TN_OK && reader->part + 1 < reader->files->n_parts;
    if (next && reader->files->part[reader->part + 1].first > 0) { /* in the same file */
        reader->start[reader->part + 1] = reader->offset + reader->at;
    }
}

/* ---- parsing ---- */

/* The line of record i, found only when a message needs it; 0: it cannot be. `*first` is that of
 * the first record, as far as it is known. */
static uint64_t line_of(const tn_block *block, const tn_schema *schema, const tn_fileset *files,
                        uint32_t i, uint64_t *first)
{
    uint64_t at = block->offset + block->record[0].at;
    if (*first == 0 && tn_fileset_lines_before(files, block->file, at, first)) {
        ++*first;
    }
    if (*first == 0 || schema->quote != TN_QUOTE_MULTILINE) {
        return *first > 0 ? *first + i : 0;
    }
    const char *from = block->bytes.data + block->record[0].at;
    return *first + tn_count_lines(from, block->record[i].at - block->record[0].at);
}

static void keep_message(tn_parsed *out, const tn_error *err, uint32_t messages_max)
{
    out->n_bad++;
    if (out->n_messages == messages_max) {
        return;
    }
    tn_text_add(&out->messages, err->text, strlen(err->text) + 1);
    out->fault = tn_text_check(&out->messages, "messages of records at fault", &out->err);
    out->n_messages += out->fault == TN_OK;
}

static void start_parsed(const tn_block *block, tn_parsed *out)
{
    tn_text_clear(&out->messages);
    *out = (tn_parsed){.rows = out->rows,
                       .sequence = block->sequence,
                       .taken = block->taken,
                       .passed = block->passed,
                       .file = block->file,
                       .last = block->last,
                       .messages = out->messages};
}

void tn_block_parse(const tn_block *block, const tn_schema *schema, const tn_fileset *files,
                    uint32_t messages_max, tn_parsed *out)
{
    const tn_format *format = tn_fileset_format(files, block->file, schema);
    tn_record_location place = {.source = files->file[block->file].path, .head = block->head};
    tn_rows *rows = out->rows;
    uint64_t line = block->line;
    start_parsed(block, out);
    tn_rows_clear(rows);
    tn_rows_expect(rows, block->n_records);
    for (uint32_t i = 0; i < block->n_records && out->fault == TN_OK; i++) {
        tn_bytes record = {block->bytes.data + block->record[i].at, block->record[i].size, false};
        place.offset = block->offset + block->record[i].at;
        place.line = 0;
        tn_status status = format->parse(record, schema, &place, rows, NULL);
        if (status != TN_OK && status != TN_END) { /* once more, for the message */
            bool told = out->n_messages < messages_max;
            place.line = told && !format->binary ? line_of(block, schema, files, i, &line) : 0;
            status = format->parse(record, schema, &place, rows, &out->err);
            TN_ASSERT(status != TN_END);
        }
        if (status == TN_OK) {
            rows->row[rows->n - 1].at = place.offset;
        } else if (status == TN_END) {
            out->blank++;
        } else if (status == TN_E_DATA) {
            keep_message(out, &out->err, messages_max);
        } else {
            out->fault = status;
        }
    }
    for (uint32_t i = 0; i < block->n_records; i++) {
        out->bytes += block->record[i].size;
    }
    out->records = block->n_records - out->blank;
    if (out->fault == TN_OK && block->damage) {
        out->records++;
        keep_message(out, &block->err, messages_max);
    } else if (out->fault == TN_OK && block->fault != TN_OK) {
        out->fault = block->fault;
        out->err = block->err;
    }
}

void tn_parsed_done(tn_parsed *parsed)
{
    tn_text_done(&parsed->messages);
}

const char *tn_parsed_message(const tn_parsed *parsed, uint32_t n)
{
    TN_ASSERT(n < parsed->n_messages);
    const char *at = parsed->messages.data;
    for (uint32_t i = 0; i < n; i++) {
        at += strlen(at) + 1;
    }
    return at;
}
