/* inputnode.c - see inputnode.h. */
#include "models/inputnode.h"

#include "base/core/error.h"
#include "nn/op/ops.h"

#include <stdio.h>
#include <string.h>

enum { INPUT_NAME_MAX = 512 }; /* an input's and a column's name: up to 168 and 255 bytes */

/* "<a>.<b><suffix>" */
static const char *dotted(char out[INPUT_NAME_MAX], const char *a, const char *b,
                          const char *suffix)
{
    int used = snprintf(out, INPUT_NAME_MAX, "%s.%s%s", a, b, suffix);
    TN_ASSERT(used > 0 && used < INPUT_NAME_MAX);
    return out;
}

typedef struct place {
    const tn_net *net;
    const tn_list_source *source;
    tn_arena *arena;
} place;

/* Numeric columns in order; runs of them with a running zscore pass through its operator. */
static tn_node *numeric_node(const place *p, const char *input)
{
    const tn_features *f = p->source->features;
    tn_graph *g = p->net->g;
    tn_node *all = tn_numeric(g, input, f->n_numeric);
    tn_node **part = TN_NEW_ARRAY(p->arena, tn_node *, f->n_numeric);
    uint32_t n_parts = 0;
    bool scored = false;
    for (uint32_t from = 0; from < f->n_numeric;) {
        uint64_t freeze = f->zscore_freeze[from];
        uint32_t to = from + 1;
        while (to < f->n_numeric && f->zscore_freeze[to] == freeze) {
            to++;
        }
        char name[INPUT_NAME_MAX];
        tn_node *x = all;
        if (to - from < f->n_numeric) {
            x = tn_slice(g, dotted(name, input, f->numeric[from], ""), all, from, to - from);
        }
        if (freeze != 0) {
            tn_node *sums =
                tn_running(g, p->net->params, dotted(name, input, f->numeric[from], ".sums"),
                           (tn_shape){6, to - from}, 0);
            x = tn_zscore(g, dotted(name, input, f->numeric[from], ".zscore"), x, sums,
                          (double)freeze);
            scored = true;
        }
        part[n_parts++] = x;
        from = to;
    }
    if (!scored) {
        return all; /* unused slices are dropped by the graph's passes */
    }
    char name[INPUT_NAME_MAX];
    return n_parts == 1 ? part[0] : tn_concat(g, dotted(name, input, "zscored", ""), part, n_parts);
}

static const tn_segment *segment_of(const tn_layout *layout, uint32_t group, const char *name)
{
    const tn_record *record = tn_record_of(layout, group);
    uint32_t i = 0;
    while (i < record->n_segments && strcmp(record->segment[i].name, name) != 0) {
        i++;
    }
    TN_ASSERT(i < record->n_segments); /* the layout was made from the same inputs */
    return &record->segment[i];
}

static tn_node *embed_node(const place *p, const char *name, const tn_model_input *input)
{
    tn_embed_slot *slots = TN_NEW_ARRAY(p->arena, tn_embed_slot, input->n);
    for (uint32_t i = 0; i < input->n; i++) {
        const tn_model_slot *s = &p->source->features->slot[input->item[i]];
        slots[i] = (tn_embed_slot){
            .name = s->name,
            .slot = s->slot,
            .segment = segment_of(p->source->layout, s->group, input->name),
            .pool = s->pool,
            .k = s->pool_k,
        };
    }
    return tn_embed(p->net->g, name, slots, input->n);
}

tn_node *tn_input_node(const tn_net *net, const tn_list_source *source, const tn_model_input *input,
                       tn_arena *arena)
{
    const place p = {net, source, arena};
    char name[INPUT_NAME_MAX];
    (void)dotted(name, "in", input->name, "");
    return input->numeric ? numeric_node(&p, name) : embed_node(&p, name, input);
}
