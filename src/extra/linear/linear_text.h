/* linear_text.h - the linear and FM models of xLearn and of Vowpal Wabbit as they print them, line
 * by line.
 *
 *     xLearn's -t model.txt          VW's --invert_hash model.txt
 *     bias: 0.1173                   Version 9.11.9
 *     i_0: -0.7981                   ..
 *     i_1: 0.0695                    options: --lrq up2
 *     v_0: 0.18 -0.2                 Checksum: 3436988026
 *     v_1: 0.31 0.05                 :0
 *                                    user^frank:2688816:0.484666     name, index, weight
 *     of an FFM, per field:          lrq^u^frank^1:2688817:0.8348    index + 1: its vector's first
 *     v_0_0: 0.18 -0.2               2688818:0.0834                  one without a name: the second
 *     v_0_1: 0.31 0.05               Constant:13047152:-0.182255     the bias
 *
 *     TN_TRY(tn_linear_text_begin(&t, vw, bytes, path, err));
 *     while ((status = tn_linear_text_next(&t, &line, err)) == TN_OK) ..
 *
 * A cursor over bytes of the caller; a copy is a cursor of its own. Faults: TN_E_DATA with file and
 * line, also a last line that is cut off. What a name means is the matter of train/begin.
 */
#pragma once

#include "base/core/bytes.h"
#include "base/core/error.h"

#define TN_LINEAR_NO_FIELD UINT32_MAX

typedef enum tn_linear_kind { TN_LINEAR_BIAS, TN_LINEAR_WEIGHT, TN_LINEAR_VECTOR } tn_linear_kind;

typedef struct tn_linear_line {
    tn_linear_kind kind;
    tn_bytes name;   /* VW: without blanks, ':' and '|'; size 0: none. xLearn: as in front of ':' */
    uint64_t index;  /* xLearn: number of the feature; VW: place among its weights */
    uint32_t field;  /* field of the vector of an FFM, or TN_LINEAR_NO_FIELD */
    uint32_t n;      /* numbers: 1 but of a vector */
    tn_bytes number; /* their text */
} tn_linear_line;

typedef struct tn_linear_text {
    const char *path;
    tn_bytes rest;
    uint64_t line; /* read last, from 1 */
    bool vw;
    uint32_t width;      /* VW's --lrq: numbers of a vector; 0: the model has none */
    uint64_t width_line; /* the line with --lrq */
} tn_linear_text;

/* Reads the head of VW's. An option that makes the model another than the sum of the above is a
 * fault: crossed features, --lrq of some pairs of its namespaces only, every unknown one. */
tn_status tn_linear_text_begin(tn_linear_text *out, bool vw, tn_bytes bytes, const char *path,
                               tn_error *err) TN_MUST_USE;

/* Reads the next line. TN_END: there are no more. */
tn_status tn_linear_text_next(tn_linear_text *t, tn_linear_line *out, tn_error *err) TN_MUST_USE;

/* Reads the n finite numbers of the line that was read last. */
tn_status tn_linear_text_numbers(const tn_linear_text *t, const tn_linear_line *line, float *out,
                                 tn_error *err) TN_MUST_USE;

/* Fails at the line that was read last: "model.txt:12: error: expected WHAT, found "12x"". */
tn_status tn_linear_text_fail(const tn_linear_text *t, const char *what, tn_bytes found,
                              tn_error *err) TN_MUST_USE;
