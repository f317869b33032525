/* predict.c - predictions as text; see predict.h. */
#include "train/predict.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/fmath.h"
#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct tn_predictions {
    char path[TN_PATH_SIZE];
    char session[17];
    double shift;
    tn_file *file;    /* of source `n_files - 1` */
    uint32_t n_files; /* begun so far */
    tn_text text;
};

void tn_prediction_head(tn_text *out)
{
    tn_text_adds(out, "id\tlabel\tweight\tlogit\tpctr\n");
}

static void add_id(tn_text *out, const tn_batch *batch, uint32_t row)
{
    if (batch->id_offset != NULL && batch->id_offset[row + 1] > batch->id_offset[row]) {
        for (uint32_t i = batch->id_offset[row]; i < batch->id_offset[row + 1]; i++) {
            char c = batch->id_text[i];
            if (c == '\t' || c == '\n' || c == '\r') {
                c = ' '; /* columns stay */
            }
            tn_text_addc(out, c);
        }
        return;
    }
    tn_text_add_u64(out, batch->source[row]);
    tn_text_addc(out, ':');
    tn_text_add_u64(out, batch->source_at[row]);
}

/* Under the "C" locale. */
static void add_float(tn_text *out, float x)
{
    enum { MOST = 32 };
    char text[MOST];
    int size = snprintf(text, sizeof text, "\t%.9g", (double)x);
    tn_text_add(out, text, (size_t)size);
}

/* One line of row `row`. */
static void add_line(tn_text *out, const tn_batch *batch, uint32_t row, double logit)
{
    add_id(out, batch, row);
    if (isnan(batch->label[row])) {
        tn_text_addc(out, '\t');
    } else {
        add_float(out, batch->label[row]);
    }
    add_float(out, batch->weight != NULL ? batch->weight[row] : 1);
    add_float(out, (float)logit);
    add_float(out, (float)tn_sigmoid(logit));
    tn_text_addc(out, '\n');
}

void tn_prediction_lines(tn_text *out, const tn_batch *batch, const float *logit, double shift)
{
    TN_ASSERT(batch->source != NULL && batch->source_at != NULL);
    locale_t before = uselocale(tn_locale_c());
    for (uint32_t r = 0; r < batch->rows; r++) {
        add_line(out, batch, r, (double)logit[r] + shift);
    }
    (void)uselocale(before);
}

tn_status tn_predictions_open(tn_predictions **out, const char *path, double sampling,
                              tn_error *err)
{
    *out = NULL;
    tn_predictions *p = tn_try_alloc(1, sizeof *p, "predictions", err);
    if (p == NULL) {
        return TN_E_MEMORY;
    }
    int length = snprintf(p->path, sizeof p->path, "%s", path);
    if (length < 0 || (size_t)length >= sizeof p->path) {
        tn_free(p);
        return tn_fail(err, TN_E_LIMIT, "path longer than %d bytes: '%.64s..'", TN_PATH_SIZE - 1,
                       path);
    }
    (void)snprintf(p->session, sizeof p->session, "%016llx", (unsigned long long)tn_random_id());
    p->shift = tn_ln(sampling);
    *out = p;
    return TN_OK;
}

/* "dir/pred.2.tsv" of "dir/pred.tsv" and 2. */
static tn_status name_of(const tn_predictions *p, uint32_t source, bool tmp, char out[TN_PATH_SIZE],
                         tn_error *err)
{
    const char *slash = strrchr(p->path, '/');
    const char *dot = strrchr(slash != NULL ? slash : p->path, '.');
    const char *ending = dot != NULL ? dot : p->path + strlen(p->path);
    char number[16] = "";
    if (source > 0) {
        (void)snprintf(number, sizeof number, ".%u", source);
    }
    int length = snprintf(out, TN_PATH_SIZE, "%.*s%s%s%s%s%s", (int)(ending - p->path), p->path,
                          number, ending, tmp ? "." : "", tmp ? p->session : "", tmp ? ".tmp" : "");
    if (length < 0 || length >= TN_PATH_SIZE) {
        return tn_fail(err, TN_E_LIMIT, "path longer than %d bytes: '%.64s..'", TN_PATH_SIZE - 1,
                       p->path);
    }
    return TN_OK;
}

static tn_status flush(tn_predictions *p, tn_error *err)
{
    TN_TRY(tn_text_check(&p->text, "predictions", err));
    TN_TRY(tn_file_write(p->file, p->text.data, p->text.size, err));
    tn_text_clear(&p->text);
    return TN_OK;
}

static tn_status close_file(tn_predictions *p, tn_error *err)
{
    tn_file *f = p->file;
    p->file = NULL;
    return f != NULL ? tn_file_commit(f, err) : TN_OK;
}

/* Ends the file that is open and begins those up to `source`; one without rows has its head. */
static tn_status turn_to(tn_predictions *p, uint32_t source, tn_error *err)
{
    while (p->n_files <= source) {
        char path[TN_PATH_SIZE];
        TN_TRY(close_file(p, err));
        TN_TRY(name_of(p, p->n_files, true, path, err));
        TN_TRY(tn_file_create(&p->file, path, err));
        p->n_files++;
        tn_prediction_head(&p->text);
        TN_TRY(flush(p, err));
    }
    return TN_OK;
}

tn_status tn_predictions_sink(void *predictions, const tn_scores *scores, tn_error *err)
{
    tn_predictions *p = predictions;
    const tn_batch *batch = scores->batch;
    locale_t before = uselocale(tn_locale_c());
    tn_status status = TN_OK;
    for (uint32_t r = 0; r < batch->rows && status == TN_OK; r++) {
        if (batch->source[r] + 1 != p->n_files) {
            TN_ASSERT(batch->source[r] + 1 > p->n_files); /* unshuffled, so sources ascend */
            status = p->file != NULL ? flush(p, err) : TN_OK;
            status = status == TN_OK ? turn_to(p, batch->source[r], err) : status;
        }
        add_line(&p->text, batch, r, (double)scores->logit[r] + p->shift);
    }
    (void)uselocale(before);
    return status == TN_OK && p->file != NULL ? flush(p, err) : status;
}

static tn_status rename_all(tn_predictions *p, tn_error *err)
{
    for (uint32_t i = 0; i < p->n_files; i++) {
        char from[TN_PATH_SIZE];
        char to[TN_PATH_SIZE];
        TN_TRY(name_of(p, i, true, from, err));
        TN_TRY(name_of(p, i, false, to, err));
        TN_TRY(tn_rename(from, to, err));
    }
    return TN_OK;
}

tn_status tn_predictions_commit(tn_predictions *p, tn_error *err)
{
    tn_status status = turn_to(p, 0, err); /* no rows at all: a head */
    if (status == TN_OK) {
        status = close_file(p, err);
    }
    if (status == TN_OK) {
        status = rename_all(p, err);
    }
    tn_predictions_abandon(p); /* what was renamed is out of its reach */
    return status;
}

void tn_predictions_abandon(tn_predictions *p)
{
    if (p == NULL) {
        return;
    }
    tn_file_abandon(p->file);
    for (uint32_t i = 0; i < p->n_files; i++) {
        char path[TN_PATH_SIZE];
        tn_status removed = name_of(p, i, true, path, NULL);
        if (removed == TN_OK) {
            removed = tn_remove_file(path, NULL);
        }
        (void)removed; /* a left-over says by its name that it is one */
    }
    tn_text_done(&p->text);
    tn_free(p);
}
