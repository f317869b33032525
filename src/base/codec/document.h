/* document.h - one table that says all there is to say about a JSON document: it writes a struct as
 * JSON, and reads hostile JSON into one.
 *
 *     static const tn_doc_row file_rows[] = {                  {"name":"a.bin","bytes":"12",
 *         TN_DOC_STR(my_file, name, "name"),                    "crc32c":"0000000b"}
 *         TN_DOC_COUNT(my_file, bytes, INT64_MAX, "bytes"),
 *         TN_DOC_CRC(my_file, crc, "crc32c"),
 *         TN_DOC_END,
 *     };
 *     static const tn_doc_row index_rows[] = {
 *         TN_DOC_U64(my_index, step, 1, UINT64_MAX, "step"),
 *         TN_DOC_LIST(my_index, n, file, const my_file *, '{', file_rows, FILES_MAX, "files"),
 *         TN_DOC_END,
 *     };
 *     static const tn_document index_doc = {
 *         .format = "my-index", .is = "an index", .newest = 1, .rows = index_rows};
 *
 *     TN_TRY(tn_document_write(&index_doc, &index, &text, err));   format, version, rows, crc32c
 *     TN_TRY(tn_document_read(&index_doc, &index, &text, arena, "INDEX.json", err));
 *
 * Rows are written in their order, and read in it whatever the order in the text. Members that no
 * row names are left alone: they are of a later minor version. A member that is absent, where it
 * may be, leaves the struct as it was, so that a caller's values are the defaults.
 *
 * Ownership: strings, lists and raw JSON are lent for a write; after a read they live in the arena,
 * which a list takes its memory from by tn_arena_reserve.
 *
 * Limits: a list's row says how many items it may have, a number's its range; JSON itself is
 * limited by json.h.
 *
 * Errors: TN_E_CKPT with the file and the path of the member, "files[3].crc32c"; TN_E_LIMIT, unless
 * the document says otherwise: whole, but of a later major version; TN_E_MEMORY. What a row says of
 * a struct that is written is the program's own promise.
 */
#pragma once

#include "base/codec/json.h"
#include "base/core/offset.h"

typedef enum tn_doc_kind {
    TN_DOC_KIND_END,
    TN_DOC_KIND_CHECK,  /* not a member: `check` looks at what was read so far */
    TN_DOC_KIND_CONST,  /* the text `words[0]` */
    TN_DOC_KIND_BOOL,   /* bool */
    TN_DOC_KIND_NUMBER, /* uint32_t or uint64_t: a number from min to max */
    TN_DOC_KIND_COUNT,  /* likewise, as a decimal string; read as either */
    TN_DOC_KIND_HEX,    /* likewise, any number: 8 or 16 hex digits */
    TN_DOC_KIND_F64,    /* double; NAN is null where `max` is not 0 */
    TN_DOC_KIND_STR,    /* const char *; of `max` hex digits, unless that is 0 */
    TN_DOC_KIND_ID,     /* char [max + 1]: as many hex digits, or, unless `min` is so, none */
    TN_DOC_KIND_WORD,   /* an enum: index into `words` */
    TN_DOC_KIND_OBJECT, /* `rows` of the struct at `offset`, in brackets of kind `bracket` */
    TN_DOC_KIND_PART,   /* not one member but several: tn_doc_part, in the same object */
    TN_DOC_KIND_RAW,    /* tn_doc_raw: any JSON; `words[0]` if its text is NULL */
    TN_DOC_KIND_LIST,   /* a pointer, or an array, and a uint32_t that counts */
} tn_doc_kind;

typedef struct tn_doc_raw {
    const char *text;    /* for a write; lent */
    const tn_json *json; /* after a read */
} tn_doc_raw;

typedef enum tn_doc_when {
    TN_DOC_ALWAYS,
    TN_DOC_WHEN_SET,  /* absent when it is 0, NULL, empty, or an object whose first row is so; or,
                         if there is a `has`, unless that */
    TN_DOC_WHEN_NULL, /* likewise null */
    TN_DOC_WHEN_FLAG, /* absent unless the bool at `flag`, which a read sets */
    TN_DOC_WHEN_HAS,  /* there exactly if `has`, which may look at the rows before it */
} tn_doc_when;

