/* reader.c - a stream of batches: opening, closing, and what the consumer calls. */
#include "io/read/reader.h"

#include "base/core/alloc.h"
#include "base/math/rng.h"
#include "io/read/reader_private.h"

#include <inttypes.h>
#include <string.h>

enum { BLOCKS_PER_PARSER = 2, BLOCKS_MORE = 2, PARSERS_AUTO_MAX = 8 };

static uint32_t parsers_of(const tn_schema *schema)
{
    uint32_t n = schema->data->readers;
    if (n == TN_AUTO || n == 0) {
        n = tn_cpu_count() / 2;
        n = n < 1 ? 1 : n > PARSERS_AUTO_MAX ? PARSERS_AUTO_MAX : n;
    }
    return n < TN_PARSERS_MAX ? n : TN_PARSERS_MAX;
}

/* From the first parts of units to all parts: those of a unit stay side by side. */
static tn_status spread_units(tn_reader *r, uint32_t units, tn_error *err)
{
    uint32_t *all = tn_try_alloc(r->files->n_parts, sizeof *all, "the order of parts", err);
    if (all == NULL) {
        return TN_E_MEMORY;
    }
    uint32_t n = 0;
    for (uint32_t u = 0; u < units; u++) {
        const uint32_t parts = tn_fileset_unit(r->files, r->order[u]);
        for (uint32_t i = 0; i < parts; i++) {
            all[n++] = r->order[u] + i;
        }
    }
    TN_ASSERT(n == r->files->n_parts);
    tn_free(r->order);
    r->order = all;
    return TN_OK;
}

static tn_status order_parts(tn_reader *r, tn_error *err)
{
    uint32_t n = r->files->n_parts;
    r->order = tn_try_alloc(n, sizeof *r->order, "the order of parts", err);
    if (r->order == NULL) {
        return TN_E_MEMORY;
    }
    uint32_t units = 0;
    for (uint32_t i = 0; i < n; i += tn_fileset_unit(r->files, i)) {
        r->order[units++] = i;
    }
    if (r->shuffle) {
        uint64_t stream = tn_stream3(r->opts.seed, TN_RNG_SHUFFLE, r->opts.from.epoch, UINT64_MAX);
        tn_shuffle(stream, r->order, units);
    }
    return units == n ? TN_OK : spread_units(r, units, err);
}

static tn_status make_stages(tn_reader *r, tn_error *err)
{
    r->n_parsers = parsers_of(r->schema);
    r->n_blocks = r->n_parsers * BLOCKS_PER_PARSER + BLOCKS_MORE;
    r->block = tn_try_alloc(r->n_blocks, sizeof *r->block, "blocks of records", err);
    r->ring = tn_try_alloc(r->n_blocks, sizeof(void *), "blocks of records", err);
    r->filling = tn_try_alloc(TN_FILLINGS_MAX, sizeof(void *), "batches", err);
    r->idle = tn_try_alloc(TN_FILLINGS_MAX, sizeof(void *), "batches", err);
    r->logged = tn_try_alloc(r->files->n, 1, "counts of bad records", err);
    if (r->block == NULL || r->ring == NULL || r->filling == NULL || r->idle == NULL ||
        r->logged == NULL) {
        return TN_E_MEMORY;
    }
    uint32_t prefetch = r->opts.prefetch > 0 ? r->opts.prefetch : 1;
    TN_TRY(tn_queue_new(&r->free_blocks, r->n_blocks, err));
    TN_TRY(tn_queue_new(&r->to_parse, r->n_blocks, err));
    TN_TRY(tn_queue_new(&r->ready, prefetch, err));
    for (uint32_t i = 0; i < r->n_blocks; i++) {
        bool pushed = tn_queue_push(r->free_blocks, &r->block[i]);
        TN_ASSERT(pushed);
    }
    return tn_feed_new(&r->feed, r->schema, r->files, &r->stop, err);
}

static tn_status start_threads(tn_reader *r, tn_error *err)
{
    TN_TRY(tn_thread_start(&r->source, "tn-read", tn_reader_source_thread, r, err));
    for (uint32_t i = 0; i < r->n_parsers; i++) {
        TN_TRY(tn_thread_start(&r->parser[i], "tn-parse", tn_reader_parser_thread, r, err));
    }
    return tn_thread_start(&r->assembler, "tn-batch", tn_reader_assembler_thread, r, err);
}

