/* tnet.h - libtnet: score rows with an exported model, from C, C++ or anything that calls C.
 *
 *     tnet_error err;
 *     tnet_model *model;
 *     tnet_scorer *scorer;
 *     if (tnet_open("export/001ff2044284a99c25fd62a9204473cc", TNET_VERIFY_FULL, &model, &err) ||
 *         tnet_scorer_new(model, &scorer, &err))
 *         complain(err.text);
 *     int user = tnet_field(model, "user"), price = tnet_field(model, "price");
 *
 *     tnet_clear(scorer);
 *     tnet_begin_row(scorer, &err);
 *     tnet_add_id(scorer, user, 17, 1.0f, &err);              a sign, with its x_j
 *     tnet_add_number(scorer, price, 9.5, &err);              raw: transforms are the model's
 *     tnet_end_row(scorer, &err);
 *     tnet_score(scorer, logits, clicks, &err);               one float per row each
 *
 *     tnet_scorer_free(scorer);
 *     tnet_close(model);
 *
 * Many candidates of one user: what they have in common is given once, see tnet_begin_shared.
 *
 *     tnet_clear(scorer);
 *     tnet_begin_shared(scorer, &err);
 *     tnet_add_id(scorer, user, 17, 1.0f, &err);
 *     tnet_end_row(scorer, &err);
 *     for (size_t i = 0; i < n; i++) {
 *         tnet_begin_row(scorer, &err);
 *         tnet_add_id(scorer, item, candidate[i], 1.0f, &err);
 *         tnet_end_row(scorer, &err);
 *     }
 *     tnet_score_many(scorer, logits, clicks, &err);          n floats each
 *
 * Errors. The library does not print, ends no process and keeps no state of its own. Functions
 * return 0 (TNET_OK) or a TNET_E_ code and then fill *err, which may be NULL; handles are NULL on
 * failure. Where a handle or a text may not be NULL, or calls come in the wrong order, the answer
 * is TNET_E_USAGE; functions without a status take NULL for a model without fields and rows, or a
 * scorer without rows. Where memory runs out it is TNET_E_MEMORY: whatever was there stays as it
 * was, and the same call may be tried again. What was freed may not be used.
 *
 * Threads. A model may be used by many threads, a scorer by one at a time; scorers are made one at
 * a time per model. The library starts no threads.
 *
 * Files. Those of an export are mapped while a model of it is open: never change one in place,
 * always replace it (a new folder, or a new file that is renamed over it). Where a mapped file is
 * cut, or its disk fails, the system ends the process with SIGBUS, which is the host's to handle,
 * not a library's. To remove what is open is fine.
 *
 * Limits. 2^20 values in a row, 2^31 rows or values between two tnet_clear, texts of
 * data.record_bytes_max (64 MiB), 8 deltas. Memory grows with the largest block of rows, and stays.
 *
 * Fields are slots and numbers by the names of the configuration. A slot that gets nothing is empty
 * and pools to zeros; a number that gets nothing is what the configuration's `absent` says. The
 * score of a row equals that of the trainer to 1e-6, after the calibration if tnet-export was
 * given one (--calibration): then logit and probability are both calibrated. C++ safe. Versions:
 * tnet_abi() changes when this header does in a way that compiled programs notice.
 */
#ifndef TNET_H
#define TNET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TNET_API __attribute__((visibility("default")))
#else
#define TNET_API
#endif

enum { TNET_ABI = 1 };

typedef enum tnet_status {
    TNET_OK = 0,
    TNET_E_USAGE = 2,  /* the call makes no sense: NULL, no such field, no row is open */
    TNET_E_DATA = 4,   /* a value is not what the field takes */
    TNET_E_EXPORT = 5, /* the export is missing, damaged or mixed up */
    TNET_E_MEMORY = 7, /* there was none; try again, or do with less */
    TNET_E_IO = 8,     /* the operating system refused to read */
    TNET_E_LIMIT = 10, /* over a stated limit */
} tnet_status;

typedef struct tnet_error {
    int code;        /* a tnet_status */
    char text[1500]; /* lower case, no full stop; may hold several lines */
} tnet_error;

typedef struct tnet_model tnet_model;
typedef struct tnet_scorer tnet_scorer;

