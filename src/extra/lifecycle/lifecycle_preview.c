/* lifecycle_preview.c - a checkpoint without the rows that rules let go: counted, and evaluated. */
#include "extra/lifecycle/lifecycle_preview.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/keys/keyset.h"
#include "ps/optim/rule.h"
#include "ps/table/lifecycle.h"
#include "ps/table/table.h"
#include "train/checkpoint/checkpoint.h"
#include "train/config/days.h"
#include "train/config/run.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { VALUES = 4, CELL = 26, NAME = 20 };

typedef enum rule { THRESHOLD, TTL_DAYS, SCORE_BELOW, MEMORY, RULES } rule;

/* Each lets rows go that the one before has kept. Of memory: shares of what is taken now. */
static const struct {
    const char *name;
    double value[VALUES];
} usual[RULES] = {
    [THRESHOLD] = {"threshold", {2, 3, 5, 10}},
    [TTL_DAYS] = {"ttl_days", {30, 7, 3, 1}},
    [SCORE_BELOW] = {"score_below", {0.2, 0.5, 1, 2}},
    [MEMORY] = {"memory", {0.75, 0.5, 0.25, 0.125}},
};

/* Counts of rows that are kept; the last group is the sum of all. */
typedef struct column {
    char head[CELL];
    tn_group_rows *rows;
    double *shows; /* occurrences of their keys, as of the last one of each */
    double auc;
} column;

/* A row in the order in which a full table keeps them. */
typedef struct scored_row {
    double score;
    uint32_t bytes;
} scored_row;

typedef struct preview {
    tn_worker *w;
    const tn_eval_request *request;
    tn_text path;
    tn_text *out;
    tn_lifecycle *life; /* rule of each group that the next look applies */
    uint32_t groups;
    uint64_t table_bytes; /* rows of the checkpoint as it is, with indexes */
    column all, kept[VALUES];
} preview;

/* ---- rows ---- */

static tn_status walk(const preview *k, tn_row_visit *visit, void *arg, tn_error *err)
{
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        TN_TRY(tn_table_walk(k->w->shard.table, p, visit, arg, err));
    }
    return TN_OK;
}

static tn_status add_shows(void *arg, const tn_row_view *row, tn_error *err)
{
    (void)err;
    ((double *)arg)[row->group] += row->show;
    return TN_OK;
}

/* Rows leave by k->life; what is left is counted and evaluated. */
static tn_status look(preview *k, column *c, tn_error *err)
{
    tn_worker *w = k->w;
    tn_evaluation result;
    tn_group_rows *sum = &c->rows[k->groups];
    TN_ASSERT(c->rows != NULL && c->shows != NULL);
    tn_row_options options = *w->plan->rules->rows;
    options.of[TN_POLICY_expiry] = k->life;
    tn_table_set_options(w->shard.table, &options);
    TN_TRY(tn_table_sweep(w->shard.table, w->team, w->loaded_day, c->rows, err));
    memset(c->shows, 0, (k->groups + 1) * sizeof *c->shows);
    TN_TRY(walk(k, add_shows, c->shows, err));
    *sum = (tn_group_rows){0};
    for (uint32_t g = 0; g < k->groups; g++) {
        sum->rows += c->rows[g].rows;
        sum->bytes += c->rows[g].bytes;
        c->shows[k->groups] += c->shows[g];
    }
    if (k->request->paths != NULL) {
        TN_TRY(tn_evaluate(w, k->request, &result, err));
        c->auc = tn_metrics_get(result.metrics, "auc");
        tn_evaluation_done(&result);
    }
    return TN_OK;
}

/* ---- rules ---- */

/* One rule alone, with the slot's own decay and weights; RULES: none. */
static void set_rule(preview *k, rule r, double value)
{
    for (uint32_t g = 0; g < k->groups; g++) {
        tn_lifecycle life = *tn_lifecycle_of(k->w->plan->rules->rows, g);
        life.ttl_days = life.score_below = life.show_below = life.norm_below = (double)NAN;
        life.combine = 0;
        life.decay = r == THRESHOLD ? 1 : life.decay; /* counts what came, whenever it came */
        double *const bound[] = {&life.show_below, &life.ttl_days, &life.score_below,
                                 &life.score_below};
        if (r < RULES) {
            *bound[r] = value;
        }
        k->life[g] = life;
    }
}

