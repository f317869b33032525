/* format_vw.c - the subset of Vowpal Wabbit's text that says one row a line.
 *
 *     1 2.5 'r007|user:0.5 alice bob:3 |price :19.99 |page lang:en
 *     label       namespace:scale          anonymous      text
 *       weight     name name:value
 *        tag
 *
 * The namespace selects the slots, by its whole name ("_" where it has none). A slot that reads a
 * number takes the value; any other takes the name, and the value as x_j. `lang:en` is the word
 * "lang=en". Values are multiplied by the scale; in VW a text has none.
 */
#include "base/core/number.h"
#include "io/format/format.h"
#include "io/rows/rows_parsing.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"

#include <math.h>
#include <string.h>

/* A walk over one line, with its position `at`. */
typedef struct vw_walk {
    const char *at;
    const char *end;
    tn_bytes line;
    const tn_record_location *place;
    const tn_schema *schema;
    tn_rows *rows;
    const tn_slot_spec *spec; /* reads the namespace; NULL: it is ignored */
    float scale;
    uint32_t n_anonymous; /* features of the namespace so far */
    uint32_t guess;       /* the spec that may read the next namespace */
} vw_walk;

static tn_status fault_at(const vw_walk *in, const tn_slot_spec *spec, tn_bytes token,
                          tn_fault fault, tn_error *err)
{
    tn_status status = tn_record_location_fault(in->place, in->line, token, fault, err);
    if (!in->schema->label->none || fault != TN_FAULT_LABEL) {
        tn_record_location_hint(in->schema, spec, token, fault, err);
    }
    return status;
}

static void skip_blanks(vw_walk *in)
{
    while (in->at < in->end && tn_is_blank(*in->at)) {
        in->at++;
    }
}

/* Takes the bytes from `at` to the next blank, ':' or '|', to which it moves. */
static inline tn_bytes take_piece(vw_walk *in)
{
    static const bool ends[256] = {[' '] = true, ['\t'] = true, [':'] = true, ['|'] = true};
    const char *p = in->at;
    while (p < in->end && !ends[(unsigned char)*p]) {
        p++;
    }
    tn_bytes piece = {in->at, (size_t)(p - in->at), false};
    in->at = p;
    return piece;
}

/* Takes ':' and a value after a name. *found: there is one. */
static tn_status take_value(vw_walk *in, const char *what, tn_bytes *out, bool *found,
                            tn_error *err)
{
    *found = in->at < in->end && *in->at == ':';
    if (!*found) {
        return TN_OK;
    }
    in->at++;
    *out = take_piece(in);
    if (out->size == 0) {
        return tn_record_location_fail(in->place, in->line, in->at, err, "expected a %s after ':'",
                                       what);
    }
    if (in->at < in->end && *in->at == ':') {
        return tn_record_location_fail(in->place, in->line, in->at, err,
                                       "expected a blank after the %s, found ':'", what);
    }
    return TN_OK;
}

/* ---- label, weight and tag ---- */

/* Returns the kind of VW's labels, of those that are not read here, that a token begins; NULL:
 * none. */
static const char *other_label(tn_bytes token)
{
    static const char *const words[] = {"shared", "ccb", "slates", "ca"};
    uint32_t colons = 0;
    for (size_t i = 0; i < token.size; i++) {
        colons += token.data[i] == ':';
    }
    for (uint32_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (token.size == strlen(words[i]) && memcmp(token.data, words[i], token.size) == 0) {
            return i == 0 ? "multi-line examples" : "contextual bandit labels";
        }
    }
    return token.data[0] == '{'                       ? "JSON examples"
           : colons >= 2                              ? "contextual bandit labels"
           : colons == 1                              ? "cost-sensitive labels"
           : memchr(token.data, ',', token.size) != 0 ? "multilabels"
                                                      : NULL;
}

static tn_status refuse_other(const vw_walk *in, tn_bytes token, const char *what, tn_error *err)
{
    return tn_record_location_fail(in->place, in->line, token.data, err,
                                   "%s of VW are not read here, only 'label [weight] [tag]' in "
                                   "front of the first '|'",
                                   what);
}

/* With `label: none` a label may be there all the same; it must read well. */
static tn_fault take_label(const vw_walk *in, tn_bytes token)
{
    double ignored;
    if (in->schema->label->none) {
        return tn_read_f64(token.data, token.size, &ignored) == TN_NUM_OK ? TN_FAULT_NONE
                                                                          : TN_FAULT_LABEL;
    }
    return tn_rows_label(in->rows, token.data, token.size);
}

/* Number `n` of the tokens in front of the tag. */
static tn_status take_number(const vw_walk *in, uint32_t n, tn_bytes token, tn_error *err)
{
    if (n == 2) {
        return refuse_other(in, token, "base values (a third number)", err);
    }
    tn_fault fault =
        n == 0 ? take_label(in, token) : tn_rows_weight(in->rows, token.data, token.size);
    if (fault == TN_FAULT_NONE) {
        return TN_OK;
    }
    const char *other = other_label(token);
    return other != NULL && fault != TN_FAULT_MEMORY ? refuse_other(in, token, other, err)
                                                     : fault_at(in, NULL, token, fault, err);
}

