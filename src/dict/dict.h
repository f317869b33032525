/* dict.h - the inference dictionary (.tnd): from (group, key) to a row of weights, by mmap.
 *
 *     TN_TRY(tn_dict_open(&d, "dict.tnd", TN_VERIFY_FULL, err));
 *     uint32_t user = tn_dict_group(d, "user");
 *     tn_dict_row row;
 *     const tn_dict_query query = {tn_key_of(sign, tn_dict_salt(d, user)), user};
 *     TN_TRY(tn_dict_find_all(d, 1, &query, &row, err));
 *     tn_dict_get(&row, segment, w, 8);              zeros when there is no such row or segment
 *
 * Bytes in dict/dictformat.h. The file is hostile: every offset is checked when it is opened, so
 * no look-up leaves the mapping, whatever `verify` says. verify decides about the checksums: full
 * checks all of them and the order of keys at once, lazy checks each megabyte when it is first
 * touched, none trusts the disk. The file must not be changed or cut while it is open.
 * After opening, any number of threads may look up.
 */
#pragma once

#include "base/core/error.h"
#include "dict/dictformat.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tn_verify { TN_VERIFY_FULL, TN_VERIFY_LAZY, TN_VERIFY_NONE } tn_verify;

typedef struct tn_record tn_record; /* base/keys/record.h */

typedef struct tn_dict tn_dict;
typedef struct tn_dict_table tn_dict_table;

#define TN_DICT_NO_GROUP UINT32_MAX

/* Opens a file. TN_E_CKPT: it does not follow the format; TN_E_IO, TN_E_MEMORY. On failure *out is
 * NULL. */
tn_status tn_dict_open(tn_dict **out, const char *path, tn_verify verify,
                       tn_error *err) TN_MUST_USE;
void tn_dict_close(tn_dict *d); /* NULL is fine */

/* Return the header as it is in the file, checked, and its json_bytes of JSON, which no NUL ends.
 */
const tn_dict_header *tn_dict_head(const tn_dict *d);
const char *tn_dict_json(const tn_dict *d);

/* Return the head of the i-th table as it is in the file, checked, and the number of a table. */
const tn_dict_table_head *tn_dict_table_at(const tn_dict *d, uint32_t i);
uint32_t tn_dict_table_number(const tn_dict *d, const tn_dict_table *t);

enum { TN_MODEL_HEX = 33 };
/* Writes a model's id as text: 32 digits and a NUL. */
void tn_dict_hex(const uint8_t *model_id, char out[TN_MODEL_HEX]);

uint32_t tn_dict_group(const tn_dict *d, const char *name); /* TN_DICT_NO_GROUP: none */
const char *tn_dict_group_name(const tn_dict *d, uint32_t group);
uint64_t tn_dict_salt(const tn_dict *d, uint32_t group);

/* One row, lent until the dictionary is closed. */
typedef struct tn_dict_row {
    const tn_dict_table *table; /* NULL: no such row */
    const char *at;             /* NULL: a delta says that the key is gone */
} tn_dict_row;

typedef struct tn_dict_query {
    uint64_t key;
    uint32_t group;
} tn_dict_query;

/* Finds the rows of many keys, several at a time, so that their cache misses overlap. A key that is
 * not there, or not in the file's partitions, is TN_OK with table NULL. TN_E_CKPT: a chunk that was
 * touched is damaged (never with TN_VERIFY_FULL). */
tn_status tn_dict_find_all(const tn_dict *d, uint32_t n, const tn_dict_query *query,
                           tn_dict_row *out, tn_error *err) TN_MUST_USE;

/* Decodes segment `segment`, by its number in the file's JSON, into w[dim]. Returns false, and
 * writes zeros, when the row or the segment is absent, or not `dim` wide. */
bool tn_dict_get(const tn_dict_row *row, uint32_t segment, uint32_t dim, float *w);

/* Returns the position, in bytes from the begin of a row, at which rows of a table hold all
 * segments of a record as floats side by side. TN_DICT_NO_FLOATS: they do not. segment[k] is the
 * file's number of the record's k-th segment. */
#define TN_DICT_NO_FLOATS UINT32_MAX
uint32_t tn_dict_floats(const tn_dict_table *t, const tn_record *record, const uint32_t *segment);

/* Visits every row of every table, in the order of the file, for tests and dumps. */
typedef struct tn_dict_item {
    uint64_t key;
    uint32_t group; /* TN_DICT_NO_GROUP: not stored */
    tn_dict_row row;
} tn_dict_item;
typedef tn_status tn_dict_each(void *arg, const tn_dict_item *item, tn_error *err);
tn_status tn_dict_walk(const tn_dict *d, tn_dict_each *each, void *arg, tn_error *err) TN_MUST_USE;
