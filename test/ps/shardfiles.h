/* shardfiles.h - two shard files for tests: the one of docs/formats.md and a large one. */
#pragma once

#include "base/file/file.h"
#include "ps/snapshot/snapshot.h"

#include <stdbool.h>

enum { GOLDEN_BYTES = 196, BIG_ROWS = 60000, BIG_WORDS = 12, BIG_PARTITIONS = 8 };

/* Where the test's file lies, in a folder of its own. */
typedef struct shard_place {
    char dir[256];
    char path[TN_PATH_SIZE];
} shard_place;
int shard_set_up(void **state); /* *state is a shard_place */
int shard_tear_down(void **state);

/* Group 0 has segments of 3 and 12 words, group 1 one of a single word. */
extern const tn_row_schema shard_schema;
extern const tn_snapshot_head golden_head;
extern const float golden_values[3];
extern const tn_row_view golden_row;

void write_golden(const char *path, tn_snapshot_done *done);

/* Row i of the large file, a pure function of i; keys ascend with i. One partition has none. */
tn_row_view big_row(uint32_t i, float values[3 + BIG_WORDS]);
bool big_row_is_left_out(uint64_t key);
tn_status write_big_file(const char *path, tn_snapshot_done *done, tn_error *err) TN_MUST_USE;

/* Opens the file and reads all of its partitions. */
tn_status read_file(const char *path, tn_row_visit *visit, void *arg, tn_error *err) TN_MUST_USE;
