/* spawn.h - one process of a group on this machine, from fork to exec; for children.c.
 *
 * The main thread calls these: a child is ended by the end of the thread that started it. There may
 * be others, of libraries or of a terminal: between fork and exec there is nothing but system
 * calls.
 */
#ifndef TN_CLI_SPAWN_H
#define TN_CLI_SPAWN_H

#include "base/core/arena.h"
#include "base/core/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct tn_spawn {
    const char *path;   /* of the program */
    char *const *words; /* its argv, NULL-terminated */
    char *const *env;   /* the same of NAME=value */
    uint32_t rank, n;
    int news;       /* the child's end of a socket, by which it hears of the others (children.h) */
    bool part_cpus; /* it may use the nth of the processors that is its rank's */
} tn_spawn;

/* The process runs another program when this returns. Rank 0 keeps stdin, others read nothing
 * there. SIGUSR1 is ignored and what asks for the end is blocked until it says otherwise
 * (cli/signals.h); SIGTERM comes when the caller ends. TN_E_IO, and then there is no process. */
tn_status tn_spawn_one(const tn_spawn *s, pid_t *pid, tn_error *err) TN_MUST_USE;

/* This process's environment with TNET_RANK, TNET_PEERS, TNET_JOB, TNET_NEWS and TNET_PARENT, its
 * own number, and without what launchers of other groups set. The texts live in the arena and in
 * `environ`. */
char *const *tn_spawn_env(const tn_spawn *s, uint64_t job, tn_arena *arena);

/* Whether this process is one of a group that its parent has started so, on one terminal. */
bool tn_spawn_is_child(void);

/* Its socket of news then; 0: it has none. */
int tn_spawn_news(void);

/* A variable of the environment by which another launcher gives this process a place in a group,
 * such as TNET_RANK; NULL: none does. */
const char *tn_spawn_other_launcher(void);

#endif
