/* test_ckpt_peers.c - one checkpoint by several workers, loaded by others: every bit, or a reason.
 */

#include "support/test.h"
#include "train/golden.h"
#include "train/model_hash.h"
#include "train/sharekit.h"
#include "train/step/worker.h"

static const char *const with_deltas[] = {"checkpoint.delta_every=1step", NULL};

static void must_save(sharekit *k, bool delta, tn_saved *out)
{
    tn_error err = {0};
    assert_ok(sharekit_save(k, delta, out, &err), err.text);
}

static void must_resume(sharekit *k, tn_saved *out)
{
    tn_error err = {0};
    assert_ok(sharekit_resume(k, out, &err), err.text);
}

/* The hash of one worker with the whole model after so many steps. */
static uint32_t hash_after(uint32_t steps)
{
    uint32_t hash = 0;
    TMPDIR(dir);
    OPEN(sharekit, k, dir, 1, NULL);
    sharekit_learn(&k, steps);
    assert_int_equal(model_hash(k.w[0], &hash, NULL), TN_OK);
    assert_int_equal(sharekit_hash(&k), hash);
    return hash;
}

/* Files of `dir` whose names begin with `prefix`. */
static uint32_t count(const char *dir, const char *prefix)
{
    tn_text names CLEANUP(tn_text_done) = {0};
    uint32_t n = 0;
    uint32_t found = 0;
    assert_int_equal(tn_dir_list(dir, &names, &n, NULL), TN_OK);
    const char *name = tn_text_str(&names);
    for (uint32_t i = 0; i < n; i++) {
        found += strncmp(name, prefix, strlen(prefix)) == 0;
        name += strlen(name) + 1;
    }
    return found;
}

TEST(any_number_of_peers_loads_what_any_number_wrote)
{
    const uint32_t want = hash_after(5);
    for (uint32_t n = 1; n <= 4; n++) {
        sharekit k;
        tn_saved saved;
        TMPDIR(dir);
        sharekit_open(&k, dir, n, NULL);
        sharekit_learn(&k, 5);
        assert_int_equal(sharekit_hash(&k), want);
        must_save(&k, false, &saved);
        assert_int_equal(saved.step, 5);
        assert_int_equal(saved.rows, saved.written);
        sharekit_close(&k);
        PATH_IN(folder, dir, "ckpt-1");
        assert_int_equal(count(folder, "sparse-"), n);
        assert_int_equal(count(folder, "dense-"), n);
        assert_int_equal(count(folder, ""), 2 * n + 4);
        for (uint32_t m = 1; m <= 4; m++) {
            tn_saved which;
            sharekit_open(&k, dir, m, NULL);
            assert_int_not_equal(sharekit_hash(&k), want);
            must_resume(&k, &which);
            assert_int_equal(which.ordinal, 1);
            assert_int_equal(which.rows, saved.rows);
            assert_int_equal(k.state.steps, 5);
            assert_int_equal(sharekit_hash(&k), want);
            sharekit_close(&k);
        }
    }
}

/* Batches that are learned already. */
static void pass_over(sharekit *k, uint64_t batches)
{
    for (uint64_t i = 0; i < batches; i++) {
        tn_step *step = NULL;
        assert_int_equal(tn_step_prefetch_next(k->feeder, &step, NULL), TN_OK);
        tn_step_prefetch_recycle(k->feeder, step);
    }
}

TEST(k8_three_peers_go_on_from_two_and_one_from_three)
{
    static const uint32_t peers[] = {2, 3, 1};
    uint32_t want = 0;
    TMPDIR(dir);
    for (uint32_t i = 0; i < 3; i++) {
        tn_saved saved;
        OPEN(sharekit, k, dir, peers[i], NULL);
        must_resume(&k, &saved);
        assert_int_equal(saved.step, i * 3);
        assert_true(i == 0 || sharekit_hash(&k) == want);
        pass_over(&k, 3 * (uint64_t)i);
        sharekit_learn(&k, 3);
        want = hash_after((i + 1) * 3);
        assert_int_equal(sharekit_hash(&k), want);
        must_save(&k, false, &saved);
    }
}

