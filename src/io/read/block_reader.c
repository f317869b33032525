/* block_reader.c - parts of files, as blocks of whole records.
 *
 * The first record of a part is found first: marks and heads of files are passed over, and a part
 * that begins inside a file begins with the next record.
 */
#include "io/read/block_reader.h"

#include "base/core/alloc.h"
#include "base/core/log.h"
#include "base/file/file.h"
#include "io/read/cache_files.h"
#include "io/read/line_numbers.h"
#include "io/schema/columns.h"

#include <string.h>

#define WINDOW_BYTES_MAX ((size_t)3 << 30)

struct tn_feed {
    const tn_schema *schema;
    const tn_format *format;
    const tn_fileset *files;
    const atomic_bool *stop;
    tn_lane *lane;
    tn_head *head;   /* files->n; column NULL: not read yet */
    uint64_t *start; /* n_parts, binary: its first record, as far as it is known; 0: it is not */

    uint32_t part;
    tn_tnb_cursor cursor; /* in the part, when blocks come from caches */
    tn_source *source;    /* NULL: the part is not open yet */
    uint64_t offset;      /* of rest.data[0] */
    uint64_t line;        /* of rest.data[at], or 0 */
    uint64_t taken;       /* off the disk, as last told */
    tn_text rest;         /* read, not yet handed out .. */
    size_t at;            /* .. from here on */
    bool ended;           /* the source */
    bool over;            /* the part */
    bool damaged;         /* what stands at `at` is to be passed over */
    bool forsaken;        /* the caches: the files are read in their place */
};

enum { HOP_BYTES = 1 << 18, HEADER_BYTES_MAX = 64 };

static inline const tn_part_info *part_of(const tn_feed *feed)
{
    return &feed->files->part[feed->part];
}

static inline tn_bytes window_of(const tn_feed *feed)
{
    return (tn_bytes){feed->rest.data + feed->at, feed->rest.size - feed->at, false};
}

/* Closes the source and forgets what was read. */
static void leave_part(tn_feed *feed)
{
    tn_source_close(feed->source);
    feed->source = NULL;
    tn_text_clear(&feed->rest);
    feed->at = 0;
    feed->ended = false;
    feed->damaged = false;
}

/* Reads on until the window holds `size` bytes or the source ends. */
static tn_status fill_window(tn_feed *feed, size_t size, tn_error *err)
{
    tn_text *rest = &feed->rest;
    size_t have = rest->size - feed->at;
    if (feed->ended || have >= size) {
        return TN_OK;
    }
    if (feed->at > 0) {
        memmove(rest->data, rest->data + feed->at, have);
        rest->size = have;
        feed->offset += feed->at;
        feed->at = 0;
    }
    rest->size_max = WINDOW_BYTES_MAX;
    char *to = tn_text_grow(rest, size - have);
    TN_TRY(tn_text_check(rest, "a block of records", err));
    size_t n = 0;
    tn_status status = tn_source_read(feed->source, to, size - have, &n, err);
    rest->size = have + n;
    feed->ended = n < size - have;
    return status;
}

/* A mark at the beginning of text: UTF-8's is dropped, UTF-16's refused. */
static tn_status take_mark(tn_feed *feed, tn_error *err)
{
    TN_TRY(fill_window(feed, TN_BLOCK_BYTES, err));
    tn_bytes window = window_of(feed);
    if (window.size >= 2 &&
        (memcmp(window.data, "\xff\xfe", 2) == 0 || memcmp(window.data, "\xfe\xff", 2) == 0)) {
        return tn_fail(err, TN_E_DATA, "%s:1:1: error: looks like UTF-16",
                       tn_source_path(feed->source));
    }
    if (window.size >= 3 && memcmp(window.data, "\xef\xbb\xbf", 3) == 0) {
        feed->at += 3;
    }
    return TN_OK;
}

/* Reads the head off the front of the window. */
static tn_status take_head(tn_feed *feed, tn_head *head, tn_error *err)
{
    const tn_place place = {.source = tn_source_path(feed->source), .line = 1};
    for (size_t size = TN_BLOCK_BYTES;; size *= 2) {
        TN_TRY(fill_window(feed, size, err));
        tn_bytes window = window_of(feed);
        tn_bytes before = window;
        tn_status status =
            feed->format->head(&window, feed->ended, feed->schema, &place, head, err);
        if (status == TN_OK) {
            feed->at += before.size - window.size;
            feed->line += tn_lines_in(before.data, before.size - window.size);
        }
        if (status != TN_END) {
            return status;
        }
        if (feed->ended) { /* an empty file has no header and no records */
            return TN_OK;
        }
    }
}

