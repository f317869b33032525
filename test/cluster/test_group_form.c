/* test_group_form.c - peers that find each other, or learn why they will not. */
#include "base/core/clock.h"
#include "cluster/groupkit.h"
#include "cluster/keys.h"
#include "cluster/net/link.h"
#include "cluster/wire/control_messages.h"
#include "support/test.h"

/* Every rank that is there, but `but`, waits for the others, and learns how the group ended, and
 * who tells it. */
static void assert_not_formed(groupkit *x, uint32_t but, tn_status status, const char *text,
                              uint32_t teller)
{
    for (uint32_t r = 0; r < x->n; r++) {
        tn_error err = {0};
        if (r == but || x->group[r] == NULL) {
            continue;
        }
        assert_int_equal(tn_group_form(x->group[r], NULL, &err), status);
        assert_string_equal(err.text, text);
        assert_true(tn_group_is_reported_elsewhere(x->group[r], status) == (r != teller));
    }
}

GROUP(groupkit_set_up, groupkit_tear_down);

TEST(a_rank_that_fails_while_the_group_forms_ends_all)
{
    for (uint32_t n = 3; n <= GROUPKIT_RANKS; n++) {
        groupkit x CLEANUP(groupkit_close);
        char want[80];
        const uint32_t who = n - 2;
        groupkit_set(&x, n);
        groupkit_open_first(&x, n - 1); /* the last never comes */
        tn_group_fail(x.group[who], TN_E_DATA, "cannot find 'x'\nhint: \x1b[2Jlook");
        assert_int_equal(tn_group_check(x.group[who], NULL), TN_E_DATA);
        assert_false(tn_group_is_reported_elsewhere(x.group[who], TN_E_DATA));
        (void)snprintf(want, sizeof want, "rank %u: cannot find 'x'\nhint: ?[2Jlook", who);
        assert_not_formed(&x, who, TN_E_DATA, want, who);
    }
}

TEST(rank_0_that_fails_while_the_group_forms_ends_all)
{
    groupkit x CLEANUP(groupkit_close);
    groupkit_set(&x, 3);
    tn_group_opts opts = groupkit_opts(&x, 0);
    groupkit_open(&x, 0, &opts);
    tn_group_fail(x.group[0], TN_E_IO, "disk full");
    for (uint32_t r = 1; r < x.n; r++) { /* they come later */
        opts = groupkit_opts(&x, r);
        groupkit_open(&x, r, &opts);
    }
    assert_not_formed(&x, 0, TN_E_IO, "rank 0: disk full", 0);
}

TEST(a_rank_that_is_stopped_while_the_group_forms_ends_all)
{
    for (uint32_t who = 0; who < 2; who++) {
        groupkit x CLEANUP(groupkit_close);
        char want[80];
        tn_error err = {0};
        const atomic_bool stop = true;
        groupkit_set(&x, 3);
        groupkit_open_first(&x, 2);
        (void)snprintf(want, sizeof want,
                       "rank %u: stopped by a signal while waiting for the peers", who);
        assert_int_equal(tn_group_form(x.group[who], &stop, &err), TN_E_STOPPED);
        assert_string_equal(err.text, want);
        assert_not_formed(&x, who, TN_E_STOPPED, want, who);
    }
}

TEST(who_does_not_fit_ends_all_with_the_reason)
{
    groupkit x CLEANUP(groupkit_close);
    tn_error err = {0};
    groupkit_set(&x, 3);
    for (uint32_t r = 0; r < x.n; r++) {
        tn_group_opts opts = groupkit_opts(&x, r);
        opts.hello.config_hash = r == 1 ? "d" : "c";
        groupkit_open(&x, r, &opts);
    }
    assert_int_equal(tn_group_form(x.group[1], NULL, &err), TN_E_CONFIG);
    assert_memory_equal(err.text, "the configuration of rank 1 on host '", 37);
    assert_false(tn_group_is_reported_elsewhere(x.group[1], TN_E_CONFIG));
    assert_not_formed(&x, 1, TN_E_CONFIG, err.text, 1);
}

TEST(who_comes_with_another_version_ends_all)
{
    groupkit x CLEANUP(groupkit_close);
    tn_error err = {0};
    groupkit_set(&x, 2);
    for (uint32_t r = 0; r < x.n; r++) {
        tn_group_opts opts = groupkit_opts(&x, r);
        opts.hello.version = r == 1 ? "2" : "1";
        groupkit_open(&x, r, &opts);
    }
    assert_int_equal(tn_group_form(x.group[1], NULL, &err), TN_E_PEER);
    assert_non_null(strstr(err.text, "the version of rank 1 on host '"));
    assert_not_formed(&x, 1, TN_E_PEER, err.text, 1);
}

