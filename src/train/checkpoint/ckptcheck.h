/* ckptcheck.h - is a checkpoint's folder what its manifest says?
 *
 * Every file must have its size. All but shard files are read once against their crc: they are
 * small. A shard file has a crc per block, which is checked while it is loaded; here it must only
 * belong to this checkpoint: run, step, layout, partitions, rows.
 */
#ifndef TN_TRAIN_CKPTCHECK_H
#define TN_TRAIN_CKPTCHECK_H

#include "base/core/arena.h"
#include "base/core/error.h"
#include "ps/snapshot/manifest.h"

/* Reads the manifest in folder `path`; its parts live in the arena. TN_E_CKPT: damaged, or not in
 * there; TN_E_LIMIT: of a newer version; TN_E_IO: it cannot be read, which says nothing of it. */
tn_status tn_ckpt_read_manifest(const char *path, tn_arena *arena, tn_manifest *out,
                                tn_error *err) TN_MUST_USE;

/* The same for the first file that is not what it should be, with its name. */
tn_status tn_ckpt_check_files(const char *path, const tn_manifest *m, tn_error *err) TN_MUST_USE;

#endif
