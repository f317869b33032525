/* runner.c - the main of a room's tests: `test_io reader` runs test/io/test_reader.c.
 *
 * A test may start this program again as a child, with words that name no test: the child runs the
 * file that its parent ran, which the environment tells.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct room_test {
    const char *name;
    int (*run)(void);
    int (*run_words)(int argc, char **argv);
} room_test;

static const room_test tests[] = {
#define TN_TEST(file) {#file, tn_test_##file, NULL},
#define TN_TEST_WITH_WORDS(file) {#file, NULL, tn_test_##file},
#include TN_TESTS
};

static const char parent[] = "TEST_OF_PARENT";

static const room_test *find(const char *name)
{
    for (size_t i = 0; name != NULL && i < sizeof tests / sizeof tests[0]; i++) {
        if (strcmp(tests[i].name, name) == 0) {
            return &tests[i];
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const room_test *test = find(argc > 1 ? argv[1] : NULL);
    if (test == NULL) {
        test = find(getenv(parent)); // NOLINT(concurrency-mt-unsafe): there are no threads yet
    } else {
        (void)setenv(parent, test->name, 1); // NOLINT(concurrency-mt-unsafe)
        argv[1] = argv[0];
        argc--;
        argv++;
    }
    if (test == NULL) {
        (void)fprintf(stderr, "usage: %s TEST, which is one of\n", argv[0]);
        for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
            (void)fprintf(stderr, "    %s\n", tests[i].name);
        }
        return 2;
    }
    return test->run != NULL ? test->run() : test->run_words(argc, argv);
}
