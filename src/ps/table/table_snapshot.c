/* table_snapshot.c - noting the first touch of a row since the cut and copying it aside; opening a
 * cut, and walking it partition by partition.
 *
 * A walk copies the untouched rows of a partition as they lie, some hundred under one lock, takes
 * over the copies of the touched ones, and sorts them all once the lock is released. A row may be
 * copied by the walk first and be touched before the walk is done: then there are two equal copies.
 */
#include "ps/table/table_snapshot.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/thread/threads.h"
#include "ps/table/tabledef.h"

enum {
    ROWS_LOCKED = 512,    /* copied under one lock: a push waits for some 50 us, unless the walker
                           * loses its processor just then */
    ASIDE_MIN = 64 << 20, /* bytes */
    ASIDE_LEAST = 1 << 20,
    ASIDE_SHARE = 4,                 /* copies take at most 1/4 of the table */
    CUTS_MAX = TN_ROW_STAMP_MAX - 1, /* until a stamp may come again */
    FETCH_AHEAD = 16,                /* rows */
    BYTES_FIRST = 512,
    PAUSE_NS = 20 << 20, /* 21 ms: the longest a push steps back before copies are too many */
};

struct tn_cut {
    tn_table *t;
    bool delta;
    uint64_t rows, bytes;
    uint32_t walked;     /* partitions */
    uint32_t *n_rows;    /* at the cut: [partition][record] */
    tn_row_bytes copied; /* rows of the partition that is walked */
    tn_row_entry *entry;
    size_t entries_max;
};

/* ---- changes ---- */

static void list_clear(tn_row_list *l)
{
    l->pointers.size = 0;
    l->bytes = 0;
}

void tn_changed_rows_init(tn_changed_rows *c)
{
    *c = (tn_changed_rows){0};
    int failure = pthread_mutex_init(&c->lock, NULL);
    TN_ASSERT(failure == 0);
    tn_cond_init(&c->less);
}

void tn_changed_rows_forget(tn_changed_rows *c)
{
    TN_ASSERT(!c->open);
    for (uint32_t p = 0; c->part != NULL && p < TN_PARTITIONS; p++) {
        list_clear(&c->part[p].touched);
        c->part[p].gone.size = 0;
    }
}

void tn_changed_rows_done(tn_changed_rows *c)
{
    for (uint32_t p = 0; c->part != NULL && p < TN_PARTITIONS; p++) {
        tn_free(c->part[p].touched.pointers.data);
        tn_free(c->part[p].due.pointers.data);
        tn_free(c->part[p].gone.data);
        tn_free(c->part[p].gone_due.data);
        tn_free(c->part[p].aside.data);
    }
    tn_free(c->part);
    pthread_cond_destroy(&c->less);
    pthread_mutex_destroy(&c->lock);
}

/* Allocates what is kept per partition, unless it is there. */
static tn_status need_changes(tn_changed_rows *c, tn_error *err)
{
    return c->part != NULL ? TN_OK : TN_ALLOC(c->part, TN_PARTITIONS, "changes of rows", err);
}

/* Room for `size` more bytes. False: no memory, nothing has changed. */
static bool bytes_reserve(tn_row_bytes *b, size_t size)
{
    if (size > b->most - b->size) {
        size_t most = b->most == 0 ? BYTES_FIRST : 2 * b->most;
        most = most > b->size + size ? most : b->size + size;
        if (TN_GROW(b->data, b->size, most, "copies of rows", NULL) != TN_OK) {
            return false;
        }
        b->most = most;
    }
    return true;
}

static bool bytes_add(tn_row_bytes *b, const void *data, size_t size)
{
    if (!bytes_reserve(b, size)) {
        return false;
    }
    memcpy(b->data + b->size, data, size);
    b->size += size;
    return true;
}

static bool list_add(tn_row_list *l, const tn_row *row, uint32_t size)
{
    const bool added = bytes_add(&l->pointers, &row, sizeof(tn_row *));
    l->bytes += added ? size : 0;
    return added;
}

