/* table_sweep.c - rows that leave: those that have expired, and in a full table those that score
 * least.
 *
 *     sweep     at the end of an epoch or a day: every row is looked at, partition by partition
 *     evict     after a push: partitions that it has filled lose one row in eight
 *
 * Room is cut like keys, by partition, so that which rows leave does not depend on how many
 * processes there are, and no step waits for more than a few partitions. Room comes in chunks, so
 * some partitions have a chunk more than others.
 *
 * Rows that wait have a room of their own. Memory that one kind of rows gives back does not fit the
 * other, and new keys would hardly ever become whole if they had to score more than whole rows.
 */
#include "base/core/alloc.h"
#include "base/thread/team.h"
#include "ps/table/lifecycle.h"
#include "ps/table/tabledef.h"

enum {
    EVICT_SHARE = 8,  /* at least one of so many rows leaves */
    SPARE_SHARE = 16, /* there is room for one more for each so many rows, */
    SPARE_LEAST = 16, /* and for these */
    KEPT_SHARE = 64,  /* a part of the limit is left for copies aside */
    ASIDE_SHARE = 32,
    AHEAD = 8,                   /* rows that are fetched while others are looked at */
    KEY_BITS_LEFT_OUT = 54 - 32, /* the upper ones distinguish the rows of a partition */
};

void tn_row_remove(tn_table *t, uint32_t partition, tn_row_store *store, uint32_t number,
                   bool moved)
{
    if (tn_changed_rows_watched(&t->changes)) {
        const tn_row *row = tn_slab_at(&store->slab, number);
        const tn_row *last = tn_slab_at(&store->slab, store->slab.n_rows - 1);
        tn_changed_rows_remove(&t->changes, partition, row, last, store->slab.stride);
    }
    tn_row_store_remove_at(store, number, moved);
}

/* After a partition has lost so many rows, and perhaps chunks. */
static void note_removed(tn_table *t, uint32_t partition, uint64_t n, bool shrunk)
{
    if ((n > 0 || shrunk) && tn_changed_rows_watched(&t->changes)) {
        tn_changed_rows_relist(t, partition);
    }
    atomic_fetch_sub(&t->rows, n);
}

/* ---- rows that have expired ---- */

typedef struct sweeping {
    tn_table *t;
    uint32_t day;
    tn_group_rows *count; /* per tile and group */
} sweeping;

/* Weights that are not 0. */
static uint32_t nonzero_of(const tn_plan *plan, const tn_row *row)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < plan->n_segments; s++) {
        const float *w = row->data + plan->segment[s].w;
        const uint32_t dim = tn_plan_has(plan, s) ? plan->segment[s].dim : 0;
        for (uint32_t i = 0; i < dim; i++) {
            n += tn_row_word(&w[i]) << 1 != 0; /* whatever its sign */
        }
    }
    return n;
}

/* Removes the rows of a run that leave, and counts the others. From the last one on: one that takes
 * the place of another has been looked at. Returns how many leave. */
static uint64_t sweep_run(const sweeping *x, uint32_t partition, uint32_t form, tn_range run,
                          tn_group_rows *count)
{
    tn_row_store *store = &x->t->partition[partition].store[form];
    tn_row *row[TN_LOOK_KEYS];
    uint16_t group[TN_LOOK_KEYS];
    const tn_policy_rows rows = {.t = x->t,
                                 .n = run.to - run.from,
                                 .group = group,
                                 .row = row,
                                 .day = x->day,
                                 .partition = partition};
    for (uint32_t i = 0; i < rows.n; i++) {
        row[i] = tn_slab_at(&store->slab, run.from + i);
        group[i] = tn_row_group(row[i]);
    }
    const uint64_t leave = tn_ask_any(TN_ON_SWEEP, &rows);
    uint64_t n = 0;
    for (uint32_t i = rows.n; i-- > 0;) {
        tn_group_rows *of = &count[group[i]];
        if ((leave >> i & 1) != 0) {
            tn_row_remove(x->t, partition, store, run.from + i, false);
            of->expired++;
            n++;
        } else {
            of->rows++;
            of->waiting += tn_row_waits(row[i]);
            of->bytes += store->slab.stride;
            of->nonzero += nonzero_of(&x->t->plan[form], row[i]);
        }
    }
    return n;
}

