/* roles.h - what a test program does as a child of itself: "test_cli_children ROLE .. FD".
 *
 * FD is the writing end of a pipe that the test reads; every role tells there what it has come to,
 * so that no test waits for a time. When the last child is gone, the pipe ends.
 */
#pragma once

#include <stdbool.h>

/* True: this process is a child, and *code is what it ends with.
 *
 *     codes C,C,.. FD     ends with the code of its rank; 200 + S: by signal S
 *     order FROM FD       rank 1 ends with 4; rank 0 with 3, but after rank 1 was waited for
 *     deaf CODE FD        rank 0 ends with CODE; others say 'r', then 'T' for each SIGTERM
 *     watch FD            says 'r', ends with 75 when a signal asks for it
 *     late FD             says 'r', 'w' when a SIGTERM waits, then looks and ends with 75
 *     idle FD             says 'r' and does nothing
 *     cpus FD             the processors that it may use, a cpu_set_t
 *     save FD             says 'r', its rank as a digit when SIGUSR1 comes, and ends with 0
 *     news FD             rank 0 is killed; the others say the first news that they hear, a line,
 *                         and end with 6
 *     fall FD             says its group's job; is killed, but for the sixth that says so
 *     tell FD             its words and variables, and whether stdin holds something, a line
 */
bool tn_role_play(int argc, char **argv, int *code);