/* A row that is about to change or to move, if the open cut wants it as it is. */
static void keep_aside(tn_changed_rows *c, tn_partition_changes *part, const tn_row *row,
                       uint32_t size)
{
    const uint32_t stamp = tn_row_stamp(row);
    const bool wanted = c->delta ? stamp == c->before : stamp != c->stamp;
    if (!part->open || !wanted) {
        return;
    }
    if (bytes_add(&part->aside, row, size)) {
        atomic_fetch_add_explicit(&c->aside, size, memory_order_relaxed);
    } else {
        part->lost = true; /* the row cannot be written as it was: the cut has failed */
    }
}

void tn_changed_rows_remove(tn_changed_rows *c, uint32_t partition, const tn_row *row,
                            const tn_row *moved, uint32_t size)
{
    tn_partition_changes *part = &c->part[partition];
    keep_aside(c, part, row, size);
    if (moved != row) {
        keep_aside(c, part, moved, size);
    }
    if (c->tracking && !bytes_add(&part->gone, row, sizeof *row)) {
        atomic_store(&c->forgot, true);
    }
}

void tn_changed_rows_moved(tn_changed_rows *c, uint32_t partition, const tn_row *row, uint32_t size)
{
    if (c->tracking && tn_row_stamp(row) == c->stamp &&
        !list_add(&c->part[partition].touched, row, size)) {
        atomic_store(&c->forgot, true);
    }
}

/* A line of a filter that is kept aside. */
typedef struct kept_line {
    uint32_t number;
    uint8_t bytes[TN_KEY_FILTER_LINE];
} kept_line;

_Static_assert(sizeof(kept_line) == TN_KEPT_LINE, "a line with its number");

void tn_changed_rows_line(tn_changed_rows *c, uint32_t partition, uint32_t number,
                          const uint8_t *line)
{
    tn_partition_changes *part = &c->part[partition];
    kept_line kept = {.number = number};
    if (!part->filter_open) {
        return;
    }
    memcpy(kept.bytes, line, sizeof kept.bytes);
    if (bytes_add(&part->lines, &kept, sizeof kept)) {
        atomic_fetch_add_explicit(&c->aside, sizeof kept, memory_order_relaxed);
    } else {
        part->lines_lost = true;
    }
}

void tn_changed_rows_relist(tn_table *t, uint32_t partition)
{
    tn_changed_rows *c = &t->changes;
    tn_row_list *touched = &c->part[partition].touched;
    if (!c->tracking) {
        return;
    }
    list_clear(touched);
    for (uint32_t r = 0; r < t->n_plans; r++) {
        const tn_slab *slab = &t->partition[partition].store[r].slab;
        for (uint32_t i = 0; i < slab->n_rows; i++) {
            const tn_row *row = tn_slab_at(slab, i);
            if (tn_row_stamp(row) == c->stamp && !list_add(touched, row, slab->stride)) {
                atomic_store(&c->forgot, true);
            }
        }
    }
}

void tn_changed_rows_note(tn_changed_rows *c, uint64_t key, tn_row *row, uint32_t size, bool fresh)
{
    TN_ASSERT(tn_row_stamp(row) != c->stamp);
    tn_partition_changes *part = &c->part[tn_partition_of(key, TN_PARTITIONS)];
    if (!fresh) {
        keep_aside(c, part, row, size);
    }
    if (c->tracking && !list_add(&part->touched, row, size)) {
        atomic_store(&c->forgot, true);
    }
    tn_row_set_stamp(row, c->stamp);
}

/* Waits until the walker has taken one more partition, or for a short while. Locked. */
static void pause_for_walker(tn_changed_rows *c)
{
    (void)tn_cond_wait_until(&c->less, &c->lock, tn_clock_ns() + PAUSE_NS);
}

