/* node_files.c - the rows of fetch_kinds.def and feed_kinds.def. */
#include "train/eval/node_files.h"

#include "nn/graph/graph.h"
#include "nn/graph/op.h"

#define TN_FETCH_KIND(name) extern const tn_fetch_kind tn_fetch_kind_##name;
#define TN_FEED_KIND(name) extern const tn_feed_kind tn_feed_kind_##name;
#include "train/eval/feed_kinds.def"
#include "train/eval/fetch_kinds.def"
#undef TN_FETCH_KIND
#undef TN_FEED_KIND
#define TN_FETCH_KIND(name) &tn_fetch_kind_##name,
#define TN_FEED_KIND(name) &tn_feed_kind_##name,

const tn_fetch_kind *tn_fetch_built(void)
{
    static const tn_fetch_kind *const built[] = {
#include "train/eval/fetch_kinds.def"
        NULL};
    return built[0];
}

const tn_feed_kind *tn_feed_built(void)
{
    static const tn_feed_kind *const built[] = {
#include "train/eval/feed_kinds.def"
        NULL};
    return built[0];
}

const tn_node *tn_fetch_node(const tn_graph *graph, const char *name, tn_error *err)
{
    const tn_node *n = tn_graph_find(graph, name);
    if (n != NULL && n->val != NULL && !n->is_param) {
        return n;
    }
    tn_status told = tn_fail(err, TN_E_CONFIG, "no node '%s' to fetch in the graph", name);
    (void)told; /* TN_E_CONFIG, as the caller knows */
    return NULL;
}
