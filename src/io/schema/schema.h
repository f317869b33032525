/* schema.h - what a record holds: slots, share groups, numeric columns, label, weight, ids.
 *
 * Made once from `data:` and `slots:`, then read by every parser on any thread. Slots keep the
 * order of the configuration; groups are numbered as first seen.
 */
#pragma once

#include "base/core/error.h"
#include "base/keys/target.h"
#include "io/schema/transform.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tn_binder;
typedef struct tn_arena tn_arena; /* base/core/arena.h */
typedef struct tn_tree tn_tree;   /* config/tree.h */
struct tn_share_group;
typedef struct tn_tables tn_tables;       /* config/values.h */
typedef struct tn_data_opts tn_data_opts; /* io/schema/dataopts.h */
typedef struct tn_slot_opts tn_slot_opts;

enum { TN_CROSS_PARTS_MAX = 4 };
enum { TN_SLOTS_MAX = 4096, TN_COLUMNS_MAX = 65535, TN_VALUES_MAX = 1048576 };

#define TN_NOWHERE UINT32_MAX

typedef enum tn_sign_type {
    TN_SIGN_ID,
    TN_SIGN_INT,
    TN_SIGN_HEX,
    TN_SIGN_STR,
    TN_SIGN_FLOAT
} tn_sign_type;
/* The last word of tn_slot_opts.type: a list of TN_SIGN_FLOAT. */
enum { TN_TYPE_VECTOR = TN_SIGN_FLOAT + 1 };
/* The fast path of parsers for a slot that takes one value, where nothing but its type is left to
 * decide. */
typedef enum tn_fast_path {
    TN_FAST_PATH_NONE,  /* the slow one */
    TN_FAST_PATH_HEX,   /* a key by hex digits */
    TN_FAST_PATH_LN2,   /* a key by ln2_bucket of an integer */
    TN_FAST_PATH_WHOLE, /* a key by decimal digits */
    TN_FAST_PATH_TEXT,  /* a key by the bytes */
    TN_FAST_PATH_TOKEN  /* one value, of any other type */
} tn_fast_path;
typedef enum tn_slot_as { TN_AS_KEY, TN_AS_VALUE, TN_AS_WEIGHTED } tn_slot_as;

/* One entry of `slots:`, resolved. A slot that is `as: value` has no keys: it is a column of the
 * numeric input. */
typedef struct tn_slot_spec {
    const char *name;
    const char *column;
    tn_sign_type type;
    tn_slot_as as;
    tn_transform transform;
    uint32_t slot;    /* place among the slots of a batch; TN_NOWHERE when `as: value` */
    uint32_t numeric; /* place among the numeric columns; TN_NOWHERE otherwise */
    uint32_t width;   /* a vector: columns from that place on; 0: it is none */
    uint16_t group;   /* index into tn_schema.group */
    uint64_t salt;
    char list;          /* separator of several values; 0: none */
    const char *values; /* column of x_j; NULL: none */
    uint32_t max_len;   /* 0: no limit */
    bool keep_last;
    const char *sequence; /* the one that its values are positions of; NULL: none */
    bool absent_key;      /* no value: the key of the empty text instead of an empty slot */
    float absent;         /* `as: value`: a missing number, not transformed */
    uint32_t duplicates;
    bool drop_zero;
    bool non_finite_absent;
    bool step_concat; /* a step of a feature list may have several values */
    bool ruled;       /* has a rule that needs the whole slot: see tn_rows_end */
    bool plain_key;   /* a key by its sign alone, whatever its x_j */
    tn_fast_path fast_path;
    const struct tn_label_rule *label; /* rule of a task's label; NULL: it is none */
    bool weighs;                       /* a number that is a task's factor */
    uint32_t field;                    /* libffm, libfm; TN_UNSET_U32: none */
    uint64_t range_from, range_to;     /* libsvm, libfm, [from, to]; 0 .. UINT64_MAX: all */
    uint32_t n_parts;                  /* a cross: how many slots, else 0 */
    const uint32_t *part;              /* their places among the slots of a batch */
    const tn_slot_opts *opts;          /* for train/ */
} tn_slot_spec;

/* Reads a number, not a sign: `as: value`, `as: weighted`, or a transform that makes the sign. */
static inline bool tn_spec_is_number(const tn_slot_spec *spec)
{
    return spec->as != TN_AS_KEY || spec->transform.kind != TN_TRANSFORM_IDENTITY;
}

/* Columns of a slot that is a number or a vector. */
static inline uint32_t tn_spec_cols(const tn_slot_spec *spec)
{
    return spec->width > 0 ? spec->width : 1;
}

/* Slots whose lists have one length in each row (io/rows/list_lengths.h). */
typedef struct tn_sequence_spec {
    const char *name;
    uint32_t n;
    const uint32_t *slot; /* n: places among the slots of a batch */
    bool cuts;            /* lists of several lengths are cut to the shortest; else a fault */
} tn_sequence_spec;

/* The rule for labels: data.label, read. */
typedef struct tn_label_rule {
    const char *column;
    bool none;
    tn_target target;
    double threshold;  /* NAN: none; above it is a click */
    uint32_t n_values; /* 0: labels are numbers */
    const char *const *text;
    const float *value;
} tn_label_rule;

/* The names a schema reads, numbered, and who reads what: a parser looks a name of its record up
 * once and then knows all its readers.
 *
 *     slots: user, hist, tags {values: tags_x}      label: label
 *
 *     name     0 label   1 user   2 hist   3 tags   4 tags_x
 *     label    0         spec  1 2 3       values  - - 4
 */
