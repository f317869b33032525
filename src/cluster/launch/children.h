/* children.h - one program, started n times on this machine and looked after until the last ends.
 *
 *     const tn_children_opts opts = {.path = "/usr/bin/tnet-train", .words = words, .n = 4,
 *                                    .job = tn_random_id(), .grace_s = 20, ..};
 *     int code = 0;
 *     TN_TRY(tn_children_run(&opts, &code, err));
 *
 * Child r has TNET_RANK=r, TNET_PEERS=n, TNET_JOB, and of the parent's environment all but what
 * is about other groups. It shares the parent's process group, stdout and stderr; rank 0 has its
 * stdin, too. When the parent dies, whatever the cause, the children get SIGTERM.
 *
 *     SIGTERM, SIGINT,  to the parent: SIGTERM to every child; a terminal's Ctrl-C reaches them by
 *     SIGHUP            itself, and with it nobody counts two interrupts. One that comes before a
 *                       child watches them (cli/signals.h) waits until it does.
 *     second SIGINT     SIGKILL to every child
 *     SIGUSR1           to rank 0
 *
 * When a child is killed, or ends by a fault that it cannot report, the others learn it at once:
 * each has a socket (TNET_NEWS) to which "RANK SENTENCE" is written. A child that hangs, or that
 * runs on another machine, they detect by themselves. Children that do not end within grace_s after
 * the first failure, or after the end of rank 0, are killed. The exit code of the whole is
 *
 *     130                 after a second SIGINT
 *     that of a child     of the first that ended with a code other than 0, 6 and 75: the cause
 *     6                   one was killed or ended with 6
 *     75                  one ended with 75, or was ended by a SIGTERM that was passed on
 *     0                   all ended with 0
 *
 * Where opts.again says so, a group that fell because a child was killed starts again when the last
 * of it has ended, and goes on from its newest checkpoint; a group that was asked to end does not.
 * The code is then that of the last start.
 *
 * The cause of a killed child is logged (base/core/log.h); a child that ends with a code has
 * reported its failure itself.
 */
#pragma once

#include "train/group/ranks.h"

/* See tn_group_kind.start. For the main thread of a program that ends after it: SIGINT, SIGTERM,
 * SIGHUP, SIGUSR1 and SIGCHLD do nothing from then on, so that a late signal does not kill the
 * program before it returns *code. A child is ended by the end of the thread that started it. There
 * may be other threads, of libraries or of a terminal. */
tn_status tn_children_run(const tn_children_opts *opts, int *code, tn_error *err) TN_MUST_USE;

/* ---- what a process knows of its own start ---- */

/* Whether this process is one of a group that its parent has started so, on one terminal. */
bool tn_spawn_is_child(void);

/* Its socket of news then; 0: it has none. */
int tn_spawn_news(void);

/* A variable of the environment by which another launcher gives this process a place in a group,
 * such as TNET_RANK; NULL: none does. */
const char *tn_spawn_other_launcher(void);
