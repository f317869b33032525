/* local.h - `--peers N` of a program with a configuration: it starts itself N times on this
 * machine.
 *
 *     const tn_local_group local = {.program = &program, .options = options, .peers = f->peers};
 *     TN_TRY(tn_local_load(&local, s, err));    faults are reported once, before children
 *     TN_TRY(tn_local_rank(&local, s, err));
 *     if (tn_local_is_group(&local))
 *         return tn_local_run(&local, s, err);
 *     ... this process does the work: alone, as a child, or as what another launcher started ...
 *
 * A number given by --peers takes the place of cluster.peers, whatever says that; 1 is alone.
 */
#pragma once

#include "cli/main.h"
#include "train/group/ranks.h"

typedef struct tn_local_group {
    const tn_program *program; /* has the option --peers */
    const tn_options *options; /* must outlive */
    uint32_t peers;            /* TN_UNSET_U32: not given */
    uint32_t threads;          /* --threads of each; 0: not given, or there is no such option */
    const char *folder;        /* as in train/group/ranks.h */
    bool goes_on;              /* a second start goes on with what was saved */
} tn_local_group;

#define TN_LOCAL_HELP "start N processes on this machine, as one group (~: cluster.peers)"

bool tn_local_is_group(const tn_local_group *l);

/* Returns l->options, followed by what --peers and --threads mean. */
tn_options tn_local_options(const tn_local_group *l, tn_arena *arena);

/* Load the configuration as tn_main_load does, then, before tn_setup_plan, find which of several
 * processes this one is, or check that its children can be several. After a failure of either the
 * others of the group do not wait, if so much is known of them. */
tn_status tn_local_load(const tn_local_group *l, tn_setup *s, tn_error *err) TN_MUST_USE;
tn_status tn_local_rank(const tn_local_group *l, tn_setup *s, tn_error *err) TN_MUST_USE;

/* The children's command line: the same without --peers, with what --peers means, and with their
 * share of the processors where the configuration wants all. */
tn_argv tn_local_words(const tn_local_group *l, const tn_run *run, tn_arena *arena);

/* Makes the words of a group that starts again and goes on from the newest checkpoint of its run.
 * item NULL: it cannot, since a second start would not do what is left of the first: one that was
 * to begin anew or elsewhere, to learn a day once more, or to read stdin. */
tn_argv tn_local_words_again(const tn_local_group *l, const tn_run *run, tn_arena *arena);

/* Starts the children, with the configuration loaded and nothing else begun, and returns when none
 * is left; s->exit_code is their code. TN_E_USAGE: this process is itself one of a group, or the
 * configuration cannot be read once more. TN_E_CKPT: the folder of the run is in use. TN_E_IO: a
 * child could not be started. */
tn_status tn_local_run(const tn_local_group *l, tn_setup *s, tn_error *err) TN_MUST_USE;
