/* memory_cap.c - finds the limit of memory, and looks whether the next step fits. */
#include "train/step/memory_cap.h"

#include "base/core/arena.h"
#include "base/core/clock.h"
#include "base/keys/record.h"
#include "io/localize/localize.h"
#include "io/schema/schema.h"
#include "nn/passes/plan.h"
#include "ps/table/table.h"
#include "train/config/run.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <stdlib.h>
#include <string.h>

enum {
    LIST_GUESS = 4,        /* values of a slot that may have any number */
    STEPS_UNTIL_MET = 2,   /* steps that a group makes before all pause */
    KEY_BYTES = 8,         /* bytes of an entry of a parsed row; a batch has three times that */
    ROW_BYTES = 32,        /* bytes of a parsed row beside its keys */
    BLOCK_BYTES = 1 << 20, /* bytes of a parsed block, of which a parser has two */
    MORE_BLOCKS = 2,
    STACK_BYTES = 8 << 20,    /* address space of a thread */
    THREADS = 6,              /* threads that start later: reading, batches, saving, messages */
    SAVE_BYTES = 16 << 20,    /* bytes that saving takes beside copies of rows */
    METRICS = 3,              /* sets of metrics: of an epoch, the window, an evaluation */
    METRICS_BYTES = 17 << 20, /* bytes of a set, with its histogram of scores */
    SLOTS_TOLD = 8,
    FORGET = 16, /* each step lowers the most rows of a step by one part in so many */
};

static const double auto_share = 0.8;
static const double near_share = 0.9;
static const double look_s = 0.1;

/* ---- what is planned ---- */

static uint64_t keys_of_row(const tn_schema *schema)
{
    uint64_t keys = 0;
    for (uint32_t i = 0; i < schema->n_slots; i++) {
        const tn_slot_spec *s = schema->slot[i];
        const bool many = s->list != 0 || s->max_len > 1;
        keys += !many ? 1 : s->max_len > 0 ? s->max_len : LIST_GUESS;
    }
    return keys;
}

/* Floats that a row takes in a batch. */
static uint32_t widest(const tn_layout *layout)
{
    uint32_t most = 0;
    for (uint32_t r = 0; r < layout->n_records; r++) {
        const uint32_t stride = tn_localized_stride(layout->record[r].width);
        most = stride > most ? stride : most;
    }
    return most;
}

/* Values and gradients, which take memory when they are first written. */
static uint64_t bytes_of(const tn_graph *g)
{
    return g != NULL ? (uint64_t)tn_graph_cost(g).memory : 0;
}

/* Returns what training takes beside the table, beyond what the worker has by now: rows that are
 * held back, blocks that are parsed, batches with their rows and gradients, what a group sends,
 * values of the graphs, metrics. */
