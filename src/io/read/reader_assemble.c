/* reader_assemble.c - the last stage of a reader: windows of rows, permuted, into batches. */
#include "base/core/alloc.h"
#include "base/math/rng.h"
#include "io/read/reader_private.h"
#include "io/rows/rows.h"

enum { AHEAD = 6, MOST = 128 }; /* rows; keys of a row that are asked for */

typedef struct assembly {
    tn_reader *r;
    tn_lane *lane;
    uint64_t batches;
    tn_window window;
    tn_work *held;       /* blocks that lie in the window as a whole */
    tn_work *current;    /* the block that is being taken from; NULL: none */
    uint32_t current_at; /* its next row */
    tn_filling *filling; /* NULL: none is begun */

    uint32_t turn;   /* how many parts before this one */
    uint32_t number; /* of this one, of those that were dealt */
    uint32_t part;
    uint64_t base;    /* rows of the part before the window */
    uint64_t skip;    /* rows of the part that were handed out before */
    uint64_t bad;     /* bad records of the part so far */
    uint64_t records; /* before the part */
    bool part_over;
    bool first; /* the first window is still to come */
} assembly;

/* The next block of the part. TN_END: the reader stops. */
static tn_status next_block(assembly *a, tn_error *err)
{
    tn_span_begin(a->lane, TN_PHASE_WAIT_INPUT);
    a->current = tn_reader_next_work(a->r);
    tn_span_end(a->lane);
    a->current_at = 0;
    if (a->current == NULL) {
        return TN_END;
    }
    a->part_over = a->current->last;
    a->bad += a->current->parsed.n_bad;
    TN_TRY(tn_reader_take_note(a->r, a->number, a->current, err));
    return tn_reader_add_to_cache(a->r, a->part, a->current, err);
}

static void hold_current(assembly *a)
{
    if (a->current != NULL) {
        a->current->next = a->held;
        a->held = a->current;
        a->current = NULL;
    }
}

/* Fills the window: `shuffle` rows of the part, or the rows of one block. */
static tn_status load_window(assembly *a, tn_error *err)
{
    uint32_t size = a->r->shuffle ? a->r->schema->data->shuffle : UINT32_MAX;
    a->window.n = 0;
    while (a->window.n < size) {
        if (a->current == NULL) {
            if (a->part_over || (!a->r->shuffle && a->window.n > 0)) {
                break;
            }
            TN_TRY(next_block(a, err));
        }
        uint32_t left = a->current->parsed.rows->n - a->current_at;
        bool all = left <= size - a->window.n;
        uint32_t n = all ? left : size - a->window.n;
        TN_TRY(tn_window_add(&a->window, a->current, a->current_at, a->current_at + n, err));
        a->current_at += n;
        if (all) {
            hold_current(a);
        }
    }
    uint64_t stream = tn_stream3(a->r->opts.seed, TN_RNG_SHUFFLE, a->r->opts.from.epoch, a->part);
    return tn_window_order(&a->window, a->r->shuffle, stream, a->base, err);
}

static void release_window(assembly *a)
{
    a->base += a->window.n;
    while (a->held != NULL) {
        tn_work *work = a->held;
        a->held = work->next;
        tn_reader_return_work(a->r, work);
    }
}

/* Whether training leaves the row out: it weighs nothing, or is a negative that was not sampled. */
static bool is_left_out(const assembly *a, const tn_pick *pick, uint64_t stream, bool *weightless)
{
    const tn_parsed_row *row = &pick->work->parsed.rows->row[pick->row];
    double share = a->r->schema->data->negative_sampling;
    *weightless = row->weight == 0;
    if (!a->r->opts.training || *weightless) {
        return a->r->opts.training;
    }
    return share < 1 && !(row->label > 0.5F) &&
           !(tn_unit(tn_draw(stream, a->base + pick->index)) < share);
}

static void learn_prior(assembly *a, uint64_t stream)
{
    double clicks = 0;
    double weight = 0;
    for (uint32_t i = 0; i < a->window.n; i++) {
        bool weightless;
        const tn_pick *pick = &a->window.pick[i];
        const tn_parsed_row *row = &pick->work->parsed.rows->row[pick->row];
        if (!is_left_out(a, pick, stream, &weightless)) {
            weight += (double)row->weight;
            clicks += row->label > 0.5F ? (double)row->weight : 0;
        }
    }
    (void)pthread_mutex_lock(&a->r->lock);
    a->r->prior_known = true;
    a->r->prior_clicks = clicks;
    a->r->prior_weight = weight;
    (void)pthread_cond_broadcast(&a->r->changed);
    (void)pthread_mutex_unlock(&a->r->lock);
    a->first = false;
}

