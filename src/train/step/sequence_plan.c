/* sequence_plan.c - finds the slots of sequences, and judges their targets. */
#include "train/step/sequence_plan.h"

#include "base/core/arena.h"
#include "config/diag.h"
#include "models/layerlist.h"
#include "train/config/run.h"
#include "train/config/sequences.h"

#include <string.h>

/* Returns the index of a slot with keys; n_slots: there is none. */
static uint32_t find_slot(const tn_features *f, const char *name)
{
    uint32_t i = 0;
    while (i < f->n_slots && strcmp(f->slot[i].name, name) != 0) {
        i++;
    }
    return i;
}

static bool find_slots(const tn_sequence_opts *s, const tn_strs *names, const tn_features *f,
                       tn_diag *diag, uint32_t *out)
{
    for (uint32_t i = 0; i < names->n; i++) {
        out[i] = find_slot(f, names->item[i]);
        if (out[i] == f->n_slots) {
            tn_diag_error(diag, s->at, "sequence '%s' names '%s', which is no slot with keys",
                          s->name, names->item[i]);
            return false;
        }
    }
    return true;
}

static bool is_in(const uint32_t *item, uint32_t n, uint32_t slot)
{
    bool in = false;
    for (uint32_t i = 0; i < n; i++) {
        in = in || item[i] == slot;
    }
    return in;
}

static void check_targets(const tn_sequence_opts *s, const tn_model_sequence *m,
                          const tn_features *f, tn_diag *diag)
{
    for (uint32_t i = 0; i < m->n_target; i++) {
        const tn_model_slot *slot = &f->slot[m->item[i]];
        const tn_model_slot *target = &f->slot[m->target[i]];
        if (is_in(m->item, m->n, m->target[i])) {
            tn_diag_error(diag, s->at, "sequence '%s' has slot '%s' as a list and as a target",
                          s->name, target->name);
        } else if (target->pool == TN_POOL_CONCAT) {
            tn_diag_error(diag, s->at,
                          "sequence '%s': its target '%s' has 'pool: concat', and is paired as one "
                          "vector",
                          s->name, target->name);
        } else if (slot->dim != target->dim) {
            tn_diag_error(diag, s->at,
                          "sequence '%s': '%s' has vectors of %u floats and its target '%s' of %u; "
                          "they are paired by place",
                          s->name, slot->name, slot->dim, target->name, target->dim);
        }
    }
}

void tn_sequence_features_make(const tn_run *run, const tn_binder *b, tn_features *f)
{
    const tn_sequences all = tn_sequences_read(run->sequences, b);
    tn_model_sequence *out = TN_NEW_ARRAY(b->arena, tn_model_sequence, all.n + 1);
    for (uint32_t i = 0; i < all.n; i++) {
        const tn_sequence_opts *s = &all.item[i];
        uint32_t *item = TN_NEW_ARRAY(b->arena, uint32_t, s->slots.n);
        uint32_t *target = TN_NEW_ARRAY(b->arena, uint32_t, s->target.n + 1);
        out[i] = (tn_model_sequence){.name = s->name,
                                     .n = s->slots.n,
                                     .item = item,
                                     .n_target = s->target.n,
                                     .target = target,
                                     .max_len = s->max_len};
        if (find_slots(s, &s->slots, f, b->diag, item) &&
            find_slots(s, &s->target, f, b->diag, target)) {
            check_targets(s, &out[i], f, b->diag);
        }
    }
    f->n_sequences = all.n;
    f->sequence = out;
}

void tn_sequence_inputs_check(const tn_run *run, const tn_model_inputs *inputs, const tn_binder *b)
{
    for (uint32_t i = 0; i < inputs->n && tn_strs_has(&run->export.graph, "onnx"); i++) {
        const tn_model_input *in = &inputs->input[i];
        if (in->max_len > 0) {
            tn_diag_error(b->diag, in->at,
                          "export.graph: 'onnx' has no form of input '%s', the positions of a "
                          "sequence",
                          in->name);
            tn_diag_hint(b->diag, "libtnet scores the model; leave 'onnx' out of export.graph");
            return;
        }
    }
}
