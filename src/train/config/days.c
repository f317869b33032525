/* days.c - reads the days of a run and the patterns of their files, and looks whether they are
 * there. */
#include "train/config/days.h"

#include "base/core/clock.h"
#include "base/core/text.h"
#include "base/file/file.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "io/read/fileset.h"
#include "io/read/held_rows.h"
#include "io/schema/dataopts.h"
#include "io/source/remote.h"

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { HOURS = 24, SHOWN = 256 };

static const char day_open[] = "{day";
static const char hour_open[] = "{hour";

/* ---- days ---- */

bool tn_day_read(const char *text, uint32_t *out)
{
    *out = 0;
    if (text == NULL) {
        return true;
    }
    if (strcmp(text, "today") == 0) {
        *out = tn_wall_day();
        return true;
    }
    struct tm date = {0};
    const bool shaped = strspn(text, "0123456789-") == 10 && text[4] == '-' && text[7] == '-';
    const char *end = shaped ? strptime(text, "%Y-%m-%d", &date) : NULL;
    const int day = date.tm_mday; /* a day that its month has not becomes one of the next */
    if (end == NULL || *end != '\0' || date.tm_year < 70) {
        return false;
    }
    const time_t seconds = timegm(&date);
    TN_ASSERT(seconds >= 0 && seconds / 86400 <= TN_DAY_MAX);
    *out = date.tm_mday == day ? (uint32_t)(seconds / 86400) : 0;
    return date.tm_mday == day;
}

static struct tm date_of(uint32_t day, uint32_t hour)
{
    struct tm date;
    const time_t seconds = (time_t)day * 86400 + (time_t)hour * 3600;
    (void)gmtime_r(&seconds, &date);
    return date;
}

uint32_t tn_day_of(uint32_t day)
{
    return tn_day_is_hour(day) ? (day - TN_HOUR_MIN) / HOURS : day;
}

static uint32_t hour_of(uint32_t day)
{
    return tn_day_is_hour(day) ? (day - TN_HOUR_MIN) % HOURS : 0;
}

void tn_day_text(uint32_t day, char out[TN_DAY_TEXT])
{
    TN_ASSERT(tn_day_of(day) <= TN_DAY_MAX);
    const struct tm date = date_of(tn_day_of(day), hour_of(day));
    const size_t size = tn_day_is_hour(day) ? strftime(out, TN_DAY_TEXT, "%Y-%m-%dT%H", &date)
                                            : strftime(out, TN_DAY_TEXT, "%Y-%m-%d", &date);
    TN_ASSERT(size > 0);
}

void tn_day_name(uint32_t day, char out[TN_DAY_NAME])
{
    char text[TN_DAY_TEXT];
    tn_day_text(day, text);
    (void)snprintf(out, TN_DAY_NAME, "%s %s", tn_day_is_hour(day) ? "hour" : "day", text);
}

/* "T05": 5. False: it is none. */
static bool read_hour(const char *text, size_t size, uint32_t *out)
{
    const bool good = size == 3 && text[0] == 'T' && text[1] >= '0' && text[1] <= '2' &&
                      text[2] >= '0' && text[2] <= '9';
    *out = good ? (uint32_t)(text[1] - '0') * 10 + (uint32_t)(text[2] - '0') : HOURS;
    return *out < HOURS;
}

/* A date, or an hour of one; no word of the clock: what a run learns does not depend on when it is
 * started. */
static tn_status read_day(const char *text, size_t size, uint32_t *out, tn_error *err)
{
    enum { DATE = 10 };
    char day[TN_DAY_TEXT] = "";
    uint32_t hour = 0;
    (void)snprintf(day, sizeof day, "%.*s", size < DATE ? (int)size : DATE, text);
    const bool hours = size > DATE;
    if (size < DATE || day[0] < '0' || day[0] > '9' || !tn_day_read(day, out) ||
        (hours && !read_hour(text + DATE, size - DATE, &hour))) {
        return tn_fail(err, TN_E_CONFIG,
                       "'%.*s' of data.days is not a date like 2026-11-07, nor an hour like "
                       "2026-11-07T05",
                       size < SHOWN ? (int)size : SHOWN, text);
    }
    *out = hours ? TN_HOUR_MIN + *out * HOURS + hour : *out;
    return TN_OK;
}

