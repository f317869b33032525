/* table.c - the table's life, how its rows are laid out, its counters and its limit; rows walked in
 * key order, and put back from checkpoints. */
#include "ps/table/table.h"

#include "base/core/alloc.h"
#include "base/math/rng.h"
#include "ps/table/lifecycle.h"
#include "ps/table/tabledef.h"

#include <math.h>

enum {
    FETCH_AHEAD = 8,       /* rows */
    LOOK_BYTES = 16 << 10, /* the rows that are looked up together fill half of the nearest cache */
    LOOK_KEYS_MIN = 8,
};

static uint32_t round_up(uint32_t bytes, uint32_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* Rows that nearly fill cache lines are padded to them, so that they touch fewer. Half lines save
 * less, so less is given for them. */
static uint32_t stride_of(uint32_t n_floats)
{
    enum { OF_LINES = 12, OF_HALF_LINES = 32 };
    uint32_t bytes = (uint32_t)sizeof(tn_row) + n_floats * (uint32_t)sizeof(float);
    uint32_t lines = round_up(bytes, TN_CACHE_LINE);
    uint32_t half_lines = round_up(bytes, TN_CACHE_LINE / 2);
    if (lines - bytes <= bytes / OF_LINES) {
        return lines;
    }
    return half_lines - bytes <= bytes / OF_HALF_LINES ? half_lines : bytes;
}

/* Takes no floats where rows do not have the segment. */
static void plan_segment(const tn_rule *rule, const tn_segment *from, uint64_t seed, bool present,
                         tn_plan_segment *s, uint32_t *n_floats)
{
    tn_state spec[TN_STATES_MAX];
    *s = (tn_plan_segment){.dim = from->dim, .at = from->at, .w = *n_floats, .count = TN_NO_COUNT};
    s->stream = tn_stream2(seed, TN_RNG_ROW, tn_name64(from->name));
    *n_floats += present ? from->dim : 0;
    s->n_states = tn_optim_states(rule->optim, rule->opts, spec);
    TN_ASSERT(s->n_states <= TN_STATES_MAX);
    for (uint32_t i = 0; i < s->n_states; i++) {
        s->state[i] = *n_floats;
        *n_floats += !present ? 0 : spec[i].per_row ? 1 : from->dim;
        s->count = spec[i].count ? i : s->count;
    }
    s->end = *n_floats;
}

static bool same_states(const tn_rule *a, const tn_rule *b)
{
    tn_state x[TN_STATES_MAX];
    tn_state y[TN_STATES_MAX];
    uint32_t n = tn_optim_states(a->optim, a->opts, x);
    bool same = n == tn_optim_states(b->optim, b->opts, y);
    for (uint32_t i = 0; same && i < n; i++) {
        same = x[i].per_row == y[i].per_row && x[i].count == y[i].count;
    }
    return same;
}

/* Lays out the rows of a record, or of those that wait, by the rules of the first group that picks
 * it. */
static void plan_record(tn_table *t, uint32_t record, bool waits, uint64_t seed)
{
    const tn_record *r = &t->layout->record[record];
    tn_plan *plan = &t->plan[record + (waits ? t->layout->n_records : 0)];
    const uint32_t all = (UINT32_C(1) << r->n_segments) - 1;
    uint32_t first = t->layout->n_groups;
    plan->present = (uint16_t)(waits ? all & ~(uint32_t)r->waits : all);
    for (uint32_t g = 0; g < t->layout->n_groups; g++) {
        if (t->layout->group[g].record != record) {
            continue;
        }
        first = first < g ? first : g;
        for (uint32_t s = 0; s < r->n_segments; s++) {
            TN_ASSERT(same_states(tn_rule_of(t, first, s), tn_rule_of(t, g, s)));
        }
    }
    uint32_t width = 0;
    uint32_t widest = 1;
    for (uint32_t s = 0; s < r->n_segments && first < t->layout->n_groups; s++) {
        plan_segment(tn_rule_of(t, first, s), &r->segment[s], seed, tn_plan_has(plan, s),
                     &plan->segment[s], &plan->n_floats);
        width += r->segment[s].dim;
        widest = r->segment[s].dim > widest ? r->segment[s].dim : widest;
    }
    plan->together = TN_DIM_MAX / widest < TN_LOOK_KEYS ? TN_DIM_MAX / widest : TN_LOOK_KEYS;
    plan->n_segments = first < t->layout->n_groups ? r->n_segments : 0;
    plan->stride = stride_of(plan->n_floats);
    t->plain = t->plain && width == r->width;
}

static void plan_rules(tn_table *t)
{
    for (uint32_t g = 0; g < t->layout->n_groups; g++) {
        for (uint32_t s = 0; s < tn_record_of(t->layout, g)->n_segments; s++) {
            const tn_rule *rule = tn_rule_of(t, g, s);
            t->sweeps = t->sweeps || tn_rule_reaches_all(rule);
            t->plain = t->plain && tn_rule_plain(rule);
        }
    }
}

static bool same_rule(const tn_rule *a, const tn_rule *b)
{
    return a->optim == b->optim && a->clip_row == b->clip_row && a->clip_value == b->clip_value &&
           a->init.kind == b->init.kind && a->init.a == b->init.a && a->init.b == b->init.b &&
           (a->opts == b->opts || memcmp(a->opts, b->opts, a->optim->choice.size) == 0);
}

static bool same_rules(const tn_table *t, uint32_t a, uint32_t b)
{
    bool same = t->layout->group[a].record == t->layout->group[b].record;
    for (uint32_t s = 0; same && s < tn_record_of(t->layout, a)->n_segments; s++) {
        same = same_rule(tn_rule_of(t, a, s), tn_rule_of(t, b, s));
    }
    return same;
}

/* Finds groups whose rows begin alike, and are trained alike: a kind. */
static void plan_kinds(tn_table *t)
{
    t->alike = t->rules->n_keys == 0;
    for (uint32_t g = 0; g < t->layout->n_groups; g++) {
        while (t->kind[g] < g && !same_rules(t, t->kind[g], g)) {
            t->kind[g]++;
        }
        t->alike = t->alike && t->kind[g] == 0;
    }
}

/* As many rows of so many bytes as the nearest cache holds, within bounds. */
static uint32_t look_keys_of(size_t longest)
{
    uint32_t n = LOOK_KEYS_MIN;
    while (n < TN_LOOK_KEYS && (n + 1) * longest <= LOOK_BYTES) {
        n++;
    }
    return n;
}

static void build(tn_table *t, const tn_table_opts *opts)
{
    uint32_t n_records = t->layout->n_records;
    t->plain = true;
    plan_rules(t);
    for (uint32_t r = 0; r < t->n_plans; r++) {
        plan_record(t, r % n_records, r >= n_records, opts->seed);
        t->plan[r].unused = r >= n_records;
    }
    for (uint32_t g = 0; g < t->layout->n_groups; g++) {
        if (tn_group_waits(t, g)) {
            tn_plan *waiting = &t->plan[n_records + t->layout->group[g].record];
            waiting->unused = waiting->unused && !tn_has_waiting_rows(t, g);
            t->waits = t->waits || !waiting->unused;
        }
    }
    t->draws = tn_stream_next(tn_stream0(opts->seed), TN_RNG_ADMISSION);
    t->look_keys = look_keys_of(tn_longest_row(t));
    plan_kinds(t);
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        tn_partition *part = &t->partition[p];
        int failure = pthread_mutex_init(&part->lock, NULL);
        TN_ASSERT(failure == 0);
        part->store = t->stores + (size_t)p * t->n_plans;
        for (uint32_t r = 0; r < t->n_plans; r++) {
            const uint32_t apart = t->n_plans - n_records; /* 0, or as many records */
            tn_row_store_init(&part->store[r], t->plan[r].stride, (uint16_t)apart, r >= n_records,
                              t->sweeps);
        }
    }
}

