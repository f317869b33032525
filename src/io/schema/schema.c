/* schema.c - from options to what parsers read: slots, groups, numbers, label. */
#include "io/schema/schema.h"

#include "base/core/arena.h"
#include "base/core/number.h"
#include "base/core/text.h"
#include "base/keys/record.h"
#include "base/math/key.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "io/schema/dataopts.h"

#include <string.h>

enum {
    NAME_MAX_BYTES = 255,
    SPEC_BYTES = 192 /* bytes in all tables of columns for a slot and its two names */
};

/* The schema under construction; `s` is what will be handed out. */
typedef struct making {
    tn_schema *s;
    tn_slot_spec *spec;
    tn_share_group *group;
    const tn_binder *b;
} making;

static const tn_origin data_origin = {.source = "data"};

static bool is_name(const char *name)
{
    size_t size = strlen(name);
    for (size_t i = 0; i < size; i++) {
        char c = name[i];
        bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!letter && !(c >= '0' && c <= '9') && c != '_' && c != '.' && c != '-') {
            return false;
        }
    }
    return size >= 1 && size <= NAME_MAX_BYTES;
}

static void check_name(const making *m, const tn_origin *at, const char *what, const char *name)
{
    if (!is_name(name)) {
        tn_diag_error(m->b->diag, at, "%s '%s' is not 1 to %d of A-Z a-z 0-9 _ . -", what, name,
                      NAME_MAX_BYTES);
    }
}

/* A setting of one byte; 0 when it is not set. */
static char one_byte(const making *m, const tn_origin *at, const char *what, const char *text)
{
    if (text == NULL) {
        return 0;
    }
    if (strlen(text) != 1 || text[0] == '\n' || text[0] == '\r') {
        tn_diag_error(m->b->diag, at, "%s must be one byte, not '%s'", what, text);
    }
    return text[0];
}

static uint16_t group_of(making *m, const char *name)
{
    for (uint32_t g = 0; g < m->s->n_groups; g++) {
        if (strcmp(m->group[g].name, name) == 0) {
            return (uint16_t)g;
        }
    }
    m->group[m->s->n_groups] = (tn_share_group){.name = name, .salt = tn_salt(name)};
    return (uint16_t)m->s->n_groups++;
}

/* A contradiction between the type, the way and the transform of a slot; NULL: there is none. */
static const char *clash_of(const tn_slot_spec *spec)
{
    bool sign = tn_transform_is_sign(&spec->transform);
    bool date = spec->type == TN_SIGN_STR && tn_transform_is_date(&spec->transform);
    bool text = spec->type == TN_SIGN_HEX || spec->type == TN_SIGN_STR;
    if (text && tn_spec_is_number(spec) && !(date && spec->as == TN_AS_KEY)) {
        return "hex and str are no numbers: no transform (but of str parts of a date), only 'as: "
               "key'";
    }
    if (spec->as != TN_AS_KEY && sign) {
        return "ln2_bucket, buckets and parts of a date make keys: they need 'as: key'";
    }
    if (spec->as == TN_AS_KEY && !sign && spec->transform.kind != TN_TRANSFORM_IDENTITY) {
        return "this transform makes a number: it needs 'as: value' or 'as: weighted'";
    }
    if (spec->as == TN_AS_WEIGHTED && spec->transform.kind == TN_TRANSFORM_ZSCORE &&
        isnan(spec->transform.a)) {
        return "running zscore needs 'as: value'";
    }
    if (spec->values != NULL && tn_spec_is_number(spec)) {
        return "values belong to keys, not to numbers";
    }
    return NULL;
}

static void read_absent(const making *m, tn_slot_spec *spec, const tn_tree *tree)
{
    static const tn_field number = {.kind = TN_KIND_F64,
                                    .key = "absent",
                                    .min = -3.4028234663852886e38,
                                    .max = 3.4028234663852886e38,
                                    .unit = ""};
    if (tn_tree_is_null(tree)) {
        return;
    }
    if (spec->as == TN_AS_VALUE) {
        double value = 0;
        if (tn_read_scalar(m->b, &number, tree, &value)) {
            spec->absent = (float)value;
        }
        return;
    }
    bool scalar = tree->kind == TN_TREE_SCALAR;
    spec->absent_key = scalar && strcmp(tree->text, "key") == 0;
    if (!spec->absent_key && !(scalar && strcmp(tree->text, "none") == 0)) {
        tn_diag_error(m->b->diag, &tree->at, "expected none or key");
    } else if (spec->absent_key && tn_spec_is_number(spec) && spec->as != TN_AS_KEY) {
        tn_diag_error(m->b->diag, &tree->at, "absent: key needs 'as: key'");
    }
}

