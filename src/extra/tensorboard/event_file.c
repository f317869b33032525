/* event_file.c - tensorflow.Event messages, framed and appended. */
#include "extra/tensorboard/event_file.h"

#include "base/codec/proto.h"
#include "base/core/alloc.h"
#include "base/core/number.h"
#include "base/file/file.h"
#include "base/math/crc32c.h"
#include "config/tree.h"
#include "metrics/ranking.h"
#include "nn/graph/graph.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Field numbers of the messages. */
enum { EVENT_WALL = 1, EVENT_STEP, EVENT_VERSION, EVENT_GRAPH, EVENT_SUMMARY, EVENT_SESSION = 7 };
enum { EVENT_SOURCE = 10, SOURCE_WRITER = 1, SESSION_STATUS = 1, SESSION_START = 1 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum { METADATA_PLUGIN = 1, METADATA_CLASS = 4, PLUGIN_NAME = 1, PLUGIN_CONTENT = 2 };
enum { TENSOR_TYPE = 1, TENSOR_SHAPE, SHAPE_DIM = 2, DIM_SIZE = 1, TENSOR_CONTENT = 4 };
enum { TENSOR_STRING = 8, TYPE_FLOAT = 1, TYPE_DOUBLE = 2, TYPE_STRING = 7 };
enum { CLASS_NONE, CLASS_SCALAR, CLASS_TENSOR };
enum { CURVE_THRESHOLDS = 2 };
enum { GRAPH_NODE = 1, GRAPH_VERSIONS = 4, VERSIONS_PRODUCER = 1, PRODUCER = 22 };
enum { NODE_NAME = 1, NODE_OP, NODE_INPUT, NODE_ATTR = 5, ENTRY_KEY = 1, ENTRY_VALUE };
enum { ATTR_LIST = 1, ATTR_SHAPE = 7 };
enum { HPARAMS_BEGIN = 3, HPARAMS_END, BEGIN_PARAMS = 1, BEGIN_TIME = 5 };
enum { END_STATUS = 1, END_TIME, STATUS_GOOD = 1, STATUS_FAILED };
enum { JSON_NUMBER = 2, JSON_STRING, JSON_BOOL };

enum { FRAME_HEAD = 12, FILES_MAX = 1000 };

struct tn_event_file {
    tn_appender *file;
    tn_text event; /* with room for the head of its frame */
    tn_text tags;  /* tags of this file so far, each between newlines */
    size_t summary;
    size_t empty; /* bytes of the event without values */
};

/* ---- records ---- */

static void begin_event(tn_event_file *f, double wall, uint64_t step)
{
    static const char head[FRAME_HEAD];
    TN_ASSERT(isfinite(wall));
    tn_text_clear(&f->event);
    tn_text_add(&f->event, head, FRAME_HEAD);
    tn_proto_add_f64(&f->event, EVENT_WALL, wall);
    if (step > 0) {
        tn_proto_add_u64(&f->event, EVENT_STEP, step);
    }
}

static tn_status write_event(tn_event_file *f, tn_error *err)
{
    tn_text *t = &f->event;
    TN_TRY(tn_text_check(t, "an event for TensorBoard", err));
    const uint64_t size = t->size - FRAME_HEAD;
    tn_store_u64(t->data, size);
    tn_store_u32(t->data + sizeof size, tn_crc_mask(tn_crc32c(0, t->data, sizeof size)));
    tn_text_add_u32le(t, tn_crc_mask(tn_crc32c(0, t->data + FRAME_HEAD, size)));
    TN_TRY(tn_text_check(t, "an event for TensorBoard", err));
    return tn_append(f->file, t->data, t->size, err);
}

static void add_text(tn_text *t, uint32_t number, const char *text)
{
    tn_proto_add_bytes(t, number, text, strlen(text));
}

static tn_status write_head(tn_event_file *f, double wall, uint64_t step, tn_error *err)
{
    begin_event(f, wall, 0);
    add_text(&f->event, EVENT_VERSION, "brain.Event:2");
    size_t at = tn_proto_begin(&f->event, EVENT_SOURCE);
    add_text(&f->event, SOURCE_WRITER, "tnet");
    tn_proto_end(&f->event, at);
    TN_TRY(write_event(f, err));
    begin_event(f, wall, step);
    at = tn_proto_begin(&f->event, EVENT_SESSION);
    tn_proto_add_u64(&f->event, SESSION_STATUS, SESSION_START);
    tn_proto_end(&f->event, at);
    return write_event(f, err);
}

/* The first name that is free. */
static tn_status name_file(const char *folder, double wall, char path[TN_PATH_SIZE], tn_error *err)
{
    char host[64] = "";
    char name[160];
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') {
        (void)snprintf(host, sizeof host, "host");
    }
    for (uint32_t i = 0; i < FILES_MAX; i++) {
        (void)snprintf(name, sizeof name, "events.out.tfevents.%010.0f.%s.%d.%u", floor(wall), host,
                       (int)getpid(), i);
        TN_TRY(tn_path_join(folder, name, path, err));
        if (!tn_path_exists(path)) {
            return TN_OK;
        }
    }
    return tn_fail(err, TN_E_LIMIT, "'%s' has a thousand event files of this second", folder);
}

