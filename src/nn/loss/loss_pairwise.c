/* loss_pairwise.c - the loss of pairs of rows of one group (BPR, Rendle 2009), from the feed's
 * labels, groups and row weights.
 *
 * A group's pairs are its rows i, j with y_i > y_j; a pair weighs w_i w_j. The group's loss is the
 * mean over its pairs,
 *
 *     L_g = sum w_i w_j sp(z_j - z_i) / N_g,   N_g = sum w_i w_j
 *     dL_g / dz_i = -sum_j w_i w_j sigmoid(z_j - z_i) / N_g, and the same with + for z_j
 *
 * and each of its rows has it as its own: a group counts as much as its rows weigh, as in GAUC.
 * Rows of a group without a pair, and rows without a group (TN_NO_GROUP) lose nothing. One thread
 * does it all in one order: a group of n rows costs n^2 / 2 steps.
 */
#include "base/math/key.h"
#include "nn/graph/graph.h"
#include "nn/loss/loss.h"
#include "nn/vec/vecmath.h"

#define NOWHERE UINT32_MAX

/* A batch's groups: rows of one are linked in ascending order, from the first to NOWHERE. */
typedef struct chains {
    double *slope;   /* per row: dL_g / dz */
    double *seed;    /* per group, at its first row: the sum of dL / dl of its rows */
    uint32_t *first; /* per row: the first row of its group; NOWHERE: it has none */
    uint32_t *next;  /* per row: the next row of its group */
    uint32_t *last;  /* per group, at its first row: its last row */
    uint32_t *table; /* places: 1 + the first row of a group, or 0 */
    uint32_t n_places;
} chains;

static uint32_t places_for(uint32_t rows)
{
    uint32_t n = 2;
    while (n < 2 * (uint64_t)rows) {
        n *= 2;
    }
    return n;
}

static size_t pairwise_state_bytes(const tn_node *l)
{
    const size_t rows = tn_max_rows(l);
    return rows * (2 * sizeof(double) + 3 * sizeof(uint32_t)) +
           places_for((uint32_t)rows) * sizeof(uint32_t);
}

static chains chains_of(const tn_node *l)
{
    const uint32_t rows = tn_max_rows(l);
    chains c = {.slope = l->state, .n_places = places_for(rows)};
    c.seed = c.slope + rows;
    c.first = (uint32_t *)(void *)(c.seed + rows);
    c.next = c.first + rows;
    c.last = c.next + rows;
    c.table = c.last + rows;
    return c;
}

/* Returns the first row of the group of `row`, which may be itself. */
static uint32_t find_first(const chains *c, const tn_graph_feed *feed, uint32_t row)
{
    const uint64_t group = feed->group[row];
    uint32_t at = (uint32_t)tn_mix(group) & (c->n_places - 1);
    while (c->table[at] != 0 && feed->group[c->table[at] - 1] != group) {
        at = (at + 1) & (c->n_places - 1);
    }
    if (c->table[at] == 0) {
        c->table[at] = row + 1;
    }
    return c->table[at] - 1;
}

static void link_rows(const chains *c, const tn_graph_feed *feed)
{
    memset(c->table, 0, c->n_places * sizeof *c->table);
    for (uint32_t r = 0; r < feed->rows; r++) {
        const bool alone = feed->group == NULL || feed->group[r] == TN_NO_GROUP;
        const uint32_t first = alone ? NOWHERE : find_first(c, feed, r);
        c->slope[r] = 0;
        c->next[r] = NOWHERE;
        c->first[r] = first;
        if (first != NOWHERE && first != r) {
            c->next[c->last[first]] = r;
        }
        if (first != NOWHERE) {
            c->last[first] = r;
        }
    }
}

typedef struct pair_sums {
    double loss, weight;
} pair_sums;

/* Adds row i with all rows of its group after it. */
static void add_pairs(const tn_node *l, const chains *c, uint32_t i, pair_sums *sums)
{
    const tn_graph_feed *feed = tn_feed_of(l);
    const tn_node *z = l->in[0];
    for (uint32_t j = c->next[i]; j != NOWHERE; j = c->next[j]) {
        if (feed->label[i] == feed->label[j]) {
            continue;
        }
        const bool ahead = feed->label[i] > feed->label[j];
        const tn_real gap = *tn_val_row(z, ahead ? i : j) - *tn_val_row(z, ahead ? j : i);
        const double w =
            feed->weight != NULL ? (double)feed->weight[i] * (double)feed->weight[j] : 1;
        const double pull = w * (double)tn_sigmoid_of(-gap);
        sums->weight += w;
        sums->loss += w * (double)tn_softplus_of(-gap);
        c->slope[ahead ? i : j] -= pull;
        c->slope[ahead ? j : i] += pull;
    }
}

static void pairwise_forward_cols(tn_node *l, tn_range cols)
{
    (void)cols;
    const tn_graph_feed *feed = tn_feed_of(l);
    const chains c = chains_of(l);
    for (uint32_t r = 0; r < feed->rows; r++) {
        *tn_val_row(l, r) = 0;
    }
    if (feed->label == NULL) {
        return;
    }
    link_rows(&c, feed);
    for (uint32_t first = 0; first < feed->rows; first++) {
        pair_sums sums = {0};
        for (uint32_t i = c.first[first] == first ? first : NOWHERE; i != NOWHERE; i = c.next[i]) {
            add_pairs(l, &c, i, &sums);
        }
        for (uint32_t i = sums.weight > 0 ? first : NOWHERE; i != NOWHERE; i = c.next[i]) {
            c.slope[i] /= sums.weight;
            *tn_val_row(l, i) = (tn_real)(sums.loss / sums.weight);
        }
    }
}

/* Adds up the seeds of a group's rows: its loss is that of each of them. */
static void pairwise_backward_cols(tn_node *l, tn_range cols)
{
    (void)cols;
    const tn_graph_feed *feed = tn_feed_of(l);
    const chains c = chains_of(l);
    TN_ASSERT(feed->label != NULL);
    memset(c.seed, 0, feed->rows * sizeof *c.seed);
    for (uint32_t r = 0; r < feed->rows; r++) {
        if (c.first[r] != NOWHERE) {
            c.seed[c.first[r]] += (double)*tn_grad_row(l, r);
        }
    }
}

static void pairwise_backward(tn_node *l, tn_range rows)
{
    const chains c = chains_of(l);
    const tn_node *z = l->in[0];
    for (size_t r = rows.from; r < rows.to && z->grad != NULL; r++) {
        const double seed = c.first[r] != NOWHERE ? c.seed[c.first[r]] : 0;
        const tn_real dz = (tn_real)(seed * c.slope[r]);
        tn_real *at = tn_grad_row(z, r);
        *at = tn_adds(l, z) ? *at + dz : dz;
    }
}

const tn_loss tn_loss_pairwise = {
    TN_LOSS_MEMBERS(
        pairwise, "of two rows of a batch with one data.group the larger label shall score higher"),
    .op.cols[TN_FORWARD_COLS] = pairwise_forward_cols,
    .op.cols[TN_BACKWARD_COLS] = pairwise_backward_cols,
    .op.backward = pairwise_backward,
    .op.state_bytes = pairwise_state_bytes,
    .op.formula = "l = mean of sp(z_j - z_i) over the pairs y_i > y_j of the row's group",
    .op.flops_each = 1000,
    .target = TN_TARGET_ORDER,
    .watched = "valid.pairwise_accuracy",
    .defaults = "eval: {metrics: [pairwise_accuracy, gauc, gauc_skipped]}",
};
