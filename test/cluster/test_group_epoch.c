/* test_group_epoch.c - several ranks train the model that one process trains on the joint batches.
 */
#include "cluster/security/curvekeys.h"
#include "support/flipper.h"
#include "support/test.h"
#include "train/grouprun.h"
#include "train/toyckpt.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static char dir[256], rows[300], run_dir[300];

GROUP_SET_UP
{
    tn_tmpdir_make(dir);
    (void)snprintf(rows, sizeof rows, "%s/rows.tsv", dir);
    (void)snprintf(run_dir, sizeof run_dir, "%s/run", dir);
}

GROUP_TEAR_DOWN
{
    tn_tmpdir_remove(dir);
}

static char texts[8][TN_PATH_SIZE];

/* data.train=[rows-0,rows-1,..], one part each */
static const char *train_files(uint32_t n)
{
    size_t used = (size_t)snprintf(texts[0], sizeof texts[0], "data.train=[");
    for (uint32_t r = 0; r < n; r++) {
        used += (size_t)snprintf(texts[0] + used, sizeof texts[0] - used, "%s%s-%u",
                                 r > 0 ? "," : "", rows, r);
    }
    (void)snprintf(texts[0] + used, sizeof texts[0] - used, "]");
    return texts[0];
}

TEST(ranks_train_the_model_of_one_process_on_the_joint_batch)
{
    static const char *const models[] = {"deepfm", "lr", "dcn", "widedeep"};
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t n = 2; n <= 4; n *= 2) {
            char batch[32];
            (void)snprintf(batch, sizeof batch, "train.batch=%u", 32 / n);
            grouprun_deal(rows, n, 32 / n);
            /* Rows of weight 0 would be left out and the others move up, in each file for itself.
             */
            const char *const one_opts[] = {"model.dropout=0.1", "checkpoint.resume=never",
                                            "data.weight=~", "cluster.start_timeout=5s", NULL};
            const char *const opts[] = {train_files(n), batch,       one_opts[0],
                                        one_opts[1],    one_opts[2], NULL};
            const bool plain = strcmp(models[i], "lr") == 0;
            grouprun one = {.config = models[i], .n = 1, .dir = run_dir, .more = one_opts + plain};
            const char *const plain_opts[] = {opts[0], batch, one_opts[1], one_opts[2], NULL};
            grouprun all = {.config = models[i],
                            .n = n,
                            .dir = run_dir,
                            .more = plain ? plain_opts : opts,
                            .whole = true};
            grouprun_well(&one);
            grouprun_well(&all);
            assert_int_equal(all.steps[0], one.steps[0]);
            assert_int_equal(all.valid_rows, one.valid_rows);
            assert_true(fabs(all.valid_logloss - one.valid_logloss) < 2e-6);
            assert_true(fabs(all.valid_auc - one.valid_auc) < 1e-4);
            grouprun again = all;
            grouprun_well(&again);
            assert_int_not_equal(all.hash, 0);
            assert_int_equal(again.hash, all.hash);
        }
    }
}

/* A port of this machine that nobody else is given while it is held; who asks to may listen there,
 * as ZeroMQ does. */
