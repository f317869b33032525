/* histories.c - categories that a user likes, a history of them, and an item that is looked at. */
#include "extra/synth/histories.h"

#include "base/math/rng.h"

#include <stdbool.h>

enum { USER, ITEM, CATE, HIST_ITEM, HIST_CATE, LIKED = 3, KEPT = 50 };

/* Shares that are of a liked category: among items of the history, and those that are looked at. */
static const double of_history = 0.8;
static const double of_looks = 0.5;

/* An item, of one of the liked categories with probability `share`. */
static uint64_t draw_item(const uint64_t liked[LIKED], double share, uint64_t stream,
                          uint64_t *draws)
{
    const bool likes = tn_unit(tn_draw(stream, (*draws)++)) < share;
    const uint64_t word = tn_draw(stream, (*draws)++);
    const uint64_t cate = likes ? liked[tn_below(word, LIKED)] : tn_below(word, TN_HISTORY_CATES);
    const uint64_t k = tn_below(tn_draw(stream, (*draws)++), TN_HISTORY_ITEMS / TN_HISTORY_CATES);
    return cate + TN_HISTORY_CATES * k;
}

double tn_history_draw(uint64_t *id, uint32_t first[TN_HISTORY_SLOTS + 1], uint64_t stream,
                       uint64_t *draws)
{
    uint64_t liked[LIKED];
    for (uint32_t i = 0; i < LIKED; i++) {
        liked[i] = tn_below(tn_draw(stream, (*draws)++), TN_HISTORY_CATES);
    }
    const uint32_t n = (uint32_t)tn_below(tn_draw(stream, (*draws)++), TN_HISTORY_LEN + 1);
    uint64_t *item = id + HIST_ITEM;
    for (uint32_t s = 0; s <= HIST_ITEM; s++) {
        first[s] = s;
    }
    first[HIST_CATE] = HIST_ITEM + n;
    first[TN_HISTORY_SLOTS] = HIST_ITEM + 2 * n;
    id[USER] = tn_below(tn_draw(stream, (*draws)++), TN_HISTORY_USERS);
    id[ITEM] = draw_item(liked, of_looks, stream, draws);
    id[CATE] = id[ITEM] % TN_HISTORY_CATES;
    bool similar = false;
    for (uint32_t i = 0; i < n; i++) {
        item[i] = draw_item(liked, of_history, stream, draws);
        item[n + i] = item[i] % TN_HISTORY_CATES;
        similar = similar || (n - i <= KEPT && item[n + i] == id[CATE]);
    }
    return similar ? 1 : 0;
}
