/* no_group.c - what a build without groups says of them: a run is one process. */
#include "config/diag.h"
#include "config/tree.h"
#include "train/config/run.h"
#include "train/group/ranks.h"

#include <stdlib.h>
#include <string.h>

#define NO_CLUSTER "this build has no cluster; configure it with -DTNET_CLUSTER=ON"

static tn_status refuse(tn_error *err)
{
    return tn_fail(err, TN_E_CONFIG, NO_CLUSTER);
}

static bool is_one(const tn_tree *peers)
{
    return tn_tree_is_null(peers) ||
           (peers->kind == TN_TREE_SCALAR &&
            (strcmp(peers->text, "1") == 0 || strcmp(peers->text, "auto") == 0));
}

/* The first word of the configuration that is of use in a group alone; NULL: there is none. What a
 * checkpoint says of the group that trained it is no word of a command that reads it. */
static const char *group_word(const tn_run *run, bool trains)
{
    const tn_cluster_opts *o = &run->cluster;
    return !is_one(o->peers)                                     ? "cluster.peers"
           : !tn_tree_is_null(o->security)                       ? "cluster.security"
           : trains && !(o->staleness >= 0 && o->staleness <= 0) ? "cluster.staleness"
           : trains && o->values != 0                            ? "cluster.values"
                                                                 : NULL;
}

static void check_words(const tn_binder *b, const tn_tree *tree, const tn_run *run, bool trains)
{
    const char *word = group_word(run, trains);
    TN_ASSERT(run->cluster.size == 0 && run->cluster.rank == 0);
    if (word != NULL) {
        tn_diag_error(b->diag, &tn_tree_at(tree, word)->at, "'%s': " NO_CLUSTER, word);
    }
}

static void check_none(const tn_binder *b, const tn_tree *tree, const tn_run *run)
{
    check_words(b, tree, run, true);
}

static tn_status find_one(const tn_binder *b, const tn_tree *tree, tn_run *run, const char *folder,
                          tn_error *err)
{
    static const char *const variables[] = {"TNET_RANK", "TNET_PEERS", "TNET_PEER_LIST"};
    check_words(b, tree, run, folder == NULL);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]); // NOLINT(concurrency-mt-unsafe): nobody sets it
        if (value != NULL && value[0] != '\0') {
            return tn_fail(err, TN_E_CONFIG, "%s is set: " NO_CLUSTER, variables[i]);
        }
    }
    return tn_diag_check(b->diag, err);
}

static tn_status prepare_none(const tn_run *run, uint32_t peers, const char *folder, tn_error *err)
{
    (void)run;
    (void)peers;
    (void)folder;
    return refuse(err);
}

static bool is_no_child(void)
{
    return false;
}

static uint32_t nobody_here(const tn_binder *b, const tn_run *run)
{
    (void)b;
    (void)run;
    return 0;
}

static void decline_nobody(const tn_run *run, tn_status status, const char *why)
{
    (void)run;
    (void)status;
    (void)why;
}

static tn_status deal_none(tn_epoch_dealer *out, const tn_epoch_dealt *left, tn_error *err)
{
    (void)out;
    (void)left;
    return tn_fail(err, TN_E_CONFIG,
                   "the checkpoint is of several processes within an epoch, and " NO_CLUSTER);
}

/* No process has another rank, so nobody starts, opens, follows or serves. */
const tn_group_kind tn_group_none = {.find_rank = find_one,
                                     .check = check_none,
                                     .prepare = prepare_none,
                                     .is_child = is_no_child,
                                     .peers_here = nobody_here,
                                     .decline = decline_nobody,
                                     .deal = deal_none};