/* Plans the filter that the options of admission need. */
static tn_key_filter plan_filter(const tn_row_options *options, const tn_layout *layout)
{
    const tn_filter_opts *first = NULL;
    uint32_t most = 0;
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        const tn_admission *a = tn_admission_of(options, g);
        if (tn_admission_has_filter(a)) {
            first = first != NULL ? first : a->filter.opts;
            most = a->threshold > most ? a->threshold : most;
        }
    }
    if (first == NULL || most > TN_KEY_FILTER_COUNT_MAX) {
        return (tn_key_filter){0};
    }
    const uint64_t keys = (first->keys + TN_PARTITIONS - 1) / TN_PARTITIONS;
    return tn_key_filter_plan(keys, first->error, most);
}

static tn_status allocate(tn_table *t, tn_error *err)
{
    TN_TRY(TN_ALLOC(t->plan, t->n_plans + 1, "layouts of rows", err));
    TN_TRY(TN_ALLOC(t->kind, t->layout->n_groups + 1, "kinds of rows", err));
    TN_TRY(TN_ALLOC(t->moves, t->layout->n_groups + 1, "counts of rows", err));
    TN_TRY(TN_ALLOC(t->stores, (size_t)TN_PARTITIONS * t->n_plans + 1, "stores of rows", err));
    return TN_ALLOC(t->partition, TN_PARTITIONS, "partitions", err);
}