void tn_changed_rows_wait(tn_changed_rows *c, uint64_t need)
{
    pthread_mutex_lock(&c->lock);
    if (c->open && atomic_load(&c->aside) > c->aside_max / 2) {
        pause_for_walker(c);
    }
    for (;;) {
        uint64_t aside = atomic_load(&c->aside);
        bool full = need == UINT64_MAX || (aside > 0 && aside + need > c->aside_max);
        if (!c->open || !full) {
            break;
        }
        pthread_cond_wait(&c->less, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
}

tn_status tn_table_track(tn_table *t, tn_error *err)
{
    tn_changed_rows *c = &t->changes;
    TN_ASSERT(!c->open);
    TN_TRY(need_changes(c, err));
    if (!c->tracking) {
        c->tracking = true;
        c->stamp = c->stamp % TN_ROW_STAMP_MAX + 1;
        c->cuts++;
        atomic_store(&c->watched, true);
    }
    return TN_OK;
}

bool tn_table_knows_changes(const tn_table *t)
{
    return t->changes.tracking && !atomic_load(&t->changes.forgot);
}

/* ---- beginning ---- */

/* Takes off all stamps but the present one, so that a stamp that comes again is on no row. Rarely
 * needed: complete walks do the same. */
static void take_stamps_off(tn_table *t)
{
    for (uint32_t s = 0; s < TN_PARTITIONS * t->n_plans; s++) {
        const tn_slab *slab = &t->stores[s].slab;
        for (uint32_t i = 0; i < slab->n_rows; i++) {
            tn_row *row = tn_slab_at(slab, i);
            if (tn_row_stamp(row) != t->changes.stamp) {
                tn_row_set_stamp(row, 0);
            }
        }
    }
    t->changes.cuts = 0;
}

static void open_partition(tn_cut *cut, uint32_t p)
{
    const tn_table *t = cut->t;
    tn_partition_changes *part = &t->changes.part[p];
    pthread_mutex_lock(&t->partition[p].lock);
    for (uint32_t r = 0; r < t->n_plans; r++) {
        cut->n_rows[(size_t)p * t->n_plans + r] = t->partition[p].store[r].slab.n_rows;
    }
    TN_ASSERT(part->lines.size == 0);
    TN_ASSERT(part->aside.size == 0 && part->due.bytes == 0 && part->gone_due.size == 0);
    if (cut->delta) {
        tn_row_list swap = part->due;
        part->due = part->touched;
        part->touched = swap;
        tn_row_bytes gone = part->gone_due;
        part->gone_due = part->gone;
        part->gone = gone;
        cut->bytes += part->due.bytes + part->gone_due.size;
    }
    list_clear(&part->touched);
    part->gone.size = 0;
    part->open = true;
    part->lost = false;
    part->filter_open = t->partition[p].filter != NULL;
    part->lines_lost = false;
    pthread_mutex_unlock(&t->partition[p].lock);
}

/* The most bytes of copies aside: within the table's limit, too. */
static uint64_t aside_max(const tn_table *t)
{
    const uint64_t bytes = tn_table_bytes(t);
    const uint64_t share = bytes / ASIDE_SHARE;
    const uint64_t most = share > ASIDE_MIN ? share : ASIDE_MIN;
    const uint64_t left = t->pages.limit > bytes ? t->pages.limit - bytes : 0;
    if (t->changes.aside_limit > 0) {
        const uint64_t bound = t->changes.aside_limit;
        return bound > ASIDE_LEAST ? bound : ASIDE_LEAST;
    }
    if (t->pages.limit == 0 || left >= most) {
        return most;
    }
    return left > ASIDE_LEAST ? left : ASIDE_LEAST;
}

tn_status tn_cut_open(tn_cut **out, tn_table *t, bool delta, tn_error *err)
{
    *out = NULL;
    tn_changed_rows *c = &t->changes;
    TN_ASSERT(!c->open && (!delta || tn_table_knows_changes(t)));
    TN_TRY(need_changes(c, err));
    tn_cut *cut = NULL;
    TN_TRY(TN_ALLOC(cut, 1, "a cut of the table", err));
    cut->t = t;
    cut->delta = delta;
    size_t n_stores = (size_t)TN_PARTITIONS * t->n_plans;
    cut->n_rows = tn_try_alloc(n_stores + 1, sizeof *cut->n_rows, "a cut of the table", err);
    if (cut->n_rows == NULL) {
        tn_free(cut);
        return TN_E_MEMORY;
    }
    if (c->cuts >= CUTS_MAX) {
        take_stamps_off(t);
    }
    c->cuts++;
    c->before = c->stamp;
    c->stamp = c->stamp % TN_ROW_STAMP_MAX + 1;
    c->delta = delta;
    cut->rows = tn_table_rows(t);
    cut->bytes = delta ? 0 : tn_table_bytes(t);
    c->aside_max = aside_max(t);
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        open_partition(cut, p);
    }
    atomic_store(&c->forgot, false);
    pthread_mutex_lock(&c->lock);
    c->open = true;
    pthread_mutex_unlock(&c->lock);
    atomic_store(&c->watched, true);
    *out = cut;
    return TN_OK;
}

bool tn_cut_set_patient(tn_cut *cut)
{
    tn_changed_rows *c = &cut->t->changes;
    TN_ASSERT(c->open && cut->walked == 0 && !cut->delta);
    if (cut->t->sweeps || cut->t->admits || cut->bytes > c->aside_max) {
        return false;
    }
    c->aside_max = UINT64_MAX / 2;
    return true;
}

/* ---- the end ---- */

/* The caller owns the copies aside then; the partition may change freely. Locked. */
static tn_row_bytes take_aside(tn_partition_changes *part)
{
    tn_row_bytes aside = part->aside;
    part->aside = (tn_row_bytes){0};
    list_clear(&part->due);
    part->open = false;
    return aside;
}

/* The same of a filter. */
static tn_row_bytes take_lines(tn_partition_changes *part)
{
    tn_row_bytes lines = part->lines;
    part->lines = (tn_row_bytes){0};
    part->filter_open = false;
    return lines;
}

static void free_aside(tn_changed_rows *c, tn_row_bytes *aside)
{
    tn_free(aside->data);
    const uint64_t before = atomic_fetch_sub(&c->aside, aside->size);
    TN_ASSERT(before >= aside->size);
}

void tn_cut_close(tn_cut *cut)
{
    if (cut == NULL) {
        return;
    }
    tn_table *t = cut->t;
    tn_changed_rows *c = &t->changes;
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        pthread_mutex_lock(&t->partition[p].lock);
        tn_row_bytes aside = take_aside(&c->part[p]);
        tn_row_bytes lines = take_lines(&c->part[p]);
        c->part[p].gone_due.size = 0;
        pthread_mutex_unlock(&t->partition[p].lock);
        free_aside(c, &aside);
        free_aside(c, &lines);
    }
    TN_ASSERT(atomic_load(&c->aside) == 0);
    if (!c->tracking) {
        atomic_store(&c->watched, false);
    }
    pthread_mutex_lock(&c->lock);
    TN_ASSERT(c->open);
    c->open = false;
    if (!cut->delta && cut->walked == TN_PARTITIONS) {
        c->cuts = 0;
    }
    pthread_cond_broadcast(&c->less);
    pthread_mutex_unlock(&c->lock);
    tn_free(cut->copied.data);
    tn_free(cut->entry);
    tn_free(cut->n_rows);
    tn_free(cut);
}

