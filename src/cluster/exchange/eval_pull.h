/* eval_pull.h - rows for evaluation, from all owners: nothing is created, nothing is counted.
 *
 *     worker   tn_eval_pull_rows           PEEK to every other owner, the own part by a call; waits
 *     tn-net   tn_eval_pull_take_request   the rows of this owner, sent at once
 *
 * A PEEK has no id: it changes nothing, so a lost one is sent again, every second until the group
 * ends. ROWS repeat its step, which tells them from replies to older requests. Nobody trains
 * meanwhile (all ranks stand still, cluster/group/group.h), so all see the same model.
 */
#ifndef TN_CLUSTER_EVAL_PULL_H
#define TN_CLUSTER_EVAL_PULL_H

#include "cluster/exchange/exchange.h"

typedef struct tn_eval_pull tn_eval_pull;

/* On failure *out is NULL. */
tn_status tn_eval_pull_open(tn_eval_pull **out, const tn_exchange *x, tn_error *err) TN_MUST_USE;
void tn_eval_pull_close(tn_eval_pull *p); /* when no message comes any more; NULL is fine */

/* Messages of the link, a PEEK and ROWS without an id; on tn-net, never wait. */
void tn_eval_pull_take_request(tn_eval_pull *p, tn_in_message *incoming);
void tn_eval_pull_take_answer(tn_eval_pull *p, tn_in_message *incoming);

/* From any thread: calls that wait, or will, end with this. The first one counts. */
void tn_eval_pull_fail(tn_eval_pull *p, tn_status status, const char *why);

/* As tn_shard_peek, for all keys of all owners. By one thread. */
tn_status tn_eval_pull_rows(tn_eval_pull *p, tn_team *team, const tn_keyset *keys, float *rows,
                            bool *missing, tn_error *err) TN_MUST_USE;

#endif
