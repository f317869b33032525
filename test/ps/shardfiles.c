/* shardfiles.c - see shardfiles.h. */
#include "ps/shardfiles.h"

#include "support/test.h"

#include "base/core/failpoint.h"
#include "base/keys/keyset.h"

/* The second has 4 weights, and states of 7 words and of one. */
static const tn_row_record record[2] = {
    {.n_segments = 2,
     .segment = {{.dim = 3}, {.dim = 4, .n_states = 2, .state = {{.words = 7}, {.words = 1}}}}},
    {.n_segments = 1, .segment = {{.dim = 1}}}};
static const uint32_t words[2][2] = {{3, BIG_WORDS}, {1}};
static const tn_row_group group[2] = {{.record = 0}, {.record = 1}};
const tn_row_schema shard_schema = {
    .n_records = 2, .n_groups = 2, .record = record, .group = group};

int shard_set_up(void **state)
{
    static shard_place place;
    tn_tmpdir_make(place.dir);
    *state = &place;
    return tn_path_join(place.dir, "sparse-0000-0001.tns", place.path, NULL) == TN_OK ? 0 : 1;
}

int shard_tear_down(void **state)
{
    const shard_place *place = *state;
    tn_tmpdir_remove(place->dir);
    return tn_failpoint_set(NULL, NULL) == TN_OK ? 0 : 1;
}

const tn_snapshot_head golden_head = {.run_id = 0x0102030405060708,
                                      .step = 12000,
                                      .schema = {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11},
                                      .partitions = 1024,
                                      .first = 586,
                                      .last = 586};
const float golden_values[3] = {-.25F, .5F, 2};
const tn_row_view golden_row = {.key = 0x92aaad35a1c6c079,
                                .group = 0,
                                .present = 1,
                                .last_seen = 7,
                                .show = 3,
                                .click = 1,
                                .data = golden_values,
                                .n_floats = 3};

void write_golden(const char *path, tn_snapshot_done *done)
{
    tn_snapshot_writer *w = NULL;
    assert_int_equal(tn_snapshot_create(&w, path, &golden_head, NULL), TN_OK);
    assert_int_equal(tn_snapshot_begin(w, 586, NULL), TN_OK);
    assert_int_equal(tn_snapshot_add(w, &golden_row, NULL), TN_OK);
    assert_int_equal(tn_snapshot_commit(w, done, NULL), TN_OK);
}

tn_row_view big_row(uint32_t i, float values[3 + BIG_WORDS])
{
    tn_row_view row = {.key = (uint64_t)i * (UINT64_MAX / BIG_ROWS) + i % 7,
                       .group = i % 5 == 0,
                       .last_seen = i,
                       .show = i,
                       .click = i / 2.0,
                       .data = values};
    row.present = row.group == 1 ? (uint16_t)(i % 2) : (uint16_t)(i % 4);
    for (uint32_t k = 0; k < record[row.group].n_segments; k++) {
        row.n_floats += (row.present >> k & 1) != 0 ? words[row.group][k] : 0;
    }
    for (uint32_t k = 0; k < row.n_floats; k++) {
        values[k] = (float)(i + k) / 3;
    }
    return row;
}

bool big_row_is_left_out(uint64_t key)
{
    return tn_partition_of(key, BIG_PARTITIONS) == 3; /* a partition without rows */
}

static tn_status write_big(tn_snapshot_writer *w, tn_error *err)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < BIG_ROWS; i++) {
        float values[3 + BIG_WORDS];
        tn_row_view row = big_row(i, values);
        for (; next <= tn_partition_of(row.key, BIG_PARTITIONS); next++) {
            TN_TRY(tn_snapshot_begin(w, next, err));
        }
        if (!big_row_is_left_out(row.key)) {
            TN_TRY(tn_snapshot_add(w, &row, err));
        }
    }
    return TN_OK;
}

tn_status write_big_file(const char *path, tn_snapshot_done *done, tn_error *err)
{
    const tn_snapshot_head head = {.partitions = BIG_PARTITIONS, .last = BIG_PARTITIONS - 1};
    tn_snapshot_writer *w = NULL;
    TN_TRY(tn_snapshot_create(&w, path, &head, err));
    tn_status status = write_big(w, err);
    if (status != TN_OK) {
        tn_snapshot_abandon(w);
        return status;
    }
    status = tn_snapshot_commit(w, done, err);
    assert_true(status != TN_OK || done->bytes > 1 << 20);
    return status;
}

tn_status read_file(const char *path, tn_row_visit *visit, void *arg, tn_error *err)
{
    tn_snapshot *s = NULL;
    TN_TRY(tn_snapshot_open(&s, path, err));
    tn_status status = TN_OK;
    const tn_snapshot_head *head = tn_snapshot_head_of(s);
    for (uint32_t p = head->first; p <= head->last && status == TN_OK; p++) {
        status = tn_snapshot_read(s, p, &shard_schema, visit, arg, err);
    }
    tn_snapshot_close(s);
    return status;
}
