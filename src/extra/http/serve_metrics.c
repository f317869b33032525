/* serve_metrics.c - counters by worker, and the text that Prometheus reads. */
#include "extra/http/serve_metrics.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/core/number.h"
#include "base/machine/limits.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { BUCKETS = 16, CODES = 12 };

static const uint32_t codes[CODES] = {200, 400, 404, 405, 408, 411, 413, 415, 429, 500, 501, 503};
static const double first_bucket_s = 50e-6; /* the others are twice the one before */

/* Counts of one model. */
typedef struct model_counts {
    _Atomic uint64_t requests, rows, score_ns;
    _Atomic double scores;
} model_counts;

/* Counts of one worker, whose thread alone writes them. */
typedef struct worker_counts {
    _Atomic uint64_t answers[TN_ROUTES][CODES];
    _Atomic uint64_t bucket[BUCKETS + 1];
    _Atomic uint64_t request_ns;
    _Atomic uint64_t rejected[TN_REJECTIONS];
    model_counts *model;
    char apart[TN_CACHE_LINE]; /* from the next worker's */
} worker_counts;

struct tn_serve_metrics {
    uint32_t workers, models;
    double start_s;
    atomic_uint connections;
    worker_counts *worker;
};

tn_status tn_serve_metrics_new(tn_serve_metrics **out, uint32_t workers, uint32_t models,
                               tn_error *err)
{
    tn_serve_metrics *m = NULL;
    *out = NULL;
    TN_TRY(TN_ALLOC(m, 1, "metrics", err));
    m->models = models;
    m->start_s = tn_wall_s();
    tn_status status = TN_ALLOC(m->worker, workers, "metrics", err);
    for (uint32_t i = 0; i < workers && status == TN_OK; i++) {
        m->workers = i + 1;
        status = TN_ALLOC(m->worker[i].model, models, "metrics", err);
    }
    if (status != TN_OK) {
        tn_serve_metrics_free(m);
        return status;
    }
    *out = m;
    return TN_OK;
}

void tn_serve_metrics_free(tn_serve_metrics *m)
{
    if (m != NULL) {
        for (uint32_t i = 0; i < m->workers; i++) {
            tn_free(m->worker[i].model);
        }
        tn_free(m->worker);
        tn_free(m);
    }
}

/* Adds to a counter that only this thread writes. */
static void add(_Atomic uint64_t *to, uint64_t n)
{
    const uint64_t before = atomic_load_explicit(to, memory_order_relaxed);
    atomic_store_explicit(to, before + n, memory_order_relaxed);
}

static uint64_t read_count(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

/* The upper bound of a bucket of the histogram, in seconds. */
static double bound_of(uint32_t bucket)
{
    return first_bucket_s * (double)(1U << bucket);
}

void tn_count_answer(tn_serve_metrics *m, uint32_t worker, tn_route route, uint32_t code,
                     double seconds)
{
    TN_ASSERT(worker < m->workers);
    worker_counts *w = &m->worker[worker];
    uint32_t at = 0;
    while (at < CODES - 1 && codes[at] != code) {
        at++;
    }
    add(&w->answers[route][at], 1);
    uint32_t bucket = 0;
    while (bucket < BUCKETS && seconds > bound_of(bucket)) {
        bucket++;
    }
    add(&w->bucket[bucket], 1);
    add(&w->request_ns, (uint64_t)(seconds * 1e9));
}

void tn_count_rows(tn_serve_metrics *m, uint32_t worker, uint32_t model, uint32_t rows,
                   double scores, double seconds)
{
    TN_ASSERT(worker < m->workers && model < m->models);
    model_counts *c = &m->worker[worker].model[model];
    add(&c->requests, 1);
    add(&c->rows, rows);
    add(&c->score_ns, (uint64_t)(seconds * 1e9));
    const double before = atomic_load_explicit(&c->scores, memory_order_relaxed);
    atomic_store_explicit(&c->scores, before + scores, memory_order_relaxed);
}

void tn_count_rejection(tn_serve_metrics *m, uint32_t worker, tn_rejection why)
{
    TN_ASSERT(worker < m->workers);
    add(&m->worker[worker].rejected[why], 1);
}

atomic_uint *tn_serve_connections(tn_serve_metrics *m)
{
    return &m->connections;
}

/* ---- text ---- */

static void head(tn_text *out, const char *name, const char *type, const char *help)
{
    tn_text_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Adds up one counter of all workers; `at` is its place in worker_counts. */
static uint64_t sum(const tn_serve_metrics *m, size_t at)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < m->workers; i++) {
        n += read_count((const _Atomic uint64_t *)(const void *)((const char *)&m->worker[i] + at));
    }
    return n;
}

static void write_answers(const tn_serve_metrics *m, tn_text *out)
{
    head(out, "tnet_requests_total", "counter", "Requests that were answered.");
    for (uint32_t i = 0; i < TN_ROUTES * CODES; i++) {
        const size_t at = offsetof(worker_counts, answers) + i * sizeof(uint64_t);
        const uint64_t n = sum(m, at);
        if (n > 0) {
            tn_text_addf(out, "tnet_requests_total{path=\"%s\",code=\"%u\"} %llu\n",
                         tn_route_word((tn_route)(i / CODES)), codes[i % CODES],
                         (unsigned long long)n);
        }
    }
}

