/* meaning.c - compares what rows mean in two configurations, option by option. */
#include "train/config/meaning.h"

#include "base/core/arena.h"
#include "base/core/text.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/fieldtree.h"
#include "config/tree.h"
#include "config/yaml.h"
#include "io/format/format.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"
#include "train/config/retired.h"
#include "train/config/run.h"
#include "train/config/run_tasks.h"

#include <string.h>

enum { DIFFERENCES_TOLD = 12, MISSING_ZERO = 0 /* words of embedding.missing */ };

/* Two configurations, with options in copies that have what is left out written. */
typedef struct comparison {
    const tn_meaning *m;
    tn_run was;
    bool same_format;
    tn_text lines;
} comparison;

/* ---- options as they work ---- */

static const tn_tree *word(const tn_binder *b, const char *text)
{
    return tn_tree_scalar(b->arena, text, (tn_origin){0});
}

/* Returns the rule that makes a label, without its column. */
static const tn_tree *label_rule(const tn_binder *b, const tn_tree *label)
{
    tn_tree *rule = tn_tree_copy(b->arena, label);
    if (label->kind != TN_TREE_MAP) {
        return word(b, "0 or 1");
    }
    tn_tree_put(b->arena, rule, "column", tn_tree_copy(b->arena, word(b, "any")));
    return rule;
}

static tn_data_opts usual_data(const comparison *c, const tn_data_opts *data)
{
    tn_data_opts d = *data;
    const bool csv = strcmp(d.format, "csv") == 0 || strcmp(d.format, "avazu") == 0;
    const tn_tree *label = tn_label_words(c->m->b->arena, d.label);
    d.label = c->same_format ? label : label_rule(c->m->b, label);
    d.quote = d.quote != TN_QUOTE_AUTO ? d.quote : csv ? TN_QUOTE_LINE : TN_QUOTE_NONE;
    return d;
}

static tn_slot_opts usual_slot(const tn_binder *b, const tn_run *run, const tn_slot_opts *slot)
{
    tn_slot_opts s = *slot;
    const bool key = tn_slot_as_of(&s) == TN_AS_KEY;
    s.column = s.column != NULL ? s.column : s.name;
    s.share = s.share != NULL ? s.share : s.name;
    s.list = !key && s.type != TN_TYPE_VECTOR ? NULL : s.list != NULL ? s.list : run->data.list;
    if (tn_tree_is_null(s.transform)) {
        s.transform =
            word(b, s.as == TN_AS_VALUE && s.type != TN_TYPE_VECTOR ? "zscore" : "identity");
    }
    if (tn_tree_is_null(s.absent)) {
        s.absent = word(b, tn_slot_as_of(&s) == TN_AS_VALUE ? "0" : "none");
    }
    const bool number = !key || tn_tree_get(s.transform, "buckets") != NULL;
    s.type = number && s.type == TN_SIGN_ID ? TN_SIGN_FLOAT : s.type;
    s.keep = s.max_len > 0 ? s.keep : TN_KEEP_LAST;
    s.missing = s.missing != TN_UNSET_U32 ? s.missing : (uint32_t)run->embedding.missing;
    s.init = tn_tree_is_null(s.init) ? run->embedding.init : s.init;
    s.init = s.missing == MISSING_ZERO ? NULL : s.init; /* nobody reads first values */
    return s;
}

/* ---- the comparison ---- */

static const char *const *options_of(const char *format, bool of_slot)
{
    const tn_format *f = tn_format_find(format);
    return f == NULL ? NULL : of_slot ? f->slot_options : f->data_options;
}

/* Some formats read an option and others do not: whether both of these do. */
static bool both_read(const comparison *c, const tn_field *f, bool of_slot)
{
    bool special = false;
    for (const tn_format *const *o = tn_all_formats; *o != NULL && !special; o++) {
        special = tn_format_reads(of_slot ? (*o)->slot_options : (*o)->data_options, f->key);
    }
    return !special || (tn_format_reads(options_of(c->m->run->data.format, of_slot), f->key) &&
                        tn_format_reads(options_of(c->was.data.format, of_slot), f->key));
}

static bool is_compared(const comparison *c, const tn_field *f, bool of_slot)
{
    TN_ASSERT(f->meaning != TN_MEANS_UNSAID);
    return (f->meaning == TN_MEANS_PLACE && c->same_format) ||
           (f->meaning == TN_MEANS_KEY && both_read(c, f, of_slot)) ||
           (f->meaning == TN_MEANS_ROW && c->m->from == NULL);
}