static tn_status begin_batch(assembly *a, tn_error *err)
{
    tn_reader *r = a->r;
    (void)pthread_mutex_lock(&r->lock);
    a->filling = r->n_idle > 0 ? r->idle[--r->n_idle] : NULL;
    (void)pthread_mutex_unlock(&r->lock);
    if (a->filling != NULL) {
        tn_filling_clear(a->filling);
        return TN_OK;
    }
    tn_filling *made = NULL;
    TN_TRY(tn_filling_new(&made, r->schema, r->opts.batch_rows, r->opts.want_ids, err));
    (void)pthread_mutex_lock(&r->lock);
    bool room = r->n_fillings < r->fillings_max;
    if (room) {
        r->filling[r->n_fillings++] = made;
    }
    (void)pthread_mutex_unlock(&r->lock);
    if (!room) {
        tn_filling_free(made);
        return tn_fail(err, TN_E_LIMIT, "more than %u batches were taken and not recycled",
                       r->fillings_max);
    }
    a->filling = made;
    return TN_OK;
}

/* `taken` rows of the part are behind this batch. TN_END: the reader stops. */
static tn_status end_batch(assembly *a, uint64_t taken, tn_error *err)
{
    TN_TRY(tn_filling_settle(a->filling, err));
    tn_batch *batch = tn_filling_end(a->filling);
    batch->progress = (tn_progress){.epoch = a->r->opts.from.epoch,
                                    .part = a->turn,
                                    .position = taken,
                                    .records = a->records + taken + a->bad};
    a->filling = NULL;
    tn_span_begin(a->lane, TN_PHASE_WAIT_ROOM);
    bool pushed = tn_queue_push(a->r->ready, batch);
    tn_span_end(a->lane);
    tn_lane_step(a->lane, ++a->batches);
    return pushed ? TN_OK : TN_END;
}

static void prefetch(const void *from, size_t size)
{
    const char *at = from;
    for (size_t i = 0; i < size; i += TN_CACHE_LINE) {
        __builtin_prefetch(at + i);
    }
}

static void prefetch_keys(const tn_rows *rows, uint32_t row)
{
    const tn_bare *bare = tn_rows_bare(rows);
    if (bare != NULL && bare->stride > 0) { /* the row itself need not have come yet */
        prefetch(bare->key + (size_t)row * bare->stride, bare->stride * sizeof *bare->key);
        return;
    }
    uint32_t first = rows->row[row].first;
    size_t n = tn_rows_end_of(rows, row) - first;
    n = n < MOST ? n : MOST;
    if (bare == NULL) {
        prefetch(rows->entry + first, n * sizeof *rows->entry);
        return;
    }
    prefetch(bare->key + first, n * sizeof *bare->key);
    prefetch(bare->slot + (bare->width > 0 ? 0 : first), n * sizeof *bare->slot);
}

/* Rows lie anywhere in the window: asks for those that come next. */
static void look_ahead(const assembly *a, uint32_t i)
{
    if (i + 9 * AHEAD < a->window.n) {
        __builtin_prefetch(&a->window.pick[a->window.order[i + 9 * AHEAD]]);
    }
    if (i + 3 * AHEAD < a->window.n) {
        const tn_pick *pick = &a->window.pick[a->window.order[i + 3 * AHEAD]];
        __builtin_prefetch(&pick->work->parsed.rows->row[pick->row]);
    }
    if (i + AHEAD < a->window.n) {
        const tn_pick *pick = &a->window.pick[a->window.order[i + AHEAD]];
        prefetch_keys(pick->work->parsed.rows, pick->row);
    }
}