static uint64_t sweep_store(const sweeping *x, uint32_t partition, uint32_t form,
                            tn_group_rows *count)
{
    const tn_slab *slab = &x->t->partition[partition].store[form].slab;
    uint64_t n = 0;
    for (uint32_t from, to = slab->n_rows; to > 0; to = from) {
        from = to > TN_LOOK_KEYS ? to - TN_LOOK_KEYS : 0;
        for (uint32_t i = from > TN_LOOK_KEYS ? from - TN_LOOK_KEYS : 0; i < from; i++) {
            __builtin_prefetch(tn_slab_at(slab, i));
        }
        n += sweep_run(x, partition, form, (tn_range){from, to}, count);
    }
    return n;
}

static void sweep_tile(void *arg, uint32_t tile)
{
    sweeping *x = arg;
    tn_table *t = x->t;
    tn_group_rows *count = x->count + (size_t)tile * t->layout->n_groups;
    for (uint32_t i = 0; i < TN_TILE_PARTITIONS; i++) {
        const uint32_t p = tile * TN_TILE_PARTITIONS + i;
        tn_partition *part = &t->partition[p];
        uint64_t n = 0;
        pthread_mutex_lock(&part->lock);
        const bool read_elsewhere = t->changes.part != NULL && t->changes.part[p].open;
        for (uint32_t r = 0; r < t->n_plans; r++) {
            n += sweep_store(x, p, r, count);
        }
        for (uint32_t r = 0; r < t->n_plans && !read_elsewhere; r++) {
            tn_row_store_shrink(&part->store[r], &t->pages);
        }
        note_removed(t, p, n, true); /* chunks may be gone that had rows which became whole */
        (void)tn_ask_any(TN_ON_SWEEP, &(tn_policy_rows){.t = t, .day = x->day, .partition = p});
        pthread_mutex_unlock(&part->lock);
    }
}

void tn_group_rows_sum(tn_group_rows *sum, const tn_group_rows *more)
{
    sum->rows += more->rows;
    sum->waiting += more->waiting;
    sum->bytes += more->bytes;
    sum->nonzero += more->nonzero;
    sum->expired += more->expired;
    sum->evicted += more->evicted;
    sum->admitted += more->admitted;
}

tn_status tn_table_sweep(tn_table *t, tn_team *team, uint32_t day, tn_group_rows *out,
                         tn_error *err)
{
    TN_ASSERT(day <= TN_ROW_DAY_MAX);
    const uint32_t n = t->layout->n_groups;
    sweeping x = {.t = t, .day = day};
    TN_TRY(TN_ALLOC(x.count, (size_t)TN_TABLE_TILES * n + 1, "counts of rows", err));
    tn_row_positions_forget(&t->positions);
    tn_team_run(team, TN_TABLE_TILES, sweep_tile, &x);
    for (uint32_t g = 0; g < n; g++) {
        out[g] = (tn_group_rows){.evicted = atomic_exchange(&t->moves[g].evicted, 0),
                                 .admitted = atomic_exchange(&t->moves[g].admitted, 0)};
        for (uint32_t tile = 0; tile < TN_TABLE_TILES; tile++) {
            tn_group_rows_sum(&out[g], &x.count[(size_t)tile * n + g]);
        }
        t->swept.expired += out[g].expired;
        t->swept.evicted += out[g].evicted;
        t->swept.admitted += out[g].admitted;
    }
    tn_free(x.count);
    return TN_OK;
}

/* ---- rows that a full table has no room for ---- */

/* Returns the order in which rows of a partition leave: by score, rounded to a float, then by key.
 * Scores are not negative, so their bits are in their order. */
static uint64_t order_of(const tn_table *t, uint32_t p, const tn_row *row, uint32_t day)
{
    const tn_row_view view = tn_view_of(t, tn_row_key(row, p), row);
    const double exact = tn_score_of(tn_lifecycle_of(&t->options, view.group), &view, day);
    const float score = exact > 0 ? (float)exact : 0;
    uint32_t bits;
    memcpy(&bits, &score, sizeof bits);
    return (uint64_t)bits << 32 | (uint32_t)(view.key >> KEY_BITS_LEFT_OUT);
}

/* Counts in `bin` how many of a list of n have each value in the eight highest bits in which any
 * two differ. Returns how far these bits are above the lowest; 64: all are equal. */
