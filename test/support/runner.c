/* runner.c - the main of a room's tests: `test_io reader` runs test/io/test_reader.c; see test.h.
 *
 * A test may start this program again as a child, with words that name no file: the child belongs
 * to the file that its parent ran, which the environment tells.
 */
#include "support/test.h"

#include <fcntl.h>
#include <unistd.h>

static const char parent[] = "TEST_OF_PARENT";

static test_part *parts;
static test_part **end = &parts;

void test_list(test_part *part)
{
    const char *name = part->source;
    for (const char *at = strchr(name, '/'); at != NULL && strchr(at + 1, '/') != NULL;) {
        name = at + 1;
        at = strchr(name, '/');
    }
    if (sscanf(name, "%31[^/]/test_%63[^.]", part->room, part->file) != 2) {
        (void)fprintf(stderr, "'%s' is not called <room>/test_<file>.c\n", part->source);
        abort();
    }
    *end = part;
    end = &part->next;
}

/* The first part of that file, from `part` on. */
static const test_part *find(const test_part *part, const char *file)
{
    while (part != NULL && (file == NULL || strcmp(part->file, file) != 0)) {
        part = part->next;
    }
    return part;
}

static int usage(const char *program, const char *word)
{
    const char *last = "";
    if (word != NULL) {
        (void)fprintf(stderr, "'%s' is no file with tests\n", word);
    }
    (void)fprintf(stderr, "usage: %s FILE [TEST | --list], FILE being one of\n", program);
    for (const test_part *p = parts; p != NULL; p = p->next) {
        if (strcmp(p->file, last) != 0) {
            (void)fprintf(stderr, "    %s\n", p->file);
        }
        last = p->file;
    }
    return 2;
}

static int list(const char *file)
{
    for (const test_part *p = find(parts, file); p != NULL; p = find(p->next, file)) {
        if (p->kind == TEST_ITSELF) {
            (void)puts(p->test.name);
        }
    }
    return 0;
}

/* What the file's parts of that kind do before and after. */
static struct CMUnitTest around(const char *file, enum test_kind kind)
{
    struct CMUnitTest both = {0};
    for (const test_part *p = find(parts, file); p != NULL; p = find(p->next, file)) {
        if (p->kind == kind && p->test.setup_func != NULL) {
            both.setup_func = p->test.setup_func;
        }
        if (p->kind == kind && p->test.teardown_func != NULL) {
            both.teardown_func = p->test.teardown_func;
        }
    }
    return both;
}

/* Copies the tests of the file, or the one of that name, with what is to be done around each. */
static size_t choose(const char *file, const char *name, struct CMUnitTest *tests)
{
    const struct CMUnitTest fixture = around(file, TEST_FIXTURE);
    size_t n = 0;
    for (const test_part *p = find(parts, file); p != NULL; p = find(p->next, file)) {
        if (p->kind != TEST_ITSELF || (name != NULL && strcmp(p->test.name, name) != 0)) {
            continue;
        }
        tests[n] = p->test;
        if (p->test.setup_func == NULL && p->test.teardown_func == NULL) {
            tests[n].setup_func = fixture.setup_func;
            tests[n].teardown_func = fixture.teardown_func;
        }
        n++;
    }
    return n;
}

/* Runs all tests of the file where `name` is NULL. */
static int run(const char *file, const char *name, const test_part *const hook[TEST_KINDS])
{
    size_t most = 0;
    char title[128];
    for (const test_part *p = parts; p != NULL; p = p->next) {
        most++;
    }
    struct CMUnitTest *tests = calloc(most > 0 ? most : 1, sizeof *tests);
    const size_t n = tests == NULL ? 0 : choose(file, name, tests);
    if (n == 0) {
        (void)fprintf(stderr, "'%s' has no test '%s'\n", file, name != NULL ? name : "");
        free(tests);
        return 2;
    }
    if (hook[TEST_BEFORE] != NULL) {
        hook[TEST_BEFORE]->before();
    }
    const struct CMUnitTest group = around(file, TEST_GROUP);
    (void)snprintf(title, sizeof title, "%s/%s", find(parts, file)->room, file);
    const int failed =
        _cmocka_run_group_tests(title, tests, n, group.setup_func, group.teardown_func);
    free(tests);
    return failed;
}

/* A test's stdin is empty: a terminal's would never end, and a closed one's number would be that of
 * the first file that the test opens. A child keeps the stdin that its parent gave it.
 */
static bool empty_stdin(void)
{
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing > STDIN_FILENO && dup2(nothing, STDIN_FILENO) == STDIN_FILENO) {
        return close(nothing) == 0;
    }
    return nothing == STDIN_FILENO;
}

int main(int argc, char **argv)
{
    const test_part *first = find(parts, argc > 1 ? argv[1] : NULL);
    if (first == NULL) {
        first = find(parts, getenv(parent)); // NOLINT(concurrency-mt-unsafe): no threads yet
    } else {
        (void)setenv(parent, first->file, 1); // NOLINT(concurrency-mt-unsafe)
        argv[1] = argv[0];
        argc--;
        argv++;
        if (!empty_stdin()) {
            perror("/dev/null");
            return 2;
        }
    }
    if (first == NULL) {
        return usage(argv[0], argc > 1 ? argv[1] : NULL);
    }
    const test_part *hook[TEST_KINDS] = {NULL}; /* what the file has of each kind */
    for (const test_part *p = first; p != NULL; p = find(p->next, first->file)) {
        hook[p->kind] = p;
    }
    int code = 0;
    if (hook[TEST_ROLES] != NULL && hook[TEST_ROLES]->roles(argc, argv, &code)) {
        return code;
    }
    if (argc > 2) {
        return usage(argv[0], NULL);
    }
    if (argc > 1 && strcmp(argv[1], "--list") == 0) {
        return list(first->file);
    }
    return run(first->file, argc > 1 ? argv[1] : NULL, hook);
}