static tn_status read_range(const char *text, uint32_t *first, uint32_t *last, tn_error *err)
{
    const char *dots = strstr(text, "..");
    const size_t size = dots != NULL ? (size_t)(dots - text) : strlen(text);
    TN_TRY(read_day(text, size, first, err));
    *last = *first;
    uint32_t hour = 0;
    if (dots != NULL && tn_day_is_hour(*first) && read_hour(dots + 2, strlen(dots + 2), &hour)) {
        *last = *first - hour_of(*first) + hour;
    } else if (dots != NULL) {
        TN_TRY(read_day(dots + 2, strlen(dots + 2), last, err));
    }
    if (tn_day_is_hour(*first) != tn_day_is_hour(*last)) {
        return tn_fail(err, TN_E_CONFIG, "data.days '%s' is of a day and an hour", text);
    }
    if (*last < *first) {
        return tn_fail(err, TN_E_CONFIG, "data.days '%s' ends before it begins", text);
    }
    return TN_OK;
}

tn_status tn_days_read(const tn_strs *words, tn_arena *arena, const uint32_t **out, uint32_t *n,
                       tn_error *err)
{
    uint32_t all = 0;
    uint32_t first = 0;
    uint32_t last = 0;
    for (uint32_t i = 0; i < words->n; i++) {
        const uint32_t before = last;
        TN_TRY(read_range(words->item[i], &first, &last, err));
        if (i > 0 && tn_day_is_hour(first) != tn_day_is_hour(before)) {
            return tn_fail(err, TN_E_CONFIG, "data.days are days and hours: '%s' and '%s'",
                           words->item[i - 1], words->item[i]);
        }
        if (i > 0 && first <= before) {
            return tn_fail(err, TN_E_CONFIG, "data.days go back: '%s' comes behind '%s'",
                           words->item[i], words->item[i - 1]);
        }
        all += last - first + 1;
        if (all > TN_DAYS_MAX) {
            return tn_fail(err, TN_E_CONFIG, "data.days are more than %d days", TN_DAYS_MAX);
        }
    }
    uint32_t *day = TN_NEW_ARRAY(arena, uint32_t, (size_t)all + 1);
    *n = 0;
    for (uint32_t i = 0; i < words->n; i++) {
        TN_TRY(read_range(words->item[i], &first, &last, err));
        for (uint32_t d = first; d <= last; d++) {
            day[(*n)++] = d;
        }
    }
    TN_ASSERT(*n == all);
    *out = day;
    return TN_OK;
}

/* ---- patterns ---- */

/* "{day:%Y%m%d}" in a path. */
typedef struct field {
    const char *at;
    const char *format;
    size_t size; /* bytes of the format */
    bool hour;
} field;

/* Finds the next field at or after `at`; false: there is none. Without a format, or without an end,
 * size 0. */
static bool next_field(const char *path, field *out)
{
    const char *day = strstr(path, day_open);
    const char *hour = strstr(path, hour_open);
    const bool is_hour = hour != NULL && (day == NULL || hour < day);
    const char *at = is_hour ? hour : day;
    if (at == NULL) {
        return false;
    }
    const char *colon = at + (is_hour ? sizeof hour_open : sizeof day_open) - 1;
    const char *end = strchr(at, '}');
    const bool good = *colon == ':' && end != NULL;
    *out = (field){at, colon + 1, good ? (size_t)(end - colon) - 1 : 0, is_hour};
    return true;
}

bool tn_days_is_pattern(const char *path)
{
    field f;
    return next_field(path, &f);
}

