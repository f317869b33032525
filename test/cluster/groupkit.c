/* groupkit.c - see groupkit.h. */
#include "cluster/groupkit.h"

#include "base/core/clock.h"
#include "cluster/keys.h"
#include "support/test.h"

static char dir[256];

void groupkit_silence(const char *divisor)
{
    assert_int_equal(setenv("TNET_SILENCE", divisor, 1), 0); // NOLINT(concurrency-mt-unsafe)
}

int groupkit_set_up(void **state)
{
    (void)state;
    tn_tmpdir_make(dir);
    groupkit_silence("2");
    return setenv("TNET_FAST", "8", 1); /* NOLINT(concurrency-mt-unsafe): no thread yet */
}

int groupkit_tear_down(void **state)
{
    (void)state;
    tn_tmpdir_remove(dir);
    return 0;
}

void groupkit_set(groupkit *x, uint32_t n)
{
    *x = (groupkit){.n = n};
    x->owners = (tn_owners){n, TN_PARTITIONS, x->from};
    assert_int_equal(tn_security_init(&x->security, keys_zmq(), NULL, NULL), TN_OK);
    for (uint32_t r = 0; r < n; r++) {
        int size = snprintf(x->at[r], sizeof x->at[r], "ipc://%s/%u.sock", dir, r);
        assert_in_range(size, 1, sizeof x->at[r] - 1);
        x->address[r] = x->at[r];
    }
    for (uint32_t r = 0; r < n; r++) {
        x->from[r + 1] = TN_PARTITIONS * (r + 1) / n;
        x->membership[r] = (tn_membership){.rank = r,
                                           .size = n,
                                           .job = 7,
                                           .address = x->address,
                                           .host = x->host,
                                           .bind = x->at[r],
                                           .how = "test"};
    }
}

tn_group_opts groupkit_opts(groupkit *x, uint32_t rank)
{
    return (tn_group_opts){.zmq = keys_zmq(),
                           .membership = &x->membership[rank],
                           .security = &x->security,
                           .owners = &x->owners,
                           .hello = {.version = "1",
                                     .config_hash = "c",
                                     .structure = "s",
                                     .cpu = "avx2",
                                     .threads = 1},
                           .start_timeout_s = 60};
}

void groupkit_open(groupkit *x, uint32_t rank, const tn_group_opts *opts)
{
    tn_error err = {0};
    assert_ok(tn_group_open(&x->group[rank], opts, &err), err.text);
}

void groupkit_close(groupkit *x)
{
    for (uint32_t r = x->n; r > 0; r--) {
        tn_group_close(x->group[r - 1]);
    }
    tn_security_done(&x->security);
}

void groupkit_form(groupkit *x)
{
    for (uint32_t r = x->n; r > 0; r--) { /* the last first: nobody need be there */
        tn_group_opts opts = groupkit_opts(x, r - 1);
        groupkit_open(x, r - 1, &opts);
    }
    for (uint32_t r = 0; r < x->n; r++) {
        tn_error err = {0};
        fail_if(tn_group_form(x->group[r], NULL, &err) != TN_OK, "rank %u: %s", r, err.text);
    }
}

static void *follow(void *arg)
{
    groupkit_follower *f = arg;
    tn_order_note order;
    f->status = TN_OK;
    while (f->status == TN_OK) {
        f->status = tn_group_next_order(f->group, tn_clock_ns() + 60000000000, &order, &f->err);
        if (f->status != TN_OK || order.what == TN_ORDER_BYE) {
            return NULL;
        }
        f->n_orders++;
        size_t used = strlen(f->texts);
        (void)snprintf(f->texts + used, sizeof f->texts - used, "%s;", order.text);
        const bool bad = strcmp(order.text, "fail") == 0;
        const tn_done_note done = {.what = order.what,
                                   .number = order.number,
                                   .status = bad ? TN_E_IO : TN_OK,
                                   .text = bad ? "disk full" : "",
                                   .records = 10,
                                   .metrics = {"a\0b", 3}};
        f->status = tn_group_done(f->group, &done, &f->err);
    }
    return NULL;
}

void groupkit_seat(groupkit *x, groupkit_seats *s)
{
    *s = (groupkit_seats){0};
    for (uint32_t r = 1; r < x->n; r++) {
        s->f[r].group = x->group[r];
        assert_int_equal(pthread_create(&s->thread[r], NULL, follow, &s->f[r]), 0);
    }
}

void groupkit_join(const groupkit *x, groupkit_seats *s)
{
    for (uint32_t r = 1; r < x->n; r++) {
        assert_int_equal(pthread_join(s->thread[r], NULL), 0);
    }
}

static tn_status add_records(void *arg, uint32_t rank, const tn_done_note *note, tn_error *err)
{
    (void)err;
    uint64_t *sum = arg;
    *sum += note->records * rank;
    assert_int_equal(note->metrics.n, 3);
    assert_memory_equal(note->metrics.at, "a\0b", 3);
    return TN_OK;
}

tn_status groupkit_order(tn_group *g, uint64_t what, uint64_t number, const char *text,
                         uint64_t *sum, tn_error *err)
{
    const tn_order_note order = {.what = what, .number = number, .text = text};
    TN_TRY(tn_group_order(g, &order, err));
    return tn_group_await(g, &order, add_records, sum, err);
}

void groupkit_open_first(groupkit *x, uint32_t n)
{
    for (uint32_t r = 0; r < n; r++) {
        tn_group_opts opts = groupkit_opts(x, r);
        groupkit_open(x, r, &opts);
    }
}