uint64_t tn_cut_rows(const tn_cut *c)
{
    return c->rows;
}

uint64_t tn_cut_bytes(const tn_cut *c)
{
    return c->bytes;
}

/* ---- one partition ---- */

static tn_status no_room(tn_error *err)
{
    return tn_fail(err, TN_E_MEMORY, "out of memory: copies of rows that are being saved");
}

/* A row of a delta that was not touched since the cut; of one that was, or that was removed or
 * moved away, there is a copy aside. */
static bool copy_row(tn_cut *cut, const tn_row *row)
{
    const tn_changed_rows *c = &cut->t->changes;
    if (tn_row_stamp(row) != c->before) {
        return true;
    }
    return bytes_add(&cut->copied, row, tn_plan_of_row(cut->t, row)->stride);
}

static size_t most_bytes(const tn_cut *cut, uint32_t p)
{
    const tn_table *t = cut->t;
    size_t bytes = 0;
    if (cut->delta) {
        return (size_t)t->changes.part[p].due.bytes;
    }
    for (uint32_t r = 0; r < t->n_plans; r++) {
        bytes += (size_t)cut->n_rows[(size_t)p * t->n_plans + r] * t->plan[r].stride;
    }
    return bytes;
}

/* The same for a run of rows of a full cut, for which there is room. Old stamps are taken off as it
 * passes. Locked. */
