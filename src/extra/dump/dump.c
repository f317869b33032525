/* dump.c - reading and writing a sparse table as text. */
#include "extra/dump/dump.h"

#include "base/core/alloc.h"
#include "base/core/number.h"
#include "base/file/file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PIECE = 256 << 10, FIXED = 5, NAME_BYTES = 255 };

struct tn_dump {
    tn_infile *file;
    uint64_t at;   /* bytes read from the file */
    tn_text bytes; /* a piece of the file; bytes from `from` on are not yet lines */
    size_t from;
    uint64_t line;
    tn_dump_head head;
    tn_dump_column column[TN_DUMP_COLUMNS_MAX];
    char names[TN_DUMP_COLUMNS_MAX][NAME_BYTES + 1];
    char model_id[33];
    char group[NAME_BYTES + 1];
    tn_dump_row row;
    tn_dump_value value[TN_DUMP_COLUMNS_MAX];
    float values[TN_DUMP_VALUES_MAX];
};

/* A piece of a line. */
typedef struct span {
    const char *at;
    size_t size;
} span;

static const char *const fixed[FIXED] = {"group", "sign", "show", "click", "last_seen"};

static tn_status wrong(const tn_dump *d, const char *what, tn_error *err)
{
    return tn_fail(err, TN_E_CKPT, "%s:%llu: error: %s", tn_infile_path(d->file),
                   (unsigned long long)d->line, what);
}

/* Appends another piece to the bytes that are left. *more false: the file has ended. */
static tn_status fill(tn_dump *d, bool *more, tn_error *err)
{
    uint64_t left = tn_infile_size(d->file) - d->at;
    *more = left > 0;
    if (left == 0) {
        return TN_OK;
    }
    if (d->from > 0) {
        memmove(d->bytes.data, d->bytes.data + d->from, d->bytes.size - d->from);
        d->bytes.size -= d->from;
        d->from = 0;
    }
    size_t size = left < PIECE ? (size_t)left : (size_t)PIECE;
    char *to = tn_text_grow(&d->bytes, size);
    if (to == NULL) {
        return tn_fail(err, TN_E_LIMIT, "%s:%llu: error: a line of more than %d bytes",
                       tn_infile_path(d->file), (unsigned long long)d->line + 1, TN_DUMP_LINE_MAX);
    }
    TN_TRY(tn_infile_read(d->file, d->at, to, size, err));
    d->at += size;
    return TN_OK;
}

/* The next line without its end. TN_END: none. A last line that was cut off is an error. */
static tn_status next_line(tn_dump *d, span *out, tn_error *err)
{
    size_t seen = 0;
    for (;;) {
        const char *begin = tn_text_str(&d->bytes) + d->from;
        size_t size = d->bytes.size - d->from;
        const char *end = size > seen ? memchr(begin + seen, '\n', size - seen) : NULL;
        if (end != NULL) {
            d->line++;
            *out = (span){begin, (size_t)(end - begin)};
            d->from += out->size + 1;
            bool text = out->size == 0 || memchr(out->at, '\0', out->size) == NULL;
            return text ? TN_OK : wrong(d, "binary data in a dump", err);
        }
        seen = size;
        bool more = false;
        TN_TRY(fill(d, &more, err));
        if (!more) {
            d->line += size > 0;
            return size == 0 ? TN_END : wrong(d, "the last line is cut off", err);
        }
    }
}

/* Takes the next piece up to `end` off the front; false: nothing is left, not even an empty one. */
static bool next_piece(span *rest, char end, span *out)
{
    if (rest->at == NULL) {
        return false;
    }
    const char *stop = memchr(rest->at, end, rest->size);
    out->at = rest->at;
    if (stop == NULL) {
        out->size = rest->size;
        rest->at = NULL;
        return true;
    }
    out->size = (size_t)(stop - rest->at);
    rest->at = stop + 1;
    rest->size -= out->size + 1;
    return true;
}

static bool is_text(span s, const char *text)
{
    return s.size == strlen(text) && memcmp(s.at, text, s.size) == 0;
}

static tn_status read_columns(tn_dump *d, span rest, tn_error *err)
{
    span name;
    if (!next_piece(&rest, '\t', &name) || !is_text(name, "#columns")) {
        return wrong(d, "expected #columns", err);
    }
    for (uint32_t i = 0; i < FIXED; i++) {
        if (!next_piece(&rest, '\t', &name) || !is_text(name, fixed[i])) {
            return wrong(d, "expected the columns group sign show click last_seen", err);
        }
    }
    uint32_t n = 0;
    while (next_piece(&rest, '\t', &name)) {
        if (n == TN_DUMP_COLUMNS_MAX || name.size == 0 || name.size > NAME_BYTES) {
            return wrong(d, "more than 256 columns, or a name not of 1 to 255 bytes", err);
        }
        memcpy(d->names[n], name.at, name.size);
        for (uint32_t k = 0; k < n; k++) {
            if (strcmp(d->names[k], d->names[n]) == 0) {
                return wrong(d, "a column stands twice", err);
            }
        }
        d->column[n].name = d->names[n];
        n++;
    }
    d->head = (tn_dump_head){.model_id = d->model_id, .n = n, .column = d->column};
    return TN_OK;
}

