/* dataset.c - the sections `data:` and `slots:`: bound for tools, and described as YAML. */
#include "io/read/dataset.h"

#include "base/core/arena.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "io/format/format.h"
#include "io/read/schema_inference.h"
#include "io/schema/schema.h"

#include <string.h>

const tn_field tn_dataset_fields[] = {
    TN_FIELD_TABLE(tn_dataset, data, tn_data_opts, tn_data_fields, "what is read, and how"),
    TN_FIELD_TABLES(tn_dataset, slots, tn_slot_opts, "[]", tn_slot_fields, "what a row holds"),
    TN_FIELD_END,
};

static tn_slot_opts *slot_at(const tn_tables *slots, uint32_t i)
{
    return (tn_slot_opts *)slots->item + i;
}

/* Leaves out crosses: nothing of a record is in them. */
static void drop_crosses(tn_tables *slots, tn_arena *arena)
{
    const tn_tables all = *slots;
    const tn_tree **tree = TN_NEW_ARRAY(arena, const tn_tree *, (size_t)all.n + 1);
    slots->item = TN_NEW_ARRAY(arena, tn_slot_opts, (size_t)all.n + 1);
    slots->tree = all.tree != NULL ? tree : NULL;
    slots->n = 0;
    for (uint32_t i = 0; i < all.n; i++) {
        if (slot_at(&all, i)->cross.n == 0) {
            tree[slots->n] = all.tree != NULL ? all.tree[i] : NULL;
            *slot_at(slots, slots->n++) = *slot_at(&all, i);
        }
    }
}

static void switch_rules_off(const tn_tables *slots)
{
    for (uint32_t i = 0; i < slots->n; i++) {
        tn_slot_opts *o = slot_at(slots, i);
        o->max_len = 0;
        o->absent = NULL;
        o->duplicates = TN_DUPLICATES_KEEP;
        o->drop_zero = false;
        if (o->uneven == TN_UNEVEN_CUT) { /* else a null keeps its place, and nothing is cut */
            o->sequence = NULL;
        }
    }
}

tn_status tn_dataset_bind(tn_dataset *out, const tn_tree *root, uint32_t flags, tn_target target,
                          const tn_binder *b, tn_error *err)
{
    *out = (tn_dataset){0};
    uint32_t faults = b->diag->n_errors;
    tn_fields_bind_some(b, tn_dataset_fields, root, out);
    tn_binder inner = *b;
    inner.path = "data";
    tn_format_check_data(&inner, tn_tree_get(root, "data"), &out->data);
    if (b->diag->n_errors != faults) {
        return tn_fail(err, TN_E_CONFIG, "the options do not fit together");
    }
    out->data.target = target;
    out->data.part_bytes = TN_PART_WHOLE; /* so that lines are known wherever a fault is met */
    if ((flags & TN_DATASET_AS_READ) != 0) {
        drop_crosses(&out->slots, b->arena);
        switch_rules_off(&out->slots);
    }
    return tn_schema_new(&out->schema, &out->data, &out->slots, b, err);
}

static void inherit(tn_arena *arena, tn_tree *map, const char *key, const char *value)
{
    static const tn_origin inherited = {.source = "the options of the input"};
    if (value != NULL) {
        tn_tree *name = tn_tree_scalar(arena, value, inherited);
        name->quoted = true; /* a column, whatever it is called */
        tn_tree_put(arena, map, key, name);
    }
}

/* The slots of the schema, those that were found by looking at the data included. */
static void copy_slots(tn_dataset *out, const tn_dataset *from, uint32_t flags, tn_arena *arena)
{
    const tn_schema *s = from->schema;
    out->slots = (tn_tables){.n = s->n_specs, .tree = NULL};
    out->slots.item = TN_NEW_ARRAY(arena, tn_slot_opts, s->n_specs + 1);
    for (uint32_t i = 0; i < s->n_specs; i++) {
        tn_slot_opts *o = slot_at(&out->slots, i);
        *o = *s->spec[i].opts;
        if ((flags & TN_DATASET_SIGNS) != 0 && tn_slot_as_of(o) == TN_AS_KEY) {
            o->type = TN_SIGN_ID;
            o->transform = NULL;
        }
    }
}

/* Field numbers by place, unless some slot has one, or `by_range` a range. */
static void number_fields(const tn_tables *slots, bool by_range)
{
    for (uint32_t i = 0; i < slots->n; i++) {
        if (slot_at(slots, i)->field != TN_UNSET_U32 ||
            (by_range && slot_at(slots, i)->range.n > 0)) {
            return;
        }
    }
    for (uint32_t i = 0; i < slots->n; i++) {
        slot_at(slots, i)->field = i;
    }
}

