/* reader_bad.c - bad records: counted by reason, shown, and judged against what is allowed. */
#include "base/core/alloc.h"
#include "base/core/log.h"
#include "io/read/reader_private.h"

#include <inttypes.h>
#include <string.h>

static uint64_t kept_at_most(uint64_t n, uint64_t most)
{
    return n < most ? n : most;
}

/* Which of the reasons that is; the last one stands for all that are too many. */
static uint32_t find_reason(tn_reader *r, const char *message)
{
    tn_bytes reason = tn_place_reason(message);
    size_t size = (size_t)kept_at_most(reason.size, TN_REASON_BYTES - 1);
    for (uint32_t i = 0; i < r->n_reasons; i++) {
        if (strlen(r->reason[i].text) == size &&
            memcmp(r->reason[i].text, reason.data, size) == 0) {
            return i;
        }
    }
    if (r->n_reasons == TN_REASONS_MAX) {
        return TN_REASONS_MAX - 1;
    }
    memcpy(r->reason[r->n_reasons].text, reason.data, size);
    r->reason[r->n_reasons].text[size] = '\0';
    return r->n_reasons++;
}

/* Locked. */
static tn_status count_reasons(tn_reader *r, tn_deal_part *part, const tn_parsed *p, tn_error *err)
{
    if (p->n_messages > 0 && part->reason == NULL) {
        part->reason = tn_try_alloc(TN_REASONS_MAX, sizeof *part->reason, "bad records", err);
        if (part->reason == NULL) {
            return TN_E_MEMORY;
        }
    }
    for (uint32_t i = 0; i < p->n_messages; i++) {
        bool last = i + 1 == p->n_messages; /* those that were not kept go with it */
        uint64_t n = last ? 1 + p->n_bad - p->n_messages : 1;
        uint32_t which = find_reason(r, tn_parsed_message(p, i));
        r->reason[which].count += n;
        part->reason[which] += n;
    }
    return TN_OK;
}

static void count(tn_read_counts *c, const tn_parsed *p)
{
    c->records += p->records;
    c->bytes += p->bytes;
    c->blank += p->blank;
    c->bad += p->n_bad;
    c->duplicate_key += p->rows->duplicate_key;
}

/* More than data.bad_records_max? Shows the record that was one too many. */
static tn_status judge(const tn_reader *r, const tn_parsed *p, uint64_t before, tn_error *err)
{
    uint64_t bad = before + p->n_bad;
    if (p->n_messages == 0) { /* nothing is bad, or there was no memory to say it */
        return TN_OK;
    }
    uint64_t records = r->counts.records;
    if (tn_bad_limit_allows(&r->bad_limit, records, bad)) {
        return TN_OK;
    }
    if (r->bad_limit.share > 0) {
        return tn_fail(err, TN_E_DATA,
                       "%s\nhint: %" PRIu64 " of %" PRIu64
                       " records are bad, more than data.bad_records_max (%s)",
                       tn_parsed_message(p, p->n_messages - 1), bad, records, r->bad_limit.text);
    }
    uint64_t most = r->bad_limit.most;
    uint64_t which = kept_at_most(most - before, p->n_messages - 1);
    const char *message = tn_parsed_message(p, (uint32_t)which);
    return most == 0 ? tn_fail(err, TN_E_DATA, "%s", message)
                     : tn_fail(err, TN_E_DATA,
                               "%s\nhint: more bad records than data.bad_records_max (%" PRIu64 ")",
                               message, most);
}

static void log_bad(tn_reader *r, const tn_work *work)
{
    const tn_parsed *p = &work->parsed;
    unsigned char *shown = &r->logged[work->file];
    bool passed = work->passed > 0 && *shown < TN_LOGGED_PER_FILE;
    for (uint32_t i = 0; i < p->n_messages && *shown < TN_LOGGED_PER_FILE; i++) {
        tn_log(TN_LOG_WARN, "%s", tn_parsed_message(p, i));
        if (++*shown == TN_LOGGED_PER_FILE) {
            tn_log(TN_LOG_WARN, "%s: more bad records are counted but not shown",
                   r->files->file[work->file].path);
        }
    }
    if (passed) {
        tn_log(TN_LOG_WARN, "%s: %" PRIu64 " damaged bytes passed over",
               r->files->file[work->file].path, work->passed);
    }
}

tn_status tn_reader_take_note(tn_reader *r, uint32_t i, const tn_work *work, tn_error *err)
{
    const tn_parsed *p = &work->parsed;
    (void)pthread_mutex_lock(&r->lock);
    tn_deal_part *part = &r->deal.part[i];
    uint64_t before = r->counts.bad;
    count(&r->counts, p);
    count(&part->counts, p);
    r->done_bytes += work->taken;
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
    return all ? tn_bad_limit_end(&r->bad_limit, r->counts.records, r->counts.bad, err) : TN_OK;
}
