/* toyckpt.c - see toyckpt.h. */
#include "train/toyckpt.h"

#include "base/codec/json.h"
#include "base/keys/keyset.h"
#include "support/test.h"
#include "train/checkpoint/run_state.h"

enum { PARTITIONS = 4 };

static const char hash[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
static const tn_row_record record = {.n_segments = 1,
                                     .segment = {{.name = "deep", .dim = 2, .optimizer = "sgd"}}};
static const tn_row_group group = {"user", 1, 0};

/* The checkpoint that is being written, and what its files turned out to be. */
typedef struct toy {
    tn_manifest m;
    tn_manifest_file file[2];
} toy;

static tn_status fill_config(tn_file *f, uint64_t n, tn_error *err)
{
    char text[64];
    int size = snprintf(text, sizeof text, "n: %llu\n", (unsigned long long)n);
    return tn_file_write(f, text, (size_t)size, err);
}

static tn_status write_config(void *ctx, const char *path, tn_error *err)
{
    toy *t = ctx;
    tn_file *f = NULL;
    TN_TRY(tn_file_create(&f, path, err));
    tn_status status = fill_config(f, t->m.ordinal, err);
    if (status != TN_OK) {
        tn_file_abandon(f);
        return status;
    }
    t->file[0] = (tn_manifest_file){
        .name = "config.yaml", .type = "config", .bytes = tn_file_size(f), .crc = tn_file_crc(f)};
    return tn_file_commit(f, err);
}

static tn_status fill_rows(tn_snapshot_writer *w, uint64_t n, tn_error *err)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < TOY_ROWS; i++) {
        const float values[2] = {(float)n, (float)i};
        const tn_row_view row = {.key = (uint64_t)i * (UINT64_MAX / TOY_ROWS),
                                 .present = 1,
                                 .show = 1,
                                 .data = values,
                                 .n_floats = 2};
        for (; next <= tn_partition_of(row.key, PARTITIONS); next++) {
            TN_TRY(tn_snapshot_begin(w, next, err));
        }
        TN_TRY(tn_snapshot_add(w, &row, err));
    }
    return TN_OK;
}

static tn_status write_rows(void *ctx, const char *path, tn_error *err)
{
    toy *t = ctx;
    tn_snapshot_writer *w = NULL;
    tn_snapshot_done done = {0};
    tn_snapshot_head head = {.run_id = t->m.run_id,
                             .step = t->m.step,
                             .partitions = PARTITIONS,
                             .last = PARTITIONS - 1,
                             .delta = t->m.base != 0};
    TN_TRY(tn_row_schema_hash(&t->m.sparse, head.schema, err));
    TN_TRY(tn_snapshot_create(&w, path, &head, err));
    tn_status status = fill_rows(w, t->m.ordinal, err);
    if (status != TN_OK) {
        tn_snapshot_abandon(w);
        return status;
    }
    TN_TRY(tn_snapshot_commit(w, &done, err));
    t->file[1] = (tn_manifest_file){.name = "sparse-0000-0003.tns",
                                    .type = "sparse",
                                    .bytes = done.bytes,
                                    .rows = done.rows,
                                    .crc = done.crc,
                                    .last = PARTITIONS - 1};
    return TN_OK;
}

static tn_status write_all(tn_ckptdir *d, toy *t, uint32_t *crc, tn_error *err)
{
    TN_TRY(tn_ckpt_put(tn_ckptdir_folder(d), "config.yaml", write_config, t, err));
    TN_TRY(tn_ckpt_put(tn_ckptdir_folder(d), "sparse-0000-0003.tns", write_rows, t, err));
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_status status = tn_manifest_write(&t->m, &text, crc, err);
    if (status == TN_OK) {
        status = tn_ckptdir_commit(d, &text, *crc, err);
    }
    return status;
}

