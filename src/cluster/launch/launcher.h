/* launcher.h - launchers: programs that start processes and give each of them a rank, in the
 * environment.
 *
 * A launcher is a constant with a function that reads the environment, and with the names of the
 * variables that it reads; the list is launchers.def. The first launcher that knows this process's
 * rank decides; later ones that agree with it add what it does not know (membership.c).
 * tnet-train --peers hides the variables of all launchers from its children (children.c).
 * Nothing is looked up, opened or waited for.
 */
#pragma once

#include "base/core/arena.h"
#include "base/keys/keyset.h"
#include "config/values.h"

enum { TN_PEERS_MAX = TN_PARTITIONS }; /* each owns one at least */

/* The environment of a process. */
typedef struct tn_launch_env {
    const char *(*get)(void *ctx, const char *name); /* an environment variable, or NULL */
    void *ctx;
    const char *host; /* name of this machine */
} tn_launch_env;

/* The findings of a launcher. Texts live in the environment or in the arena. */
typedef struct tn_launched {
    bool is_here;               /* this process is of its making; else only `note` counts */
    bool one_host;              /* all of the group are on one machine */
    uint32_t rank;              /* TN_UNSET_U32: it does not say */
    uint32_t size;              /* the same */
    const char *root;           /* address of rank 0, or NULL */
    const char *const *address; /* addresses of every rank, or NULL */
    const char *const *host;    /* names of every rank's machine, or NULL */
    const char *job;            /* names this run, the same text in every rank; or NULL */
    const char *note;           /* why it is not here although it seems so; or NULL */
} tn_launched;

typedef struct tn_launcher {
    const char *name;             /* as messages call it: "Slurm" */
    const char *const *variables; /* all that `find` reads; ends with NULL */
    /* `size` is the user's, or TN_UNSET_U32. TN_E_CONFIG: its variables are incomplete. */
    tn_status (*find)(const tn_launch_env *env, uint32_t size, tn_arena *arena, tn_launched *out,
                      tn_error *err);
} tn_launcher;

#define TN_LAUNCHER(name) extern const tn_launcher tn_launcher_##name;
#include "cluster/launch/launchers.def"
#undef TN_LAUNCHER

/* All of them, in the order in which they are asked; ends with NULL. */
extern const tn_launcher *const tn_launchers[];

/* Reads a whole number below `limit` in variable `name`. *out stays as it is when the variable is
 * not set or empty. TN_E_CONFIG: it holds something else. */
tn_status tn_env_u32(const tn_launch_env *env, const char *name, uint32_t limit, uint32_t *out,
                     tn_error *err) TN_MUST_USE;

/* Returns a variable; NULL when it is not set or empty. */
const char *tn_env(const tn_launch_env *env, const char *name);

/* Formats a text as printf does, in the arena. */
const char *tn_arena_text(tn_arena *arena, const char *fmt, ...) TN_PRINTF(2, 3);