static uint32_t spread_out(const uint64_t *list, uint32_t n, uint32_t bin[256])
{
    uint64_t differ = 0;
    for (uint32_t i = 1; i < n; i++) {
        differ |= list[i] ^ list[0];
    }
    if (differ == 0) {
        return 64;
    }
    const uint32_t width = 64 - (uint32_t)__builtin_clzll(differ);
    const uint32_t shift = width > 8 ? width - 8 : 0;
    memset(bin, 0, 256 * sizeof *bin);
    for (uint32_t i = 0; i < n; i++) {
        bin[list[i] >> shift & 255]++;
    }
    return shift;
}

/* The one that comes k-th of a list, from 0: by its highest bits, then among those that share them.
 * Rows that were seen once score the same, so comparisons would be guessed wrong half of the time.
 * The list is overwritten. */
static uint64_t select_one(uint64_t *list, uint32_t n, uint32_t k)
{
    uint32_t bin[256];
    for (uint32_t shift; (shift = spread_out(list, n, bin)) < 64;) {
        uint32_t b = 0;
        for (; k >= bin[b]; b++) {
            k -= bin[b];
        }
        uint32_t kept = 0;
        for (uint32_t i = 0; i < n; i++) {
            const uint64_t order = list[i];
            list[kept] = order; /* stays only if the next line says so */
            kept += (order >> shift & 255) == b;
        }
        n = kept;
    }
    return list[0];
}

/* Rows with those that another push may add, so that it takes no chunk. */
static uint32_t with_spare(uint32_t rows)
{
    return rows + rows / SPARE_SHARE + SPARE_LEAST;
}

/* Returns a partition's place, 0 .. 1023, in an order in which any run of partitions has nearly as
 * many below any place. */
static uint32_t place_of(uint32_t p)
{
    uint32_t reversed = 0;
    for (uint32_t i = 0; i < TN_ROW_PARTITION_BITS; i++) {
        reversed = reversed << 1 | (p >> i & 1);
    }
    return reversed;
}

/* The stores of whole rows, or those of rows that wait. */
static tn_range stores_of(const tn_table *t, bool waits)
{
    const uint32_t n = t->layout->n_records;
    return waits ? (tn_range){n, t->n_plans} : (tn_range){0, n};
}

/* Whether a partition has more rows of a kind than it has room for; *rows: how many. */
static bool is_full(const tn_table *t, uint32_t p, bool waits, uint32_t *rows)
{
    const tn_room_of_rows *room = &t->room[waits];
    const tn_range stores = stores_of(t, waits);
    uint64_t bytes = 0;
    *rows = 0;
    for (uint32_t r = stores.from; r < stores.to; r++) {
        const tn_slab *slab = &t->partition[p].store[r].slab;
        *rows += slab->n_rows;
        bytes += room->rows > 0 ? 0 : tn_row_store_need(slab->stride, with_spare(slab->n_rows));
    }
    if (room->rows > 0) {
        return with_spare(*rows) > (place_of(p) < room->more_of ? room->more_rows : room->rows);
    }
    return bytes > room->bytes + room->chunk * place_of(p) / TN_PARTITIONS;
}

/* Writes two lists. Returns how many rows there are. */
static uint32_t list_orders(const tn_table *t, uint32_t p, tn_range stores, uint32_t day,
                            uint64_t *out, uint64_t *copy)
{
    uint32_t n = 0;
    for (uint32_t r = stores.from; r < stores.to; r++) {
        const tn_slab *slab = &t->partition[p].store[r].slab;
        for (uint32_t i = 0; i < slab->n_rows; i++, n++) {
            __builtin_prefetch(tn_slab_at(slab, i + AHEAD < slab->n_rows ? i + AHEAD : i));
            out[n] = order_of(t, p, tn_slab_at(slab, i), day);
            copy[n] = out[n];
        }
    }
    return n;
}

/* Rows up to that order, from the last one on: one that takes the place of another stays. */
static uint32_t evict_up_to(tn_table *t, uint32_t p, tn_range stores, const uint64_t *order,
                            uint32_t n, uint64_t most)
{
    uint32_t removed = 0;
    for (uint32_t r = stores.to; r-- > stores.from;) {
        tn_row_store *store = &t->partition[p].store[r];
        for (uint32_t number = store->slab.n_rows; number-- > 0;) {
            if (order[--n] <= most) {
                const uint32_t group = tn_row_group(tn_slab_at(&store->slab, number));
                atomic_fetch_add_explicit(&t->moves[group].evicted, 1, memory_order_relaxed);
                tn_row_remove(t, p, store, number, false);
                removed++;
            }
        }
    }
    return removed;
}

