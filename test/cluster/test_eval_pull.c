/* test_eval_pull.c - rows for evaluation come from their owners, and nothing changes. */
#include "cluster/exchange/eval_pull.h"
#include "cluster/keys.h"
#include "ranks.h"
#include "support/test.h"

static char dir[256];

static int set_up(void **state)
{
    (void)state;
    tn_tmpdir_make(dir);
    return setenv("TNET_FAST", "50", 1); // NOLINT(concurrency-mt-unsafe): no thread yet
}

static int tear_down(void **state)
{
    (void)state;
    tn_tmpdir_remove(dir);
    return 0;
}

GROUP(set_up, tear_down);

/* A rank with its link. */
typedef struct seat {
    tn_link *link;
    tn_out_messages *pool;
    tn_reply_queue replies;
    tn_eval_pull *_Atomic peek;
    _Atomic uint32_t deaf; /* requests that get lost here */
} seat;

typedef struct group {
    ranks_world *w;
    tn_security security;
    tn_endpoint at[RANKS_MAX];
    seat seat[RANKS_MAX];
} group;

static void got_request(void *arg, tn_in_message *incoming)
{
    seat *s = arg;
    if (atomic_load(&s->peek) == NULL || incoming->frame.type != TN_FRAME_PEEK) {
        tn_in_message_close(incoming);
    } else if (atomic_load(&s->deaf) > 0) {
        (void)atomic_fetch_sub(&s->deaf, 1);
        tn_in_message_close(incoming);
    } else {
        tn_eval_pull_take_request(atomic_load(&s->peek), incoming);
    }
}

static void got_answer(void *arg, tn_in_message *incoming)
{
    seat *s = arg;
    tn_reply_queue_put(&s->replies, incoming);
}

static void ticked(void *arg, uint64_t now_ns)
{
    (void)arg;
    (void)now_ns;
}

static void open_seat(group *g, uint32_t rank)
{
    seat *s = &g->seat[rank];
    char bound[TN_ENDPOINT_SIZE];
    tn_reply_queue_init(&s->replies);
    assert_int_equal(tn_out_messages_new(&s->pool, NULL), TN_OK);
    const tn_link_opts link = {.rank = rank,
                               .size = g->w->n,
                               .job = 3,
                               .incarnation = 50 + rank,
                               .security = &g->security,
                               .events = {s, got_request, got_answer, ticked}};
    assert_int_equal(tn_link_open(&s->link, keys_zmq(), &link, &g->at[rank], bound, NULL), TN_OK);
    const tn_exchange exchange = {.arena = g->w->arena,
                                  .link = s->link,
                                  .pool = s->pool,
                                  .replies = &s->replies,
                                  .rank = rank,
                                  .shares = g->w->shares,
                                  .layout = &g->w->m->layout,
                                  .shard = &g->w->owner[rank].shard};
    atomic_store(&s->peek, tn_eval_pull_new(&exchange));
    tn_link_set_session(s->link, 8);
}

static group *open_group(uint32_t n)
{
    group *g = tn_alloc(1, sizeof *g, "a group");
    g->w = ranks_new(n, 1, 1);
    assert_int_equal(tn_security_init(&g->security, keys_zmq(), NULL, NULL), TN_OK);
    for (uint32_t r = 0; r < n; r++) {
        g->at[r].is_ipc = true;
        int size = snprintf(g->at[r].path, sizeof g->at[r].path, "%s/%u.sock", dir, r);
        assert_in_range(size, 1, sizeof g->at[r].path - 1);
    }
    for (uint32_t r = 0; r < n; r++) {
        open_seat(g, r);
    }
    for (uint32_t r = 0; r < n; r++) {
        for (uint32_t to = 0; to < n; to++) {
            assert_true(to == r || tn_link_dial(g->seat[r].link, to, &g->at[to], NULL) == TN_OK);
        }
    }
    return g;
}

static void close_group(group *g)
{
    for (uint32_t r = 0; r < g->w->n; r++) {
        tn_link_close(g->seat[r].link);
        tn_eval_pull_free(atomic_load(&g->seat[r].peek));
        tn_reply_queue_done(&g->seat[r].replies);
        tn_out_messages_free(g->seat[r].pool);
    }
    tn_security_done(&g->security);
    ranks_free(g->w);
    tn_free(g);
}

/* All keys, of which the owners know every second one. */
static kit_keys *make_keys(group *g)
{
    uint64_t key[RANKS_KEYS];
    for (uint64_t i = 0; i < RANKS_KEYS; i++) {
        key[i] = ranks_key(i);
    }
    kit_keys *all = kit_keys_new(g->w->arena, &g->w->m->layout, key, NULL, RANKS_KEYS);
    all->set.owners = &g->w->shares->owners;
    return all;
}