static uint64_t planned(const tn_worker *w)
{
    const tn_run *run = w->plan->run;
    const uint64_t keys = keys_of_row(w->plan->schema);
    const uint64_t parsers = run->data.readers == TN_AUTO ? 2 : run->data.readers;
    const uint64_t window = run->data.shuffle * (ROW_BYTES + keys * KEY_BYTES);
    const uint64_t floats = widest(w->plan->layout); /* per key, as if all were different */
    const uint64_t batch =
        run->train.batch * keys * (UINT64_C(3) * KEY_BYTES + 2 * sizeof(float) * floats);
    const uint64_t batches =
        run->train.prefetch + UINT64_C(2) * (w->plan->owners.n_peers > 1 ? 2 : 1);
    const uint64_t graphs = bytes_of(w->train_graph) + bytes_of(w->eval_graph);
    return window + (2 * parsers + MORE_BLOCKS) * BLOCK_BYTES + batches * batch + SAVE_BYTES +
           graphs + (uint64_t)METRICS * METRICS_BYTES;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* The least of the two limits, each less what is not table. */
static void find_auto(tn_memory_cap *m)
{
    const tn_table *table = m->w->shard.table;
    const uint64_t more = planned(m->w);
    const uint64_t resident = less(m->use.resident, tn_table_bytes(table)) + more;
    const uint64_t address =
        less(m->use.address_space, tn_table_bytes(table)) + more + (uint64_t)THREADS * STACK_BYTES;
    const uint64_t by_resident = less((uint64_t)((double)m->share * auto_share), resident);
    const uint64_t by_address =
        less((uint64_t)((double)m->limit.address_space * auto_share), address);
    m->by_address = m->limit.address_space != UINT64_MAX && by_address < by_resident;
    m->outside = m->by_address ? address : resident;
    m->cap = m->by_address ? by_address : by_resident;
    m->cap = m->cap > 0 ? m->cap : 1; /* 0 would be none */
}

/* A group makes some steps more before all pause. */
static uint64_t until_met(const tn_worker *w, uint64_t rows)
{
    return w->plan->owners.n_peers > 1 ? STEPS_UNTIL_MET * rows : rows;
}

void tn_memory_cap_begin(tn_memory_cap *m)
{
    if (m->w == NULL) {
        return;
    }
    m->rows = m->rows_most;
    m->most = 0;
    m->steps = m->w->steps;
    m->created = tn_table_total(m->w->shard.table).made;
}

/* As many as in one of the last steps. */
static void expect_rows(tn_memory_cap *m)
{
    if (m->w->steps == m->steps) {
        return;
    }
    const uint64_t created = tn_table_total(m->w->shard.table).made;
    TN_ASSERT(created >= m->created && m->steps < m->w->steps);
    const uint64_t now = created - m->created;
    const uint64_t before = m->most - m->most / FORGET;
    m->most = before > now ? before : now;
    m->created = created;
    m->steps = m->w->steps;
    const uint64_t rows = until_met(m->w, m->most);
    m->rows = rows < m->rows_most ? rows : m->rows_most;
}

/* Rows leave before the table is full. */
static tn_status evict(const tn_memory_cap *m, tn_error *err)
{
    tn_table *table = m->w->shard.table;
    const uint64_t least =
        tn_table_evict_least(table) * (m->partitions.to - m->partitions.from) / 60 * 61;
    if (tn_table_evict_beyond(table, m->cap, m->partitions)) {
        return TN_OK;
    }
    return tn_fail(err, TN_E_CONFIG,
                   "embedding.on_full is evict, and %.1f MB are too few for that: rows leave "
                   "partition by partition, which takes at least %.1f MB of this model",
                   (double)m->cap * 1e-6, (double)least * 1e-6);
}

tn_status tn_memory_cap_init(tn_memory_cap *m, tn_worker *w, uint32_t sharers, tn_error *err)
{
    const uint64_t asked = w->plan->run->embedding.memory;
    const uint32_t *from = w->shares->owners.from;
    const uint32_t here = w->plan->run->cluster.here;
    *m = (tn_memory_cap){.sharers = sharers > 0 ? sharers : here > 0 ? here : 1};
    if (asked == TN_MEMORY_NONE) {
        return TN_OK;
    }
    m->w = w;
    tn_memory_limit_of("", &m->limit);
    tn_memory_use_of("", &m->use);
    TN_ASSERT(m->sharers > 0 && from[w->rank] <= from[w->rank + 1]);
    m->share = m->limit.resident / m->sharers;
    m->cap = asked;
    if (asked == TN_MEMORY_AUTO || asked == TN_UNSET_U64) {
        find_auto(m);
    }
    m->rows_most = until_met(w, w->plan->run->train.batch * keys_of_row(w->plan->schema));
    tn_memory_cap_begin(m);
    m->partitions = (tn_range){from[w->rank], from[w->rank + 1]};
    m->look_from = less(m->cap, tn_table_growth_most(w->shard.table, m->partitions, m->rows));
    m->evicts = w->plan->run->embedding.on_full == TN_FULL_EVICT;
    if (m->evicts) {
        return evict(m, err);
    }
    tn_table_set_limit(w->shard.table, m->cap);
    return TN_OK;
}

/* ---- whether there is room ---- */

/* Without anything that takes memory: it may be the last that is left. Looked at anew after a
 * while, or when the table, now of so many bytes, has taken an eighth of the room that was left. */
static bool is_near_limit(tn_memory_cap *m, uint64_t bytes)
{
    TN_ASSERT(m->w != NULL);
    const double now = tn_clock_s();
    const uint64_t grown = less(bytes, m->bytes);
    if (now < m->next_look && grown < less(m->share, m->use.resident) / 8) {
        return m->is_near;
    }
    m->next_look = now + look_s;
    m->bytes = bytes;
    tn_memory_use_of("", &m->use);
    tn_table *table = m->w->shard.table;
    const uint64_t resident =
        m->use.resident + tn_table_growth(table, m->partitions, m->rows) + SAVE_BYTES;
    const uint64_t soon = m->use.address_space + tn_table_next_extent(table) + SAVE_BYTES;
    m->is_near = (double)resident > (double)m->share * near_share || soon > m->limit.address_space;
    return m->is_near;
}

tn_room tn_memory_cap_look(tn_memory_cap *m)
{
    if (m->w == NULL) {
        return TN_ROOM_ENOUGH;
    }
    tn_table *table = m->w->shard.table;
    const uint64_t bytes = tn_table_bytes(table);
    const uint64_t aside = tn_table_aside(table);
    m->room = TN_ROOM_ENOUGH;
    expect_rows(m);
    if (bytes + aside >= m->look_from && !m->evicts) {
        const uint64_t then = bytes + tn_table_growth(table, m->partitions, m->rows);
        m->room = then > m->cap           ? TN_ROOM_NONE
                  : then + aside > m->cap ? TN_ROOM_AFTER_SAVE
                                          : TN_ROOM_ENOUGH;
    }
    if (m->room != TN_ROOM_NONE && is_near_limit(m, bytes)) {
        m->room = TN_ROOM_NEAR_LIMIT;
    }
    return m->room;
}

/* ---- words ---- */

static double mb(uint64_t bytes)
{
    return (double)bytes * 1e-6;
}

void tn_memory_cap_text(const tn_memory_cap *m, tn_text *out)
{
    if (m->w == NULL) {
        tn_text_adds(out, "no limit");
        return;
    }
    tn_text_addf(out, "%.1f MB", mb(m->cap));
    if (m->outside == 0) {
        return;
    }
    if (m->by_address) {
        tn_text_addf(out, ": 80 %% of %.1f MB of address space (ulimit -v)",
                     mb(m->limit.address_space));
    } else {
        tn_text_addf(out, ": 80 %% of %.1f MB (%s", mb(m->share), m->limit.by);
        if (m->sharers > 1) {
            tn_text_addf(out, ", shared by %u", m->sharers);
        }
        tn_text_addc(out, ')');
    }
    tn_text_addf(out, " less %.1f MB for all else", mb(m->outside));
}

typedef struct slot_line {
    const char *name;
    uint64_t rows;
    double bytes;
} slot_line;

static int by_bytes(const void *left, const void *right)
{
    const slot_line *a = left;
    const slot_line *b = right;
    return a->bytes > b->bytes ? -1 : a->bytes < b->bytes ? 1 : strcmp(a->name, b->name);
}

/* A line per group of slots, the largest first: rows with their part of indexes and spare room. */
static void tell_slots(const tn_memory_cap *m, tn_text *out)
{
    tn_table *table = m->w->shard.table;
    const tn_layout *layout = m->w->plan->layout;
    tn_arena *arena = tn_arena_new(1 << 12);
    slot_line *line = TN_NEW_ARRAY(arena, slot_line, layout->n_groups);
    tn_group_rows *rows = TN_NEW_ARRAY(arena, tn_group_rows, layout->n_groups);
    double sum = 0;
    tn_table_count_groups(table, rows);
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        line[g] = (slot_line){
            .name = layout->group[g].name, .rows = rows[g].rows, .bytes = (double)rows[g].bytes};
        sum += line[g].bytes;
    }
    qsort(line, layout->n_groups, sizeof *line, by_bytes);
    const double share = sum > 0 ? (double)tn_table_bytes(table) / sum : 0;
    uint32_t g = 0;
    for (; g < layout->n_groups && g < SLOTS_TOLD && line[g].rows > 0; g++) {
        tn_text_addf(out, "\n  %-16s %12llu rows %10.1f MB", line[g].name,
                     (unsigned long long)line[g].rows, line[g].bytes * share * 1e-6);
    }
    if (g == SLOTS_TOLD && layout->n_groups > g) {
        tn_text_addf(out, "\n  and %u more", layout->n_groups - g);
    }
    tn_arena_free(arena);
}

