/* sequences.c - the section `sequences`: its table, its checks, and what slots get of it. */
#include "train/config/sequences.h"

#include "base/core/arena.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "io/schema/dataopts.h"

#include <stdio.h>
#include <string.h>

enum { LEN_MAX = 1024, NAME_BYTES = 100 };

static const tn_field sequence_fields[] = {
    TN_FIELD_STRS(tn_sequence_opts, slots, "~", "lists of one length in each row"),
    TN_FIELD_STRS(tn_sequence_opts, target, "~", "slots that the first of these are paired with"),
    TN_FIELD_U32(tn_sequence_opts, max_len, "50", 1, LEN_MAX, "values", "positions that are kept"),
    TN_FIELD_CHOICE(tn_sequence_opts, keep, "last", tn_keep_words, "which ones"),
    TN_FIELD_CHOICE(tn_sequence_opts, uneven, "error", tn_uneven_words,
                    "lists of several lengths: a fault of the row, or cut to the shortest"),
    TN_FIELD_END,
};

static bool check_name(const tn_tree *t, const tn_binder *b)
{
    bool good = t->key[0] != '\0' && strlen(t->key) <= NAME_BYTES;
    for (const char *c = t->key; *c != '\0'; c++) {
        good = good && *c != '.' && *c != ' ';
    }
    if (!good) {
        tn_diag_error(b->diag, &t->key_at,
                      "a sequence needs a name of 1 to %d bytes without dots and spaces",
                      NAME_BYTES);
    }
    return good;
}

static bool check_counts(const tn_sequence_opts *s, const tn_binder *b)
{
    if (s->slots.n == 0) {
        tn_diag_error(b->diag, s->at, "sequence '%s' needs 'slots', the names of its lists",
                      s->name);
        return false;
    }
    if (s->target.n > s->slots.n) {
        tn_diag_error(b->diag, s->at,
                      "sequence '%s' has %u targets for %u slots: they are paired by place",
                      s->name, s->target.n, s->slots.n);
        return false;
    }
    return true;
}

tn_sequences tn_sequences_read(const tn_tree *section, const tn_binder *b)
{
    if (tn_tree_is_null(section)) {
        return (tn_sequences){0};
    }
    if (section->kind != TN_TREE_MAP) {
        tn_diag_error(b->diag, &section->at, "'sequences' is a map of names to {slots: [..], ..}");
        return (tn_sequences){0};
    }
    tn_sequence_opts *item = TN_NEW_ARRAY(b->arena, tn_sequence_opts, tn_tree_count(section));
    tn_sequences out = {.item = item};
    for (const tn_tree *t = section->first; t != NULL; t = t->next) {
        const uint32_t faults = b->diag->n_errors;
        tn_sequence_opts *s = &item[out.n];
        if (t->kind != TN_TREE_MAP) {
            tn_diag_error(b->diag, &t->at, "sequence '%s' is a map: {slots: [..], target: [..]}",
                          t->key);
            continue;
        }
        tn_binder inner = *b;
        char path[NAME_BYTES + sizeof "sequences."];
        (void)snprintf(path, sizeof path, "sequences.%s", t->key);
        inner.path = tn_tree_text(b->arena, path, strlen(path));
        tn_fields_bind(&inner, sequence_fields, t, s);
        s->name = t->key;
        s->at = &t->key_at;
        if (check_name(t, b) && b->diag->n_errors == faults && check_counts(s, b)) {
            out.n++;
        }
    }
    return out;
}

/* ---- what slots get ---- */

typedef struct applying {
    const tn_binder *b;
    tn_tree *slots; /* a list of maps, which is written to */
} applying;

/* Writes {name: item} for a slot that is said by its name alone. */
static void name_all(const applying *a)
{
    for (tn_tree *t = a->slots->first; t != NULL; t = t->next) {
        if (t->kind == TN_TREE_SCALAR) {
            tn_tree *name = tn_tree_scalar(a->b->arena, t->text, t->at);
            t->kind = TN_TREE_MAP;
            t->text = NULL;
            tn_tree_put(a->b->arena, t, "name", name);
        }
    }
}

static tn_tree *find_slot(const applying *a, const char *name)
{
    for (tn_tree *t = a->slots != NULL ? a->slots->first : NULL; t != NULL; t = t->next) {
        const tn_tree *called = tn_tree_get(t, "name");
        if (called != NULL && called->kind == TN_TREE_SCALAR && strcmp(called->text, name) == 0) {
            return t;
        }
    }
    return NULL;
}

