/* space.c - reads ranges of values, and draws from them. */
#include "extra/tune/space.h"

#include "base/codec/json.h"
#include "base/core/arena.h"
#include "base/core/number.h"
#include "base/math/rng.h"
#include "config/diag.h"
#include "config/tree.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS = 4 }; /* drawn numbers have so many, which people read and copy */

/* ---- reading ---- */

/* Options that say where a run lives, what judges it and what leaves it: no trial changes them. */
static const char *const fixed[] = {"run.",  "eval.",    "checkpoint.", "log.",       "export.",
                                    "tune.", "cluster.", "data.valid",  "data.test.", NULL};

static bool is_fixed(const char *key)
{
    uint32_t i = 0;
    while (fixed[i] != NULL && strncmp(key, fixed[i], strlen(fixed[i])) != 0) {
        i++;
    }
    return fixed[i] != NULL || strchr(key, '.') == NULL;
}

static const char *flow_text(const tn_tree *tree, tn_arena *arena)
{
    tn_text text = {0};
    tn_tree_print_flow(&text, tree);
    const char *copy = tn_tree_text(arena, tn_text_str(&text), text.size);
    tn_text_done(&text);
    return copy;
}

static bool read_list(tn_space_range *r, const tn_tree *tree, tn_arena *arena)
{
    const char **item = TN_NEW_ARRAY(arena, const char *, tn_tree_count(tree));
    for (const tn_tree *at = tree->first; at != NULL; at = at->next) {
        item[r->values.n++] = flow_text(at, arena);
    }
    r->values.item = item;
    return r->values.n > 0;
}

/* Reads [low, high]. */
static bool read_bounds(tn_space_range *r, const tn_tree *pair)
{
    double *const bound[] = {&r->low, &r->high};
    const tn_tree *at = pair->first;
    bool good = pair->kind == TN_TREE_LIST && tn_tree_count(pair) == 2;
    for (uint32_t i = 0; i < 2 && good; i++, at = at->next) {
        good = at->kind == TN_TREE_SCALAR &&
               tn_read_f64(at->text, strlen(at->text), bound[i]) == TN_NUM_OK;
    }
    const bool whole =
        r->kind != TN_RANGE_INT || (r->low == floor(r->low) && r->high == floor(r->high) &&
                                    fabs(r->low) < 0x1p53 && fabs(r->high) < 0x1p53);
    return good && whole && r->low < r->high && (!r->log || r->low > 0);
}

/* Reads {log: [..]}, {range: [..]} or {int: [..], log: true}. */
static bool read_map(tn_space_range *r, const tn_tree *tree)
{
    const tn_tree *whole = tn_tree_get(tree, "int");
    const tn_tree *real = tn_tree_get(tree, "range");
    const tn_tree *log = tn_tree_get(tree, "log");
    const bool flag = log != NULL && log->kind == TN_TREE_SCALAR &&
                      (strcmp(log->text, "true") == 0 || strcmp(log->text, "false") == 0);
    const tn_tree *pair = whole != NULL ? whole : real != NULL ? real : flag ? NULL : log;
    const uint32_t known = (pair != NULL) + (flag ? 1U : 0U);
    r->kind = whole != NULL ? TN_RANGE_INT : TN_RANGE_REAL;
    r->log = flag ? strcmp(log->text, "true") == 0 : pair == log;
    return pair != NULL && tn_tree_count(tree) == known && read_bounds(r, pair);
}

void tn_space_read(tn_space *out, const tn_tree *tree, const tn_binder *b)
{
    *out = (tn_space){0};
    if (tree->kind != TN_TREE_MAP || tree->first == NULL) {
        tn_diag_error(b->diag, &tree->at, "tune.space is not a map of options");
        tn_diag_hint(b->diag,
                     "as {train.optimizer.lr: {log: [1e-4, 1e-2]}, embedding.dim: [8, 16]}");
        return;
    }
    for (const tn_tree *at = tree->first; at != NULL; at = at->next) {
        tn_space_range r = {.key = at->key};
        if (out->n == TN_RANGES_MAX) {
            tn_diag_error(b->diag, &at->key_at, "tune.space has more than %d options",
                          (int)TN_RANGES_MAX);
            return;
        }
        if (is_fixed(at->key)) {
            tn_diag_error(b->diag, &at->key_at, "'%s' is no option that trials may change",
                          at->key);
            tn_diag_hint(b->diag, "options of train, model, embedding, slots, loss, tasks and data "
                                  "may be; as train.optimizer.lr");
        } else if (at->kind == TN_TREE_LIST ? !read_list(&r, at, b->arena) : !read_map(&r, at)) {
            tn_diag_error(b->diag, &at->at, "'%s' has no values to try", at->key);
            tn_diag_hint(b->diag, "a list [8, 16], {log: [low, high]}, {range: [low, high]} or "
                                  "{int: [low, high]}, with log: true for its logarithm; low is "
                                  "below high, with log above 0");
        } else {
            out->range[out->n++] = r;
        }
    }
}