tn_status toy_save(tn_ckptdir *d, toy_base base, uint64_t *ordinal, uint32_t *crc, tn_error *err)
{
    uint32_t unused = 0;
    tn_run_sections run = {.kept.patience.lr_scale = 1, .cpu = "any", .blas = "none"};
    TN_TRY(tn_ckptdir_begin(d, 4096, ordinal, err));
    toy t = {.m = {.ordinal = *ordinal,
                   .base = base.ordinal,
                   .base_crc = base.crc,
                   .run_id = 7,
                   .step = 100 * *ordinal,
                   .rows = TOY_ROWS,
                   .config_hash = hash,
                   .structure = hash,
                   .sparse = {.partitions = PARTITIONS,
                              .n_records = 1,
                              .n_groups = 1,
                              .record = &record,
                              .group = &group},
                   .dense = {.optimizer = "adam"},
                   .sections = {tn_run_sections_rows, &run},
                   .n_files = 2}};
    t.m.file = t.file;
    tn_status status = write_all(d, &t, crc != NULL ? crc : &unused, err);
    if (status != TN_OK) {
        tn_ckptdir_abandon(d);
    }
    return status;
}

typedef struct count {
    uint64_t n;
    uint32_t rows;
} count;

static tn_status check_row(void *arg, const tn_row_view *row, tn_error *err)
{
    count *c = arg;
    bool same =
        row->n_floats == 2 && (uint64_t)row->data[0] == c->n && (uint32_t)row->data[1] == c->rows;
    c->rows++;
    if (!same) {
        return tn_fail(err, TN_E_CKPT, "row %u is of another checkpoint", c->rows);
    }
    return TN_OK;
}

static tn_status check_rows(const char *path, const tn_manifest *m, tn_error *err)
{
    char name[TN_PATH_SIZE];
    tn_snapshot *s = NULL;
    count c = {.n = m->ordinal};
    TN_TRY(tn_path_join(path, m->file[1].name, name, err));
    TN_TRY(tn_snapshot_open(&s, name, err));
    tn_status status = TN_OK;
    for (uint32_t p = 0; p < PARTITIONS && status == TN_OK; p++) {
        status = tn_snapshot_read(s, p, &m->sparse, check_row, &c, err);
    }
    if (status == TN_OK && c.rows != TOY_ROWS) {
        status = tn_fail(err, TN_E_CKPT, "%u rows of %d", c.rows, TOY_ROWS);
    }
    tn_snapshot_close(s);
    return status;
}

static tn_status read_toy(void *ctx, const char *path, const tn_manifest *m, tn_error *err)
{
    toy_state *state = ctx;
    char name[TN_PATH_SIZE];
    char want[64];
    tn_text text = {0};
    (void)snprintf(want, sizeof want, "n: %llu\n", (unsigned long long)m->ordinal);
    TN_TRY(tn_path_join(path, "config.yaml", name, err));
    TN_TRY(tn_file_read_all(name, 4096, &text, err));
    bool same = strcmp(tn_text_str(&text), want) == 0;
    tn_text_done(&text);
    if (!same) {
        return tn_fail(err, TN_E_CKPT, "'%s' is of another checkpoint", name);
    }
    TN_TRY(check_rows(path, m, err));
    state->reads = m->base == 0 ? 1 : state->reads + 1;
    state->loaded = m->ordinal;
    return TN_OK;
}

tn_ckpt_loader toy_loader(toy_state *state)
{
    return (tn_ckpt_loader){.read = read_toy, .ctx = state};
}

void toy_make_newer(const char *path)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_file_read_all(path, 1 << 24, &text, NULL), TN_OK);
    strstr(text.data, "[1,0]")[1] = '2';
    const char *last = text.data; /* files have a crc, too */
    for (const char *at = text.data; (at = strstr(at, "\"crc32c")) != NULL; at++) {
        last = at;
    }
    text.size = (size_t)(last - text.data);
    tn_json_close_with_crc(&text);
    assert_int_equal(tn_file_replace(path, text.data, text.size, NULL), TN_OK);
}
