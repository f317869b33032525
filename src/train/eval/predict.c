/* predict.c - predictions as text, one file per source. */
#include "train/eval/predict.h"

#include "base/core/alloc.h"
#include "base/core/number.h"
#include "base/file/file.h"
#include "base/math/fmath.h"
#include "io/rows/rows.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"
#include "io/source/remote.h"
#include "train/eval/sign_text.h"
#include "train/eval/task_predictions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tn_predictions {
    char path[TN_PATH_SIZE];
    tn_remote *remote;         /* owned; NULL: `path` is no URI */
    char folder[TN_PATH_SIZE]; /* folder for files until they are sent to a URI */
    tn_output_with with;
    double shift;
    tn_target target;
    const tn_tasks *tasks;    /* NULL: one label */
    const tn_schema *grouped; /* schema whose groups are written; NULL: none */
    bool stream;              /* one output for all sources */
    uint32_t n_sources;       /* begun so far */
    uint32_t n, capacity;
    tn_output **
        output; /* number of files; owned; the last one is being written, the others are finished */
    tn_text text;
};

void tn_prediction_head(tn_text *out, tn_target target, const tn_tasks *tasks, bool grouped)
{
    static const char *const columns[TN_TARGETS] = {"logit\tpctr", "score", "prediction", "score"};
    tn_text_addf(out, "id\tlabel\tweight\t%s", columns[target]);
    tn_task_prediction_head(out, tasks);
    tn_text_adds(out, grouped ? "\tgroup\n" : "\n");
}

void tn_record_id(const tn_batch *batch, uint32_t row, tn_text *out)
{
    const uint32_t *at = batch->id_offset;
    if (at != NULL && at[row + 1] > at[row]) {
        tn_text_add(out, batch->id_text + at[row], at[row + 1] - at[row]);
    } else {
        tn_text_add_u64(out, batch->source[row]);
        tn_text_addc(out, ':');
        tn_text_add_u64(out, batch->source_at[row]);
    }
}

static void add_id(tn_text *out, const tn_batch *batch, uint32_t row)
{
    const size_t first = out->size;
    tn_record_id(batch, row, out);
    for (size_t i = first; i < out->size; i++) {
        if (strchr("\t\n\r", out->data[i]) != NULL) {
            out->data[i] = ' '; /* columns stay */
        }
    }
}

/* Under the "C" locale. */
static void add_float(tn_text *out, float x)
{
    enum { MOST = 32 };
    char text[MOST];
    int size = snprintf(text, sizeof text, "\t%.9g", (double)x);
    tn_text_add(out, text, (size_t)size);
}

/* One line of row `row`, without its end. */
static void add_line(tn_text *out, tn_target target, const tn_batch *batch, uint32_t row,
                     double logit)
{
    add_id(out, batch, row);
    if (isnan(batch->label[row])) {
        tn_text_addc(out, '\t');
    } else {
        add_float(out, batch->label[row]);
    }
    add_float(out, batch->weight != NULL ? batch->weight[row] : 1);
    add_float(out, (float)logit);
    if (target == TN_TARGET_CLICK) {
        add_float(out, (float)tn_sigmoid(logit));
    }
}

static void add_group(tn_text *out, const tn_schema *schema, const tn_batch *batch, uint32_t row)
{
    uint64_t sign = batch->group != NULL ? batch->group[row] : TN_NO_GROUP;
    const tn_slot_spec *spec = schema->group_spec;
    tn_text_addc(out, '\t');
    if (sign != TN_NO_GROUP) {
        tn_sign_text(spec != NULL && tn_spec_is_number(spec) ? NULL : spec, sign, out);
    }
}

void tn_prediction_lines(tn_text *out, const tn_schema *schema, const tn_tasks *tasks,
                         const tn_scores *scores)
{
    const tn_batch *batch = scores->batch;
    TN_ASSERT(batch->source != NULL && batch->source_at != NULL);
    locale_t before = uselocale(tn_locale_c());
    for (uint32_t r = 0; r < batch->rows; r++) {
        add_line(out, schema->data->target, batch, r, (double)scores->logit[r]);
        tn_task_prediction_line(out, tasks, scores, r);
        if (schema->data->group != NULL) {
            add_group(out, schema, batch, r);
        }
        tn_text_addc(out, '\n');
    }
    (void)uselocale(before);
}

