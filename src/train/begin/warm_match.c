/* warm_match.c - the words of checkpoint.from, and which slot and parameter of a checkpoint is
 * which of a model. */
#include "train/begin/warm_match.h"

#include "base/core/arena.h"
#include "base/core/text.h"
#include "config/absent.h"
#include "config/tree.h"
#include "models/layerlist.h"
#include "nn/graph/params.h"
#include "ps/snapshot/manifest.h"
#include "train/begin/weight_source.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

/* ---- words of the configuration ---- */

static tn_status bad_word(const char *key, const char *what, tn_error *err)
{
    return tn_fail(err, TN_E_CONFIG, "checkpoint.from.%s is not %s", key, what);
}

/* all | none | a list of texts. */
static tn_status check_choice(const tn_tree *t, const char *key, const char *items, tn_error *err)
{
    char what[64];
    bool good = tn_tree_is_null(t) || t->kind == TN_TREE_LIST ||
                (t->kind == TN_TREE_SCALAR &&
                 (strcmp(t->text, "all") == 0 || strcmp(t->text, "none") == 0));
    for (const tn_tree *i = t != NULL && t->kind == TN_TREE_LIST ? t->first : NULL; i != NULL;
         i = i->next) {
        good = good && i->kind == TN_TREE_SCALAR;
    }
    (void)snprintf(what, sizeof what, "all, none or [%s]", items);
    return good ? TN_OK : bad_word(key, what, err);
}

static tn_status check_rename(const tn_tree *t, tn_error *err)
{
    bool good = tn_tree_is_null(t) || t->kind == TN_TREE_MAP;
    for (const tn_tree *i = t != NULL && t->kind == TN_TREE_MAP ? t->first : NULL; i != NULL;
         i = i->next) {
        good = good && i->kind == TN_TREE_SCALAR;
    }
    return good ? TN_OK : bad_word("rename", "{old: new, ..}", err);
}

tn_status tn_warm_read_words(tn_warm *m, const tn_tree *from, tn_error *err)
{
    static const char *const known[] = {"path", "rows", "dense", "rename"};
    TN_ASSERT(from != NULL && m != NULL);
    const tn_tree *path = from->kind == TN_TREE_MAP ? tn_tree_get(from, "path") : from;
    for (const tn_tree *t = from->kind == TN_TREE_MAP ? from->first : NULL; t != NULL;
         t = t->next) {
        bool is_known = false;
        for (uint32_t i = 0; i < sizeof known / sizeof *known; i++) {
            is_known = is_known || strcmp(t->key, known[i]) == 0;
        }
        for (const tn_weight_source *const *s = tn_all_weight_sources; *s != NULL; s++) {
            if ((*s)->value != NULL && strcmp(t->key, (*s)->key) == 0) {
                return tn_fail(err, TN_E_CONFIG,
                               "checkpoint.from has both 'path' and '%s', which name two "
                               "models\nhint: {..} of a later layer adds to that of the file; "
                               "'checkpoint.from=PATH' takes its place",
                               t->key);
            }
        }
        TN_TRY(tn_absent_check(t->key, TN_E_CONFIG, err));
        if (!is_known) {
            return tn_fail(err, TN_E_CONFIG,
                           "checkpoint.from has no '%s', only path, rows, dense and rename",
                           t->key);
        }
    }
    if (path == NULL || path->kind != TN_TREE_SCALAR || path->text[0] == '\0') {
        return bad_word("path", "a path", err);
    }
    m->path = path->text;
    m->rows = tn_tree_get(from, "rows");
    m->dense = tn_tree_get(from, "dense");
    m->rename = tn_tree_get(from, "rename");
    TN_TRY(check_choice(m->rows, "rows", "slot, ..", err));
    TN_TRY(check_choice(m->dense, "dense", "deep.*, ..", err));
    return check_rename(m->rename, err);
}

const char *tn_warm_renamed(const tn_warm *m, const char *name)
{
    const tn_tree *t = tn_tree_is_null(m->rename) ? NULL : tn_tree_get(m->rename, name);
    return t != NULL ? t->text : name;
}

