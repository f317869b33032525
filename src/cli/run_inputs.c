/* run_inputs.c - every node of a configuration knows its file; data are listed as a reader would.
 */
#include "cli/run_inputs.h"

#include "io/read/fileset.h"

#include <string.h>

enum { SOURCES_MAX = 256 }; /* configurations include one another, not hundreds */

typedef struct sources {
    const char *item[SOURCES_MAX];
    uint32_t n;
} sources;

static void add_source(sources *s, const char *source)
{
    bool known = source == NULL;
    for (uint32_t i = 0; i < s->n && !known; i++) {
        known = s->item[i] == source || strcmp(s->item[i], source) == 0;
    }
    if (!known && s->n < SOURCES_MAX) {
        s->item[s->n++] = source;
    }
}

static void find_sources(const tn_tree *tree, sources *s)
{
    add_source(s, tree->at.source);
    add_source(s, tree->key_at.source);
    for (const tn_tree *t = tree->first; t != NULL; t = t->next) {
        find_sources(t, s);
    }
}

tn_status tn_inputs_of(tn_inputs *out, const tn_tree *tree, const char *config,
                       const tn_data_opts *data, tn_error *err)
{
    sources s = {0};
    add_source(&s, config);
    find_sources(tree, &s);
    for (uint32_t i = 0; i < s.n; i++) { /* "command line" is no file, and is passed over */
        TN_TRY(tn_inputs_add(out, s.item[i], err));
    }
    TN_TRY(tn_fileset_inputs(&data->train, out, err));
    TN_TRY(tn_fileset_inputs(&data->valid, out, err));
    return tn_fileset_inputs(&data->test, out, err);
}
