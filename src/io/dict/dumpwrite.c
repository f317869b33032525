/* dumpwrite.c - the writer of dump.h. */
#include "io/dict/dump.h"

#include "base/core/alloc.h"
#include "base/core/number.h"
#include "base/core/text.h"
#include "base/file/file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct tn_dump_writer {
    const tn_dump_head *head;
    tn_file *file;
    tn_text line;
};

tn_status tn_dump_put(tn_dump_writer *w, const tn_text *lines, tn_error *err)
{
    TN_TRY(tn_text_check(lines, "lines of a dump", err));
    return tn_file_write(w->file, lines->data, lines->size, err);
}

tn_status tn_dump_create(tn_dump_writer **out, const char *path, const tn_dump_head *head,
                         tn_error *err)
{
    TN_ASSERT(head->n <= TN_DUMP_COLUMNS_MAX);
    *out = NULL;
    tn_dump_writer *w = tn_try_alloc(1, sizeof *w, "a dump", err);
    if (w == NULL) {
        return TN_E_MEMORY;
    }
    w->head = head;
    tn_status status = tn_file_create(&w->file, path, err);
    if (status == TN_OK) {
        tn_text_addf(&w->line, "#tnet-dump 1\n#model_id %s\n", head->model_id);
        tn_text_adds(&w->line, "#columns\tgroup\tsign\tshow\tclick\tlast_seen");
        for (uint32_t i = 0; i < head->n; i++) {
            tn_text_addf(&w->line, "\t%s", head->column[i].name);
        }
        tn_text_addc(&w->line, '\n');
        status = tn_dump_put(w, &w->line, err);
    }
    if (status != TN_OK) {
        tn_dump_abandon(w);
        return status;
    }
    *out = w;
    return TN_OK;
}

/* Under the "C" locale. */
static void add_real(tn_text *t, const char *fmt, double x)
{
    enum { MOST = 40 };
    char text[MOST];
    int size = strcmp(fmt, "%.9g") == 0 ? snprintf(text, sizeof text, "%.9g", x)
                                        : snprintf(text, sizeof text, "%.17g", x);
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
            add_real(t, "%.9g", (double)value->at[i]);
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
    add_real(t, "%.17g", row->show);
    tn_text_addc(t, '\t');
    add_real(t, "%.17g", row->click);
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

tn_status tn_dump_add(tn_dump_writer *w, const tn_dump_row *row, tn_error *err)
{
    tn_text_clear(&w->line);
    TN_TRY(tn_dump_print(w->head, row, &w->line, err));
    return tn_dump_put(w, &w->line, err);
}

tn_status tn_dump_commit(tn_dump_writer *w, uint64_t *bytes, uint32_t *crc, tn_error *err)
{
    uint64_t size = tn_file_size(w->file);
    uint32_t sum = tn_file_crc(w->file);
    tn_status status = tn_file_commit(w->file, err);
    w->file = NULL;
    tn_dump_abandon(w);
    if (status == TN_OK) {
        *bytes = size;
        *crc = sum;
    }
    return status;
}

void tn_dump_abandon(tn_dump_writer *w)
{
    if (w != NULL) {
        tn_file_abandon(w->file);
        tn_text_done(&w->line);
        tn_free(w);
    }
}