static void write_seconds(const tn_serve_metrics *m, tn_text *out)
{
    uint64_t n = 0;
    head(out, "tnet_request_seconds", "histogram",
         "Time from the head of a request to its answer.");
    for (uint32_t b = 0; b <= BUCKETS; b++) {
        char text[TN_NUMBER_TEXT_MAX] = "+Inf";
        if (b < BUCKETS) {
            (void)tn_write_f64(text, bound_of(b));
        }
        n += sum(m, offsetof(worker_counts, bucket) + b * sizeof(uint64_t));
        tn_text_addf(out, "tnet_request_seconds_bucket{le=\"%s\"} %llu\n", text,
                     (unsigned long long)n);
    }
    tn_text_addf(out, "tnet_request_seconds_sum %.9g\ntnet_request_seconds_count %llu\n",
                 (double)sum(m, offsetof(worker_counts, request_ns)) * 1e-9, (unsigned long long)n);
}

static void write_rejections(const tn_serve_metrics *m, tn_text *out)
{
    static const char *const words[TN_REJECTIONS] = {"body", "queue", "time"};
    head(out, "tnet_rejected_total", "counter", "Requests that were refused unread.");
    for (uint32_t k = 0; k < TN_REJECTIONS; k++) {
        const size_t at = offsetof(worker_counts, rejected) + k * sizeof(uint64_t);
        tn_text_addf(out, "tnet_rejected_total{why=\"%s\"} %llu\n", words[k],
                     (unsigned long long)sum(m, at));
    }
}

/* Families of metrics that each model has, in the order of `figures` below. */
static const struct family {
    const char *name, *type, *help;
    const char *part[2]; /* an ending of the name, a bar, labels beside the model */
} families[] = {
    {"tnet_rows_total", "counter", "Rows that were scored.", {"|", NULL}},
    {"tnet_score_seconds", "summary", "Time that scoring took, by request.", {"_sum|", "_count|"}},
    {"tnet_prediction",
     "summary",
     "Scores of the first task; the rate of the sum by that of the count is their mean.",
     {"_sum|", "_count|"}},
    {"tnet_model_age_seconds", "gauge", "Time since the version was published here.", {"|", NULL}},
    {"tnet_model_swaps_total",
     "counter",
     "Versions that took the place of another, or failed to.",
     {"|,result=\"done\"", "|,result=\"failed\""}},
};

enum { FAMILIES = sizeof families / sizeof families[0] };

/* The figures of a model, and the id of its version. */
static void read_model(const tn_serve_metrics *m, tn_model_set *models, uint32_t model,
                       double value[FAMILIES][2], char id[33])
{
    uint64_t requests = 0;
    uint64_t rows = 0;
    uint64_t ns = 0;
    double scores = 0;
    for (uint32_t i = 0; i < m->workers; i++) {
        const model_counts *c = &m->worker[i].model[model];
        requests += read_count(&c->requests);
        rows += read_count(&c->rows);
        ns += read_count(&c->score_ns);
        scores += atomic_load_explicit(&c->scores, memory_order_relaxed);
    }
    const char *name = tn_model_set_name(models, model);
    bool found = false;
    tn_model_version *v =
        tn_model_set_take(models, (tn_bytes){name, strlen(name), false}, (tn_bytes){0}, &found);
    const tn_swap_counts swaps = tn_model_set_swaps(models, model);
    const double figures[FAMILIES][2] = {
        {(double)rows, 0},
        {(double)ns * 1e-9, (double)requests},
        {scores, (double)rows},
        {tn_wall_s() - v->since_s, 0},
        {(double)swaps.done, (double)swaps.failed},
    };
    memcpy(value, figures, sizeof figures);
    memcpy(id, tn_served_version(v->served), 33);
    tn_model_set_give(models, v);
}

static void write_family(const tn_serve_metrics *m, tn_model_set *models, uint32_t f, tn_text *out)
{
    const struct family *of = &families[f];
    head(out, of->name, of->type, of->help);
    for (uint32_t i = 0; i < m->models; i++) {
        double value[FAMILIES][2];
        char id[33];
        read_model(m, models, i, value, id);
        for (uint32_t k = 0; k < 2 && of->part[k] != NULL; k++) {
            const char *bar = strchr(of->part[k], '|');
            tn_text_addf(out, "%s%.*s{model=\"%s\"%s} %.15g\n", of->name, (int)(bar - of->part[k]),
                         of->part[k], tn_model_set_name(models, i), bar + 1, value[f][k]);
        }
    }
}

static void write_versions(const tn_serve_metrics *m, tn_model_set *models, tn_text *out)
{
    head(out, "tnet_model_info", "gauge", "The version that is served.");
    for (uint32_t i = 0; i < m->models; i++) {
        double value[FAMILIES][2];
        char id[33];
        read_model(m, models, i, value, id);
        tn_text_addf(out, "tnet_model_info{model=\"%s\",version=\"%s\"} 1\n",
                     tn_model_set_name(models, i), id);
    }
}

void tn_serve_metrics_text(tn_serve_metrics *m, tn_model_set *models, tn_text *out)
{
    tn_memory_use memory = {0};
    tn_memory_use_of("", &memory);
    write_answers(m, out);
    write_seconds(m, out);
    write_rejections(m, out);
    write_versions(m, models, out);
    for (uint32_t f = 0; f < FAMILIES; f++) {
        write_family(m, models, f, out);
    }
    head(out, "tnet_connections", "gauge", "Connections that are open.");
    tn_text_addf(out, "tnet_connections %u\n", atomic_load(&m->connections));
    head(out, "process_resident_memory_bytes", "gauge", "Resident memory.");
    tn_text_addf(out, "process_resident_memory_bytes %llu\n", (unsigned long long)memory.resident);
    head(out, "process_start_time_seconds", "gauge", "Start of the process, in Unix time.");
    tn_text_addf(out, "process_start_time_seconds %.3f\n", m->start_s);
}
