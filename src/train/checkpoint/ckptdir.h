/* ckptdir.h - the run directory and its checkpoints: when one exists, and which one is taken.
 *
 *     LOCK OWNER             one process owns the directory
 *     ckpt-42.<session>.tmp  being written, or being removed
 *     ckpt-42                complete: it was renamed after every file in it was synced
 *     ckpt-41.damaged        its bytes are wrong: it is not read, counted or removed
 *     LATEST                 names the newest one for people; never trusted here
 *
 *     TN_TRY(tn_ckptdir_begin(d, bytes, &ordinal, err));
 *     TN_TRY(tn_ckpt_put(tn_ckptdir_folder(d), "config.yaml", write, ctx, err));   for each file
 *     TN_TRY(tn_ckptdir_commit(d, &manifest, crc, err));                    now it is saved
 *     TN_TRY(tn_ckptdir_prune(d, keep, best, err));
 *
 * After any failure of these: tn_ckptdir_abandon; what was saved before stays, and begin may be
 * tried again. Whatever happens, the newest loadable checkpoint is at least the last one whose
 * commit returned TN_OK. What the files hold is the caller's business. Files may be put on several
 * threads at once, also of processes that do not own the directory; everything else is the owner's.
 * Failpoints: ckpt.begin, ckpt.before_manifest, ckpt.before_rename, ckpt.after_rename,
 * ckpt.before_prune.
 */
#pragma once

#include "base/core/arena.h"
#include "base/core/error.h"
#include "base/core/text.h"
#include "base/file/file.h"
#include "ps/snapshot/manifest.h"
#include "ps/snapshot/snapshot.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_ckptdir tn_ckptdir;

#define TN_CKPT_DAMAGED ".damaged"
#define TN_RUN_YAML "run.yaml" /* in the run directory, see tn_ckptdir_keep_places */

/* The text becomes run.yaml, which a command that is given the directory reads; a failure is
 * logged. */
void tn_ckptdir_keep_places(const tn_ckptdir *d, const char *text);

/* Makes the directory when it is missing, takes its lock, removes what others left unfinished, and
 * names the newest checkpoint in LATEST. TN_E_CKPT: in use. */
tn_status tn_ckptdir_open(tn_ckptdir **out, const char *dir, tn_error *err) TN_MUST_USE;
void tn_ckptdir_close(tn_ckptdir *d); /* abandons; NULL is fine */

/* Checks that `bytes` and 5 % more are free and opens ckpt-<1 + the highest>: of those that are
 * there, set aside, or were committed since `d` was opened, whoever has removed them. */
tn_status tn_ckptdir_begin(tn_ckptdir *d, uint64_t bytes, uint64_t *ordinal,
                           tn_error *err) TN_MUST_USE;

/* Returns the folder that it is written to until commit or abandon: "<dir>/ckpt-42.<session>.tmp".
 */
const char *tn_ckptdir_folder(const tn_ckptdir *d);

/* `make` creates the file at `path` and commits it (tn_file, tn_snapshot). When that fails for
 * reasons of the disk it is called once more, with another path. */
typedef tn_status tn_ckpt_write(void *ctx, const char *path, tn_error *err);
tn_status tn_ckpt_put(const char *folder, const char *name, tn_ckpt_write *make, void *ctx,
                      tn_error *err) TN_MUST_USE;

/* The same for a text; bytes and crc of *out are set, which may be NULL. */
tn_status tn_ckpt_put_text(const char *folder, const char *name, const tn_text *text,
                           tn_manifest_file *out, tn_error *err) TN_MUST_USE;

/* `manifest` and its crc are those of tn_manifest_write. */
tn_status tn_ckptdir_commit(tn_ckptdir *d, const tn_text *manifest, uint32_t crc,
                            tn_error *err) TN_MUST_USE;
void tn_ckptdir_abandon(tn_ckptdir *d); /* without a begin: nothing */

/* Keeps the newest `keep` (at least one), `best` (0: none) and the bases of kept deltas. A
 * checkpoint whose manifest, or that of its base, is damaged is set aside and does not count. While
 * a manifest cannot be read, or is of a newer version, nothing is removed. */
tn_status tn_ckptdir_prune(tn_ckptdir *d, uint32_t keep, uint64_t best, tn_error *err) TN_MUST_USE;

