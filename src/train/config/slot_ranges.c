/* slot_ranges.c - writes out ranges like C{1..26} in a tree. */
#include "train/config/slot_ranges.h"

#include "base/core/arena.h"
#include "base/core/number.h"

#include <stdio.h>
#include <string.h>

typedef struct range {
    const char *braces; /* "{1..13}" in the text */
    size_t size;        /* bytes of `text` */
    uint64_t first, last;
    int width; /* digits, zeros in front included; 0: as many as needed */
} range;

typedef struct expander {
    tn_arena *arena;
    tn_diag *diag;
    uint64_t n_nodes;
} expander;

/* False: reported, or no braces at all (braces NULL). */
static bool find_range(const expander *e, const char *text, const tn_origin *at, range *out)
{
    *out = (range){.braces = strchr(text, '{')};
    if (out->braces == NULL) {
        return false;
    }
    const char *first = out->braces + 1;
    size_t n_first = strspn(first, "0123456789");
    const char *last = first + n_first + 2;
    bool dots = strncmp(first + n_first, "..", 2) == 0;
    size_t n_last = dots ? strspn(last, "0123456789") : 0;
    bool good = dots && last[n_last] == '}' &&
                tn_read_u64(first, n_first, &out->first) == TN_NUM_OK &&
                tn_read_u64(last, n_last, &out->last) == TN_NUM_OK;
    if (!good || out->last < out->first || out->last - out->first >= TN_NAME_RANGE_MAX) {
        tn_diag_error(e->diag, at, "'%s' has no range such as {1..13}, of %d names at most", text,
                      (int)TN_NAME_RANGE_MAX);
        return false;
    }
    out->size = (size_t)(last + n_last + 1 - out->braces);
    out->width = *first == '0' && n_first > 1 ? (int)n_first : 0;
    return true;
}

/* Returns the text with `number` in place of the braces, wherever they are. */
static const char *with_number(const expander *e, const char *text, const range *r, uint64_t number)
{
    TN_ASSERT(r->size > 0); /* else the text never ends */
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%0*llu", r->width, (unsigned long long)number);
    tn_text out = {0};
    while (*text != '\0') {
        if (strncmp(text, r->braces, r->size) == 0) {
            tn_text_adds(&out, digits);
            text += r->size;
        } else {
            tn_text_addc(&out, *text++);
        }
    }
    const char *copy = tn_tree_text(e->arena, tn_text_str(&out), out.size);
    tn_text_done(&out);
    return copy;
}

static uint64_t count_nodes(const tn_tree *tree)
{
    uint64_t n = 1;
    for (const tn_tree *item = tree->first; item != NULL; item = item->next) {
        n += count_nodes(item);
    }
    return n;
}

/* False, and reported: this range makes more than is sane. */
static bool has_room(expander *e, const tn_tree *item, const range *r)
{
    TN_ASSERT(r->first <= r->last);
    e->n_nodes += count_nodes(item) * (r->last - r->first + 1);
    if (e->n_nodes > TN_NAME_RANGE_NODES_MAX) {
        tn_diag_error(e->diag, &item->at, "ranges make more than %d values",
                      (int)TN_NAME_RANGE_NODES_MAX);
        return false;
    }
    return true;
}

/* The item of one number: its own text when it is one, else those of its members. */
static tn_tree *one_of_range(const expander *e, const tn_tree *item, const range *r,
                             uint64_t number)
{
    tn_tree *copy = tn_tree_copy(e->arena, item);
    if (copy->kind == TN_TREE_SCALAR) {
        copy->text = with_number(e, copy->text, r, number);
    }
    for (tn_tree *member = copy->first; member != NULL; member = member->next) {
        if (member->kind == TN_TREE_SCALAR) {
            member->text = with_number(e, member->text, r, number);
        }
    }
    return copy;
}

static const tn_tree *name_of(const tn_tree *item)
{
    const tn_tree *name = item->kind == TN_TREE_MAP ? tn_tree_get(item, "name") : item;
    return name != NULL && name->kind == TN_TREE_SCALAR ? name : NULL;
}

static void expand_item(expander *e, const tn_tree *item, tn_tree *list)
{
    const tn_tree *name = name_of(item);
    range r = {0};
    if (name == NULL || !find_range(e, name->text, &name->at, &r)) {
        tn_tree_append(list, tn_tree_copy(e->arena, item));
        return;
    }
    bool room = has_room(e, item, &r);
    for (uint64_t i = r.first; room && i <= r.last; i++) {
        tn_tree_append(list, one_of_range(e, item, &r, i));
    }
}

static void expand_key(expander *e, const tn_tree *item, tn_tree *map)
{
    range r = {0};
    if (!find_range(e, item->key, &item->key_at, &r)) {
        tn_tree_put(e->arena, map, item->key, tn_tree_copy(e->arena, item));
        return;
    }
    bool room = has_room(e, item, &r);
    for (uint64_t i = r.first; room && i <= r.last; i++) {
        tn_tree *copy = tn_tree_copy(e->arena, item);
        tn_tree_put(e->arena, map, with_number(e, item->key, &r, i), copy);
    }
}

tn_tree *tn_slot_ranges_expand(tn_arena *arena, tn_diag *diag, const tn_tree *config)
{
    tn_tree *copy = tn_tree_copy(arena, config);
    const tn_tree *slots = tn_tree_get(config, "slots");
    if (slots == NULL || (slots->kind != TN_TREE_LIST && slots->kind != TN_TREE_MAP)) {
        return copy;
    }
    expander e = {.arena = arena, .diag = diag};
    tn_tree *expanded = tn_tree_new(arena, slots->kind, slots->at);
    expanded->key_at = slots->key_at;
    for (const tn_tree *item = slots->first; item != NULL; item = item->next) {
        if (slots->kind == TN_TREE_LIST) {
            expand_item(&e, item, expanded);
        } else {
            expand_key(&e, item, expanded);
        }
    }
    tn_tree_put(arena, copy, "slots", expanded);
    return copy;
}
