/* test_dryrun.c - what is told of a run before it begins. */
#include "train/run/dryrun.h"

#include "config/absent.h"
#include "config/diag.h"
#include "support/test.h"
#include "train/golden.h"

TEST(a_model_is_shown_slot_by_slot)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    const tn_model_plan *plan = golden_plan(arena, "deepfm_bn", (const char *const[]){NULL});
    tn_diag diag = {0};
    const tn_binder b = {.arena = arena, .diag = &diag};
    tn_text t CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    assert_ok(tn_dry_run(plan, &b, &t, &err), err.text);
    static const char table[] =
        "model deepfm: 6 slots, 993 dense parameters, 0 rows of 148 bytes (0 bytes)\n"
        "slot   share  dim  pool    used by\n"
        "user   user     8  mean    wide, deep\n"
        "item   item     8  mean    wide, deep\n"
        "hist   item     8  mean    wide, deep\n"
        "tags   tags     8  sum     wide, deep\n"
        "city   city     8  mean    wide, deep\n"
        "rare   rare     8  mean    wide, deep\n"
        "price           1  number  num\n"
        "rows   ";
    assert_memory_equal(tn_text_str(&t), table, strlen(table));
}

/* `--plan` shows nodes, memory, and how long a step will take, if src/extra/forecast is built. */
TEST(a_plan_ends_with_the_time_of_a_step)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    const tn_model_plan *plan = golden_plan(arena, "lr", (const char *const[]){NULL});
    tn_diag diag = {0};
    const tn_binder b = {.arena = arena, .diag = &diag};
    tn_text t CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    assert_ok(tn_describe_graph(plan, &b, false, &t, &err), err.text);
    const char *rows = strstr(tn_text_str(&t), "\nrows   ");
    assert_non_null(rows);
    assert_non_null(strstr(rows, tn_is_absent("forecast")
                                     ? "\nthis build has no forecast; configure it with "
                                     : "\nexpected step: "));
}
