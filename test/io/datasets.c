/* datasets.c - see datasets.h. */
#include "datasets.h"

#include "base/thread/team.h"
#include "config/yaml.h"
#include "io/read/row_scan.h"
#include "io/write/write_sink.h"
#include "io/write/writer.h"
#include "support/test.h"

void datasets_open(datasets *d, uint32_t threads)
{
    memset(d, 0, sizeof *d);
    tn_tmpdir_make(d->dir);
    d->arena = tn_arena_new(1 << 16);
    d->binder = (tn_binder){.arena = d->arena, .diag = &d->diag};
    assert_int_equal(tn_team_open(&d->team, threads, NULL), TN_OK);
}

void datasets_close(datasets *d)
{
    tn_team_close(d->team);
    tn_diag_done(&d->diag);
    tn_arena_free(d->arena);
    tn_tmpdir_remove(d->dir);
}

static const tn_tree *read_yaml(datasets *d, const char *yaml)
{
    const tn_yaml_in in = {.text = yaml, .size = strlen(yaml), .source = "test"};
    const tn_tree *tree = tn_yaml_read(d->arena, &d->diag, &in);
    assert_non_null(tree);
    return tree;
}

tn_dataset *datasets_bind(datasets *d, const char *yaml, uint32_t flags)
{
    tn_dataset *out = tn_arena_alloc(d->arena, 1, sizeof *out, sizeof(void *));
    fail_if(tn_dataset_bind(out, read_yaml(d, yaml), flags, TN_TARGET_CLICK, &d->binder, &d->err) !=
                TN_OK,
            "%s\n%s", d->err.text, tn_text_str(&d->diag.text));
    return out;
}

tn_dataset *datasets_target(datasets *d, const tn_dataset *from, const char *yaml, uint32_t flags)
{
    tn_dataset *out = tn_arena_alloc(d->arena, 1, sizeof *out, sizeof(void *));
    tn_status status =
        tn_dataset_bind_target(out, from, read_yaml(d, yaml), flags, &d->binder, &d->err);
    return status == TN_OK ? out : NULL;
}

const char *datasets_path(datasets *d, const char *name)
{
    char *path = tn_arena_alloc(d->arena, 1, 512, 1);
    int n = snprintf(path, 512, "%s/%s", d->dir, name);
    assert_true(n > 0 && n < 512);
    return path;
}

void datasets_write(datasets *d, const char *name, const char *bytes, size_t size)
{
    assert_int_equal(tn_file_replace(datasets_path(d, name), bytes, size, &d->err), TN_OK);
}

const tn_text *datasets_read(datasets *d, const char *name)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_file_read_all(datasets_path(d, name), 1 << 28, &text, &d->err), TN_OK);
    tn_text *out = tn_arena_alloc(d->arena, 1, sizeof *out, sizeof(void *));
    out->size = text.size;
    out->data = tn_arena_alloc(d->arena, text.size + 1, 1, 1);
    if (text.size > 0) {
        memcpy(out->data, text.data, text.size);
    }
    return out;
}

tn_status datasets_convert(datasets *d, const tn_dataset *from, const char *in,
                           const tn_dataset *to, const char *out, uint32_t flags)
{
    const char *path = datasets_path(d, in);
    const tn_strs paths = {1, &path};
    const tn_convert_in job = {from, to, &paths, flags, d->team};
    tn_sink *sink = NULL;
    tn_row_scan_counts counts;
    assert_ok(tn_sink_open(&sink, datasets_path(d, out), NULL, to->data.compression, &d->err),
              d->err.text);
    tn_status status = tn_convert(&job, sink, NULL, &counts, &d->err);
    if (status != TN_OK) {
        tn_sink_abandon(sink);
        return status;
    }
    return tn_sink_commit(sink, &d->err);
}

const char *datasets_line(datasets *d, const char *from, const char *line, const char *to,
                          uint32_t flags)
{
    d->err = (tn_error){0};
    tn_dataset *in = datasets_bind(d, from, TN_DATASET_AS_READ);
    uint32_t signs = (flags & TN_WRITE_SIGNS) != 0 ? TN_DATASET_SIGNS : 0;
    tn_dataset *out = datasets_target(d, in, to, signs);
    if (out == NULL) {
        return "";
    }
    datasets_write(d, "line.in", line, strlen(line));
    if (datasets_convert(d, in, "line.in", out, "line.out", flags) != TN_OK) {
        return "";
    }
    return tn_text_str(datasets_read(d, "line.out"));
}

enum { TRIES_MAX = 5000 };

#define CONFIG                                                                                     \
    "{data: {format: csv, weight: w, record_id: id}, slots: [{name: a}, "                          \
    "{name: t, type: str, list: \"|\"}, {name: p, type: float, as: value}]}"

void datasets_torture(datasets_attempt *try_it)
{
    static const char rows[] = "id,label,w,a,t,p\nr1,1,2,7,x|y,0.5\nr2,0,1,,\"q,\",\n";
    datasets own;
    datasets *d = &own;
    datasets_open(d, 1);
    datasets_write(d, "in", rows, sizeof rows - 1);
    tn_dataset *from = datasets_bind(d, CONFIG, TN_DATASET_AS_READ);
    tn_dataset *to = datasets_target(d, from, "{format: tfrecord}", 0);
    tn_status status = TN_E_MEMORY;
    uint32_t n = 0;
    while (status != TN_OK) {
        assert_true(++n < TRIES_MAX);
        tn_alloc_fail_at(n);
        status = try_it(d, from, to);
        tn_alloc_fail_at(0);
        fail_if(status != TN_OK && status != TN_E_MEMORY, "allocation %u: %d %s", n, (int)status,
                d->err.text);
    }
    assert_true(n > 5);
    tn_text names CLEANUP(tn_text_done) = {0};
    uint32_t left = 0;
    assert_int_equal(tn_dir_list(d->dir, &names, &left, NULL), TN_OK);
    assert_true(left <= 2); /* the input, and the output of the last one */
    datasets_close(d);
}
