/* admission.c - keys that wait for whole rows until they were seen often enough, or are drawn.
 *
 *     key      count of earlier steps     row
 *     new      0                          none, or the segments that do not wait
 *     waits    below the threshold        the same; or its draw of this step has failed
 *     whole    at least the threshold     all segments, those that waited with first values
 *
 * A row that waits is counted in its header, a key without one in the filter of its partition. With
 * l1_shrk keys wait as well while their weights that do not wait are all 0, and a whole row hides
 * the other segments whenever they are (DiFacto: Li, Liu, Smola, Wang 2016). Source:
 * docs/numerics.md, section 9.
 */
#include "ps/policy/admission.h"

#include "base/math/rng.h"
#include "config/field.h"
#include "ps/table/lifecycle.h"
#include "ps/table/tabledef.h"

static const tn_field bloom_fields[] = {
    TN_FIELD_U64(tn_filter_opts, keys, "100M", 1024, 1e12, "keys",
                 "that wait at a time; with a tenth more its counts are halved at a sweep"),
    TN_FIELD_F64(tn_filter_opts, error, "1e-3", 1e-9, 0.5, "",
                 "share of new keys that count too much by then"),
    TN_FIELD_END,
};
static const tn_choice filter_bloom = {
    .name = "bloom",
    .help = "a counting Bloom filter: counts may be too high, never too low; threshold to 255",
    .fields = bloom_fields,
    .size = sizeof(tn_filter_opts)};
static const tn_choice filter_exact = {.name = "exact",
                                       .help = "24 bytes a key that waits, and its index"};
static const tn_choice *const filters[] = {&filter_exact, &filter_bloom, NULL};

const tn_field tn_row_options_admission[] = {
    TN_FIELD_U32(tn_admission, threshold, "0", 0, 1e9, "occurrences",
                 "in earlier steps, from which on a key gets a whole row"),
    TN_FIELD_F64(tn_admission, probability, "1", 0, 1, "",
                 "with which it gets it then, drawn in each step"),
    TN_FIELD_VARIANT(tn_admission, filter, "exact", filters, "how keys that wait are counted"),
    TN_FIELD_STRS(tn_admission, uses, "~",
                  "embedding inputs that wait, as [deep]; others learn at once; ~: all"),
    TN_FIELD_BOOL(tn_admission, l1_shrk, "false",
                  "they wait, and read as zeros, while the weights of all other inputs are 0"),
    TN_FIELD_END_OF(tn_admission),
};

/* ---- the filter of a partition (ps/table/key_filter.h) ---- */

/* The line of a key in the filter of its partition; NULL: nothing was counted there yet. */
static uint8_t *line_of(const tn_table *t, uint64_t key, uint32_t *number)
{
    uint8_t *filter = t->partition[tn_partition_of(key, TN_PARTITIONS)].filter;
    *number = filter != NULL ? tn_key_filter_line(&t->filter, key) : 0;
    return filter != NULL ? filter + (size_t)*number * TN_KEY_FILTER_LINE : NULL;
}

/* Prefetches the counters of keys without a row. */
static void fetch_counters(const tn_policy_rows *rows, uint64_t asked)
{
    for (uint32_t i = 0; i < rows->n; i++) {
        if ((asked >> i & 1) != 0 && rows->row[i] == NULL) {
            uint32_t number;
            __builtin_prefetch(line_of(rows->t, rows->key[i], &number), 1);
        }
    }
}

static uint32_t filter_count(const tn_table *t, uint64_t key)
{
    const uint8_t *filter = t->partition[tn_partition_of(key, TN_PARTITIONS)].filter;
    return filter != NULL ? tn_key_filter_count(&t->filter, filter, key) : 0;
}

static void filter_add(tn_table *t, uint64_t key, uint32_t n)
{
    const uint32_t p = tn_partition_of(key, TN_PARTITIONS);
    uint32_t number;
    const uint8_t *line = line_of(t, key, &number);
    if (line == NULL) {
        return;
    }
    if (tn_changed_rows_watched(&t->changes)) {
        tn_changed_rows_line(&t->changes, p, number, line);
    }
    t->partition[p].raised += tn_key_filter_add(&t->filter, t->partition[p].filter, key, n);
}

