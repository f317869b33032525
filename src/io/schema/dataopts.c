/* dataopts.c - the option tables of `data:` and `slots:`. */
#include "io/schema/dataopts.h"

#include "base/keys/record.h"
#include "config/field.h"

static const char *const auto_word[] = {"auto", NULL};
static const char *const compressions[] = {"auto", "none", "gzip",   "zlib",
                                           "zstd", "lz4",  "snappy", NULL};
static const char *const headers[] = {"auto", "true", "false", NULL};
const char *const tn_quote_words[] = {"auto", "none", "line", "multiline", NULL};
static const char *const short_rows[] = {"error", "pad", NULL};
static const char *const unknown_fields[] = {"error", "ignore", NULL};
const char *const tn_slot_type_words[] = {"id", "int", "hex", "str", "float", "vector", NULL};
const char *const tn_slot_as_words[] = {"key", "value", "weighted", NULL};
const char *const tn_keep_words[] = {"first", "last", NULL};
const char *const tn_uneven_words[] = {"error", "cut", NULL};
static const char *const duplicates[] = {"keep", "sum", "error", NULL};
static const char *const non_finites[] = {"error", "absent", NULL};
static const char *const step_pools[] = {"error", "concat", NULL};
static const char *const label_slots[] = {"refuse", "allow", NULL};
static const char *const changes[] = {"refuse", "accept", NULL};
static const char *const missings[] = {"zero", "init", NULL};

#define NOTHING .meaning = TN_MEANS_NOTHING
#define PLACE .meaning = TN_MEANS_PLACE
#define KEY .meaning = TN_MEANS_KEY
#define ROW .meaning = TN_MEANS_ROW
#define MODEL .meaning = TN_MEANS_MODEL