/* Without memory for a list nothing leaves now, and more next time. */
static void evict_partition(tn_table *t, uint32_t p, bool waits, uint32_t day)
{
    const tn_range stores = stores_of(t, waits);
    uint32_t n = 0;
    while (is_full(t, p, waits, &n) && n > 0) {
        uint64_t *order = tn_try_alloc(2UL * n, sizeof *order, "rows that leave", NULL);
        if (order == NULL) {
            return;
        }
        const uint32_t listed = list_orders(t, p, stores, day, order, order + n);
        const uint64_t most = select_one(order + n, listed, (n - 1) / EVICT_SHARE);
        const uint32_t removed = evict_up_to(t, p, stores, order, listed, most);
        note_removed(t, p, removed, false);
        tn_free(order);
    }
}

void tn_tile_evict(tn_table *t, const tn_keyset *keys, uint32_t tile, uint32_t day)
{
    for (uint32_t i = 0; i < TN_TILE_PARTITIONS; i++) {
        const uint32_t p = tile * TN_TILE_PARTITIONS + i;
        const tn_range run = tn_keys_of_partition(keys, p);
        if (run.from < run.to) {
            evict_partition(t, p, false, day);
        }
        if (run.from < run.to && t->room[1].bytes > 0) {
            evict_partition(t, p, true, day);
        }
    }
}

/* All partitions have room for as many chunks, and some for one more, so that together they take
 * what there is. */
static void share_chunks(tn_room_of_rows *room, uint32_t stride)
{
    const uint32_t full = tn_row_store_chunk(stride);
    uint32_t more = 2 * SPARE_LEAST;
    do {
        room->rows = more;
        more += more < full ? more : full;
    } while (tn_row_store_need(stride, more) <= room->bytes);
    const uint64_t less = tn_row_store_need(stride, room->rows);
    room->more_rows = more;
    room->more_of =
        (uint32_t)((room->bytes - less) * TN_PARTITIONS / (tn_row_store_need(stride, more) - less));
}

/* Returns the bytes that a partition needs for rows of a kind. */
static uint64_t least_of(const tn_table *t, bool waits)
{
    const tn_range stores = stores_of(t, waits);
    uint64_t bytes = 0;
    for (uint32_t r = stores.from; r < stores.to; r++) {
        bytes += t->plan[r].unused ? 0 : tn_row_store_need(t->plan[r].stride, 2 * SPARE_LEAST);
    }
    return bytes;
}

uint64_t tn_table_evict_least(const tn_table *t)
{
    const uint64_t whole = least_of(t, false);
    const uint64_t waiting = least_of(t, true) * TN_TABLE_WAIT_SHARE;
    const uint64_t both =
        (whole * TN_TABLE_WAIT_SHARE + TN_TABLE_WAIT_SHARE - 2) / (TN_TABLE_WAIT_SHARE - 1);
    return tn_key_filter_bytes(&t->filter) + (waiting == 0     ? whole
                                              : waiting > both ? waiting
                                                               : both);
}

/* So many bytes of each partition for rows of a kind. */
static void give_room(tn_table *t, bool waits, uint64_t bytes)
{
    const tn_range stores = stores_of(t, waits);
    tn_room_of_rows *room = &t->room[waits];
    *room = (tn_room_of_rows){.bytes = bytes};
    for (uint32_t r = stores.from; r < stores.to; r++) {
        const uint64_t chunk = (uint64_t)tn_row_store_chunk(t->plan[r].stride) * t->plan[r].stride;
        room->chunk = chunk > room->chunk ? chunk : room->chunk;
    }
    if (stores.to - stores.from == 1 && bytes >= least_of(t, waits)) {
        share_chunks(room, t->plan[stores.from].stride);
    }
}

bool tn_table_evict_beyond(tn_table *t, uint64_t limit, tn_range partitions)
{
    const uint32_t n = partitions.to - partitions.from;
    TN_ASSERT(partitions.from < partitions.to && partitions.to <= TN_PARTITIONS);
    tn_table_set_limit(t, limit);
    const uint64_t filter = tn_key_filter_bytes(&t->filter);
    const uint64_t all = (limit - limit / KEPT_SHARE) / n;
    const uint64_t room = all > filter ? all - filter : 1;
    const uint64_t waiting = least_of(t, true) > 0 ? room / TN_TABLE_WAIT_SHARE : 0;
    t->changes.aside_limit = limit / ASIDE_SHARE;
    give_room(t, false, room - waiting);
    give_room(t, true, waiting);
    return all >= tn_table_evict_least(t);
}