/* Adds the letters of the conversions of a field to `seen`, which has room for all bytes. */
static tn_status check_field(const char *path, const field *f, bool seen[256], tn_error *err)
{
    if (f->size == 0) {
        return tn_fail(err, TN_E_CONFIG, "'%s': %s is not of the form {%s}", path,
                       f->hour ? "{hour" : "{day", f->hour ? "hour:%H" : "day:%Y%m%d");
    }
    bool hour = false;
    for (size_t i = 0; i < f->size; i++) {
        if (f->format[i] != '%') {
            continue;
        }
        i++;
        const char c = f->format[i]; /* '}' follows the last one */
        if (i == f->size || strchr("YymdjFH%", c) == NULL || (c == 'H' && !f->hour)) {
            return tn_fail(err, TN_E_CONFIG,
                           "'%s': '%%%.1s' in '%.*s'\nhint: %%Y %%y %%m %%d %%j %%F stand in "
                           "{day:..}, and %%H in {hour:..}",
                           path, i == f->size ? "" : &f->format[i], (int)f->size, f->format);
        }
        hour = hour || c == 'H';
        seen[(unsigned char)c] = true;
    }
    return f->hour && !hour
               ? tn_fail(err, TN_E_CONFIG,
                         "'%s': {hour:%.*s} is the same for all hours\nhint: {hour:%%H}", path,
                         (int)f->size, f->format)
               : TN_OK;
}

tn_status tn_days_check_pattern(const char *path, tn_error *err)
{
    bool seen[256] = {false};
    field f;
    for (const char *at = path; next_field(at, &f); at = f.format) {
        TN_TRY(check_field(path, &f, seen, err));
    }
    const bool year = seen['Y'] || seen['y'];
    if (seen['F'] || (year && seen['j']) || (year && seen['m'] && seen['d'])) {
        return TN_OK;
    }
    return tn_fail(
        err, TN_E_CONFIG,
        "'%s' is the same for several days\nhint: {day:%%Y%%m%%d} in it tells them apart", path);
}

static bool has_hours(const char *pattern)
{
    return strstr(pattern, hour_open) != NULL;
}

/* One conversion of strftime. */
static void put_conversion(char c, const struct tm *date, tn_text *out)
{
    switch (c) {
    case 'F':
        tn_text_addf(out, "%04d-%02d-%02d", date->tm_year + 1900, date->tm_mon + 1, date->tm_mday);
        break;
    case 'Y':
        tn_text_addf(out, "%04d", date->tm_year + 1900);
        break;
    case 'y':
        tn_text_addf(out, "%02d", date->tm_year % 100);
        break;
    case 'm':
        tn_text_addf(out, "%02d", date->tm_mon + 1);
        break;
    case 'd':
        tn_text_addf(out, "%02d", date->tm_mday);
        break;
    case 'j':
        tn_text_addf(out, "%03d", date->tm_yday + 1);
        break;
    case 'H':
        tn_text_addf(out, "%02d", date->tm_hour);
        break;
    default:
        tn_text_addc(out, c); /* %% */
    }
}

static const char *expand(const char *pattern, uint32_t day, uint32_t hour, tn_arena *arena)
{
    const struct tm date = date_of(day, hour);
    tn_text out = {0};
    field f;
    const char *at = pattern;
    while (next_field(at, &f)) {
        TN_ASSERT(f.size > 0);
        tn_text_add(&out, at, (size_t)(f.at - at));
        for (const char *c = f.format; c < f.format + f.size; c++) {
            if (*c == '%') {
                put_conversion(*++c, &date, &out);
            } else {
                tn_text_addc(&out, *c);
            }
        }
        at = f.format + f.size + 1;
    }
    tn_text_adds(&out, at);
    const char *path = tn_tree_text(arena, tn_text_str(&out), out.size);
    tn_text_done(&out);
    return path;
}

tn_strs tn_days_paths(const tn_strs *patterns, uint32_t day, tn_arena *arena)
{
    const char **item = TN_NEW_ARRAY(arena, const char *, (size_t)patterns->n *HOURS + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < patterns->n; i++) {
        const bool all = has_hours(patterns->item[i]) && !tn_day_is_hour(day);
        for (uint32_t h = 0; h < (all ? HOURS : 1); h++) {
            item[n++] = expand(patterns->item[i], tn_day_of(day), hour_of(day) + h, arena);
        }
    }
    return (tn_strs){.n = n, .item = item};
}

