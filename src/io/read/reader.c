/* reader.c - a stream of batches: opening, closing, and what the consumer calls; which parts are
 * this reader's, and what was met in them, bad records included.
 */
#include "io/read/reader.h"

#include "base/core/alloc.h"
#include "base/core/log.h"
#include "base/math/rng.h"
#include "io/format/format.h"
#include "io/read/fileset.h"
#include "io/read/reader_private.h"
#include "io/rows/rows_parsing.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"

#include <inttypes.h>
#include <string.h>

enum { PARSERS_AUTO_MAX = 8 };

/* Returns the number of a reason; the last one is for all that are too many. */
static uint32_t find_reason(tn_reader *r, const char *message)
{
    tn_bytes reason = tn_record_location_reason(message);
    size_t size = reason.size < TN_REASON_BYTES - 1 ? reason.size : TN_REASON_BYTES - 1;
    for (uint32_t i = 0; i < r->n_reasons; i++) {
        if (strlen(r->reason[i]) == size && memcmp(r->reason[i], reason.data, size) == 0) {
            return i;
        }
    }
    if (r->n_reasons == TN_REASONS_MAX) {
        return TN_REASONS_MAX - 1;
    }
    memcpy(r->reason[r->n_reasons], reason.data, size);
    r->reason[r->n_reasons][size] = '\0';
    return r->n_reasons++;
}

/* Locked. */
static tn_status count_reasons(tn_reader *r, tn_deal_part *part, const tn_parsed *p, tn_error *err)
{
    if (p->n_messages > 0 && part->reason == NULL) {
        TN_TRY(TN_ALLOC(part->reason, TN_REASONS_MAX, "bad records", err));
    }
    for (uint32_t i = 0; i < p->n_messages; i++) {
        bool last =
            i + 1 == p->n_messages; /* counted with it: bad records whose message was not kept */
        uint64_t n = last ? 1 + p->n_bad - p->n_messages : 1;
        part->reason[find_reason(r, tn_parsed_message(p, i))] += n;
    }
    return TN_OK;
}

static void add_counts(tn_read_counts *c, const tn_read_counts *more)
{
    c->records += more->records;
    c->bytes += more->bytes;
    c->blank += more->blank;
    c->bad += more->bad;
    c->duplicate_key += more->duplicate_key;
}

/* More than data.bad_records_max? Shows the record that was one too many. */
static tn_status judge(const tn_reader *r, const tn_parsed *p, uint64_t before, tn_error *err)
{
    uint64_t bad = before + p->n_bad;
    if (p->n_messages == 0) { /* nothing is bad, or there was no memory to say it */
        return TN_OK;
    }
    uint64_t records = r->counts.records;
    if (tn_bad_record_limit_allows(&r->bad_limit, records, bad)) {
        return TN_OK;
    }
    if (r->bad_limit.share > 0) {
        return tn_fail(err, TN_E_DATA,
                       "%s\nhint: %" PRIu64 " of %" PRIu64
                       " records are bad, more than data.bad_records_max (%s)",
                       tn_parsed_message(p, p->n_messages - 1), bad, records, r->bad_limit.text);
    }
    uint64_t most = r->bad_limit.most;
    uint32_t last = p->n_messages - 1;
    const char *message =
        tn_parsed_message(p, most - before < last ? (uint32_t)(most - before) : last);
    const char *more = strstr(message, "\nhint: ") != NULL
                           ? ""
                           : "\nhint: 'bad_records_max: 1%' in 'data' passes over such records";
    return most == 0 ? tn_fail(err, TN_E_DATA, "%s%s", message, more)
                     : tn_fail(err, TN_E_DATA,
                               "%s\nhint: more bad records than data.bad_records_max (%" PRIu64 ")",
                               message, most);
}

static void log_bad(tn_reader *r, const tn_work *work)
{
    const tn_parsed *p = &work->parsed;
    unsigned char *shown = &r->logged[p->file];
    bool passed = p->passed > 0 && *shown < TN_LOGGED_PER_FILE;
    for (uint32_t i = 0; i < p->n_messages && *shown < TN_LOGGED_PER_FILE; i++) {
        tn_log(TN_LOG_WARN, "%s", tn_parsed_message(p, i));
        if (++*shown == TN_LOGGED_PER_FILE) {
            tn_log(TN_LOG_WARN, "%s: more bad records are counted but not shown",
                   r->files->file[p->file].path);
        }
    }
    if (passed) {
        tn_log(TN_LOG_WARN, "%s: %" PRIu64 " damaged bytes passed over",
               r->files->file[p->file].path, p->passed);
    }
}