static void teach(group *g)
{
    uint64_t key[RANKS_KEYS];
    float rows[RANKS_KEYS * RANKS_DIM + 1];
    for (uint32_t o = 0; o < g->w->n; o++) {
        uint32_t n = 0;
        for (uint64_t i = 0; i < RANKS_KEYS; i += 2) {
            uint32_t p = tn_partition_of(ranks_key(i), TN_PARTITIONS);
            if (p >= g->w->shares->owners.from[o] && p < g->w->shares->owners.from[o + 1]) {
                key[n++] = ranks_key(i);
            }
        }
        kit_keys *own = kit_keys_new(g->w->arena, &g->w->m->layout, key, NULL, n);
        assert_int_equal(tn_shard_pull(&g->w->owner[o].shard, NULL, &own->set, rows, NULL), TN_OK);
    }
}

static void check_rows(group *g, uint32_t rank, const kit_keys *all)
{
    float rows[RANKS_KEYS * RANKS_DIM];
    bool missing[RANKS_KEYS];
    tn_error err = {0};
    fail_if(tn_eval_pull_rows(atomic_load(&g->seat[rank].peek), NULL, &all->set, rows, missing,
                              &err) != TN_OK,
            "rank %u: %s", rank, err.text);
    for (uint32_t i = 0; i < RANKS_KEYS; i++) {
        const uint64_t key = all->set.key[i];
        uint32_t owner = 0;
        while (tn_partition_of(key, TN_PARTITIONS) >= g->w->shares->owners.from[owner + 1]) {
            owner++;
        }
        float want[RANKS_DIM];
        kit_keys *one = kit_keys_new(g->w->arena, &g->w->m->layout, &key, NULL, 1);
        bool lacks = false;
        tn_shard_peek(&g->w->owner[owner].shard, NULL, &one->set, want, &lacks);
        assert_int_equal(missing[i], lacks);
        assert_memory_equal(rows + all->set.at[i], want, sizeof want);
    }
}

static uint64_t rows_of(const group *g)
{
    uint64_t n = 0;
    for (uint32_t o = 0; o < g->w->n; o++) {
        n += tn_table_rows(g->w->owner[o].shard.table);
    }
    return n;
}

TEST(every_rank_sees_the_rows_of_all_owners)
{
    for (uint32_t n = 1; n <= RANKS_MAX; n++) {
        group *g = open_group(n);
        kit_keys *all = make_keys(g);
        check_rows(g, n - 1, all); /* nobody knows any key */
        teach(g);
        for (uint32_t r = 0; r < n; r++) {
            check_rows(g, r, all);
        }
        assert_int_equal(rows_of(g), RANKS_KEYS / 2);
        close_group(g);
    }
}

TEST(what_gets_lost_is_asked_again)
{
    group *g = open_group(2);
    kit_keys *all = make_keys(g);
    teach(g);
    atomic_store(&g->seat[1].deaf, 2);
    check_rows(g, 0, all);
    assert_int_equal(atomic_load(&g->seat[1].deaf), 0);
    check_rows(g, 0, all); /* a late answer to the one before does no harm */
    close_group(g);
}

TEST(a_group_that_ended_ends_the_wait)
{
    float rows[RANKS_KEYS * RANKS_DIM];
    bool missing[RANKS_KEYS];
    tn_error err = {0};
    group *g = open_group(2);
    kit_keys *all = make_keys(g);
    atomic_store(&g->seat[1].deaf, UINT32_MAX);
    tn_eval_pull *peek = atomic_load(&g->seat[0].peek);
    tn_reply_queue_end(&g->seat[0].replies, TN_E_DATA, "rank 1: no such file");
    tn_reply_queue_end(&g->seat[0].replies, TN_E_PEER, "a later reason");
    assert_int_equal(tn_eval_pull_rows(peek, NULL, &all->set, rows, missing, &err), TN_E_DATA);
    assert_string_equal(err.text, "rank 1: no such file");
    close_group(g);
    tn_eval_pull_free(NULL);
}

/* Keys of an owner that this rank is not: rank 1 refuses them, and whoever waits is told. */
TEST(keys_that_live_elsewhere_are_refused)
{
    float rows[RANKS_KEYS * RANKS_DIM];
    bool missing[RANKS_KEYS];
    tn_error err = {0};
    group *g = open_group(2);
    kit_keys *all = make_keys(g);
    const uint32_t half[] = {0, TN_PARTITIONS / 4, TN_PARTITIONS};
    const tn_owners others = {2, TN_PARTITIONS, half};
    all->set.owners = &others;
    tn_status status =
        tn_eval_pull_rows(atomic_load(&g->seat[0].peek), NULL, &all->set, rows, missing, &err);
    assert_int_equal(status, TN_E_PEER);
    assert_non_null(strstr(err.text, "rank 1 answered a request for rows with"));
    close_group(g);
}