/* ---- rows ---- */

static bool is_admitted(const tn_table *t, const tn_admission *a, uint64_t key, double count)
{
    if (count < a->threshold) {
        return false;
    }
    if (a->probability >= 1) {
        return true;
    }
    const uint64_t stream = tn_stream_next(t->draws, key);
    return tn_unit(tn_draw(stream, atomic_load(&t->step))) < a->probability;
}

/* Whether all weights that do not wait are 0 in a row of a group with l1_shrk; `data` holds the
 * segments in `present`. */
static bool has_shrunk(const tn_table *t, uint32_t group, const float *data, uint16_t present)
{
    const uint16_t waits = tn_record_of(t->layout, group)->waits;
    const tn_plan *whole = tn_plan_of(t, group);
    bool zero = tn_admission_of(&t->options, group)->l1_shrk && waits != 0;
    for (uint32_t s = 0; s < whole->n_segments && zero; s++) {
        const tn_plan_segment *seg = &whole->segment[s];
        if ((present >> s & 1) == 0) {
            continue;
        }
        for (uint32_t i = 0; i < seg->dim && (waits >> s & 1) == 0; i++) {
            zero = zero && data[i] == 0;
        }
        data += seg->end - seg->w;
    }
    return zero;
}

uint16_t tn_admission_segments(const tn_table *t, const tn_row_view *row)
{
    const bool hidden = has_shrunk(t, row->group, row->data, row->present);
    const uint32_t waits = tn_record_of(t->layout, row->group)->waits;
    return (uint16_t)(row->present & ~(hidden ? waits : 0));
}

static bool may_be_whole(const tn_policy_rows *rows, uint32_t i)
{
    const tn_table *t = rows->t;
    const tn_row *row = rows->row[i];
    const uint32_t group = rows->group[i];
    const tn_admission *a = tn_admission_of(&t->options, group);
    if (row == NULL) {
        const bool counted = tn_admission_has_filter(a);
        return !a->l1_shrk &&
               is_admitted(t, a, rows->key[i], counted ? filter_count(t, rows->key[i]) : 0);
    }
    return is_admitted(t, a, rows->key[i], tn_row_count(row->show_high, row->show_low)) &&
           !has_shrunk(t, group, row->data, tn_waiting_plan_of(t, group)->present);
}

static uint64_t create(const tn_policy_rows *rows)
{
    uint64_t whole = rows->asked;
    fetch_counters(rows, whole);
    for (uint64_t left = whole; left != 0; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(left);
        whole &= ~((uint64_t)!may_be_whole(rows, i) << i);
    }
    return whole;
}

static uint64_t hide(const tn_policy_rows *rows)
{
    uint64_t hidden = 0;
    for (uint32_t i = 0; i < rows->n; i++) {
        const tn_row *row = rows->row[i];
        const uint32_t group = rows->group[i];
        const bool shrunk =
            row != NULL && !tn_row_waits(row) &&
            has_shrunk(rows->t, group, row->data, tn_plan_of(rows->t, group)->present);
        hidden |= (uint64_t)shrunk << i;
    }
    return hidden;
}

static uint64_t count_missing(const tn_policy_rows *rows)
{
    fetch_counters(rows, UINT64_MAX);
    for (uint32_t i = 0; i < rows->n; i++) {
        const uint32_t group = rows->group[i];
        if (rows->row[i] == NULL && tn_group_waits(rows->t, group) &&
            tn_admission_has_filter(tn_admission_of(&rows->t->options, group))) {
            filter_add(rows->t, rows->key[i], rows->show[i]);
        }
    }
    return 0;
}

