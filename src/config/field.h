/* field.h - one table that says all there is to say about an options struct.
 *
 * The table is the YAML schema, the command line, the defaults, the checks, the
 * "did you mean", the help, the documentation and the JSON schema.
 *
 *     static const tn_field train_fields[] = {
 *         TN_FIELD_U32(train_opts, epochs, "1", 1, 1e6, "", "passes over the data"),
 *         TN_FIELD_VARIANT(train_opts, optimizer, "adam", optimizers, "rule of dense weights"),
 *         TN_FIELD_END,
 *     };
 *
 * A default is written as it is written in YAML; "~" is "not set": NULL for texts, trees and
 * lists, NAN for reals, TN_UNSET_U32 and TN_UNSET_U64 for counts and choices, false; a fallback of
 * NULL makes the option required. A user's "~" is the same as not writing the key. Texts and lists
 * live in the binder's arena. A number may be one of `words` instead (threads: all): row U32W and
 * its like. Word i reads as TN_WORD_U32(i) or TN_WORD_U64(i); a real's only word is INFINITY.
 */
#pragma once

#include "base/core/offset.h"
#include "config/values.h"

typedef struct tn_text tn_text; /* base/core/text.h */

/* Sets every field of *opts from `map` (NULL: nothing is given) or from its default. Faults go to
 * b->diag; a field at fault has its default. Unknown keys are faults. A scalar where a map is
 * expected sets the table's first field. */
void tn_fields_bind(const tn_binder *b, const tn_field *fields, const tn_tree *map, void *opts);
/* Does the same but leaves keys that are not in `fields` to other readers of the same map. */
void tn_fields_bind_some(const tn_binder *b, const tn_field *fields, const tn_tree *map,
                         void *opts);
/* Lays `map` over options that are set: those that it does not give keep their values. */
void tn_fields_bind_over(const tn_binder *b, const tn_field *fields, const tn_tree *map,
                         void *opts);

/* Returns the bytes of the struct that a table with TN_FIELD_END_OF describes. */
size_t tn_fields_size(const tn_field *fields);

/* Reads one scalar as `kind` (BOOL .. CHOICE). For trees that are read by hand. Returns false after
 * a report. */
bool tn_read_scalar(const tn_binder *b, const tn_field *as, const tn_tree *scalar, void *out);

/* ---- what a table says about itself; all append to `out`, whose check reports a lack of room
 * ---- */

typedef struct tn_print_opts {
    bool sources;               /* adds the source of every value, as a comment */
    const char *const *without; /* dotted paths that are left out, NULL-terminated; NULL: none */
} tn_print_opts;

/* Appends every option with its value from `tree` or its default, as YAML in the order of the
 * tables. An item of a list of tables is one line that holds what is not default. Reading it back
 * gives the same configuration, and the same text when printed again. */
void tn_fields_print(tn_text *out, const tn_field *fields, const tn_tree *tree,
                     const tn_print_opts *opts);

/* Appends a JSON schema: completion and checks in editors. */
void tn_fields_schema(tn_text *out, const tn_field *fields, const char *title);
void tn_fields_markdown(tn_text *out, const tn_field *fields); /* docs/config.md */
void tn_fields_help(tn_text *out, const tn_field *fields);     /* a line per option: --help */
void tn_fields_paths(tn_text *out, const tn_field *fields);    /* every dotted path: completion */

/* Appends the value of an option in a struct as flow YAML: equal values are equal texts. */
void tn_field_value_text(tn_text *out, const tn_field *f, const void *opts);

/* ---- the rows of an option table; a row whose member has another type than its kind does not
 * compile ---- */

/* Defines a row; arguments after the help are more members of it. */
#define TN_ROW(kind_, type, member, want, fallback_, lo, hi, unit_, ...)                           \
    {                                                                                              \
        .kind = (kind_), .key = #member, .offset = TN_OFFSET(type, member, want),                  \
        .fallback = (fallback_), .min = (lo), .max = (hi), .unit = (unit_), .help = __VA_ARGS__    \
    }
#define TN_FIELD_END                                                                               \
    {                                                                                              \
        .kind = TN_KIND_END                                                                        \
    }
/* Ends a table whose struct lies apart: the binder reserves a `type`. */
#define TN_FIELD_END_OF(type)                                                                      \
    {                                                                                              \
        .kind = TN_KIND_END, .size = sizeof(type)                                                  \
    }

#define TN_FIELD_BOOL(type, member, fallback, ...)                                                 \
    TN_ROW(TN_KIND_BOOL, type, member, bool, fallback, 0, 0, "", __VA_ARGS__)
#define TN_FIELD_U32(type, member, fallback, lo, hi, unit, ...)                                    \
    TN_ROW(TN_KIND_U32, type, member, uint32_t, fallback, lo, hi, unit, __VA_ARGS__)
#define TN_FIELD_U64(type, member, fallback, lo, hi, unit, ...)                                    \
    TN_ROW(TN_KIND_U64, type, member, uint64_t, fallback, lo, hi, unit, __VA_ARGS__)
