/* reader_threads.c - the stages of a reader: cut blocks; parse them and keep their order; put
 * windows of rows, permuted, into batches.
 */
#include "io/read/reader_private.h"

#include "base/core/alloc.h"
#include "base/math/rng.h"
#include "base/trace/trace.h"
#include "io/read/block_reader.h"
#include "io/rows/rows.h"
#include "io/rows/rows_parsing.h"
#include "io/schema/dataopts.h"

#include <stdio.h>
#include <string.h>

/* ---- the rows that are held back to be permuted, and the blocks they lie in ----
 *
 *     blocks    [r r r r] [r r r] [r r|r r]       the last one goes on in the next window
 *     order      5 0 6 2 8 1 3 7 4
 *
 * Rows are not moved: the window lists where they are, and permutes the list. */

typedef struct window_row {
    tn_work *work;
    uint32_t row;
} window_row;

typedef struct shuffle_window {
    window_row *pick; /* n, in the order of the files */
    uint32_t n;
    uint32_t capacity;
    uint32_t *order; /* n: the order they leave in */
    uint32_t order_capacity;
} shuffle_window;

static void window_done(shuffle_window *window)
{
    tn_free(window->pick);
    tn_free(window->order);
    *window = (shuffle_window){.n = 0};
}

/* Appends rows from .. to-1 of a block. */
static tn_status window_add(shuffle_window *window, tn_work *work, uint32_t from, uint32_t to,
                            tn_error *err)
{
    if (!tn_rows_grow(&window->pick, window->n, to - from, sizeof(window_row), &window->capacity)) {
        return tn_fail(err, TN_E_MEMORY, "no memory for a shuffle window");
    }
    for (uint32_t row = from; row < to; row++) {
        window->pick[window->n] = (window_row){.work = work, .row = row};
        window->n++;
    }
    return TN_OK;
}

/* Sets the order: as the rows are, or permuted by `stream` from its draw number `first` on. */
static tn_status window_order(shuffle_window *window, bool shuffle, uint64_t stream, uint64_t first,
                              tn_error *err)
{
    if (!tn_rows_grow(&window->order, 0, window->n, sizeof(uint32_t), &window->order_capacity)) {
        return tn_fail(err, TN_E_MEMORY, "no memory for a shuffle window");
    }
    for (uint32_t i = 0; i < window->n; i++) {
        window->order[i] = i;
    }
    if (shuffle) { /* draw i of the shifted stream is draw first + i of the stream itself */
        tn_shuffle(stream + first * TN_GAMMA, window->order, window->n);
    }
    return TN_OK;
}

enum { AHEAD = 6, MOST = 128 }; /* rows; keys of a row that are asked for */

#define AHEAD_BYTES_MAX (UINT64_C(16) << 20) /* rows that are parsed and wait */

typedef struct assembly {
    tn_reader *r;
    tn_lane *lane;
    uint64_t batches;
    shuffle_window window;
    tn_work *held;             /* blocks that lie in the window as a whole */
    tn_work *current;          /* the block that is being taken from; NULL: none */
    uint32_t current_at;       /* its next row */
    tn_batch_builder *builder; /* NULL: none is begun */

    uint32_t turn;   /* how many parts before this one */
    uint32_t number; /* number of this part among those that were dealt */
    uint32_t part;
    uint32_t from;    /* the part from which rows are counted: this one, or one before it */
    uint64_t base;    /* rows of that part before the window */
    uint64_t skip;    /* rows of the part that were handed out before */
    uint64_t bad;     /* bad records of the part so far */
    uint64_t records; /* before the part */
    bool part_over;
    bool first; /* the first window is still to come */
} assembly;

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

/* The calling thread's lane in the trace of the options; NULL when there is none. */
static tn_lane *join_trace(const tn_reader *r, const char *stage)
{
    char name[TN_LANE_NAME_SIZE];
    (void)snprintf(name, sizeof name, "%s%s", r->opts.training ? "" : "eval ", stage);
    return tn_trace_join(r->opts.trace, name);
}

