/* tnet_serve.c - scores over HTTP, of models that change under load. */
#include "base/core/arena.h"
#include "base/core/number.h"
#include "base/file/file.h"
#include "base/thread/threads.h"
#include "cli/data_tool.h"
#include "cli/main.h"
#include "cli/signals.h"
#include "config/field.h"
#include "config/tree.h"
#include "extra/http/http_server.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { PORT = 8501, PORT_SAGEMAKER = 8080, PORT_MAX = 65535 };

typedef struct serve_flags {
    tn_strs name, model_name;
    const char *model_dir;
    uint32_t port, http_port;
    const char *host, *unix_socket;
    uint32_t threads, verify;
    bool half_weights;
    uint64_t body_max, header_max;
    uint32_t rows_max, connections, queue;
    double max_shift, keep_alive, read_timeout, drain, poll;
} serve_flags;

static const char *const verify_words[] = {"full", "lazy", "none", NULL};

static const tn_field flags[] = {
    TN_FIELD_STRS(serve_flags, name, "[]", "name of a model; again for the next one"),
    TN_FIELD_U32(serve_flags, port, "~", 0, PORT_MAX, "",
                 "port of TCP, 8501 unless PORT says another; 0: any that is free"),
    TN_FLAG_STR(serve_flags, host, "ADDRESS", "address to listen on; all of this machine"),
    TN_FLAG_STR(serve_flags, unix_socket, "PATH", "listen on a Unix socket in place of TCP"),
    TN_FIELD_U32W(serve_flags, threads, "all", 1, 256, "threads", tn_thread_words,
                  "threads that read, score and answer"),
    TN_FIELD_CHOICE(serve_flags, verify, "full", verify_words,
                    "when checksums of the dictionary are looked at"),
    TN_FLAG_BOOL(serve_flags, half_weights, "round the net's weights to 16 bits, as libtnet can"),
    TN_FIELD_SIZE(serve_flags, body_max, "8MB", 1, 1e9, "longest body; else 413"),
    TN_FIELD_SIZE(serve_flags, header_max, "16kB", 1024, 1e6,
                  "longest head of a request; else 431"),
    TN_FIELD_U32(serve_flags, rows_max, "64k", 1, 1e6, "rows", "most rows of a request; else 413"),
    TN_FIELD_U32(serve_flags, connections, "1024", 1, 1e6, "connections",
                 "most connections; others wait"),
    TN_FIELD_U32(serve_flags, queue, "~", 1, 1e6, "requests",
                 "most requests that are read and scored at once, 256 for each thread; else 429"),
    TN_FIELD_F64(serve_flags, max_shift, "2", 0, 1e9, "",
                 "most times that a new version may predict more clicks for the last requests, or "
                 "fewer; 0: any number"),
    TN_FIELD_DURATION(serve_flags, keep_alive, "65s", 1, 86400,
                      "an idle connection is closed after this"),
    TN_FIELD_DURATION(serve_flags, read_timeout, "10s", 0.1, 86400,
                      "a request must be whole after this; else 408"),
    TN_FIELD_DURATION(serve_flags, drain, "30s", 0, 86400,
                      "after SIGTERM, end at the latest after this"),
    TN_FIELD_DURATION(serve_flags, poll, "1s", 0.1, 86400, "look at folders so often"),
    TN_FIELD_STRS(serve_flags, model_name, "[]", "the same as --name, for KServe"),
    TN_FLAG_STR(serve_flags, model_dir, "PATH", "one more export or folder, for KServe"),
    TN_FIELD_U32(serve_flags, http_port, "~", 0, PORT_MAX, "", "the same as --port, for KServe"),
    TN_FIELD_END,
};

static const tn_program program = {
    .name = "tnet-serve",
    .summary = "answer requests for scores over HTTP",
    .words = "EXPORT_OR_FOLDER ..",
    .flags = flags,
    .words_min = 0,
    .words_max = TN_MODELS_MAX,
    .example = "tnet-serve runs/ads/export --name ads",
    .notes =
        "A folder of exports is watched: what its LATEST names, or the file PIN, is opened, "
        "verified\n"
        "and served from the next request on; what fails stays out, and the one before serves on.\n"
        "Paths: /v1/models/NAME[/versions/ID]:predict, :regress, :classify, /v1/models/NAME,\n"
        "/v1/models/NAME/metadata and /v1/models as in TensorFlow Serving, /v2 as in the Open\n"
        "Inference Protocol, /invocations and /ping as in SageMaker and MLflow, /score for rows "
        "in\n"
        "the form of the training data, /health, /ready, /metrics. SIGTERM drains. TLS is for a\n"
        "proxy. Environment: PORT; AIP_HTTP_PORT, AIP_STORAGE_URI, AIP_PREDICT_ROUTE and\n"
        "AIP_HEALTH_ROUTE of Vertex AI. The word `serve`, which SageMaker says, means\n"
        "/opt/ml/model at port 8080 unless a path or a port is given.\n",
};