tn_strs tn_days_all_paths(const tn_data_opts *data, tn_arena *arena)
{
    const size_t most = (size_t)data->n_days * data->pattern.n * HOURS;
    const char **item = TN_NEW_ARRAY(arena, const char *, most + 1);
    uint32_t n = 0;
    for (uint32_t d = 0; d < data->n_days; d++) {
        const tn_strs of_day = tn_days_paths(&data->pattern, data->day[d], arena);
        for (uint32_t i = 0; i < of_day.n; i++) {
            item[n++] = of_day.item[i];
        }
    }
    return (tn_strs){.n = n, .item = item};
}

tn_strs tn_days_learned_paths(const tn_data_opts *data, const tn_learned_days *s, tn_arena *arena)
{
    uint64_t n = 0;
    for (uint32_t r = 0; s != NULL && r < s->n; r++) {
        n += s->range[r].last - s->range[r].first + 1;
    }
    uint32_t *day = TN_NEW_ARRAY(arena, uint32_t, n + 1);
    TN_ASSERT(n <= TN_HOUR_MAX - TN_HOUR_MIN + 1);
    tn_data_opts learned = *data;
    learned.day = day;
    learned.n_days = (uint32_t)n;
    for (uint32_t r = 0; s != NULL && r < s->n; r++) {
        for (uint32_t d = s->range[r].first; d <= s->range[r].last; d++) {
            *day++ = d;
        }
    }
    return tn_days_all_paths(&learned, arena);
}

tn_strs tn_days_globs(const tn_strs *patterns, tn_arena *arena)
{
    const char **item = TN_NEW_ARRAY(arena, const char *, (size_t)patterns->n + 1);
    for (uint32_t i = 0; i < patterns->n; i++) {
        tn_text out = {0};
        field f;
        const char *at = patterns->item[i];
        for (; next_field(at, &f); at = f.format + f.size + 1) {
            tn_text_add(&out, at, (size_t)(f.at - at));
            tn_text_addc(&out, '*');
        }
        tn_text_adds(&out, at);
        item[i] = tn_tree_text(arena, tn_text_str(&out), out.size);
        tn_text_done(&out);
    }
    return (tn_strs){.n = patterns->n, .item = item};
}

/* ---- the words of a configuration ---- */

static void fault(const tn_binder *b, const tn_tree *tree, const char *path, const tn_error *err)
{
    const char *hint = strstr(err->text, "\nhint: ");
    const size_t size = hint != NULL ? (size_t)(hint - err->text) : strlen(err->text);
    tn_diag_error(b->diag, tn_tree_place(tree, path), "%.*s", (int)size, err->text);
    if (hint != NULL) {
        tn_diag_hint(b->diag, "%s", hint + strlen("\nhint: "));
    }
}

static tn_status check_train(const tn_data_opts *data, bool days, tn_error *err)
{
    for (uint32_t i = 0; i < data->train.n; i++) {
        const char *path = data->train.item[i];
        if (!tn_days_is_pattern(path)) {
            if (days) {
                return tn_fail(err, TN_E_CONFIG,
                               "data.days is set, and '%s' of data.train is the same for all "
                               "days\nhint: write where the day stands, as in "
                               "logs/{day:%%Y%%m%%d}/part-*",
                               path);
            }
            continue;
        }
        TN_TRY(tn_days_check_pattern(path, err));
        if (days && data->n_days > 0 && tn_day_is_hour(data->day[0]) && !has_hours(path)) {
            return tn_fail(err, TN_E_CONFIG,
                           "data.days are hours, and '%s' of data.train is the same for all of a "
                           "day\nhint: write where the hour stands, as in {hour:%%H}",
                           path);
        }
        if (!days) {
            return tn_fail(err, TN_E_CONFIG,
                           "'%s' of data.train has {day:..} or {hour:..}, and data.days is not "
                           "set\nhint: 'day=2026-11-07' on the command line names one day, "
                           "'data.days=2026-11-01..2026-11-07' several",
                           path);
        }
    }
    return TN_OK;
}