static void report_no_slot(const applying *a, const tn_sequence_opts *s, const char *name)
{
    const uint32_t most = a->slots != NULL ? tn_tree_count(a->slots) : 0;
    const char **names = TN_NEW_ARRAY(a->b->arena, const char *, most + 1);
    uint32_t n = 0;
    for (const tn_tree *t = most > 0 ? a->slots->first : NULL; t != NULL; t = t->next) {
        const tn_tree *called = tn_tree_get(t, "name");
        if (called != NULL && called->kind == TN_TREE_SCALAR) {
            names[n++] = called->text;
        }
    }
    const char *near = tn_nearest(name, names, n);
    tn_diag_error(a->b->diag, s->at, "sequence '%s' names slot '%s', which 'slots' has not%s%s%s",
                  s->name, name, near != NULL ? " (did you mean '" : "", near != NULL ? near : "",
                  near != NULL ? "'?)" : "");
}

/* Gives a member of the slot's map a value; what the slot says itself must be the same. */
static void set_member(const applying *a, const tn_sequence_opts *s, tn_tree *slot, const char *key,
                       const char *value)
{
    const tn_tree *there = tn_tree_get(slot, key);
    if (there == NULL) {
        tn_tree_put(a->b->arena, slot, key, tn_tree_scalar(a->b->arena, value, slot->at));
    } else if (there->kind != TN_TREE_SCALAR || strcmp(there->text, value) != 0) {
        tn_diag_error(
            a->b->diag, &there->at,
            "'%s' of a slot of sequence '%s' is %s, as of the sequence: its slots are cut "
            "together",
            key, s->name, value);
    }
}

static void apply_slot(const applying *a, const tn_sequence_opts *s, const char *name)
{
    char max_len[16];
    tn_tree *slot = find_slot(a, name);
    if (slot == NULL) {
        report_no_slot(a, s, name);
        return;
    }
    const tn_tree *other = tn_tree_get(slot, "sequence");
    if (other != NULL && other->kind == TN_TREE_SCALAR && strcmp(other->text, s->name) != 0) {
        tn_diag_error(a->b->diag, s->at, "slot '%s' is in sequence '%s' and in '%s'", name,
                      other->text, s->name);
        return;
    }
    (void)snprintf(max_len, sizeof max_len, "%u", s->max_len);
    set_member(a, s, slot, "sequence", s->name);
    set_member(a, s, slot, "max_len", max_len);
    set_member(a, s, slot, "keep", tn_keep_words[s->keep]);
    set_member(a, s, slot, "uneven", tn_uneven_words[s->uneven]);
}

static void apply_one(const applying *a, const tn_sequence_opts *s)
{
    for (uint32_t i = 0; i < s->slots.n; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(s->slots.item[i], s->slots.item[j]) == 0) {
                tn_diag_error(a->b->diag, s->at, "sequence '%s' names slot '%s' twice", s->name,
                              s->slots.item[i]);
                return;
            }
        }
        apply_slot(a, s, s->slots.item[i]);
    }
    for (uint32_t i = 0; i < s->target.n; i++) {
        if (find_slot(a, s->target.item[i]) == NULL) {
            report_no_slot(a, s, s->target.item[i]);
        }
    }
}

/* Refuses what the section says of its slots where a slot of none says it. */
static void refuse_others(const tn_tree *slots, const tn_sequences *all, const tn_binder *b)
{
    static const char *const keys[] = {"sequence", "uneven"};
    for (const tn_tree *t = slots != NULL ? slots->first : NULL; t != NULL; t = t->next) {
        const tn_tree *name = tn_tree_get(t, "name");
        bool named = false;
        for (uint32_t i = 0; name != NULL && name->text != NULL && i < all->n; i++) {
            named |= tn_strs_has(&all->item[i].slots, name->text);
        }
        for (uint32_t k = 0; k < 2 && !named; k++) {
            const tn_tree *said = tn_tree_get(t, keys[k]);
            if (!tn_tree_is_null(said)) {
                tn_diag_error(b->diag, &said->at, "'%s' is of slots that 'sequences' names",
                              keys[k]);
                tn_diag_hint(b->diag, "sequences: {NAME: {slots: [..], target: [..]}}");
            }
        }
    }
}

const tn_tree *tn_sequences_apply(const tn_tree *config, const tn_binder *b)
{
    const tn_tree *section = tn_tree_get(config, "sequences");
    const uint32_t faults = b->diag->n_errors;
    if (tn_tree_is_null(section)) {
        refuse_others(tn_tree_get(config, "slots"), &(tn_sequences){0}, b);
        return b->diag->n_errors == faults ? config : NULL;
    }
    const tn_sequences all = tn_sequences_read(section, b);
    tn_tree *changed = tn_tree_new(b->arena, TN_TREE_MAP, config->at);
    applying a = {.b = b};
    for (const tn_tree *t = config->first; t != NULL; t = t->next) {
        tn_tree *copy = tn_tree_copy(b->arena, t);
        tn_tree_append(changed, copy);
        if (strcmp(t->key, "slots") == 0 && t->kind == TN_TREE_LIST) {
            a.slots = copy;
            name_all(&a);
        }
    }
    for (uint32_t i = 0; i < all.n; i++) {
        apply_one(&a, &all.item[i]);
    }
    refuse_others(a.slots, &all, b);
    return b->diag->n_errors == faults ? changed : NULL;
}