tn_status tn_reader_take_note(tn_reader *r, uint32_t i, const tn_work *work, tn_error *err)
{
    const tn_parsed *p = &work->parsed;
    const tn_read_counts more = {.records = p->records,
                                 .bytes = p->bytes,
                                 .blank = p->blank,
                                 .bad = p->n_bad,
                                 .duplicate_key = p->rows->duplicate_key};
    (void)pthread_mutex_lock(&r->lock);
    tn_deal_part *part = &r->deal.part[i];
    uint64_t before = r->counts.bad;
    add_counts(&r->counts, &more);
    add_counts(&part->counts, &more);
    r->done_bytes += p->taken;
    tn_status counted = count_reasons(r, part, p, err);
    (void)pthread_mutex_unlock(&r->lock);
    TN_TRY(counted);
    TN_TRY(judge(r, p, before, err));
    log_bad(r, work);
    if (p->fault != TN_OK && err != NULL) {
        *err = p->err;
    }
    return p->fault;
}

tn_status tn_reader_judge_all(const tn_reader *r, tn_error *err)
{
    const tn_progress *from = &r->opts.from;
    bool all = r->opts.dealer == NULL && r->opts.shares <= 1 && from->part == 0 &&
               from->position == 0; /* else others know more, or the run before did */
    return all ? tn_bad_record_limit_end(&r->bad_limit, r->counts.records, r->counts.bad, err)
               : TN_OK;
}

/* Every part from where the reader began, in the order of the epoch; or those of its share. */
static tn_status deal_own(const tn_reader *r, tn_dealt *out)
{
    const tn_progress *from = &r->opts.from;
    const uint64_t every = r->opts.shares > 0 ? r->opts.shares : 1;
    const uint64_t place = r->opts.share + every * (from->part + (uint64_t)r->deal.n);
    *out = (tn_dealt){.place = (uint32_t)place, .position = r->deal.n == 0 ? from->position : 0};
    return place < r->files->n_parts ? TN_OK : TN_END;
}

static tn_status begin_deal(tn_reader *r, tn_error *err)
{
    if (r->opts.dealer != NULL) {
        r->deal.dealer = *r->opts.dealer;
    }
    const tn_dealer *d = &r->deal.dealer;
    return d->begin != NULL ? d->begin(d->arg, r, err) : TN_OK;
}

/* A part may come again, when its first reader was lost: there is no last one. */
static tn_status append_part(tn_reader *r, const tn_dealt *dealt, tn_error *err)
{
    if (!tn_rows_grow(&r->deal.part, r->deal.n, 1, sizeof *r->deal.part, &r->deal.most)) {
        return tn_fail(err, TN_E_MEMORY, "no memory for the parts that were dealt");
    }
    r->deal.part[r->deal.n++] = (tn_deal_part){.dealt = *dealt};
    return TN_OK;
}

/* Gives the assembler the outcome of asking the dealer. */
static tn_status publish_part(tn_reader *r, tn_status status, const tn_dealt *dealt, bool now,
                              tn_error *err)
{
    (void)pthread_mutex_lock(&r->lock);
    r->deal.waits = status == TN_OK && !now;
    if (status == TN_OK && now) {
        status = append_part(r, dealt, err);
    }
    r->deal.over = status == TN_END; /* a failure ends the reader itself */
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
    return status;
}

bool tn_reader_deal(tn_reader *r, uint32_t *part)
{
    tn_dealt dealt = {0};
    tn_error err = {0};
    const tn_dealer *d = &r->deal.dealer;
    bool now = false;
    tn_status status = TN_OK;
    for (uint32_t turn = 0; status == TN_OK && !now; turn++) {
        if (d->next != NULL) {
            status = d->next(d->arg, turn > 0, &r->stop, &dealt, &now, &err);
        } else {
            status = deal_own(r, &dealt);
            now = true;
        }
        TN_ASSERT(status != TN_OK || !now || dealt.place < r->files->n_parts);
        status = publish_part(r, status, &dealt, now, &err);
    }
    if (status != TN_OK && status != TN_END) {
        tn_reader_end(r, status, &err);
    }
    *part = status == TN_OK ? r->order[dealt.place] : 0;
    return status == TN_OK;
}

tn_status tn_reader_await_deal(tn_reader *r, uint32_t i, bool wait, tn_dealt *out, bool *now)
{
    (void)pthread_mutex_lock(&r->lock);
    while (!atomic_load(&r->stop) && !r->ended && r->deal.n <= i && !r->deal.over &&
           (wait || !r->deal.waits)) {
        (void)pthread_cond_wait(&r->changed, &r->lock);
    }
    *now = r->deal.n > i;
    if (*now) {
        *out = r->deal.part[i].dealt;
    }
    bool stopped = r->ended || atomic_load(&r->stop);
    tn_status status = *now || (r->deal.waits && !wait) ? TN_OK : TN_END;
    (void)pthread_mutex_unlock(&r->lock);
    return stopped ? TN_E_STOPPED : status;
}