static void read_range(const making *m, tn_slot_spec *spec, const tn_slot_opts *o,
                       const tn_origin *at)
{
    spec->range_from = 0;
    spec->range_to = UINT64_MAX;
    if (o->range.n == 0) {
        return;
    }
    if (o->range.n != 2 || !(o->range.item[0] < o->range.item[1]) ||
        o->range.item[0] != floor(o->range.item[0]) ||
        o->range.item[1] != floor(o->range.item[1])) {
        tn_diag_error(m->b->diag, at, "range must be [a, b) of whole numbers with a < b");
        return;
    }
    spec->range_from = (uint64_t)o->range.item[0];
    spec->range_to = o->range.item[1] < 0x1p64 ? (uint64_t)o->range.item[1] - 1 : UINT64_MAX;
}

/* Place, group and salt. */
static void place_spec(making *m, tn_slot_spec *spec, const tn_slot_opts *o)
{
    tn_schema *s = m->s;
    if (spec->as == TN_AS_VALUE) {
        spec->slot = TN_NOWHERE;
        spec->numeric = s->n_numeric;
        s->n_numeric += tn_spec_cols(spec);
        s->n_numbers++;
        s->vectors = s->vectors || spec->width > 0;
        spec->group = UINT16_MAX;
        return;
    }
    spec->numeric = TN_NOWHERE;
    spec->slot = s->n_slots++;
    spec->group = group_of(m, o->share != NULL ? o->share : o->name);
    spec->salt = m->group[spec->group].salt;
}

static tn_fast_path fast_path_of(const tn_slot_spec *spec)
{
    if (spec->list != 0 || spec->values != NULL || spec->width > 0) {
        return TN_FAST_PATH_NONE;
    }
    if (spec->as == TN_AS_KEY && spec->type == TN_SIGN_INT && !spec->drop_zero &&
        spec->transform.kind == TN_TRANSFORM_LN2_BUCKET) {
        return TN_FAST_PATH_LN2;
    }
    if (!spec->plain_key || spec->type == TN_SIGN_FLOAT) {
        return TN_FAST_PATH_TOKEN;
    }
    return spec->type == TN_SIGN_HEX   ? TN_FAST_PATH_HEX
           : spec->type == TN_SIGN_STR ? TN_FAST_PATH_TEXT
                                       : TN_FAST_PATH_WHOLE;
}

/* A number that nothing is said of: its bucket where it is a key, its distance from the mean where
 * it is an input. */
static void usual_transform(tn_transform *t, tn_slot_as as, tn_sign_type type)
{
    if (as == TN_AS_KEY && type == TN_SIGN_FLOAT) {
        t->kind = TN_TRANSFORM_BUCKETS;
    } else if (as == TN_AS_VALUE) {
        *t = (tn_transform){
            .kind = TN_TRANSFORM_ZSCORE, .a = (double)NAN, .freeze_rows = TN_ZSCORE_FREEZE_ROWS};
    }
}

uint32_t tn_slot_as_of(const tn_slot_opts *slot)
{
    return slot->type == TN_TYPE_VECTOR ? (uint32_t)TN_AS_VALUE : slot->as;
}

/* Makes a spec one of a vector, where its options say so. */
static void make_vector(const making *m, tn_slot_spec *spec, const tn_slot_opts *o,
                        const tn_origin *at)
{
    if (o->type != TN_TYPE_VECTOR) {
        return;
    }
    spec->width = o->dim != TN_UNSET_U32 ? o->dim : 0;
    if (spec->width == 0 || o->as == TN_AS_WEIGHTED || o->values != NULL) {
        tn_diag_error(m->b->diag, at, "slot '%s' is a vector: it %s", o->name,
                      spec->width == 0 ? "needs 'dim', how many numbers it has"
                                       : "has neither 'as: weighted' nor 'values'");
    } else if (spec->width > TN_COLUMNS_MAX - m->s->n_numeric) {
        tn_diag_error(m->b->diag, at,
                      "slot '%s' is a vector, with which numbers have more than %d "
                      "columns",
                      o->name, TN_COLUMNS_MAX);
        spec->width = 1;
    }
}

/* Refuses what would take values out of a list of a sequence, or add some. */
static void check_sequence(const making *m, const tn_slot_spec *spec, const tn_slot_opts *o,
                           const tn_origin *at)
{
    if (spec->sequence == NULL) {
        return;
    }
    const bool absent = !tn_tree_is_null(o->absent) && o->absent->kind == TN_TREE_SCALAR &&
                        strcmp(o->absent->text, "none") != 0;
    const char *clash = spec->as != TN_AS_KEY                    ? "has 'as: key' alone"
                        : spec->duplicates != TN_DUPLICATES_KEEP ? "has no 'duplicates'"
                        : spec->drop_zero                        ? "has no 'drop_zero'"
                        : absent                                 ? "has no 'absent: key'"
                                                                 : NULL;
    if (clash != NULL) {
        tn_diag_error(m->b->diag, at,
                      "slot '%s' is part of sequence '%s', whose lists have one length: it %s",
                      o->name, o->sequence, clash);
    }
}

