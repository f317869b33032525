/* write_kind.h - how one format is written, and what writer.c lends to all of them; for the files
 * of the writer. */
#pragma once

#include "base/core/arena.h"
#include "base/core/bytes.h"
#include "io/write/writer.h"

/* How one format is written: a constant tn_write_kind_NAME, whose row in write_kinds.def is
 * TN_WRITE_KIND(NAME). */
typedef struct tn_write_kind {
    const char *name;
    /* Refuses a schema that the format cannot express; lays out columns. */
    tn_status (*plan)(tn_writer *w, tn_error *err);
    void (*head)(const tn_writer *w, tn_text *out); /* NULL: none */
    tn_status (*row)(const tn_writer *w, const tn_rows *rows, uint32_t row, tn_text *out,
                     tn_error *err);
    /* As `row`, of a record that the format's `cut` has taken off a file; NULL: it is a line. */
    void (*copy)(tn_bytes record, tn_text *out);
    /* Makes what is stored of the rows of a piece; NULL: they are stored as `row` writes them. */
    tn_status (*pack)(tn_text *rows, tn_error *err);
} tn_write_kind;

const tn_write_kind *tn_write_kind_find(const char *format); /* NULL: it is not written */

/* Both may be of a format that is not written, whose records are lines. */
void tn_write_copy(const tn_write_kind *kind, tn_bytes record, tn_text *out);
tn_status tn_write_pack(const tn_write_kind *kind, tn_text *rows, tn_error *err) TN_MUST_USE;

typedef enum tn_write_source {
    WRITE_LABEL,
    WRITE_WEIGHT,
    WRITE_ID,
    WRITE_GROUP,
    WRITE_SLOT,
    WRITE_VALUES, /* the x_j of a slot */
    WRITE_NUMERIC,
    WRITE_NOTHING, /* a column that nothing reads */
} tn_write_source;

typedef struct tn_write_column {
    tn_write_source source;
    const char *name;
    uint32_t name_size;
    const tn_slot_spec *spec; /* SLOT, VALUES, NUMERIC */
} tn_write_column;

struct tn_writer {
    const tn_write_kind *kind;
    const tn_schema *schema;
    bool signs;
    tn_arena *arena;
    uint32_t n_columns; /* delimited, tfrecord: in the order they are written */
    tn_write_column *column;
    uint32_t *field;   /* n_slots + n_numeric: libffm, libfm: the number of each */
    bool special[256]; /* delimited: bytes that a bare field may not hold */
};

/* Walks a row slot by slot. Rows whose entries come in the order of slots are walked once; for
 * others every slot takes one look at all entries. */
typedef struct tn_write_walk {
    const tn_rows *rows;
    uint32_t from, to, at;
    bool ascending;
} tn_write_walk;

tn_write_walk tn_write_walk_row(const tn_rows *rows, uint32_t row);

/* The entries of one slot, in their order:
 *     for (i = tn_write_first(&walk, slot); i < walk.to; i = tn_write_next(&walk, slot, i)) */
uint32_t tn_write_first(tn_write_walk *walk, uint32_t slot);
uint32_t tn_write_next(tn_write_walk *walk, uint32_t slot, uint32_t i);

/* A `plan`: label, weight, id, group, then the slots with their x_j, each name once. */
tn_status tn_write_plan_columns(tn_writer *w, tn_error *err) TN_MUST_USE;

/* A `plan`: decimal indices from 0, no record ids; no groups but where there are `groups`; each
 * slot with the number of its field where there are `fields`, in w->field. */
tn_status tn_write_plan_indices(tn_writer *w, bool groups, bool fields, tn_error *err) TN_MUST_USE;

/* Whether entries of a slot are written as numbers, and not as indices. */
bool tn_write_is_number(const tn_writer *w, const tn_slot_spec *spec);

/* The text of a key as an index. TN_E_DATA: it is none. */
tn_status tn_write_index(const tn_writer *w, const tn_slot_spec *spec, const tn_bytes *token,
                         uint64_t *out, tn_error *err) TN_MUST_USE;

/* A number as its text says it, before any transform. TN_E_DATA: it is none. */
tn_status tn_write_real(const tn_slot_spec *spec, const tn_bytes *token, float *out,
                        tn_error *err) TN_MUST_USE;

/* Finds the text of entry i: as it was read, or its sign. `buffer` holds TN_WRITE_TOKEN_MAX bytes.
 * False: the entry means `absent` and is not written. */
enum { TN_WRITE_TOKEN_MAX = 24 };
bool tn_write_token(const tn_writer *w, const tn_rows *rows, uint32_t i, char *buffer,
                    tn_bytes *out);

/* TN_E_DATA: the slot has an x_j and no column to keep it in. */
tn_status tn_write_check_x(const tn_slot_spec *spec, float x, tn_error *err) TN_MUST_USE;

/* TN_E_DATA: the row has no label, and should. */
tn_status tn_write_check_label(const tn_writer *w, const tn_parsed_row *row,
                               tn_error *err) TN_MUST_USE;

/* TN_E_DATA: the row belongs to a group, and the format has none. */
tn_status tn_write_check_group(const tn_writer *w, const tn_parsed_row *row,
                               tn_error *err) TN_MUST_USE;

/* TN_E_DATA: the row has a weight or a group and no column to keep it in, or no label. */
tn_status tn_write_check_row(const tn_writer *w, const tn_parsed_row *row,
                             tn_error *err) TN_MUST_USE;

/* A float in the shortest form that reads back equal; quick for whole numbers. */
void tn_write_float(tn_text *out, float value);

/* The number of a numeric column as it was read; false: missing. */
bool tn_write_numeric(const tn_rows *rows, uint32_t row, uint32_t column, tn_bytes *out);