/* Says when checksums of the dictionary are looked at: all at once, each megabyte when it is first
 * touched, never. Sizes and offsets are always checked. */
typedef enum tnet_verify { TNET_VERIFY_FULL, TNET_VERIFY_LAZY, TNET_VERIFY_NONE } tnet_verify;

/* Beside one of them, as TNET_VERIFY_FULL | TNET_HALF_WEIGHTS: weights of layers are rounded to 16
 * bits, 2^-8 of their size apart at most. A single row then waits for half as many bytes of
 * weights, which is most of its time where the net does not stay in a core's caches; larger blocks
 * take as long as before. Logits differ from those of the trainer by what the rounding makes (in
 * docs/serving.md: measured), and as little as ever from one block of rows to another. The weights
 * take half as much memory again. A dictionary has its own word, export.values. */
enum { TNET_HALF_WEIGHTS = 256 };

TNET_API int tnet_abi(void);
TNET_API const char *tnet_version(void); /* "0.1.0" */

/* Opens an export directory: <to>/<model id> of tnet-export. On failure *out is NULL. */
TNET_API int tnet_open(const char *dir, int verify, tnet_model **out, tnet_error *err);
TNET_API void tnet_close(tnet_model *model); /* after its scorers; NULL is fine */

TNET_API const char *tnet_model_id(const tnet_model *model); /* 32 hex digits; NULL of NULL */
/* rows of the dictionary, all layers */
TNET_API uint64_t tnet_rows(const tnet_model *model);

/* Returns the number of a slot or numeric column; -1: the model has none of that name. */
TNET_API int tnet_field(const tnet_model *model, const char *name);
TNET_API int tnet_n_fields(const tnet_model *model);
TNET_API const char *tnet_field_name(const tnet_model *model, int field); /* NULL: none */
TNET_API int tnet_field_is_number(const tnet_model *model, int field);    /* takes a raw number */

TNET_API int tnet_scorer_new(tnet_model *model, tnet_scorer **out, tnet_error *err);
TNET_API void tnet_scorer_free(tnet_scorer *scorer); /* NULL is fine */

/* Rows are put together in the scorer and stay until tnet_clear, which drops an open row, too. A
 * call that fails leaves the row open and without that value; tnet_drop_row takes the row back. */
TNET_API void tnet_clear(tnet_scorer *scorer);
TNET_API int tnet_begin_row(tnet_scorer *scorer, tnet_error *err);
TNET_API int tnet_end_row(tnet_scorer *scorer, tnet_error *err);
TNET_API void tnet_drop_row(tnet_scorer *scorer);
TNET_API size_t tnet_row_count(const tnet_scorer *scorer);

/* Opens a row that holds what all rows share: it is no row of its own, but a part of every row
 * until tnet_clear. It comes first, is filled and ended as a row (or dropped), and is not counted
 * by tnet_row_count; then each row gets the rest of its fields. A field belongs to one of the two:
 * in a row, one that the shared part has is TNET_E_USAGE. A slot or number that neither gives is
 * empty, as ever. Slots with rules (max_len, duplicates, absent) follow them as in whole rows. */
TNET_API int tnet_begin_shared(tnet_scorer *scorer, tnet_error *err);

/* Adds a sign of a slot as it is: an integer id, or the hash of a text that you have already. `x`
 * is its weight x_j, usually 1. Not for fields that take a number. */
TNET_API int tnet_add_id(tnet_scorer *scorer, int field, uint64_t id, float x, tnet_error *err);

/* Adds the text of one value, read as the field's type says (id, int, hex, str, float), then
 * transformed, as in a data file. It need not end with NUL. An empty one is a value, too: leave out
 * what has none. */
TNET_API int tnet_add_text(tnet_scorer *scorer, int field, const char *text, size_t size, float x,
                           tnet_error *err);

/* Adds a raw number of a field that takes one (tnet_field_is_number): log, zscore, buckets and the
 * like are applied here. A second one in a row is TNET_E_DATA, unless the field is a vector, which
 * takes its numbers one by one; where the data have lists of numbers, all of them are texts. */
TNET_API int tnet_add_number(tnet_scorer *scorer, int field, double value, tnet_error *err);

