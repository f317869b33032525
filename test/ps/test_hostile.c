/* test_hostile.c - links that keep the rules, whoever comes beside them. */
#include "base/clock.h"
#include "ps/goodlinks.h"
#include "ps/keys.h"
#include "support/test.h"
#include "support/tmpdir.h"

enum { DEADLINE_S = 120 };

static uint64_t deadline(void)
{
    return tn_clock_ns() + DEADLINE_S * UINT64_C(1000000000);
}

static good_links *open_good(good_way way, char dir[256])
{
    good_links *g = NULL;
    tn_error err = {0};
    tn_tmpdir_make(dir);
    if (good_open(&g, keys_zmq(), way, dir, &err) != TN_OK) {
        fail_msg("%s", err.text);
    }
    return g;
}

/* C8: with CURVE, too, where the side that dials is told nothing of who it reached. */
static void every_request_is_answered_once_over_every_way(void **state)
{
    (void)state;
    for (good_way w = GOOD_IPC; w < GOOD_WAYS; w++) {
        char dir[256];
        good_links *g = open_good(w, dir);
        assert_true(good_ask(g, &(good_wish){500, 64, deadline()}));
        assert_true(good_ask(g, &(good_wish){50, 64 << 10, deadline()}));
        assert_true(good_is_whole(g));
        good_close(g);
        tn_tmpdir_remove(dir);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_request_is_answered_once_over_every_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
