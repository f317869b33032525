/* rank.c - finds the rank of this process, and has the kind of group that this program is built
 * with: processes that meet over ZeroMQ. */
#include "base/file/file.h"
#include "cluster/group/group.h"
#include "cluster/launch/children.h"
#include "cluster/launch/ipcdir.h"
#include "cluster/launch/membership.h"
#include "cluster/train/follower.h"
#include "cluster/train/leader.h"
#include "cluster/train/part_dealer.h"
#include "cluster/train/peers.h"
#include "config/diag.h"
#include "config/tree.h"
#include "io/schema/dataopts.h"
#include "train/config/run.h"
#include "train/group/ranks.h"

#include <math.h>
#include <string.h>

/* Makes the path of the folder in which the processes of a run meet. */
static tn_status meeting_dir(const tn_run *run, const char *folder, tn_text *dir, tn_error *err)
{
    tn_run_dir(&run->run, dir);
    if (folder != NULL) {
        tn_text_addf(dir, "/%s", folder);
    }
    return tn_text_check(dir, "run.dir", err);
}

static void check_group(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    if (!isinf(r->cluster.staleness) && r->cluster.staleness != floor(r->cluster.staleness)) {
        tn_diag_error(b->diag, tn_tree_place(tree, "cluster.staleness"),
                      "'cluster.staleness' is %g, not a whole number of steps or inf",
                      r->cluster.staleness);
    }
    if (tn_run_trains_on_stdin(r)) {
        tn_diag_error(b->diag, tn_tree_place(tree, "data.train"),
                      "data.train is '-', standard input, which several processes cannot share");
    }
    if (r->embedding.reset != TN_RESET_NEVER) {
        tn_diag_error(b->diag, tn_tree_place(tree, "embedding.reset"),
                      "embedding.reset is for a run of one process");
    }
}

static tn_status find(tn_run *run, const tn_peers_opts *peers, const char *folder, tn_arena *arena,
                      tn_error *err)
{
    tn_text dir = {0};
    char *host = TN_NEW_ARRAY(arena, char, TN_ENDPOINT_HOST);
    tn_membership *membership = TN_NEW(arena, tn_membership);
    tn_status status = meeting_dir(run, folder, &dir, err);
    if (status == TN_OK) {
        const tn_membership_in in =
            tn_membership_here(peers, tn_tree_text(arena, tn_text_str(&dir), dir.size), host);
        status = tn_membership_find(membership, &in, arena, err);
    }
    tn_text_done(&dir);
    if (status == TN_OK && membership->size > 1) {
        TN_ASSERT(membership->rank < membership->size);
        run->cluster.rank = membership->rank;
        run->cluster.size = membership->size;
        run->cluster.here = membership->n_here;
        run->cluster.membership = membership;
    }
    return status;
}

static tn_status find_rank(const tn_binder *b, const tn_tree *tree, tn_run *run, const char *folder,
                           tn_error *err)
{
    tn_peers_opts peers;
    tn_binder in_cluster = *b;
    in_cluster.path = "cluster";
    tn_peers_bind(&in_cluster, run->cluster.peers, &peers);
    TN_TRY(tn_diag_check(b->diag, err));
    TN_TRY(find(run, &peers, folder, b->arena, err));
    if (run->cluster.size > 1) {
        check_group(b, tree, run);
    }
    run->cluster.news = tn_spawn_news();
    return tn_diag_check(b->diag, err);
}

static tn_status prepare(const tn_run *run, uint32_t peers, const char *folder, tn_error *err)
{
    TN_ASSERT(peers > 0);
    tn_text dir = {0};
    const char *other = tn_spawn_other_launcher();
    if (other != NULL) {
        return tn_fail(err, TN_E_USAGE,
                       "--peers %u, but %s says that this process is one of a group already\n"
                       "hint: either of the two starts the processes",
                       peers, other);
    }
    TN_TRY(tn_group_make_room(peers, err));
    tn_status status = meeting_dir(run, folder, &dir, err);
    if (status == TN_OK) {
        status = tn_dir_make(tn_text_str(&dir), err);
    }
    if (status == TN_OK && folder == NULL) {
        status = tn_lock_look(tn_text_str(&dir), err);
    }
    if (status == TN_OK) {
        status = tn_ipc_check(tn_text_str(&dir), err);
    }
    tn_text_done(&dir);
    return status;
}

static uint32_t peers_here(const tn_binder *b, const tn_run *run)
{
    tn_peers_opts peers;
    tn_peers_bind(b, run->cluster.peers, &peers);
    const bool here = run->cluster.membership == NULL && peers.n > 1 && peers.address.n == 0;
    return here ? peers.n : 0;
}

extern const tn_group_kind tn_group_cluster;
const tn_group_kind tn_group_cluster = {.find_rank = find_rank,
                                        .check = check_group,
                                        .prepare = prepare,
                                        .start = tn_children_run,
                                        .is_child = tn_spawn_is_child,
                                        .peers_here = peers_here,
                                        .decline = tn_peers_decline,
                                        .open = tn_leader_open,
                                        .follow = tn_follower_run,
                                        .serve = tn_follower_serve,
                                        .deal = tn_part_dealer_deal};