static void copy_run(tn_cut *cut, const tn_slab *slab, tn_range run)
{
    const uint32_t stamp = cut->t->changes.stamp;
    char *to = cut->copied.data + cut->copied.size;
    for (uint32_t k = run.from; k < run.to; k++) {
        tn_row *row = tn_slab_at(slab, k);
        uint32_t has = tn_row_stamp(row);
        if (has == stamp) {
            continue;
        }
        if (has != 0) {
            tn_row_set_stamp(row, 0);
        }
        memcpy(to, row, slab->stride);
        to += slab->stride;
    }
    cut->copied.size = (size_t)(to - cut->copied.data);
    TN_ASSERT(cut->copied.size <= cut->copied.most);
}

static void copy_store(tn_cut *cut, uint32_t p, uint32_t store)
{
    tn_partition *part = &cut->t->partition[p];
    uint32_t n = cut->n_rows[(size_t)p * cut->t->n_plans + store];
    for (uint32_t i = 0; i < tn_tile_count(n, ROWS_LOCKED); i++) {
        tn_range run = tn_tile(n, ROWS_LOCKED, i);
        pthread_mutex_lock(&part->lock);
        const tn_slab *slab = &part->store[store].slab;
        run.to = run.to < slab->n_rows ? run.to : slab->n_rows; /* some may have left */
        copy_run(cut, slab, run);
        pthread_mutex_unlock(&part->lock);
    }
}

static tn_status copy_due(tn_cut *cut, uint32_t p, tn_error *err)
{
    const tn_row_bytes *due = &cut->t->changes.part[p].due.pointers; /* no other thread writes it */
    const tn_row *const *row = (const tn_row *const *)(const void *)due->data;
    const uint32_t n = (uint32_t)(due->size / sizeof(void *));
    bool good = true;
    for (uint32_t i = 0; i < tn_tile_count(n, ROWS_LOCKED) && good; i++) {
        tn_range run = tn_tile(n, ROWS_LOCKED, i);
        pthread_mutex_lock(&cut->t->partition[p].lock);
        for (uint32_t k = run.from; k < run.to && good; k++) {
            if (n - k > FETCH_AHEAD) { /* they lie anywhere */
                const char *soon = (const char *)row[k + FETCH_AHEAD];
                __builtin_prefetch(soon);
                __builtin_prefetch(soon + TN_CACHE_LINE);
            }
            good = copy_row(cut, row[k]);
        }
        pthread_mutex_unlock(&cut->t->partition[p].lock);
    }
    return good ? TN_OK : no_room(err);
}

/* Lists rows of a partition that lie in a line; with out NULL only counts. */
static size_t list_rows(const tn_table *t, uint32_t p, const tn_row_bytes *b, tn_row_entry *out)
{
    size_t n = 0;
    for (size_t at = 0; at < b->size; n++) {
        const tn_row *row = (const tn_row *)(const void *)(b->data + at);
        if (out != NULL) {
            out[n] = (tn_row_entry){tn_row_key(row, p), row};
        }
        at += tn_plan_of_row(t, row)->stride;
    }
    return n;
}

static bool same_row(const tn_row_entry *a, const tn_row_entry *b)
{
    return a->key == b->key && tn_row_group(a->row) == tn_row_group(b->row);
}

/* Returns the view of a row of a partition or, in a delta, of the header of one that is gone. */
static tn_row_view view_of(const tn_cut *cut, const tn_row_bytes *gone, const tn_row_entry *e)
{
    const char *at = (const char *)e->row;
    if (gone->size == 0 || at < gone->data || at >= gone->data + gone->size) {
        return tn_view_of(cut->t, e->key, e->row);
    }
    return (tn_row_view){.key = e->key,
                         .group = tn_row_group(e->row),
                         .last_seen = tn_row_day(e->row),
                         .removed = true};
}