/* ---- slots ---- */

uint32_t tn_warm_group_called(const tn_worker *w, const char *name)
{
    const tn_layout *layout = w->plan->layout;
    const tn_features *f = w->plan->features;
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        if (strcmp(layout->group[g].name, name) == 0) {
            return g;
        }
    }
    for (uint32_t i = 0; i < f->n_slots; i++) {
        if (strcmp(f->slot[i].name, name) == 0) {
            return f->slot[i].group;
        }
    }
    return TN_NOWHERE;
}

bool tn_warm_wants_group(const tn_warm *m, uint32_t group)
{
    if (tn_tree_is_null(m->rows) || m->rows->kind == TN_TREE_SCALAR) {
        return tn_tree_is_null(m->rows) || strcmp(m->rows->text, "all") == 0;
    }
    for (const tn_tree *t = m->rows->first; t != NULL; t = t->next) {
        if (tn_warm_group_called(m->w, t->text) == group) {
            return true;
        }
    }
    return false;
}

static const tn_row_segment *segment_called(const tn_row_record *r, const char *name, uint32_t *at)
{
    for (uint32_t s = 0; s < r->n_segments; s++) {
        if (strcmp(r->segment[s].name, name) == 0) {
            *at = s;
            return &r->segment[s];
        }
    }
    return NULL;
}

static bool same_states(const tn_row_segment *a, const tn_row_segment *b)
{
    bool same = a->n_states == b->n_states && strcmp(a->optimizer, b->optimizer) == 0;
    for (uint32_t i = 0; same && i < a->n_states; i++) {
        same = a->state[i].words == b->state[i].words && a->state[i].count == b->state[i].count &&
               strcmp(a->state[i].name, b->state[i].name) == 0;
    }
    return same;
}

/* Pairs the segments of a slot; widths that differ go to `differences`. */
static void pair_segments(const tn_warm *m, const tn_row_group *old, tn_move *v,
                          tn_text *differences)
{
    TN_ASSERT(v->to < m->now.n_groups && old->record < m->was->n_records);
    const tn_row_record *now = &m->now.record[m->now.group[v->to].record];
    const tn_row_record *was = &m->was->record[old->record];
    for (uint32_t s = 0; s < now->n_segments; s++) {
        const tn_row_segment *ours = &now->segment[s];
        const tn_row_segment *its = segment_called(was, ours->name, &v->segment[s]);
        if (its == NULL) {
            v->segment[s] = TN_NOWHERE;
        } else if (its->dim != ours->dim) {
            tn_text_addf(differences, "\n  slot '%s': '%s' is %u wide, in the checkpoint %u",
                         m->now.group[v->to].name, ours->name, ours->dim, its->dim);
        } else {
            v->with_states[s] = same_states(ours, its);
        }
    }
}

static void measure_segments(const tn_row_record *was, tn_move *v)
{
    for (uint32_t s = 0; s < was->n_segments; s++) {
        v->words[s] = was->segment[s].dim;
        for (uint32_t i = 0; i < was->segment[s].n_states; i++) {
            v->words[s] += was->segment[s].state[i].words;
        }
    }
}

/* Matches slots of the checkpoint with those of the model. */
tn_status tn_warm_match_slots(tn_warm *m, const tn_row_schema *was, tn_error *err)
{
    tn_text differences = {0};
    m->was = was;
    m->moves = TN_NEW_ARRAY(m->arena, tn_move, was->n_groups + 1);
    for (uint32_t g = 0; g < was->n_groups; g++) {
        tn_move *v = &m->moves[g];
        v->to = tn_warm_group_called(m->w, tn_warm_renamed(m, was->group[g].name));
        v->to = v->to != TN_NOWHERE && tn_warm_wants_group(m, v->to) ? v->to : TN_NOWHERE;
        measure_segments(&was->record[was->group[g].record], v);
        for (uint32_t h = 0; h < g && v->to != TN_NOWHERE; h++) {
            if (m->moves[h].to == v->to) {
                tn_text_addf(&differences, "\n  slots '%s' and '%s' of the checkpoint become one",
                             was->group[h].name, was->group[g].name);
            }
        }
        if (v->to != TN_NOWHERE) {
            pair_segments(m, &was->group[g], v, &differences);
        }
    }
    tn_status status = TN_OK;
    if (differences.size > 0) {
        status = tn_fail(err, TN_E_CONFIG,
                         "the rows of '%s' do not fit the model:%.1200s\nhint: leave a slot out "
                         "with checkpoint.from.rows",
                         m->path, tn_text_str(&differences));
    }
    tn_text_done(&differences);
    return status;
}