/* The ordinal in "ckpt-42" or, of what was set aside, in "ckpt-42.damaged" and
 * "ckpt-42.damaged.2"; 0: another name. */
uint64_t tn_ckptdir_ordinal(const char *name, bool *damaged);

/* Renames ckpt-N, whose bytes are wrong, to ckpt-N.damaged and logs it. If there is one of that
 * name, it stays, and the second becomes ckpt-N.damaged.2. */
tn_status tn_ckptdir_set_aside(const tn_ckptdir *d, uint64_t ordinal, tn_error *err) TN_MUST_USE;

/* Moves what a run has left here (checkpoints, also damaged ones, LATEST, metrics.jsonl,
 * summary.json, calibration.json) into a new folder earlier-<n> in the directory, and nothing else,
 * and logs its path if there was anything. The newest go first, so that a crash leaves no delta
 * without its predecessor. */
tn_status tn_ckptdir_begin_anew(tn_ckptdir *d, tn_error *err) TN_MUST_USE;

/* The functions below need no lock and write nothing, but for loader->owner. */

typedef struct tn_ckpt_listing {
    uint32_t n;
    const uint64_t *ordinal; /* checkpoints by their final names, descending; in the arena */
    uint32_t n_damaged; /* damaged ones that were set aside; two of a number that is there twice */
    uint64_t highest;   /* largest ordinal of all these; 0: there are none */
} tn_ckpt_listing;
tn_status tn_ckptdir_list(const char *dir, tn_arena *arena, tn_ckpt_listing *out,
                          tn_error *err) TN_MUST_USE;

/* How a checkpoint is taken in. `fits` (may be NULL) sees a manifest first; a failure of it is
 * final: damage is one thing, another model another. Then `read` is called: for a full checkpoint
 * once, for a delta with the full one of its chain first, which starts from nothing. When read
 * returns TN_E_CKPT the checkpoint is damaged; any other failure is final: what cannot be read now
 * (TN_E_IO) or by this version (TN_E_LIMIT) may be whole. */
typedef struct tn_ckpt_loader {
    tn_status (*fits)(void *ctx, const tn_manifest *m, tn_error *err);
    tn_status (*read)(void *ctx, const char *path, const tn_manifest *m, tn_error *err);
    void *ctx;
    /* Sets damaged ones aside, once another is loaded; NULL: they stay. */
    const tn_ckptdir *owner;
    bool strict; /* no fallback: the newest must be good */
    bool seen;   /* whole, by another rank: damage that is found here is a failure to read */
} tn_ckpt_loader;

/* The newest that is whole, from the top; each damaged one is logged with file and place. *ordinal
 * is 0 when there is none at all; some, but none good: TN_E_CKPT. */
tn_status tn_ckptdir_load(const char *dir, const tn_ckpt_loader *loader, uint64_t *ordinal,
                          tn_error *err) TN_MUST_USE;

/* The folder of checkpoint `ordinal` in a run directory, or beside the checkpoint at `path`. */
tn_status tn_ckptdir_path(const char *dir, uint64_t ordinal, char out[TN_PATH_SIZE],
                          tn_error *err) TN_MUST_USE;
tn_status tn_ckptdir_beside(const char *path, uint64_t ordinal, char out[TN_PATH_SIZE],
                            tn_error *err) TN_MUST_USE;

/* One checkpoint by its path, e.g. "runs/a/ckpt-42". Its chain lies beside it. TN_E_CKPT also when
 * there is nothing of that name. */
tn_status tn_ckptdir_load_one(const char *path, const tn_ckpt_loader *loader,
                              tn_error *err) TN_MUST_USE;

/* Reads the manifest in folder `path`; its parts live in the arena. TN_E_CKPT: damaged, or not in
 * there; TN_E_LIMIT: of a newer version; TN_E_IO: it cannot be read, which says nothing of it. */
tn_status tn_ckpt_read_manifest(const char *path, tn_arena *arena, tn_manifest *out,
                                tn_error *err) TN_MUST_USE;

/* The name of what the checkpoint at `path` has learned, 32 hex digits: the first 16 bytes of the
 * SHA-256 of the structure and the lists of rows and dense values, down to the full checkpoint. */
tn_status tn_ckpt_model_id(const char *path, char out[33], tn_error *err) TN_MUST_USE;