typedef struct score_list {
    const preview *k;
    scored_row *row;
    uint64_t n;
    bool waits; /* some rows do */
} score_list;

static tn_status add_score(void *arg, const tn_row_view *row, tn_error *err)
{
    (void)err;
    score_list *x = arg;
    const tn_worker *w = x->k->w;
    const uint16_t waits = tn_record_of(w->plan->layout, row->group)->waits;
    TN_ASSERT(x->n < tn_table_rows(w->shard.table));
    if ((waits & ~row->present) != 0) {
        x->waits = true;
        return TN_OK;
    }
    x->row[x->n++] = (scored_row){
        .score = tn_score_of(tn_lifecycle_of(w->plan->rules->rows, row->group), row, w->loaded_day),
        .bytes = tn_table_stride(w->shard.table, row->group),
    };
    return TN_OK;
}

static int by_score(const void *a, const void *b)
{
    const scored_row *x = a;
    const scored_row *y = b;
    return (x->score < y->score) - (x->score > y->score);
}

/* The score below which rows leave, so that the others take `cap` with their part of indexes; where
 * some wait, so that whole rows take what is theirs of it. Those that score the same stay or leave
 * together. */
static tn_status find_bound(const preview *k, double cap, double *bound, tn_error *err)
{
    score_list x = {.k = k};
    double left = cap * (double)k->all.rows[k->groups].bytes / (double)k->table_bytes;
    TN_TRY(TN_ALLOC(x.row, tn_table_rows(k->w->shard.table) + 1, "scores of rows", err));
    const tn_status status = walk(k, add_score, &x, err);
    qsort(x.row, x.n, sizeof *x.row, by_score);
    left -= x.waits ? left / TN_TABLE_WAIT_SHARE : 0;
    *bound = -(double)INFINITY;
    for (uint64_t i = 0; i < x.n && *bound < 0; i++) {
        left -= x.row[i].bytes;
        *bound = left < 0 ? nextafter(x.row[i].score, (double)INFINITY) : *bound;
    }
    tn_free(x.row);
    return status;
}

static tn_status look_at_cap(preview *k, double cap, column *c, tn_error *err)
{
    double bound;
    TN_TRY(find_bound(k, cap, &bound, err));
    set_rule(k, SCORE_BELOW, bound);
    return look(k, c, err);
}

/* ---- tables ---- */

static bool counts_decay(const preview *k)
{
    for (uint32_t g = 0; g < k->groups; g++) {
        if (tn_lifecycle_of(k->w->plan->rules->rows, g)->decay < 1) {
            return true;
        }
    }
    return false;
}

static void tell(preview *k, const char *name, const column *c, uint32_t n)
{
    const tn_share_group *group = k->w->plan->layout->group;
    tn_text_addf(k->out, "\n%-*s", NAME, name);
    for (uint32_t i = 0; i < n; i++) {
        tn_text_addf(k->out, "  %*s", CELL, c[i].head);
    }
    for (uint32_t g = 0; g <= k->groups; g++) {
        const double shows = k->all.shows[g];
        tn_text_addf(k->out, "\n%-*s", NAME, g < k->groups ? group[g].name : "all");
        for (uint32_t i = 0; i < n; i++) {
            tn_text_addf(k->out, "  %10llu %9.1f %5.1f", (unsigned long long)c[i].rows[g].rows,
                         (double)c[i].rows[g].bytes / 1e6,
                         shows > 0 ? 100 * c[i].shows[g] / shows : 0);
        }
    }
    if (k->request->paths != NULL) {
        tn_text_addf(k->out, "\n%-*s", NAME, "auc");
        for (uint32_t i = 0; i < n; i++) {
            tn_text_addf(k->out, "  %*.6f", CELL, fabs(c[i].auc));
        }
    }
    tn_text_addc(k->out, '\n');
}

static tn_status load(preview *k, tn_error *err)
{
    tn_saved saved = {0};
    return tn_checkpoint_load(tn_text_str(&k->path), k->w, &saved, err);
}