static tn_status build(tn_reader *r, tn_error *err)
{
    const tn_data_opts *data = r->schema->data;
    if (tn_format_find(data->format) == NULL) {
        return tn_fail(err, TN_E_CONFIG, "unknown data.format '%s'", data->format);
    }
    TN_TRY(tn_bad_limit_read(data->bad_records_max, &r->bad_limit, err));
    TN_TRY(tn_fileset_new(&r->files, &r->opts.paths, r->schema, tn_reader_cut_for(r), err));
    TN_TRY(tn_reader_begin_cache(r, err));
    r->packs = r->cache != NULL;
    if (r->opts.from.part > r->files->n_parts) {
        return tn_fail(err, TN_E_DATA, "cannot go on in part %u: the data has %u parts",
                       r->opts.from.part, r->files->n_parts);
    }
    TN_TRY(order_parts(r, err));
    TN_TRY(tn_reader_begin_deal(r, err));
    TN_TRY(make_stages(r, err));
    return start_threads(r, err);
}

tn_status tn_reader_open(tn_reader **out, const tn_schema *schema, const tn_reader_opts *opts,
                         tn_error *err)
{
    *out = NULL;
    TN_ASSERT(opts->batch_rows > 0);
    tn_reader *r = tn_try_alloc(1, sizeof *r, "a reader", err);
    if (r == NULL) {
        return TN_E_MEMORY;
    }
    r->schema = schema;
    r->opts = *opts;
    r->shuffle = opts->training && schema->data->shuffle > 0;
    r->status = TN_END;
    r->fillings_max = TN_FILLINGS_MAX;
    atomic_init(&r->stop, false);
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_cond_init(&r->changed, NULL);
    tn_status status = build(r, err);
    if (status != TN_OK) {
        tn_reader_close(r);
        return status;
    }
    *out = r;
    return TN_OK;
}

/* What went wrong stands in r->err; a thread itself fails for lack of memory only. */
static void join(tn_thread **thread)
{
    tn_error ignored = {0};
    tn_status status = tn_thread_join(*thread, &ignored);
    TN_ASSERT(status == TN_OK || status == TN_E_MEMORY);
    *thread = NULL;
}

void tn_reader_quit(tn_reader *reader)
{
    tn_reader_halt(reader);
    join(&reader->source);
    for (uint32_t i = 0; i < reader->n_parsers; i++) {
        join(&reader->parser[i]);
    }
    join(&reader->assembler);
}

static void free_works(tn_reader *r)
{
    for (uint32_t i = 0; r->ring != NULL && i < r->n_blocks; i++) {
        if (r->ring[i] != NULL) {
            tn_reader_return_work(r, r->ring[i]);
        }
    }
    while (r->idle_works != NULL) {
        tn_work *work = r->idle_works;
        r->idle_works = work->next;
        tn_rows_free(work->parsed.rows);
        tn_parsed_done(&work->parsed);
        tn_text_done(&work->packed);
        tn_free(work);
    }
}

void tn_reader_close(tn_reader *reader)
{
    tn_reader *r = reader;
    if (r == NULL) {
        return;
    }
    if (r->ready != NULL) { /* else no thread was started */
        tn_reader_quit(r);
    }
    free_works(r);
    for (uint32_t i = 0; i < r->n_fillings; i++) {
        tn_filling_free(r->filling[i]);
    }
    for (uint32_t i = 0; r->block != NULL && i < r->n_blocks; i++) {
        tn_block_done(&r->block[i].block);
    }
    tn_tnb_abandon(r->cache);
    tn_feed_free(r->feed);
    tn_queue_free(r->free_blocks);
    tn_queue_free(r->to_parse);
    tn_queue_free(r->ready);
    tn_free(r->block);
    tn_free(r->ring);
    tn_free(r->filling);
    tn_free(r->idle);
    tn_free(r->logged);
    tn_free(r->order);
    tn_reader_end_deal(r);
    tn_fileset_free(r->files);
    (void)pthread_mutex_destroy(&r->lock);
    (void)pthread_cond_destroy(&r->changed);
    tn_free(r);
}

void tn_reader_stop(tn_reader *reader)
{
    tn_reader_halt(reader);
}

tn_status tn_reader_next(tn_reader *reader, tn_batch **out, tn_error *err)
{
    return tn_reader_next_until(reader, UINT64_MAX, out, err);
}

tn_status tn_reader_next_until(tn_reader *reader, uint64_t until_ns, tn_batch **out, tn_error *err)
{
    void *item = NULL;
    bool got = tn_queue_pop_until(reader->ready, until_ns, &item);
    if (got || !tn_queue_is_over(reader->ready)) {
        *out = item;
        return TN_OK;
    }
    (void)pthread_mutex_lock(&reader->lock);
    tn_status status = reader->ended ? reader->status : TN_E_STOPPED;
    if (status != TN_END && err != NULL) {
        *err = reader->err;
    }
    (void)pthread_mutex_unlock(&reader->lock);
    return status == TN_E_STOPPED ? tn_fail(err, TN_E_STOPPED, "the reader was stopped") : status;
}