static void make_spec(making *m, uint32_t i, const tn_slot_opts *o, const tn_origin *at)
{
    tn_slot_spec *spec = &m->spec[i];
    *spec = (tn_slot_spec){
        .name = o->name,
        .column = o->column != NULL ? o->column : o->name,
        .type = o->type == TN_TYPE_VECTOR ? TN_SIGN_FLOAT : (tn_sign_type)o->type,
        .as = (tn_slot_as)tn_slot_as_of(o),
        .values = o->values,
        .max_len = o->max_len,
        .keep_last = o->keep == TN_KEEP_LAST,
        .sequence = o->sequence,
        .step_concat = o->step_pool == TN_STEP_CONCAT,
        .duplicates = o->duplicates,
        .drop_zero = o->drop_zero,
        .non_finite_absent = o->non_finite == TN_NON_FINITE_ABSENT,
        .field = o->field,
        .opts = o,
    };
    check_name(m, at, "slot name", o->name);
    if (o->share != NULL) {
        check_name(m, at, "share group", o->share);
    }
    (void)tn_transform_read(&spec->transform, o->transform, m->b);
    make_vector(m, spec, o, at);
    if (tn_tree_is_null(o->transform) && o->type != TN_TYPE_VECTOR) {
        usual_transform(&spec->transform, spec->as, spec->type);
    }
    const bool is_number = spec->as != TN_AS_KEY || spec->transform.kind == TN_TRANSFORM_BUCKETS;
    if (is_number && spec->type == TN_SIGN_ID) {
        spec->type = TN_SIGN_FLOAT; /* id is the default of keys; a number is a float */
    }
    const char *clash = clash_of(spec);
    if (clash != NULL) {
        tn_diag_error(m->b->diag, at, "slot '%s': %s", o->name, clash);
    }
    check_sequence(m, spec, o, at);
    const char *list = o->list != NULL ? o->list : m->s->data->list;
    spec->list = one_byte(m, at, "list", spec->as == TN_AS_KEY || spec->width > 0 ? list : NULL);
    read_absent(m, spec, o->absent);
    read_range(m, spec, o, at);
    spec->ruled =
        spec->as != TN_AS_VALUE && (spec->max_len > 0 || spec->sequence != NULL ||
                                    spec->duplicates != TN_DUPLICATES_KEEP || spec->absent_key);
    spec->plain_key = spec->as == TN_AS_KEY && !tn_spec_is_number(spec) && !spec->drop_zero;
    spec->fast_path = fast_path_of(spec);
    m->s->ruled = m->s->ruled || spec->ruled;
    place_spec(m, spec, o);
}

/* Makes the number beside the row that is the label or factor of a task. */
static void make_aside(making *m, uint32_t i, const tn_label_rule *label)
{
    static const tn_slot_opts none = {.as = TN_AS_VALUE};
    const tn_aside *a = &m->s->data->aside[i];
    tn_slot_spec *spec = &m->spec[m->s->n_specs - m->s->n_aside + i];
    *spec = (tn_slot_spec){
        .name = a->column,
        .column = a->column,
        .type = TN_SIGN_FLOAT,
        .as = TN_AS_VALUE,
        .transform = {.kind = TN_TRANSFORM_IDENTITY},
        .slot = TN_NOWHERE,
        .numeric = m->s->n_numeric + i,
        .group = UINT16_MAX,
        .absent = label != NULL ? NAN : 1,
        .non_finite_absent = true,
        .label = label,
        .weighs = label == NULL,
        .field = TN_UNSET_U32,
        .range_to = UINT64_MAX,
        .opts = &none,
    };
    spec->fast_path = fast_path_of(spec);
}

/* Returns whether an option has another value than it has by itself. */
static bool is_set(const tn_field *f, const tn_slot_opts *o, const tn_slot_opts *usual)
{
    tn_text now = {0};
    tn_text then = {0};
    tn_field_value_text(&now, f, o);
    tn_field_value_text(&then, f, usual);
    const bool set = strcmp(tn_text_str(&now), tn_text_str(&then)) != 0;
    tn_text_done(&now);
    tn_text_done(&then);
    return set;
}

/* Refuses what belongs to a column and its values, which a cross has not. An export says `absent:
 * none`. */