typedef struct tn_columns {
    uint32_t n;
    const char **name;
    uint32_t *name_size;
    uint32_t label, weight, group, record_id; /* TN_NOWHERE: nothing reads one */
    uint32_t *spec;                           /* n_specs: the name it reads */
    uint32_t *values;                         /* n_specs: the name of its x_j, or TN_NOWHERE */
    uint32_t readers_max;                     /* most specs that read one name */
    uint64_t *word;          /* n: first eight bytes of the name, with zeros after a shorter one */
    uint32_t *only;          /* n: the spec that alone reads the name, or TN_NOWHERE */
    bool alone;              /* every spec reads a name alone */
    uint32_t *fast_path_end; /* n_specs: the next spec of another fast path */
    uint32_t *slot;          /* n_specs: as in the spec */
    uint64_t *salt;          /* n_specs: likewise */
    uint64_t *slot_salt;     /* n_slots: salt of the spec of each slot */
    uint32_t mask;           /* size of `table` - 1; places hold a number + 1, or 0 */
    uint32_t *table;
    uint32_t n_fields;
    const uint32_t *spec_of_field; /* n_fields: spec of a field number of data, or TN_NOWHERE */
    uint32_t n_ranges;             /* libsvm: specs in ascending order of their ranges */
    const uint32_t *spec_by_range;
} tn_columns;

typedef struct tn_schema {
    const tn_data_opts *data;
    uint32_t n_specs;         /* all that read columns; parsers know no others */
    uint32_t n_crosses;       /* made of other slots at the end of a row (io/rows/rows_cross.c) */
    const tn_slot_spec *spec; /* everything in `slots:`, in its order, but crosses come last */
    uint32_t n_slots;         /* slots with keys, which a batch has; crosses come last */
    const tn_slot_spec *const *slot;
    uint32_t n_numeric; /* columns of the numeric input */
    uint32_t n_aside;   /* numbers beside the row, after these (base/keys/tasks.h) */
    uint32_t n_numbers; /* slots that have these columns: one each, a vector several */
    bool vectors;       /* some are vectors */
    const tn_slot_spec *const *numeric; /* n_numbers + n_aside */
    uint32_t n_sequences;
    const tn_sequence_spec *sequence;
    uint32_t n_groups;
    const struct tn_share_group *group; /* record is not set here: the model decides it */
    const tn_label_rule *label;
    const tn_slot_spec *group_spec; /* the slot that reads the column data.group; NULL: none does */
    uint32_t index_base;            /* 0 or 1: decided, also when it is `auto` */
    bool ranges;                    /* the format reads a slot's range of indices */
    bool namespaces;                /* as in io/format/format.h */
    uint32_t slot_bits;             /* bits of an index that are its field; 0: none */
    bool slot_bits_high;
    char delimiter;
    bool header;
    uint32_t quote;
    bool plain_fields;         /* neither quotes nor trim */
    bool empty_is_null;        /* and nothing else is */
    bool ruled;                /* some spec is */
    bool frame_words;          /* fields may be as dataframes write them (io/rows/rows_values.c) */
    bool quick_fields;         /* no trim, and no slot has a slow path to go */
    bool quick_features;       /* all slots are keys by int64s alone */
    const tn_columns *columns; /* NULL: begun, but not finished */
} tn_schema;

/* Numbers that a parsed row has. */
static inline uint32_t tn_schema_numbers(const tn_schema *s)
{
    return s->n_numeric + s->n_aside;
}

/* The slot with keys of this name; NULL: there is none. */
const tn_slot_spec *tn_schema_slot(const tn_schema *s, const char *name);

/* A schema is made in two steps, since some slots are found in the data: io/read/schema_inference.h
 * has both in one call. First what `data:` says; `data` must outlive the schema, which lives in
 * b->arena. Faults go to b->diag; then *out is NULL and the status TN_E_CONFIG. */
tn_status tn_schema_begin(tn_schema **out, const tn_data_opts *data, const struct tn_binder *b,
                          tn_error *err) TN_MUST_USE;

/* Then the slots (tn_slot_opts items, which must outlive it); index_base may be set before.
 * `columns`: a hint for the user who has listed none, what could be listed; "": not known. Faults
 * as above, also of sizes: TN_E_CONFIG, TN_E_MEMORY. */
tn_status tn_schema_finish(tn_schema *s, const tn_tables *slots, const char *columns,
                           const struct tn_binder *b, tn_error *err) TN_MUST_USE;

/* Whether data may lack the column of this number: labels and factors of tasks alone read it, which
 * are optional. */
bool tn_schema_may_lack(const tn_schema *schema, uint32_t name);

/* The number of a name, or TN_NOWHERE. */
uint32_t tn_columns_find(const tn_columns *columns, const char *text, size_t size);

/* The spec that takes an index, or TN_NOWHERE. */
uint32_t tn_columns_of_index(const tn_columns *columns, const tn_schema *schema, uint64_t index);

/* From text or a number to a label. False: it is none, or not one of the target. */
bool tn_label_of_number(const tn_label_rule *rule, double y, float *out);
/* Reads a label of the usual kind: 0 or 1, under a rule that leaves them as they are. */
static inline bool tn_label_of_bit(const tn_label_rule *rule, char c, float *out)
{
    bool unchanged = rule->n_values == 0 && isnan(rule->threshold);
    *out = c == '1' ? 1.0F : 0.0F;
    return unchanged && (c == '0' || c == '1');
}

/* data.label with what it leaves out: a column alone is its name, values and a threshold have it
 * beside them. Lives in the arena. */
const tn_tree *tn_label_words(tn_arena *arena, const tn_tree *label);
bool tn_label_is_none(const tn_tree *label);

bool tn_label_of_text(const tn_label_rule *rule, const char *text, size_t size, float *out);
