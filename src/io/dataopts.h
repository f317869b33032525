/* dataopts.h - the sections `data:` and `slots:` of a configuration, as structs and option tables.
 *
 * The words are those of docs/config.md. What the model does with a slot (dim,
 * pool, optimizer, ..) stands in the same list but is read by train/: io only
 * carries it.
 */
#ifndef TN_IO_DATAOPTS_H
#define TN_IO_DATAOPTS_H

#include "base/field.h"

typedef struct tn_data_opts {
    const char *format; /* row of formats.def */
    tn_strs train, valid, test;
    uint32_t compression; /* auto none gzip zlib */
    const tn_tree *label; /* column name, {column, values | threshold}, or none */
    const char *weight;
    const char *group;
    const char *record_id;
    const char *bad_records_max; /* "N" or "P%" */
    uint32_t shuffle;
    uint32_t readers; /* auto: TN_AUTO */
    double negative_sampling;
    uint32_t index_base; /* 0 1 auto */
    const char *delimiter;
    uint32_t header;    /* auto true false */
    tn_strs columns;
    uint32_t quote;     /* auto none line multiline */
    bool trim;
    tn_strs null;
    uint32_t short_rows; /* error pad */
    const char *list;
    const char *comment;
    uint32_t unknown_field; /* error ignore */
    bool row_norm;
    uint64_t record_bytes_max;
    uint64_t part_bytes; /* parts are cut near this size */
} tn_data_opts;

typedef struct tn_slot_opts {
    const char *name;
    const char *column; /* ~: the name */
    uint32_t type;      /* id int hex str float */
    const char *share;
    uint32_t as;        /* key value weighted */
    const tn_tree *transform; /* identity log minmax zscore ln2_bucket buckets quantiles */
    const char *list;
    const char *values;
    uint32_t max_len;   /* 0: no limit */
    uint32_t keep;      /* first last */
    const tn_tree *absent; /* none | key, or a number for `value` */
    uint32_t duplicates; /* keep sum error */
    bool drop_zero;
    uint32_t non_finite; /* error absent */
    uint32_t field;      /* libffm: ~ or the field number */
    tn_f64s range;       /* libsvm: [a, b) */
    /* read by train/ */
    uint32_t dim;
    const tn_tree *pool;
    uint32_t missing; /* zero init */
    const tn_tree *optimizer;
    double lr, l2;
    const tn_tree *init;
    tn_strs uses;
} tn_slot_opts;

extern const tn_field tn_data_fields[];
extern const tn_field tn_slot_fields[];

#endif