typedef struct tn_doc_row tn_doc_row;
struct tn_doc_row {
    tn_doc_kind kind;
    tn_doc_when when;
    const char *key; /* in a tuple it is not written, but named in messages */
    size_t offset, size;
    uint64_t min, max;        /* numbers; LIST: max items */
    const char *const *words; /* WORD, ends with NULL; CONST, RAW */
    const tn_doc_row *rows;   /* OBJECT, LIST */
    char bracket;             /* OBJECT, and each item of a LIST: '{' an object, '[' a tuple; of a
                                 list also 0: the one row's value, ':' an object of a name (first
                                 row) and a value (second) for each item */
    bool in_place;            /* LIST: an array of `max` items at `offset`, and no pointer */
    bool beside;              /* LIST: of other members of the items that the row before it read */
    size_t n_at, item_size;   /* LIST: its count, the bytes of an item */
    size_t flag;
    bool (*has)(const void *s);
    const char *(*check)(void *s); /* returns the name of what is wrong, NULL: nothing; may set
                                      members that follow from others */
};

/* Adds members of another struct, by the rows of its owner. Both are set for a read as well. */
typedef struct tn_doc_part {
    const tn_doc_row *rows;
    void *of;
} tn_doc_part;

typedef struct tn_document {
    const char *format; /* its first member */
    const char *is;     /* "the manifest of a checkpoint" */
    uint32_t newest;    /* the last major version that is read */
    tn_status newer;    /* the status for a later one; TN_OK means TN_E_LIMIT */
    const tn_doc_row *rows;
    uint32_t (*version)(const void *s); /* the major version to write, up to newest; NULL: newest */
} tn_document;

/* Appends the document, which ends in its crc; the text was empty. */
tn_status tn_document_write(const tn_document *d, const void *s, tn_text *out,
                            tn_error *err) TN_MUST_USE;
/* Returns the crc32c member that such a text ends in. */
uint32_t tn_document_crc(const tn_text *document);
/* On failure *out is half filled. `what` names the file in messages. */
tn_status tn_document_read(const tn_document *d, void *out, const tn_text *text, tn_arena *arena,
                           const char *what, tn_error *err) TN_MUST_USE;

/* Parts of documents: append members, or the value of a row without its key, and read an object. */
void tn_doc_put_rows(tn_text *out, const tn_doc_row *rows, const void *s);
void tn_doc_put(tn_text *out, const tn_doc_row *row, const void *s);
tn_status tn_doc_get_rows(const tn_doc_row *rows, const tn_json *object, void *s, tn_arena *arena,
                          const char *what, tn_error *err) TN_MUST_USE;

/* Rows of items that are values and no objects: const char *, uint64_t. */
extern const tn_doc_row tn_doc_str_items[1], tn_doc_u64_items[1];

/* ---- rows of member m of struct t: after the range comes the key, then what else is said ---- */

#define TN_DOC_ROW(kind_, t, m, want, lo, hi, ...)                                                 \
    {                                                                                              \
        .kind = TN_DOC_KIND_##kind_, .offset = TN_OFFSET(t, m, want), .size = sizeof(want),        \
        .min = (lo), .max = (hi), .key = __VA_ARGS__                                               \
    }
#define TN_DOC_END                                                                                 \
    {                                                                                              \
        .kind = TN_DOC_KIND_END                                                                    \
    }
#define TN_DOC_CHECK(fn)                                                                           \
    {                                                                                              \
        .kind = TN_DOC_KIND_CHECK, .check = (fn)                                                   \
    }
