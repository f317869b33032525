/* value_sizes.c - scales rules by the sizes of values, of groups and of single keys. */
#include "train/step/value_sizes.h"

#include "base/core/arena.h"
#include "base/core/number.h"
#include "base/keys/record.h"
#include "base/math/key.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "io/schema/schema.h"
#include "ps/optim/optim.h"
#include "ps/optim/rule.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SMALLEST 1e-15
#define LARGEST 1e15

/* First values stay as they are for values up to this size: deep models learn sooner when rows
 * differ from the start (docs/models.md). Above, a first value counts as much as one at this size,
 * lest layers begin where they saturate. */
#define INIT_SIZE 16

/* A key whose size is not that of its slot. */
typedef struct sized_key {
    uint64_t key;
    uint32_t group;
    double size;
} sized_key;

typedef struct sizing {
    const tn_schema *schema;
    const tn_binder *b;
    double *group; /* 0: nothing is said */
    sized_key *key;
    uint32_t n, room;
} sizing;

/* Returns 0 after a report when there is none. */
static double read_size(const sizing *s, const tn_tree *tree)
{
    double size = 0;
    const bool is_number = tree->kind == TN_TREE_SCALAR &&
                           tn_read_f64(tree->text, strlen(tree->text), &size) == TN_NUM_OK;
    if (is_number && size >= SMALLEST && size <= LARGEST) {
        return size;
    }
    tn_diag_error(s->b->diag, &tree->at, "a size of values is a number from 1e-15 to 1e15%s%s%s",
                  tree->kind == TN_TREE_SCALAR ? ", not '" : "",
                  tree->kind == TN_TREE_SCALAR ? tree->text : "",
                  tree->kind == TN_TREE_SCALAR ? "'" : "");
    return 0;
}

static const tn_slot_spec *find_slot(const tn_schema *schema, const char *name)
{
    for (uint32_t i = 0; i < schema->n_slots; i++) {
        if (strcmp(schema->slot[i]->name, name) == 0) {
            return schema->slot[i];
        }
    }
    return NULL;
}

static void say_group(const sizing *s, const tn_slot_spec *slot, double size)
{
    double *own = &s->group[slot->group];
    *own = size > *own ? size : *own;
}

static void read_key(sizing *s, const tn_slot_spec *slot, const tn_tree *tree)
{
    uint64_t sign = 0;
    if (tn_read_u64(tree->key, strlen(tree->key), &sign) != TN_NUM_OK) {
        tn_diag_error(s->b->diag, &tree->key_at, "'%s' is neither an index of slot '%s' nor others",
                      tree->key, slot->name);
        return;
    }
    const double size = read_size(s, tree);
    TN_ASSERT(s->n < s->room);
    s->key[s->n++] = (sized_key){tn_key_of(sign, slot->salt), slot->group, size};
}

/* SIZE, or {others: SIZE, INDEX: SIZE, ..} */
static void read_slot(sizing *s, const tn_slot_spec *slot, const tn_tree *tree)
{
    if (tree->kind != TN_TREE_MAP) {
        say_group(s, slot, read_size(s, tree));
        return;
    }
    for (const tn_tree *at = tree->first; at != NULL; at = at->next) {
        if (strcmp(at->key, "others") == 0) {
            say_group(s, slot, read_size(s, at));
        } else {
            read_key(s, slot, at);
        }
    }
}

static uint32_t count(const tn_tree *sizes)
{
    uint32_t n = 0;
    for (const tn_tree *slot = sizes->first; slot != NULL; slot = slot->next) {
        for (const tn_tree *at = slot->first; at != NULL; at = at->next) {
            n++;
        }
    }
    return n;
}

static void scale_init(tn_init *init, double size)
{
    const double by = size <= 1 ? size : size > INIT_SIZE ? size / INIT_SIZE : 1;
    init->a /= by;
    init->b /= by;
}

