/* op_embed_sequence.c - the rows of a sequence's keys, one matrix row for each position.
 *
 *   y_p  = x_p v_p        of each slot, side by side; p: position in the batch
 *   dv_p += x_p dy_p
 *
 * Lists of the slots have one length in each example, so entry p of every bag is position p of y:
 * no offset is looked at. Backward adds to a row by slot, then by position.
 */
#include "nn/embed/embedlist.h"

#include "base/core/compiler.h"

static const tn_embed_list *list_of(const tn_node *y)
{
    return y->attr;
}

static tn_positions positions_of(const tn_node *y)
{
    const tn_embed_list *e = list_of(y);
    return (tn_positions){.slot = e->slot[0].slot, .max_len = e->max_len};
}

static tn_shape sequence_shape(const tn_node *y)
{
    const tn_embed_list *e = list_of(y);
    return (tn_shape){tn_max_rows(y), e->at[e->n]};
}

TN_ALWAYS_INLINE void take_vectors(const tn_node *y, uint32_t i, tn_range positions,
                                   const uint32_t dim)
{
    const tn_embed_slot *slot = &list_of(y)->slot[i];
    const tn_sparse *sparse = tn_feed_of(y)->sparse;
    const tn_bag *bag = &sparse->bag[slot->slot];
    const tn_real *table = sparse->rows + slot->segment->at;
    for (uint32_t p = positions.from; p < positions.to; p++) {
        const tn_real *v = table + bag->index[p];
        const tn_real x = tn_weight_of(bag, p);
        tn_real *out = tn_val_row(y, p) + list_of(y)->at[i];
        for (uint32_t c = 0; c < dim; c++) {
            out[c] = x * v[c];
        }
    }
}

TN_HOT static void sequence_take(const tn_node *y, uint32_t i, tn_range positions)
{
    TN_UNROLLED(take_vectors, list_of(y)->slot[i].segment->dim, y, i, positions);
}

/* Lists of several lengths are a fault of whoever made the batch (io/rows/list_lengths.h). */
static void check_lengths(const tn_node *y)
{
    const tn_embed_list *e = list_of(y);
    const tn_graph_feed *feed = tn_feed_of(y);
    for (uint32_t i = 1; i < e->n; i++) {
        TN_ASSERT(feed->sparse->bag[e->slot[i].slot].offset[feed->rows] ==
                  feed->sparse->bag[e->slot[0].slot].offset[feed->rows]);
    }
}

static void sequence_forward(tn_node *y, tn_range positions)
{
    check_lengths(y);
    for (uint32_t i = 0; i < list_of(y)->n; i++) {
        sequence_take(y, i, positions);
    }
}

/* Adds the shares of some positions of a slot. */
TN_ALWAYS_INLINE void add_vectors(const tn_node *y, const tn_slot_use *use, uint32_t slot,
                                  const uint32_t *position, uint32_t n, const uint32_t dim)
{
    const tn_sparse *sparse = tn_feed_of(y)->sparse;
    const tn_bag *bag = &sparse->bag[slot];
    for (uint32_t i = 0; i < n; i++) {
        const tn_real x = tn_weight_of(bag, position[i]);
        const tn_real *dy = tn_grad_row(y, position[i]) + use->col;
        tn_real *dv = sparse->grads + bag->index[position[i]] + use->segment->at;
        for (uint32_t c = 0; c < dim; c++) {
            dv[c] += x * dy[c];
        }
    }
}

/* Positions of rows of other blocks are passed over without a branch, as those of other inputs are
 * (embedlist.h). */
TN_ALWAYS_INLINE void add_block(const tn_node *y, const tn_slot_use *use, const tn_row_block *b,
                                uint32_t slot, const uint32_t dim)
{
    const uint32_t *index = tn_feed_of(y)->sparse->bag[slot].index;
    const uint32_t size = b->to - b->from;
    uint32_t some[TN_AT_ONCE];
    uint32_t n = 0;
    for (uint32_t p = 0; p < y->shape.rows; p++) {
        some[n] = p;
        n += index[p] - b->from < size;
        if (n == TN_AT_ONCE) {
            add_vectors(y, use, slot, some, n, dim);
            n = 0;
        }
    }
    add_vectors(y, use, slot, some, n, dim);
}

TN_HOT static void sequence_add(const tn_node *y, const tn_slot_use *use, const tn_row_block *b,
                                uint32_t slot)
{
    TN_UNROLLED(add_block, use->segment->dim, y, use, b, slot);
}

static void sequence_backward_rows(tn_node *y, const tn_row_block *b)
{
    for (uint32_t i = 0; i < b->n_slots; i++) {
        const tn_slot_use *use = tn_use_of(list_of(y), b->slot[i]);
        if (use->i != TN_NO_SLOT) {
            sequence_add(y, use, b, b->slot[i]);
        }
    }
}

static tn_node *sequence_example(tn_graph *g)
{
    static const tn_segment deep = {.name = "deep", .at = 1, .dim = 3};
    static const tn_embed_slot slots[] = {{.name = "b", .slot = 1, .segment = &deep}};
    return tn_embed_sequence(g, NULL, slots, 1, 3);
}

const tn_op tn_op_embed_sequence = {
    .name = "embed_sequence",
    .formula = "y = x_p v_p for each position, slots side by side",
    .n_in = 0,
    .attr_size = sizeof(tn_embed_list),
    .positions = positions_of,
    .shape = sequence_shape,
    .forward = sequence_forward,
    .sparse.backward_rows = sequence_backward_rows,
    .sparse.embeds = true,
    .example = {.build = sequence_example},
};