tn_dealt tn_reader_dealt(tn_reader *reader, uint32_t i)
{
    (void)pthread_mutex_lock(&reader->lock);
    TN_ASSERT(i < reader->deal.n);
    tn_dealt dealt = reader->deal.part[i].dealt;
    (void)pthread_mutex_unlock(&reader->lock);
    return dealt;
}

static uint32_t parsers_of(const tn_schema *schema)
{
    uint32_t n = schema->data->readers;
    if (n == TN_AUTO || n == 0) {
        n = tn_cpu_count() / 2;
        n = n < 1 ? 1 : n > PARSERS_AUTO_MAX ? PARSERS_AUTO_MAX : n;
    }
    return n < TN_PARSERS_MAX ? n : TN_PARSERS_MAX;
}

/* Units are permuted, by their first parts; parts of a unit stay side by side. */
static tn_status order_parts(tn_reader *r, tn_error *err)
{
    uint32_t n = r->files->n_parts;
    uint32_t *first = NULL;
    TN_TRY(TN_ALLOC(r->order, n, "the order of parts", err));
    TN_TRY(TN_ALLOC(first, n, "the order of parts", err));
    uint32_t units = 0;
    for (uint32_t i = 0; i < n; i += tn_fileset_unit(r->files, i)) {
        first[units++] = i;
    }
    if (r->shuffle) {
        uint64_t stream = tn_stream3(r->opts.seed, TN_RNG_SHUFFLE, r->opts.from.epoch, UINT64_MAX);
        tn_shuffle(stream, first, units);
    }
    uint32_t at = 0;
    for (uint32_t u = 0; u < units; u++) {
        for (uint32_t i = 0; i < tn_fileset_unit(r->files, first[u]); i++) {
            r->order[at++] = first[u] + i;
        }
    }
    TN_ASSERT(at == n);
    tn_free(first);
    return TN_OK;
}

static tn_status make_stages(tn_reader *r, tn_error *err)
{
    r->n_parsers = parsers_of(r->schema);
    r->n_blocks = r->n_parsers * TN_BLOCKS_PER_PARSER + TN_BLOCKS_MORE;
    TN_TRY(TN_ALLOC(r->block, r->n_blocks, "blocks of records", err));
    TN_TRY(TN_ALLOC(r->logged, r->files->n, "counts of bad records", err));
    uint32_t prefetch = r->opts.prefetch > 0 ? r->opts.prefetch : 1;
    TN_TRY(tn_queue_new(&r->free_blocks, r->n_blocks, err));
    TN_TRY(tn_queue_new(&r->to_parse, r->n_blocks, err));
    TN_TRY(tn_queue_new(&r->ready, prefetch, err));
    for (uint32_t i = 0; i < r->n_blocks; i++) {
        bool pushed = tn_queue_push(r->free_blocks, &r->block[i]);
        TN_ASSERT(pushed);
    }
    return tn_block_reader_new(&r->block_reader, r->schema, r->files, &r->stop, err);
}

static tn_status start_threads(tn_reader *r, tn_error *err)
{
    TN_TRY(tn_thread_start(&r->source, "tn-read", tn_reader_source_thread, r, err));
    for (uint32_t i = 0; i < r->n_parsers; i++) {
        TN_TRY(tn_thread_start(&r->parser[i], "tn-parse", tn_reader_parser_thread, r, err));
    }
    return tn_thread_start(&r->assembler, "tn-batch", tn_reader_assembler_thread, r, err);
}

uint32_t tn_reader_cut_for(const tn_reader *reader)
{
    return reader->opts.cut_for > 1 ? reader->opts.cut_for : 1;
}

static tn_status build(tn_reader *r, tn_error *err)
{
    const tn_data_opts *data = r->schema->data;
    TN_TRY(tn_bad_record_limit_read(data->bad_records_max, &r->bad_limit, err));
    TN_TRY(tn_fileset_new(&r->files, &r->opts.paths, r->schema, tn_reader_cut_for(r), err));
    if (r->opts.training || r->opts.held) {
        TN_TRY(tn_held_rows_find(&r->held, data, r->files, err));
    }
    if (r->opts.from.part > r->files->n_parts) {
        return tn_fail(err, TN_E_DATA, "cannot go on in part %u: the data has %u parts",
                       r->opts.from.part, r->files->n_parts);
    }
    TN_TRY(order_parts(r, err));
    TN_TRY(begin_deal(r, err));
    TN_TRY(make_stages(r, err));
    return start_threads(r, err);
}

/* Joins a thread. Faults are in r->err; a thread itself fails for lack of memory only. */
static void join(tn_thread **thread)
{
    tn_error ignored = {0};
    tn_status status = tn_thread_join(*thread, &ignored);
    TN_ASSERT(status == TN_OK || status == TN_E_MEMORY);
    *thread = NULL;
}