void tn_table_set_options(tn_table *t, const tn_row_options *options)
{
    t->options = options != NULL ? *options : (tn_row_options){0};
    memset(&t->on, 0, sizeof t->on);
    uint32_t n[TN_ROW_MOMENTS] = {0};
    for (uint32_t p = 0; p < TN_ROW_POLICIES; p++) {
        const uint32_t moments = tn_row_policy_moments(tn_row_policies[p], options, t->layout);
        for (uint32_t i = 0; i < TN_ROW_MOMENTS; i++) {
            if ((moments >> i & 1) != 0) {
                t->on[i][n[i]++] = tn_row_policies[p]->on[i];
            }
        }
    }
}

tn_status tn_table_new(tn_table **out, const tn_table_opts *opts, tn_error *err)
{
    *out = NULL;
    tn_table *t = NULL;
    TN_TRY(TN_ALLOC(t, 1, "a table of rows", err));
    t->rules = opts->rules;
    t->layout = opts->rules->layout;
    t->day = opts->day;
    for (uint32_t r = 0; r < t->layout->n_records; r++) {
        t->admits = t->admits || t->layout->record[r].waits != 0;
    }
    t->n_plans = t->layout->n_records * (t->admits ? 2 : 1);
    tn_table_set_options(t, opts->rules->rows);
    t->filter = plan_filter(&t->options, t->layout);
    tn_row_positions_init(&t->positions);
    tn_changed_rows_init(&t->changes);
    tn_page_arena_init(&t->pages, opts->huge_pages);
    tn_status status = allocate(t, err);
    if (status == TN_OK) {
        build(t, opts);
    }
    if (status != TN_OK) {
        tn_table_free(t);
        return status;
    }
    *out = t;
    return TN_OK;
}

void tn_table_clear(tn_table *t)
{
    for (size_t s = 0; s < (size_t)TN_PARTITIONS * t->n_plans; s++) {
        tn_row_store_clear(&t->stores[s], &t->pages);
    }
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        t->partition[p].filter = NULL;
        t->partition[p].raised = 0;
    }
    tn_page_arena_clear(&t->pages);
    tn_row_positions_forget(&t->positions);
    tn_changed_rows_forget(&t->changes);
    atomic_store(&t->rows, 0);
}

void tn_table_free(tn_table *t)
{
    if (t == NULL) {
        return;
    }
    if (t->partition != NULL) {
        tn_table_clear(t);
        for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
            pthread_mutex_destroy(&t->partition[p].lock);
        }
    }
    tn_page_arena_done(&t->pages);
    tn_row_positions_done(&t->positions);
    tn_changed_rows_done(&t->changes);
    tn_free(t->partition);
    tn_free(t->stores);
    tn_free(t->kind);
    tn_free(t->moves);
    tn_free(t->plan);
    tn_free(t);
}

uint32_t tn_table_place_waiting(const tn_table *t, uint32_t record, uint32_t segment)
{
    TN_ASSERT(record < t->layout->n_records && segment < t->plan[record].n_segments);
    return t->plan[t->admits ? t->layout->n_records + record : record].segment[segment].w;
}

tn_place_in_row tn_table_place(const tn_table *t, uint32_t record, uint32_t segment)
{
    TN_ASSERT(record < t->layout->n_records && segment < t->plan[record].n_segments);
    const tn_plan_segment *s = &t->plan[record].segment[segment];
    tn_place_in_row place = {.w = s->w, .n_states = s->n_states};
    for (uint32_t g = 0; g < t->layout->n_groups; g++) {
        if (t->layout->group[g].record == record) {
            const tn_rule *rule = tn_rule_of(t, g, segment);
            (void)tn_optim_states(rule->optim, rule->opts, place.spec);
            break;
        }
    }
    memcpy(place.state, s->state, sizeof place.state);
    return place;
}

uint64_t tn_table_rows(const tn_table *t)
{
    return atomic_load(&t->rows);
}

uint64_t tn_table_bytes(const tn_table *t)
{
    return atomic_load(&t->pages.used);
}