/* The rule of one segment, for values of this size. */
static tn_rule scaled(const sizing *s, const tn_rule *rule, const tn_tree *at, double size)
{
    tn_rule out = *rule;
    const size_t bytes = rule->optim->choice.size;
    if (rule->optim->scale == NULL || tn_rule_common(rule)->l2_mode != TN_L2_TOUCHED) {
        tn_diag_error(s->b->diag, &at->at,
                      "train.value_sizes needs 'type: adagrad' with 'l2_mode: touched' in "
                      "train.sparse");
        return out;
    }
    void *opts = tn_arena_alloc(s->b->arena, 1, bytes, _Alignof(max_align_t));
    memcpy(opts, rule->opts, bytes);
    rule->optim->scale(opts, size);
    TN_ASSERT(size > 0 && tn_rule_common(rule)->lr >= 0);
    out.opts = opts;
    scale_init(&out.init, size);
    return out;
}

static int by_group_and_size(const void *x, const void *y)
{
    const sized_key *a = x;
    const sized_key *b = y;
    if (a->group != b->group) {
        return a->group < b->group ? -1 : 1;
    }
    return (a->size > b->size) - (a->size < b->size);
}

static int by_key(const void *x, const void *y)
{
    const tn_key_rule *a = x;
    const tn_key_rule *b = y;
    return (a->key > b->key) - (a->key < b->key);
}

/* Keys of one group and size share rules. */
static void add_key_rules(const sizing *s, const tn_tree *sizes, tn_rule *rule, tn_rules *out)
{
    tn_key_rule *own = TN_NEW_ARRAY(s->b->arena, tn_key_rule, s->n + 1);
    uint32_t set = out->layout->n_groups;
    qsort(s->key, s->n, sizeof *s->key, by_group_and_size);
    for (uint32_t i = 0; i < s->n; i++) {
        const sized_key *k = &s->key[i];
        const bool is_new = i == 0 || by_group_and_size(k - 1, k) != 0;
        const uint32_t n_segments = tn_record_of(out->layout, k->group)->n_segments;
        set += is_new && i > 0;
        for (uint32_t j = 0; is_new && j < n_segments && k->size > 0; j++) {
            rule[(size_t)set * TN_SEGMENTS_MAX + j] =
                scaled(s, &out->rule[(size_t)k->group * TN_SEGMENTS_MAX + j], sizes, k->size);
        }
        own[i] = (tn_key_rule){.key = k->key, .group = set};
    }
    TN_ASSERT(set < out->layout->n_groups + s->n || s->n == 0);
    qsort(own, s->n, sizeof *own, by_key);
    out->n_keys = s->n;
    out->key = own;
}

void tn_value_sizes_apply(const tn_tree *sizes, const tn_schema *schema, const tn_binder *b,
                          tn_rules *rules)
{
    if (tn_tree_is_null(sizes)) {
        return;
    }
    if (sizes->kind != TN_TREE_MAP) {
        tn_diag_error(b->diag, &sizes->at, "'value_sizes' is a map {SLOT: SIZE, ..}");
        return;
    }
    const uint32_t n_groups = rules->layout->n_groups;
    sizing s = {.schema = schema, .b = b, .room = count(sizes)};
    s.group = TN_NEW_ARRAY(b->arena, double, n_groups + 1);
    s.key = TN_NEW_ARRAY(b->arena, sized_key, s.room + 1);
    for (const tn_tree *at = sizes->first; at != NULL; at = at->next) {
        const tn_slot_spec *slot = find_slot(schema, at->key);
        if (slot == NULL) {
            tn_diag_error(b->diag, &at->key_at, "there is no slot '%s' that makes keys", at->key);
            continue;
        }
        read_slot(&s, slot, at);
    }
    tn_rule *rule = TN_NEW_ARRAY(b->arena, tn_rule, (size_t)(n_groups + s.n) * TN_SEGMENTS_MAX);
    memcpy(rule, rules->rule, (size_t)n_groups * TN_SEGMENTS_MAX * sizeof *rule);
    add_key_rules(&s, sizes, rule, rules); /* by the rules of groups as they were */
    for (uint32_t g = 0; g < n_groups; g++) {
        for (uint32_t j = 0; j < tn_record_of(rules->layout, g)->n_segments && s.group[g] > 0;
             j++) {
            tn_rule *at = &rule[(size_t)g * TN_SEGMENTS_MAX + j];
            *at = scaled(&s, at, sizes, s.group[g]);
        }
    }
    rules->rule = rule;
}
