/* toyckpt.h - checkpoints with small contents, for tests of the directory around them.
 *
 * Checkpoint n holds config.yaml ("n: <n>") and one shard file of a few rows whose floats are n.
 */
#pragma once

#include "train/checkpoint/ckptdir.h"

enum { TOY_ROWS = 40 };

/* What loading found out. */
typedef struct toy_state {
    uint64_t loaded; /* content of the last checkpoint that was read */
    uint32_t reads;  /* how many were read since the last full one, it included */
} toy_state;

/* Saves as checkpoint `begin` says; *crc may be NULL. base 0: a full one. */
typedef struct toy_base {
    uint64_t ordinal;
    uint32_t crc;
} toy_base;
tn_status toy_save(tn_ckptdir *d, toy_base base, uint64_t *ordinal, uint32_t *crc,
                   tn_error *err) TN_MUST_USE;

/* Checks every byte. `ctx` of the loader is a toy_state. */
tn_ckpt_loader toy_loader(toy_state *state);

/* Makes of the manifest at `path` one as a later major version would write it. */
void toy_make_newer(const char *path);