static void compare(comparison *c, const char *path, const tn_field *f, const void *now,
                    const void *was)
{
    tn_text here = {0};
    tn_text there = {0};
    TN_ASSERT(path[0] != '\0' && f->kind != TN_KIND_END);
    tn_field_value_text(&here, f, now);
    tn_field_value_text(&there, f, was);
    if (strcmp(tn_text_str(&here), tn_text_str(&there)) != 0) {
        tn_text_addf(&c->lines, "\n  %s.%s: here %.200s, in the checkpoint %.200s", path, f->key,
                     tn_text_str(&here), tn_text_str(&there));
    }
    tn_text_done(&here);
    tn_text_done(&there);
}

/* Files of one format that differ in this option may hold the same rows. */
static bool is_free(const comparison *c, const char *key, const tn_data_opts *now,
                    const tn_data_opts *was)
{
    const bool unlabelled = c->m->reads && tn_label_is_none(now->label);
    if (strcmp(key, "label") == 0) {
        return unlabelled;
    }
    if (strcmp(key, "columns") == 0) { /* a header may name them, and who predicts has no label */
        return unlabelled || now->columns.n == 0 || was->columns.n == 0;
    }
    if (strcmp(key, "index_base") == 0) { /* found in the data, and not written down */
        return now->index_base == TN_AUTO || was->index_base == TN_AUTO;
    }
    return strcmp(key, "list") == 0; /* as slots have it */
}

static void compare_data(comparison *c)
{
    const tn_data_opts now = usual_data(c, &c->m->run->data);
    const tn_data_opts was = usual_data(c, &c->was.data);
    for (const tn_field *f = tn_data_fields; f->kind != TN_KIND_END; f++) {
        if (is_compared(c, f, false) && !is_free(c, f->key, &now, &was)) {
            compare(c, "data", f, &now, &was);
        }
    }
}

static bool names_slot(const tn_tree *list, const tn_slot_opts *slot)
{
    bool named = false;
    for (const tn_tree *t = list->first; t != NULL && !named; t = t->next) {
        named = t->kind == TN_TREE_SCALAR &&
                (strcmp(t->text, slot->name) == 0 || strcmp(t->text, slot->share) == 0);
    }
    return named;
}

/* Says whether a run that begins with these weights takes those of the slot. */
static bool is_taken(const comparison *c, const tn_slot_opts *now, const tn_slot_opts *was)
{
    const bool number = tn_slot_as_of(now) == TN_AS_VALUE; /* its weights are in the net */
    const tn_tree *which = tn_tree_get(c->m->from, number ? "dense" : "rows");
    if (c->m->from == NULL || tn_slot_as_of(now) != tn_slot_as_of(was)) {
        return c->m->from == NULL || (!number && tn_slot_as_of(was) != TN_AS_VALUE);
    }
    if (tn_tree_is_null(which)) {
        return true;
    }
    return which->kind == TN_TREE_SCALAR ? strcmp(which->text, "all") == 0
                                         : !number && names_slot(which, now);
}

/* A slot by the name that it has here; NULL: there is none. */
static const tn_slot_opts *find_slot(const comparison *c, const tn_tables *slots, const char *name)
{
    const tn_tree *rename = tn_tree_get(c->m->from, "rename");
    const tn_slot_opts *slot = slots->item;
    for (uint32_t i = 0; i < slots->n; i++) {
        const tn_tree *to = tn_tree_get(rename, slot[i].name);
        const bool renamed = to != NULL && to->kind == TN_TREE_SCALAR;
        if (strcmp(renamed ? to->text : slot[i].name, name) == 0) {
            return &slot[i];
        }
    }
    return NULL;
}

static void compare_slot(comparison *c, const char *path, const tn_slot_opts *slot,
                         const tn_slot_opts *past)
{
    const tn_slot_opts now = usual_slot(c->m->b, c->m->run, slot);
    const tn_slot_opts was = usual_slot(c->m->b, &c->was, past);
    const bool renamed = strcmp(now.name, was.name) != 0;
    if (!is_taken(c, &now, &was)) {
        return;
    }
    for (const tn_field *f = tn_slot_fields; f->kind != TN_KIND_END; f++) {
        /* rows that begin a run are moved to the group and the column that are said now */
        const bool moved = c->m->from != NULL && (strcmp(f->key, "share") == 0 ||
                                                  (renamed && strcmp(f->key, "column") == 0));
        /* a number and a key have nothing in common */
        const bool other = now.as != was.as && strcmp(f->key, "as") != 0;
        if (is_compared(c, f, true) && !moved && !other) {
            compare(c, path, f, &now, &was);
        }
    }
}