static bool is_next(const tn_data_opts *data)
{
    return data->valid.n == 1 && strcmp(data->valid.item[0], "next") == 0;
}

static tn_status check_others(const tn_data_opts *data, bool days, tn_error *err)
{
    const bool pattern = data->train.n > 0 && tn_days_is_pattern(data->train.item[0]);
    if (is_next(data) && !days && !pattern && !tn_path_exists("next")) {
        return tn_fail(err, TN_E_CONFIG,
                       "data.valid is 'next', the day after, and data.days is not set\nhint: "
                       "'data.valid=PATH' names files");
    }
    const tn_strs *const lists[] = {&data->valid, &data->test};
    for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < lists[k]->n; i++) {
            if (tn_days_is_pattern(lists[k]->item[i])) {
                return tn_fail(err, TN_E_CONFIG,
                               "'%s': {day:..} and {hour:..} stand in data.train only\nhint: "
                               "'valid: next' evaluates the day after",
                               lists[k]->item[i]);
            }
        }
    }
    if (data->done != NULL && (data->done[0] == '\0' || tn_days_is_pattern(data->done))) {
        return tn_fail(err, TN_E_CONFIG,
                       "data.done is '%s', not the name of a file in the folder of a day like "
                       "_SUCCESS",
                       data->done);
    }
    return TN_OK;
}

static tn_status read_wait(const char *text, double *out, tn_error *err)
{
    tn_diag quiet = {0};
    const tn_binder b = {.diag = &quiet};
    const tn_field duration = {.kind = TN_KIND_DURATION, .key = "wait", .min = 0, .max = 1e9};
    const tn_tree scalar = {.kind = TN_TREE_SCALAR, .text = text, .at = {.source = "data.wait"}};
    *out = (double)INFINITY;
    const bool good = strcmp(text, "inf") == 0 || tn_read_scalar(&b, &duration, &scalar, out);
    tn_diag_done(&quiet);
    return good ? TN_OK
                : tn_fail(err, TN_E_CONFIG,
                          "data.wait is '%s', not a time like 0s, 30min or 2h, nor inf", text);
}

/* data.valid as a part of data.train, whose paths it gets. */
static tn_status hold_rows(tn_data_opts *data, tn_error *err)
{
    bool is_word = false;
    if (data->valid.n != 1 || tn_path_exists(data->valid.item[0])) {
        return TN_OK;
    }
    TN_TRY(tn_held_rows_read(data->valid.item[0], data, &is_word, err));
    if (!is_word) {
        return TN_OK;
    }
    if (data->train.n == 0 || data->days.n > 0 || tn_strs_has(&data->train, "-")) {
        return tn_fail(err, TN_E_CONFIG, "data.valid holds back rows of data.train, %s",
                       data->train.n == 0 ? "which is not set"
                       : data->days.n > 0
                           ? "which is one of days: 'valid: next' takes those of the "
                             "day after"
                           : "which is read once: '-'");
    }
    data->valid = data->train;
    return TN_OK;
}

void tn_days_bind(const tn_binder *b, const tn_tree *tree, tn_data_opts *data)
{
    tn_error err = {0};
    const bool days = data->days.n > 0;
    data->pattern = (tn_strs){0};
    data->day = NULL;
    data->n_days = 0;
    data->next = false;
    data->held = TN_HELD_NONE;
    data->held_part = 0;
    data->again = false;
    bool good = read_wait(data->wait, &data->wait_s, &err) == TN_OK;
    if (!good) {
        fault(b, tree, "data.wait", &err);
    }
    if (days && data->train.n == 0) {
        (void)tn_fail(&err, TN_E_CONFIG, "data.days is set, and data.train is not");
        fault(b, tree, "data.days", &err);
        return;
    }
    if (days && tn_days_read(&data->days, b->arena, &data->day, &data->n_days, &err) != TN_OK) {
        fault(b, tree, "data.days", &err);
        good = false;
    }
    if (check_train(data, days, &err) != TN_OK) {
        fault(b, tree, "data.train", &err);
        good = false;
    }
    if (check_others(data, days, &err) != TN_OK) {
        fault(b, tree, "data", &err);
        good = false;
    }
    if (good && hold_rows(data, &err) != TN_OK) {
        fault(b, tree, "data.valid", &err);
    }
    if (!days || !good) {
        return;
    }
    TN_ASSERT(data->n_days > 0);
    data->pattern = data->train;
    data->train = tn_days_paths(&data->pattern, data->day[0], b->arena);
    data->next = is_next(data);
    if (data->next) {
        data->valid = (tn_strs){0};
    }
}

