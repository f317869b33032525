/* days.h - the days of a run: data.days, and paths with {day:..} and {hour:..} in them.
 *
 *     2026-11-01..2026-11-07              first..last; a list; one day
 *     2026-11-07T00..T05                  hours, each learned as a day is
 *     logs/{day:%Y%m%d}/part-*            the files of a day: strftime, %Y %y %m %d %j %F %H
 *     logs/{day:%Y%m%d}/{hour:%H}.tsv     of an hour, or of all of a day's, 00 .. 23, in order
 *
 * A day is its number since 1970-01-01 (tn_day_read), an hour as TN_HOUR_MIN says; hours
 * are those of the names, whatever the time zone. Wherever a run over hours has no days, a day is
 * an hour below. What is made lives in the arena. Any thread.
 */
#pragma once

#include "base/codec/document.h"
#include "base/core/arena.h"
#include "base/core/error.h"
#include "config/values.h"

typedef struct tn_data_opts tn_data_opts; /* io/schema/dataopts.h */
typedef struct tn_text tn_text;           /* base/core/text.h */

enum { TN_DAY_TEXT = 16, TN_DAY_NAME = 24, TN_DAYS_MAX = 100000 };

/* An hour, of a run over hours, is TN_HOUR_MIN and its number since 1970-01-01. */
enum {
    TN_DAY_MAX = 2932896, /* 9999-12-31 */
    TN_HOUR_MIN = 1 << 30,
    TN_HOUR_MAX = TN_HOUR_MIN + TN_DAY_MAX * 24 + 23,
};

static inline bool tn_day_is_hour(uint64_t day)
{
    return day >= TN_HOUR_MIN && day <= TN_HOUR_MAX;
}

/* The day that rows are stamped with, in days since 1970-01-01: "2026-11-07", "today" (UTC), NULL:
 * 0, at most TN_DAY_MAX. False: none of these. */
bool tn_day_read(const char *text, uint32_t *out);

/* "2026-11-07", "2026-11-07T05". */
void tn_day_text(uint32_t day, char out[TN_DAY_TEXT]);
/* "day 2026-11-07", "hour 2026-11-07T05". */
void tn_day_name(uint32_t day, char out[TN_DAY_NAME]);
/* The day that an hour is of; a day itself. Rows are stamped with it. */
uint32_t tn_day_of(uint32_t day);

/* The days that `words` name, ascending. TN_E_CONFIG: what is wrong with them. */
tn_status tn_days_read(const tn_strs *words, tn_arena *arena, const uint32_t **out, uint32_t *n,
                       tn_error *err) TN_MUST_USE;

/* Whether a path has {day or {hour in it, right or wrong. */
bool tn_days_is_pattern(const char *path);
/* TN_E_CONFIG: what is wrong with a pattern, also that two days would have the same path. */
tn_status tn_days_check_pattern(const char *path, tn_error *err) TN_MUST_USE;
/* The paths of a day, for each checked pattern its own, or 24 where it has hours. */
tn_strs tn_days_paths(const tn_strs *patterns, uint32_t day, tn_arena *arena);
/* Returns the paths of all days of data.days. */
tn_strs tn_days_all_paths(const tn_data_opts *data, tn_arena *arena);

/* Globs that match the files of any day. */
tn_strs tn_days_globs(const tn_strs *patterns, tn_arena *arena);

/* Reads the words of a run over days; faults go to b->diag. Then data->train has the files of the
 * first day. `tree`: the whole configuration. Without such words nothing changes. */
void tn_days_bind(const tn_binder *b, const tn_tree *tree, tn_data_opts *data);

/* Returns a configuration in which data.train has the files of all days, if it is a pattern; else
 * `tree`. For readers of data.train as it is. Faults go to b->diag. */
const tn_tree *tn_days_unfold(const tn_binder *b, const tn_tree *tree);

/* TN_OK: all files of a day are there, as data.done says; TN_E_DATA: they are not, and why. */
tn_status tn_days_look(const tn_data_opts *data, uint32_t day, tn_error *err) TN_MUST_USE;
/* The same of all days of data.days, for who cannot do without one: the sentence names it. */
tn_status tn_days_look_all(const tn_data_opts *data, tn_error *err) TN_MUST_USE;

/* ---- days that are learned ---- */

enum { TN_DAY_RANGES_MAX = 64 };

typedef struct tn_day_range {
    uint32_t first, last;
} tn_day_range;

/* The days that a run over days has learned. */
typedef struct tn_learned_days {
    bool used;  /* false: no run over days, and all else is 0 */
    bool hours; /* in a document only: its numbers are hours from 0 */
    uint32_t n;
    tn_day_range range[TN_DAY_RANGES_MAX]; /* learned; ascending, with days between them */
    bool within;                           /* a day that is not learned to its end */
    uint32_t day;     /* this one; outside of one the day that was learned last; 0: not known */
    uint32_t epoch;   /* epoch when the day within began */
    uint64_t before;  /* the checkpoint before it began; 0: none, or not known */
    uint64_t samples; /* when it began */
} tn_learned_days;

/* The section "days" of a manifest, which is read into *s as it is, and written of *s when it has
 * been packed: hours are numbers from 0, as days are. */
extern const tn_doc_row tn_learned_days_rows[];
tn_learned_days tn_days_pack(const tn_learned_days *s);

bool tn_days_has(const tn_learned_days *s, uint32_t day);
/* TN_E_LIMIT: more than TN_DAY_RANGES_MAX ranges of days. */
tn_status tn_days_add(tn_learned_days *s, uint32_t day, tn_error *err) TN_MUST_USE;
/* "days 2026-11-01..07 are learned"; "no day is learned". */
void tn_days_put(const tn_learned_days *s, tn_text *out);
/* Returns the paths of all days that are learned; `s` NULL: there are none. */
tn_strs tn_days_learned_paths(const tn_data_opts *data, const tn_learned_days *s, tn_arena *arena);

/* ---- the rows that a model is judged by ---- */

/* Rows of data.valid; or, with `valid: next`, the first ones of the day after the last learned one.
 */
typedef struct tn_valid_rows {
    tn_strs paths;
    uint64_t rows_max; /* as in tn_eval_request (train/eval/evaluate.h); 0: all */
    bool held;         /* likewise: only those that data.valid holds back */
    uint32_t day;      /* day of the paths; 0: none */
} tn_valid_rows;

/* Paths are those of `data` or live in `arena`. TN_E_DATA: there are none, and why; TN_E_STOPPED:
 * by a signal, while a server was asked. */
tn_status tn_valid_rows_find(const tn_data_opts *data, const tn_learned_days *learned,
                             tn_arena *arena, tn_valid_rows *out, tn_error *err) TN_MUST_USE;