static tn_status hand_out(assembly *a, uint64_t stream, tn_error *err)
{
    uint64_t weightless = 0;
    uint64_t sampled_out = 0;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < a->window.n && status == TN_OK; i++) {
        const tn_pick *pick = &a->window.pick[a->window.order[i]];
        uint64_t taken = a->base + i + 1;
        bool no_weight = false;
        look_ahead(a, i);
        if (taken <= a->skip) {
            if (taken == a->skip) { /* so that later counts go on where they were */
                a->records -= taken + a->bad;
            }
            continue;
        }
        if (is_left_out(a, pick, stream, &no_weight)) {
            weightless += no_weight;
            sampled_out += !no_weight;
            continue;
        }
        status = a->filling == NULL ? begin_batch(a, err) : TN_OK;
        if (status == TN_OK) {
            status = tn_filling_add(a->filling, pick->work->parsed.rows, pick->row,
                                    pick->work->file, err);
        }
        if (status == TN_OK && tn_filling_rows(a->filling) == a->r->opts.batch_rows) {
            status = end_batch(a, taken, err);
        }
    }
    if (status == TN_OK && a->filling != NULL) { /* the rows of the window go now */
        status = tn_filling_settle(a->filling, err);
    }
    (void)pthread_mutex_lock(&a->r->lock);
    a->r->counts.zero_weight += weightless;
    a->r->counts.sampled_out += sampled_out;
    (void)pthread_mutex_unlock(&a->r->lock);
    return status;
}

static tn_status take_part(assembly *a, const tn_dealt *dealt, tn_error *err)
{
    a->part = a->r->order[dealt->place];
    a->base = 0;
    a->bad = 0;
    a->skip = dealt->position;
    a->part_over = false;
    uint64_t stream = tn_stream2(a->r->opts.seed, TN_RNG_SAMPLING, a->part);
    while (!a->part_over || a->current != NULL) {
        tn_span_begin(a->lane, TN_PHASE_SHUFFLE);
        TN_TRY(load_window(a, err));
        if (a->first && a->window.n > 0) {
            learn_prior(a, stream);
        }
        tn_span_next(a->lane, TN_PHASE_BATCH);
        TN_TRY(hand_out(a, stream, err));
        release_window(a);
        tn_span_end(a->lane);
    }
    a->records += a->base + a->bad;
    return TN_OK;
}

/* The rows that wait for more to come go as they are, behind the part that was the last. */
static tn_status flush(assembly *a, tn_error *err)
{
    if (a->filling == NULL) {
        return TN_OK;
    }
    a->turn--;
    a->records -= a->base + a->bad;
    tn_status status = end_batch(a, a->base, err);
    a->records += a->base + a->bad;
    a->turn++;
    return status;
}

/* All rows of the parts before this one are in batches. */
static void tell_flushed(const assembly *a, uint32_t first)
{
    const tn_dealer *dealer = &a->r->deal.dealer;
    if (dealer->flushed != NULL) {
        dealer->flushed(dealer->arg, a->turn - first, a->batches, a->records);
    }
}

static tn_status take_parts(assembly *a, tn_error *err)
{
    const bool dealt_all = a->r->opts.dealer == NULL;
    const uint32_t first = dealt_all ? a->r->opts.from.part : 0;
    tn_status status = TN_OK;
    a->records = dealt_all ? a->r->opts.from.records : 0;
    a->turn = first;
    while (status == TN_OK) {
        tn_dealt dealt;
        bool now = false;
        a->number = a->turn - first;
        status = tn_reader_await_deal(a->r, a->number, false, &dealt, &now);
        if (status == TN_OK && !now) {
            TN_TRY(flush(a, err));
            tell_flushed(a, first);
            status = tn_reader_await_deal(a->r, a->number, true, &dealt, &now);
        }
        if (status == TN_OK) {
            TN_TRY(take_part(a, &dealt, err));
            a->turn++;
        }
    }
    if (status == TN_E_STOPPED) {
        return TN_END;
    }
    TN_TRY(flush(a, err));
    tell_flushed(a, first);
    TN_TRY(tn_reader_judge_all(a->r, err));
    return tn_reader_end_cache(a->r, err);
}

tn_status tn_reader_assembler_thread(void *arg, tn_error *err)
{
    tn_reader *r = arg;
    assembly a = {.r = r, .first = true, .lane = tn_reader_join(r, "batch")};
    tn_status status = take_parts(&a, err);
    tn_trace_leave(a.lane);
    hold_current(&a);
    release_window(&a);
    tn_window_done(&a.window);
    /* TN_END here: stopped from outside, which is no fault. */
    tn_reader_end(r, status == TN_OK ? TN_END : status == TN_END ? TN_E_STOPPED : status, err);
    return TN_OK;
}
