/* label.h - what a label is: the option `data.label`, and from text to 0 .. 1. */
#ifndef TN_IO_LABEL_H
#define TN_IO_LABEL_H

#include "config/values.h"
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tn_binder;
struct tn_tree;

typedef struct tn_label_rule {
    const char *column;
    bool none;
    double threshold;  /* NAN: none; above it is a click */
    uint32_t n_values; /* 0: labels are numbers */
    const char *const *text;
    const float *value;
} tn_label_rule;

/* NULL tree: column `label`. Faults go to b->diag; then some rule is returned all the same. */
const tn_label_rule *tn_label_rule_read(const struct tn_tree *tree, const struct tn_binder *b);

/* False: not a label. */
bool tn_label_of_number(const tn_label_rule *rule, double y, float *out);
/* For what most labels are: 0 or 1, under a rule that leaves them as they are. */
static inline bool tn_label_of_bit(const tn_label_rule *rule, char c, float *out)
{
    bool unchanged = rule->n_values == 0 && isnan(rule->threshold);
    *out = c == '1' ? 1.0F : 0.0F;
    return unchanged && (c == '0' || c == '1');
}

bool tn_label_of_text(const tn_label_rule *rule, const char *text, size_t size, float *out);

#endif