static int hold_port(uint32_t *port)
{
    const int yes = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    void *address = &at;
    socklen_t size = sizeof at;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
    assert_int_equal(bind(fd, address, sizeof at), 0);
    assert_int_equal(getsockname(fd, address, &size), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

/* Two ranks with keys; rank 1 finds rank 0 behind a proxy. */
TEST(bytes_that_the_network_changes_change_no_bit)
{
    const char *const opts[] = {train_files(2), "train.batch=8", "checkpoint.resume=never",
                                "data.weight=~", NULL};
    const char *own[2][2] = {{texts[1], NULL}, {texts[2], NULL}};
    uint32_t port = 0;
    const int held = hold_port(&port);
    flipper *f = flipper_open(port, NULL, 0, .02, 20261129);
    grouprun calm = {.config = "deepfm", .n = 2, .dir = run_dir, .more = opts};
    grouprun_deal(rows, 2, 8);
    grouprun_well(&calm);
    grouprun all = calm;
    for (uint32_t r = 0; r < 2; r++) {
        tn_keygen_paths made;
        assert_int_equal(tn_keygen(dir, r == 0 ? "rank-0" : "rank-1", &made, NULL), TN_OK);
        int n = snprintf(texts[1 + r], sizeof texts[0],
                         "cluster.security={key: %s/rank-%u.key, allow: %s}", dir, r, dir);
        assert_in_range(n, 1, sizeof texts[0] - 1);
        (void)snprintf(texts[3 + r], sizeof texts[0], "tcp://127.0.0.1:%u", r == 0 ? port : 0);
        all.own[r] = own[r];
        all.bind[r] = texts[3 + r];
    }
    (void)snprintf(texts[5], sizeof texts[0], "tcp://127.0.0.1:%u", flipper_port(f));
    all.root = texts[5];
    grouprun_well(&all);
    assert_int_not_equal(all.hash, 0);
    assert_int_equal(all.hash, calm.hash);
    assert_true(flipper_flips(f) > 0 && flipper_connections(f) > 1);
    flipper_close(f);
    assert_int_equal(close(held), 0);
}

TEST(the_first_bias_is_that_of_the_rows_of_all_ranks)
{
    /* Nothing is learned, so the bias is what the evaluation sees; the parts have other rates. */
    static const char *const staleness[] = {"cluster.staleness=0", "cluster.staleness=2"};
    const char *const one_opts[] = {"model.bias_init=prior",      "train.optimizer.lr=1e-30",
                                    "train.sparse.wide.lr=1e-30", "train.sparse.deep.lr=1e-30",
                                    "checkpoint.resume=never",    NULL};
    grouprun one = {.config = "deepfm", .n = 1, .dir = run_dir, .more = one_opts};
    grouprun_well(&one);
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t n = 2; n <= 4; n++) {
            grouprun_deal(rows, n, 128 / n);
            const char *const opts[] = {train_files(n), one_opts[0], one_opts[1],  one_opts[2],
                                        one_opts[3],    one_opts[4], staleness[i], NULL};
            grouprun all = {
                .config = "deepfm", .n = n, .dir = run_dir, .more = opts, .whole = true};
            grouprun_well(&all);
            assert_true(fabs(all.valid_logloss - one.valid_logloss) < 1e-9);
        }
    }
}

TEST(c4_ranks_without_data_take_part_in_everything)
{
    const char *const opts[] = {"checkpoint.resume=never", "train.epochs=2", "eval.every=3steps",
                                NULL};
    grouprun one = {.config = "deepfm", .n = 1, .dir = run_dir, .more = opts};
    grouprun all = {.config = "deepfm", .n = 4, .dir = run_dir, .more = opts, .whole = true};
    grouprun_well(&one);
    grouprun_well(&all); /* one part: rank 0 has it */
    assert_int_equal(all.steps[3], one.steps[0]);
    assert_true(fabs(all.valid_logloss - one.valid_logloss) < 2e-6);
    assert_int_equal(all.valid_rows, one.valid_rows);
}

TEST(ranks_that_do_not_wait_learn_every_row_once)
{
    static const char *const staleness[] = {"cluster.staleness=1", "cluster.staleness=3",
                                            "cluster.staleness=inf"};
    grouprun one = {.config = "deepfm",
                    .n = 1,
                    .dir = run_dir,
                    .more =
                        (const char *const[]){"checkpoint.resume=never", "train.epochs=4", NULL}};
    grouprun_well(&one);
    for (uint32_t i = 0; i < 3; i++) {
        grouprun_deal(rows, 3, 8);
        const char *const opts[] = {
            train_files(3),   "checkpoint.resume=never", "train.epochs=4", "eval.every=5steps",
            "train.batch=32", "checkpoint.every=7steps", staleness[i],     NULL};
        grouprun all = {.config = "deepfm", .n = 3, .dir = run_dir, .more = opts};
        grouprun_well(&all);
        assert_int_equal(all.samples, one.samples);
        assert_int_equal(all.valid_rows, one.valid_rows);
        assert_true(fabs(all.valid_logloss - one.valid_logloss) < .05);
        assert_int_not_equal(all.hash, 0);
    }
}

