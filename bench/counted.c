/* counted.c - see counted.h */
#include "counted.h"

#include <stdio.h>
#include <string.h>

/* Read by nobody: after a call there is something to do, so it cannot become a jump, which
 * callgrind would take for a return. */
static volatile int n_counted;

__attribute__((noinline)) static void counted_work(void (*work)(void *job), void *job)
{
    work(job);
    n_counted++;
}

void tn_count(void (*work)(void *job), void *job)
{
    counted_work(work, job);
}

bool tn_counted_main(int argc, char **argv, const tn_counted *rows)
{
    bool list = argc == 2 && strcmp(argv[1], "--list") == 0;
    for (const tn_counted *row = rows; argc == 2 && row->name != NULL; row++) {
        if (list) {
            (void)puts(row->name);
        } else if (strcmp(argv[1], row->name) == 0) {
            row->run();
            return true;
        }
    }
    return list;
}