TEST(deltas_of_several_peers_load_to_what_full_ones_do)
{
    sharekit k;
    tn_saved saved[3];
    TMPDIR(dir);
    sharekit_open(&k, dir, 3, with_deltas);
    for (uint32_t i = 0; i < 3; i++) {
        sharekit_learn(&k, 1);
        must_save(&k, true, &saved[i]);
        assert_int_equal(saved[i].deltas, i);
    }
    assert_int_equal(saved[0].written, saved[0].rows);
    assert_true(saved[1].written < saved[1].rows && saved[2].rows > saved[0].rows);
    sharekit_close(&k);
    for (uint32_t m = 1; m <= 4; m++) {
        tn_saved which;
        sharekit_open(&k, dir, m, with_deltas);
        must_resume(&k, &which);
        assert_int_equal(which.deltas, 2);
        assert_int_equal(which.rows, saved[2].rows);
        assert_int_equal(sharekit_hash(&k), hash_after(3));
        sharekit_close(&k);
    }
    /* And another number of peers puts its own deltas on top. */
    sharekit_open(&k, dir, 2, with_deltas);
    must_resume(&k, &saved[0]);
    sharekit_learn(&k, 1);
    uint32_t want = sharekit_hash(&k);
    must_save(&k, true, &saved[0]);
    assert_int_equal(saved[0].deltas, 3);
    sharekit_close(&k);
    sharekit_open(&k, dir, 1, with_deltas);
    must_resume(&k, &saved[1]);
    assert_int_equal(saved[1].ordinal, saved[0].ordinal);
    assert_int_equal(sharekit_hash(&k), want);
    sharekit_close(&k);
}

TEST(a_model_that_is_brought_back_leaves_the_steps)
{
    tn_saved saved;
    TMPDIR(dir);
    OPEN(sharekit, k, dir, 2, NULL);
    sharekit_learn(&k, 3);
    must_save(&k, false, &saved);
    sharekit_learn(&k, 2);
    assert_int_equal(tn_checkpoints_restore(k.checkpoints, k.w[0], saved.ordinal, NULL), TN_OK);
    assert_int_equal(k.loads, 1);
    assert_int_equal(k.w[0]->steps, 5);
    assert_int_equal(k.w[1]->steps, 5);
    assert_int_equal(sharekit_hash(&k), hash_after(3));
}

/* ---- damage ---- */

static void shard_of(const char *dir, uint32_t ordinal, char out[TN_PATH_SIZE])
{
    (void)snprintf(out, TN_PATH_SIZE, "%s/ckpt-%u/sparse-0512-1023.tns", dir, ordinal);
}

/* Two checkpoints by two peers. */
static void save_two(const char *dir)
{
    tn_saved saved;
    OPEN(sharekit, k, dir, 2, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        sharekit_learn(&k, 2);
        must_save(&k, false, &saved);
    }
}

/* What rank `rank` of two says of checkpoint 2. */
static tn_status load_two(const char *dir, uint32_t rank, tn_error *err)
{
    PATH_IN(path, dir, "ckpt-2");
    OPEN(sharekit, k, dir, 2, NULL);
    tn_status status = tn_ckptshare_load(k.w[rank], path, NULL, err);
    return status;
}

