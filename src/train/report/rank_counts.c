/* rank_counts.c - see rank_counts.h. */
#include "train/report/rank_counts.h"

#include "base/core/bytes.h"

#include <stdlib.h>
#include <string.h>

void tn_met_done(tn_met *m)
{
    tn_text_done(&m->reasons);
    m->counts = (tn_read_counts){0};
}

void tn_met_clear(tn_met *m)
{
    tn_text_clear(&m->reasons);
    m->counts = (tn_read_counts){0};
}

/* ---- reasons ---- */

typedef struct pair {
    const char *reason, *count;
} pair;

/* The pair at *at, behind which *at then is; false: the end. */
static bool next_pair(const tn_text *reasons, size_t *at, pair *out)
{
    if (*at >= reasons->size) {
        return false;
    }
    out->reason = reasons->data + *at;
    out->count = out->reason + strlen(out->reason) + 1;
    *at += strlen(out->reason) + strlen(out->count) + 2;
    return true;
}

static void put_pair(tn_text *out, const char *reason, uint64_t count)
{
    tn_text_add(out, reason, strlen(reason) + 1);
    tn_text_add_u64(out, count);
    tn_text_addc(out, '\0');
}

static void add_reason(tn_text *to, const pair *more)
{
    tn_text sum = {0};
    pair p;
    const uint64_t n = strtoull(more->count, NULL, 10);
    bool known = false;
    for (size_t at = 0; next_pair(to, &at, &p);) {
        const bool same = strcmp(p.reason, more->reason) == 0;
        put_pair(&sum, p.reason, strtoull(p.count, NULL, 10) + (same ? n : 0));
        known = known || same;
    }
    if (!known) {
        put_pair(&sum, more->reason, n);
    }
    if (sum.failed) { /* no memory: one reason less, but still pairs */
        tn_text_done(&sum);
        return;
    }
    tn_text_done(to);
    *to = sum;
}

/* ---- adding up ---- */

void tn_met_add(tn_met *m, const tn_met *more)
{
    pair p;
    m->counts.records += more->counts.records;
    m->counts.bytes += more->counts.bytes;
    m->counts.blank += more->counts.blank;
    m->counts.duplicate_key += more->counts.duplicate_key;
    m->counts.bad += more->counts.bad;
    if (more->counts.sources > 0) {
        m->counts.sources = more->counts.sources;
    }
    for (size_t at = 0; next_pair(&more->reasons, &at, &p);) {
        add_reason(&m->reasons, &p);
    }
}

void tn_met_add_reader(tn_met *m, tn_reader *reader, uint32_t parts)
{
    tn_met more = {0};
    tn_reader_counts_of(reader, parts, &more.counts, &more.reasons);
    if (more.reasons.failed) {
        tn_text_clear(&more.reasons);
    }
    tn_met_add(m, &more);
    tn_met_done(&more);
}

tn_held tn_held_of(const tn_table *t)
{
    return (tn_held){
        .created = tn_table_created(t), .rows = tn_table_rows(t), .bytes = tn_table_bytes(t)};
}

/* ---- to rank 0 ---- */

enum { N_NUMBERS = 10 };

/* Where each stands in `f`, in the order of the bytes. */
static void list_numbers(tn_figures *f, uint64_t *out[N_NUMBERS])
{
    tn_read_counts *c = &f->met.counts;
    uint64_t *const list[N_NUMBERS] = {
        &f->number, &f->epoch,   &f->held.created, &f->held.rows, &f->held.bytes,
        &c->bytes,  &c->records, &c->blank,        &c->bad,       &c->duplicate_key};
    memcpy(out, list, sizeof list);
}

void tn_figures_pack(const tn_figures *f, tn_text *out)
{
    tn_figures copy = *f;
    uint64_t *number[N_NUMBERS];
    list_numbers(&copy, number);
    for (uint32_t i = 0; i < N_NUMBERS; i++) {
        tn_text_add_u64le(out, *number[i]);
    }
    tn_text_add(out, tn_text_str(&f->met.reasons), f->met.reasons.size);
}

/* Pairs, each half ended by NUL. */
static bool are_pairs(const char *at, size_t n)
{
    uint32_t halves = 0;
    for (size_t i = 0; i < n; i++) {
        halves += at[i] == '\0';
    }
    return n == 0 || (halves % 2 == 0 && at[n - 1] == '\0');
}

bool tn_figures_unpack(tn_figures *f, tn_note_bytes bytes)
{
    const size_t size = (size_t)N_NUMBERS * sizeof(uint64_t);
    if (bytes.n < size || !are_pairs(bytes.at + size, bytes.n - size)) {
        return false;
    }
    uint64_t *number[N_NUMBERS];
    list_numbers(f, number);
    tn_bytes in = {.data = bytes.at, .size = size};
    for (uint32_t i = 0; i < N_NUMBERS; i++) {
        *number[i] = tn_get_u64(&in);
    }
    const tn_note_bytes reasons = {bytes.at + size, bytes.n - size};
    tn_text_clear(&f->met.reasons);
    for (size_t at = 0; at < reasons.n;) {
        const pair p = {reasons.at + at, reasons.at + at + strlen(reasons.at + at) + 1};
        add_reason(&f->met.reasons, &p);
        at += strlen(p.reason) + strlen(p.count) + 2;
    }
    return true;
}