void tn_reader_stop(tn_reader *reader)
{
    atomic_store(&reader->stop, true);
    (void)pthread_mutex_lock(&reader->lock);
    (void)pthread_cond_broadcast(&reader->changed);
    (void)pthread_mutex_unlock(&reader->lock);
    tn_queue_close(reader->free_blocks);
    tn_queue_close(reader->to_parse);
    tn_queue_close(reader->ready);
}

void tn_reader_quit(tn_reader *reader)
{
    tn_reader_stop(reader);
    join(&reader->source);
    for (uint32_t i = 0; i < reader->n_parsers; i++) {
        join(&reader->parser[i]);
    }
    join(&reader->assembler);
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
    tn_reader_free_works(r);
    for (uint32_t i = 0; i < r->n_builders; i++) {
        tn_batch_builder_free(r->builder[i]);
    }
    for (uint32_t i = 0; r->block != NULL && i < r->n_blocks; i++) {
        tn_block_done(&r->block[i]);
    }
    tn_block_reader_free(r->block_reader);
    tn_queue_free(r->free_blocks);
    tn_queue_free(r->to_parse);
    tn_queue_free(r->ready);
    tn_free(r->block);
    tn_free(r->logged);
    tn_free(r->order);
    for (uint32_t i = 0; i < r->deal.n; i++) {
        tn_free(r->deal.part[i].reason);
    }
    tn_free(r->deal.part);
    tn_fileset_free(r->files);
    (void)pthread_mutex_destroy(&r->lock);
    (void)pthread_cond_destroy(&r->changed);
    tn_free(r);
}

tn_status tn_reader_open(tn_reader **out, const tn_schema *schema, const tn_reader_opts *opts,
                         tn_error *err)
{
    *out = NULL;
    TN_ASSERT(opts->batch_rows > 0);
    tn_reader *r = NULL;
    TN_TRY(TN_ALLOC(r, 1, "a reader", err));
    r->schema = schema;
    r->opts = *opts;
    r->shuffle = opts->training && schema->data->shuffle > 0;
    r->status = TN_END;
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

/* Locked. */
static tn_status why_ended(const tn_reader *reader, tn_error *err)
{
    tn_status status = reader->ended ? reader->status : TN_E_STOPPED;
    if (status != TN_END && err != NULL) {
        *err = reader->err;
    }
    return status == TN_E_STOPPED ? tn_fail(err, TN_E_STOPPED, "the reader was stopped") : status;
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
    tn_status status = why_ended(reader, err);
    (void)pthread_mutex_unlock(&reader->lock);
    return status;
}

tn_status tn_reader_next(tn_reader *reader, tn_batch **out, tn_error *err)
{
    return tn_reader_next_until(reader, UINT64_MAX, out, err);
}

void tn_reader_recycle(tn_reader *reader, tn_batch *batch)
{
    (void)pthread_mutex_lock(&reader->lock);
    reader->idle[reader->n_idle++] = tn_batch_builder_of(batch);
    (void)pthread_mutex_unlock(&reader->lock);
}

/* Returns whether others have all parts, which may not end before this reader's prior. Locked. */
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
    tn_status status = TN_OK;
    if (reader->prior_known && reader->prior.weight > 0) {
        *out = reader->prior;
    } else if (!reader->ended && (reader->prior_known || awaits_first_part(reader))) {
        status = TN_END;
    } else {
        status = why_ended(reader, err);
    }
    (void)pthread_mutex_unlock(&reader->lock);
    return status;
}

void tn_reader_counts(tn_reader *reader, tn_read_counts *out)
{
    (void)pthread_mutex_lock(&reader->lock);
    *out = reader->counts;
    (void)pthread_mutex_unlock(&reader->lock);
    out->sources = reader->files->n;
}

void tn_reader_counts_of(tn_reader *reader, uint32_t parts, tn_read_counts *out, tn_text *reasons)
{
    uint64_t bad[TN_REASONS_MAX] = {0};
    *out = (tn_read_counts){.sources = reader->files->n};
    (void)pthread_mutex_lock(&reader->lock);
    for (uint32_t p = 0; p < parts && p < reader->deal.n; p++) {
        const tn_deal_part *part = &reader->deal.part[p];
        add_counts(out, &part->counts);
        for (uint32_t i = 0; part->reason != NULL && i < reader->n_reasons; i++) {
            bad[i] += part->reason[i];
        }
    }
    for (uint32_t i = 0; i < reader->n_reasons; i++) {
        if (bad[i] > 0) {
            tn_text_add(reasons, reader->reason[i], strlen(reader->reason[i]) + 1);
            tn_text_addf(reasons, "%" PRIu64 "%c", bad[i], '\0');
        }
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

uint32_t tn_reader_n_sources(const tn_reader *reader)
{
    return reader->files->n;
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