/* Lists of peers hold names; rank 0 says the number that it listens at. */
TEST(rank_0_may_be_known_by_another_name_than_it_has)
{
    groupkit x CLEANUP(groupkit_close);
    char name[TN_ENDPOINT_SIZE];
    groupkit_set(&x, 3);
    const char *file = strrchr(x.at[0], '/');
    assert_non_null(file);
    (void)snprintf(name, sizeof name, "%.*s/.%s", (int)(file - x.at[0]), x.at[0], file);
    const char *address[GROUPKIT_RANKS] = {name, x.at[1], x.at[2]};
    x.membership[1].address = x.membership[2].address = address;
    groupkit_form(&x);
}

TEST(rank_0_that_never_comes_is_told_in_time)
{
    groupkit x CLEANUP(groupkit_close);
    tn_error err = {0};
    groupkit_set(&x, 2);
    tn_group_opts opts = groupkit_opts(&x, 1);
    opts.start_timeout_s = .3;
    groupkit_open(&x, 1, &opts);
    assert_int_equal(tn_group_form(x.group[1], NULL, &err), TN_E_PEER);
    assert_non_null(strstr(err.text, "for rank 0 at ipc://"));
    const atomic_bool stop = true;
    tn_group_close(x.group[1]);
    groupkit_open(&x, 1, &opts);
    assert_int_equal(tn_group_form(x.group[1], &stop, &err), TN_E_STOPPED);
    tn_group_close(NULL);
}

/* Rank 0 by hand: it answers each hello with a welcome in which nobody is rank 2. */
typedef struct welcomer {
    groupkit *x;
    tn_link *link;
    tn_out_messages *pool;
    atomic_uint welcomes;
} welcomer;

static void welcome(void *arg, tn_in_message *hello)
{
    welcomer *by = arg;
    groupkit *x = by->x;
    const char *host[] = {"a", "b", "c"};
    const uint64_t incarnation[] = {1, hello->frame.incarnation, 0};
    const uint64_t from[] = {x->from[0], x->from[1], x->from[2], x->from[3]};
    const tn_welcome_note note = {.address = {x->address, 3},
                                  .host = {host, 3},
                                  .incarnation = {incarnation, 3},
                                  .owned_from = {from, 4}};
    tn_text bytes CLEANUP(tn_text_done) = {0};
    tn_out_message *p = NULL;
    tn_note_write(TN_FRAME_WELCOME, &note, &bytes);
    tn_in_message_close(hello);
    if (tn_out_message_take(&p, by->pool, bytes.size, NULL) == TN_OK) {
        memcpy(tn_out_message_payload(p), tn_text_str(&bytes), bytes.size);
        p->frame.type = TN_FRAME_WELCOME;
        tn_link_post(by->link, 1, p);
        (void)atomic_fetch_add(&by->welcomes, 1);
    }
}

static void tick(void *arg, uint64_t now_ns)
{
    (void)arg;
    (void)now_ns;
}

TEST(a_welcome_of_which_a_rank_is_nobody_does_not_count)
{
    groupkit x CLEANUP(groupkit_close);
    tn_endpoint at[2];
    char bound[TN_ENDPOINT_SIZE];
    tn_error err = {0};
    welcomer by = {.x = &x};
    groupkit_set(&x, 3);
    for (uint32_t r = 0; r < 2; r++) {
        assert_int_equal(tn_endpoint_read(x.at[r], 0, &at[r], NULL), TN_OK);
    }
    assert_int_equal(tn_out_messages_new(&by.pool, NULL), TN_OK);
    const tn_link_opts link = {.rank = 0,
                               .size = 3,
                               .job = 7,
                               .incarnation = 1,
                               .retransmit_ns = 30000000,
                               .security = &x.security,
                               .events = {&by, welcome, welcome, tick}};
    assert_int_equal(tn_link_open(&by.link, keys_zmq(), &link, &at[0], bound, NULL), TN_OK);
    tn_link_set_session(by.link, 77);
    assert_int_equal(tn_link_dial(by.link, 1, &at[1], NULL), TN_OK);
    tn_group_opts opts = groupkit_opts(&x, 1);
    opts.start_timeout_s = 4;
    groupkit_open(&x, 1, &opts);
    assert_int_equal(tn_group_form(x.group[1], NULL, &err), TN_E_PEER);
    assert_non_null(strstr(err.text, "for rank 0 at ipc://"));
    assert_true(atomic_load(&by.welcomes) > 0);
    tn_link_close(by.link);
    tn_out_messages_free(by.pool);
}