/* A line of the head. */
static tn_status head_line(tn_dump *d, const char *what, span *out, tn_error *err)
{
    tn_status status = next_line(d, out, err);
    return status == TN_END ? wrong(d, what, err) : status;
}

static tn_status read_head(tn_dump *d, tn_error *err)
{
    span line = {NULL, 0};
    span word;
    TN_TRY(head_line(d, "the file is empty", &line, err));
    if (!is_text(line, "#tnet-dump 1")) {
        return wrong(d, "expected '#tnet-dump 1'", err);
    }
    TN_TRY(head_line(d, "expected #model_id", &line, err));
    if (!next_piece(&line, ' ', &word) || !is_text(word, "#model_id") || line.at == NULL ||
        line.size != sizeof d->model_id - 1 ||
        strspn(memcpy(d->model_id, line.at, line.size), "0123456789abcdef") != line.size) {
        return wrong(d, "expected #model_id and 32 hex digits", err);
    }
    TN_TRY(head_line(d, "expected #columns", &line, err));
    return read_columns(d, line, err);
}

void tn_dump_close(tn_dump *d)
{
    if (d != NULL) {
        tn_infile_close(d->file);
        tn_text_done(&d->bytes);
        tn_free(d);
    }
}

tn_status tn_dump_open(tn_dump **out, const char *path, tn_error *err)
{
    *out = NULL;
    tn_dump *d = NULL;
    TN_TRY(TN_ALLOC(d, 1, "a dump", err));
    d->bytes.size_max = TN_DUMP_LINE_MAX + PIECE;
    tn_status status = tn_infile_open(&d->file, path, err);
    if (status == TN_OK) {
        status = read_head(d, err);
    }
    if (status != TN_OK) {
        tn_dump_close(d);
        return status;
    }
    *out = d;
    return TN_OK;
}

const tn_dump_head *tn_dump_head_of(const tn_dump *d)
{
    return &d->head;
}

void tn_dump_set_whole(tn_dump *d, uint32_t column)
{
    TN_ASSERT(column < d->head.n);
    d->column[column].whole = true;
}

uint64_t tn_dump_line(const tn_dump *d)
{
    return d->line;
}

static bool read_value(span text, bool whole, float *out)
{
    if (!whole) {
        return tn_read_f32(text.at, text.size, out) == TN_NUM_OK;
    }
    uint64_t count = 0;
    if (tn_read_u64(text.at, text.size, &count) != TN_NUM_OK || count > UINT32_MAX) {
        return false;
    }
    uint32_t word = (uint32_t)count;
    memcpy(out, &word, sizeof word);
    return true;
}

/* Reads the values of a column, after `used` values of columns before it. */
static tn_status read_values(tn_dump *d, uint32_t column, span text, uint32_t *used, tn_error *err)
{
    d->value[column] = (tn_dump_value){d->values + *used, 0};
    span word;
    while (text.size > 0 && next_piece(&text, ' ', &word)) {
        if (*used == TN_DUMP_VALUES_MAX) {
            return wrong(d, "more than 65536 values in a row", err);
        }
        if (!read_value(word, d->column[column].whole, &d->values[*used])) {
            return tn_fail(err, TN_E_CKPT,
                           "%s:%llu: error: expected a number in '%s', found '%.*s'",
                           tn_infile_path(d->file), (unsigned long long)d->line,
                           d->column[column].name, word.size < 40 ? (int)word.size : 40, word.at);
        }
        (*used)++;
        d->value[column].n++;
        if (text.at == NULL) {
            break;
        }
    }
    return TN_OK;
}

static bool read_count(span text, double *out)
{
    return tn_read_f64(text.at, text.size, out) == TN_NUM_OK && *out >= 0;
}

