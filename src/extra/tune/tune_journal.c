/* tune_journal.c - lines of JSON that grow, and are read once. */
#include "extra/tune/tune_journal.h"

#include "base/codec/json.h"
#include "base/core/alloc.h"
#include "base/file/file.h"
#include "config/tree.h"

#include <math.h>
#include <string.h>

enum { JOURNAL_BYTES_MAX = 1 << 28 };

struct tn_tune_journal {
    tn_lock *lock;
    tn_appender *file;
};

/* The journal that is read, and who wants its results. */
typedef struct reading {
    const char *path, *head;
    const tn_tune_reader *to;
    bool has_head;
} reading;

static tn_strs values_of(const tn_json *list, tn_arena *arena)
{
    const uint32_t n = list != NULL ? list->n : 0;
    const char **item = TN_NEW_ARRAY(arena, const char *, (size_t)n + 1);
    const tn_json *at = n > 0 ? list->first : NULL;
    for (uint32_t i = 0; i < n; i++, at = at->next) {
        const char *text = tn_json_as_str(at);
        item[i] = text != NULL ? text : "";
    }
    return (tn_strs){n, item};
}

/* Returns false for a line that says something else, or nothing whole. */
static bool result_of(const tn_json *line, tn_arena *arena, tn_tune_result *out)
{
    uint64_t trial = 0;
    uint64_t rung = 0;
    const tn_json *ended = tn_json_get(line, "ended");
    const char *kind = tn_json_as_str(tn_json_get(line, "kind"));
    *out = (tn_tune_result){.failure = tn_json_as_str(tn_json_get(line, "failure")),
                            .value = (double)NAN,
                            .ended = ended != NULL && ended->boolean,
                            .values = values_of(tn_json_get(line, "values"), arena)};
    (void)tn_json_as_f64(tn_json_get(line, "value"), &out->value);
    const bool whole = kind != NULL && strcmp(kind, "result") == 0 &&
                       tn_json_as_u64(tn_json_get(line, "trial"), &trial) &&
                       tn_json_as_u64(tn_json_get(line, "rung"), &rung) &&
                       tn_json_as_u64(tn_json_get(line, "step"), &out->step) &&
                       trial <= UINT32_MAX && rung <= UINT32_MAX;
    out->trial = (uint32_t)trial;
    out->rung = (uint32_t)rung;
    return whole;
}

static tn_status read_line(reading *r, const char *text, size_t size, tn_error *err)
{
    if (!r->has_head) {
        r->has_head = true;
        return size == strlen(r->head) && memcmp(text, r->head, size) == 0
                   ? TN_OK
                   : tn_fail(err, TN_E_CKPT,
                             "'%s' is of another configuration, or of other values to try\nhint: "
                             "--fresh begins anew and keeps it aside; with the configuration that "
                             "it is of tnet-tune goes on",
                             r->path);
    }
    const tn_json *line = NULL;
    tn_tune_result result;
    tn_error cut = {0};
    const bool whole = tn_json_parse(&line, text, size, r->to->arena, r->path, &cut) == TN_OK;
    return whole && result_of(line, r->to->arena, &result) ? r->to->see(r->to->arg, &result, err)
                                                           : TN_OK;
}

static tn_status read_journal(reading *r, tn_error *err)
{
    tn_text text = {0};
    tn_status status = tn_file_read_all(r->path, JOURNAL_BYTES_MAX, &text, err);
    const char *at = tn_text_str(&text);
    const char *end = at + text.size;
    while (status == TN_OK && at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline != NULL ? newline : end;
        status = read_line(r, at, (size_t)(stop - at), err);
        at = stop + 1;
    }
    tn_text_done(&text);
    return status;
}

static tn_status append_line(tn_tune_journal *j, tn_text *line, tn_error *err)
{
    tn_text_addc(line, '\n');
    TN_TRY(tn_text_check(line, "journal.jsonl", err));
    return tn_append(j->file, tn_text_str(line), line->size, err);
}

static tn_status open_journal(tn_tune_journal *j, reading *r, const char *dir, tn_error *err)
{
    TN_TRY(tn_lock_folder(&j->lock, dir, err));
    TN_TRY(tn_path_exists(r->path) ? read_journal(r, err) : TN_OK);
    TN_TRY(tn_append_open(&j->file, r->path, err));
    if (r->has_head) {
        return TN_OK;
    }
    tn_text line = {0};
    tn_text_adds(&line, r->head);
    const tn_status status = append_line(j, &line, err);
    tn_text_done(&line);
    return status;
}

tn_status tn_tune_journal_open(tn_tune_journal **out, const char *dir, const char *head,
                               const tn_tune_reader *reader, tn_error *err)
{
    char path[TN_PATH_SIZE];
    *out = NULL;
    TN_TRY(tn_path_join(dir, "journal.jsonl", path, err));
    reading r = {.path = path, .head = head, .to = reader};
    tn_tune_journal *j = tn_alloc(1, sizeof *j, "a journal");
    const tn_status status = open_journal(j, &r, dir, err);
    if (status != TN_OK) {
        tn_tune_journal_close(j);
        return status;
    }
    *out = j;
    return TN_OK;
}

tn_status tn_tune_journal_add(tn_tune_journal *j, const tn_tune_result *r, tn_error *err)
{
    tn_text line = {0};
    tn_json_open(&line, '{');
    tn_json_str(&line, "kind", "result");
    tn_json_u64(&line, "trial", r->trial);
    tn_json_u64(&line, "rung", r->rung);
    tn_json_u64(&line, "step", r->step);
    tn_json_f64(&line, "value", r->value);
    tn_json_bool(&line, "ended", r->ended);
    tn_json_str(&line, "failure", r->failure);
    tn_json_open_key(&line, "values", '[');
    for (uint32_t i = 0; i < r->values.n; i++) {
        tn_json_str(&line, NULL, r->values.item[i]);
    }
    tn_json_close(&line, ']');
    tn_json_close(&line, '}');
    const tn_status status = append_line(j, &line, err);
    tn_text_done(&line);
    return status;
}

void tn_tune_journal_close(tn_tune_journal *j)
{
    if (j != NULL) {
        tn_append_close(j->file);
        tn_lock_release(j->lock);
        tn_free(j);
    }
}
