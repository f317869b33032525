/* membership_options.c - the option cluster.peers: auto, a number, or a list of addresses. */
#include "cluster/launch/membership.h"
#include "config/fieldtree.h"

#include <string.h>

typedef struct peers_words {
    uint32_t peers;
    tn_strs list;
} peers_words;

static const char *const auto_words[] = {"auto", NULL};

static const tn_field number[] = {
    TN_FIELD_U32W(peers_words, peers, "auto", 1, TN_PEERS_MAX, "", auto_words, "processes"),
    TN_FIELD_END,
};

static const tn_field addresses[] = {
    TN_FIELD_STRS(peers_words, list, "~", "addresses"),
    TN_FIELD_END,
};

static void check_list(const tn_binder *b, const tn_tree *tree, const tn_strs *list)
{
    if (list->n > TN_PEERS_MAX) {
        tn_diag_error(b->diag, &tree->at, "'cluster.peers' holds %u addresses, more than %d",
                      list->n, TN_PEERS_MAX);
        return;
    }
    const tn_tree *item = tree->first;
    for (uint32_t i = 0; i < list->n && item != NULL; i++, item = item->next) {
        tn_endpoint e;
        tn_error err = {0};
        if (tn_endpoint_read(list->item[i], TN_ENDPOINT_PORT, &e, &err) != TN_OK) {
            tn_diag_error(b->diag, &item->at, "'cluster.peers': %s", err.text);
        }
    }
}

void tn_peers_bind(const tn_binder *b, const tn_tree *tree, tn_peers_opts *out)
{
    tn_binder inner = *b;
    inner.path = b->path != NULL ? b->path : "cluster";
    *out = (tn_peers_opts){0};
    if (tn_tree_is_null(tree)) {
        return;
    }
    peers_words words = {0};
    if (tree->kind == TN_TREE_LIST) {
        tn_fields_bind(&inner, addresses, tn_tree_wrap(b->arena, "list", tree), &words);
        check_list(&inner, tree, &words.list);
        *out = (tn_peers_opts){.n = words.list.n, .address = words.list};
        return;
    }
    tn_fields_bind(&inner, number, tn_tree_wrap(b->arena, "peers", tree), &words);
    out->n = words.peers == TN_AUTO ? 0 : words.peers;
}