tn_table_totals tn_table_total(const tn_table *t)
{
    tn_table_totals sum = t->swept;
    sum.created = atomic_load(&t->created);
    sum.made = sum.created + atomic_load(&t->promoted);
    sum.aged = atomic_load(&t->aged);
    for (uint32_t g = 0; g < t->layout->n_groups; g++) {
        sum.evicted += atomic_load(&t->moves[g].evicted);
        sum.admitted += atomic_load(&t->moves[g].admitted);
    }
    sum.admitted = t->admits ? sum.admitted : sum.created;
    return sum;
}

void tn_table_set_step(tn_table *t, uint64_t step)
{
    atomic_store(&t->step, step);
}

/* ---- a limit ---- */

void tn_table_set_limit(tn_table *t, uint64_t bytes)
{
    t->pages.limit = bytes;
}

uint64_t tn_table_limit(const tn_table *t)
{
    return t->pages.limit;
}

size_t tn_table_next_extent(tn_table *t)
{
    return tn_page_arena_next(&t->pages);
}

uint32_t tn_table_stride(const tn_table *t, uint32_t group)
{
    return tn_plan_of(t, group)->stride;
}

uint64_t tn_table_aside(const tn_table *t)
{
    return atomic_load(&t->changes.aside);
}

/* When `rows` rows fall on the partitions at random: about how many the fullest one gets (the mean
 * and three deviations). *share: of the partitions that get any. */
static uint32_t rows_of_one(tn_range partitions, uint64_t rows, double *share)
{
    TN_ASSERT(partitions.from < partitions.to && partitions.to <= TN_PARTITIONS);
    const double mean = (double)rows / (partitions.to - partitions.from);
    *share = mean < 1 ? mean : 1;
    return (uint32_t)fmin(ceil(mean + 3 * sqrt(mean)) + 1, TN_SLAB_ROWS_MAX);
}

uint64_t tn_table_growth(tn_table *t, tn_range partitions, uint64_t rows)
{
    double share = 0;
    const uint32_t more = rows_of_one(partitions, rows, &share);
    uint64_t bytes = 0;
    for (uint32_t p = partitions.from; p < partitions.to; p++) {
        const tn_row_store *store = t->partition[p].store;
        pthread_mutex_lock(&t->partition[p].lock);
        for (uint32_t r = 0; r < t->n_plans; r++) {
            bytes += t->plan[r].unused ? 0 : tn_row_store_growth(&store[r], more);
        }
        bytes += t->partition[p].filter == NULL ? tn_key_filter_bytes(&t->filter) : 0;
        pthread_mutex_unlock(&t->partition[p].lock);
    }
    return (uint64_t)(share * (double)bytes);
}

uint64_t tn_table_growth_most(const tn_table *t, tn_range partitions, uint64_t rows)
{
    double share = 0;
    const uint32_t more = rows_of_one(partitions, rows, &share);
    uint64_t bytes = 0;
    for (uint32_t r = 0; r < t->n_plans; r++) {
        bytes += t->plan[r].unused ? 0 : tn_row_store_growth_most(&t->stores[r], more);
    }
    bytes += tn_key_filter_bytes(&t->filter);
    return bytes * (partitions.to - partitions.from);
}

void tn_table_count_groups(tn_table *t, tn_group_rows *out)
{
    memset(out, 0, t->layout->n_groups * sizeof *out);
    for (size_t i = 0; i < (size_t)TN_PARTITIONS * t->n_plans; i++) {
        pthread_mutex_t *lock = &t->partition[i / t->n_plans].lock;
        const tn_slab *slab = &t->stores[i].slab;
        pthread_mutex_lock(lock);
        for (uint32_t k = 0; k < slab->n_rows; k++) {
            const tn_row *row = tn_slab_at(slab, k);
            tn_group_rows *of = &out[tn_row_group(row)];
            of->rows++;
            of->waiting += tn_row_waits(row);
            of->bytes += slab->stride;
        }
        pthread_mutex_unlock(lock);
    }
}

/* ---- rows in key order, for exports, hashes and tests ---- */

static void list_rows(const tn_table *t, uint32_t partition, tn_row_entry *out)
{
    const tn_partition *p = &t->partition[partition];
    for (uint32_t r = 0; r < t->n_plans; r++) {
        const tn_slab *slab = &p->store[r].slab;
        for (uint32_t i = 0; i < slab->n_rows; i++) {
            const tn_row *row = tn_slab_at(slab, i);
            *out++ = (tn_row_entry){tn_row_key(row, partition), row};
        }
    }
}

