/* histories.h - rows of preset `histories`: what a user clicked, and what is looked at.
 *
 *     user   item   cate   hist_item      hist_cate
 *     17     163    3      43|1201|84     3|1|4          cate = item modulo TN_HISTORY_CATES
 *
 * A user of a row likes three categories. Most items of the history are of these, and half of those
 * that are looked at. Model `attention` plants that a click is likelier where one of the last 50
 * items of the history has the category of the item that is looked at; nothing else of the history
 * matters. Histories have 0 to 60 items, so that what came before the last 50 misleads.
 */
#pragma once

#include <stdint.h>

enum {
    TN_HISTORY_SLOTS = 5,
    TN_HISTORY_USERS = 500,
    TN_HISTORY_CATES = 40,
    TN_HISTORY_ITEMS = 50 * TN_HISTORY_CATES,
    TN_HISTORY_LEN = 60
};

/* Draws the ids of all slots from draw *draws of a stream on, and moves *draws to the next one:
 * those of slot s are id[first[s]] .. id[first[s + 1] - 1]. Returns 1 where one of the last 50
 * items has the category of the item that is looked at, else 0. */
double tn_history_draw(uint64_t *id, uint32_t first[TN_HISTORY_SLOTS + 1], uint64_t stream,
                       uint64_t *draws);
