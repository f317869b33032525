/* test_launcher.c - how launchers read the environment. */
#include "base/core/arena.h"
#include "cluster/launch/membership.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

static const char *get(void *ctx, const char *name)
{
    const char *const *value = ctx;
    return strcmp(name, "WORD") == 0 ? *value : NULL;
}

static tn_status read(const char *value, uint32_t *out, tn_error *err)
{
    const tn_launch_env env = {.get = get, .ctx = &value};
    return tn_env_u32(&env, "WORD", 100, out, err);
}

static void numbers_below_their_limit_are_read(void **state)
{
    (void)state;
    uint32_t n = 7;
    tn_error err = {0};
    assert_int_equal(read(NULL, &n, &err), TN_OK);
    assert_int_equal(n, 7);
    assert_int_equal(read("", &n, &err), TN_OK);
    assert_int_equal(n, 7);
    assert_int_equal(read("99", &n, &err), TN_OK);
    assert_int_equal(n, 99);
    static const char *const bad[] = {"100", "-1",         "1x",
                                      " 1",  "4294967296", "18446744073709551616"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(read(bad[i], &n, &err), TN_E_CONFIG);
        assert_non_null(strstr(err.text, "not a number of 0 to 99"));
        assert_int_equal(n, 99);
    }
}

static void empty_variables_count_as_not_set(void **state)
{
    (void)state;
    const char *value = "";
    const tn_launch_env env = {.get = get, .ctx = &value};
    assert_null(tn_env(&env, "WORD"));
    assert_null(tn_env(&env, "OTHER"));
    value = "x";
    assert_string_equal(tn_env(&env, "WORD"), "x");
}

static void texts_in_the_arena_have_any_length(void **state)
{
    (void)state;
    char word[3000];
    memset(word, 'a', sizeof word);
    word[sizeof word - 1] = '\0';
    tn_arena *arena = tn_arena_new(64);
    const char *text = tn_arena_text(arena, "%u:%s", 7U, word);
    assert_int_equal(strlen(text), 2 + 2999);
    tn_arena_free(arena);
}

/* What test/e2e/launchers.sh starts under real launchers: one line of who this process is. */
static int show(const char *run_dir)
{
    char host[TN_ENDPOINT_HOST];
    const tn_peers_opts any = {0};
    tn_membership_in in = tn_membership_here(&any, run_dir, host);
    tn_arena *arena = tn_arena_new(1 << 14);
    tn_membership r;
    tn_error err = {0};
    tn_status status = tn_membership_find(&r, &in, arena, &err);
    if (status == TN_OK) {
        const char *root = r.size > 1 && r.address[0] != NULL ? r.address[0] : "-";
        const char *own = r.size > 1 && r.host[r.rank] != NULL ? r.host[r.rank] : "-";
        (void)printf("%u of %u root %s bind %s host %s meet %s: %s\n", r.rank, r.size, root,
                     r.bind != NULL ? r.bind : "-", own, r.meet != NULL ? r.meet : "-", r.how);
    } else {
        (void)printf("%s\n", err.text);
    }
    tn_arena_free(arena);
    return status == TN_OK ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "show") == 0) {
        return show(argv[2]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_below_their_limit_are_read),
        cmocka_unit_test(empty_variables_count_as_not_set),
        cmocka_unit_test(texts_in_the_arena_have_any_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