static tn_status walk_locked(const tn_table *t, uint32_t partition, tn_row_visit *visit, void *arg,
                             tn_error *err)
{
    const tn_partition *p = &t->partition[partition];
    size_t n = 0;
    for (uint32_t r = 0; r < t->n_plans; r++) {
        n += p->store[r].slab.n_rows;
    }
    if (n == 0) {
        return TN_OK;
    }
    tn_row_entry *both = NULL;
    TN_TRY(TN_ALLOC(both, 2 * n, "rows in key order", err));
    list_rows(t, partition, both);
    const tn_row_entry *sorted = tn_rows_sort(both, n);
    tn_status status = TN_OK;
    for (size_t i = 0; i < n && status == TN_OK; i++) {
        if (n - i > FETCH_AHEAD) { /* in key order rows lie anywhere */
            const char *soon = (const char *)sorted[i + FETCH_AHEAD].row;
            __builtin_prefetch(soon);
            __builtin_prefetch(soon + TN_CACHE_LINE);
        }
        tn_row_view view = tn_view_of(t, sorted[i].key, sorted[i].row);
        status = visit(arg, &view, err);
    }
    tn_free(both);
    return status;
}

tn_status tn_table_walk(tn_table *t, uint32_t partition, tn_row_visit *visit, void *arg,
                        tn_error *err)
{
    TN_ASSERT(partition < TN_PARTITIONS);
    tn_partition *p = &t->partition[partition];
    pthread_mutex_lock(&p->lock);
    tn_status status = walk_locked(t, partition, visit, arg, err);
    pthread_mutex_unlock(&p->lock);
    return status;
}

/* ---- rows put back: from checkpoints, dumps and by hand ---- */

/* Floats of a row of this group with these segments; *fits: it has no others than it may. */
static uint32_t floats_of(const tn_table *t, uint32_t group, uint16_t present, bool *fits)
{
    const tn_plan *plan = tn_plan_of(t, group);
    uint32_t n = 0;
    *fits = (present & ~(uint32_t)plan->present) == 0;
    for (uint32_t s = 0; s < plan->n_segments; s++) {
        n += (present >> s & 1) != 0 ? plan->segment[s].end - plan->segment[s].w : 0;
    }
    return n;
}

static tn_status check_view(const tn_table *t, const tn_row_view *view, tn_error *err)
{
    if (view->group >= t->layout->n_groups) {
        return tn_fail(err, TN_E_CKPT, "a row of group %u, where there are %u groups", view->group,
                       t->layout->n_groups);
    }
    bool fits = false;
    const uint32_t floats = floats_of(t, view->group, view->present, &fits);
    if (view->n_floats != floats || !fits) {
        return tn_fail(err, TN_E_CKPT, "a row of '%s' with %u floats, where rows have %u",
                       t->layout->group[view->group].name, view->n_floats, floats);
    }
    if (view->last_seen > TN_ROW_DAY_MAX) {
        return tn_fail(err, TN_E_CKPT, "a row last seen on day %u, the last day is %d",
                       view->last_seen, TN_ROW_DAY_MAX);
    }
    return TN_OK;
}

static tn_status check_limit(const tn_table *t, tn_error *err)
{
    const uint64_t limit = t->room[0].bytes > 0 ? 0 : tn_table_limit(t);
    return limit == 0 || tn_table_bytes(t) <= limit
               ? TN_OK
               : tn_fail(err, TN_E_MEMORY,
                         "the rows take more than %.1f MB, which is what the table "
                         "may take",
                         (double)limit * 1e-6);
}

void tn_refill_begin(tn_refill *r, tn_table *t, uint32_t partition)
{
    TN_ASSERT(partition < TN_PARTITIONS);
    *r = (tn_refill){.t = t, .partition = partition};
    pthread_mutex_lock(&t->partition[partition].lock);
}

/* Segments that the view has, as they are there; the others begin as in a new row. */
static void fill_row(const tn_table *t, const tn_row_view *view, tn_row *row)
{
    const tn_plan *plan = tn_plan_of_row(t, row);
    const float *from = view->data;
    if ((plan->present & ~(uint32_t)view->present) != 0) {
        tn_new_rows_fill(t, plan, view->group, &view->key, &row, 1);
    }
    for (uint32_t s = 0; s < plan->n_segments; s++) {
        const tn_plan_segment *seg = &plan->segment[s];
        if ((view->present >> s & 1) != 0) {
            TN_ASSERT(tn_plan_has(plan, s));
            memcpy(row->data + seg->w, from, (seg->end - seg->w) * sizeof *from);
            from += seg->end - seg->w;
        }
    }
    tn_row_set_seen(row, 0, view->last_seen);
    tn_row_set_count(view->show, &row->show_high, &row->show_low);
    tn_row_set_count(view->click, &row->click_high, &row->click_low);
}