/* Of a single file, too: the last joint batches are as full as those of one process. */
TEST(ranks_end_within_a_batch_of_each_other)
{
    static const char *const shuffle[] = {"data.shuffle=0", "data.shuffle=50"};
    grouprun_deal(rows, 1, 1); /* 256 rows */
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t n = 2; n <= 4; n++) {
            const char *const opts[] = {train_files(1),
                                        "train.batch=10",
                                        "train.epochs=3",
                                        "data.weight=~",
                                        "cluster.start_timeout=5s",
                                        shuffle[i],
                                        "checkpoint.resume=never",
                                        NULL};
            grouprun all = {.config = "deepfm", .n = n, .dir = run_dir, .more = opts};
            grouprun_well(&all);
            const uint64_t least = (256 + 10 * n - 1) / (10 * n);
            assert_int_equal(all.samples, 3 * 256);
            assert_in_range(all.steps[0], 3 * least, 3 * (least + 1));
        }
    }
}

/* K8 at staleness 0: whoever goes on reads the parts that were cut for those that began. */
TEST(k8_another_number_of_ranks_goes_on_within_an_epoch)
{
    static const struct {
        uint32_t n;
        const char *stop;
    } turn[] = {{4, "train.max_steps=2"},
                {2, "train.max_steps=5"},
                {1, "train.max_steps=8"},
                {3, "train.max_steps=11"},
                {4, "train.max_steps=1000"}};
    grouprun_deal(rows, 1, 1);
#define SMALL                                                                                      \
    train_files(1), "train.batch=8", "train.epochs=1", "data.weight=~",                            \
        "cluster.start_timeout=5s", "data.shuffle=50"
    const char *const once[] = {SMALL, "checkpoint.resume=never", NULL};
    grouprun one = {.config = "deepfm", .n = 1, .dir = run_dir, .more = once};
    grouprun_well(&one);
    for (uint32_t i = 0; i < 5; i++) {
        const char *const opts[] = {SMALL,
                                    i == 0 ? "checkpoint.resume=never" : "checkpoint.resume=must",
                                    turn[i].stop, NULL};
        grouprun all = {.config = "deepfm", .n = turn[i].n, .dir = run_dir, .more = opts};
        grouprun_well(&all);
        assert_true(i == 4 ? all.samples == one.samples && all.counts == one.counts
                           : all.samples < one.samples);
    }
#undef SMALL
}

TEST(floats_may_travel_in_16_bits)
{
    static const char *const kinds[] = {"cluster.values=f32", "cluster.values=fp16",
                                        "cluster.values=bf16"};
    double logloss[3];
    for (uint32_t i = 0; i < 3; i++) {
        grouprun_deal(rows, 2, 16);
        const char *const opts[] = {train_files(2), "train.batch=16", "checkpoint.resume=never",
                                    kinds[i], NULL};
        grouprun all = {.config = "deepfm", .n = 2, .dir = run_dir, .more = opts};
        grouprun_well(&all);
        logloss[i] = all.valid_logloss;
    }
    assert_true(fabs(logloss[1] - logloss[0]) < .01 && logloss[1] != logloss[0]);
    assert_true(fabs(logloss[2] - logloss[0]) < .03 && logloss[2] != logloss[0]);
}