tn_status tn_event_file_open(tn_event_file **out, const char *folder, double wall, uint64_t step,
                             tn_error *err)
{
    char path[TN_PATH_SIZE];
    tn_event_file *f = NULL;
    *out = NULL;
    TN_TRY(tn_dir_make(folder, err));
    TN_TRY(name_file(folder, wall, path, err));
    TN_TRY(TN_ALLOC(f, 1, "an event file", err));
    tn_status status = tn_append_open(&f->file, path, err);
    if (status == TN_OK) {
        status = write_head(f, wall, step, err);
    }
    if (status != TN_OK) {
        tn_event_file_close(f);
        return status;
    }
    tn_text_addc(&f->tags, '\n');
    *out = f;
    return TN_OK;
}

void tn_event_file_close(tn_event_file *f)
{
    if (f != NULL) {
        tn_append_close(f->file);
        tn_text_done(&f->event);
        tn_text_done(&f->tags);
        tn_free(f);
    }
}

void tn_event_begin(tn_event_file *f, double wall, uint64_t step)
{
    begin_event(f, wall, step);
    f->summary = tn_proto_begin(&f->event, EVENT_SUMMARY);
    f->empty = f->event.size;
}

tn_status tn_event_end(tn_event_file *f, tn_error *err)
{
    TN_ASSERT(f->summary != 0 || f->event.failed); /* tn_event_begin came first */
    const bool empty = f->event.size == f->empty;
    tn_proto_end(&f->event, f->summary);
    f->summary = 0;
    return empty ? TN_OK : write_event(f, err);
}

/* ---- values ---- */

/* The plugin of TensorBoard that draws the values of a tag. */
typedef struct plugin {
    const char *name;
    const char *content;
    size_t size;
    uint32_t class;
} plugin;

/* Whether the tag is new in this file. */
static bool meet(tn_event_file *f, const char *tag)
{
    tn_text line = {0};
    TN_ASSERT(tag[0] != '\0' && strchr(tag, '\n') == NULL);
    tn_text_addf(&line, "\n%s\n", tag);
    const bool known = strstr(tn_text_str(&f->tags), tn_text_str(&line)) != NULL;
    if (!known) {
        tn_text_addf(&f->tags, "%s\n", tag);
    }
    tn_text_done(&line);
    return !known;
}

static size_t begin_value(tn_event_file *f, const char *tag)
{
    const size_t at = tn_proto_begin(&f->event, SUMMARY_VALUE);
    add_text(&f->event, VALUE_TAG, tag);
    return at;
}

static void end_value(tn_event_file *f, size_t at, const char *tag, const plugin *by)
{
    if (meet(f, tag)) {
        const size_t metadata = tn_proto_begin(&f->event, VALUE_METADATA);
        const size_t data = tn_proto_begin(&f->event, METADATA_PLUGIN);
        add_text(&f->event, PLUGIN_NAME, by->name);
        if (by->size > 0) {
            tn_proto_add_bytes(&f->event, PLUGIN_CONTENT, by->content, by->size);
        }
        tn_proto_end(&f->event, data);
        if (by->class != CLASS_NONE) {
            tn_proto_add_u64(&f->event, METADATA_CLASS, by->class);
        }
        tn_proto_end(&f->event, metadata);
    }
    tn_proto_end(&f->event, at);
}

