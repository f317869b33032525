/* test_webhook.c - every evaluation of a run comes, once and whole, and nothing else. */
#include "support/test.h"

#include "train/trainrun.h"

TEST(every_evaluation_is_sent_as_a_line)
{
    char path[TN_PATH_SIZE];
    char option[TN_PATH_SIZE + 16];
    tn_text sent CLEANUP(tn_text_done) = {0};
    TMPDIR(dir);
    assert_int_equal(tn_path_join(dir, "hook", path, NULL), TN_OK);
    (void)snprintf(option, sizeof option, "webhook.to=%s", path);
    const trainrun o = trainrun_do(dir, (const char *const[]){option, NULL}, NULL);
    assert_int_equal(o.status, TN_OK);
    assert_int_equal(tn_file_read_all(path, 1 << 20, &sent, NULL), TN_OK);
    uint32_t n = 0;
    const char *at = tn_text_str(&sent);
    for (const char *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        const char *kind = strstr(at, "\"kind\":\"eval\"");
        assert_true(at[0] == '{' && kind != NULL && kind < end);
        n++;
    }
    assert_true(n > 0);
}