static const char *env(const char *name)
{
    const char *value = getenv(name); // NOLINT(concurrency-mt-unsafe): before there are threads
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Reads a port of the environment. */
static tn_status env_port(const char *name, uint32_t *port, tn_error *err)
{
    const char *text = env(name);
    uint64_t value = 0;
    if (text == NULL || *port != TN_UNSET_U32) {
        return TN_OK;
    }
    if (tn_read_u64(text, strlen(text), &value) != TN_NUM_OK || value > PORT_MAX) {
        return tn_fail(err, TN_E_USAGE, "%s is '%.32s', which is no port", name, text);
    }
    *port = (uint32_t)value;
    return TN_OK;
}

/* Paths of models, and the port: by the command line, else by the platform's environment. */
typedef struct places {
    const char **path;
    uint32_t n, port;
} places;

static tn_status find_places(const serve_flags *f, const tn_strs *words, tn_arena *arena,
                             places *out, tn_error *err)
{
    bool sagemaker = false;
    out->path = TN_NEW_ARRAY(arena, const char *, (size_t)words->n + 2);
    out->port = f->port != TN_UNSET_U32 ? f->port : f->http_port;
    for (uint32_t i = 0; i < words->n; i++) {
        const bool word = strcmp(words->item[i], "serve") == 0 && !tn_path_exists("serve");
        sagemaker = sagemaker || word;
        if (!word) {
            out->path[out->n++] = words->item[i];
        }
    }
    if (f->model_dir != NULL) {
        out->path[out->n++] = f->model_dir;
    }
    if (out->n == 0 && env("AIP_STORAGE_URI") != NULL) {
        out->path[out->n++] = env("AIP_STORAGE_URI");
    } else if (out->n == 0 && sagemaker) {
        out->path[out->n++] = "/opt/ml/model";
    }
    TN_TRY(env_port("AIP_HTTP_PORT", &out->port, err));
    TN_TRY(env_port("PORT", &out->port, err));
    if (out->port == TN_UNSET_U32) {
        out->port = sagemaker ? PORT_SAGEMAKER : PORT;
    }
    return out->n > 0 ? TN_OK
                      : tn_fail(err, TN_E_USAGE,
                                "no export is named\nhint: '%s' serves the newest one of a folder",
                                program.example);
}

static tn_status serve(const serve_flags *f, const places *at, uint32_t threads, tn_error *err)
{
    tn_model_set *models = NULL;
    tn_service *service = NULL;
    const tn_model_set_opts set = {
        .paths = {at->n, at->path},
        .names = f->name.n > 0 ? f->name : f->model_name,
        .served = {.verify = (tn_verify)f->verify,
                   .half_weights = f->half_weights,
                   .hands = threads},
        .poll_s = f->poll,
    };
    const tn_http_opts http = {
        .host = f->host,
        .port = at->port,
        .unix_socket = f->unix_socket,
        .workers = threads,
        .body_max = f->body_max,
        .header_max = f->header_max,
        .connections_max = f->connections,
        .queue_max = f->queue != TN_UNSET_U32 ? f->queue : 256 * threads,
        .keep_alive_s = f->keep_alive,
        .read_s = f->read_timeout,
        .drain_s = f->drain,
    };
    TN_TRY(tn_model_set_open(&models, &set, err));
    const tn_service_opts opts = {
        .models = models,
        .workers = threads,
        .rows_max = f->rows_max,
        .max_shift = f->max_shift,
        .aliases = {.predict = env("AIP_PREDICT_ROUTE"), .health = env("AIP_HEALTH_ROUTE")},
    };
    tn_status status = tn_service_new(&service, &opts, err);
    status = status == TN_OK ? tn_model_set_watch(models, tn_service_judge, service, err) : status;
    if (status == TN_OK) {
        status = tn_http_serve(service, &http, tn_signals_watch_stop(), err);
    }
    tn_model_set_close(models);
    tn_service_free(service);
    return status;
}

static tn_status work(tn_setup *s, const tn_options *options, const void *asked, tn_error *err)
{
    const serve_flags *f = asked;
    places at = {0};
    sigset_t stops;
    TN_TRY(find_places(f, &options->words, s->arena, &at, err));
    tn_signals_stops(&stops);
    (void)pthread_sigmask(SIG_BLOCK, &stops, NULL); /* for all threads but this one */
    const uint32_t threads = f->threads == TN_WORD_U32(0) ? tn_cpu_count() : f->threads;
    return serve(f, &at, threads, err);
}

/* Writes --model_name as --model-name: KServe's form of options. */
static char **plain_options(int argc, char **argv, tn_arena *arena)
{
    char **plain = TN_NEW_ARRAY(arena, char *, (size_t)argc + 1);
    for (int i = 0; i < argc; i++) {
        plain[i] = argv[i];
        const size_t size = strcspn(argv[i], "=");
        if (i > 0 && strncmp(argv[i], "--", 2) == 0 && memchr(argv[i], '_', size) != NULL) {
            plain[i] = tn_tree_text(arena, argv[i], strlen(argv[i]));
            for (size_t k = 0; k < size; k++) {
                plain[i][k] = (char)(plain[i][k] == '_' ? '-' : plain[i][k]);
            }
        }
    }
    return plain;
}

int main(int argc, char **argv)
{
    serve_flags f;
    tn_arena *arena = tn_arena_new(1 << 12);
    const tn_main m = {.program = &program, .flags = &f, .work = work};
    const int code = tn_main_run(&m, (tn_argv){argc, plain_options(argc, argv, arena)});
    tn_arena_free(arena);
    return code;
}
