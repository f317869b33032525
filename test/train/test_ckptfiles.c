/* test_ckptfiles.c - the list of the files of a checkpoint, and files read by any number of
 * threads. */
#include "base/core/bytes.h"
#include "base/keys/record.h"
#include "base/math/key.h"
#include "config/diag.h"
#include "metrics/metrics.h"
#include "support/test.h"
#include "train/checkpoint/ckpt_moment.h"
#include "train/checkpoint/ckpt_peers.h"
#include "train/checkpoint/ckptfiles.h"
#include "train/golden.h"
#include "train/model_hash.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

CLOSER(tn_worker_free);

enum { PEERS = 2, HALF = TN_PARTITIONS / 2 };

static const uint32_t cuts[] = {0, HALF, TN_PARTITIONS};
static const tn_owners owners = {PEERS, TN_PARTITIONS, cuts};

static const tn_manifest_file good[] = {
    {.name = "dense-0001.safetensors", .type = "dense", .bytes = 80, .crc = 1},
    {.name = "sparse-0512-0600.tns",
     .type = "sparse",
     .bytes = 300,
     .rows = 7,
     .first = 512,
     .last = 600},
    {.name = "sparse-0601-1023.tns",
     .type = "sparse",
     .bytes = 500,
     .rows = 9,
     .first = 601,
     .last = 1023},
};

TEST(files_of_all_ranks_are_listed_by_name)
{
    tn_ckpt_files f;
    tn_error err = {0};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    tn_ckpt_files_init(&f, arena, &owners);
    const tn_ckpt_wrote wrote = {.rank = 1, .rows = 20, .n_files = 3, .file = good};
    assert_int_equal(tn_ckpt_files_add(&f, &wrote, &err), TN_OK);
    tn_ckpt_files_list(&f, "config.yaml", &(tn_manifest_file){.type = "config", .bytes = 10});
    assert_int_equal(tn_ckpt_files_check(&f, &err), TN_E_PEER);
    assert_non_null(strstr(err.text, "rank 0 has not written"));
    tn_ckpt_files_list(&f, "sparse-0000-0511.tns",
                       &(tn_manifest_file){.type = "sparse", .rows = 30, .last = 511});
    tn_ckpt_files_tell(&f, 0, 40);
    assert_int_equal(tn_ckpt_files_check(&f, &err), TN_OK);
    static const char *const names[] = {"config.yaml", "dense-0001.safetensors",
                                        "sparse-0000-0511.tns", "sparse-0512-0600.tns",
                                        "sparse-0601-1023.tns"};
    assert_int_equal(f.n, 5);
    for (uint32_t i = 0; i < f.n; i++) {
        assert_string_equal(f.file[i].name, names[i]);
    }
    assert_int_equal(f.bytes, 890);
    assert_int_equal(f.written, 46);
    assert_int_equal(f.rows, 60);
}

static void refuse(const tn_ckpt_wrote *wrote)
{
    tn_ckpt_files f;
    tn_error err = {0};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    tn_ckpt_files_init(&f, arena, &owners);
    assert_int_equal(tn_ckpt_files_add(&f, wrote, &err), TN_E_PEER);
    assert_non_null(strstr(err.text, "has written other files of a checkpoint than its"));
    assert_int_equal(f.n, 0);
    assert_int_equal(f.n_told, 0);
}

/* A list in which one thing differs. */
static void refuse_changed(uint32_t i, const tn_manifest_file *changed)
{
    tn_manifest_file file[3];
    memcpy(file, good, sizeof file);
    file[i] = *changed;
    refuse(&(tn_ckpt_wrote){.rank = 1, .n_files = 3, .file = file});
}

TEST(what_a_rank_does_not_owe_is_refused)
{
    refuse(&(tn_ckpt_wrote){.rank = 0, .n_files = 3, .file = good}); /* those of another */
    refuse(&(tn_ckpt_wrote){.rank = 2, .n_files = 3, .file = good}); /* nobody's */
    refuse(&(tn_ckpt_wrote){.rank = 1, .n_files = 2, .file = good}); /* not all */
    refuse(&(tn_ckpt_wrote){.rank = 1, .n_files = 0, .file = good});
    refuse(&(tn_ckpt_wrote){.rank = 1, .n_files = 2, .file = good + 1}); /* no weights */
    tn_manifest_file file = good[1];
    file.name = "../../x";
    refuse_changed(1, &file);
    file = good[1];
    file.type = "metrics";
    refuse_changed(1, &file);
    file = good[1];
    file.last = TN_PARTITIONS;
    refuse_changed(1, &file);
    file = good[2];
    file.first = 600; /* twice */
    refuse_changed(2, &file);
    file = good[2];
    file.last = 600;
    refuse_changed(2, &file);
    file = good[0];
    file.rows = 1;
    refuse_changed(0, &file);
}

