/* store_main.c - the store as a program: `tn_store DIR` prints its two ports and serves until its
 * standard input ends.
 */
#include "support/store.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    store *s = argc == 2 ? store_open(argv[1]) : NULL;
    if (s == NULL) {
        (void)fprintf(stderr, "usage: tn_store DIR\n");
        return 2;
    }
    (void)printf("%u %u\n", store_port(s), store_standby_port(s));
    (void)fflush(stdout);
    while (getchar() != EOF) {
    }
    store_close(s);
    return 0;
}