const tn_tree *tn_days_unfold(const tn_binder *b, const tn_tree *tree)
{
    const tn_tree *section = tn_tree_get(tree, "data");
    const tn_tree *train = section != NULL ? tn_tree_get(section, "train") : NULL;
    const bool list = train != NULL && train->kind == TN_TREE_LIST;
    bool is_pattern = false;
    for (const tn_tree *t = list ? train->first : train; t != NULL; t = list ? t->next : NULL) {
        is_pattern |= t->kind == TN_TREE_SCALAR && tn_days_is_pattern(t->text);
    }
    if (!is_pattern) {
        return tree;
    }
    tn_data_opts data;
    tn_diag quiet = {0}; /* the binder of the rest reports other faults */
    const tn_binder lenient = {.arena = b->arena, .diag = &quiet};
    tn_fields_bind(&lenient, tn_data_fields, section, &data);
    tn_diag_done(&quiet);
    tn_days_bind(b, tree, &data);
    const tn_strs paths = tn_days_all_paths(&data, b->arena);
    tn_tree *files = tn_tree_new(b->arena, TN_TREE_LIST, train->at);
    for (uint32_t i = 0; i < paths.n; i++) {
        tn_tree_append(files, tn_tree_scalar(b->arena, paths.item[i], train->at));
    }
    tn_tree *unfolded = tn_tree_copy(b->arena, tree);
    tn_tree *copy = tn_tree_copy(b->arena, section);
    tn_tree_put(b->arena, copy, "train", files);
    tn_tree_put(b->arena, unfolded, "data", copy);
    return unfolded;
}

/* ---- is a day there? ---- */

/* data.done in the folder that holds `path`, or is it. */
static tn_status look_for_done(const char *path, const tn_data_opts *data, tn_error *err)
{
    const char *done = data->done;
    char folder[TN_PATH_SIZE];
    char file[TN_PATH_SIZE];
    glob_t found = {0};
    const size_t size = strlen(path);
    if (tn_path_is_dir(path) || (size > 0 && path[size - 1] == '/')) {
        (void)snprintf(folder, sizeof folder, "%s", path);
    } else {
        TN_TRY(tn_path_parent(path, folder, err));
    }
    TN_TRY(tn_path_join(folder, done, file, err));
    bool remote = false;
    TN_TRY(tn_remotes()->is(path, &remote, err));
    if (remote) {
        const char *only = file;
        return tn_fileset_look(&(tn_strs){1, &only}, data->secrets, err);
    }
    const bool there = glob(file, GLOB_NOSORT, NULL, &found) == 0; // NOLINT(concurrency-mt-unsafe)
    globfree(&found);
    return there ? TN_OK : tn_fail(err, TN_E_DATA, "there is no '%s'", file);
}

tn_status tn_days_look(const tn_data_opts *data, uint32_t day, tn_error *err)
{
    tn_arena *arena = tn_arena_new(1 << 12);
    const tn_strs paths = tn_days_paths(&data->pattern, day, arena);
    tn_status status = TN_OK;
    for (uint32_t i = 0; data->done != NULL && i < paths.n && status == TN_OK; i++) {
        status = look_for_done(paths.item[i], data, err);
    }
    if (status == TN_OK) {
        status = tn_fileset_look(&paths, data->secrets, err);
    }
    tn_arena_free(arena);
    return status;
}