TEST(a_file_that_is_missing_or_of_another_checkpoint_is_named)
{
    char path[2][TN_PATH_SIZE];
    tn_error err = {0};
    tn_text other CLEANUP(tn_text_done) = {0};
    TMPDIR(dir);
    save_two(dir);
    shard_of(dir, 1, path[0]);
    shard_of(dir, 2, path[1]);
    assert_int_equal(load_two(dir, 1, &err), TN_OK);
    assert_int_equal(tn_file_read_all(path[0], 1 << 28, &other, NULL), TN_OK);
    assert_int_equal(tn_remove_file(path[1], NULL), TN_OK);
    for (uint32_t rank = 0; rank < 2; rank++) {
        err = (tn_error){0};
        assert_int_equal(load_two(dir, rank, &err), TN_E_IO); /* not what rank 0 has found */
        assert_int_equal(err.code, TN_E_IO);
        assert_non_null(strstr(err.text, "ckpt-2/sparse-0512-1023.tns"));
    }
    assert_int_equal(tn_file_replace(path[1], other.data, other.size, NULL), TN_OK);
    for (uint32_t rank = 0; rank < 2; rank++) {
        err = (tn_error){0};
        assert_int_equal(load_two(dir, rank, &err), TN_E_IO);
        assert_non_null(strstr(err.text, "ckpt-2/sparse-0512-1023.tns"));
    }
    (void)snprintf(path[0], TN_PATH_SIZE, "%s/ckpt-2", dir);
    assert_int_equal(tn_remove_tree(path[0], NULL), TN_OK);
    assert_int_equal(load_two(dir, 1, &err), TN_E_IO);
}

static bool is_there(const char *dir, const char *name)
{
    char path[TN_PATH_SIZE];
    assert_int_equal(tn_path_join(dir, name, path, NULL), TN_OK);
    return tn_path_exists(path);
}

TEST(what_one_peer_cannot_read_is_not_damaged)
{
    tn_saved which;
    tn_error err = {0};
    TMPDIR(dir);
    save_two(dir);
    OPEN(sharekit, k, dir, 3, NULL);
    k.hiccup = 2;
    assert_int_equal(sharekit_resume(&k, &which, &err), TN_E_IO);
    assert_non_null(strstr(err.text, "Stale file handle"));
    assert_non_null(strstr(err.text, "hint: nothing was removed"));
    assert_int_equal(k.loads, 1); /* the one before is not tried */
    assert_true(is_there(dir, "ckpt-1") && is_there(dir, "ckpt-2"));
    assert_int_equal(count(dir, "ckpt-"), 2);
    k.hiccup = 0;
    must_resume(&k, &which);
    assert_int_equal(which.ordinal, 2);
}

/* Only who owns the rows reads them, and all go back. */
TEST(what_one_peer_finds_damaged_all_pass_over)
{
    char path[TN_PATH_SIZE];
    tn_text file = {0};
    sharekit k;
    tn_saved which;
    tn_error err = {0};
    TMPDIR(dir);
    save_two(dir);
    shard_of(dir, 2, path);
    assert_int_equal(tn_file_read_all(path, 1 << 28, &file, NULL), TN_OK);
    file.data[200] = (char)(file.data[200] ^ 4);
    assert_int_equal(tn_file_replace(path, file.data, file.size, NULL), TN_OK);
    tn_text_done(&file);
    assert_int_equal(load_two(dir, 0, &err), TN_OK);
    assert_int_equal(load_two(dir, 1, &err), TN_E_CKPT);
    sharekit_open(&k, dir, 2, (const char *const[]){"checkpoint.strict=true", NULL});
    assert_int_equal(sharekit_resume(&k, &which, &err), TN_E_CKPT);
    sharekit_close(&k);
    assert_true(is_there(dir, "ckpt-2"));
    sharekit_open(&k, dir, 2, NULL);
    must_resume(&k, &which);
    assert_int_equal(k.loads, 2);
    assert_int_equal(which.ordinal, 1);
    assert_int_equal(sharekit_hash(&k), hash_after(2));
    assert_true(!is_there(dir, "ckpt-2") && is_there(dir, "ckpt-2.damaged"));
    sharekit_close(&k);
}

/* ---- saves that fail ---- */