static tn_status read_fixed(tn_dump *d, span *rest, tn_error *err)
{
    span s[FIXED] = {{NULL, 0}};
    for (uint32_t i = 0; i < FIXED; i++) {
        if (!next_piece(rest, '\t', &s[i])) {
            return wrong(d, "a row needs group, sign, show, click and last_seen", err);
        }
    }
    uint64_t seen = 0;
    if (s[0].size == 0 || s[0].size > NAME_BYTES) {
        return wrong(d, "the name of a group has 1 to 255 bytes", err);
    }
    memcpy(d->group, s[0].at, s[0].size);
    d->group[s[0].size] = '\0';
    if (tn_read_u64(s[1].at, s[1].size, &d->row.sign) != TN_NUM_OK ||
        !read_count(s[2], &d->row.show) || !read_count(s[3], &d->row.click) ||
        tn_read_u64(s[4].at, s[4].size, &seen) != TN_NUM_OK || seen > UINT32_MAX) {
        return wrong(d, "expected numbers in sign, show, click and last_seen", err);
    }
    d->row.last_seen = (uint32_t)seen;
    d->row.group = d->group;
    d->row.value = d->value;
    return TN_OK;
}

tn_status tn_dump_next(tn_dump *d, const tn_dump_row **out, tn_error *err)
{
    span rest = {NULL, 0};
    span text;
    TN_TRY(next_line(d, &rest, err));
    TN_TRY(read_fixed(d, &rest, err));
    uint32_t used = 0;
    for (uint32_t i = 0; i < d->head.n; i++) {
        if (!next_piece(&rest, '\t', &text)) {
            return wrong(d, "a row has fewer columns than #columns names", err);
        }
        TN_TRY(read_values(d, i, text, &used, err));
    }
    if (rest.at != NULL) {
        return wrong(d, "a row has more columns than #columns names", err);
    }
    *out = &d->row;
    return TN_OK;
}

tn_status tn_dump_create(tn_file **out, const char *path, const tn_dump_head *head, tn_error *err)
{
    TN_ASSERT(head->n <= TN_DUMP_COLUMNS_MAX);
    tn_text text = {0};
    tn_file *file = NULL;
    tn_text_addf(&text, "#tnet-dump 1\n#model_id %s\n#columns", head->model_id);
    for (uint32_t i = 0; i < FIXED; i++) {
        tn_text_addf(&text, "\t%s", fixed[i]);
    }
    for (uint32_t i = 0; i < head->n; i++) {
        tn_text_addf(&text, "\t%s", head->column[i].name);
    }
    tn_text_addc(&text, '\n');
    tn_status status = tn_text_check(&text, "lines of a dump", err);
    if (status == TN_OK) {
        status = tn_file_create(&file, path, err);
    }
    if (status == TN_OK) {
        status = tn_file_write(file, text.data, text.size, err);
    }
    tn_text_done(&text);
    if (status != TN_OK) {
        tn_file_abandon(file);
        return status;
    }
    *out = file;
    return TN_OK;
}

/* Under the "C" locale. */
static void add_real(tn_text *t, int digits, double x)
{
    char text[40];
    int size = snprintf(text, sizeof text, "%.*g", digits, x);
    tn_text_add(t, text, (size_t)size);
}

static bool add_values(tn_text *t, const tn_dump_column *column, const tn_dump_value *value)
{
    for (uint32_t i = 0; i < value->n; i++) {
        if (i > 0) {
            tn_text_addc(t, ' ');
        }
        if (column->whole) {
            uint32_t count;
            memcpy(&count, &value->at[i], sizeof count);
            tn_text_add_u64(t, count);
        } else if (isfinite(value->at[i])) {
            add_real(t, 9, (double)value->at[i]);
        } else {
            return false;
        }
    }
    return true;
}

static tn_status print_row(const tn_dump_head *head, const tn_dump_row *row, tn_text *t,
                           tn_error *err)
{
    tn_text_adds(t, row->group);
    tn_text_addc(t, '\t');
    tn_text_add_u64(t, row->sign);
    tn_text_addc(t, '\t');
    add_real(t, 17, row->show);
    tn_text_addc(t, '\t');
    add_real(t, 17, row->click);
    tn_text_addc(t, '\t');
    tn_text_add_u64(t, row->last_seen);
    for (uint32_t i = 0; i < head->n; i++) {
        tn_text_addc(t, '\t');
        if (!add_values(t, &head->column[i], &row->value[i])) {
            return tn_fail(err, TN_E_CKPT, "'%s' of group '%s', sign %llu is not finite",
                           head->column[i].name, row->group, (unsigned long long)row->sign);
        }
    }
    tn_text_addc(t, '\n');
    return TN_OK;
}

tn_status tn_dump_print(const tn_dump_head *head, const tn_dump_row *row, tn_text *out,
                        tn_error *err)
{
    locale_t before = uselocale(tn_locale_c()); /* no decimal comma, whoever called */
    tn_status status = print_row(head, row, out, err);
    (void)uselocale(before);
    return status;
}