static void add_dim(tn_text *t, uint64_t size)
{
    const size_t dim = tn_proto_begin(t, SHAPE_DIM);
    tn_proto_add_u64(t, DIM_SIZE, size);
    tn_proto_end(t, dim);
}

static size_t begin_tensor(tn_event_file *f, uint32_t type, uint32_t rank, const uint32_t *dim)
{
    TN_ASSERT(rank <= 2 && (type == TYPE_FLOAT || type == TYPE_DOUBLE || type == TYPE_STRING));
    const size_t at = tn_proto_begin(&f->event, VALUE_TENSOR);
    tn_proto_add_u64(&f->event, TENSOR_TYPE, type);
    const size_t shape = tn_proto_begin(&f->event, TENSOR_SHAPE);
    for (uint32_t i = 0; i < rank; i++) {
        add_dim(&f->event, dim[i]);
    }
    tn_proto_end(&f->event, shape);
    return at;
}

void tn_event_scalar(tn_event_file *f, const char *tag, double value)
{
    const plugin scalars = {.name = "scalars", .class = CLASS_SCALAR};
    const float real = (float)value;
    if (!isfinite(value)) {
        return;
    }
    const size_t at = begin_value(f, tag);
    const size_t tensor = begin_tensor(f, TYPE_FLOAT, 0, NULL);
    tn_proto_add_bytes(&f->event, TENSOR_CONTENT, &real, sizeof real);
    tn_proto_end(&f->event, tensor);
    end_value(f, at, tag, &scalars);
}

/* Bars: left, right, count. Returns how many. */
static uint32_t count_bars(size_t n, const float *x, double bar[TN_EVENT_BARS][3])
{
    double least = (double)INFINITY;
    double most = -(double)INFINITY;
    double all = 0;
    for (size_t i = 0; i < n; i++) {
        const double value = (double)x[i];
        if (isfinite(value)) {
            least = fmin(least, value);
            most = fmax(most, value);
            all++;
        }
    }
    if (all == 0) {
        return 0;
    }
    if (least == most) {
        bar[0][0] = least - .5;
        bar[0][1] = least + .5;
        bar[0][2] = all;
        return 1;
    }
    TN_ASSERT(least < most);
    const double width = (most - least) / TN_EVENT_BARS;
    for (uint32_t k = 0; k < TN_EVENT_BARS; k++) {
        bar[k][0] = least + k * width;
        bar[k][1] = k + 1 < TN_EVENT_BARS ? least + (k + 1) * width : most;
        bar[k][2] = 0;
    }
    for (size_t i = 0; i < n; i++) {
        const double value = (double)x[i];
        if (isfinite(value)) {
            const uint32_t k = (uint32_t)((value - least) / width);
            bar[k < TN_EVENT_BARS ? k : TN_EVENT_BARS - 1][2]++; /* the last one is closed */
        }
    }
    return TN_EVENT_BARS;
}

void tn_event_histogram(tn_event_file *f, const char *tag, size_t n, const float *x)
{
    const plugin histograms = {.name = "histograms", .class = CLASS_TENSOR};
    double bar[TN_EVENT_BARS][3];
    const uint32_t bars = count_bars(n, x, bar);
    const size_t at = begin_value(f, tag);
    const size_t tensor = begin_tensor(f, TYPE_DOUBLE, 2, (const uint32_t[]){bars, 3});
    tn_proto_add_bytes(&f->event, TENSOR_CONTENT, bar, bars * sizeof bar[0]);
    tn_proto_end(&f->event, tensor);
    end_value(f, at, tag, &histograms);
}