static tn_status take_tag(const vw_walk *in, tn_bytes tag, tn_error *err)
{
    const bool quoted = tag.data[0] == '\'';
    tn_fault fault = tn_rows_id(in->rows, tag.data + quoted, tag.size - quoted);
    return fault == TN_FAULT_NONE ? TN_OK : fault_at(in, NULL, tag, fault, err);
}

/* All in front of `bar`, the first '|' or the end of the line. */
static tn_status take_head(vw_walk *in, const char *bar, tn_error *err)
{
    uint32_t n = 0;
    bool tagged = false;
    for (skip_blanks(in); in->at < bar; skip_blanks(in)) {
        const char *from = in->at;
        while (in->at < bar && !tn_is_blank(*in->at)) {
            in->at++;
        }
        tn_bytes token = {from, (size_t)(in->at - from), false};
        if (tagged) {
            return tn_record_location_fail(in->place, in->line, from, err,
                                           "expected '|' after the tag");
        }
        tagged = *from == '\'' || (in->at == bar && bar < in->end);
        TN_TRY(tagged ? take_tag(in, token, err) : take_number(in, n++, token, err));
    }
    if (n == 0 && !in->schema->label->none) {
        return tn_record_location_fail(in->place, in->line, NULL, err, "the label is missing%s",
                                       tagged ? "; what stands here is a tag" : "");
    }
    return TN_OK;
}

/* ---- features ---- */

/* Adds a number to its slot; `shown` is in the line, unlike the value perhaps. */
static tn_status add_number(const vw_walk *in, tn_bytes value, tn_bytes shown, tn_error *err)
{
    const tn_slot_spec *spec = in->spec;
    tn_fault fault;
    double x = 0;
    if (in->scale == 1) {
        fault = tn_rows_token(in->rows, spec, value.data, value.size, 1);
    } else {
        fault = tn_rows_read_number(spec, value.data, value.size, &x);
        if (fault == TN_FAULT_NONE) {
            const double scaled = x * (double)in->scale;
            fault = isfinite(x) && !isfinite((float)scaled) ? TN_FAULT_FLOAT_RANGE
                                                            : tn_rows_real(in->rows, spec, scaled);
        }
    }
    return fault == TN_FAULT_NONE ? TN_OK : fault_at(in, spec, shown, fault, err);
}

/* name:text */
static tn_status add_word(const vw_walk *in, tn_bytes name, tn_bytes text, tn_error *err)
{
    tn_text *word = &in->rows->private->scratch;
    tn_text_clear(word);
    tn_text_add(word, name.data, name.size);
    tn_text_addc(word, '=');
    tn_text_add(word, text.data, text.size);
    TN_TRY(tn_text_check(word, "a feature", err));
    tn_fault fault = tn_rows_token(in->rows, in->spec, word->data, word->size, 1);
    return fault == TN_FAULT_NONE ? TN_OK : fault_at(in, in->spec, name, fault, err);
}

/* A key; `place`: among the anonymous features. */
static tn_status add_key(const vw_walk *in, tn_bytes name, tn_bytes value, uint32_t place,
                         tn_error *err)
{
    const tn_slot_spec *spec = in->spec;
    float x = 1;
    tn_fault fault =
        value.size > 0 ? tn_rows_read_x(spec, value.data, value.size, &x) : TN_FAULT_NONE;
    if (fault == TN_FAULT_FLOAT && spec->type == TN_SIGN_STR && name.size > 0) {
        return add_word(in, name, value, err);
    }
    if (fault == TN_FAULT_NONE && isfinite(x)) {
        x *= in->scale;
        fault = fabsf(x) <= TN_X_MAX ? TN_FAULT_NONE : TN_FAULT_X_RANGE;
    }
    if (fault != TN_FAULT_NONE) {
        return fault_at(in, NULL, value, fault, err);
    }
    if (!isfinite(x)) {
        return TN_OK;
    }
    fault = name.size > 0 ? tn_rows_token(in->rows, spec, name.data, name.size, x)
                          : tn_rows_integer(in->rows, spec, (int64_t)place, x);
    return fault == TN_FAULT_NONE ? TN_OK
                                  : fault_at(in, spec, name.size > 0 ? name : value, fault, err);
}

static tn_status take_feature(vw_walk *in, tn_error *err)
{
    static const tn_bytes one = {"1", 1, false};
    const tn_slot_spec *spec = in->spec;
    tn_bytes name = take_piece(in);
    tn_bytes value = {name.data, 0, false};
    bool found = false;
    TN_TRY(take_value(in, "value", &value, &found, err));
    if (spec == NULL) {
        return TN_OK;
    }
    if (!found && spec->plain_key && spec->type == TN_SIGN_STR && in->rows->token == NULL &&
        tn_rows_put(in->rows, spec, tn_xxh64(name.data, name.size, 0), in->scale)) {
        return TN_OK; /* as nearly all are */
    }
    const uint32_t place = in->n_anonymous;
    in->n_anonymous += name.size == 0;
    return tn_spec_is_number(spec) ? add_number(in, found ? value : one, found ? value : name, err)
                                   : add_key(in, name, value, place, err);
}

