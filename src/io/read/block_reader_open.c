/* block_reader_open.c - to the first record of a part: marks, heads, and finding where a record
 * begins. */
#include "base/core/alloc.h"
#include "io/read/block_reader_private.h"
#include "io/read/line_numbers.h"
#include "io/schema/columns.h"

enum { HOP_BYTES = 1 << 18, HEADER_BYTES_MAX = 64 };

void tn_feed_leave(tn_feed *feed)
{
    tn_source_close(feed->source);
    feed->source = NULL;
    tn_text_clear(&feed->rest);
    feed->at = 0;
    feed->ended = false;
    feed->damaged = false;
}

tn_status tn_feed_fill(tn_feed *feed, size_t size, tn_error *err)
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
    rest->size_max = TN_FEED_BYTES_MAX;
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
    TN_TRY(tn_feed_fill(feed, TN_BLOCK_BYTES, err));
    tn_bytes window = tn_feed_window(feed);
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
        TN_TRY(tn_feed_fill(feed, size, err));
        tn_bytes window = tn_feed_window(feed);
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
    tn_feed_leave(feed);
    feed->offset = from;
    feed->line = start_of_text;
    feed->taken = from;
    TN_TRY(tn_fileset_open(feed->files, tn_feed_part(feed)->source, from, feed->stop, &feed->source,
                           err));
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
        TN_TRY(tn_feed_fill(feed, TN_BLOCK_BYTES, err));
        tn_bytes window = tn_feed_window(feed);
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
        TN_TRY(tn_feed_fill(feed, HOP_BYTES, err));
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
        TN_TRY(tn_feed_fill(feed, want, err));
        uint64_t step = found ? feed->format->hop(tn_feed_window(feed), feed->schema) : 0;
        if (step == 0) {
            step = feed->format->resync(tn_feed_window(feed), feed->ended, feed->schema, &found);
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

tn_status tn_feed_open_part(tn_feed *feed, tn_error *err)
{
    const tn_part_info *part = tn_feed_part(feed);
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