/* ---- values ---- */

/* Returns "key=value". */
static const char *assignment(tn_arena *arena, const char *key, const char *value)
{
    const size_t size = strlen(key) + 1 + strlen(value) + 1;
    char *text = TN_NEW_ARRAY(arena, char, size);
    (void)snprintf(text, size, "%s=%s", key, value);
    return text;
}

/* Returns the text of the value at `u` of 0 .. 1 between the bounds. */
static const char *draw_number(const tn_space_range *r, double u, tn_arena *arena)
{
    char text[TN_NUMBER_TEXT_MAX];
    const double end = r->kind == TN_RANGE_INT ? r->high + 1 : r->high;
    double x =
        r->log ? exp(log(r->low) + u * (log(end) - log(r->low))) : r->low + u * (end - r->low);
    if (r->kind == TN_RANGE_INT) {
        (void)snprintf(text, sizeof text, "%.0f", fmin(floor(x), r->high));
    } else {
        (void)snprintf(text, sizeof text, "%.*g", (int)DIGITS, x);
        (void)tn_read_f64(text, strlen(text), &x);
        (void)tn_write_f64(text, fmax(r->low, fmin(x, r->high)));
    }
    return tn_tree_text(arena, text, strlen(text));
}

tn_strs tn_space_draw(const tn_space *s, uint64_t seed, uint32_t trial, tn_arena *arena)
{
    const char **item = TN_NEW_ARRAY(arena, const char *, (size_t)s->n + 1);
    for (uint32_t i = 0; i < s->n && trial > 0; i++) {
        const tn_space_range *r = &s->range[i];
        const uint64_t stream = tn_stream2(seed, TN_RNG_TUNE, tn_name64(r->key));
        const double u = tn_unit(tn_draw(stream, trial));
        const uint32_t place = (uint32_t)(u * r->values.n);
        item[i] =
            assignment(arena, r->key,
                       r->kind == TN_RANGE_LIST ? r->values.item[place] : draw_number(r, u, arena));
    }
    return (tn_strs){trial > 0 ? s->n : 0, item};
}

uint32_t tn_space_combinations(const tn_space *s)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < s->n && n <= TN_TRIALS_MAX; i++) {
        n *= s->range[i].kind == TN_RANGE_LIST ? s->range[i].values.n : 0;
    }
    return n <= TN_TRIALS_MAX ? (uint32_t)n : TN_TRIALS_MAX + 1;
}

tn_strs tn_space_combination(const tn_space *s, uint32_t trial, tn_arena *arena)
{
    const char **item = TN_NEW_ARRAY(arena, const char *, (size_t)s->n + 1);
    for (uint32_t i = s->n; i-- > 0;) {
        const tn_strs *values = &s->range[i].values;
        item[i] = assignment(arena, s->range[i].key, values->item[trial % values->n]);
        trial /= values->n;
    }
    return (tn_strs){s->n, item};
}

static void range_json(const tn_space_range *r, tn_text *out)
{
    static const char *const names[] = {"CategoricalDistribution", "FloatDistribution",
                                        "IntDistribution"};
    tn_json_open_key(out, r->key, '{');
    tn_json_str(out, "name", names[r->kind]);
    tn_json_open_key(out, "attributes", '{');
    if (r->kind == TN_RANGE_LIST) {
        tn_json_open_key(out, "choices", '[');
        for (uint32_t i = 0; i < r->values.n; i++) {
            tn_json_str(out, NULL, r->values.item[i]);
        }
        tn_json_close(out, ']');
    } else {
        tn_json_bool(out, "log", r->log);
        tn_json_f64(out, "low", r->low);
        tn_json_f64(out, "high", r->high);
        tn_json_raw(out, "step", r->kind == TN_RANGE_INT ? "1" : "null");
    }
    tn_json_close(out, '}');
    tn_json_close(out, '}');
}

void tn_space_json(const tn_space *s, tn_text *out)
{
    tn_json_open(out, '{');
    for (uint32_t i = 0; i < s->n; i++) {
        range_json(&s->range[i], out);
    }
    tn_json_close(out, '}');
    tn_text_addc(out, '\n');
}
