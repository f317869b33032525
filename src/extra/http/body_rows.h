/* body_rows.h - request bodies become rows, by the readers of training alone.
 *
 *     {"instances": [{"user": 7, "item": 3}, ..]}             each item is a record of jsonl
 *     {"inputs": {"user": [7, 8], "item": [3, 4]}}            records are put together of columns
 *     {"dataframe_split": {"columns": [..], "data": [..]}}    likewise, of a row and the names
 *     {"context": {"user": 7}, "examples": [{"item": 3}, ..]} one record for all, and the others
 *     {"inputs": [{"name": "user", "shape": [2], "datatype": "INT64", "data": [7, 8]}, ..]}
 *     lines of the training data                              cut and parsed as a file of them
 *
 * Whatever the shape of a body, its values reach the reader of training as the text of a record, so
 * a served row means what the same row of a data file means. These functions know no sockets and no
 * models; they allocate when a body is larger than all before it. One thread at a time.
 */
#pragma once

#include "base/core/bytes.h"
#include "base/core/error.h"
#include "base/core/text.h"
#include "extra/http/json_cursor.h"
#include "io/format/format.h"

/* The rows of one body, and the reader that makes them. */
typedef struct tn_row_sink {
    const tn_format *format;
    const tn_schema *schema; /* a schema of `format` */
    tn_head *head;           /* room for schema->columns->n; used by formats with a head line */
    tn_rows *rows;           /* rows of `schema`, which are appended to */
    tn_text *record;         /* scratch */
    uint32_t rows_max;       /* a body with more is TN_E_LIMIT */
    bool named;              /* a row of JSON that is not empty must have a field of the model */
    const char *source;      /* the word for the place in messages: "instances" */
} tn_row_sink;

/* The members of a JSON body that are known: values as they are written there. */
typedef struct tn_json_body {
    tn_json_span signature_name, instances, inputs, outputs, examples, context, id, parameters,
        dataframe_split, dataframe_records;
} tn_json_body;

/* Finds the members of a body; others are passed over. TN_E_DATA: it is no JSON object, or a key
 * comes twice. */
tn_status tn_json_body_read(tn_json_body *out, tn_bytes body, tn_error *err) TN_MUST_USE;

/* Each returns TN_E_DATA with the row and what is wrong in it, TN_E_LIMIT over rows_max, or
 * TN_E_MEMORY. After a failure the rows so far are still in the sink. */

/* One record, in the form of a file's line without its end. */
tn_status tn_row_sink_take(tn_row_sink *to, tn_bytes record, tn_error *err) TN_MUST_USE;
/* A list of objects, or one object for one row. */
tn_status tn_rows_of_objects(tn_row_sink *to, const tn_json_span *list, tn_error *err) TN_MUST_USE;
/* An object of columns, each a list of as many values; a value may be a list itself. */
tn_status tn_rows_of_columns(tn_row_sink *to, const tn_json_span *object,
                             tn_error *err) TN_MUST_USE;
/* pandas' {"columns": [names], "data": [[values], ..]}; an index is passed over. */
tn_status tn_rows_of_frame(tn_row_sink *to, const tn_json_span *frame, tn_error *err) TN_MUST_USE;
/* Records of the sink's format, with a head line where the schema says so. */
tn_status tn_rows_of_lines(tn_row_sink *to, tn_bytes body, tn_error *err) TN_MUST_USE;

/* Tensors of the Open Inference Protocol, version 2: all have the same first dimension, the rows;
 * more dimensions are lists of values. `binary` are the bytes after the JSON header, which tensors
 * with the parameter binary_data_size take one after the other. */
tn_status tn_rows_of_tensors(tn_row_sink *to, const tn_json_span *inputs, tn_bytes binary,
                             tn_error *err) TN_MUST_USE;

/* Returns whether a JSON record has a column that the schema reads, or no member at all; a nested
 * object and a key with an escape may be such a column. The first member most often is one. */
bool tn_json_has_field(const tn_schema *schema, tn_bytes record);

/* Marks the slots and numbers of the schema whose columns an object has: what all rows share. Both
 * have as many flags as the schema has slots and numbers. */
tn_status tn_mark_members(const tn_schema *schema, const tn_json_span *object, bool *slot,
                          bool *numeric, tn_error *err) TN_MUST_USE;