void tn_reader_recycle(tn_reader *reader, tn_batch *batch)
{
    (void)pthread_mutex_lock(&reader->lock);
    reader->idle[reader->n_idle++] = tn_filling_of(batch);
    (void)pthread_mutex_unlock(&reader->lock);
}

/* Others have all parts, and may not finish any before this reader has told its prior. Locked. */
static bool awaits_first_part(const tn_reader *reader)
{
    return reader->deal.n == 0 && reader->deal.waits;
}

tn_status tn_reader_prior(tn_reader *reader, tn_prior *out, tn_error *err)
{
    (void)pthread_mutex_lock(&reader->lock);
    while (!reader->prior_known && !reader->ended && !atomic_load(&reader->stop) &&
           !awaits_first_part(reader)) {
        (void)pthread_cond_wait(&reader->changed, &reader->lock);
    }
    bool known = reader->prior_known && reader->prior_weight > 0;
    tn_status status = known                       ? TN_OK
                       : reader->ended             ? reader->status
                       : reader->prior_known       ? TN_END
                       : awaits_first_part(reader) ? TN_END
                                                   : TN_E_STOPPED;
    if (known) {
        *out = (tn_prior){reader->prior_clicks, reader->prior_weight};
    } else if (status != TN_END && err != NULL) {
        *err = reader->err;
    }
    (void)pthread_mutex_unlock(&reader->lock);
    return status == TN_E_STOPPED ? tn_fail(err, TN_E_STOPPED, "the reader was stopped") : status;
}

const char *tn_reader_cache_tmp(const tn_reader *reader)
{
    return reader->cache_tmp[0] != '\0' ? reader->cache_tmp : NULL;
}

void tn_reader_counts(tn_reader *reader, tn_read_counts *out)
{
    (void)pthread_mutex_lock(&reader->lock);
    *out = reader->counts;
    (void)pthread_mutex_unlock(&reader->lock);
    out->sources = reader->files->n;
}

static void add_reason(tn_text *out, const tn_reason *reason, uint64_t count)
{
    if (count > 0) {
        tn_text_add(out, reason->text, strlen(reason->text) + 1);
        tn_text_addf(out, "%" PRIu64, count);
        tn_text_addc(out, '\0');
    }
}

void tn_reader_bad_reasons(tn_reader *reader, tn_text *out)
{
    (void)pthread_mutex_lock(&reader->lock);
    for (uint32_t i = 0; i < reader->n_reasons; i++) {
        add_reason(out, &reader->reason[i], reader->reason[i].count);
    }
    (void)pthread_mutex_unlock(&reader->lock);
}

void tn_reader_counts_of(tn_reader *reader, uint32_t parts, tn_read_counts *out, tn_text *reasons)
{
    uint64_t bad[TN_REASONS_MAX] = {0};
    *out = (tn_read_counts){.sources = reader->files->n};
    (void)pthread_mutex_lock(&reader->lock);
    for (uint32_t p = 0; p < parts && p < reader->deal.n; p++) {
        const tn_deal_part *part = &reader->deal.part[p];
        out->records += part->counts.records;
        out->bytes += part->counts.bytes;
        out->blank += part->counts.blank;
        out->duplicate_key += part->counts.duplicate_key;
        out->bad += part->counts.bad;
        for (uint32_t i = 0; part->reason != NULL && i < reader->n_reasons; i++) {
            bad[i] += part->reason[i];
        }
    }
    for (uint32_t i = 0; i < reader->n_reasons; i++) {
        add_reason(reasons, &reader->reason[i], bad[i]);
    }
    (void)pthread_mutex_unlock(&reader->lock);
}

uint32_t tn_reader_n_parts(const tn_reader *reader)
{
    return reader->files->n_parts;
}

tn_part_info tn_reader_part(const tn_reader *reader, uint32_t i)
{
    TN_ASSERT(i < reader->files->n_parts);
    return reader->files->part[reader->order[i]];
}

uint32_t tn_reader_cut_for(const tn_reader *reader)
{
    return reader->opts.cut_for > 1 ? reader->opts.cut_for : 1;
}

uint32_t tn_reader_n_sources(const tn_reader *reader)
{
    return reader->files->n;
}

const char *tn_reader_source(const tn_reader *reader, uint32_t i)
{
    TN_ASSERT(i < reader->files->n);
    return reader->files->file[i].path;
}

uint64_t tn_reader_total_bytes(const tn_reader *reader)
{
    return reader->files->bytes;
}

uint64_t tn_reader_done_bytes(tn_reader *reader)
{
    (void)pthread_mutex_lock(&reader->lock);
    uint64_t bytes = reader->done_bytes;
    (void)pthread_mutex_unlock(&reader->lock);
    return bytes;
}
