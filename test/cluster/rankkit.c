/* rankkit.c - see rankkit.h. */
#include "cluster/rankkit.h"

#include "support/test.h"
#include "train/golden.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

enum { OVERRIDES_MAX = 16 };

const tn_run_text rankkit_text = {
    .config = "test\n", .hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"};

static const tn_model_plan *plan_of(rankkit *k, uint32_t rank, const char *const *more,
                                    const char *last)
{
    const char **overrides = TN_NEW_ARRAY(k->arena, const char *, OVERRIDES_MAX);
    char *where = TN_NEW_ARRAY(k->arena, char, TN_PATH_SIZE);
    uint32_t n = 0;
    (void)snprintf(where, TN_PATH_SIZE, "run.dir=%s", k->dir);
    overrides[n++] = where;
    overrides[n++] = "train.threads=1";
    for (; more != NULL && *more != NULL; more++) {
        assert_true(n + 2 < OVERRIDES_MAX);
        overrides[n++] = *more;
    }
    if (last != NULL && rank == k->n - 1) {
        overrides[n++] = last;
    }
    return golden_plan_at(k->arena, "deepfm", overrides, &k->membership[rank]);
}

void rankkit_open(rankkit *k, uint32_t n, const char *const *more, const char *last)
{
    tn_error err = {0};
    assert_in_range(n, 2, RANKKIT_MAX);
    assert_int_equal(setenv("TNET_FAST", "20", 1), 0);   // NOLINT(concurrency-mt-unsafe)
    assert_int_equal(setenv("TNET_SILENCE", "1", 1), 0); // NOLINT(concurrency-mt-unsafe)
    *k = (rankkit){.n = n, .arena = tn_arena_new(1 << 16)};
    tn_tmpdir_make(k->dir);
    const tn_binder b = {.arena = k->arena, .diag = &k->diag};
    for (uint32_t r = 0; r < n; r++) {
        (void)snprintf(k->at[r], sizeof k->at[r], "ipc://%s/sockets/%u.sock", k->dir, r);
        k->address[r] = k->at[r];
        k->membership[r] = (tn_membership){.rank = r,
                                           .size = n,
                                           .job = 9,
                                           .address = k->address,
                                           .host = k->host,
                                           .bind = k->at[r],
                                           .how = "test"};
    }
    for (uint32_t r = 0; r < n; r++) {
        k->plan[r] = plan_of(k, r, more, last);
        if (tn_worker_new(&k->w[r], k->plan[r], &(tn_worker_opts){.training = true}, &b, &err) !=
            TN_OK) {
            fail_msg("%s", err.text);
        }
    }
}

void rankkit_close(rankkit *k)
{
    for (uint32_t r = k->n; r > 0; r--) {
        tn_peers_close(k->peers[r - 1]);
        tn_worker_free(k->w[r - 1]);
    }
    tn_diag_done(&k->diag);
    tn_arena_free(k->arena);
    tn_tmpdir_remove(k->dir);
}

void rankkit_listen(rankkit *k, uint32_t rank)
{
    tn_error err = {0};
    fail_if(tn_peers_open(&k->peers[rank], k->w[rank], &rankkit_text, NULL, &err) != TN_OK,
            "rank %u: %s", rank, err.text);
}

void rankkit_form(rankkit *k)
{
    tn_error err = {0};
    for (uint32_t r = 0; r < k->n; r++) {
        rankkit_listen(k, r);
    }
    for (uint32_t r = 0; r < k->n; r++) {
        fail_if(tn_peers_form(k->peers[r], NULL, &err) != TN_OK, "rank %u: %s", r, err.text);
    }
}
