/* generate_file.h - a range of a planted world as a data file, and what its truth is worth. */
#pragma once

#include "base/core/text.h"
#include "extra/synth/generate.h"
#include "io/write/write_sink.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_schema tn_schema; /* io/schema/schema.h */

/* The figures of the planted probability itself, which no model beats. Two readings of each
 * figure. The empirical one takes the labels as thrown, the same rows a model is judged on; the
 * expected one takes every row as p clicks and 1 - p none, so it is free of the throw's noise.
 * Definitions are those of the metrics: exact AUC with ties half, logloss in nats, unclipped. */
typedef struct tn_oracle_row {
    double logit;
    bool click;
} tn_oracle_row;

typedef struct tn_oracle {
    uint64_t rows, clicks;
    double auc, auc_expected;         /* NAN when there is one class only */
    double logloss, logloss_expected; /* NAN without rows */
} tn_oracle;

/* Sorts `row`. */
tn_oracle tn_oracle_judge(tn_oracle_row *row, size_t n);

/* The oracle judges at most this many rows: the first of the file. */
#define TN_GEN_ORACLE_ROWS UINT64_C(4000000)

typedef struct tn_gen_report {
    uint64_t rows;
    uint64_t bytes;      /* before compression */
    uint64_t parameters; /* planted ones that occur in the rows: what a trainer gets to see; 0: not
                          * counted, the world has too many ids */
    uint64_t free_parameters; /* parameters of `lr` or `fm` that the rows identify: a right model
                               * that is trained on n rows misses the oracle's logloss by about
                               * free_parameters / (2n); 0: not known */
    tn_oracle oracle;
    tn_oracle purchases; /* the same of purchases; 0 rows: there are none */
} tn_gen_report;

/* The data of a configuration that reads the rows: a file, or a pattern with {day:..}. */
typedef struct tn_gen_place {
    const char *format;
    const char *path;
    const char *days; /* NULL: one file */
} tn_gen_place;

/* The configuration that reads them: sections data, slots and model. TN_E_CONFIG: the world cannot
 * be written in this format. */
tn_status tn_gen_config(const tn_generator *g, const tn_gen_place *at, tn_text *out,
                        tn_error *err) TN_MUST_USE;

/* Writes opts->rows rows from opts->first_row on. `schema` is that of tn_gen_config, with a float
 * slot `buy` (as: value) after the others when there are purchases, and one `truth` after that when
 * the options ask for the truth. */
tn_status tn_gen_write(const tn_generator *g, const tn_schema *schema, tn_sink *sink, tn_team *team,
                       tn_gen_report *out, tn_error *err) TN_MUST_USE;

/* The planted truth and the figures it reaches, as JSON. */
void tn_gen_truth_json(const tn_generator *g, const tn_gen_report *report, tn_text *out);