/* A key that came back after it was removed is a row: rows come before removed ones. */
static tn_status visit_rows(tn_cut *cut, uint32_t p, const tn_row_bytes *aside, tn_row_visit *visit,
                            void *arg, tn_error *err)
{
    const tn_table *t = cut->t;
    const tn_row_bytes *gone = &t->changes.part[p].gone_due; /* no other thread writes it */
    const size_t n_copied = list_rows(t, p, &cut->copied, NULL);
    const size_t n_rows = n_copied + list_rows(t, p, aside, NULL);
    const size_t n = n_rows + gone->size / sizeof(tn_row);
    if (n == 0) {
        return TN_OK;
    }
    if (2 * n > cut->entries_max) {
        tn_free(cut->entry);
        cut->entries_max = 0;
        TN_TRY(TN_ALLOC(cut->entry, 3 * n, "rows in key order", err));
        cut->entries_max = 3 * n;
    }
    (void)list_rows(t, p, &cut->copied, cut->entry);
    (void)list_rows(t, p, aside, cut->entry + n_copied);
    const tn_row *removed = (const tn_row *)(const void *)gone->data;
    for (size_t i = n_rows; i < n; i++, removed++) {
        cut->entry[i] = (tn_row_entry){tn_row_key(removed, p), removed};
    }
    const tn_row_entry *sorted = tn_rows_sort(cut->entry, n);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || !same_row(&sorted[i], &sorted[i - 1])) {
            tn_row_view view = view_of(cut, gone, &sorted[i]);
            TN_TRY(visit(arg, &view, err));
        }
    }
    return TN_OK;
}

/* Copies aside have gone. */
static void tell_less(tn_changed_rows *c)
{
    pthread_mutex_lock(&c->lock);
    pthread_cond_broadcast(&c->less);
    pthread_mutex_unlock(&c->lock);
}

tn_status tn_cut_walk(tn_cut *cut, uint32_t p, tn_row_visit *visit, void *arg, tn_error *err)
{
    tn_table *t = cut->t;
    TN_ASSERT(p < TN_PARTITIONS);
    TN_ASSERT(cut->walked < TN_PARTITIONS);
    cut->copied.size = 0;
    if (!bytes_reserve(&cut->copied, most_bytes(cut, p))) {
        return no_room(err);
    }
    if (cut->delta) {
        TN_TRY(copy_due(cut, p, err));
    } else {
        for (uint32_t r = 0; r < t->n_plans; r++) {
            copy_store(cut, p, r);
        }
    }
    pthread_mutex_lock(&t->partition[p].lock);
    TN_ASSERT(t->changes.part[p].open); /* each partition once */
    bool lost = t->changes.part[p].lost;
    tn_row_bytes aside = take_aside(&t->changes.part[p]);
    pthread_mutex_unlock(&t->partition[p].lock);
    tn_status status = lost ? no_room(err) : visit_rows(cut, p, &aside, visit, arg, err);
    free_aside(&t->changes, &aside);
    tell_less(&t->changes);
    cut->walked++;
    return status;
}

size_t tn_cut_filter_bytes(const tn_cut *cut)
{
    return tn_key_filter_bytes(&cut->t->filter);
}

tn_status tn_cut_filter(tn_cut *cut, uint32_t p, uint8_t *out, bool *any, tn_error *err)
{
    tn_table *t = cut->t;
    tn_partition_changes *part = &t->changes.part[p];
    const size_t bytes = tn_key_filter_bytes(&t->filter);
    pthread_mutex_lock(&t->partition[p].lock);
    *any = part->filter_open;
    if (*any) {
        memcpy(out, t->partition[p].filter, bytes);
    }
    const bool lost = part->lines_lost;
    tn_row_bytes lines = take_lines(part);
    pthread_mutex_unlock(&t->partition[p].lock);
    const kept_line *line = (const kept_line *)(const void *)lines.data;
    for (size_t i = lines.size / sizeof *line; i-- > 0;) { /* the oldest of a line is the last */
        memcpy(out + (size_t)line[i].number * TN_KEY_FILTER_LINE, line[i].bytes,
               sizeof line[i].bytes);
    }
    free_aside(&t->changes, &lines);
    tell_less(&t->changes);
    return lost ? no_room(err) : TN_OK;
}