/* A row that lacks segments which wait is one that waits, where the group's may; the form that its
 * key had before leaves. */
tn_status tn_refill_add(tn_refill *r, const tn_row_view *view, tn_error *err)
{
    tn_table *t = r->t;
    TN_TRY(check_view(t, view, err));
    TN_ASSERT(tn_partition_of(view->key, TN_PARTITIONS) == r->partition);
    tn_row_store *store = tn_row_store_of(t, view->key, view->group);
    bool waits = false;
    if (tn_group_waits(t, view->group)) {
        tn_row_store *waiting = tn_waiting_store_of(t, view->key, view->group);
        waits = (view->present & ~(uint32_t)tn_waiting_plan_of(t, view->group)->present) == 0;
        tn_row_store *other = waits ? store : waiting;
        r->added -= tn_row_store_remove(other, view->key, view->group);
        store = waits ? waiting : store;
    }
    tn_row *row = NULL;
    const uint32_t before = store->slab.n_rows;
    TN_TRY(tn_row_store_put(store, &t->pages, view->key, view->group, &row, err));
    row->seen |= waits ? TN_ROW_WAITS : 0;
    if (store->slab.n_rows > before) {
        r->added++;
        TN_TRY(check_limit(t, err));
    }
    fill_row(t, view, row);
    return TN_OK;
}

tn_status tn_refill_remove(tn_refill *r, uint64_t key, uint16_t group, tn_error *err)
{
    tn_table *t = r->t;
    if (group >= t->layout->n_groups) {
        return tn_fail(err, TN_E_CKPT, "a row of group %u, where there are %u groups", group,
                       t->layout->n_groups);
    }
    TN_ASSERT(tn_partition_of(key, TN_PARTITIONS) == r->partition);
    r->added -= tn_row_store_remove(tn_row_store_of(t, key, group), key, group) ||
                (tn_group_waits(t, group) &&
                 tn_row_store_remove(tn_waiting_store_of(t, key, group), key, group));
    return TN_OK;
}

void tn_refill_end(tn_refill *r)
{
    pthread_mutex_unlock(&r->t->partition[r->partition].lock);
    const uint64_t before = atomic_fetch_add(&r->t->rows, (uint64_t)r->added);
    TN_ASSERT(r->added >= 0 || before >= (uint64_t)-r->added);
}

tn_status tn_table_restore(tn_table *t, const tn_row_view *row, tn_error *err)
{
    tn_refill r;
    tn_refill_begin(&r, t, tn_partition_of(row->key, TN_PARTITIONS));
    tn_status status = tn_refill_add(&r, row, err);
    tn_refill_end(&r);
    return status;
}

/* ---- counts of keys without a row, in a filter for each partition ---- */

static tn_status reserve(tn_table *t, tn_partition *p, tn_error *err)
{
    void *filter = p->filter;
    if (filter == NULL) {
        TN_TRY(tn_page_arena_take(&t->pages, tn_key_filter_bytes(&t->filter), &filter, err));
    }
    p->filter = filter;
    return TN_OK;
}

tn_status tn_tile_filter_reserve(tn_table *t, const tn_keyset *keys, uint32_t tile, tn_error *err)
{
    for (uint32_t p = tile * TN_TILE_PARTITIONS; p < (tile + 1) * TN_TILE_PARTITIONS; p++) {
        const tn_range run = tn_keys_of_partition(keys, p);
        if (run.from < run.to) {
            TN_TRY(reserve(t, &t->partition[p], err));
        }
    }
    return TN_OK;
}

const uint8_t *tn_table_filter(const tn_table *t, uint32_t partition, size_t *bytes)
{
    *bytes = tn_key_filter_bytes(&t->filter);
    return t->partition[partition].filter;
}

tn_status tn_table_set_filter(tn_table *t, uint32_t partition, const uint8_t *counts, tn_error *err)
{
    tn_partition *part = &t->partition[partition];
    TN_ASSERT(t->filter.lines > 0);
    TN_TRY(reserve(t, part, err));
    memcpy(part->filter, counts, tn_key_filter_bytes(&t->filter));
    part->raised = tn_key_filter_raised(&t->filter, part->filter);
    return TN_OK;
}
