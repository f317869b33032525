/* tnet_keygen.c - the key pair with which a peer shows who it is. */
#include "cli/main.h"
#include "cluster/security/curvekeys.h"

#include <stdio.h>

static const tn_program program = {
    .name = "tnet-keygen",
    .summary = "make the CURVE key pair of a peer",
    .words = "DIR NAME",
    .words_min = 2,
    .words_max = 2,
    .example = "tnet-keygen keys rank-0",
    .notes =
        "Writes DIR/NAME.key, the secret half, which only its owner can read, and DIR/NAME.pub,\n"
        "the public half; prints both paths. Nothing is overwritten. In the folder that\n"
        "cluster.security.allow names, rank-N.pub is the key of rank N, and one file of\n"
        "another name is a key that all peers share.\n",
};

static tn_status work(tn_setup *s, const tn_options *options, const void *asked, tn_error *err)
{
    (void)s;
    (void)asked;
    tn_keygen_paths paths;
    TN_TRY(tn_keygen(options->words.item[0], options->words.item[1], &paths, err));
    (void)printf("%s\n%s\n", paths.secret, paths.open); /* tn_exit_done sees a failure */
    return TN_OK;
}

int main(int argc, char **argv)
{
    const tn_main m = {.program = &program, .work = work};
    return tn_main_run(&m, (tn_argv){argc, argv});
}
