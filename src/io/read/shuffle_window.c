/* shuffle_window.c - the rows that are held back to be permuted. */
#include "io/read/shuffle_window.h"

#include "base/core/alloc.h"
#include "base/math/rng.h"
#include "io/rows/rows_parsing.h"

void tn_shuffle_window_done(tn_shuffle_window *window)
{
    tn_free(window->pick);
    tn_free(window->order);
    *window = (tn_shuffle_window){.n = 0};
}

tn_status tn_shuffle_window_add(tn_shuffle_window *window, tn_work *work, uint32_t from,
                                uint32_t to, tn_error *err)
{
    void *pick = window->pick;
    bool grown = tn_rows_grow(&pick, window->n, to - from, sizeof(tn_pick), &window->capacity);
    window->pick = pick;
    if (!grown) {
        return tn_fail(err, TN_E_MEMORY, "no memory for a shuffle window");
    }
    for (uint32_t row = from; row < to; row++) {
        window->pick[window->n] = (tn_pick){.work = work, .row = row, .index = window->n};
        window->n++;
    }
    return TN_OK;
}

tn_status tn_shuffle_window_order(tn_shuffle_window *window, bool shuffle, uint64_t stream,
                                  uint64_t first, tn_error *err)
{
    void *order = window->order;
    bool grown = tn_rows_grow(&order, 0, window->n, sizeof(uint32_t), &window->order_capacity);
    window->order = order;
    if (!grown) {
        return tn_fail(err, TN_E_MEMORY, "no memory for a shuffle window");
    }
    for (uint32_t i = 0; i < window->n; i++) {
        window->order[i] = i;
    }
    if (shuffle) { /* draw i of the shifted stream is draw first + i of the stream itself */
        tn_shuffle(stream + first * TN_GAMMA, window->order, window->n);
    }
    return TN_OK;
}