const tn_manifest_param *tn_warm_param_called(const tn_warm *m, const tn_manifest_dense *d,
                                              const char *name)
{
    for (uint32_t i = 0; i < d->n_params; i++) {
        if (strcmp(tn_warm_renamed(m, d->param[i].name), name) == 0) {
            return &d->param[i];
        }
    }
    return NULL;
}

static tn_status check_patterns(const tn_warm *m, tn_error *err)
{
    const bool lists = m->dense != NULL && m->dense->kind == TN_TREE_LIST;
    for (const tn_tree *t = lists ? m->dense->first : NULL; t != NULL; t = t->next) {
        uint32_t i = 0;
        while (i < tn_params_count(m->w->params) &&
               fnmatch(t->text, tn_params_get(m->w->params, i)->name, 0) != 0) {
            i++;
        }
        if (i == tn_params_count(m->w->params)) {
            return tn_fail(err, TN_E_CONFIG,
                           "checkpoint.from.dense: the model has no parameter '%s'", t->text);
        }
    }
    return TN_OK;
}

static bool can_rename(const tn_warm *m, const tn_manifest *was, const tn_tree *t)
{
    bool found = false;
    for (uint32_t g = 0; g < was->sparse.n_groups; g++) {
        found = found || (strcmp(was->sparse.group[g].name, t->key) == 0 &&
                          tn_warm_group_called(m->w, t->text) != TN_NOWHERE);
    }
    for (uint32_t i = 0; i < was->dense.n_params; i++) {
        found = found || (strcmp(was->dense.param[i].name, t->key) == 0 &&
                          tn_params_find(m->w->params, t->text) != NULL);
    }
    return found;
}

tn_status tn_warm_check_names(const tn_warm *m, const tn_manifest *was, tn_error *err)
{
    const bool lists = m->rows != NULL && m->rows->kind == TN_TREE_LIST;
    for (const tn_tree *t = lists ? m->rows->first : NULL; t != NULL; t = t->next) {
        if (tn_warm_group_called(m->w, t->text) == TN_NOWHERE) {
            return tn_fail(err, TN_E_CONFIG, "checkpoint.from.rows: the model has no slot '%s'",
                           t->text);
        }
    }
    for (const tn_tree *t = tn_tree_is_null(m->rename) ? NULL : m->rename->first; t != NULL;
         t = t->next) {
        if (!can_rename(m, was, t)) {
            return tn_fail(err, TN_E_CONFIG,
                           "checkpoint.from.rename: no slot or parameter '%s' of the checkpoint "
                           "can become '%s' of the model",
                           t->key, t->text);
        }
    }
    return check_patterns(m, err);
}

bool tn_warm_wants_param(const tn_warm *m, const char *name)
{
    if (tn_tree_is_null(m->dense) || m->dense->kind == TN_TREE_SCALAR) {
        return tn_tree_is_null(m->dense) || strcmp(m->dense->text, "all") == 0;
    }
    for (const tn_tree *t = m->dense->first; t != NULL; t = t->next) {
        if (fnmatch(t->text, name, 0) == 0) {
            return true;
        }
    }
    return false;
}

const tn_manifest_param *tn_warm_source_of(const tn_warm *m, const tn_manifest_dense *d,
                                           const tn_param_slice *s)
{
    const tn_manifest_param *p =
        tn_warm_wants_param(m, s->name) ? tn_warm_param_called(m, d, s->name) : NULL;
    return p != NULL && p->rank == 2 && p->shape[0] == s->rows && p->shape[1] == s->cols ? p : NULL;
}
