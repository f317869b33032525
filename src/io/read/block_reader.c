/* block_reader.c - parts of files, as blocks of whole records. */
#include "io/read/block_reader.h"

#include "base/core/alloc.h"
#include "base/core/log.h"
#include "base/file/file.h"
#include "io/read/block_reader_private.h"
#include "io/read/line_numbers.h"

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
    tn_feed_leave(feed);
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
    tn_feed_leave(feed);
    feed->part = part;
    feed->cursor = (tn_tnb_cursor){0};
    feed->over = false;
}

/* To the first place where a record may stand again. */
static tn_status pass_damage(tn_feed *feed, tn_block *block, tn_error *err)
{
    size_t want = TN_BLOCK_BYTES;
    while (feed->damaged) {
        TN_TRY(tn_feed_fill(feed, want, err));
        bool found = false;
        tn_bytes window = tn_feed_window(feed);
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
    tn_bytes window = tn_feed_window(feed);
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
    uint64_t end = tn_feed_part(feed)->end;
    while (feed->offset + feed->at < end) {
        tn_bytes window = tn_feed_window(feed);
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
    rest.size_max = TN_FEED_BYTES_MAX;
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
        TN_TRY(tn_feed_open_part(feed, err));
        block->head = feed->head[block->file].column != NULL ? &feed->head[block->file] : NULL;
    }
    TN_TRY(pass_damage(feed, block, err));
    block->line = feed->line;
    tn_status status = TN_END;
    for (size_t want = TN_BLOCK_BYTES; status == TN_END; want *= 2) {
        TN_TRY(tn_feed_fill(feed, want, err));
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
    block->file = tn_feed_part(feed)->source;
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
