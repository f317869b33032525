/* reader_threads.c - the first two stages of a reader: cut blocks, parse them, keep their order. */
#include "base/core/alloc.h"
#include "io/read/reader_private.h"
#include "io/rows/rows.h"

#include <stdio.h>
#include <string.h>

void tn_reader_end(tn_reader *r, tn_status status, const tn_error *err)
{
    (void)pthread_mutex_lock(&r->lock);
    if (!r->ended) {
        r->ended = true;
        r->status = status;
        if (err != NULL) {
            r->err = *err;
        }
    }
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
    tn_queue_close(r->ready);
}

void tn_reader_halt(tn_reader *r)
{
    atomic_store(&r->stop, true);
    (void)pthread_mutex_lock(&r->lock);
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
    tn_queue_close(r->free_blocks);
    tn_queue_close(r->to_parse);
    tn_queue_close(r->ready);
}

tn_lane *tn_reader_join(const tn_reader *r, const char *stage)
{
    char name[TN_LANE_NAME_SIZE];
    (void)snprintf(name, sizeof name, "%s%s", r->opts.training ? "" : "eval ", stage);
    return tn_trace_join(r->opts.trace, name);
}

/* One part, block by block. False: nothing is to follow. */
static bool read_part(tn_reader *r, uint32_t part, uint64_t *sequence, tn_lane *lane)
{
    bool last = false;
    bool fatal = false;
    tn_feed_go(r->feed, part);
    while (!last) {
        void *item = NULL;
        tn_lane_step(lane, *sequence);
        tn_span_begin(lane, TN_PHASE_WAIT_ROOM);
        bool got = tn_queue_pop(r->free_blocks, &item);
        tn_span_end(lane);
        if (!got) {
            return false;
        }
        tn_numbered_block *b = item;
        tn_span_begin(lane, TN_PHASE_CUT);
        tn_feed_next(r->feed, &b->block);
        tn_span_end(lane);
        b->sequence = (*sequence)++;
        last = b->block.last;
        fatal = b->block.fault != TN_OK && !b->block.damage;
        if (!tn_queue_push(r->to_parse, b)) { /* has room for every block */
            return false;
        }
    }
    return !fatal;
}

tn_status tn_reader_source_thread(void *arg, tn_error *err)
{
    (void)err; /* faults travel in the blocks, in order */
    tn_reader *r = arg;
    tn_lane *lane = tn_reader_join(r, "read");
    uint64_t sequence = 0;
    uint32_t part = 0;
    tn_feed_trace(r->feed, lane);
    bool more = tn_reader_deal(r, &part);
    while (more) {
        more = read_part(r, part, &sequence, lane) && tn_reader_deal(r, &part);
    }
    tn_trace_leave(lane);
    tn_queue_close(r->to_parse);
    return TN_OK;
}

static void free_work(tn_work *work)
{
    if (work != NULL) {
        tn_rows_free(work->parsed.rows);
        tn_parsed_done(&work->parsed);
        tn_text_done(&work->packed);
        tn_free(work);
    }
}

static tn_work *take_work(tn_reader *r, tn_error *err)
{
    (void)pthread_mutex_lock(&r->lock);
    tn_work *work = r->idle_works;
    if (work != NULL) {
        r->idle_works = work->next;
    }
    (void)pthread_mutex_unlock(&r->lock);
    if (work != NULL) {
        return work;
    }
    work = tn_try_alloc(1, sizeof *work, "parsed rows", err);
    uint32_t keep = (r->opts.want_ids || r->packs ? TN_ROWS_IDS : 0U) |
                    (r->packs ? 0U : TN_ROWS_BARE); /* a cache is packed of entries */
    if (work != NULL && tn_rows_new(&work->parsed.rows, r->schema, keep, err) != TN_OK) {
        tn_free(work);
        return NULL;
    }
    return work;
}

void tn_reader_return_work(tn_reader *r, tn_work *work)
{
    (void)pthread_mutex_lock(&r->lock);
    work->next = r->idle_works;
    r->idle_works = work;
    (void)pthread_mutex_unlock(&r->lock);
}

/* Puts a block where the assembler looks for it; false: the reader stops. */
static bool publish(tn_reader *r, tn_work *work)
{
    (void)pthread_mutex_lock(&r->lock);
    while (!atomic_load(&r->stop) && !r->ended && work->sequence >= r->next + r->n_blocks) {
        (void)pthread_cond_wait(&r->changed, &r->lock);
    }
    bool wanted = !atomic_load(&r->stop) && !r->ended;
    if (wanted) {
        r->ring[work->sequence % r->n_blocks] = work;
        (void)pthread_cond_broadcast(&r->changed);
    }
    (void)pthread_mutex_unlock(&r->lock);
    if (!wanted) {
        free_work(work);
    }
    return wanted;
}

static void parse(tn_reader *r, const tn_numbered_block *b, tn_work *work)
{
    bool one = r->bad_limit.most == 0 && !(r->bad_limit.share > 0);
    tn_block_parse(&b->block, r->schema, r->files, one ? 1 : TN_MESSAGES_MAX, &work->parsed);
    work->sequence = b->sequence;
    work->taken = b->block.taken;
    work->passed = b->block.passed;
    work->file = b->block.file;
    work->last = b->block.last;
    if (r->packs) {
        const tn_tnb_note note = {.taken = work->taken, .passed = work->passed};
        tn_tnb_pack(&work->parsed, &note, &work->packed);
    }
}

/* The next block to parse. False: there is none, or the reader stops. */
static bool take_block(tn_reader *r, tn_lane *lane, tn_numbered_block **out)
{
    void *item = NULL;
    tn_span_begin(lane, TN_PHASE_WAIT_INPUT);
    bool got = tn_queue_pop(r->to_parse, &item);
    tn_span_end(lane);
    *out = item;
    return got;
}

/* Parses a block and hands it on. False: the reader stops. */
static bool parse_one(tn_reader *r, tn_lane *lane, tn_numbered_block *b, tn_work *work)
{
    tn_lane_step(lane, b->sequence);
    tn_span_begin(lane, TN_PHASE_PARSE);
    parse(r, b, work);
    tn_span_next(lane, TN_PHASE_WAIT_ROOM);
    bool pushed = tn_queue_push(r->free_blocks, b);
    if (!pushed) {
        free_work(work);
    }
    bool good = pushed && publish(r, work);
    tn_span_end(lane);
    return good;
}

tn_status tn_reader_parser_thread(void *arg, tn_error *err)
{
    tn_reader *r = arg;
    tn_lane *lane = tn_reader_join(r, "parse");
    tn_numbered_block *b = NULL;
    tn_status status = TN_OK;
    while (take_block(r, lane, &b)) {
        tn_work *work = take_work(r, err);
        if (work == NULL) {
            tn_reader_end(r, TN_E_MEMORY, err);
            status = TN_E_MEMORY;
            break;
        }
        if (!parse_one(r, lane, b, work)) {
            break;
        }
    }
    tn_trace_leave(lane);
    return status;
}

tn_work *tn_reader_next_work(tn_reader *r)
{
    (void)pthread_mutex_lock(&r->lock);
    tn_work **place = &r->ring[r->next % r->n_blocks];
    while (!atomic_load(&r->stop) && !r->ended && *place == NULL) {
        (void)pthread_cond_wait(&r->changed, &r->lock);
    }
    tn_work *work = atomic_load(&r->stop) || r->ended ? NULL : *place;
    if (work != NULL) {
        *place = NULL;
        r->next++;
        (void)pthread_cond_broadcast(&r->changed);
    }
    (void)pthread_mutex_unlock(&r->lock);
    return work;
}