const tn_field tn_data_fields[] = {
    TN_FIELD_STR(tn_data_opts, format, NULL,
                 "how records are written: tnet-train --list-formats; tnet-data infer finds it",
                 NOTHING),
    TN_FIELD_STRS(tn_data_opts, train, "~",
                  "files to learn from: paths, globs, folders, URIs (s3://..), '-'; with data.days "
                  "of each day, "
                  "{day:%Y%m%d} and {hour:%H} in it",
                  NOTHING),
    TN_FIELD_STRS(tn_data_opts, valid, "~",
                  "files to evaluate while training; {share: 10%} of the rows of data.train by "
                  "chance, or its {last: 10%}, which are not learned; next: with data.days, the "
                  "first data.valid_rows of the day after",
                  .first = "", NOTHING),
    TN_FIELD_STRS(tn_data_opts, test, "~", "files to evaluate once, at the end", NOTHING),
    TN_FIELD_CHOICE(tn_data_opts, compression, "auto", compressions,
                    "what surrounds the records; auto looks at the first bytes", NOTHING),
    TN_FIELD_TREE_OF(tn_data_opts, label, "~", "column",
                     "column of the label (default label), {column: .., values: {text: number}}, "
                     "{column: .., threshold: t}, or none",
                     ROW),
    TN_FIELD_CHOICE(tn_data_opts, label_slots, "refuse", label_slots,
                    "slots that read the column of the label or of the weight: a model with them "
                    "knows the answer",
                    NOTHING),
    TN_FIELD_STR(tn_data_opts, weight, "~", "column of row weights", NOTHING),
    TN_FIELD_STR(tn_data_opts, group, "~",
                 "column whose value groups rows, for GAUC and losses of pairs", NOTHING),
    TN_FIELD_STR(tn_data_opts, record_id, "~", "column carried into predictions", NOTHING),
    TN_FIELD_STR(tn_data_opts, bad_records_max, "0",
                 "bad records to skip before the run ends: a number, or a share as in 0.1%",
                 NOTHING),
    TN_FIELD_U32W(tn_data_opts, shuffle, "auto", 0, 16777216, "rows", auto_word,
                  "rows held back and permuted while training; 0: as read; auto: 65536, or all of "
                  "up to 262144, more where labels come in order; 0 with losses of pairs",
                  NOTHING),
    TN_FIELD_U32W(tn_data_opts, readers, "auto", 1, 256, "threads", auto_word,
                  "threads that parse records", NOTHING),
    TN_FIELD_F64(tn_data_opts, negative_sampling, "1", 1e-9, 1, "",
                 "share of negative rows kept while training", ROW),
    TN_FIELD_U32W(tn_data_opts, index_base, "0", 0, 1, "", auto_word,
                  "libsvm family: first index of the data; 1 makes index 0 an error", PLACE),
    TN_FIELD_STR(tn_data_opts, delimiter, "~", "csv, tsv: the separator, one byte between fields",
                 NOTHING),
    TN_FIELD_CHOICE(tn_data_opts, header, "auto", headers,
                    "csv, tsv: the first line names the columns (auto: csv true, tsv false)",
                    NOTHING),
    TN_FIELD_STRS(tn_data_opts, columns, "~", "csv, tsv: names of the columns without a header",
                  PLACE),
    TN_FIELD_CHOICE(tn_data_opts, quote, "auto", tn_quote_words,
                    "csv, tsv: what quotes may hold (auto: csv line, tsv none)", PLACE),
    TN_FIELD_BOOL(tn_data_opts, trim, "false", "csv, tsv: drop blanks around fields", KEY),
    TN_FIELD_STRS(tn_data_opts, null, "[\"\"]", "csv, tsv, jsonl: texts that mean no value", KEY),
    TN_FIELD_CHOICE(tn_data_opts, short_rows, "error", short_rows,
                    "csv, tsv: rows with too few fields; pad: the rest is null", NOTHING),
    TN_FIELD_STR(tn_data_opts, list, "~", "csv, tsv: one byte between the values of a field",
                 PLACE),
    TN_FIELD_STR(tn_data_opts, comment, "~", "csv, tsv: lines that begin with it are skipped",
                 NOTHING),
    TN_FIELD_CHOICE(tn_data_opts, unknown_field, "error", unknown_fields,
                    "libsvm family, vw, crb: a field, index or namespace that no slot takes",
                    NOTHING),
    TN_FIELD_BOOL(tn_data_opts, row_norm, "false",
                  "libffm: divide the values of a row by their norm", KEY),
    TN_FIELD_STR(
        tn_data_opts, slot_bits, "~",
        "crb: bits of an index that are its field, as in high 10 or low 12; the slots have "
        "a field each",
        PLACE),
    TN_FIELD_SIZE(tn_data_opts, record_bytes_max, "64MiB", 1, 1073741824,
                  "longest record that is taken", NOTHING),
    TN_FIELD_SIZE(tn_data_opts, part_bytes, "64MiB", 1, 1e15,
                  "files are cut into parts of about this size", NOTHING),
    TN_FIELD_CHOICE(
        tn_data_opts, changed, "refuse", changes,
        "training files that hold other bytes than the epoch before, or the checkpoint, "
        "has read: end with code 4, or learn from them",
        NOTHING),
    TN_FIELD_STRS(tn_data_opts, days, "~",
                  "days to learn, each once and in order: first..last, a list, or one, as in "
                  "2026-11-01..2026-11-07; or hours: 2026-11-07T00..T05; 'day=2026-11-08' and "
                  "'hour=2026-11-07T05' on the command line are short for it",
                  NOTHING),
    TN_FIELD_U64(tn_data_opts, valid_rows, "1000000", 1, 1e15, "rows",
                 "of a day that 'valid: next' evaluates, in whole batches", NOTHING),
    TN_FIELD_STR(tn_data_opts, done, "~",
                 "file that says in the folder of a day that it is complete, _SUCCESS; ~: a day is "
                 "there when its files are",
                 NOTHING),
    TN_FIELD_STR(tn_data_opts, wait, "0s",
                 "how long a day that is not there is waited for; inf: for ever", NOTHING),
    TN_FIELD_STR(tn_data_opts, secrets, "~",
                 "file with keys and tokens for data behind a URI, mode 0600; see docs/data.md",
                 NOTHING),
    TN_FIELD_END,
};

static const char *const yes_or_no[] = {"false", "true", NULL};

