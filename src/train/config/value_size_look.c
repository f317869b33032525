/* value_size_look.c - means of squares of x_j by slot, by key and by row, over the first rows. */
#include "train/config/value_size_look.h"

#include "base/core/arena.h"
#include "base/core/number.h"
#include "base/core/text.h"
#include "base/math/key.h"
#include "base/math/rng.h"
#include "config/tree.h"
#include "io/read/row_scan.h"
#include "io/rows/rows.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const tn_origin chosen_at = {.source = "chosen by the data"};

enum {
    LOOK_ROWS_OF_X = 10000,
    X_KEY_BITS = 10,
    X_KEYS = 1 << X_KEY_BITS,
    X_OFTEN = 10, /* with fewer values the size of a key's is not known */
    X_LARGE = 2,  /* powers of two of sizes from which on rates for values of 1 do not serve */
    X_SMALL = -4,
    X_APART = 3,       /* powers of two between sizes that one rate does not serve */
    X_POWER_MAX = 49,  /* within what the option takes */
    UNIT_VALUES = 128, /* mean of a row of length 1: with more, sizes make steps too large */
};

#define UNIT_SLACK 0.05 /* share of a row's squared length: values may have been rounded */
#define UNIT_SHARE 0.9  /* share of the rows with values; a text of one word has length 1 always */

typedef struct x_sums {
    double n, squares;
} x_sums;

/* Values of one key: an index of libsvm, or, where a slot has many keys, one of them. */
typedef struct x_of_key {
    uint64_t key;
    uint32_t slot;
    x_sums sums;
} x_of_key;

/* A slot of the look. */
typedef struct x_slot {
    x_sums passed;  /* sums over keys whose place in `key` is taken */
    bool is_mean;   /* its pool: a value counts for one of as many as the row has */
    uint32_t n_row; /* values in the row at hand */
} x_slot;

typedef struct x_look {
    x_slot *slot;
    double largest;
    bool has_mean;
    uint64_t rows;
    uint64_t values;
    uint64_t filled, unit; /* rows that have values; those of several whose squares sum to 1 */
    x_of_key key[X_KEYS];  /* by hash; n 0: free */
} x_look;

static void add_sums(x_sums *to, const x_sums *from)
{
    to->n += from->n;
    to->squares += from->squares;
}

/* Returns the square of the value. */
static double add_entry(x_look *l, const tn_entry *e)
{
    const x_slot *slot = &l->slot[e->slot];
    const double size = fabs((double)e->value) / (slot->is_mean ? slot->n_row : 1);
    const x_sums x = {1, size * size};
    x_of_key *k = &l->key[(e->key ^ e->slot) * TN_GAMMA >> (64 - X_KEY_BITS)];
    if (k->sums.n == 0) {
        k->key = e->key;
        k->slot = e->slot;
    }
    const bool is_its_place = k->key == e->key && k->slot == e->slot;
    add_sums(is_its_place ? &k->sums : &l->slot[e->slot].passed, &x);
    l->largest = fmax(l->largest, size);
    return x.squares;
}

/* The root of the mean square as a power of two: 3 of 8. */
static int power_of(const x_sums *x)
{
    const double power = x->squares > 0 ? round(log2(x->squares / x->n) / 2) : 0;
    return (int)fmin(fmax(power, -X_POWER_MAX), X_POWER_MAX);
}

/* Returns whether a key came often enough to know the size of its values. */
static bool is_frequent(const x_of_key *k, uint32_t slot)
{
    return k->slot == slot && k->sums.n >= X_OFTEN && k->sums.squares > 0;
}

/* The size that most values of a slot have. */
static int common_power(const x_look *l, uint32_t slot)
{
    double n[2 * X_POWER_MAX + 1] = {0};
    x_sums rest = l->slot[slot].passed;
    int most = X_POWER_MAX; /* the place of 1 */
    for (const x_of_key *k = l->key; k < l->key + X_KEYS; k++) {
        if (is_frequent(k, slot)) {
            n[power_of(&k->sums) + X_POWER_MAX] += k->sums.n;
        } else if (k->slot == slot) {
            add_sums(&rest, &k->sums);
        }
    }
    TN_ASSERT(rest.n >= 0 && rest.squares >= 0);
    n[power_of(&rest) + X_POWER_MAX] += rest.n;
    for (int i = 0; i <= 2 * X_POWER_MAX; i++) {
        most = n[i] > n[most] ? i : most;
    }
    return most - X_POWER_MAX;
}

static tn_tree *size_of(tn_arena *arena, int power)
{
    char text[TN_NUMBER_TEXT_MAX] = "";
    (void)tn_write_f64(text, exp2(power));
    return tn_tree_scalar(arena, text, chosen_at);
}

/* Adds `x: {others: 1, 3: 512}`, or nothing where all values are about 1. Returns how many sizes
 * there are. */