TEST(a_rank_tells_once)
{
    tn_ckpt_files f;
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    const tn_ckpt_wrote wrote = {.rank = 1, .n_files = 3, .file = good};
    tn_ckpt_files_init(&f, arena, &owners);
    assert_int_equal(tn_ckpt_files_add(&f, &wrote, NULL), TN_OK);
    assert_int_equal(tn_ckpt_files_add(&f, &wrote, NULL), TN_E_PEER);
    assert_int_equal(f.n, 3);
}

enum { ROWS = 20000, INDEX_ENTRY = 24, TRAILER = 32 };

typedef struct fixture {
    char dir[256];
    char path[300];
    tn_arena *arena;
    tn_row_schema schema;
    uint32_t hash; /* of the worker whose rows are in the file */
} fixture;

static tn_worker *worker_of(tn_arena *arena, uint32_t threads)
{
    char count[32];
    (void)snprintf(count, sizeof count, "train.threads=%u", threads);
    const char *const set[] = {count, NULL};
    const tn_model_plan *plan = golden_plan(arena, "deepfm", set);
    tn_diag diag CLEANUP(tn_diag_done) = {0};
    tn_binder b = {.arena = arena, .diag = &diag};
    tn_worker *w = NULL;
    assert_int_equal(tn_worker_new(&w, plan, &(tn_worker_opts){.training = true}, &b, NULL), TN_OK);
    return w;
}

/* Floats of a row of group 0, states included. */
static uint32_t floats_of(const tn_worker *w)
{
    const tn_layout *layout = w->plan->layout;
    uint32_t n = 0;
    for (uint32_t s = 0; s < tn_record_of(layout, 0)->n_segments; s++) {
        uint32_t dim = tn_record_of(layout, 0)->segment[s].dim;
        tn_place_in_row in = tn_table_place(w->shard.table, layout->group[0].record, s);
        n += dim;
        for (uint32_t i = 0; i < in.n_states; i++) {
            n += in.spec[i].per_row ? 1 : dim;
        }
    }
    return n;
}

static void fill(tn_worker *w)
{
    float data[TN_DIM_MAX] = {0};
    tn_row_view row = {
        .present = (uint16_t)((1U << tn_record_of(w->plan->layout, 0)->n_segments) - 1),
        .data = data,
        .n_floats = floats_of(w),
    };
    TN_ASSERT(row.n_floats > 0);
    for (uint32_t i = 0; i < ROWS; i++) {
        row.key = tn_mix(i);
        row.show = i;
        // cppcheck-suppress unreadVariable // through row.data
        data[i % row.n_floats] = (float)i;
        assert_int_equal(tn_table_restore(w->shard.table, &row, NULL), TN_OK);
    }
}

/* All rows of `w` in one file. */
static void write_shard(fixture *f, const tn_worker *w)
{
    tn_moment moment = {.partitions = {0, TN_PARTITIONS}};
    tn_snapshot_head head = {.partitions = TN_PARTITIONS, .last = TN_PARTITIONS - 1};
    assert_int_equal(tn_row_schema_hash(&f->schema, head.schema, NULL), TN_OK);
    assert_int_equal(tn_cut_open(&moment.rows, w->shard.table, false, NULL), TN_OK);
    tn_ckpt_part part = {.moment = &moment, .head = &head};
    assert_int_equal(tn_ckpt_write_shard(&part, f->path, NULL), TN_OK);
    tn_cut_close(moment.rows);
}

GROUP_SET_UP
{
    static fixture f;
    tn_tmpdir_make(f.dir);
    (void)snprintf(f.path, sizeof f.path, "%s/rows.tns", f.dir);
    f.arena = tn_arena_new(1 << 16);
    tn_worker *w = worker_of(f.arena, 1);
    f.schema = tn_moment_row_schema(w, f.arena);
    fill(w);
    write_shard(&f, w);
    assert_int_equal(model_hash(w, &f.hash, NULL), TN_OK);
    tn_worker_free(w);
    *state = &f;
}