static void check_cross(const making *m, const tn_slot_opts *o, const tn_origin *at)
{
    static const char *const of_columns[] = {"column", "type",     "as",         "transform",
                                             "list",   "values",   "max_len",    "duplicates",
                                             "field",  "range",    "drop_zero",  "absent",
                                             "uneven", "sequence", "non_finite", NULL};
    tn_slot_opts usual;
    tn_tree *map = tn_tree_new(m->b->arena, TN_TREE_MAP, *at);
    tn_tree_put(m->b->arena, map, "name", tn_tree_scalar(m->b->arena, o->name, *at));
    tn_fields_bind(m->b, tn_slot_fields, map, &usual);
    usual.absent = o->absent != NULL && o->absent->kind == TN_TREE_SCALAR &&
                           strcmp(o->absent->text, "none") == 0
                       ? o->absent
                       : usual.absent;
    for (const tn_field *f = tn_slot_fields; f->kind != TN_KIND_END; f++) {
        const char *const *key = of_columns;
        while (*key != NULL && strcmp(*key, f->key) != 0) {
            key++;
        }
        if (*key != NULL && is_set(f, o, &usual)) {
            tn_diag_error(m->b->diag, at, "slot '%s' is a cross of others, which has no '%s'",
                          o->name, f->key);
        }
    }
    if (o->cross.n < 2 || o->cross.n > TN_CROSS_PARTS_MAX) {
        tn_diag_error(m->b->diag, at, "slot '%s' is a cross of %u slots, not of 2 to %d", o->name,
                      o->cross.n, TN_CROSS_PARTS_MAX);
    }
}

/* A slot that is made of others, whose places are found when all of them are known. */
static void make_cross(making *m, uint32_t i, const tn_slot_opts *o, const tn_origin *at)
{
    tn_slot_spec *spec = &m->spec[i];
    *spec = (tn_slot_spec){.name = o->name,
                           .column = o->name,
                           .range_to = UINT64_MAX,
                           .field = TN_UNSET_U32,
                           .plain_key = true,
                           .opts = o};
    check_name(m, at, "slot name", o->name);
    if (o->share != NULL) {
        check_name(m, at, "share group", o->share);
    }
    check_cross(m, o, at);
    place_spec(m, spec, o);
}

/* Returns the slot of this name that a cross can have as a part. NULL: reported. */
static const tn_slot_spec *part_called(const making *m, const tn_slot_spec *cross, const char *name,
                                       const tn_origin *at)
{
    for (uint32_t i = 0; i < m->s->n_specs + m->s->n_crosses; i++) {
        const tn_slot_spec *part = &m->spec[i];
        if (strcmp(part->name, name) != 0) {
            continue;
        }
        if (part->slot != TN_NOWHERE && i < m->s->n_specs) {
            return part;
        }
        tn_diag_error(m->b->diag, at, "slot '%s' is a cross of '%s', which %s", cross->name, name,
                      i < m->s->n_specs ? "has no keys, but is a number" : "is a cross itself");
        return NULL;
    }
    tn_diag_error(m->b->diag, at, "slot '%s' is a cross of '%s', and there is no such slot",
                  cross->name, name);
    return NULL;
}

static void find_parts(making *m, uint32_t i, const tn_origin *at)
{
    tn_slot_spec *cross = &m->spec[i];
    const tn_strs *names = &cross->opts->cross;
    uint32_t *part = TN_NEW_ARRAY(m->b->arena, uint32_t, names->n);
    for (uint32_t k = 0; k < names->n; k++) {
        const tn_slot_spec *spec = part_called(m, cross, names->item[k], at);
        part[k] = spec != NULL ? spec->slot : TN_NOWHERE;
        for (uint32_t j = 0; j < k && spec != NULL; j++) {
            if (part[j] == part[k]) {
                tn_diag_error(m->b->diag, at, "slot '%s' is a cross of '%s' with itself",
                              cross->name, spec->name);
            }
        }
    }
    cross->n_parts = names->n;
    cross->part = part;
}

static const tn_slot_opts *slot_at(const tn_tables *slots, uint32_t i)
{
    return (const tn_slot_opts *)slots->item + i;
}

static void refuse_doubles(const making *m, const tn_tables *slots)
{
    for (uint32_t i = 0; i < slots->n; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(slot_at(slots, i)->name, slot_at(slots, j)->name) == 0) {
                const tn_origin *at = slots->tree != NULL ? &slots->tree[i]->at : &data_origin;
                tn_diag_error(m->b->diag, at, "slot '%s' stands twice", slot_at(slots, i)->name);
            }
        }
    }
}

/* Collects the slots that name a sequence, each under its name. */
static void make_sequences(const making *m)
{
    tn_schema *s = m->s;
    tn_sequence_spec *sequence = TN_NEW_ARRAY(m->b->arena, tn_sequence_spec, s->n_slots + 1);
    for (uint32_t i = 0; i < s->n_slots; i++) {
        const tn_slot_spec *spec = s->slot[i];
        uint32_t k = 0;
        while (spec->sequence != NULL && k < s->n_sequences &&
               strcmp(sequence[k].name, spec->sequence) != 0) {
            k++;
        }
        if (spec->sequence == NULL || k < s->n_sequences) {
            continue;
        }
        uint32_t *slot = TN_NEW_ARRAY(m->b->arena, uint32_t, s->n_slots);
        tn_sequence_spec *of = &sequence[s->n_sequences++];
        *of = (tn_sequence_spec){
            .name = spec->sequence, .slot = slot, .cuts = spec->opts->uneven == TN_UNEVEN_CUT};
        for (uint32_t j = i; j < s->n_slots; j++) {
            if (s->slot[j]->sequence != NULL && strcmp(s->slot[j]->sequence, of->name) == 0) {
                slot[of->n++] = j;
            }
        }
    }
    s->sequence = sequence;
}