/* ---- files that are sent to a URI ---- */

tn_status tn_predictions_check_uri(const char *uri, const char *secrets, tn_error *err)
{
    tn_remote *r = NULL;
    TN_TRY(tn_remotes()->check_target(uri, true, err));
    TN_TRY(tn_remotes()->open(&r, secrets, err));
    tn_remotes()->close(r);
    return TN_OK;
}

/* A folder of this user alone: nobody else can have put a link there. */
static tn_status make_folder(tn_predictions *p, tn_error *err)
{
    const char *base = getenv("TMPDIR"); // NOLINT(concurrency-mt-unsafe)
    char name[32];
    (void)snprintf(name, sizeof name, "tnet-%u", (unsigned)getuid());
    TN_TRY(tn_path_join(base != NULL && *base != '\0' ? base : "/tmp", name, p->folder, err));
    return tn_dir_make_private(p->folder, err);
}

static tn_status open_remote(tn_predictions *p, const char *secrets, tn_error *err)
{
    if (!tn_uri_is(p->path)) {
        return TN_OK;
    }
    TN_TRY(tn_remotes()->check_target(p->path, true, err));
    TN_TRY(make_folder(p, err));
    return tn_remotes()->open(&p->remote, secrets, err);
}

tn_status tn_predictions_open(tn_predictions **out, const tn_predictions_opts *opts, tn_error *err)
{
    *out = NULL;
    tn_predictions *p = NULL;
    TN_TRY(TN_ALLOC(p, 1, "predictions", err));
    int length = snprintf(p->path, sizeof p->path, "%s", opts->path);
    if (length < 0 || (size_t)length >= sizeof p->path) {
        tn_free(p);
        return tn_fail(err, TN_E_USAGE, "path longer than %d bytes: '%.64s..'", TN_PATH_SIZE - 1,
                       opts->path);
    }
    p->with = (tn_output_with){.inputs = opts->inputs, .tell = true, .stop = opts->stop};
    p->shift = tn_ln(opts->sampling);
    p->target = opts->schema != NULL ? opts->schema->data->target : TN_TARGET_CLICK;
    p->tasks = opts->schema != NULL ? opts->schema->data->tasks : NULL;
    bool grouped = opts->schema != NULL && opts->schema->data->group != NULL;
    p->grouped = grouped ? opts->schema : NULL;
    tn_status status = open_remote(p, opts->secrets, err);
    if (status != TN_OK) {
        tn_predictions_abandon(p);
        return status;
    }
    *out = p;
    return TN_OK;
}

/* "dir/pred.2.tsv" of "dir/pred.tsv" and 2. */
static tn_status name_of(const tn_predictions *p, uint32_t source, char out[TN_PATH_SIZE],
                         tn_error *err)
{
    const char *slash = strrchr(p->path, '/');
    const char *dot = strrchr(slash != NULL ? slash : p->path, '.');
    const char *ending = dot != NULL ? dot : p->path + strlen(p->path);
    char number[16] = "";
    if (source > 0) {
        (void)snprintf(number, sizeof number, ".%u", source);
    }
    int length =
        snprintf(out, TN_PATH_SIZE, "%.*s%s%s", (int)(ending - p->path), p->path, number, ending);
    if (length < 0 || length >= TN_PATH_SIZE) {
        return tn_fail(err, TN_E_USAGE, "path longer than %d bytes: '%.64s..'", TN_PATH_SIZE - 1,
                       p->path);
    }
    return TN_OK;
}

/* Makes the path of a file: below `folder`, when it is to be sent. */
static tn_status place_of(const tn_predictions *p, uint32_t source, char out[TN_PATH_SIZE],
                          tn_error *err)
{
    char name[TN_PATH_SIZE];
    TN_TRY(name_of(p, source, name, err));
    if (p->remote != NULL) {
        return tn_path_join(p->folder, strrchr(name, '/') + 1, out, err);
    }
    memcpy(out, name, sizeof name);
    return TN_OK;
}

