/* counted.h - work whose instructions .ci/check-instructions counts.
 *
 *     bench_x --list      names of its rows
 *     bench_x NAME        prepares that one, does it once inside tn_count, and nothing else
 *
 * callgrind counts inside of functions whose names begin with counted_, and of what runs there our
 * own code alone: libc's memset, for one, differs between machines.
 *
 * To add a row: a function that prepares, calls tn_count, cleans up, and its line in the table of a
 * program that check-instructions knows. What is counted must not depend on time, on the order of
 * threads, or on addresses.
 */
#pragma once

#include <stdbool.h>

typedef struct tn_counted {
    const char *name; /* one word that is no number */
    void (*run)(void);
} tn_counted;

/* Does what argv asks of a table that ends with {NULL, NULL}; false: it asks for something else. */
bool tn_counted_main(int argc, char **argv, const tn_counted *rows);

void tn_count(void (*work)(void *job), void *job);