static const tn_label_rule *read_label_rule(const tn_tree *tree, tn_target target,
                                            const tn_binder *b);

/* Makes the specs of columns, or those of crosses. */
static void make_kind(making *m, const tn_tables *slots, bool crosses)
{
    tn_schema *s = m->s;
    for (uint32_t i = 0; i < slots->n; i++) {
        const tn_slot_opts *o = slot_at(slots, i);
        const tn_origin *at = slots->tree != NULL ? &slots->tree[i]->at : &data_origin;
        if (crosses && o->cross.n > 0) {
            make_cross(m, s->n_specs + s->n_crosses++, o, at);
        } else if (!crosses && o->cross.n == 0) {
            make_spec(m, s->n_specs++, o, at);
        }
    }
}

/* Makes the specs of columns, of numbers beside the row, and of crosses, in this order. */
static void make_all(making *m, const tn_tables *slots)
{
    tn_schema *s = m->s;
    make_kind(m, slots, false);
    s->n_specs += s->n_aside;
    for (uint32_t i = 0; i < s->n_aside; i++) {
        const tn_aside *a = &s->data->aside[i];
        make_aside(m, i, a->label != NULL ? read_label_rule(a->label, a->target, m->b) : NULL);
    }
    make_kind(m, slots, true);
    for (uint32_t i = 0, k = s->n_specs; i < slots->n; i++) {
        if (slot_at(slots, i)->cross.n > 0) {
            find_parts(m, k++, slots->tree != NULL ? &slots->tree[i]->at : &data_origin);
        }
    }
}

static void make_specs(making *m, const tn_tables *slots)
{
    tn_arena *arena = m->b->arena;
    tn_schema *s = m->s;
    s->n_aside = s->data->tasks != NULL ? s->data->tasks->n_aside : 0;
    const uint32_t n = slots->n + s->n_aside;
    m->spec = TN_NEW_ARRAY(arena, tn_slot_spec, n + 1);
    m->group = TN_NEW_ARRAY(arena, tn_share_group, slots->n + 1);
    refuse_doubles(m, slots);
    make_all(m, slots);
    const tn_slot_spec **slot = TN_NEW_ARRAY(arena, const tn_slot_spec *, n + 1);
    const tn_slot_spec **numeric = TN_NEW_ARRAY(arena, const tn_slot_spec *, n + 1);
    uint32_t n_numbers = 0;
    s->quick_fields = !s->data->trim && s->empty_is_null;
    s->quick_features = true;
    for (uint32_t i = s->n_specs; i < n; i++) {
        slot[m->spec[i].slot] = &m->spec[i];
    }
    for (uint32_t i = 0; i < s->n_specs; i++) {
        const tn_slot_spec *spec = &m->spec[i];
        if (spec->slot != TN_NOWHERE) {
            slot[spec->slot] = spec;
        } else {
            numeric[n_numbers++] = spec;
        }
        if (s->data->group != NULL && spec->as == TN_AS_KEY &&
            strcmp(spec->column, s->data->group) == 0) {
            s->group_spec = spec;
        }
        s->quick_fields = s->quick_fields && spec->fast_path != TN_FAST_PATH_NONE;
        s->quick_features = s->quick_features && spec->values == NULL && spec->plain_key &&
                            spec->type <= TN_SIGN_INT;
    }
    s->spec = m->spec;
    s->slot = slot;
    make_sequences(m);
    s->numeric = numeric;
    s->group = m->group;
}

/* ---- the label ---- */

static const tn_field unit_number = {
    .kind = TN_KIND_F64, .key = "values", .min = 0, .max = 1, .unit = ""};