static tn_status open_at(tn_feed *feed, uint64_t from, tn_error *err)
{
    bool start_of_text = from == 0 && !feed->format->binary;
    leave_part(feed);
    feed->offset = from;
    feed->line = start_of_text;
    feed->taken = from;
    TN_TRY(
        tn_fileset_open(feed->files, part_of(feed)->source, from, feed->stop, &feed->source, err));
    tn_source_trace(feed->source, feed->lane);
    return start_of_text ? take_mark(feed, err) : TN_OK;
}

/* The source behind its head, which is kept. One that is known already stays as it is, since
 * parsers may be reading it: parts come in any order. */
static tn_status open_with_head(tn_feed *feed, tn_head *head, tn_error *err)
{
    TN_TRY(open_at(feed, 0, err));
    tn_head read = {.column = tn_try_alloc((size_t)feed->schema->columns->n + 1,
                                           sizeof *read.column, "the head of a file", err)};
    if (read.column == NULL) {
        return TN_E_MEMORY;
    }
    tn_status status = take_head(feed, &read, err);
    if (status == TN_OK && head->column == NULL) {
        *head = read;
    } else {
        tn_free(read.column);
    }
    return status;
}

/* To the first record that begins at or behind byte `first`: text. */
static tn_status find_line(tn_feed *feed, uint64_t first, tn_error *err)
{
    TN_TRY(open_at(feed, first - 1, err));
    feed->line = 0; /* also where a line was known: it is passed over */
    for (;;) {
        TN_TRY(fill_window(feed, TN_BLOCK_BYTES, err));
        tn_bytes window = window_of(feed);
        const char *end = window.size > 0 ? memchr(window.data, '\n', window.size) : NULL;
        feed->at += end != NULL ? (size_t)(end - window.data) + 1 : window.size;
        if (end != NULL || feed->ended) {
            return TN_OK;
        }
    }
}

static uint64_t position(const tn_feed *feed)
{
    return feed->offset + feed->at;
}

/* Passes over bytes, be they read or not. */
static tn_status advance(tn_feed *feed, uint64_t size, tn_error *err)
{
    for (;;) {
        size_t have = feed->rest.size - feed->at;
        if (size <= have || feed->ended) {
            feed->at += size <= have ? (size_t)size : have;
            return TN_OK;
        }
        size -= have;
        feed->at = feed->rest.size;
        TN_TRY(fill_window(feed, HOP_BYTES, err));
    }
}

/* Over one record, or over all that is damaged; *moved is false when nothing is left. Whose part
 * the damage is in will tell. */
static tn_status hop(tn_feed *feed, bool *moved, tn_error *err)
{
    uint64_t from = position(feed);
    size_t want = HEADER_BYTES_MAX;
    bool found = true; /* a record may begin here */
    do {
        TN_TRY(fill_window(feed, want, err));
        uint64_t step = found ? feed->format->hop(window_of(feed), feed->schema) : 0;
        if (step == 0) {
            step = feed->format->resync(window_of(feed), feed->ended, feed->schema, &found);
        }
        TN_TRY(advance(feed, step, err));
        want = step == 0 ? 2 * want : HEADER_BYTES_MAX;
    } while (!found);
    *moved = position(feed) != from;
    return TN_OK;
}

/* The same for framed records: hops from record to record, from the nearest place that is known.
 * Every part on the way learns where it begins, so a file is passed over once at most. */
static tn_status find_record(tn_feed *feed, tn_error *err)
{
    const tn_part_info *part = feed->files->part;
    uint32_t at = feed->part;
    while (part[at].first > 0 && feed->start[at] == 0) {
        at--;
    }
    TN_TRY(open_at(feed, feed->start[at], err));
    bool moved = true;
    for (; at <= feed->part; at++) {
        while (moved && position(feed) < part[at].first) {
            TN_TRY(hop(feed, &moved, err));
        }
        feed->start[at] = position(feed);
    }
    return TN_OK;
}

/* Opens the part and goes to its first record. */
static tn_status open_part(tn_feed *feed, tn_error *err)
{
    const tn_part_info *part = part_of(feed);
    tn_head *head = &feed->head[part->source];
    bool headed = feed->format->head != NULL;
    if (headed && (part->first == 0 || head->column == NULL)) {
        TN_TRY(open_with_head(feed, head, err));
    } else if (part->first == 0) {
        TN_TRY(open_at(feed, 0, err));
    }
    if (part->first == 0) {
        return TN_OK;
    }
    return feed->format->binary ? find_record(feed, err) : find_line(feed, part->first, err);
}

void tn_block_done(tn_block *block)
{
    tn_text_done(&block->bytes);
    tn_free(block->record);
    *block = (tn_block){.record = NULL};
}