/* Scores all rows: logits[tnet_row_count] and probabilities of a click, calibrated when the export
 * is; a click is always the sigmoid of its logit. Of a model that predicts no clicks both are the
 * score as it is: of a loss of numbers the predicted number. Either may be NULL. After a failure
 * some may be written; the rows are still there. */
TNET_API int tnet_score(tnet_scorer *scorer, float *logits, float *clicks, tnet_error *err);

/* Does the same for rows with a shared part (without one it is tnet_score; tnet_score with one is
 * TNET_E_USAGE). What is shared is parsed once; it is looked up, pooled, and multiplied by the
 * weights of the first layers once for 256 rows. Any exported model can be scored so. It pays where
 * embeddings and numbers go side by side into layers of products (deep parts, cross layers with a
 * matrix); other operators (linear parts, pairs, cross layers with a vector) take whole rows and
 * save look-ups alone. Scores do not depend on the order of rows, nor on how many there are.
 * Against whole rows the sums of first layers are cut in two: a logit differs by rounding, below
 * 1e-5 times the largest of 1 and its size (measured: 2e-7), as between two processors. The first
 * call makes room of its own, about as much as the scorer has, plus the weights of first layers. */
TNET_API int tnet_score_many(tnet_scorer *scorer, float *logits, float *clicks, tnet_error *err);

/* A model of several tasks has a score for each: of a click, of a purchase, of the seconds that are
 * watched. tnet_score and its like give that of the first task, number 0; a model of one label has
 * that one alone. */
TNET_API int tnet_n_tasks(const tnet_model *model);                /* at least 1; of NULL 0 */
TNET_API int tnet_task(const tnet_model *model, const char *name); /* its number; -1: none */
/* NULL: there is no such task, or there is one label. */
TNET_API const char *tnet_task_name(const tnet_model *model, int task);

/* Scores all rows for one task, with or without a shared part: as tnet_score_many. Of a task of
 * clicks `clicks` is the sigmoid of the logit, of another one both are the score. TNET_E_USAGE:
 * there is no such task. */
TNET_API int tnet_score_task(tnet_scorer *scorer, int task, float *logits, float *clicks,
                             tnet_error *err);
/* The same for all tasks at once, in the time of one: logits[k] and clicks[k] are the places for
 * task k, any of which may be NULL. */
TNET_API int tnet_score_tasks(tnet_scorer *scorer, float *const *logits, float *const *clicks,
                              tnet_error *err);
/* Scores all rows for a task that is a share of another (`of` of the configuration), given a click
 * of that one: P(purchase | click), as the model has it, without a calibration. TNET_E_USAGE: the
 * task is no share. */
TNET_API int tnet_score_given(tnet_scorer *scorer, int task, float *logits, float *clicks,
                              tnet_error *err);

/* Scores the rows of a batch of Arrow's C data interface, as pyarrow, pandas, polars and many other
 * programs export them: a struct array, and the schema of it. (The structs are Arrow's; this header
 * does not define them, see https://arrow.apache.org/docs/format/CDataInterface.html.)
 *
 *     tnet_score_arrow(scorer, &schema, &batch, logits, clicks, &err);  batch.length floats each
 *
 * Columns are found by the names that the slots of the model read, in any order; others, a label
 * too, are passed over. A cell means what it would mean in a CSV file of the same rows, and the
 * scores have the bits of those that tnet-score prints of it: a number may come as a text, a null
 * is an empty field, a dictionary gives its values, lists hold several values. TNET_E_DATA: a
 * column is missing, or of a type that cannot be read (structs, maps, time zones by name), or a
 * value is not what its slot takes; the text names column and row. With a shared part
 * (tnet_begin_shared) the batch has the rest of the columns, and is scored as by tnet_score_many.
 * Rows that were put together in the scorer stay as they are. Schema and batch stay the caller's,
 * who releases them; nothing of them is kept. Either of logits and clicks may be NULL; after a
 * failure some may be written. */
struct ArrowSchema;
struct ArrowArray;
TNET_API int tnet_score_arrow(tnet_scorer *scorer, const struct ArrowSchema *schema,
                              const struct ArrowArray *batch, float *logits, float *clicks,
                              tnet_error *err);

#ifdef __cplusplus
}
#endif

#endif