tn_status tn_days_look_all(const tn_data_opts *data, tn_error *err)
{
    tn_error why = {0};
    for (uint32_t i = 0; i < data->n_days; i++) {
        tn_status status = tn_days_look(data, data->day[i], &why);
        if (status != TN_OK) {
            char name[TN_DAY_NAME];
            tn_day_name(data->day[i], name);
            return tn_fail(err, status, "%s is not there: %s", name, why.text);
        }
    }
    return TN_OK;
}

/* ---- the rows that a model is judged by ---- */

/* Returns the day that data.days names after `day`, or the calendar's. */
static uint32_t day_after(const tn_data_opts *data, uint32_t day)
{
    uint32_t i = 0;
    while (i < data->n_days && data->day[i] <= day) {
        i++;
    }
    return i < data->n_days ? data->day[i] : day + 1;
}

tn_status tn_valid_rows_find(const tn_data_opts *data, const tn_learned_days *learned,
                             tn_arena *arena, tn_valid_rows *out, tn_error *err)
{
    *out = (tn_valid_rows){.paths = data->valid, .held = data->held != TN_HELD_NONE};
    if (!data->next) {
        return data->valid.n > 0 ? TN_OK : tn_fail(err, TN_E_DATA, "data.valid is not set");
    }
    const uint32_t day = day_after(data, learned->day);
    if (learned->n == 0 || tn_day_of(day) > TN_DAY_MAX || tn_days_has(learned, day)) {
        return tn_fail(err, TN_E_DATA, "data.valid is next, and no day is behind those learned");
    }
    char name[TN_DAY_NAME];
    tn_error why = {0};
    const tn_status status = tn_days_look(data, day, &why);
    tn_day_name(day, name);
    if (status != TN_OK) {
        return tn_fail(err, status == TN_E_STOPPED ? status : TN_E_DATA,
                       "data.valid is next, and %s is not there yet", name);
    }
    *out = (tn_valid_rows){.paths = tn_days_paths(&data->pattern, day, arena),
                           .rows_max = data->valid_rows,
                           .day = day};
    TN_ASSERT(out->paths.n > 0 && out->rows_max > 0);
    return TN_OK;
}

/* ---- days that are learned ---- */

bool tn_days_has(const tn_learned_days *s, uint32_t day)
{
    bool has = false;
    for (uint32_t i = 0; i < s->n && !has; i++) {
        has = day >= s->range[i].first && day <= s->range[i].last;
    }
    return has;
}

tn_status tn_days_add(tn_learned_days *s, uint32_t day, tn_error *err)
{
    uint32_t at = 0; /* the first range that ends after the day before, or touches it */
    while (at < s->n && (uint64_t)s->range[at].last + 1 < day) {
        at++;
    }
    tn_day_range *r = &s->range[at];
    if (at < s->n && r->first <= (uint64_t)day + 1) {
        r->first = day < r->first ? day : r->first;
        r->last = day > r->last ? day : r->last;
        if (at + 1 < s->n && r->last + 1 == r[1].first) { /* the hole is filled */
            r->last = r[1].last;
            s->n--;
            memmove(r + 1, r + 2, (s->n - at - 1) * sizeof *r);
        }
        return TN_OK;
    }
    if (s->n == TN_DAY_RANGES_MAX) {
        return tn_fail(err, TN_E_LIMIT, "the days that are learned have more than %d gaps",
                       TN_DAY_RANGES_MAX - 1);
    }
    memmove(r + 1, r, (s->n - at) * sizeof *r);
    *r = (tn_day_range){day, day};
    s->n++;
    return TN_OK;
}

/* "2026-11-01..07", "2026-11-07T00..T05", the last in full where its month, or day, is another. */
static void put_range(const tn_day_range *r, tn_text *out)
{
    char first[TN_DAY_TEXT];
    char last[TN_DAY_TEXT];
    tn_day_text(r->first, first);
    tn_day_text(r->last, last);
    const size_t same = strlen(tn_day_is_hour(r->first) ? "2026-11-07" : "2026-11-");
    tn_text_adds(out, first);
    if (r->last > r->first) {
        tn_text_addf(out, "..%s", strncmp(first, last, same) == 0 ? last + same : last);
    }
}