/* Slots that only one of them has. */
static void compare_names(comparison *c)
{
    const tn_tables *now = &c->m->run->slots;
    const tn_tables *was = &c->was.slots;
    const tn_slot_opts *here = now->item;
    const tn_slot_opts *there = was->item;
    if (c->m->from != NULL || now->n == 0 || was->n == 0) {
        return; /* a run that begins has its own; or they are found in the data */
    }
    for (uint32_t i = 0; i < was->n; i++) {
        if (find_slot(c, now, there[i].name) == NULL) {
            tn_text_addf(&c->lines, "\n  slot '%s' of the checkpoint is gone", there[i].name);
        }
    }
    for (uint32_t i = 0; i < now->n; i++) {
        if (find_slot(c, was, here[i].name) == NULL) {
            tn_text_addf(&c->lines, "\n  slot '%s' is not in the checkpoint", here[i].name);
        }
    }
}

static void compare_slots(comparison *c)
{
    const tn_tables *slots = &c->m->run->slots;
    const tn_slot_opts *slot = slots->item;
    const tn_slot_opts any = {.name = "_",
                              .missing = TN_UNSET_U32}; /* they are found in the data */
    for (uint32_t i = 0; i < slots->n; i++) {
        const tn_slot_opts *past = find_slot(c, &c->was.slots, slot[i].name);
        tn_text path = {0};
        tn_text_addf(&path, "slots.%s", slot[i].name);
        if (past != NULL) {
            compare_slot(c, tn_text_str(&path), &slot[i], past);
        }
        tn_text_done(&path);
    }
    if (slots->n == 0) {
        compare_slot(c, "embedding", &any, &any);
    }
}

/* Models of two names have different layers, which would be reported one by one; a graph may have
 * those of any. */
static void compare_models(comparison *c)
{
    const tn_choice *now = c->m->run->model.choice;
    const tn_choice *was = c->was.model.choice;
    const bool named = now != NULL && was != NULL && strcmp(now->name, "graph") != 0 &&
                       strcmp(was->name, "graph") != 0;
    if (named && c->m->from == NULL && now != was) {
        tn_text_addf(&c->lines, "\n  model.type: here %s, in the checkpoint %s", now->name,
                     was->name);
    }
}

/* A score of a task means what its label, its loss and its share say. A run that begins with other
 * weights has tasks of its own. */
static void compare_tasks(comparison *c)
{
    tn_text here = {0};
    tn_text there = {0};
    tn_tasks_put_meaning(c->m->b->arena, c->m->run->tasks, &here);
    tn_tasks_put_meaning(c->m->b->arena, c->was.tasks, &there);
    if (c->m->from == NULL && strcmp(tn_text_str(&here), tn_text_str(&there)) != 0) {
        tn_text_addf(&c->lines, "\n  tasks: here %.300s, in the checkpoint %.300s",
                     here.size > 0 ? tn_text_str(&here) : "none",
                     there.size > 0 ? tn_text_str(&there) : "none");
    }
    tn_text_done(&here);
    tn_text_done(&there);
}

static const tn_tree *read_past(const tn_binder *b, const char *past)
{
    tn_diag unheard = {0};
    const tn_yaml_in in = {.text = past, .size = strlen(past), .source = "config.yaml"};
    const tn_tree *tree = past[0] != '\0' ? tn_yaml_read(b->arena, &unheard, &in) : NULL;
    tn_diag_done(&unheard);
    return tree != NULL && tree->kind == TN_TREE_MAP ? tn_retired_drop(b->arena, tree) : NULL;
}

void tn_meaning_shorten(tn_text *lines)
{
    size_t kept = lines->size;
    unsigned n = 0;
    for (size_t i = 0; i < lines->size; i++) {
        if (lines->data[i] == '\n' && n++ == DIFFERENCES_TOLD) {
            kept = i;
        }
    }
    lines->size = kept;
    if (n > DIFFERENCES_TOLD) {
        tn_text_addf(lines, "\n  and %u more", n - DIFFERENCES_TOLD);
    }
}