tn_status tn_feed_new(tn_feed **out, const tn_schema *schema, const tn_fileset *files,
                      const atomic_bool *stop, tn_error *err)
{
    *out = NULL;
    const tn_format *format = tn_format_find(schema->data->format);
    if (format == NULL) {
        return tn_fail(err, TN_E_CONFIG, "unknown data.format '%s'", schema->data->format);
    }
    tn_feed *feed = tn_try_alloc(1, sizeof *feed, "a feed", err);
    if (feed == NULL) {
        return TN_E_MEMORY;
    }
    *feed =
        (tn_feed){.schema = schema, .format = format, .files = files, .stop = stop, .over = true};
    feed->head = tn_try_alloc(files->n, sizeof *feed->head, "heads of files", err);
    feed->start = tn_try_alloc((size_t)files->n_parts + 1, sizeof *feed->start, "parts", err);
    if (feed->head == NULL || feed->start == NULL) {
        tn_free(feed->head);
        tn_free(feed->start);
        tn_free(feed);
        return TN_E_MEMORY;
    }
    *out = feed;
    return TN_OK;
}

void tn_feed_free(tn_feed *feed)
{
    if (feed == NULL) {
        return;
    }
    leave_part(feed);
    tn_text_done(&feed->rest);
    for (uint32_t i = 0; i < feed->files->n; i++) {
        tn_free(feed->head[i].column);
    }
    tn_free(feed->head);
    tn_free(feed->start);
    tn_free(feed);
}

void tn_feed_trace(tn_feed *feed, tn_lane *lane)
{
    feed->lane = lane;
}

void tn_feed_go(tn_feed *feed, uint32_t part)
{
    TN_ASSERT(part < feed->files->n_parts);
    leave_part(feed);
    feed->part = part;
    feed->cursor = (tn_tnb_cursor){0};
    feed->over = false;
}

/* To the first place where a record may stand again. */
static tn_status pass_damage(tn_feed *feed, tn_block *block, tn_error *err)
{
    size_t want = TN_BLOCK_BYTES;
    while (feed->damaged) {
        TN_TRY(fill_window(feed, want, err));
        bool found = false;
        tn_bytes window = window_of(feed);
        size_t step = feed->format->resync(window, feed->ended, feed->schema, &found);
        feed->at += step;
        block->passed += step;
        feed->damaged = !found;
        want = step == 0 ? 2 * want : TN_BLOCK_BYTES;
        feed->line += feed->line > 0 && !feed->damaged;
    }
    return TN_OK;
}

static bool add_record(tn_block *block, size_t at, size_t size)
{
    if (block->n_records == block->records_max) {
        uint32_t more = block->records_max == 0 ? 1024 : 2 * block->records_max;
        tn_extent *record = tn_try_alloc(more, sizeof *record, "records of a block", NULL);
        if (record == NULL) {
            return false;
        }
        if (block->n_records > 0) {
            memcpy(record, block->record, block->n_records * sizeof *record);
        }
        tn_free(block->record);
        block->record = record;
        block->records_max = more;
    }
    block->record[block->n_records++] = (tn_extent){(uint32_t)at, (uint32_t)size};
    return true;
}

/* How many lines the records of a block are. */
static uint64_t lines_of(const tn_feed *feed, const tn_block *block)
{
    if (feed->schema->quote != TN_QUOTE_MULTILINE || block->n_records == 0) {
        return block->n_records;
    }
    size_t from = block->record[0].at;
    return tn_lines_in(feed->rest.data + from, feed->at - from);
}

/* The line at the cursor, behind the records of a block; 0: binary, or not to be found out. */
static uint64_t line_here(const tn_feed *feed, const tn_block *block)
{
    uint64_t lines = 0;
    if (feed->line > 0) {
        return feed->line + lines_of(feed, block);
    }
    bool found = !feed->format->binary &&
                 tn_lines_before(feed->files, block->file, feed->offset + feed->at, &lines);
    return found ? lines + 1 : 0;
}

/* The fault of a cut, with the place where it is. */
static tn_status name_damage(const tn_feed *feed, tn_block *block, const tn_error *what)
{
    tn_bytes window = window_of(feed);
    const char *end = window.size > 0 ? memchr(window.data, '\n', window.size) : NULL;
    window.size = end != NULL ? (size_t)(end - window.data) : window.size;
    const tn_place place = {.source = feed->files->file[block->file].path,
                            .line = line_here(feed, block),
                            .offset = feed->offset + feed->at};
    return tn_place_fail(&place, window, NULL, &block->err, "%s", what->text);
}