#define TN_DOC_BOOL(t, m, ...) TN_DOC_ROW(BOOL, t, m, bool, 0, 0, __VA_ARGS__)
#define TN_DOC_U32(t, m, lo, hi, ...) TN_DOC_ROW(NUMBER, t, m, uint32_t, lo, hi, __VA_ARGS__)
#define TN_DOC_U64(t, m, lo, hi, ...) TN_DOC_ROW(NUMBER, t, m, uint64_t, lo, hi, __VA_ARGS__)
#define TN_DOC_COUNT(t, m, hi, ...) TN_DOC_ROW(COUNT, t, m, uint64_t, 0, hi, __VA_ARGS__)
#define TN_DOC_HEX(t, m, ...) TN_DOC_ROW(HEX, t, m, uint64_t, 0, 0, __VA_ARGS__)
#define TN_DOC_CRC(t, m, ...) TN_DOC_ROW(HEX, t, m, uint32_t, 0, 0, __VA_ARGS__)
#define TN_DOC_F64(t, m, ...) TN_DOC_ROW(F64, t, m, double, 0, 0, __VA_ARGS__)
#define TN_DOC_NAN(t, m, ...) TN_DOC_ROW(F64, t, m, double, 0, 1, __VA_ARGS__) /* NAN is null */
#define TN_DOC_STR(t, m, ...) TN_DOC_ROW(STR, t, m, const char *, 0, 0, __VA_ARGS__)
#define TN_DOC_SHA(t, m, ...) TN_DOC_ROW(STR, t, m, const char *, 0, 64, __VA_ARGS__)
#define TN_DOC_ID(t, m, least, ...) TN_DOC_ROW(ID, t, m, char[33], least, 32, __VA_ARGS__)
#define TN_DOC_PART(t, m) TN_DOC_ROW(PART, t, m, tn_doc_part, 0, 0, NULL)
#define TN_DOC_RAW(t, m, ...) TN_DOC_ROW(RAW, t, m, tn_doc_raw, 0, 0, __VA_ARGS__)
#define TN_DOC_WORD(t, m, want, words_, ...)                                                       \
    TN_DOC_ROW(WORD, t, m, want, 0, 0, __VA_ARGS__, .words = (words_))
/* A text that is there exactly if the bool is set. */
#define TN_DOC_MARK(t, m, text, ...)                                                               \
    TN_DOC_ROW(CONST, t, m, bool, 0, 0, __VA_ARGS__, TN_DOC_FLAG(t, m),                            \
               .words = (const char *const[]){text, NULL})
/* An object is a struct; a group is an object that holds members of the same struct. */
#define TN_DOC_OBJECT(t, m, want, bracket_, rows_, ...)                                            \
    TN_DOC_ROW(OBJECT, t, m, want, 0, 0, __VA_ARGS__, .bracket = (bracket_), .rows = (rows_))
#define TN_DOC_GROUP(bracket_, rows_, ...)                                                         \
    {                                                                                              \
        .kind = TN_DOC_KIND_OBJECT, .bracket = (bracket_), .rows = (rows_), .key = __VA_ARGS__     \
    }
/* `want`: the type of the pointer; of an array that of an item. */
#define TN_DOC_LIST(t, n, m, want, bracket_, rows_, most, ...)                                     \
    TN_DOC_ROW(LIST, t, m, want, 0, most, __VA_ARGS__, .bracket = (bracket_), .rows = (rows_),     \
               .n_at = TN_OFFSET(t, n, uint32_t), .item_size = sizeof *((t *)0)->m)
#define TN_DOC_ARRAY(t, n, m, want, bracket_, rows_, most, ...)                                    \
    TN_DOC_LIST(t, n, m, want[most], bracket_, rows_, most, __VA_ARGS__, .in_place = true)

#define TN_DOC_MAY_MISS .when = TN_DOC_WHEN_SET
#define TN_DOC_OR_NULL .when = TN_DOC_WHEN_NULL
#define TN_DOC_FLAG(t, m) .when = TN_DOC_WHEN_FLAG, .flag = TN_OFFSET(t, m, bool)
#define TN_DOC_IF(fn) .when = TN_DOC_WHEN_HAS, .has = (fn)