/* One part, block by block. False: nothing is to follow. */
static bool read_part(tn_reader *r, uint32_t part, uint64_t *n_blocks, tn_lane *lane)
{
    bool last = false;
    bool fatal = false;
    tn_block_reader_go(r->block_reader, part);
    while (!last) {
        void *item = NULL;
        tn_lane_step(lane, *n_blocks);
        tn_span_begin(lane, TN_PHASE_WAIT_ROOM);
        bool got = tn_queue_pop(r->free_blocks, &item);
        tn_span_end(lane);
        if (!got) {
            return false;
        }
        tn_block *b = item;
        tn_span_begin(lane, TN_PHASE_CUT);
        tn_block_reader_next(r->block_reader, b);
        tn_span_end(lane);
        *n_blocks = b->sequence + 1;
        last = b->last;
        fatal = b->fault != TN_OK && !b->damage;
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
    tn_lane *lane = join_trace(r, "read");
    uint64_t n_blocks = 0;
    uint32_t part = 0;
    tn_block_reader_trace(r->block_reader, lane);
    bool more = tn_reader_deal(r, &part);
    while (more) {
        more = read_part(r, part, &n_blocks, lane) && tn_reader_deal(r, &part);
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
    const uint32_t keep = (r->opts.want_ids ? TN_ROWS_IDS : 0U) | TN_ROWS_BARE;
    if (work != NULL && tn_rows_new(&work->parsed.rows, r->schema, keep, err) != TN_OK) {
        tn_free(work);
        return NULL;
    }
    return work;
}

static void return_work(tn_reader *r, tn_work *work)
{
    (void)pthread_mutex_lock(&r->lock);
    work->next = r->idle_works;
    r->idle_works = work;
    (void)pthread_mutex_unlock(&r->lock);
}

void tn_reader_free_works(tn_reader *r)
{
    for (uint32_t i = 0; i < TN_BLOCKS_MAX; i++) {
        free_work(r->ring[i]);
    }
    while (r->idle_works != NULL) {
        tn_work *work = r->idle_works;
        r->idle_works = work->next;
        free_work(work);
    }
}

static uint64_t bytes_of(const tn_rows *rows)
{
    const tn_bare *bare = tn_rows_bare(rows);
    return rows->n * sizeof *rows->row + (bare != NULL
                                              ? (uint64_t)rows->n * bare->stride * sizeof *bare->key
                                              : rows->n_entries * sizeof *rows->entry);
}

/* Whether a block is to wait until the assembler has taken some that are parsed. While a window is
 * handed out the next one is parsed, but for what would take too much memory: none of its rows can
 * leave before the last is there, and training would wait for all of them. Locked. */
static bool is_too_early(const tn_reader *r, const tn_work *work)
{
    const uint64_t ahead = work->parsed.sequence - r->next;
    const uint64_t window = r->shuffle ? r->schema->data->shuffle : 0;
    return ahead >= TN_BLOCKS_MAX ||
           (ahead >= r->n_blocks && (r->ahead_rows >= window || r->ahead_bytes >= AHEAD_BYTES_MAX));
}

/* Puts a block where the assembler looks for it; false: the reader stops. */
static bool publish(tn_reader *r, tn_work *work)
{
    (void)pthread_mutex_lock(&r->lock);
    while (!atomic_load(&r->stop) && !r->ended && is_too_early(r, work)) {
        (void)pthread_cond_wait(&r->changed, &r->lock);
    }
    bool wanted = !atomic_load(&r->stop) && !r->ended;
    if (wanted) {
        r->ring[work->parsed.sequence % TN_BLOCKS_MAX] = work;
        r->ahead_rows += work->parsed.rows->n;
        r->ahead_bytes += bytes_of(work->parsed.rows);
        (void)pthread_cond_broadcast(&r->changed);
    }
    (void)pthread_mutex_unlock(&r->lock);
    if (!wanted) {
        free_work(work);
    }
    return wanted;
}

static void parse(tn_reader *r, const tn_block *b, tn_work *work)
{
    bool one = r->bad_limit.most == 0 && !(r->bad_limit.share > 0);
    tn_block_parse(b, r->schema, r->files, one ? 1 : TN_MESSAGES_MAX, &work->parsed);
}

/* The next block to parse. False: there is none, or the reader stops. */
static bool take_block(tn_reader *r, tn_lane *lane, tn_block **out)
{
    void *item = NULL;
    tn_span_begin(lane, TN_PHASE_WAIT_INPUT);
    bool got = tn_queue_pop(r->to_parse, &item);
    tn_span_end(lane);
    *out = item;
    return got;
}

/* Parses a block and hands it on. False: the reader stops. */
static bool parse_one(tn_reader *r, tn_lane *lane, tn_block *b, tn_work *work)
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
    tn_lane *lane = join_trace(r, "parse");
    tn_block *b = NULL;
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

/* The next block in order, or NULL: stopped, or the reader has ended. */
static tn_work *next_work(tn_reader *r)
{
    (void)pthread_mutex_lock(&r->lock);
    tn_work **place = &r->ring[r->next % TN_BLOCKS_MAX];
    while (!atomic_load(&r->stop) && !r->ended && *place == NULL) {
        (void)pthread_cond_wait(&r->changed, &r->lock);
    }
    tn_work *work = atomic_load(&r->stop) || r->ended ? NULL : *place;
    if (work != NULL) {
        *place = NULL;
        r->next++;
        r->ahead_rows -= work->parsed.rows->n;
        r->ahead_bytes -= bytes_of(work->parsed.rows);
        (void)pthread_cond_broadcast(&r->changed);
    }
    (void)pthread_mutex_unlock(&r->lock);
    return work;
}

/* The next block of the part. TN_END: the reader stops. */
static tn_status next_block(assembly *a, tn_error *err)
{
    tn_span_begin(a->lane, TN_PHASE_WAIT_INPUT);
    a->current = next_work(a->r);
    tn_span_end(a->lane);
    a->current_at = 0;
    if (a->current == NULL) {
        return TN_END;
    }
    a->part_over = a->current->parsed.last;
    a->bad += a->current->parsed.n_bad;
    return tn_reader_take_note(a->r, a->number, a->current, err);
}

static void hold_current(assembly *a)
{
    if (a->current != NULL) {
        a->current->next = a->held;
        a->held = a->current;
        a->current = NULL;
    }
}

/* A window that is larger than any that is chosen for mixed rows reaches over parts, of a reader
 * that has all of them: then what lies in the same order in every file is mixed, and so are files.
 * Rows are counted from the part that the first of them lies in. */
static bool reaches_over(const tn_reader *r)
{
    return r->shuffle && r->schema->data->shuffle > TN_SHUFFLE_OF_PART && r->opts.dealer == NULL &&
           r->opts.shares <= 1;
}

/* Another part for the same window: a->part_over stays when there is none. TN_END: the reader
 * stops. */
static tn_status join_part(assembly *a)
{
    tn_dealt dealt;
    bool now = false;
    const tn_status status = tn_reader_await_deal(a->r, a->number + 1, true, &dealt, &now);
    if (status == TN_OK) {
        a->number++;
        a->part = a->r->order[dealt.place];
        a->part_over = false;
    }
    return status == TN_E_STOPPED ? TN_END : TN_OK;
}

/* The block that the window goes on with; a->current stays NULL when the window is full without. */
static tn_status continue_window(assembly *a, tn_error *err)
{
    if (a->current != NULL) {
        return TN_OK;
    }
    if (a->part_over && reaches_over(a->r)) {
        TN_TRY(join_part(a));
    }
    const bool is_full = a->part_over || (!a->r->shuffle && a->window.n > 0);
    return is_full ? TN_OK : next_block(a, err);
}

/* Fills the window: `shuffle` rows of the part, or the rows of one block. */
static tn_status load_window(assembly *a, tn_error *err)
{
    uint32_t size = a->r->shuffle ? a->r->schema->data->shuffle : UINT32_MAX;
    a->window.n = 0;
    while (a->window.n < size) {
        TN_TRY(continue_window(a, err));
        if (a->current == NULL) {
            break;
        }
        uint32_t left = a->current->parsed.rows->n - a->current_at;
        bool all = left <= size - a->window.n;
        uint32_t n = all ? left : size - a->window.n;
        TN_TRY(window_add(&a->window, a->current, a->current_at, a->current_at + n, err));
        a->current_at += n;
        if (all) {
            hold_current(a);
        }
    }
    uint64_t stream = tn_stream3(a->r->opts.seed, TN_RNG_SHUFFLE, a->r->opts.from.epoch, a->from);
    return window_order(&a->window, a->r->shuffle, stream, a->base, err);
}

static void release_window(assembly *a)
{
    a->base += a->window.n;
    while (a->held != NULL) {
        tn_work *work = a->held;
        a->held = work->next;
        return_work(a->r, work);
    }
}

/* Row i of the window. */
static const tn_parsed_row *row_of(const assembly *a, uint32_t i)
{
    const window_row *pick = &a->window.pick[i];
    return &pick->work->parsed.rows->row[pick->row];
}

/* Whether row i of the window is left out: as one that is held back, or is not, or by training,
 * where it weighs nothing, or is a negative that was not sampled. */
static bool is_left_out(const assembly *a, uint32_t i, uint64_t stream, bool *weightless)
{
    const tn_parsed_row *row = row_of(a, i);
    double share = a->r->schema->data->negative_sampling;
    *weightless = row->weight == 0 && a->r->opts.training;
    if (*weightless) {
        return true;
    }
    if (a->r->held.kind != TN_HELD_NONE) {
        const uint32_t source = a->window.pick[i].work->parsed.file;
        if (tn_held_rows_has(&a->r->held, source, row->at) != a->r->opts.held) {
            return true;
        }
    }
    if (!a->r->opts.training) {
        return false;
    }
    return share < 1 && !(row->label > 0.5F) && !(tn_unit(tn_draw(stream, a->base + i)) < share);
}

/* Returns the summand of a prior that a label gives. */
static double prior_of(tn_target target, float label)
{
    const double click = label > 0.5F ? 1 : 0;
    return target == TN_TARGET_NUMBER ? (double)label : click;
}

static void add_task_priors(const assembly *a, uint32_t i, tn_prior *prior)
{
    const tn_tasks *tasks = a->r->schema->data->tasks;
    const window_row *p = &a->window.pick[i];
    if (tasks == NULL) {
        return;
    }
    const float *aside = tn_rows_aside(p->work->parsed.rows, p->row);
    const tn_parsed_row *row = row_of(a, i);
    for (uint32_t k = 0; k < tasks->n; k++) {
        const tn_task_row is = tn_task_row_of(tasks, k, row->label, aside);
        const double w = (double)row->weight * (double)is.factor;
        prior->task[k].weight += w;
        prior->task[k].clicks += w * prior_of(tasks->task[k].target, is.label);
    }
}

static void learn_prior(assembly *a, uint64_t stream)
{
    tn_prior prior = {0};
    const tn_target target = a->r->schema->data->target;
    for (uint32_t i = 0; i < a->window.n; i++) {
        bool weightless;
        const tn_parsed_row *row = row_of(a, i);
        if (!is_left_out(a, i, stream, &weightless)) {
            prior.weight += (double)row->weight;
            prior.clicks += (double)row->weight * prior_of(target, row->label);
            add_task_priors(a, i, &prior);
        }
    }
    (void)pthread_mutex_lock(&a->r->lock);
    a->r->prior_known = true;
    a->r->prior = prior;
    (void)pthread_cond_broadcast(&a->r->changed);
    (void)pthread_mutex_unlock(&a->r->lock);
    a->first = false;
}

static tn_status begin_batch(assembly *a, tn_error *err)
{
    tn_reader *r = a->r;
    (void)pthread_mutex_lock(&r->lock);
    a->builder = r->n_idle > 0 ? r->idle[--r->n_idle] : NULL;
    (void)pthread_mutex_unlock(&r->lock);
    if (a->builder != NULL) {
        tn_batch_builder_clear(a->builder);
        return TN_OK;
    }
    tn_batch_builder *made = NULL;
    TN_TRY(tn_batch_builder_new(&made, r->schema, r->opts.batch_rows, r->opts.want_ids, err));
    (void)pthread_mutex_lock(&r->lock);
    bool room = r->n_builders < TN_BATCH_BUILDERS_MAX;
    if (room) {
        r->builder[r->n_builders++] = made;
    }
    (void)pthread_mutex_unlock(&r->lock);
    if (!room) {
        tn_batch_builder_free(made);
        return tn_fail(err, TN_E_LIMIT, "more than %d batches were taken and not recycled",
                       TN_BATCH_BUILDERS_MAX);
    }
    a->builder = made;
    return TN_OK;
}

/* Ends a batch, after which `taken` rows of the part have been handed out. TN_END: the reader
 * stops. */
static tn_status end_batch(assembly *a, uint64_t taken, tn_error *err)
{
    TN_TRY(tn_batch_builder_settle(a->builder, err));
    tn_batch *batch = tn_batch_builder_end(a->builder);
    batch->progress = (tn_progress){.epoch = a->r->opts.from.epoch,
                                    .part = a->turn,
                                    .position = taken,
                                    .records = a->records + taken + a->bad};
    a->builder = NULL;
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
    if (bare != NULL) { /* the row itself need not have come yet */
        prefetch(bare->key + (size_t)row * bare->stride, bare->stride * sizeof *bare->key);
        return;
    }
    uint32_t first = rows->row[row].first;
    size_t n = tn_rows_end_of(rows, row) - first;
    n = n < MOST ? n : MOST;
    prefetch(rows->entry + first, n * sizeof *rows->entry);
}

/* Rows lie anywhere in the window: asks for those that come next. */
static void look_ahead(const assembly *a, uint32_t i)
{
    if (i + 9 * AHEAD < a->window.n) {
        __builtin_prefetch(&a->window.pick[a->window.order[i + 9 * AHEAD]]);
    }
    if (i + 3 * AHEAD < a->window.n) {
        __builtin_prefetch(row_of(a, a->window.order[i + 3 * AHEAD]));
    }
    if (i + AHEAD < a->window.n) {
        const window_row *pick = &a->window.pick[a->window.order[i + AHEAD]];
        prefetch_keys(pick->work->parsed.rows, pick->row);
    }
}

static tn_status hand_out(assembly *a, uint64_t stream, tn_error *err)
{
    uint64_t weightless = 0;
    uint64_t sampled_out = 0;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < a->window.n && status == TN_OK; i++) {
        const window_row *pick = &a->window.pick[a->window.order[i]];
        uint64_t taken = a->base + i + 1;
        bool no_weight = false;
        look_ahead(a, i);
        if (taken <= a->skip) {
            if (taken == a->skip) { /* so that later counts go on where they were */
                a->records -= taken + a->bad;
            }
            continue;
        }
        if (is_left_out(a, a->window.order[i], stream, &no_weight)) {
            weightless += no_weight;
            sampled_out += !no_weight;
            continue;
        }
        status = a->builder == NULL ? begin_batch(a, err) : TN_OK;
        if (status == TN_OK) {
            status = tn_batch_builder_add(a->builder, pick->work->parsed.rows, pick->row,
                                          pick->work->parsed.file, err);
        }
        if (status == TN_OK && tn_batch_builder_rows(a->builder) == a->r->opts.batch_rows) {
            status = end_batch(a, taken, err);
        }
    }
    if (status == TN_OK && a->builder != NULL) { /* the rows of the window go now */
        status = tn_batch_builder_settle(a->builder, err);
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
    a->from = a->part;
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

/* Hands out the rows that wait for more to come, after the last part. */
static tn_status flush(assembly *a, tn_error *err)
{
    if (a->builder == NULL) {
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
            a->turn = first + a->number + 1;
        }
    }
    if (status == TN_E_STOPPED) {
        return TN_END;
    }
    TN_TRY(flush(a, err));
    tell_flushed(a, first);
    return tn_reader_judge_all(a->r, err);
}

tn_status tn_reader_assembler_thread(void *arg, tn_error *err)
{
    tn_reader *r = arg;
    assembly a = {.r = r, .first = true, .lane = join_trace(r, "batch")};
    tn_status status = take_parts(&a, err);
    tn_trace_leave(a.lane);
    hold_current(&a);
    release_window(&a);
    window_done(&a.window);
    /* TN_END here: stopped from outside, which is no fault. */
    tn_reader_end(r, status == TN_OK ? TN_END : status == TN_END ? TN_E_STOPPED : status, err);
    return TN_OK;
}