tn_status tn_memory_cap_fail(const tn_memory_cap *m, const char *saved, tn_error *err)
{
    tn_table *table = m->w->shard.table;
    const bool address = m->use.address_space + SAVE_BYTES > m->limit.address_space / 10 * 9;
    tn_text text = {0};
    if (m->room == TN_ROOM_NEAR_LIMIT) {
        tn_text_addf(&text,
                     "memory is nearly full at step %llu: this process has %.1f MB of %.1f MB "
                     "(%s), its rows are %.1f MB of that",
                     (unsigned long long)m->w->steps,
                     mb(address ? m->use.address_space : m->use.resident),
                     mb(address ? m->limit.address_space : m->share),
                     address ? "ulimit -v" : m->limit.by, mb(tn_table_bytes(table)));
    } else {
        tn_text_addf(&text,
                     "the table of rows is full at step %llu%s: %llu rows take %.1f MB, a step may "
                     "add %.1f MB, embedding.memory is ",
                     (unsigned long long)m->w->steps,
                     m->room == TN_ROOM_NONE ? "" : " in another process",
                     (unsigned long long)tn_table_rows(table), mb(tn_table_bytes(table)),
                     mb(tn_table_growth(table, m->partitions, m->rows)));
        tn_memory_cap_text(m, &text);
    }
    tn_text_addf(&text, "; saved as '%s'", saved);
    tell_slots(m, &text);
    tn_text_adds(&text,
                 "\nhint: the same command goes on with a larger embedding.memory, on a machine "
                 "(or in a cgroup) with more memory, or with more processes on more machines; "
                 "fewer bytes: a smaller embedding.dim, fewer slots, in a new run");
    tn_status status = tn_fail(err, TN_E_MEMORY, "%s", tn_text_str(&text));
    tn_text_done(&text);
    return status;
}
