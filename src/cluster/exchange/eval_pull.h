/* eval_pull.h - rows for evaluation, from all owners: nothing is created, nothing is counted.
 *
 *     worker   tn_eval_pull_rows           PEEK to every other owner, the own part by a call; waits
 *     tn-net   tn_eval_pull_take_request   the rows of this owner, sent at once
 *
 * A PEEK has no id: it changes nothing, so a lost one is sent again, every second until the group
 * ends. ROWS repeat its step, unlike replies to older requests. Nobody trains meanwhile
 * (all ranks wait, cluster/group/group.h), so all see the same model.
 */
#pragma once

#include "cluster/exchange/exchange.h"

typedef struct tn_eval_pull tn_eval_pull;

tn_eval_pull *tn_eval_pull_new(const tn_exchange *x);
void tn_eval_pull_free(tn_eval_pull *p); /* when no message comes any more; NULL is fine */

/* Takes a PEEK; on tn-net, never waits. Replies, which have no id, go into the worker's queue. */
void tn_eval_pull_take_request(tn_eval_pull *p, tn_in_message *incoming);

/* Pulls as tn_shard_peek does, for all keys of all owners. By one thread. */
tn_status tn_eval_pull_rows(tn_eval_pull *p, tn_team *team, const tn_keyset *keys, float *rows,
                            bool *missing, tn_error *err) TN_MUST_USE;