#define TN_FIELD_F64(type, member, fallback, lo, hi, unit, ...)                                    \
    TN_ROW(TN_KIND_F64, type, member, double, fallback, lo, hi, unit, __VA_ARGS__)
#define TN_FIELD_DURATION(type, member, fallback, lo, hi, ...)                                     \
    TN_ROW(TN_KIND_DURATION, type, member, double, fallback, lo, hi, "s", __VA_ARGS__)
#define TN_FIELD_SIZE(type, member, fallback, lo, hi, ...)                                         \
    TN_ROW(TN_KIND_SIZE, type, member, uint64_t, fallback, lo, hi, "bytes", __VA_ARGS__)
/* Define numbers that may also be one of words_; see the top of this file. */
#define TN_FIELD_SIZEW(type, member, fallback, lo, hi, words_, ...)                                \
    TN_ROW(TN_KIND_SIZE, type, member, uint64_t, fallback, lo, hi, "bytes", __VA_ARGS__,           \
           .words = (words_))
#define TN_FIELD_U32W(type, member, fallback, lo, hi, unit, words_, ...)                           \
    TN_ROW(TN_KIND_U32, type, member, uint32_t, fallback, lo, hi, unit, __VA_ARGS__,               \
           .words = (words_))
#define TN_FIELD_F64W(type, member, fallback, lo, hi, unit, words_, ...)                           \
    TN_ROW(TN_KIND_F64, type, member, double, fallback, lo, hi, unit, __VA_ARGS__,                 \
           .words = (words_))
#define TN_FIELD_STR(type, member, fallback, ...)                                                  \
    TN_ROW(TN_KIND_STR, type, member, const char *, fallback, 0, 0, "", __VA_ARGS__)
#define TN_FIELD_CHOICE(type, member, fallback, words_, ...)                                       \
    TN_ROW(TN_KIND_CHOICE, type, member, uint32_t, fallback, 0, 0, "", __VA_ARGS__,                \
           .words = (words_))
#define TN_FIELD_STRS(type, member, fallback, ...)                                                 \
    TN_ROW(TN_KIND_STRS, type, member, tn_strs, fallback, 0, 0, "", __VA_ARGS__)
#define TN_FIELD_F64S(type, member, fallback, lo, hi, ...)                                         \
    TN_ROW(TN_KIND_F64S, type, member, tn_f64s, fallback, lo, hi, "", __VA_ARGS__)
#define TN_FIELD_TABLE(type, member, want, table_, ...)                                            \
    TN_ROW(TN_KIND_TABLE, type, member, want, "{}", 0, 0, "", __VA_ARGS__, .table = (table_))
/* Defines a table whose struct lies apart; the member at `at` is a pointer to it. */
#define TN_FIELD_APART(name, at, table_, about)                                                    \
    {                                                                                              \
        .kind = TN_KIND_TABLE, .key = (name), .offset = (at), .fallback = "{}", .unit = "",        \
        .help = (about), .table = (table_), .apart = true                                          \
    }
#define TN_FIELD_TABLES(type, member, want, fallback, table_, ...)                                 \
    TN_ROW(TN_KIND_TABLES, type, member, tn_tables, fallback, 0, 0, "", __VA_ARGS__,               \
           .table = (table_), .size = sizeof(want))
#define TN_FIELD_VARIANT(type, member, fallback, choices_, ...)                                    \
    TN_ROW(TN_KIND_VARIANT, type, member, tn_variant, fallback, 0, 0, "", __VA_ARGS__,             \
           .choices = (choices_))
/* Defines a variant whose map takes the keys of table_ beside those of each choice; they are read
 * into .shared, a `want`. */
#define TN_FIELD_VARIANT_WITH(type, member, fallback, choices_, want, table_, ...)                 \
    TN_ROW(TN_KIND_VARIANT, type, member, tn_variant, fallback, 0, 0, "", __VA_ARGS__,             \
           .choices = (choices_), .table = (table_), .size = sizeof(want))
/* Define trees. TREE: maps merge key by key. TREE_ONE: a layer replaces what is below it. TREE_OF:
 * as TREE, and a text x means {first_: x}; a text, and a map with this key on one without, replace.
 * With `type` it is a rule, or rules by name, and another type replaces a rule as well. */
#define TN_FIELD_TREE(type, member, fallback, ...)                                                 \
    TN_FIELD_TREE_OF(type, member, fallback, NULL, __VA_ARGS__)
#define TN_FIELD_TREE_ONE(type, member, fallback, ...)                                             \
    TN_FIELD_TREE_OF(type, member, fallback, "", __VA_ARGS__)
#define TN_FIELD_TREE_OF(type, member, fallback, first_, ...)                                      \
    TN_ROW(TN_KIND_TREE, type, member, const tn_tree *, fallback, 0, 0, "", __VA_ARGS__,           \
           .first = (first_))