GROUP_TEAR_DOWN
{
    fixture *f = *state;
    tn_tmpdir_remove(f->dir);
    tn_arena_free(f->arena);
}

TEST_ON(fixture *f, any_number_of_threads_reads_the_same_rows)
{
    static const uint32_t threads[] = {1, 2, 4};
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t hash = 0;
        tn_worker *w FREED(tn_worker_free) = worker_of(f->arena, threads[i]);
        assert_int_equal(tn_ckpt_read_shard(f->path, &f->schema, w, NULL), TN_OK);
        assert_int_equal(tn_table_rows(w->shard.table), ROWS);
        assert_int_equal(model_hash(w, &hash, NULL), TN_OK);
        assert_int_equal(hash, f->hash);
    }
}

/* Where the rows of a partition begin. */
static uint64_t place_of(const tn_text *file, uint32_t partition)
{
    uint64_t index = tn_load_u64(file->data + file->size - TRAILER);
    return tn_load_u64(file->data + index + (size_t)partition * INDEX_ENTRY);
}

/* Ten partitions are bad; whoever comes to whichever first, the file's first is told. */
TEST_ON(fixture *f, the_first_fault_of_the_file_is_told)
{
    char want[400];
    tn_text file CLEANUP(tn_text_done) = {0};
    PATH_IN(bad, f->dir, "bad.tns");
    assert_int_equal(tn_file_read_all(f->path, 1 << 28, &file, NULL), TN_OK);
    for (uint32_t p = 103; p < TN_PARTITIONS; p += 100) {
        file.data[place_of(&file, p) + 60] ^= 1;
    }
    assert_int_equal(tn_file_replace(bad, file.data, file.size, NULL), TN_OK);
    (void)snprintf(want, sizeof want, "byte %llu", (unsigned long long)place_of(&file, 103));
    for (uint32_t threads = 1; threads <= 4; threads++) {
        tn_worker *w FREED(tn_worker_free) = worker_of(f->arena, threads);
        for (uint32_t i = 0; i < 20; i++) {
            tn_error err = {0};
            tn_table_clear(w->shard.table);
            assert_int_equal(tn_ckpt_read_shard(bad, &f->schema, w, &err), TN_E_CKPT);
            assert_int_equal(err.code, TN_E_CKPT);
            assert_non_null(strstr(err.text, want));
        }
        assert_int_equal(tn_ckpt_read_shard(bad, &f->schema, w, NULL), TN_E_CKPT);
    }
}

TEST_ON(fixture *f, rows_of_another_layout_are_refused)
{
    tn_error err = {0};
    tn_row_schema other = f->schema;
    other.partitions++;
    tn_worker *w FREED(tn_worker_free) = worker_of(f->arena, 2);
    assert_int_equal(tn_ckpt_read_shard(f->path, &other, w, &err), TN_E_CKPT);
    assert_non_null(strstr(err.text, "belongs to another checkpoint"));
    assert_int_equal(tn_table_rows(w->shard.table), 0);
}

/* ---- metrics ---- */

enum { CELLS = 2 * TN_MOMENT_BINS };

/* A moment of nothing but metrics: `n` pairs of cell and value. */
static void make_moment(tn_moment *m, const uint64_t *pairs, size_t n)
{
    *m = (tn_moment){.sums = {{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}, {11, 12}}};
    m->histogram = tn_alloc(CELLS, sizeof *m->histogram, "a histogram");
    for (size_t i = 0; i < 2 * n; i += 2) {
        tn_text_add_u64le(&m->changes, pairs[i]);
        tn_text_add_u64le(&m->changes, pairs[i + 1]);
        m->histogram[pairs[i] % CELLS] = pairs[i + 1];
    }
}

static void drop_moment(tn_moment *m)
{
    tn_free(m->histogram);
    tn_text_done(&m->changes);
}

