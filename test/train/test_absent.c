/* test_absent.c - a word of a part of src/extra that was not built is refused by that name, and
 * taken where it was built. The preset `lean` has none of the parts. */
#include "base/core/text.h"
#include "config/absent.h"
#include "config/diag.h"
#include "config/tree.h"
#include "io/source/remote.h"
#include "support/test.h"
#include "train/begin/warm_match.h"
#include "train/config/config.h"
#include "train/config/run_bind.h"
#include "train/job/eval_job.h"

/* Checks that a text says of `word` what this build has to say. */
static void check_said(const char *word, const char *text)
{
    char want[100];
    (void)snprintf(want, sizeof want, TN_ABSENT_FORM, word);
    fail_if(tn_is_absent(word) != (strstr(text, want) != NULL), "%s: %s", word, text);
}

TEST(a_part_that_was_not_built_is_named)
{
    static const struct {
        const char *word, *override;
    } rows[] = {{"vw", "data.format=vw"},          {"jsonl", "data.format=jsonl"},
                {"crb", "data.format=crb"},        {"onnx", "export.graph=[native, onnx]"},
                {"tsv", "export.dict=[tnd, tsv]"}, {"tensorboard", "log.tensorboard=true"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
        tn_diag diag CLEANUP(tn_diag_done) = {0};
        const char *const overrides[] = {rows[i].override};
        const tn_config_in in = {.fields = tn_run_fields,
                                 .path = "test/golden/deepfm.yaml",
                                 .overrides = overrides,
                                 .n_overrides = 1};
        tn_run *run = TN_NEW(arena, tn_run);
        const tn_tree *tree = tn_config_load(&in, arena, &diag);
        assert_non_null(tree);
        tn_run_bind(&(tn_binder){.arena = arena, .diag = &diag}, tree, run);
        check_said(rows[i].word, tn_text_str(&diag.text));
    }
}

TEST(so_are_models_of_other_programs_and_uris)
{
    static const char *const programs[] = {"vw", "xlearn", "tensornet"};
    static const tn_origin at = {.source = "test"};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    tn_error err = {0};
    bool is = false;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        tn_tree *from = tn_tree_new(arena, TN_TREE_MAP, at);
        tn_warm warm = {0};
        tn_tree_put(arena, from, programs[i], tn_tree_scalar(arena, "model", at));
        assert_int_equal(tn_warm_read_words(&warm, from, &err), TN_E_CONFIG);
        check_said(programs[i], err.text);
    }
    const tn_status status = tn_remotes()->is("s3://bucket/day.tsv", &is, &err);
    assert_int_equal(status, tn_is_absent("http") ? TN_E_DATA : TN_OK);
    assert_true(is || strstr(err.text, "this build has no URIs; configure it with -DTNET") != NULL);
}

TEST(so_are_parts_of_an_evaluation)
{
    static const char *const nodes[] = {"logit"};
    static const char *const words[] = {"npz", "compare"};
    const tn_eval_job_opts opts[] = {{.fetch = {1, nodes}}, {.compare = "other"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
        tn_error err = {0};
        tn_eval_job *job = NULL;
        tn_setup setup = {.arena = arena};
        const tn_status status = tn_eval_job_new(&job, &setup, &opts[i], &err);
        assert_int_equal(status, tn_is_absent(words[i]) ? TN_E_USAGE : TN_OK);
        check_said(words[i], err.text);
        tn_eval_job_free(job);
    }
}