void tn_days_put(const tn_learned_days *s, tn_text *out)
{
    const bool one = s->n == 1 && s->range[0].first == s->range[0].last;
    if (s->n == 0) {
        tn_text_adds(out, "no day is learned");
        return;
    }
    tn_text_adds(out, tn_day_is_hour(s->range[0].first) ? "hour" : "day");
    tn_text_adds(out, one ? " " : "s ");
    for (uint32_t i = 0; i < s->n; i++) {
        tn_text_adds(out, i > 0 ? ", " : "");
        put_range(&s->range[i], out);
    }
    tn_text_adds(out, one ? " is learned" : " are learned");
}

/* ---- their section of a manifest ---- */

static const tn_doc_row range_rows[] = {
    TN_DOC_U32(tn_day_range, first, 0, TN_HOUR_MAX - TN_HOUR_MIN, "first"),
    TN_DOC_U32(tn_day_range, last, 0, TN_HOUR_MAX - TN_HOUR_MIN, "last"),
    TN_DOC_END,
};

static bool is_within(const void *days)
{
    return ((const tn_learned_days *)days)->within;
}

static bool is_after(const void *days)
{
    const tn_learned_days *d = days;
    return !d->within && d->day != 0;
}

static bool has_day(const void *days)
{
    const tn_learned_days *d = days;
    return d->within || d->day != 0;
}

tn_learned_days tn_days_pack(const tn_learned_days *s)
{
    tn_learned_days d = *s;
    d.hours = tn_day_is_hour(d.day) || (d.n > 0 && tn_day_is_hour(d.range[0].first));
    const uint32_t base = d.hours ? TN_HOUR_MIN : 0;
    for (uint32_t i = 0; i < d.n; i++) {
        d.range[i] = (tn_day_range){d.range[i].first - base, d.range[i].last - base};
    }
    d.day -= has_day(&d) ? base : 0;
    return d;
}

/* The way back. A day lies between two ranges. */
static const char *unpack_days(void *days)
{
    tn_learned_days *d = days;
    const uint32_t base = d->hours ? TN_HOUR_MIN : 0;
    const uint32_t most = d->hours ? TN_HOUR_MAX - TN_HOUR_MIN : TN_DAY_MAX;
    uint32_t least = 0;
    for (uint32_t i = 0; i < d->n; i++) {
        tn_day_range *r = &d->range[i];
        if (r->first < least || r->first > r->last || r->last > most) {
            return "learned";
        }
        least = r->last + 2;
        *r = (tn_day_range){base + r->first, base + r->last};
    }
    if (d->day > most) {
        return d->within ? "day" : "last";
    }
    d->day += has_day(d) ? base : 0;
    d->hours = false;
    return NULL;
}

const tn_doc_row tn_learned_days_rows[] = {
    TN_DOC_MARK(tn_learned_days, hours, "hour", "unit"),
    TN_DOC_ARRAY(tn_learned_days, n, range, tn_day_range, '[', range_rows, TN_DAY_RANGES_MAX,
                 "learned"),
    TN_DOC_U32(tn_learned_days, day, 0, TN_HOUR_MAX - TN_HOUR_MIN, "day",
               TN_DOC_FLAG(tn_learned_days, within)),
    TN_DOC_U32(tn_learned_days, epoch, 0, UINT32_MAX, "epoch", TN_DOC_IF(is_within)),
    TN_DOC_U64(tn_learned_days, before, 0, INT64_MAX, "before", TN_DOC_IF(is_within)),
    TN_DOC_U32(tn_learned_days, day, 0, TN_HOUR_MAX - TN_HOUR_MIN, "last", TN_DOC_MAY_MISS,
               .has = is_after),
    TN_DOC_COUNT(tn_learned_days, samples, UINT64_MAX, "samples", TN_DOC_IF(has_day)),
    TN_DOC_CHECK(unpack_days),
    TN_DOC_END,
};
