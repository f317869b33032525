/* label.c - the option `data.label`, and from text to 0 .. 1. */
#include "io/schema/label.h"

#include "base/core/arena.h"
#include "base/core/number.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "io/schema/schema.h"

#include <math.h>
#include <string.h>

static const tn_field unit_number = {
    .kind = TN_KIND_F64, .key = "values", .min = 0, .max = 1, .unit = ""};
static const tn_field any_number = {.kind = TN_KIND_F64,
                                    .key = "threshold",
                                    .min = -(double)INFINITY,
                                    .max = (double)INFINITY,
                                    .unit = ""};

static void read_values(tn_label_rule *rule, const tn_tree *map, const tn_binder *b)
{
    uint32_t n = tn_tree_count(map);
    if (map->kind != TN_TREE_MAP || n == 0) {
        tn_diag_error(b->diag, &map->at, "expected texts and their labels, as in {yes: 1, no: 0}");
        return;
    }
    const char **text = TN_NEW_ARRAY(b->arena, const char *, n);
    float *value = TN_NEW_ARRAY(b->arena, float, n);
    uint32_t i = 0;
    for (const tn_tree *t = map->first; t != NULL; t = t->next) {
        double y = 0;
        (void)tn_read_scalar(b, &unit_number, t, &y);
        text[i] = t->key;
        value[i++] = (float)y;
    }
    rule->n_values = n;
    rule->text = text;
    rule->value = value;
}

static void read_member(tn_label_rule *rule, const tn_tree *t, const tn_binder *b)
{
    if (strcmp(t->key, "column") == 0 && t->kind == TN_TREE_SCALAR) {
        rule->column = t->text;
    } else if (strcmp(t->key, "values") == 0) {
        read_values(rule, t, b);
    } else if (strcmp(t->key, "threshold") == 0) {
        (void)tn_read_scalar(b, &any_number, t, &rule->threshold);
    } else {
        tn_diag_error(b->diag, &t->key_at, "expected column, values or threshold, not '%s'",
                      t->key);
    }
}

const tn_label_rule *tn_label_rule_read(const tn_tree *tree, const tn_binder *b)
{
    tn_label_rule *rule = TN_NEW(b->arena, tn_label_rule);
    *rule = (tn_label_rule){.column = "label", .threshold = (double)NAN};
    if (tn_tree_is_null(tree)) {
        return rule;
    }
    if (tree->kind == TN_TREE_SCALAR) {
        rule->none = !tree->quoted && strcmp(tree->text, "none") == 0;
        rule->column = rule->none ? NULL : tree->text;
        return rule;
    }
    if (tree->kind != TN_TREE_MAP) {
        tn_diag_error(b->diag, &tree->at, "expected a column, {column: ..}, or none");
        return rule;
    }
    for (const tn_tree *t = tree->first; t != NULL; t = t->next) {
        read_member(rule, t, b);
    }
    if (rule->n_values > 0 && !isnan(rule->threshold)) {
        tn_diag_error(b->diag, &tree->at, "values and threshold exclude each other");
    }
    return rule;
}

bool tn_label_of_number(const tn_label_rule *rule, double y, float *out)
{
    if (rule->n_values > 0) {
        char text[TN_NUMBER_TEXT_MAX] = "";
        return tn_label_of_text(rule, text, tn_write_f64(text, y), out);
    }
    if (!isfinite(y)) {
        return false;
    }
    if (!isnan(rule->threshold)) {
        *out = y > rule->threshold ? 1.0F : 0.0F;
        return true;
    }
    if (!(y >= 0 && y <= 1) && y != -1) {
        return false;
    }
    *out = y == -1 ? 0.0F : (float)y;
    return true;
}

bool tn_label_of_text(const tn_label_rule *rule, const char *text, size_t size, float *out)
{
    for (uint32_t i = 0; i < rule->n_values; i++) {
        if (strlen(rule->text[i]) == size && memcmp(rule->text[i], text, size) == 0) {
            *out = rule->value[i];
            return true;
        }
    }
    if (rule->n_values > 0) {
        return false;
    }
    if (size == 1 && (text[0] == '0' || text[0] == '1') && isnan(rule->threshold)) {
        *out = (float)(text[0] - '0');
        return true;
    }
    double y;
    return tn_read_f64(text, size, &y) == TN_NUM_OK && tn_label_of_number(rule, y, out);
}