TEST_ON(fixture *f, cells_of_a_histogram_have_these_bytes)
{
    static const char header[] =
        "{\"hist.click.cells\":{\"dtype\":\"U64\",\"shape\":[2,2],\"data_offsets\":[0,32]},"
        "\"sums.click\":{\"dtype\":\"U64\",\"shape\":[6,2],\"data_offsets\":[32,128]}}";
    static const uint64_t pairs[] = {5, 7, CELLS - 1, 1};
    tn_moment m;
    tn_text file = {0};
    make_moment(&m, pairs, 2);
    tn_ckpt_part part = {.moment = &m};
    PATH_IN(path, f->dir, "cells");
    assert_int_equal(tn_ckpt_write_metrics(&part, path, NULL), TN_OK);
    assert_int_equal(tn_file_read_all(path, 4096, &file, NULL), TN_OK);
    const size_t padded = (sizeof header - 1 + 7) / 8 * 8;
    assert_int_equal(file.size, 8 + padded + 128);
    assert_int_equal(tn_load_u64(file.data), padded);
    assert_memory_equal(file.data + 8, header, sizeof header - 1);
    const char *data = file.data + 8 + padded;
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(tn_load_u64(data + 8 * i), pairs[i]);
    }
    assert_memory_equal(data + 32, m.sums, sizeof m.sums);
    tn_text_done(&file);
    drop_moment(&m);
}

TEST_ON(fixture *f, all_kinds_of_histograms_are_read)
{
    static const uint64_t pairs[] = {0, 3, 5, 7, TN_MOMENT_BINS, 9, CELLS - 1, 1};
    static const uint64_t later[] = {5, 8, 6, 1};
    char path[320];
    tn_metrics *got = NULL;
    tn_moment m;
    tn_ckpt_part part = {.moment = &m};
    uint64_t sums[TN_MOMENT_SUMS][2];
    for (uint32_t whole = 0; whole < 2; whole++) { /* as all were written once */
        make_moment(&m, pairs, 4);
        m.changes.failed = whole != 0;
        (void)snprintf(path, sizeof path, "%s/metrics-%u", f->dir, whole);
        assert_int_equal(tn_ckpt_write_metrics(&part, path, NULL), TN_OK);
        assert_int_equal(part.file.bytes > 8UL * CELLS, whole);
        assert_int_equal(tn_metrics_new(&got, &(tn_metrics_opts){0}, NULL), TN_OK);
        assert_int_equal(tn_ckpt_read_metrics(path, got, NULL), TN_OK);
        assert_memory_equal(tn_metrics_histogram(got), m.histogram, 8UL * CELLS);
        tn_metrics_sums(got, sums);
        assert_memory_equal(sums, m.sums, sizeof sums);
        const uint64_t nine = m.histogram[TN_MOMENT_BINS];
        drop_moment(&m);
        make_moment(&m, later, 2); /* a delta changes what stands there */
        m.delta = true;
        (void)snprintf(path, sizeof path, "%s/delta-%u", f->dir, whole);
        assert_int_equal(tn_ckpt_write_metrics(&part, path, NULL), TN_OK);
        assert_int_equal(tn_ckpt_read_metrics(path, got, NULL), TN_OK);
        const uint64_t *now = tn_metrics_histogram(got);
        assert_true(now[0] == 3 && now[5] == 8 && now[6] == 1 && now[TN_MOMENT_BINS] == nine);
        drop_moment(&m);
        tn_metrics_free(got);
    }
}

TEST_ON(fixture *f, a_cell_outside_the_histogram_is_damage)
{
    static const uint64_t pairs[] = {CELLS, 1};
    char path[320];
    tn_error err = {0};
    tn_metrics *got = NULL;
    tn_moment m;
    tn_ckpt_part part = {.moment = &m};
    assert_int_equal(tn_metrics_new(&got, &(tn_metrics_opts){0}, NULL), TN_OK);
    for (uint32_t delta = 0; delta < 2; delta++) {
        make_moment(&m, pairs, 1);
        m.delta = delta != 0;
        (void)snprintf(path, sizeof path, "%s/outside-%u", f->dir, delta);
        assert_int_equal(tn_ckpt_write_metrics(&part, path, NULL), TN_OK);
        assert_int_equal(tn_ckpt_read_metrics(path, got, &err), TN_E_CKPT);
        assert_non_null(strstr(err.text, "a cell 2097152 of a histogram of 2097152"));
        drop_moment(&m);
    }
    tn_metrics_free(got);
}
