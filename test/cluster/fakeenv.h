/* fakeenv.h - environments of launchers, for tests of the membership. */
#pragma once

#include "cluster/launch/membership.h"

typedef struct fakeenv {
    const char *const *words; /* "NAME=value", or a name and then its value; NULL at the end */
    const char *host;         /* of this machine; NULL: "here" */
    const char *local;        /* an address or a name that is this machine's; NULL: none */
    const char *run_dir;      /* NULL: "runs/x"; "": none */
    tn_peers_opts peers;
} fakeenv;

/* The membership of a process there; fails the test when there is none. Lives until fakeenv_done.
 */
tn_membership fakeenv_membership(const fakeenv *e);

/* The sentence of a membership that must not be: TN_E_CONFIG, with `want` in it. */
void fakeenv_refused(const fakeenv *e, const char *want);

void fakeenv_done(void);
