/* eval_pull.h - rows for evaluation, from all owners: nothing is created, nothing is counted.
 *
 *     worker   tn_eval_pull_rows:         PEEK to every other owner, the own part by plain call,
 * wait tn-net   tn_eval_pull_take_request: the rows of this owner, answered at once
 *
 * A PEEK has no id: it changes nothing, so one that got lost is simply asked again, every second
 * until the group ends. ROWS repeat its step, by which answers to older ones are told. While rows
 * are peeked nobody trains (cluster/group/group.h: a meeting), so all see the same model.
 */
#ifndef TN_CLUSTER_EVAL_PULL_H
#define TN_CLUSTER_EVAL_PULL_H

#include "cluster/net/link.h"
#include "ps/shard/ownership.h"
#include "ps/shard/shard.h"

typedef struct tn_eval_pull tn_eval_pull;

typedef struct tn_eval_pull_opts {
    tn_link *link; /* these must outlive it */
    tn_out_messages *pool;
    uint32_t rank;
    const tn_shares *shares;
    const tn_layout *layout;
    tn_shard *shard;
} tn_eval_pull_opts;

/* On failure *out is NULL. */
tn_status tn_eval_pull_open(tn_eval_pull **out, const tn_eval_pull_opts *opts,
                            tn_error *err) TN_MUST_USE;
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