static tn_status tell_rule(preview *k, rule r, tn_error *err)
{
    TN_TRY(load(k, err));
    for (uint32_t i = 0; i < VALUES; i++) {
        column *c = &k->kept[i];
        const double value = usual[r].value[i];
        (void)snprintf(c->head, CELL, "%g", value);
        if (r == MEMORY) {
            const double cap = value * (double)k->table_bytes;
            (void)snprintf(c->head, CELL, "%.1f MB", cap / 1e6);
            TN_TRY(look_at_cap(k, cap, c, err));
        } else {
            set_rule(k, r, value);
            TN_TRY(look(k, c, err));
        }
    }
    tell(k, usual[r].name, k->kept, VALUES);
    return TN_OK;
}

/* The next sweep, by all bounds of the configuration, then its cap. */
static tn_status tell_configured(preview *k, tn_error *err)
{
    const uint64_t memory = k->w->plan->run->embedding.memory;
    uint32_t n = 0;
    bool expires = false;
    TN_TRY(load(k, err));
    for (uint32_t g = 0; g < k->groups; g++) {
        k->life[g] = *tn_lifecycle_of(k->w->plan->rules->rows, g);
        expires = expires || tn_lifecycle_expires(&k->life[g]);
    }
    if (expires) {
        (void)snprintf(k->kept[n].head, CELL, "expiry");
        TN_TRY(look(k, &k->kept[n++], err));
    }
    if (memory != TN_MEMORY_AUTO && memory != TN_MEMORY_NONE) {
        (void)snprintf(k->kept[n].head, CELL, "%smemory %.1f MB", expires ? "then " : "",
                       (double)memory / 1e6);
        TN_TRY(look_at_cap(k, (double)memory, &k->kept[n++], err));
    }
    if (n > 0) {
        tell(k, "configured", k->kept, n);
    }
    return TN_OK;
}

static tn_status tell_all(preview *k, const char *path, tn_error *err)
{
    char day[TN_DAY_TEXT];
    tn_saved saved = {0};
    TN_TRY(tn_checkpoint_load(path, k->w, &saved, err));
    tn_saved_path(path, &saved, &k->path); /* from now on this one: a run may write more */
    TN_TRY(tn_text_check(&k->path, "a path", err));
    k->table_bytes = tn_table_bytes(k->w->shard.table);
    tn_day_text(k->w->loaded_day, day);
    tn_text_addf(k->out, "%s, day %s, table %.1f MB with indexes\n", tn_text_str(&k->path), day,
                 (double)k->table_bytes / 1e6);
    tn_text_adds(k->out, "columns: rows, MB of rows, % of all occurrences\n");
    if (counts_decay(k)) {
        tn_text_adds(k->out, "counts decay (embedding.decay): occurrences, which a threshold is "
                             "about, are what is left of them\n");
    }
    if (k->request->paths == NULL) {
        tn_text_adds(k->out, "nothing to evaluate: neither data.valid nor data.test is set; "
                             "'--data PATH' names it\n");
    }
    set_rule(k, RULES, 0);
    TN_TRY(look(k, &k->all, err));
    tell(k, "model", &k->all, 1);
    for (rule r = 0; r < RULES; r++) {
        TN_TRY(tell_rule(k, r, err));
    }
    return tell_configured(k, err);
}

static column new_column(tn_arena *arena, uint32_t n, const char *head)
{
    column c = {.rows = TN_NEW_ARRAY(arena, tn_group_rows, n),
                .shows = TN_NEW_ARRAY(arena, double, n)};
    (void)snprintf(c.head, CELL, "%s", head);
    return c;
}

tn_status tn_lifecycle_preview(tn_worker *w, const char *path, const tn_eval_request *request,
                               tn_text *out, tn_error *err)
{
    tn_arena *arena = tn_arena_new(1 << 12);
    const uint32_t groups = w->plan->layout->n_groups;
    TN_ASSERT(path != NULL && request != NULL && out != NULL);
    preview k = {.w = w, .request = request, .out = out, .groups = groups};
    k.life = TN_NEW_ARRAY(arena, tn_lifecycle, groups + 1);
    k.all = new_column(arena, groups + 1, "as it is");
    for (uint32_t i = 0; i < VALUES; i++) {
        k.kept[i] = new_column(arena, groups + 1, "");
    }
    const tn_status status = tell_all(&k, path, err);
    tn_table_set_options(w->shard.table, w->plan->rules->rows);
    tn_text_done(&k.path);
    tn_arena_free(arena);
    return status;
}
