/* svm_pairs.h - what libsvm and libffm lines share: label, weight, comment, and the pieces of a
 * pair.
 *
 *     1:2.5 qid:7  0:12:0.5 1:3   # note
 *     '-begin----'  '-more / digits / value'
 *
 * A tn_pairs walks one line; `at` is where it stands. Faults name the place.
 */
#ifndef TN_IO_SVM_PAIRS_H
#define TN_IO_SVM_PAIRS_H

#include "base/core/number.h"
#include "io/format/format.h"
#include "io/rows/rows_parsing.h"
#include "io/schema/schema.h"
#include "io/text/digits.h"

typedef struct tn_pairs {
    const char *at;
    const char *end;
    tn_bytes line;
    const tn_record_location *place;
    const tn_schema *schema;
    tn_rows *rows;
    bool begun; /* something behind the label was taken */
} tn_pairs;

/* The fast path, in place of tn_pairs_begin: takes label, qid and pairs as most are, as far as it
 * goes; the slow path goes on from there and finds what is wrong. `fields`: libffm. False: nothing
 * was taken, not even the label. */
bool tn_pairs_begin_fast(tn_pairs *in, bool fields);

/* Begins the row and takes label and weight off the line. TN_END: blank or a comment. */
tn_status tn_pairs_begin(tn_pairs *in, tn_error *err) TN_MUST_USE;

/* Skips blanks. False: the line ends here, or a comment begins. */
static inline bool tn_pairs_more(tn_pairs *in)
{
    while (in->at < in->end && tn_is_blank(*in->at)) {
        in->at++;
    }
    return in->at < in->end && *in->at != '#';
}

/* Takes 1 to 20 digits; false: there is none, or they are too large (then *at is behind them). */
static inline bool tn_pairs_digits(tn_pairs *in, uint64_t *out)
{
    const char *p = tn_take_digits(in->at, in->end, out);
    size_t size = (size_t)(p - in->at);
    in->at = p;
    return size > 0 && (size < 20 || tn_read_u64(p - size, size, out) == TN_NUM_OK);
}

/* The fault of a number that could not be taken: no digits, or a number too large that begins at
 * `from`. */
tn_status tn_pairs_no_digits(const tn_pairs *in, const char *from, const char *what,
                             tn_error *err) TN_MUST_USE;

/* Takes the value of a pair as nearly all have it: none, or one digit. False: any other; nothing is
 * taken then. */
static inline bool tn_pairs_plain_value(tn_pairs *in, float *x)
{
    const char *p = in->at;
    size_t left = (size_t)(in->end - p);
    if (left == 0 || tn_is_blank(p[0])) {
        *x = 1;
        return true;
    }
    if (left < 2 || p[0] != ':' || (unsigned)(p[1] - '0') > 9 || (left > 2 && !tn_is_blank(p[2]))) {
        return false;
    }
    *x = (float)(p[1] - '0');
    in->at = p + 2;
    return true;
}

/* The general case of tn_pairs_add. */
tn_status tn_pairs_add_any(tn_pairs *in, const tn_slot_spec *spec, const char *index, uint64_t sign,
                           tn_error *err) TN_MUST_USE;

/* Adds the pair whose sign is the text from `index` to `at`, and takes what stands behind it:
 * nothing, or ':' and a value. `sign` is the number, with the base taken off. */
static inline tn_status tn_pairs_add(tn_pairs *in, const tn_slot_spec *spec, const char *index,
                                     uint64_t sign, tn_error *err)
{
    const char *at = in->at;
    float x;
    if (spec->plain_key && spec->type == TN_SIGN_ID && in->rows->token == NULL &&
        tn_pairs_plain_value(in, &x) && tn_rows_put(in->rows, spec, sign, x)) {
        return TN_OK;
    }
    in->at = at;
    return tn_pairs_add_any(in, spec, index, sign, err);
}

/* Passes over a value that no slot takes; it must read well all the same. */
tn_status tn_pairs_ignore(tn_pairs *in, tn_error *err) TN_MUST_USE;

/* Takes the base off an index. False: the index is 0 and the base 1. */
static inline bool tn_pairs_rebase(const tn_pairs *in, uint64_t *index)
{
    uint32_t base = in->schema->index_base;
    bool good = *index >= base;
    *index -= base;
    return good;
}

tn_status tn_pairs_end(tn_pairs *in, tn_error *err) TN_MUST_USE;

#endif