/* Fills TP FP TN FN precision recall for each threshold. */
static void fill_curve(const tn_metrics *m, float row[6][TN_EVENT_THRESHOLDS])
{
    const uint32_t last = TN_EVENT_THRESHOLDS - 1;
    double hit[2][TN_EVENT_THRESHOLDS] = {{0}};
    tn_walk walk = tn_walk_begin(m);
    for (tn_cell cell; tn_walk_next(&walk, &cell);) {
        const uint32_t k = (uint32_t)(last / (1 + exp(-cell.z)));
        hit[0][k < last ? k : last] += (double)cell.neg / walk.unit;
        hit[1][k < last ? k : last] += (double)cell.pos / walk.unit;
    }
    double above[2] = {0};
    const double all[2] = {(double)walk.total_neg / walk.unit, (double)walk.total_pos / walk.unit};
    for (uint32_t k = TN_EVENT_THRESHOLDS; k-- > 0;) {
        above[0] += hit[0][k];
        above[1] += hit[1][k];
        row[0][k] = (float)above[1];
        row[1][k] = (float)above[0];
        row[2][k] = (float)(all[0] - above[0]);
        row[3][k] = (float)(all[1] - above[1]);
        row[4][k] = (float)(above[1] / fmax(1e-7, above[0] + above[1]));
        row[5][k] = (float)(above[1] / fmax(1e-7, all[1]));
    }
}

void tn_event_pr_curve(tn_event_file *f, const char *tag, const tn_metrics *m)
{
    tn_text content = {0};
    float row[6][TN_EVENT_THRESHOLDS];
    const uint32_t dim[] = {6, TN_EVENT_THRESHOLDS};
    const tn_walk walk = tn_walk_begin(m);
    if (tn_metrics_target(m) != TN_TARGET_CLICK || walk.total_neg == 0 || walk.total_pos == 0) {
        return;
    }
    fill_curve(m, row);
    tn_proto_add_u64(&content, CURVE_THRESHOLDS, TN_EVENT_THRESHOLDS);
    const plugin curves = {"pr_curves", content.data, content.size, CLASS_TENSOR};
    const size_t at = begin_value(f, tag);
    const size_t tensor = begin_tensor(f, TYPE_FLOAT, 2, dim);
    tn_proto_add_bytes(&f->event, TENSOR_CONTENT, row, sizeof row);
    tn_proto_end(&f->event, tensor);
    end_value(f, at, tag, &curves);
    tn_text_done(&content);
}

void tn_event_text(tn_event_file *f, const char *tag, const char *markdown)
{
    const plugin text = {.name = "text", .class = CLASS_TENSOR};
    const size_t at = begin_value(f, tag);
    const size_t tensor = begin_tensor(f, TYPE_STRING, 0, NULL);
    add_text(&f->event, TENSOR_STRING, markdown);
    tn_proto_end(&f->event, tensor);
    end_value(f, at, tag, &text);
}

/* ---- the table of runs ---- */

/* A scalar as google.protobuf.Value: a number, true or false, or its text. */
static void add_value(tn_text *t, const char *text)
{
    double number;
    const bool yes = strcmp(text, "true") == 0;
    if (yes || strcmp(text, "false") == 0) {
        tn_proto_add_u64(t, JSON_BOOL, yes);
    } else if (tn_read_f64(text, strlen(text), &number) == TN_NUM_OK) {
        tn_proto_add_f64(t, JSON_NUMBER, number);
    } else {
        add_text(t, JSON_STRING, text);
    }
}

static void add_leaves(tn_text *t, const char *path, const tn_tree *tree)
{
    if (tree->kind == TN_TREE_SCALAR && strcmp(tree->text, "~") != 0) {
        const size_t entry = tn_proto_begin(t, BEGIN_PARAMS);
        add_text(t, ENTRY_KEY, path);
        const size_t value = tn_proto_begin(t, ENTRY_VALUE);
        add_value(t, tree->text);
        tn_proto_end(t, value);
        tn_proto_end(t, entry);
    }
    for (const tn_tree *x = tree->kind == TN_TREE_MAP ? tree->first : NULL; x != NULL;
         x = x->next) {
        tn_text inner = {0};
        tn_text_addf(&inner, "%s%s%s", path, path[0] != '\0' ? "." : "", x->key);
        add_leaves(t, tn_text_str(&inner), x);
        tn_text_done(&inner);
    }
}

