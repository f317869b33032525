/* discovered_input.c - lays what the data say of themselves under a configuration. */
#include "extra/inspect/discovered_input.h"

#include "base/core/arena.h"
#include "base/core/log.h"
#include "base/core/text.h"
#include "config/tree.h"
#include "config/yaml.h"
#include "io/format/format.h"
#include "train/config/run_loss.h"

/* data.train, one path or a list of them. */
static tn_strs train_paths(const tn_tree *root, tn_arena *arena)
{
    const tn_tree *train = tn_tree_at(root, "data.train");
    const bool one = train != NULL && train->kind == TN_TREE_SCALAR;
    const char **item = TN_NEW_ARRAY(arena, const char *, tn_tree_count(train) + 1);
    tn_strs paths = {0, item};
    const tn_tree *t = one || train == NULL ? train : train->first;
    for (; t != NULL; t = one ? NULL : t->next) {
        if (t->kind == TN_TREE_SCALAR) {
            item[paths.n++] = t->text;
        }
    }
    return paths;
}

static const tn_tree *found_tree(tn_setup *s, const tn_discovery *found)
{
    tn_text text = {0};
    tn_discovery_config(found, &text);
    const tn_yaml_in yaml = {.text = tn_text_str(&text), .size = text.size, .source = "the data"};
    const tn_tree *tree = tn_yaml_read(s->arena, &s->diag, &yaml);
    tn_text_done(&text);
    return tree;
}

/* Merges the found columns under the configuration; `blind`: also over the slots that it lists. */
static const tn_tree *lay_under(tn_arena *arena, bool blind, const tn_tree *found,
                                const tn_tree *root)
{
    static const tn_origin origin = {.source = "the data"};
    tn_tree *merged = tn_tree_merge(arena, found, root);
    const tn_tree *slots = tn_tree_get(found, "slots");
    if (slots != NULL) {
        tn_tree_put(arena, merged, "slots", tn_tree_copy(arena, slots));
    }
    tn_tree *section = tn_tree_copy(arena, tn_tree_get(merged, "data"));
    if (slots != NULL && (blind || tn_tree_is_null(tn_tree_at(root, "data.label")))) {
        tn_tree_put(arena, section, "label", tn_tree_scalar(arena, "none", origin));
    }
    tn_tree_put(arena, merged, "data", section);
    if (slots == NULL && blind) { /* labels that no click has are looked at, too */
        const char *loss = tn_loss_for(TN_TARGET_NUMBER);
        tn_tree_put(arena, merged, "loss", tn_tree_scalar(arena, loss, origin));
    }
    return merged;
}

/* Lays what the data say under what is given. */
static tn_status discover(tn_data_input *in, bool blind, const tn_tree **root, tn_error *err)
{
    tn_arena *arena = in->setup->arena;
    const bool listed = tn_tree_count(tn_tree_get(*root, "slots")) > 0;
    const tn_strs paths = train_paths(*root, arena);
    const tn_tree *format = tn_tree_at(*root, "data.format");
    const char *word = format != NULL && format->kind == TN_TREE_SCALAR ? format->text : NULL;
    if (word != NULL && !(blind ? tn_format_find(word) != NULL : tn_discovery_has_columns(word))) {
        return TN_OK; /* an unknown format is reported with the other faults */
    }
    if (paths.n == 0 || (!blind && listed)) {
        return TN_OK;
    }
    tn_discovery *found = TN_NEW(arena, tn_discovery);
    in->found = found;
    TN_TRY(tn_discovery_find(found, &paths, tn_tree_get(*root, "data"), arena, err));
    if (blind && listed && found->n > 0) {
        return tn_fail(err, TN_E_USAGE, "'slots' are what is looked for");
    }
    const tn_tree *tree = found_tree(in->setup, found);
    if (tree == NULL) {
        return tn_fail(err, TN_E_DATA, "the columns of '%s' cannot be slots", found->path);
    }
    if (tn_tree_get(tree, "slots") != NULL && !blind) {
        tn_log(TN_LOG_INFO, "no slots are listed: all %u columns of '%s' (%s) are read%s", found->n,
               found->path, found->format,
               tn_tree_is_null(tn_tree_at(*root, "data.label")) ? ", without a label" : "");
    }
    *root = lay_under(arena, blind, tree, *root);
    return TN_OK;
}

tn_status tn_discover_missing(tn_data_input *in, const tn_tree **root, tn_error *err)
{
    return discover(in, false, root, err);
}

tn_status tn_discover_all(tn_data_input *in, const tn_tree **root, tn_error *err)
{
    return discover(in, true, root, err);
}