static tn_status flush(tn_predictions *p, tn_error *err)
{
    TN_TRY(tn_text_check(&p->text, "predictions", err));
    if (p->n > 0) {
        TN_TRY(tn_output_write(p->output[p->n - 1], p->text.data, p->text.size, err));
    }
    tn_text_clear(&p->text);
    return TN_OK;
}

static tn_status grow(tn_predictions *p, tn_error *err)
{
    if (p->n < p->capacity) {
        return TN_OK;
    }
    const uint32_t more = p->capacity == 0 ? 4 : 2 * p->capacity;
    TN_TRY(tn_grow(&p->output, sizeof(tn_output *), p->n, more, "predictions", err));
    p->capacity = more;
    return TN_OK;
}

/* Ends the file that is open and begins the next, with its head. */
static tn_status begin(tn_predictions *p, tn_error *err)
{
    char path[TN_PATH_SIZE];
    tn_output *o = NULL;
    TN_TRY(grow(p, err));
    if (p->n > 0) {
        TN_TRY(tn_output_finish(p->output[p->n - 1], err));
    }
    TN_TRY(place_of(p, p->n, path, err));
    p->with.lead = p->n > 0 ? p->output[0] : NULL;
    TN_TRY(tn_output_open(&o, path, &p->with, err));
    p->stream = p->stream || tn_output_is_stream(o);
    TN_ASSERT(p->n < p->capacity);
    p->output[p->n++] = o;
    tn_prediction_head(&p->text, p->target, p->tasks, p->grouped != NULL);
    return flush(p, err);
}

/* Begins what is written of the sources up to this one; one without rows has its head. */
static tn_status turn_to(tn_predictions *p, uint32_t source, tn_error *err)
{
    TN_ASSERT(p->stream || p->n == p->n_sources);
    for (; p->n_sources <= source; p->n_sources++) {
        if (p->n == 0 || !p->stream) {
            TN_TRY(begin(p, err));
        }
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
        if (batch->source[r] + 1 != p->n_sources) {
            TN_ASSERT(batch->source[r] + 1 > p->n_sources); /* unshuffled, so sources ascend */
            status = flush(p, err);
            status = status == TN_OK ? turn_to(p, batch->source[r], err) : status;
        }
        add_line(&p->text, p->target, batch, r, (double)scores->logit[r] + p->shift);
        tn_task_prediction_line(&p->text, p->tasks, scores, r);
        if (p->grouped != NULL) {
            add_group(&p->text, p->grouped, batch, r);
        }
        tn_text_addc(&p->text, '\n');
    }
    (void)uselocale(before);
    return status == TN_OK ? flush(p, err) : status;
}

/* The first one at last. */
static tn_status send_all(const tn_predictions *p, tn_error *err)
{
    char uri[TN_PATH_SIZE];
    TN_ASSERT(p->remote != NULL && !p->stream);
    for (uint32_t i = p->n; i > 0; i--) {
        TN_TRY(name_of(p, i - 1, uri, err));
        TN_TRY(
            tn_remotes()->put(p->remote, tn_output_tmp(p->output[i - 1]), uri, p->with.stop, err));
    }
    return TN_OK;
}

tn_status tn_predictions_commit(tn_predictions *p, tn_error *err)
{
    tn_status status = turn_to(p, 0, err); /* no rows at all: a head */
    if (status == TN_OK) {
        TN_ASSERT(p->n > 0);
        status = tn_output_finish(p->output[p->n - 1], err);
    }
    if (status == TN_OK && p->remote != NULL) {
        status = send_all(p, err);
        tn_predictions_abandon(p);
        return status;
    }
    while (status == TN_OK &&
           p->n > 0) { /* commits the first one last, since its lock is for all */
        tn_output *o = p->output[--p->n];
        status = tn_output_commit(o, err);
    }
    tn_predictions_abandon(p);
    return status;
}

void tn_predictions_abandon(tn_predictions *p)
{
    if (p == NULL) {
        return;
    }
    while (p->n > 0) {
        tn_output_abandon(p->output[--p->n]);
    }
    tn_remotes()->close(p->remote);
    tn_free(p->output);
    tn_text_done(&p->text);
    tn_free(p);
}