TEST(a_bad_record_ends_all_with_file_and_place)
{
    grouprun_deal(rows, 2, 16);
    tn_text bad = {0};
    char path[TN_PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s-1", rows);
    assert_int_equal(tn_file_read_all(path, 1 << 20, &bad, NULL), TN_OK);
    tn_text_adds(&bad, "no row\n");
    assert_int_equal(tn_file_replace(path, bad.data, bad.size, NULL), TN_OK);
    tn_text_done(&bad);
    const char *const opts[] = {train_files(2), "checkpoint.resume=never", NULL};
    grouprun all = {.config = "deepfm", .n = 2, .dir = run_dir, .more = opts};
    grouprun_do(&all);
    for (uint32_t r = 0; r < 2; r++) {
        assert_int_equal(all.status[r], TN_E_DATA);
        assert_non_null(strstr(all.text[r], "rows.tsv-1:130"));
    }
    assert_memory_equal(all.text[0], "rank 1: ", 8);
    assert_true(all.elsewhere[0] && !all.elsewhere[1]);
}

/* Alone, no rank can tell how many of all records are bad. */
TEST(bad_records_are_judged_over_all_ranks)
{
    static const char *const limits[] = {"data.bad_records_max=60%", "data.bad_records_max=40%",
                                         "data.bad_records_max=1000"};
    static const char *const staleness[] = {"cluster.staleness=0", "cluster.staleness=1"};
    for (uint32_t i = 0; i < 6; i++) {
        const uint32_t limit = i % 3;
        grouprun_deal(rows, 2, 16);
        for (uint32_t f = limit == 2 ? 0 : 1; f < 2; f++) {
            char path[TN_PATH_SIZE];
            tn_text bad CLEANUP(tn_text_done) = {0};
            (void)snprintf(path, sizeof path, "%s-%u", rows, f);
            assert_int_equal(tn_file_read_all(path, 1 << 20, &bad, NULL), TN_OK);
            const char *head = memchr(bad.data, '\n', bad.size);
            for (size_t at = (size_t)(head - bad.data); at < bad.size; at++) { /* no row is good */
                bad.data[at] = bad.data[at] == '\n' ? '\n' : 'x';
            }
            assert_int_equal(tn_file_replace(path, bad.data, bad.size, NULL), TN_OK);
        }
        const char *const opts[] = {train_files(2),   "checkpoint.resume=never", limits[limit],
                                    staleness[i / 3], "train.epochs=1",          NULL};
        grouprun all = {.config = "deepfm", .n = 2, .dir = run_dir, .more = opts};
        grouprun_do(&all);
        fail_if(all.status[0] != (limit == 0 ? TN_OK : TN_E_DATA), "%u: %d: %s", i, all.status[0],
                all.text[0]);
        assert_true(limit != 1 || strstr(all.text[0], " records are bad, more than data.bad_rec"));
        assert_true(limit != 2 || strstr(all.text[0], "no record is good: all "));
    }
}

TEST(a_signal_to_any_rank_saves_and_stops_all)
{
    grouprun_deal(rows, 3, 8);
    for (uint32_t who = 0; who < 3; who++) {
        const char *const opts[] = {train_files(3),           "checkpoint.resume=never",
                                    "train.epochs=100000",    "eval.every=5steps",
                                    "checkpoint.every=never", NULL};
        grouprun all = {.config = "deepfm", .n = 3, .dir = run_dir, .more = opts};
        all.stops[who] = true;
        grouprun_do(&all);
        for (uint32_t r = 0; r < 3; r++) {
            assert_int_equal(all.status[r], TN_E_STOPPED);
            assert_non_null(strstr(all.text[r], "stopped by a signal"));
        }
        assert_int_not_equal(all.hash, 0);
    }
}

TEST(the_best_model_comes_back_on_all_ranks)
{
    grouprun_deal(rows, 2, 16);
    const char *const opts[] = {train_files(2),
                                "train.batch=16",
                                "checkpoint.resume=never",
                                "train.epochs=12",
                                "train.optimizer.lr=0.3",
                                "train.stop.monitor=valid.logloss",
                                "train.stop.patience=3",
                                NULL};
    const char *const one_opts[] = {opts[2], opts[3], opts[4], opts[5], opts[6], NULL};
    grouprun one = {.config = "deepfm", .n = 1, .dir = run_dir, .more = one_opts};
    grouprun all = {.config = "deepfm", .n = 2, .dir = run_dir, .more = opts, .whole = true};
    grouprun_well(&one);
    grouprun_well(&all);
    assert_int_equal(all.steps[0], one.steps[0]);
    assert_true(fabs(all.valid_logloss - one.valid_logloss) < 1e-4);
}

/* As where `today` is another day for one of them. */
TEST(all_ranks_take_the_day_of_rank_0)
{
    grouprun_deal(rows, 2, 16);
    const char *const tomorrow[] = {"run.day=2026-11-08", NULL};
    for (uint32_t apart = 0; apart < 2; apart++) {
        const char *const opts[] = {train_files(2), "train.batch=16", "run.day=2026-11-07",
                                    apart != 0 ? "cluster.staleness=1" : "cluster.staleness=0",
                                    NULL};
        grouprun all = {
            .config = "lr", .n = 2, .dir = run_dir, .more = opts, .own = {NULL, tomorrow}};
        assert_int_equal(tn_remove_tree(run_dir, NULL), TN_OK);
        grouprun_well(&all);
        assert_true(all.rows[1] > 0);
        assert_int_equal(all.first_day, 20764);
        assert_int_equal(all.last_day, 20764);
    }
    assert_int_equal(tn_remove_tree(run_dir, NULL), TN_OK);
}

/* Whether that is in run_dir. */
static bool stands(const char *name)
{
    char path[TN_PATH_SIZE];
    assert_int_equal(tn_path_join(run_dir, name, path, NULL), TN_OK);
    return tn_path_exists(path);
}

TEST(a_checkpoint_that_cannot_be_read_ends_all_and_stays)
{
    static const char *const opts[] = {"checkpoint.every=1epoch", "train.epochs=2", NULL};
    static const char *const on[] = {"checkpoint.every=1epoch", "train.epochs=3",
                                     "checkpoint.keep=1", NULL};
    assert_int_equal(tn_remove_tree(run_dir, NULL), TN_OK); /* of the tests before */
    grouprun first = {.config = "lr", .n = 2, .dir = run_dir, .more = opts};
    grouprun_well(&first);
    PATH_IN(manifest, run_dir, "ckpt-2/MANIFEST");
    PATH_IN(aside, run_dir, "aside");
    assert_int_equal(tn_rename(manifest, aside, NULL), TN_OK);
    assert_int_equal(tn_dir_make(manifest, NULL), TN_OK);
    grouprun again = {.config = "lr", .n = 2, .dir = run_dir, .more = on};
    grouprun_do(&again);
    assert_int_equal(tn_remove_tree(manifest, NULL), TN_OK);
    assert_int_equal(tn_rename(aside, manifest, NULL), TN_OK);
    toy_make_newer(manifest);
    grouprun newer = {.config = "lr", .n = 2, .dir = run_dir, .more = on};
    grouprun_do(&newer);
    for (uint32_t r = 0; r < 2; r++) {
        assert_int_equal(again.status[r], TN_E_IO);
        assert_int_equal(newer.status[r], TN_E_CKPT);
        assert_non_null(strstr(again.text[r], "/ckpt-2/MANIFEST"));
        assert_non_null(strstr(newer.text[r], "/ckpt-2/MANIFEST' was written by a newer version"));
    }
    assert_true(stands("ckpt-1") && stands("ckpt-2/MANIFEST"));
    assert_false(stands("ckpt-2.damaged") || stands("ckpt-3"));
    assert_int_equal(tn_remove_tree(run_dir, NULL), TN_OK);
}

TEST(another_configuration_ends_all)
{
    const char *const opts[] = {"checkpoint.resume=never", "cluster.start_timeout=60s", NULL};
    const char *const other[] = {"model.hidden=[8]", NULL};
    grouprun all = {.config = "deepfm", .n = 2, .dir = run_dir, .more = opts, .own = {NULL, other}};
    grouprun_do(&all);
    assert_int_equal(all.status[1], TN_E_CONFIG);
    assert_int_equal(all.status[0], TN_E_CONFIG);
    assert_true(all.elsewhere[0] && !all.elsewhere[1]);
}

/* With rules that change nothing, what comes out is what went in. */
TEST(weights_from_files_are_those_of_one_process)
{
    char from[2 * TN_PATH_SIZE + 64];
    PATH_IN(dump, dir, "dump.tsv");
    PATH_IN(dense, dir, "dense.safetensors");
    (void)snprintf(from, sizeof from, "checkpoint.from={rows: \"%s\", dense: \"%s\"}", dump, dense);
    const char *const learns[] = {"train.optimizer={type: sgd, lr: 0.1}",
                                  "train.sparse={type: sgd, lr: 0.1}", "checkpoint.resume=never",
                                  NULL};
    grouprun before = {.config = "deepfm", .n = 1, .dir = run_dir, .more = learns};
    grouprun_well(&before);
    grouprun_files(&before, dump, dense);
    const char *const stays[] = {"train.optimizer={type: sgd, lr: 0}",
                                 "train.sparse={type: sgd, lr: 0}", "checkpoint.resume=never",
                                 "train.epochs=1", NULL};
    const char *const opts[] = {stays[0], stays[1], stays[2], stays[3], from, NULL};
    const char *const apart[] = {
        stays[0], stays[1], stays[2], stays[3], from, "cluster.staleness=2", NULL};
    grouprun fresh = {.config = "deepfm", .n = 1, .dir = run_dir, .more = stays};
    grouprun one = {.config = "deepfm", .n = 1, .dir = run_dir, .more = opts};
    grouprun_well(&fresh);
    grouprun_well(&one);
    assert_int_not_equal(one.hash, 0);
    assert_int_not_equal(one.hash, fresh.hash);
    for (uint32_t n = 2; n <= 4; n++) {
        grouprun all = {.config = "deepfm", .n = n, .dir = run_dir, .more = n < 4 ? opts : apart};
        grouprun_well(&all);
        assert_int_equal(all.hash, one.hash);
        assert_true(fabs(all.valid_logloss - one.valid_logloss) < 1e-12);
    }
}

TEST(weights_from_files_that_do_not_fit_end_all)
{
    const char *const opts[] = {"checkpoint.resume=never", "checkpoint.from={rows: none.tsv}",
                                NULL};
    grouprun all = {.config = "deepfm", .n = 2, .dir = run_dir, .more = opts};
    grouprun_do(&all);
    assert_int_not_equal(all.status[0], TN_OK);
    assert_int_equal(all.status[1], all.status[0]);
    assert_non_null(strstr(all.text[1], "none.tsv"));
}

/* A metric of groups, which no sum of ranks' metrics tells, says when to stop. */
TEST(what_is_watched_may_need_all_rows)
{
    grouprun_deal(rows, 2, 16);
    const char *const opts[] = {"checkpoint.resume=never",
                                "train.epochs=12",
                                "train.stop.monitor=valid.gauc",
                                "train.stop.patience=2",
                                "train.optimizer.lr=0.3",
                                "data.group=city",
                                "eval.metrics=[auc,logloss,gauc]",
                                "eval.slices=[city]",
                                "eval.auc=exact",
                                "eval.every=3steps",
                                NULL};
    const char *joint[16] = {train_files(2), "train.batch=16"};
    memcpy(joint + 2, opts, sizeof opts);
    grouprun one = {.config = "deepfm", .n = 1, .dir = run_dir, .more = opts};
    grouprun all = {.config = "deepfm", .n = 2, .dir = run_dir, .more = joint, .whole = true};
    grouprun_well(&one);
    grouprun_well(&all);
    assert_int_equal(all.steps[0], one.steps[0]);
    assert_int_equal(all.valid_rows, one.valid_rows);
    assert_true(fabs(all.valid_logloss - one.valid_logloss) < 1e-4);
    assert_true(fabs(all.valid_auc - one.valid_auc) < 1e-3);
}