const tn_field tn_slot_fields[] = {
    TN_FIELD_STR(tn_slot_opts, name, NULL, "name of the slot; part of its keys unless shared",
                 MODEL),
    TN_FIELD_STR(tn_slot_opts, column, "~", "column or feature it reads; default: its name", PLACE),
    TN_FIELD_CHOICE(tn_slot_opts, type, "id", tn_slot_type_words,
                    "what its values are; vector: a list of dim numbers, which are an input", KEY),
    TN_FIELD_STRS(
        tn_slot_opts, cross, "~",
        "two to four slots: it has a key for each combination of their keys, and reads no "
        "column",
        KEY),
    TN_FIELD_STR(tn_slot_opts, share, "~", "slots of one share group have one vector per sign",
                 KEY),
    TN_FIELD_CHOICE(tn_slot_opts, as, "key", tn_slot_as_words,
                    "keys, a number of the numeric input, or a number times one vector", KEY),
    TN_FIELD_TREE_ONE(
        tn_slot_opts, transform, "~",
        "identity, log, {minmax: [a, b]}, zscore, {zscore: [mean, deviation]}, "
        "ln2_bucket, {buckets: [..]}, quantiles, {quantiles: parts or file}, hour, weekday or "
        "weekend of a date (YYMMDDHH, unix seconds, 2026-11-29T23:15:07); default: quantiles of "
        "a float that is a key, zscore of what is 'as: value'",
        KEY),
    TN_FIELD_STR(tn_slot_opts, list, "~", "one byte between values; default: data.list", PLACE),
    TN_FIELD_STR(tn_slot_opts, values, "~", "column of x_j, one number per value", PLACE),
    TN_FIELD_U32(tn_slot_opts, max_len, "0", 0, 1048576, "values", "values kept; 0: all", KEY),
    TN_FIELD_CHOICE(tn_slot_opts, keep, "last", tn_keep_words, "which ones, when there are more",
                    KEY),
    TN_FIELD_STR(tn_slot_opts, sequence, "~",
                 "the sequence whose positions its values are; said by sequences", MODEL),
    TN_FIELD_CHOICE(tn_slot_opts, uneven, "error", tn_uneven_words,
                    "lists of a sequence of several lengths: a fault of the row, or cut to the "
                    "shortest; said by sequences",
                    NOTHING),
    TN_FIELD_CHOICE(
        tn_slot_opts, step_pool, "error", step_pools,
        "tfrecord: a step of a feature list with several values; concat: each is a value", NOTHING),
    TN_FIELD_TREE_ONE(tn_slot_opts, absent, "~",
                      "no value: none, key (one of its own), or the number it stands for", KEY),
    TN_FIELD_CHOICE(tn_slot_opts, duplicates, "keep", duplicates, "a key twice in the slot", KEY),
    TN_FIELD_BOOL(tn_slot_opts, drop_zero, "false", "leave out pairs whose value is 0", KEY),
    TN_FIELD_CHOICE(tn_slot_opts, non_finite, "error", non_finites, "nan and inf as a value",
                    NOTHING),
    TN_FIELD_U32(tn_slot_opts, field, "~", 0, 65535, "", "libffm, libfm, crb: number of its field",
                 PLACE),
    TN_FIELD_F64S(tn_slot_opts, range, "~", 0, 18446744073709551615.0,
                  "libsvm, libfm, crb: [a, b), the indices it takes", PLACE),
    TN_FIELD_U32(tn_slot_opts, dim, "~", 1, TN_DIM_MAX, "",
                 "width of its vectors, or of a vector that it is", MODEL),
    TN_FIELD_TREE_ONE(tn_slot_opts, pool, "~", "how its vectors are pooled", MODEL),
    TN_FIELD_CHOICE(tn_slot_opts, missing, "~", missings,
                    "a key without a row outside training: left out (zero), or as it would begin; "
                    "default: embedding.missing",
                    ROW),
    TN_FIELD_TREE_OF(tn_slot_opts, optimizer, "~", "type", "rule of its rows", NOTHING),
    TN_FIELD_F64(tn_slot_opts, lr, "~", 0, 1e6, "", "learning rate of its rows", NOTHING),
    TN_FIELD_F64(tn_slot_opts, l2, "~", 0, 1e6, "", "L2 of its rows", NOTHING),
    TN_FIELD_TREE_OF(tn_slot_opts, admission, "~", "threshold",
                     "when its keys get a row: as embedding.admission, key by key", NOTHING),
    TN_FIELD_TREE_OF(tn_slot_opts, expiry, "~", "ttl_days",
                     "which of its rows leave: as embedding.expiry, key by key", NOTHING),
    TN_FIELD_F64(tn_slot_opts, decay, "~", 0, 1, "", "of its rows' counts, per day", NOTHING),
    TN_FIELD_CHOICE(tn_slot_opts, cvm, "~", yes_or_no,
                    "its show and click as inputs; default: "
                    "embedding.cvm",
                    MODEL),
    TN_FIELD_TREE_ONE(tn_slot_opts, init, "~", "first values of its vectors", ROW),
    TN_FIELD_STRS(tn_slot_opts, uses, "~", "inputs of the model that take it; default: all", MODEL),
    TN_FIELD_END,
};