tn_status tn_dataset_bind_target(tn_dataset *out, const tn_dataset *from, const tn_tree *data,
                                 uint32_t flags, const tn_binder *b, tn_error *err)
{
    static const tn_origin nowhere = {.source = "the options of the output"};
    *out = (tn_dataset){0};
    uint32_t faults = b->diag->n_errors;
    tn_tree *names = tn_tree_new(b->arena, TN_TREE_MAP, nowhere);
    const tn_label_rule *label = from->schema->label;
    inherit(b->arena, names, "label", label->column);
    if (label->none) {
        tn_tree_put(b->arena, names, "label", tn_tree_scalar(b->arena, "none", nowhere));
    }
    inherit(b->arena, names, "weight", from->data.weight);
    inherit(b->arena, names, "group", from->data.group);
    inherit(b->arena, names, "record_id", from->data.record_id);
    tn_binder inner = *b;
    inner.path = "to";
    tn_fields_bind(&inner, tn_data_fields, tn_tree_merge(b->arena, names, data), &out->data);
    tn_format_check_data(&inner, data, &out->data);
    out->data.target = from->data.target;
    if (b->diag->n_errors != faults) {
        return tn_fail(err, TN_E_CONFIG, "the options of the output do not fit together");
    }
    copy_slots(out, from, flags, b->arena);
    const char *format = out->data.format != NULL ? out->data.format : "";
    const bool libfm = strcmp(format, "libfm") == 0;
    if (strcmp(format, "libffm") == 0 || (libfm && out->slots.n > 1)) {
        number_fields(&out->slots, libfm);
    }
    return tn_schema_new(&out->schema, &out->data, &out->slots, b, err);
}

static void add_quoted(tn_text *out, const char *text)
{
    tn_text_addc(out, '"');
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            tn_text_addc(out, '\\');
        }
        if ((unsigned char)*c < ' ') {
            tn_text_addf(out, "\\x%02x", (unsigned char)*c);
        } else {
            tn_text_addc(out, *c);
        }
    }
    tn_text_addc(out, '"');
}

static void add_option(tn_text *out, const char *before, const char *key, const char *value)
{
    if (value != NULL) {
        tn_text_addf(out, "%s%s: ", before, key);
        add_quoted(out, value);
    }
}

static void add_byte(tn_text *out, const char *before, const char *key, char value)
{
    char text[2] = {value, '\0'};
    add_option(out, before, key, value != 0 ? text : NULL);
}

static void describe_text_options(const tn_dataset *d, tn_text *out)
{
    const tn_schema *s = d->schema;
    add_byte(out, "\n  ", "delimiter", s->delimiter);
    tn_text_addf(out, "\n  header: %s", s->header ? "true" : "false");
    tn_text_addf(out, "\n  quote: %s", tn_quote_words[s->quote]);
    if (d->data.trim) {
        tn_text_adds(out, "\n  trim: true");
    }
    add_option(out, "\n  ", "comment", d->data.comment);
    tn_text_adds(out, "\n  null: [");
    for (uint32_t i = 0; i < d->data.null.n; i++) {
        tn_text_adds(out, i > 0 ? ", " : "");
        add_quoted(out, d->data.null.item[i]);
    }
    tn_text_addc(out, ']');
}

static void describe_slot(const tn_slot_spec *spec, const tn_format *format, tn_text *out)
{
    const tn_slot_opts *o = spec->opts;
    add_option(out, "  - {", "name", spec->name);
    add_option(out, ", ", "column", o->column);
    tn_text_addf(out, ", type: %s",
                 tn_slot_type_words[spec->width > 0 ? TN_TYPE_VECTOR : spec->type]);
    if (spec->width > 0) {
        tn_text_addf(out, ", dim: %u", spec->width);
    } else if (spec->as != TN_AS_KEY) {
        tn_text_addf(out, ", as: %s", tn_slot_as_words[spec->as]);
    }
    if (!tn_tree_is_null(o->transform)) {
        tn_text_adds(out, ", transform: ");
        tn_tree_print_flow(out, o->transform);
    }
    add_option(out, ", ", "share", o->share);
    add_byte(out, ", ", "list", spec->list);
    add_option(out, ", ", "values", o->values);
    const char *const *read = format->slot_options;
    if (spec->field != TN_UNSET_U32 && tn_format_reads(read, "field")) {
        tn_text_addf(out, ", field: %u", spec->field);
    }
    if (o->range.n == 2 && tn_format_reads(read, "range")) {
        tn_text_addf(out, ", range: [%.0f, %.0f]", o->range.item[0], o->range.item[1]);
    }
    tn_text_adds(out, "}\n");
}

void tn_dataset_config(const tn_dataset *d, const char *path, const char *columns, tn_text *out)
{
    const tn_schema *s = d->schema;
    tn_text_addf(out, "data:\n  format: %s", d->data.format);
    add_option(out, "\n  ", "train", path);
    tn_text_adds(out, s->label->none ? "\n  label: none" : "");
    add_option(out, "\n  ", "label", s->label->column);
    add_option(out, "\n  ", "weight", d->data.weight);
    add_option(out, "\n  ", "group", d->data.group);
    add_option(out, "\n  ", "record_id", d->data.record_id);
    add_option(out, "\n  ", "slot_bits", d->data.slot_bits);
    bool text = strcmp(d->data.format, "csv") == 0 || strcmp(d->data.format, "tsv") == 0;
    if (text) {
        describe_text_options(d, out);
    }
    if (columns != NULL && text && !s->header) {
        tn_text_addf(out, "\n  columns: [%s]", columns);
    }
    tn_text_adds(out, "\nslots:\n");
    for (uint32_t i = 0; i < s->n_specs; i++) {
        describe_slot(&s->spec[i], tn_format_find(d->data.format), out);
    }
}
