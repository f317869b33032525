/* data_infer_look.h - what the texts of columns are, by the rules of the readers themselves.
 *
 *     "12.0" "7" "NaN"     2 values, both whole numbers; a word for a missing one
 *
 * Each text is given to tn_rows_token as slots of every type would give it, so a column is what its
 * reader will take it for.
 */
#pragma once

#include "extra/inspect/discovered_input.h"
#include "extra/inspect/inspect_sketch.h"

enum { TN_LOOK_WORDS = 16, TN_LOOK_BYTES = 64 };

/* One of the first few different values, and how often it came. */
typedef struct tn_look_word {
    char text[TN_LOOK_BYTES];
    double number; /* NAN: it is none */
    uint64_t n;
} tn_look_word;

/* Describes the texts of a column. Words for missing values are no values where all others are
 * numbers, hex digits or dates; elsewhere they are words like any other. */
typedef struct tn_column_look {
    uint64_t filled, values;           /* rows with a value; values */
    uint64_t listed;                   /* values with a '|' */
    uint64_t pieces;                   /* values, those between '|' apart */
    uint64_t whole, negative, natural; /* pieces that are integers */
    uint64_t number, infinite, hex;    /* pieces: numbers; inf; 8 hex digits */
    uint64_t hour, day, compact;       /* pieces: YYMMDDHH; like 2026-11-07; like YYYYMMDD */
    uint64_t readable;                 /* pieces that have an hour for transforms */
    uint64_t rounded;                  /* pieces like 9.06e+17, or of 21 digits: no ids any more */
    uint64_t labels;                   /* values that are labels as they are */
    uint64_t gaps;                     /* words for missing values */
    uint64_t gap[TN_MISSING_WORDS];    /* uses of each of tn_missing_words */
    uint32_t unread_gaps;              /* bits: that no reader takes for one by itself */
    double least, largest, last, sum;  /* statistics of the numbers */
    uint64_t risen;                    /* numbers not below the one before */
    uint32_t last_row;                 /* with a value; counted from 1, 0: none */
    uint32_t n_words;                  /* TN_LOOK_WORDS + 1: there are more */
    tn_look_word word[TN_LOOK_WORDS];
    tn_distinct distinct;
} tn_column_look;

typedef struct tn_looking tn_looking;

/* Looks with the readers of in->found.format, and at labels of its loss. `nulls`: words for missing
 * values may be some. TN_E_MEMORY, TN_E_CONFIG. */
tn_status tn_looking_new(tn_looking **out, tn_data_input *in, bool nulls,
                         tn_error *err) TN_MUST_USE;
void tn_looking_free(tn_looking *l); /* NULL is fine */

/* One value of a column in row `row`, from 1. */
void tn_look_at(tn_looking *l, tn_column_look *c, uint32_t row, const char *text, size_t size);
/* Call it once, after the last value of the column. */
void tn_look_end(tn_column_look *c);

uint64_t tn_look_different(const tn_column_look *c);
/* Numbers and texts apart among the first few: 1.0 is 1. More than TN_LOOK_WORDS: they are not
 * known. */
uint32_t tn_look_classes(const tn_column_look *c);
/* Whether the words i and k are the same value. */
bool tn_look_same(const tn_column_look *c, uint32_t i, uint32_t k);

bool tn_look_ends_in_id(const char *name);

/* Returns which kind of times a column of this name holds, in words; NULL: it holds none. */
extern const char tn_look_hours[]; /* YYMMDDHH, which transforms read */
const char *tn_look_times(const tn_column_look *c, const char *name);
