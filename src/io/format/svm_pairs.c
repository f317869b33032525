/* svm_pairs.c - what libsvm and libffm lines share. */
#include "io/format/svm_pairs.h"

#include <math.h>
#include <string.h>

static tn_bytes rest(const char *from, const char *to)
{
    return (tn_bytes){from, (size_t)(to - from), false};
}

static tn_status fault_at(const tn_pairs *in, const char *from, const char *to, tn_fault fault,
                          tn_error *err)
{
    return tn_place_fault(in->place, in->line, rest(from, to), fault, err);
}

/* Where the token that begins at `from` ends: at a blank, or at `stop` where it is not 0. */
static const char *token_end(const tn_pairs *in, const char *from, char stop)
{
    const char *p = from;
    while (p < in->end && !tn_is_blank(*p) && (*p != stop || stop == 0)) {
        p++;
    }
    return p;
}

static bool is_number_char(char c)
{
    char lower = (char)(c | 0x20);
    return (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z') || c == '+' || c == '-' ||
           c == '.';
}

/* As a message may show it. */
static char shown(char c)
{
    return (char)(c >= ' ' && c < 0x7f ? c : '?');
}

static tn_status take_weight(tn_pairs *in, tn_error *err)
{
    const char *from = ++in->at;
    in->at = token_end(in, from, ':');
    tn_fault fault = tn_rows_weight(in->rows, from, (size_t)(in->at - from));
    if (fault != TN_FAULT_NONE) {
        return fault_at(in, from, in->at, fault, err);
    }
    if (in->at < in->end && *in->at == ':') {
        return tn_place_fail(in->place, in->line, in->at, err,
                             "expected a blank after the weight, found ':'");
    }
    return TN_OK;
}

static tn_status take_label(tn_pairs *in, tn_error *err)
{
    const char *from = in->at;
    const char *to = token_end(in, from, ':');
    if (in->schema->label->n_values == 0) {
        for (const char *p = from; p < to; p++) {
            if (!is_number_char(*p) && p > from) {
                return tn_place_fail(in->place, in->line, p, err,
                                     "expected a blank or ':' after the label, found '%c'",
                                     shown(*p));
            }
        }
    }
    tn_fault fault = tn_rows_label(in->rows, from, (size_t)(to - from));
    if (fault != TN_FAULT_NONE) {
        return fault_at(in, from, to, fault, err);
    }
    in->at = to;
    return to < in->end && *to == ':' ? take_weight(in, err) : TN_OK;
}

tn_status tn_pairs_begin(tn_pairs *in, tn_error *err)
{
    TN_TRY(tn_line_clean(&in->line, in->place, err));
    in->at = in->line.data;
    in->end = in->line.data + in->line.size;
    if (!tn_pairs_more(in)) {
        return TN_END;
    }
    TN_TRY(tn_rows_begin(in->rows, in->line.size, err));
    if (in->schema->label->none) {
        return TN_OK;
    }
    tn_status status = take_label(in, err);
    if (status != TN_OK) {
        tn_rows_rollback(in->rows);
    }
    return status;
}

tn_status tn_pairs_no_digits(const tn_pairs *in, const char *from, const char *what, tn_error *err)
{
    if (in->at > from) {
        return tn_place_fail(in->place, in->line, from, err, "%s too large, found \"%.*s\"", what,
                             (int)(in->at - from < 40 ? in->at - from : 40), from);
    }
    if (in->at == in->end) {
        return tn_place_fail(in->place, in->line, in->at, err,
                             "expected %s %s at the end of the line",
                             strchr("aeiou", what[0]) != NULL ? "an" : "a", what);
    }
    return tn_place_fail(in->place, in->line, in->at, err, "expected %s %s, found '%c'",
                         strchr("aeiou", what[0]) != NULL ? "an" : "a", what, shown(*in->at));
}

/* Behind an index: a value, or nothing (*size 0). Stands behind it then. */
static tn_status take_value(tn_pairs *in, const char **from, size_t *size, tn_error *err)
{
    *size = 0;
    if (in->at == in->end || tn_is_blank(*in->at)) {
        return TN_OK;
    }
    if (*in->at != ':') {
        return tn_place_fail(in->place, in->line, in->at, err,
                             "expected a blank or ':' after the index, found '%c'", shown(*in->at));
    }
    *from = in->at + 1;
    const char *p = *from;
    while (p < in->end && !tn_is_blank(*p)) {
        if (*p == ':') {
            return tn_place_fail(in->place, in->line, p, err,
                                 "expected a blank after the value, found ':'");
        }
        p++;
    }
    *size = (size_t)(p - *from);
    in->at = p;
    if (*size == 0) {
        return tn_place_fail(in->place, in->line, p, err, "expected a value after ':'");
    }
    return TN_OK;
}

/* An x_j; false in *keep: the pair is left out. */
static tn_fault read_x(const tn_slot_spec *spec, tn_bytes text, float *x, bool *keep)
{
    if (text.size == 1 && (unsigned)(text.data[0] - '0') <= 9) {
        *x = (float)(text.data[0] - '0');
        return TN_FAULT_NONE;
    }
    switch (tn_read_f32(text.data, text.size, x)) {
    case TN_NUM_OK:
        return TN_FAULT_NONE;
    case TN_NUM_RANGE:
        return TN_FAULT_FLOAT_RANGE;
    case TN_NUM_NOT_FINITE:
        *keep = false;
        return spec->non_finite_absent ? TN_FAULT_NONE : TN_FAULT_NOT_FINITE;
    case TN_NUM_NONE:
    default:
        return TN_FAULT_FLOAT;
    }
}

tn_status tn_pairs_add_any(tn_pairs *in, const tn_slot_spec *spec, const char *index, uint64_t sign,
                           tn_error *err)
{
    const char *index_end = in->at;
    const char *from = "1";
    size_t size = 0;
    TN_TRY(take_value(in, &from, &size, err));
    tn_bytes value = {from, size, false};
    tn_fault fault = TN_FAULT_NONE;
    if (tn_spec_is_number(spec)) {
        fault = tn_rows_token(in->rows, spec, from, size > 0 ? size : 1, 1);
        if (fault != TN_FAULT_NONE && size == 0) {
            return fault_at(in, index, index_end, fault, err);
        }
        return fault == TN_FAULT_NONE ? TN_OK : fault_at(in, from, from + size, fault, err);
    }
    float x = 1;
    bool keep = true;
    if (size > 0) {
        fault = read_x(spec, value, &x, &keep);
        if (fault != TN_FAULT_NONE) {
            return fault_at(in, from, from + size, fault, err);
        }
    }
    if (!keep) {
        return TN_OK;
    }
    bool rebased = spec->type == TN_SIGN_INT && in->schema->index_base > 0 && sign <= INT64_MAX;
    fault = spec->type == TN_SIGN_ID || rebased
                ? tn_rows_integer(in->rows, spec, (int64_t)sign, x)
                : tn_rows_token(in->rows, spec, index, (size_t)(index_end - index), x);
    return fault == TN_FAULT_NONE ? TN_OK : fault_at(in, index, index_end, fault, err);
}

tn_status tn_pairs_ignore(tn_pairs *in, tn_error *err)
{
    static const tn_slot_spec any = {.non_finite_absent = true};
    const char *from = NULL;
    size_t size = 0;
    float x;
    bool keep;
    TN_TRY(take_value(in, &from, &size, err));
    tn_fault fault =
        size > 0 ? read_x(&any, (tn_bytes){from, size, false}, &x, &keep) : TN_FAULT_NONE;
    return fault == TN_FAULT_NONE ? TN_OK : fault_at(in, from, from + size, fault, err);
}

tn_status tn_pairs_end(tn_pairs *in, tn_error *err)
{
    const tn_slot_spec *spec = NULL;
    tn_fault fault = tn_rows_end(in->rows, &spec);
    if (fault == TN_FAULT_NONE) {
        return TN_OK;
    }
    tn_rows_rollback(in->rows);
    return tn_place_rule(in->place, in->line, spec, fault, err);
}