tn_status tn_meaning_check(const tn_meaning *m, tn_error *err)
{
    TN_ASSERT(m->past != NULL && m->path != NULL && m->hint != NULL);
    comparison c = {.m = m};
    tn_diag unheard = {0};
    const tn_binder lenient = {.arena = m->b->arena, .diag = &unheard};
    const tn_tree *past = read_past(m->b, m->past);
    if (past != NULL) {
        tn_fields_bind_some(&lenient, tn_run_fields, past, &c.was);
    }
    tn_diag_done(&unheard);
    if (past == NULL || c.was.data.format == NULL || m->run->data.format == NULL) {
        return TN_OK;
    }
    c.same_format = strcmp(c.was.data.format, m->run->data.format) == 0;
    compare_models(&c);
    compare_tasks(&c);
    compare_names(&c);
    compare_data(&c);
    compare_slots(&c);
    tn_meaning_shorten(&c.lines);
    tn_status status = tn_text_check(&c.lines, "differences", err);
    if (status == TN_OK && c.lines.size > 0) {
        status = tn_fail(err, TN_E_CONFIG,
                         "the model of '%s' was learned with other options:%.1200s\nhint: %s",
                         m->path, tn_text_str(&c.lines), m->hint);
    }
    tn_text_done(&c.lines);
    return status;
}

/* ---- what is taken from the checkpoint ---- */

/* Options of training that leave their mark in rows and weights: their state. */
static const char *const rules[] = {"optimizer", "sparse", NULL};
static const char *const slot_rules[] = {"optimizer", "lr", "l2", NULL};

/* Members `keys` of `map` become those of `past`. */
static void take(const tn_binder *b, tn_tree *map, const tn_tree *past, const char *const *keys)
{
    for (const char *const *key = keys; *key != NULL && past != NULL; key++) {
        const tn_tree *value = tn_tree_get(past, *key);
        tn_tree_put(b->arena, map, *key,
                    value != NULL ? tn_tree_copy(b->arena, value)
                                  : tn_tree_new(b->arena, TN_TREE_NULL, past->at));
    }
}

static const tn_tree *slot_called(const tn_tree *slots, const char *name)
{
    const tn_tree *t = slots != NULL && slots->kind == TN_TREE_LIST ? slots->first : NULL;
    for (; t != NULL; t = t->next) {
        const tn_tree *its = t->kind == TN_TREE_MAP ? tn_tree_get(t, "name") : t;
        if (its != NULL && its->kind == TN_TREE_SCALAR && strcmp(its->text, name) == 0) {
            return t->kind == TN_TREE_MAP ? t : NULL;
        }
    }
    return NULL;
}

static const tn_tree *take_slot_rules(const tn_binder *b, const tn_tree *slots, const tn_tree *past)
{
    const tn_field *field = tn_field_find(tn_run_fields, "slots");
    tn_tree *list = tn_tree_new(b->arena, TN_TREE_LIST, slots->at);
    for (const tn_tree *t = slots->first; t != NULL; t = t->next) {
        tn_tree *slot = tn_tree_copy(b->arena, tn_field_unfold(b->arena, field, t));
        const tn_tree *name = tn_tree_get(slot, "name");
        const bool named = name != NULL && name->kind == TN_TREE_SCALAR;
        slot->key = NULL;
        slot->at = t->at;
        take(b, slot, named ? slot_called(past, name->text) : NULL, slot_rules);
        tn_tree_append(list, slot);
    }
    return list;
}

const tn_tree *tn_meaning_read_rules(const tn_binder *b, const tn_tree *tree, const char *past)
{
    const tn_tree *was = read_past(b, past);
    const tn_tree *train = tn_tree_get(tree, "train");
    const tn_tree *slots = tn_tree_get(tree, "slots");
    tn_tree *out = tn_tree_copy(b->arena, tree);
    if (tn_tree_get(was, "train") == NULL) {
        return tree;
    }
    tn_tree *with = train != NULL && train->kind == TN_TREE_MAP
                        ? tn_tree_copy(b->arena, train)
                        : tn_tree_new(b->arena, TN_TREE_MAP, was->at);
    take(b, with, tn_tree_get(was, "train"), rules);
    tn_tree_put(b->arena, out, "train", with);
    if (slots != NULL && slots->kind == TN_TREE_LIST) {
        tn_tree_put(b->arena, out, "slots",
                    tn_tree_copy(b->arena, take_slot_rules(b, slots, tn_tree_get(was, "slots"))));
    }
    return out;
}

bool tn_meaning_index_base(const tn_binder *b, const char *past, uint32_t *out)
{
    const tn_tree *was = read_past(b, past);
    const tn_tree *base = was != NULL ? tn_tree_at(was, "data.index_base") : NULL;
    const bool found = base != NULL && base->kind == TN_TREE_SCALAR &&
                       (strcmp(base->text, "0") == 0 || strcmp(base->text, "1") == 0);
    *out = found ? (uint32_t)(base->text[0] - '0') : 0;
    return found;
}
