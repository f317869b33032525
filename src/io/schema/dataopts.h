/* dataopts.h - the sections `data:` and `slots:` of a configuration, as structs and option tables.
 *
 * The words are those of docs/config.md. Options of the model for a slot (dim, pool, optimizer,
 * ..) are in the same list, but are read by train/: io only carries them.
 */
#pragma once

#include "base/keys/target.h"
#include "base/keys/tasks.h"
#include "config/values.h"

/* tn_data_opts.part_bytes of tools, which ask for no parts: every file is one. */
#define TN_PART_WHOLE (UINT64_C(1) << 62)

enum {
    TN_COMPRESSION_AUTO,
    TN_COMPRESSION_NONE,
    TN_COMPRESSION_GZIP,
    TN_COMPRESSION_ZLIB,
    TN_COMPRESSION_ZSTD,
    TN_COMPRESSION_LZ4,
    TN_COMPRESSION_SNAPPY,
    TN_COMPRESSION_CONTAINER /* the container of the format, which nobody need name */
};
/* data.shuffle: larger windows reach over parts (io/read/reader.h). */
enum { TN_SHUFFLE_OF_PART = 262144 };
enum { TN_HEADER_AUTO, TN_HEADER_TRUE, TN_HEADER_FALSE };
enum { TN_QUOTE_AUTO, TN_QUOTE_NONE, TN_QUOTE_LINE, TN_QUOTE_MULTILINE };
enum { TN_ROWS_ERROR, TN_ROWS_PAD };             /* short_rows */
enum { TN_FIELD_IS_ERROR, TN_FIELD_IS_IGNORED }; /* unknown_field */
enum { TN_LABEL_SLOTS_REFUSE, TN_LABEL_SLOTS_ALLOW };
enum { TN_CHANGED_REFUSE, TN_CHANGED_ACCEPT }; /* changed */
enum { TN_KEEP_FIRST, TN_KEEP_LAST };
enum { TN_UNEVEN_ERROR, TN_UNEVEN_CUT };
enum { TN_DUPLICATES_KEEP, TN_DUPLICATES_SUM, TN_DUPLICATES_ERROR };
enum { TN_NON_FINITE_ERROR, TN_NON_FINITE_ABSENT };
enum { TN_STEP_ERROR, TN_STEP_CONCAT };

/* A column with a number beside the row, for a task (base/keys/tasks.h): its label, or factors. */
typedef struct tn_aside {
    const char *column;
    const tn_tree *label; /* as tn_data_opts.label; NULL: it has factors */
    tn_target target;
} tn_aside;

typedef struct tn_data_opts {
    const char *format; /* row of formats.def */
    tn_strs train, valid, test;
    uint32_t compression;
    const tn_tree *label; /* column name, {column, values | threshold}, or none */
    uint32_t label_slots; /* whether slots may read its column, or that of the weight */
    const char *weight;
    const char *group;
    const char *record_id;
    const char *bad_records_max; /* "N" or "P%" */
    uint32_t shuffle;            /* auto: TN_AUTO, until train/config/choices.h has chosen */
    uint32_t readers;            /* auto: TN_AUTO */
    double negative_sampling;
    uint32_t index_base; /* 0, 1; auto: TN_AUTO */
    const char *delimiter;
    uint32_t header;
    tn_strs columns;
    uint32_t quote;
    bool trim;
    tn_strs null;
    uint32_t short_rows;
    const char *list;
    const char *comment;
    const char *slot_bits; /* crb: high N or low N */
    uint32_t unknown_field;
    bool row_norm;
    bool next;     /* set by train/: `valid` was the word next, and is empty now */
    bool again;    /* set by the program: a day that is learned, or lies before one */
    uint32_t held; /* set by train/: `valid` is rows held back of `train`, whose paths it has now */
    double held_part; /* set by train/: the part of rows that is held (io/read/held_rows.h) */
    uint64_t record_bytes_max;
    uint64_t part_bytes; /* parts are cut near this size */
    uint32_t changed;    /* for train/, when the files are others than before */
    uint32_t n_days;     /* set by train/ */

    /* A run over days (train/config/days.h). */
    tn_strs days;
    uint64_t valid_rows;
    const char *done;
    const char *wait;    /* a duration, or inf */
    const char *secrets; /* a file for data of a store: extra/remote/secrets.h */
    /* Set by train/ from these, and `train` to the files of one day: */
    tn_strs pattern;       /* `train` as it is written; n 0: no run over days */
    const uint32_t *day;   /* n_days: the days that `days` names, ascending */
    double wait_s;         /* INFINITY: for ever */
    bool ordered;          /* rows have the order of their labels, and no window mixes all */
    bool aside_optional;   /* set by the program: data may lack the columns of `aside` */
    tn_target target;      /* target of the loss: set by the program, no option */
    const tn_tasks *tasks; /* set by the program: the tasks of the run; NULL: one label */
    const tn_aside *aside; /* columns of their n_aside numbers */
} tn_data_opts;

enum { TN_HELD_NONE, TN_HELD_SHARE, TN_HELD_LAST };

/* Rows to judge by, in files or in the day after. */
static inline bool tn_data_has_valid(const tn_data_opts *data)
{
    return data->valid.n > 0 || data->next;
}

typedef struct tn_slot_opts {
    const char *name;
    const char *column; /* ~: the name */
    uint32_t type;      /* tn_sign_type */
    const char *share;
    uint32_t as;              /* tn_slot_as */
    const tn_tree *transform; /* identity log minmax zscore ln2_bucket buckets quantiles */
    const char *list;
    const char *values;
    uint32_t max_len; /* 0: no limit */
    uint32_t keep;
    const char *sequence; /* the one that its values are positions of; ~: none */
    uint32_t uneven;      /* error cut */
    uint32_t step_pool;
    tn_strs cross;         /* slots whose keys it combines; n 0: it reads a column */
    const tn_tree *absent; /* none | key, or a number for `value` */
    uint32_t duplicates;
    bool drop_zero;
    uint32_t non_finite;
    uint32_t field; /* libffm: ~ or the field number */
    tn_f64s range;  /* libsvm: [a, b) */
    /* read by train/ */
    uint32_t dim;
    const tn_tree *pool;
    uint32_t missing; /* zero init */
    const tn_tree *optimizer;
    double lr, l2;
    const tn_tree *admission;
    const tn_tree *expiry;
    double decay;
    uint32_t cvm; /* false true */
    const tn_tree *init;
    tn_strs uses;
} tn_slot_opts;

/* How a slot is read (tn_slot_as): a vector is numbers. */
uint32_t tn_slot_as_of(const tn_slot_opts *slot);

/* The words of choices, in the order of their numbers, then NULL. */
extern const char *const tn_quote_words[];
extern const char *const tn_slot_type_words[];
extern const char *const tn_slot_as_words[];
extern const char *const tn_keep_words[];
extern const char *const tn_uneven_words[];

extern const tn_field tn_data_fields[];
extern const tn_field tn_slot_fields[];