TEST(a_save_that_a_peer_cannot_write_leaves_the_one_before)
{
    sharekit k;
    tn_saved saved;
    tn_error err = {0};
    TMPDIR(dir);
    sharekit_open(&k, dir, 3, with_deltas);
    sharekit_learn(&k, 2);
    must_save(&k, false, &saved);
    sharekit_learn(&k, 1);
    k.broken = 2;
    assert_int_equal(sharekit_save(&k, true, &saved, &err), TN_E_IO);
    assert_non_null(strstr(err.text, "checkpoint not saved: "));
    assert_non_null(strstr(err.text, "No space left"));
    assert_int_equal(k.abandoned, 1);
    assert_true(tn_checkpoints_lost_rows(k.checkpoints));
    assert_int_equal(count(dir, "ckpt-"), 1);
    k.broken = 0;
    sharekit_learn(&k, 1);
    must_save(&k, true, &saved); /* full: what changed since the first is not known any more */
    assert_int_equal(saved.deltas, 0);
    assert_int_equal(saved.ordinal, 2);
    assert_int_equal(k.abandoned, 1);
    sharekit_close(&k);
    sharekit_open(&k, dir, 1, NULL);
    must_resume(&k, &saved);
    assert_int_equal(saved.ordinal, 2);
    assert_int_equal(sharekit_hash(&k), hash_after(4));
    sharekit_close(&k);
}

TEST(a_save_without_all_peers_is_none)
{
    tn_saved saved;
    tn_error err = {0};
    TMPDIR(dir);
    OPEN(sharekit, k, dir, 3, NULL);
    sharekit_learn(&k, 1);
    k.silent = 1;
    assert_int_equal(sharekit_save(&k, false, &saved, &err), TN_E_PEER);
    assert_non_null(strstr(err.text, "rank 1 has not written"));
    assert_int_equal(count(dir, "ckpt-"), 0);
    k.silent = 0;
    k.w[2]->steps++; /* another step than rank 0's: it refuses at once */
    assert_int_equal(sharekit_save(&k, false, &saved, &err), TN_E_PEER);
    assert_non_null(strstr(err.text, "step 1 is ordered, this rank stands at 2"));
    assert_int_equal(k.abandoned, 2);
    assert_int_equal(count(dir, "ckpt-"), 0);
    k.w[2]->steps--;
    must_save(&k, false, &saved);
    assert_int_equal(saved.ordinal, 1);
}

TEST(an_order_that_cannot_be_carried_out_is_refused)
{
    sharekit k;
    tn_ckptshare *share = NULL;
    tn_error err = {0};
    TMPDIR(dir);
    sharekit_open(&k, dir, 2, with_deltas);
    static const struct {
        tn_ckpt_order order;
        tn_status status;
        const char *words;
    } refused[] = {
        {{.folder = ""}, TN_E_PEER, "without a name"},
        {{.folder = "../ckpt-1"}, TN_E_PEER, "without a name"},
        {{.folder = "ckpt-1/x"}, TN_E_PEER, "without a name"},
        {{.folder = "ckpt-1.00.tmp"}, TN_E_IO, "one folder for all peers"},
        {{.folder = "ckpt-1.00.tmp", .step = 1}, TN_E_PEER, "this rank stands at 0"},
    };
    for (uint32_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_int_equal(tn_ckptshare_begin(&share, k.w[1], dir, &refused[i].order, &err),
                         refused[i].status);
        assert_null(share);
        assert_non_null(strstr(err.text, refused[i].words));
    }
    tn_ckptshare_free(NULL);
    sharekit_close(&k);
    /* A rank that does not note changes. */
    sharekit_open(&k, dir, 2, NULL);
    const tn_ckpt_order delta = {.folder = "x.tmp", .delta = true};
    PATH_IN(folder, dir, "x.tmp");
    assert_int_equal(tn_dir_make(folder, NULL), TN_OK);
    assert_int_equal(tn_ckptshare_begin(&share, k.w[1], dir, &delta, &err), TN_E_MEMORY);
    assert_non_null(strstr(err.text, "which rows have changed"));
    sharekit_close(&k);
}

#ifdef __SANITIZE_THREAD__
static void leave_out_most(void)
{
    cmocka_set_test_filter("a_*"); /* a group takes seconds to make: it sees the fewest that save */
}

BEFORE(leave_out_most);
#endif
