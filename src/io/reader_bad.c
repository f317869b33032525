/* reader_bad.c - bad records: counted by reason, shown, and judged against what is allowed. */
#include "base/log.h"
#include "base/number.h"
#include "io/reader_private.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SHARE_FROM = 10000 }; /* records, before a share of bad ones is judged */

static uint64_t kept_at_most(uint64_t n, uint64_t most)
{
    return n < most ? n : most;
}

/* Counts `n` bad records of one kind. */
static void count_reason(tn_reader *r, const char *message, uint64_t n)
{
    tn_bytes reason = tn_place_reason(message);
    size_t size = (size_t)kept_at_most(reason.size, TN_REASON_BYTES - 1);
    for (uint32_t i = 0; i < r->n_reasons; i++) {
        if (strlen(r->reason[i].text) == size &&
            memcmp(r->reason[i].text, reason.data, size) == 0) {
            r->reason[i].count += n;
            return;
        }
    }
    if (r->n_reasons == TN_REASONS_MAX) {
        r->reason[TN_REASONS_MAX - 1].count += n;
        return;
    }
    memcpy(r->reason[r->n_reasons].text, reason.data, size);
    r->reason[r->n_reasons].text[size] = '\0';
    r->reason[r->n_reasons++].count = n;
}

/* More than data.bad_records_max? Shows the record that was one too many. */
static tn_status judge(const tn_reader *r, const tn_parsed *p, uint64_t before, tn_error *err)
{
    uint64_t bad = before + p->n_bad;
    if (p->n_messages == 0) { /* nothing is bad, or there was no memory to say it */
        return TN_OK;
    }
    if (!isnan(r->bad_share)) {
        uint64_t records = r->counts.records;
        if (records < SHARE_FROM || (double)bad <= r->bad_share * (double)records) {
            return TN_OK;
        }
        return tn_fail(err, TN_E_DATA,
                       "%s\nhint: %" PRIu64 " of %" PRIu64
                       " records are bad, more than data.bad_records_max (%s)",
                       tn_parsed_message(p, p->n_messages - 1), bad, records,
                       r->schema->data->bad_records_max);
    }
    if (bad <= r->bad_max) {
        return TN_OK;
    }
    uint64_t which = kept_at_most(r->bad_max - before, p->n_messages - 1);
    const char *message = tn_parsed_message(p, (uint32_t)which);
    return r->bad_max == 0
               ? tn_fail(err, TN_E_DATA, "%s", message)
               : tn_fail(err, TN_E_DATA,
                         "%s\nhint: more bad records than data.bad_records_max (%" PRIu64 ")",
                         message, r->bad_max);
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

tn_status tn_reader_take_note(tn_reader *r, const tn_work *work, tn_error *err)
{
    const tn_parsed *p = &work->parsed;
    (void)pthread_mutex_lock(&r->lock);
    uint64_t before = r->counts.bad;
    r->counts.records += p->records;
    r->counts.bytes += p->bytes;
    r->counts.blank += p->blank;
    r->counts.bad += p->n_bad;
    r->counts.duplicate_key += p->rows->duplicate_key;
    r->done_bytes += work->taken;
    for (uint32_t i = 0; i < p->n_messages; i++) {
        bool last = i + 1 == p->n_messages; /* those that were not kept go with it */
        count_reason(r, tn_parsed_message(p, i), last ? 1 + p->n_bad - p->n_messages : 1);
    }
    (void)pthread_mutex_unlock(&r->lock);
    TN_TRY(judge(r, p, before, err));
    log_bad(r, work);
    if (p->fault != TN_OK && err != NULL) {
        *err = p->err;
    }
    return p->fault;
}

tn_status tn_reader_read_bad_max(tn_reader *r, const char *text, tn_error *err)
{
    size_t size = strlen(text);
    r->bad_share = (double)NAN;
    if (size > 0 && text[size - 1] == '%') {
        double percent;
        if (tn_read_f64(text, size - 1, &percent) == TN_NUM_OK && percent >= 0 && percent <= 100) {
            r->bad_share = percent > 0 ? percent / 100 : (double)NAN; /* none is none */
            return TN_OK;
        }
    } else if (tn_read_u64(text, size, &r->bad_max) == TN_NUM_OK) {
        return TN_OK;
    }
    return tn_fail(err, TN_E_CONFIG,
                   "data.bad_records_max must be a number or a share as in 0.1%%, not '%s'", text);
}
