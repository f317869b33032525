/* values.h - what options are once they are read, and the rows of the tables that read them.
 *
 * Headers with structs of options include this one; field.h is for files that write or bind tables.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct tn_arena tn_arena;   /* base/core/arena.h */
typedef struct tn_diag tn_diag;     /* config/diag.h */
typedef struct tn_origin tn_origin; /* config/tree.h */
typedef struct tn_tree tn_tree;     /* likewise */

#define TN_UNSET_U32 UINT32_MAX
#define TN_UNSET_U64 UINT64_MAX
#define TN_WORD_U32(i) (UINT32_MAX - 1U - (uint32_t)(i))
#define TN_WORD_U64(i) (UINT64_MAX - 1U - (uint64_t)(i))
#define TN_AUTO TN_WORD_U32(0) /* `auto`, where it is the first word */

typedef struct tn_strs {
    uint32_t n;
    const char *const *item;
} tn_strs;

static inline bool tn_strs_has(const tn_strs *list, const char *text)
{
    bool has = false;
    for (uint32_t i = 0; i < list->n && !has; i++) {
        has = strcmp(list->item[i], text) == 0;
    }
    return has;
}

typedef struct tn_f64s {
    uint32_t n;
    const double *item;
} tn_f64s;

typedef struct tn_tables {
    uint32_t n;
    void *item;                 /* n structs of the table's size */
    const tn_tree *const *tree; /* n: where each came from, for messages */
} tn_tables;

typedef struct tn_field tn_field;

/* One thing that a variant can be: an optimizer, a model, a loss. It is a member of the constant
 * that it names, so that lists of choices are lists of addresses. */
typedef struct tn_choice {
    const char *name;
    const char *help;
    const tn_field *fields; /* table of *opts; NULL: none */
    size_t size;            /* bytes of *opts */
    const void *impl;       /* constant that the name selects */
} tn_choice;

typedef struct tn_variant {
    const tn_choice *choice; /* NULL: not set */
    void *opts;              /* choice->size bytes; NULL when it has no fields */
    void *shared;            /* TN_FIELD_VARIANT_WITH: the options that every choice has */
    const tn_tree *tree;     /* the tree it was read from, for later checks */
} tn_variant;

typedef enum tn_field_kind {
    TN_KIND_END,
    TN_KIND_BOOL,     /* bool: true false yes no on off */
    TN_KIND_U32,      /* uint32_t; 64k and 1M are counts of thousands and millions */
    TN_KIND_U64,      /* uint64_t */
    TN_KIND_F64,      /* double */
    TN_KIND_DURATION, /* double, seconds; 20s 10min 2h30m 500ms */
    TN_KIND_SIZE,     /* uint64_t, bytes; 512MB 12GiB */
    TN_KIND_STR,      /* const char * */
    TN_KIND_CHOICE,   /* uint32_t: index into `words` */
    TN_KIND_STRS,     /* tn_strs: a list, or one scalar */
    TN_KIND_F64S,     /* tn_f64s: the same of numbers */
    TN_KIND_TABLE,    /* a struct in place, read by `table`; one scalar is its first option */
    TN_KIND_TABLES,   /* tn_tables: a list of structs, each read by `table` */
    TN_KIND_VARIANT,  /* tn_variant: {type: NAME, ...options of NAME} or just NAME */
    TN_KIND_TREE,     /* const tn_tree *: read by its owner, which reports with the same diag */
} tn_field_kind;

/* Says how an option bears on the rows that a model has learned from. Later commands compare it
 * with the checkpoint's (train/config/meaning.h); each option of `data` and `slots` says which. */
typedef enum tn_field_meaning {
    TN_MEANS_UNSAID,  /* in other tables */
    TN_MEANS_NOTHING, /* the place and order of rows, who reads them, how they are learned */
    TN_MEANS_PLACE,   /* place of a value in a record: compared where both formats are one */
    TN_MEANS_KEY,     /* meaning of a key or value: compared where both formats read the option */
    TN_MEANS_ROW,     /* the label of a row, or what corrects its score: compared like a key, but
                         nothing to checkpoint.from */
    TN_MEANS_MODEL,   /* shapes the model, which the checkpoint compares by itself */
} tn_field_meaning;

struct tn_field {
    tn_field_kind kind;
    tn_field_meaning meaning;
    const char *key;
    size_t offset;
    const char *fallback;
    double min, max;                 /* numbers, durations, sizes; both included */
    const char *unit;                /* "rows", "threads"; "" for a bare number */
    const char *help;                /* one line, lower case */
    const char *const *words;        /* CHOICE, numbers; NULL-terminated */
    const char *first;               /* TREE: how layers merge; see TN_FIELD_TREE_OF */
    const tn_field *table;           /* TABLE, TABLES; VARIANT: of `shared`, or NULL */
    size_t size;                     /* bytes of one struct of `table`: TABLES, VARIANT */
    bool apart;                      /* TABLE: the member is a void * to the struct, in the arena */
    const tn_choice *const *choices; /* VARIANT: NULL-terminated */
};

typedef struct tn_binder {
    tn_arena *arena;
    tn_diag *diag;
    const char *path;    /* section that is being read, "train.optimizer"; NULL: all */
    const tn_field *all; /* table of the whole that the section is in; NULL: that of the binding */
    const tn_origin *at; /* position of the section; may be NULL */
    bool optional;       /* it may be absent as a whole, and is */
} tn_binder;