static const tn_field label_number = {
    .kind = TN_KIND_F64, .key = "values", .min = -TN_LABEL_MAX, .max = TN_LABEL_MAX, .unit = ""};
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
    const tn_field *number = rule->target <= TN_TARGET_SIDE ? &unit_number : &label_number;
    for (const tn_tree *t = map->first; t != NULL; t = t->next) {
        double y = 0;
        if (tn_read_scalar(b, number, t, &y) && !tn_target_takes(rule->target, y)) {
            tn_diag_error(b->diag, &t->at, "a label of this loss is 0 or 1, not %g", y);
        }
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

bool tn_label_is_none(const tn_tree *label)
{
    return label != NULL && label->kind == TN_TREE_SCALAR && !label->quoted &&
           strcmp(label->text, "none") == 0;
}

const tn_tree *tn_label_words(tn_arena *arena, const tn_tree *label)
{
    const tn_tree *usual = tn_tree_scalar(arena, "label", (tn_origin){.source = "default"});
    if (tn_tree_is_null(label) || label->kind != TN_TREE_MAP) {
        return tn_tree_is_null(label) ? usual : label;
    }
    const tn_tree *column = tn_tree_get(label, "column");
    if (column != NULL && tn_tree_count(label) == 1) {
        return column;
    }
    tn_tree *whole = tn_tree_copy(arena, label);
    if (column == NULL) {
        tn_tree_put(arena, whole, "column", tn_tree_copy(arena, usual));
    }
    return whole;
}

/* NULL tree: column `label`. Faults go to b->diag; then some rule is returned all the same. */
static const tn_label_rule *read_label_rule(const tn_tree *tree, tn_target target,
                                            const tn_binder *b)
{
    tn_label_rule *rule = TN_NEW(b->arena, tn_label_rule);
    *rule = (tn_label_rule){.column = "label", .target = target, .threshold = (double)NAN};
    if (tn_tree_is_null(tree)) {
        return rule;
    }
    if (tree->kind == TN_TREE_SCALAR) {
        rule->none = tn_label_is_none(tree);
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
    const double label = y == -1 && rule->target <= TN_TARGET_SIDE ? 0 : y;
    *out = (float)label;
    return tn_target_takes(rule->target, label);
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

/* ---- names, fields and ranges, as tables that parsers look things up in ---- */

static uint32_t place_of(const tn_columns *c, const char *text, size_t size)
{
    uint32_t at = (uint32_t)tn_xxh64(text, size, 0) & c->mask;
    while (c->table[at] != 0) {
        uint32_t i = c->table[at] - 1;
        if (c->name_size[i] == size && memcmp(c->name[i], text, size) == 0) {
            break;
        }
        at = (at + 1) & c->mask;
    }
    return at;
}

bool tn_schema_may_lack(const tn_schema *schema, uint32_t name)
{
    const tn_columns *c = schema->columns;
    bool aside = schema->data->aside_optional && name != c->label && name != c->weight &&
                 name != c->group && name != c->record_id;
    for (uint32_t i = 0; aside && i < schema->n_specs; i++) {
        const tn_slot_spec *spec = &schema->spec[i];
        aside = (name != c->spec[i] && name != c->values[i]) || spec->label != NULL || spec->weighs;
    }
    return aside;
}

uint32_t tn_columns_find(const tn_columns *columns, const char *text, size_t size)
{
    return columns->table[place_of(columns, text, size)] - 1; /* 0 becomes TN_NOWHERE */
}

/* The number of a name, a new one when it was not there, for one more reader; NULL: TN_NOWHERE. */
static uint32_t number_of(tn_columns *c, uint32_t *readers, const char *name)
{
    if (name == NULL) {
        return TN_NOWHERE;
    }
    size_t size = strlen(name);
    uint32_t at = place_of(c, name, size);
    if (c->table[at] == 0) {
        memcpy(&c->word[c->n], name, size < sizeof *c->word ? size : sizeof *c->word);
        c->name[c->n] = name;
        c->name_size[c->n] = (uint32_t)size;
        c->only[c->n] = TN_NOWHERE;
        c->table[at] = ++c->n;
    }
    uint32_t number = c->table[at] - 1;
    readers[number]++;
    c->readers_max = readers[number] > c->readers_max ? readers[number] : c->readers_max;
    return number;
}

static void make_names(tn_columns *c, const tn_schema *s, tn_arena *arena)
{
    uint32_t names_max = 2 * s->n_specs + 4;
    uint32_t power = 8;
    while (power < 2 * names_max) {
        power *= 2;
    }
    uint32_t *readers = TN_NEW_ARRAY(arena, uint32_t, names_max);
    c->name = TN_NEW_ARRAY(arena, const char *, names_max);
    c->name_size = TN_NEW_ARRAY(arena, uint32_t, names_max);
    c->word = TN_NEW_ARRAY(arena, uint64_t, names_max);
    c->only = TN_NEW_ARRAY(arena, uint32_t, names_max);
    c->table = TN_NEW_ARRAY(arena, uint32_t, power);
    c->mask = power - 1;
    c->label = number_of(c, readers, s->label->column);
    c->weight = number_of(c, readers, s->data->weight);
    c->group = number_of(c, readers, s->data->group);
    c->record_id = number_of(c, readers, s->data->record_id);
    c->spec = TN_NEW_ARRAY(arena, uint32_t, s->n_specs);
    c->values = TN_NEW_ARRAY(arena, uint32_t, s->n_specs);
    for (uint32_t i = 0; i < s->n_specs; i++) {
        c->spec[i] = number_of(c, readers, s->spec[i].column);
        c->values[i] = number_of(c, readers, s->spec[i].values);
    }
    c->alone = true;
    for (uint32_t i = 0; i < s->n_specs; i++) {
        bool only = readers[c->spec[i]] == 1 && s->spec[i].values == NULL;
        c->only[c->spec[i]] = only ? i : TN_NOWHERE;
        c->alone = c->alone && only;
    }
}

/* Copies what the innermost loops read of specs, side by side. */
static void find_runs(tn_columns *c, const tn_schema *s, tn_arena *arena)
{
    c->fast_path_end = TN_NEW_ARRAY(arena, uint32_t, s->n_specs);
    c->slot = TN_NEW_ARRAY(arena, uint32_t, s->n_specs);
    c->salt = TN_NEW_ARRAY(arena, uint64_t, s->n_specs);
    c->slot_salt = TN_NEW_ARRAY(arena, uint64_t, s->n_slots);
    for (uint32_t i = 0; i < s->n_slots; i++) {
        c->slot_salt[i] = s->slot[i]->salt;
    }
    for (uint32_t i = s->n_specs; i-- > 0;) {
        bool same = i + 1 < s->n_specs && s->spec[i].fast_path == s->spec[i + 1].fast_path;
        c->fast_path_end[i] = same ? c->fast_path_end[i + 1] : i + 1;
        c->slot[i] = s->spec[i].slot;
        c->salt[i] = s->spec[i].salt;
    }
}

static void fault_at(const tn_binder *b, const tn_slot_spec *spec, const char *text)
{
    const tn_origin at = {.source = "slots"};
    tn_diag_error(b->diag, &at, "slot '%s' %s", spec->name, text);
}

/* Returns the field number of the data that is 0 in slots. */
static uint32_t field_base(const tn_schema *s)
{
    return strcmp(s->data->format, "libfm") == 0 ? s->index_base : 0;
}

/* Several slots may have no field at all (other formats); none may share one. */
static void make_fields(tn_columns *c, const tn_schema *s, const tn_binder *b)
{
    uint32_t *of = TN_NEW_ARRAY(b->arena, uint32_t, (size_t)c->n_fields + 1);
    c->spec_of_field = of;
    memset(of, 0xff, ((size_t)c->n_fields + 1) * sizeof *of);
    for (uint32_t i = 0; i < s->n_specs; i++) {
        uint32_t field = s->spec[i].field;
        if (field == TN_UNSET_U32) {
            continue;
        }
        field += field_base(s);
        if (of[field] != TN_NOWHERE) {
            fault_at(b, &s->spec[i], "has the field of another slot");
        }
        of[field] = i;
    }
}

/* For the libsvm family without fields; ranges must not overlap. */
static void make_ranges(tn_columns *c, const tn_schema *s, const tn_binder *b)
{
    uint32_t *by = TN_NEW_ARRAY(b->arena, uint32_t, s->n_specs);
    for (uint32_t i = 0; i < s->n_specs; i++) { /* by insertion: most lists are in order */
        uint32_t at = i;
        while (at > 0 && s->spec[by[at - 1]].range_from > s->spec[i].range_from) {
            by[at] = by[at - 1];
            at--;
        }
        by[at] = i;
    }
    c->n_ranges = s->n_specs;
    c->spec_by_range = by;
    const bool by_field =
        s->slot_bits > 0 || (strcmp(s->data->format, "libfm") == 0 && c->n_fields > 0);
    if (!s->ranges || by_field) {
        return;
    }
    for (uint32_t i = 1; i < s->n_specs; i++) {
        if (s->spec[by[i - 1]].range_to >= s->spec[by[i]].range_from) {
            fault_at(b, &s->spec[by[i]], "shares indices with another slot: give each a 'range'");
        }
    }
}

uint32_t tn_columns_of_index(const tn_columns *columns, const tn_schema *schema, uint64_t index)
{
    uint32_t from = 0;
    uint32_t n = columns->n_ranges;
    while (n > 1) { /* the last spec that begins at or before the index */
        uint32_t half = n / 2;
        bool above = schema->spec[columns->spec_by_range[from + half]].range_from <= index;
        from = above ? from + half : from;
        n = above ? n - half : half;
    }
    const tn_slot_spec *spec = &schema->spec[columns->spec_by_range[from]];
    bool inside = spec->range_from <= index && index <= spec->range_to;
    return inside ? columns->spec_by_range[from] : TN_NOWHERE;
}

static tn_status make_columns(const tn_columns **out, const tn_schema *schema, const tn_binder *b,
                              tn_error *err)
{
    uint32_t n_fields = 0;
    for (uint32_t i = 0; i < schema->n_specs; i++) {
        uint32_t field = schema->spec[i].field;
        n_fields = field != TN_UNSET_U32 && field >= n_fields ? field + 1 : n_fields;
    }
    n_fields += n_fields > 0 ? field_base(schema) : 0;
    const size_t bytes = ((size_t)schema->n_specs + 4) * SPEC_BYTES +
                         ((size_t)n_fields + 1) * sizeof(uint32_t) + sizeof(tn_columns);
    TN_TRY(tn_arena_reserve(b->arena, bytes, "columns", err));
    tn_columns *c = TN_NEW(b->arena, tn_columns);
    c->n_fields = n_fields;
    make_names(c, schema, b->arena);
    find_runs(c, schema, b->arena);
    make_fields(c, schema, b);
    make_ranges(c, schema, b);
    *out = c;
    return TN_OK;
}

/* ---- the whole ---- */

/* high N or low N. */
static void read_slot_bits(const making *m, const char *text)
{
    enum { BITS_MAX = 16 };
    uint64_t bits = 0;
    const bool high = text != NULL && strncmp(text, "high ", 5) == 0;
    const size_t word = high ? 5 : 4;
    if (text == NULL) {
        return;
    }
    if ((!high && strncmp(text, "low ", 4) != 0) ||
        tn_read_u64(text + word, strlen(text + word), &bits) != TN_NUM_OK || bits < 1 ||
        bits > BITS_MAX) {
        tn_diag_error(m->b->diag, &data_origin,
                      "slot_bits must be 'high N' or 'low N' with 1 to %d bits, not '%s'", BITS_MAX,
                      text);
    }
    m->s->slot_bits = (uint32_t)bits;
    m->s->slot_bits_high = high;
}

static void read_text_options(making *m)
{
    tn_schema *s = m->s;
    const tn_data_opts *data = s->data;
    bool csv = strcmp(data->format, "csv") == 0 || strcmp(data->format, "avazu") == 0;
    s->delimiter = one_byte(m, &data_origin, "delimiter",
                            data->delimiter != NULL ? data->delimiter
                            : csv                   ? ","
                                                    : "\t");
    s->frame_words = csv || strcmp(data->format, "tsv") == 0 ||
                     strcmp(data->format, "criteo") == 0 || strcmp(data->format, "jsonl") == 0;
    s->header = data->header == TN_HEADER_AUTO ? csv : data->header == TN_HEADER_TRUE;
    s->quote = data->quote != TN_QUOTE_AUTO ? data->quote : csv ? TN_QUOTE_LINE : TN_QUOTE_NONE;
    s->plain_fields = s->quote == TN_QUOTE_NONE && !data->trim;
    s->empty_is_null = data->null.n == 1 && data->null.item[0][0] == '\0';
    (void)one_byte(m, &data_origin, "comment", data->comment);
    if (data->columns.n > TN_COLUMNS_MAX) {
        tn_diag_error(m->b->diag, &data_origin, "%u columns, more than %d", data->columns.n,
                      TN_COLUMNS_MAX);
    }
    s->index_base = data->index_base == TN_AUTO ? 0 : data->index_base;
    read_slot_bits(m, data->slot_bits);
}

/* Says what could be listed, since nobody knows the columns of a file by heart. */
static void refuse_count(const making *m, uint32_t n, const char *columns)
{
    static const tn_origin at = {.source = "slots"};
    tn_diag *diag = m->b->diag;
    if (n > 0) {
        tn_diag_error(diag, &at, "%u slots; there must be 1 to %d", n, TN_SLOTS_MAX);
        return;
    }
    tn_diag_error(diag, &at, "no slots are listed, and a model learns from 1 to %d", TN_SLOTS_MAX);
    if (columns[0] != '\0') {
        tn_diag_hint(diag, "%s", columns);
    }
    tn_diag_hint(diag, "list those to learn from, as in 'slots: [user, {name: price, type: "
                       "float}]'");
}

tn_status tn_schema_begin(tn_schema **out, const tn_data_opts *data, const tn_binder *b,
                          tn_error *err)
{
    *out = NULL;
    uint32_t faults = b->diag->n_errors;
    tn_schema *s = TN_NEW(b->arena, tn_schema);
    making m = {.s = s, .b = b};
    s->data = data;
    read_text_options(&m);
    s->label = read_label_rule(data->label, data->target, b);
    if (data->format == NULL || b->diag->n_errors != faults) {
        return tn_fail(err, TN_E_CONFIG, "data: the options do not fit together");
    }
    *out = s;
    return TN_OK;
}

const tn_slot_spec *tn_schema_slot(const tn_schema *s, const char *name)
{
    for (uint32_t i = 0; i < s->n_slots; i++) {
        if (strcmp(s->slot[i]->name, name) == 0) {
            return s->slot[i];
        }
    }
    return NULL;
}

tn_status tn_schema_finish(tn_schema *s, const tn_tables *slots, const char *columns,
                           const tn_binder *b, tn_error *err)
{
    uint32_t faults = b->diag->n_errors;
    making m = {.s = s, .b = b};
    if (slots->n == 0 || slots->n > TN_SLOTS_MAX) {
        refuse_count(&m, slots->n, columns);
    } else {
        make_specs(&m, slots);
        TN_TRY(make_columns(&s->columns, s, b, err));
    }
    return b->diag->n_errors == faults
               ? TN_OK
               : tn_fail(err, TN_E_CONFIG, "slots: the options do not fit together");
}