/* Ages the filter of a partition once it holds too many keys, which halves its counts. */
static uint64_t age(const tn_policy_rows *rows)
{
    tn_table *t = rows->t;
    tn_partition *part = &t->partition[rows->partition];
    uint8_t *filter = part->filter;
    if (rows->n > 0 || filter == NULL || !tn_key_filter_is_overfull(&t->filter, part->raised)) {
        return 0;
    }
    for (uint32_t i = 0; i < t->filter.lines && tn_changed_rows_watched(&t->changes); i++) {
        tn_changed_rows_line(&t->changes, rows->partition, i,
                             filter + (size_t)i * TN_KEY_FILTER_LINE);
    }
    tn_key_filter_age(&t->filter, filter);
    part->raised = tn_key_filter_raised(&t->filter, filter);
    atomic_fetch_add(&t->aged, 1);
    return 0;
}

static uint32_t acts(const tn_row_options *all, const tn_layout *layout, uint32_t group)
{
    const tn_admission *a = tn_admission_of(all, group);
    const uint32_t asks = a->threshold > 0 || a->probability < 1 || a->l1_shrk;
    return tn_record_of(layout, group)->waits == 0
               ? 0
               : asks << TN_ON_CREATE | (uint32_t)a->l1_shrk << TN_ON_READ |
                     (uint32_t)tn_admission_has_filter(a) << TN_ON_PUSH | 1U << TN_ON_SWEEP;
}

static bool makes_wait(const void *options, tn_strs *inputs)
{
    const tn_admission *a = options;
    *inputs = a->uses;
    return a->threshold > 0 || a->probability < 1 || a->l1_shrk;
}

/* One filter counts the keys of all groups. */
static void check_filters(const tn_row_options *all, uint32_t n_groups, tn_policy_refuse *refuse,
                          void *arg)
{
    const tn_filter_opts *first = NULL;
    for (uint32_t g = 0; g < n_groups; g++) {
        const tn_admission *a = tn_admission_of(all, g);
        const tn_filter_opts *own = tn_admission_has_filter(a) ? a->filter.opts : first;
        first = first != NULL ? first : own;
        if (own != first && (own->keys != first->keys || own->error != first->error)) {
            refuse(arg, g,
                   "one filter counts the keys of all slots, and another one has other 'keys' or "
                   "'error': say them once, in embedding.admission.filter");
            return;
        }
    }
}

static void check(const tn_row_options *all, const tn_layout *layout, const bool *missing_init,
                  tn_policy_refuse *refuse, void *arg)
{
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        const tn_admission *a = tn_admission_of(all, g);
        const tn_record *record = tn_record_of(layout, g);
        const bool all_wait = record->waits == (UINT32_C(1) << record->n_segments) - 1;
        const bool filter = tn_admission_has_filter(a);
        if (record->waits == 0) {
            continue;
        }
        if (filter && !all_wait) {
            refuse(arg, g,
                   "'filter: bloom' counts keys that have no row, and with 'uses' every key has "
                   "one, which counts itself: 'filter: exact'");
        }
        if (filter && a->threshold > TN_KEY_FILTER_COUNT_MAX) {
            refuse(arg, g,
                   "'filter: bloom' counts to 255, and 'threshold' is larger: 'filter: exact'");
        }
        if (a->l1_shrk && all_wait) {
            refuse(arg, g,
                   "'l1_shrk' asks the weights of inputs that do not wait, and all wait: 'uses: "
                   "[deep]'");
        }
        if (missing_init[g]) {
            refuse(arg, g,
                   "keys that wait read as zeros, and 'missing: init' says that they read as they "
                   "would begin: one of the two");
        }
    }
    check_filters(all, layout->n_groups, refuse, arg);
}

const tn_row_policy tn_row_policy_admission = {
    .name = "admission",
    .options = tn_row_options_admission,
    .on = {[TN_ON_CREATE] = create,
           [TN_ON_READ] = hide,
           [TN_ON_PUSH] = count_missing,
           [TN_ON_SWEEP] = age},
    .acts = acts,
    .waits = makes_wait,
    .check = check,
};
