/* cache_key.c - everything that decides what a record becomes, as text, one line per fact. */
#include "config/tree.h"
#include "io/read/cache.h"

#include <inttypes.h>
#include <math.h>

/* Rises whenever the same text begins to make other rows. */
enum { ROWS_VERSION = 1 };

static void add_name(tn_text *out, const char *key, const char *name)
{
    if (name != NULL) {
        tn_text_addf(out, " %s ", key);
        tn_tree_print_scalar(out, name);
    }
}

static void add_names(tn_text *out, const char *key, const tn_strs *names)
{
    tn_text_addf(out, "%s", key);
    for (uint32_t i = 0; i < names->n; i++) {
        add_name(out, i > 0 ? "," : ":", names->item[i]);
    }
    tn_text_addc(out, '\n');
}

static void add_label(const tn_label_rule *label, tn_text *out)
{
    tn_text_adds(out, "label:");
    add_name(out, "column", label->none ? NULL : label->column);
    if (!isnan(label->threshold)) {
        tn_text_addf(out, " threshold %a", label->threshold);
    }
    for (uint32_t i = 0; i < label->n_values; i++) {
        add_name(out, "value", label->text[i]);
        tn_text_addf(out, " %a", (double)label->value[i]);
    }
    tn_text_addc(out, '\n');
}

static void add_data(const tn_schema *s, tn_text *out)
{
    const tn_data_opts *d = s->data;
    tn_text_addf(out, "format: %s\n", d->format);
    tn_text_addf(out, "compression: %u\n", d->compression);
    tn_text_addf(out, "index_base: %u\n", s->index_base);
    tn_text_adds(out, "columns of a row:");
    add_name(out, "weight", d->weight);
    add_name(out, "group", d->group);
    add_name(out, "record_id", d->record_id);
    tn_text_addf(out, "\ndelimiter: %u\nheader: %d\nquote: %u\ntrim: %d\nshort_rows: %u\n",
                 (unsigned)(unsigned char)s->delimiter, s->header, s->quote, d->trim,
                 d->short_rows);
    add_names(out, "columns", &d->columns);
    add_names(out, "null", &d->null);
    tn_text_adds(out, "comment:");
    add_name(out, "begins with", d->comment);
    tn_text_addf(out, "\nunknown_field: %u\nrow_norm: %d\nrecord_bytes_max: %" PRIu64 "\n",
                 d->unknown_field, d->row_norm, d->record_bytes_max);
}

static void add_transform(const tn_transform *t, tn_text *out)
{
    tn_text_addf(out, " transform %d %a %a %" PRIu64, (int)t->kind, t->a, t->b, t->freeze_rows);
    for (uint32_t i = 0; i < t->n_bounds; i++) {
        tn_text_addf(out, " %a", t->bound[i]);
    }
}

static void add_slot(const tn_slot_spec *spec, tn_text *out)
{
    tn_text_addf(out, "slot %s: field %u", spec->name, spec->field); /* read in io/read/scan.c */
    add_name(out, "column", spec->column);
    add_name(out, "share", spec->opts->share);
    add_name(out, "values", spec->values);
    tn_text_addf(out, " type %d as %d list %u range %" PRIu64 " %" PRIu64, (int)spec->type,
                 (int)spec->as, (unsigned)(unsigned char)spec->list, spec->range_from,
                 spec->range_to);
    tn_text_addf(out, " max_len %u keep_last %d absent %d %a duplicates %u", spec->max_len,
                 spec->keep_last, spec->absent_key, (double)spec->absent, spec->duplicates);
    tn_text_addf(out, " drop_zero %d non_finite_absent %d", spec->drop_zero,
                 spec->non_finite_absent);
    add_transform(&spec->transform, out);
    tn_text_addc(out, '\n');
}

void tn_tnb_shape(const tn_schema *schema, tn_text *out)
{
    tn_text_addf(out, "rows: %d\n", ROWS_VERSION);
    add_data(schema, out);
    add_label(schema->label, out);
    for (uint32_t i = 0; i < schema->n_specs; i++) {
        add_slot(&schema->spec[i], out);
    }
}
