/* test_ckptfiles.c - the list of a checkpoint's files, and what a rank may put into it. */
#include "train/checkpoint/ckptfiles.h"

#include "support/test.h"
#include "train/checkpoint/ckpt_peers.h"

#include <string.h>

enum { PEERS = 2, HALF = TN_PARTITIONS / 2 };

static const uint32_t cuts[] = {0, HALF, TN_PARTITIONS};
static const tn_owners owners = {PEERS, TN_PARTITIONS, cuts};

static const tn_manifest_file good[] = {
    {.name = "dense-0001.safetensors", .type = "dense", .bytes = 80, .crc = 1},
    {.name = "sparse-0512-0600.tns",
     .type = "sparse",
     .bytes = 300,
     .rows = 7,
     .first = 512,
     .last = 600},
    {.name = "sparse-0601-1023.tns",
     .type = "sparse",
     .bytes = 500,
     .rows = 9,
     .first = 601,
     .last = 1023},
};

static void files_of_all_ranks_are_listed_by_name(void **state)
{
    (void)state;
    tn_ckpt_files f;
    tn_error err = {0};
    tn_arena *arena = tn_arena_new(1 << 12);
    tn_ckpt_files_init(&f, arena, &owners);
    const tn_ckpt_wrote wrote = {.rank = 1, .rows = 20, .n_files = 3, .file = good};
    assert_int_equal(tn_ckpt_files_add(&f, &wrote, &err), TN_OK);
    tn_ckpt_files_list(&f, "config.yaml", &(tn_manifest_file){.type = "config", .bytes = 10});
    assert_int_equal(tn_ckpt_files_check(&f, &err), TN_E_PEER);
    assert_non_null(strstr(err.text, "rank 0 has not written"));
    tn_ckpt_files_list(&f, "sparse-0000-0511.tns",
                       &(tn_manifest_file){.type = "sparse", .rows = 30, .last = 511});
    tn_ckpt_files_tell(&f, 0, 40);
    assert_int_equal(tn_ckpt_files_check(&f, &err), TN_OK);
    static const char *const names[] = {"config.yaml", "dense-0001.safetensors",
                                        "sparse-0000-0511.tns", "sparse-0512-0600.tns",
                                        "sparse-0601-1023.tns"};
    assert_int_equal(f.n, 5);
    for (uint32_t i = 0; i < f.n; i++) {
        assert_string_equal(f.file[i].name, names[i]);
    }
    assert_int_equal(f.bytes, 890);
    assert_int_equal(f.written, 46);
    assert_int_equal(f.rows, 60);
    tn_arena_free(arena);
}

static void refuse(const tn_ckpt_wrote *wrote)
{
    tn_ckpt_files f;
    tn_error err = {0};
    tn_arena *arena = tn_arena_new(1 << 12);
    tn_ckpt_files_init(&f, arena, &owners);
    assert_int_equal(tn_ckpt_files_add(&f, wrote, &err), TN_E_PEER);
    assert_non_null(strstr(err.text, "has written other files of a checkpoint than its"));
    assert_int_equal(f.n, 0);
    assert_int_equal(f.n_told, 0);
    tn_arena_free(arena);
}

/* A list in which one thing differs. */
static void refuse_changed(uint32_t i, const tn_manifest_file *changed)
{
    tn_manifest_file file[3];
    memcpy(file, good, sizeof file);
    file[i] = *changed;
    refuse(&(tn_ckpt_wrote){.rank = 1, .n_files = 3, .file = file});
}

static void what_a_rank_does_not_owe_is_refused(void **state)
{
    (void)state;
    refuse(&(tn_ckpt_wrote){.rank = 0, .n_files = 3, .file = good}); /* those of another */
    refuse(&(tn_ckpt_wrote){.rank = 2, .n_files = 3, .file = good}); /* nobody's */
    refuse(&(tn_ckpt_wrote){.rank = 1, .n_files = 2, .file = good}); /* not all */
    refuse(&(tn_ckpt_wrote){.rank = 1, .n_files = 0, .file = good});
    refuse(&(tn_ckpt_wrote){.rank = 1, .n_files = 2, .file = good + 1}); /* no weights */
    tn_manifest_file file = good[1];
    file.name = "../../x";
    refuse_changed(1, &file);
    file = good[1];
    file.type = "metrics";
    refuse_changed(1, &file);
    file = good[1];
    file.last = TN_PARTITIONS;
    refuse_changed(1, &file);
    file = good[2];
    file.first = 600; /* twice */
    refuse_changed(2, &file);
    file = good[2];
    file.last = 600;
    refuse_changed(2, &file);
    file = good[0];
    file.rows = 1;
    refuse_changed(0, &file);
}

static void a_rank_tells_once(void **state)
{
    (void)state;
    tn_ckpt_files f;
    tn_arena *arena = tn_arena_new(1 << 12);
    const tn_ckpt_wrote wrote = {.rank = 1, .n_files = 3, .file = good};
    tn_ckpt_files_init(&f, arena, &owners);
    assert_int_equal(tn_ckpt_files_add(&f, &wrote, NULL), TN_OK);
    assert_int_equal(tn_ckpt_files_add(&f, &wrote, NULL), TN_E_PEER);
    assert_int_equal(f.n, 3);
    tn_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_all_ranks_are_listed_by_name),
        cmocka_unit_test(what_a_rank_does_not_owe_is_refused),
        cmocka_unit_test(a_rank_tells_once),
    };
    return cmocka_run_group_tests_name("train/ckptfiles", tests, NULL, NULL);
}