/* Adds the message as metadata of the tag, with an empty tensor. */
static void add_hparams(tn_event_file *f, const char *tag, const tn_text *content)
{
    const plugin hparams = {"hparams", content->data, content->size, CLASS_NONE};
    const size_t at = begin_value(f, tag);
    const size_t tensor = begin_tensor(f, TYPE_FLOAT, 1, (const uint32_t[]){0});
    tn_proto_end(&f->event, tensor);
    end_value(f, at, tag, &hparams);
}

void tn_event_hparams(tn_event_file *f, const tn_tree *config, double wall)
{
    tn_text content = {0};
    const size_t at = tn_proto_begin(&content, HPARAMS_BEGIN);
    add_leaves(&content, "", config);
    tn_proto_add_f64(&content, BEGIN_TIME, wall);
    tn_proto_end(&content, at);
    add_hparams(f, "_hparams_/session_start_info", &content);
    tn_text_done(&content);
}

void tn_event_hparams_end(tn_event_file *f, bool well, double wall)
{
    tn_text content = {0};
    const size_t at = tn_proto_begin(&content, HPARAMS_END);
    tn_proto_add_u64(&content, END_STATUS, well ? STATUS_GOOD : STATUS_FAILED);
    tn_proto_add_f64(&content, END_TIME, wall);
    tn_proto_end(&content, at);
    add_hparams(f, "_hparams_/session_end_info", &content);
    tn_text_done(&content);
}

/* ---- the graph ---- */

/* TensorBoard folds what has the same beginning up to a '/'. */
static void add_name(tn_text *t, uint32_t number, const char *name)
{
    tn_text path = {0};
    for (; *name != '\0'; name++) {
        const bool plain = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
                           (*name >= '0' && *name <= '9') || *name == '_';
        if (plain) {
            tn_text_addc(&path, *name);
        } else {
            tn_text_adds(&path, *name == '.' ? "/" : "_");
        }
    }
    tn_proto_add_bytes(t, number, path.data, path.size);
    tn_text_done(&path);
}

static void add_node(tn_text *t, const tn_node *node)
{
    const size_t at = tn_proto_begin(t, GRAPH_NODE);
    add_name(t, NODE_NAME, node->name);
    add_text(t, NODE_OP, node->op != NULL ? node->op->name : node->is_param ? "param" : "input");
    for (uint32_t i = 0; i < node->n_in; i++) {
        add_name(t, NODE_INPUT, node->in[i]->name);
    }
    const size_t attr = tn_proto_begin(t, NODE_ATTR);
    add_text(t, ENTRY_KEY, "_output_shapes");
    const size_t value = tn_proto_begin(t, ENTRY_VALUE);
    const size_t list = tn_proto_begin(t, ATTR_LIST);
    const size_t shape = tn_proto_begin(t, ATTR_SHAPE);
    add_dim(t, node->is_param ? node->shape.rows : UINT64_MAX); /* -1: as many as in a batch */
    add_dim(t, node->shape.cols);
    tn_proto_end(t, shape);
    tn_proto_end(t, list);
    tn_proto_end(t, value);
    tn_proto_end(t, attr);
    tn_proto_end(t, at);
}

tn_status tn_event_graph(tn_event_file *f, double wall, const tn_graph *graph, tn_error *err)
{
    begin_event(f, wall, 0);
    tn_text *t = &f->event;
    const size_t at = tn_proto_begin(t, EVENT_GRAPH);
    const tn_node *node;
    TN_ASSERT(f->summary == 0 && graph != NULL);
    for (uint32_t i = 0; (node = tn_graph_node(graph, i)) != NULL; i++) {
        add_node(t, node);
    }
    const size_t versions = tn_proto_begin(t, GRAPH_VERSIONS);
    tn_proto_add_u64(t, VERSIONS_PRODUCER, PRODUCER);
    tn_proto_end(t, versions);
    tn_proto_end(t, at);
    return write_event(f, err);
}
