/* control_tables.h - the fields of every note, as its writer (control_messages.c) and its reader
 * (control_read.c) see them. */
#ifndef TN_CLUSTER_CONTROL_TABLES_H
#define TN_CLUSTER_CONTROL_TABLES_H

#include "cluster/wire/control_messages.h"

enum { TN_NOTE_FIELDS_MAX = 24, TN_NOTE_GROUPS = 4 };

typedef enum tn_note_kind {
    TN_NOTE_U64,
    TN_NOTE_I64,
    TN_NOTE_F64,
    TN_NOTE_TEXT,
    TN_NOTE_NUMBERS,
    TN_NOTE_TEXTS,
    TN_NOTE_BYTES
} tn_note_kind;

typedef struct tn_note_field {
    uint32_t number; /* of base/codec/proto.h; never used again */
    tn_note_kind kind;
    size_t offset;  /* in the struct */
    uint64_t below; /* of a number with names: how many there are; 0: any */
    uint32_t group; /* from 1: lists of a group are equally long; 0: any */
} tn_note_field;

typedef struct tn_note_table {
    size_t size; /* of the struct; 0: the type carries no note */
    uint32_t n;
    const tn_note_field *field;
} tn_note_table;

/* Never NULL; asserts that the type carries a note. */
const tn_note_table *tn_note_table_of(tn_frame_type type);

#endif