/* Cuts what the window holds. TN_END: more bytes are needed for the next record. */
static tn_status cut_records(tn_feed *feed, tn_block *block)
{
    uint64_t end = part_of(feed)->end;
    while (feed->offset + feed->at < end) {
        tn_bytes window = window_of(feed);
        tn_bytes record;
        tn_error what;
        tn_status status = feed->format->cut(&window, feed->ended, feed->schema, &record, &what);
        if (status == TN_END) {
            return TN_END;
        }
        if (status != TN_OK) {
            block->damage = feed->format->resync != NULL;
            feed->damaged = block->damage;
            return name_damage(feed, block, &what);
        }
        if (!add_record(block, (size_t)(record.data - feed->rest.data), record.size)) {
            return tn_fail(&block->err, TN_E_MEMORY, "no memory for the records of a block");
        }
        feed->at = (size_t)(window.data - feed->rest.data);
    }
    return TN_OK;
}

/* Hands over the bytes that hold the records, and keeps those behind. */
static tn_status hand_over(tn_feed *feed, tn_block *block)
{
    tn_text rest = block->bytes;
    feed->line += feed->line > 0 ? lines_of(feed, block) : 0;
    tn_text_clear(&rest);
    rest.size_max = WINDOW_BYTES_MAX;
    tn_text_add(&rest, feed->rest.data + feed->at, feed->rest.size - feed->at);
    block->bytes = feed->rest;
    block->offset = feed->offset;
    feed->rest = rest;
    feed->offset += feed->at;
    feed->at = 0;
    uint64_t taken = tn_source_taken(feed->source);
    block->taken = taken - feed->taken;
    feed->taken = taken;
    return tn_text_check(&feed->rest, "a block of records", &block->err);
}

static tn_status fill_block(tn_feed *feed, tn_block *block)
{
    tn_error *err = &block->err;
    if (feed->source == NULL) {
        TN_TRY(open_part(feed, err));
        block->head = feed->head[block->file].column != NULL ? &feed->head[block->file] : NULL;
    }
    TN_TRY(pass_damage(feed, block, err));
    block->line = feed->line;
    tn_status status = TN_END;
    for (size_t want = TN_BLOCK_BYTES; status == TN_END; want *= 2) {
        TN_TRY(fill_window(feed, want, err));
        status = cut_records(feed, block);
        if (block->n_records > 0 || feed->ended) {
            break;
        }
    }
    feed->over = status == TN_OK || (status == TN_END && feed->ended);
    TN_TRY(hand_over(feed, block));
    return status == TN_END ? TN_OK : status;
}

static void clear(const tn_feed *feed, tn_block *block)
{
    block->n_records = 0;
    block->cache = NULL;
    block->file = part_of(feed)->source;
    block->head = feed->head[block->file].column != NULL ? &feed->head[block->file] : NULL;
    block->passed = 0;
    block->taken = 0;
    block->damage = false;
    block->err = (tn_error){0};
}

static void next_of_file(tn_feed *feed, tn_block *block)
{
    clear(feed, block);
    block->fault = fill_block(feed, block);
    feed->over = feed->over || (block->fault != TN_OK && !block->damage);
    block->last = feed->over;
    bool next = block->last && block->fault == TN_OK && feed->part + 1 < feed->files->n_parts;
    if (next && feed->files->part[feed->part + 1].first > 0) { /* of the same file */
        feed->start[feed->part + 1] = feed->offset + feed->at;
    }
}

/* A block of a cache cannot be had: from here on blocks are made of the files, as the cache was.
 * Those of the part that have been handed out are passed over. */
static void forsake_cache(tn_feed *feed, tn_block *block)
{
    tn_log(TN_LOG_WARN, "a binary cache is removed, and the data read in its place: %s",
           block->err.text);
    tn_status removed = tn_remove_file(block->cache, NULL); /* else it is found damaged again */
    (void)removed;
    feed->forsaken = true;
    for (uint32_t i = 0; i < feed->cursor.n && !feed->over; i++) {
        next_of_file(feed, block);
    }
    if (!feed->over) {
        next_of_file(feed, block);
    } else if (block->fault == TN_OK) {
        block->n_records = 0;
        block->fault = tn_fail(&block->err, TN_E_DATA, "'%s' changed while it was read",
                               feed->files->file[block->file].path);
    }
}

void tn_feed_next(tn_feed *feed, tn_block *block)
{
    TN_ASSERT(!feed->over);
    if (feed->files->tnb == NULL || feed->forsaken) {
        next_of_file(feed, block);
        return;
    }
    clear(feed, block);
    tn_tnb_set_next(feed->files->tnb, feed->part, &feed->cursor, block);
    if (block->fault != TN_OK && block->fault != TN_E_MEMORY && feed->files->spare) {
        forsake_cache(feed, block);
        return;
    }
    feed->over = block->last;
}