static uint32_t size_slot(const tn_value_size_in *in, const x_look *l, uint32_t slot, tn_tree *out)
{
    TN_ASSERT(slot < in->schema->n_slots);
    const tn_slot_spec *spec = in->schema->slot[slot];
    const int power = common_power(l, slot);
    const int others = power >= X_LARGE || power <= X_SMALL ? power : 0;
    tn_tree *keys = tn_tree_new(in->arena, TN_TREE_MAP, chosen_at);
    tn_tree_put(in->arena, keys, "others", size_of(in->arena, others));
    uint32_t n = 0;
    for (const x_of_key *k = l->key; k < l->key + X_KEYS; k++) {
        if (is_frequent(k, slot) && abs(power_of(&k->sums) - power) >= X_APART) {
            char sign[24];
            (void)snprintf(sign, sizeof sign, "%llu",
                           (unsigned long long)tn_sign_of(k->key, spec->salt));
            tn_tree_put(in->arena, keys, sign, size_of(in->arena, power_of(&k->sums)));
            n++;
        }
    }
    if (n > 0 || others != 0) {
        tn_tree_put(in->arena, out, spec->name, n > 0 ? keys : size_of(in->arena, others));
    }
    return n + (others != 0);
}

static tn_status add_x(void *ctx, const tn_row_scan_block *block, tn_error *err)
{
    x_look *l = ctx;
    const tn_rows *rows = block->rows;
    (void)err;
    for (uint32_t r = 0; r < rows->n; r++) {
        const uint32_t first = rows->row[r].first;
        const uint32_t end = rows->row[r].weight != 0 ? tn_rows_end_of(rows, r) : first;
        for (uint32_t i = first; i < end; i++) {
            l->slot[rows->entry[i].slot].n_row++;
        }
        double squares = 0;
        for (uint32_t i = first; i < end; i++) {
            squares += add_entry(l, &rows->entry[i]);
        }
        l->values += end - first;
        l->filled += end > first;
        l->unit += end > first + 1 && fabs(squares - 1) < UNIT_SLACK;
        for (uint32_t i = first; i < end; i++) {
            l->slot[rows->entry[i].slot].n_row = 0;
        }
    }
    l->rows += tn_rows_that_count(rows);
    return l->rows < LOOK_ROWS_OF_X ? TN_OK : TN_END;
}

/* Says which sizes were chosen, cut where there are many. */
static void say_sizes(const x_look *l, uint32_t n, const tn_tree *sizes, tn_text *said)
{
    enum { SHOWN = 60 };
    tn_text text = {0};
    tn_tree_print_flow(&text, sizes);
    const size_t size = text.size < 2 ? 0 : text.size - 2; /* without braces */
    tn_text_addf(said,
                 "%schosen for values that %s not about 1 (the largest is %.6g): "
                 "train.value_sizes={%.*s%s}; rows learn as if values were divided by %s",
                 said->size > 0 ? "\n" : "", l->has_mean ? "are, or count in a mean for," : "are",
                 l->largest, size > SHOWN ? SHOWN : (int)size, tn_text_str(&text) + 1,
                 size > SHOWN ? " .." : "", n == 1 ? "it" : "these sizes");
    tn_text_done(&text);
}

static tn_status pass_over(void *ctx, const char *text, tn_error *err)
{
    (void)ctx; /* training on the record reports it */
    (void)text;
    (void)err;
    return TN_OK;
}

bool tn_pool_is_mean(const tn_slot_opts *slot, const tn_tree *pool, bool attends)
{
    if (attends && slot->sequence != NULL) {
        return false;
    }
    const tn_tree *own = slot->pool != NULL ? slot->pool : pool;
    return own != NULL && own->kind == TN_TREE_SCALAR && strcmp(own->text, "mean") == 0;
}

/* Sets the sizes of *out where values are not about 1. */
static void find_sizes(const tn_value_size_in *in, const x_look *l, tn_value_size_found *out,
                       tn_text *said)
{
    tn_tree *sizes = tn_tree_new(in->arena, TN_TREE_MAP, chosen_at);
    uint32_t n = 0;
    for (uint32_t i = 0; i < in->schema->n_slots; i++) {
        n += size_slot(in, l, i, sizes);
    }
    if (n > 0) {
        out->sizes = sizes;
        say_sizes(l, n, sizes, said);
    }
}

tn_status tn_value_size_look(const tn_value_size_in *in, tn_value_size_found *out, tn_text *said,
                             tn_error *err)
{
    x_look *l = TN_NEW(in->arena, x_look);
    l->slot = TN_NEW_ARRAY(in->arena, x_slot, in->schema->n_slots);
    for (uint32_t i = 0; i < in->schema->n_slots; i++) {
        l->slot[i].is_mean = tn_pool_is_mean(in->schema->slot[i]->opts, in->pool, in->attends);
        l->has_mean |= l->slot[i].is_mean;
    }
    const tn_row_scan_visitor visitor = {.ctx = l, .block = add_x, .fault = pass_over};
    const tn_row_scan_in rows = {.schema = in->schema, .paths = in->paths};
    tn_row_scan_counts counts;
    const tn_status status = tn_row_scan_run(&rows, &visitor, &counts, err);
    if (status != TN_OK && status != TN_END) {
        return status;
    }
    out->unit_rows = l->filled > 0 && (double)l->unit >= UNIT_SHARE * (double)l->filled;
    if (!out->unit_rows || (in->of_unit_rows && l->values <= UNIT_VALUES * l->filled)) {
        find_sizes(in, l, out, said);
    }
    return TN_OK;
}