static tn_status take_features(vw_walk *in, const tn_slot_spec *spec, tn_error *err)
{
    in->spec = spec;
    in->n_anonymous = 0;
    for (skip_blanks(in); in->at < in->end && *in->at != '|'; skip_blanks(in)) {
        TN_TRY(take_feature(in, err));
    }
    return TN_OK;
}

/* Most lines have their namespaces in the order of the slots. */
static uint32_t find_column(const vw_walk *in, tn_bytes name)
{
    const tn_columns *columns = in->schema->columns;
    if (in->guess < in->schema->n_specs) {
        const uint32_t number = columns->spec[in->guess];
        if (columns->name_size[number] == name.size &&
            memcmp(columns->name[number], name.data, name.size) == 0) {
            return number;
        }
    }
    return tn_columns_find(columns, name.data, name.size);
}

/* Reads the features of a namespace once for each slot that reads it. */
static tn_status give_features(vw_walk *in, tn_bytes name, tn_error *err)
{
    const tn_columns *columns = in->schema->columns;
    const char *features = in->at;
    uint32_t number = find_column(in, name);
    if (number != TN_NOWHERE && columns->only[number] != TN_NOWHERE) {
        in->guess = columns->only[number] + 1;
        return take_features(in, &in->schema->spec[columns->only[number]], err);
    }
    bool read = false;
    for (uint32_t i = 0; number != TN_NOWHERE && i < in->schema->n_specs; i++) {
        if (columns->spec[i] == number) {
            in->at = features;
            TN_TRY(take_features(in, &in->schema->spec[i], err));
            read = true;
        }
    }
    if (!read && in->schema->data->unknown_field == TN_FIELD_IS_ERROR) {
        return tn_record_location_fail(in->place, in->line, name.data, err,
                                       "no slot takes namespace '%.*s'",
                                       (int)(name.size < 80 ? name.size : 80), name.data);
    }
    return read ? TN_OK : take_features(in, NULL, err);
}

/* At a '|'. */
static tn_status take_namespace(vw_walk *in, tn_error *err)
{
    in->at++;
    tn_bytes name = take_piece(in);
    tn_bytes scale;
    bool found = false;
    in->scale = 1;
    if (name.size == 0 && in->at < in->end && *in->at == ':') {
        return tn_record_location_fail(in->place, in->line, in->at, err,
                                       "expected the name of a namespace, found ':'");
    }
    TN_TRY(take_value(in, "scale", &scale, &found, err));
    if (found) {
        static const tn_slot_spec any = {.non_finite_absent = false};
        double by = 1;
        tn_fault fault = tn_rows_read_number(&any, scale.data, scale.size, &by);
        in->scale = (float)by;
        if (fault != TN_FAULT_NONE) {
            return fault_at(in, NULL, scale, fault, err);
        }
    }
    if (name.size == 0) {
        name = (tn_bytes){"_", 1, false};
        if (tn_columns_find(in->schema->columns, "_", 1) == TN_NOWHERE &&
            in->schema->data->unknown_field == TN_FIELD_IS_ERROR) {
            return tn_record_location_fail(in->place, in->line, in->at - 1, err,
                                           "no slot takes features without a namespace, which are "
                                           "those of '_'");
        }
    }
    return give_features(in, name, err);
}

static tn_status take_line(vw_walk *in, tn_error *err)
{
    const char *bar = memchr(in->line.data, '|', in->line.size);
    TN_TRY(take_head(in, bar != NULL ? bar : in->end, err));
    while (in->at < in->end) {
        TN_ASSERT(*in->at == '|');
        TN_TRY(take_namespace(in, err));
    }
    return TN_OK;
}

static tn_status vw_parse(tn_bytes record, const tn_schema *schema, const tn_record_location *place,
                          tn_rows *rows, tn_error *err)
{
    vw_walk in = {.line = record, .place = place, .schema = schema, .rows = rows};
    TN_TRY(tn_line_begin(&in.line, place, rows, err));
    in.at = in.line.data;
    in.end = in.line.data + in.line.size;
    return tn_record_end(in.line, place, take_line(&in, err), rows, err);
}

static const char *const vw_data[] = {"unknown_field", "record_id", NULL};

extern const tn_format tn_format_vw;
const tn_format tn_format_vw = {
    .name = "vw",
    .help = "Vowpal Wabbit: label [weight] [tag]|namespace name[:value] ..; a slot per namespace",
    .pairs = true,
    .namespaces = true,
    .data_options = vw_data,
    .cut = tn_line_cut,
    .resync = tn_line_resync,
    .parse = vw_parse,
};
