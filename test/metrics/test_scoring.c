/* test_scoring.c - the vectorised loop against base/math/fmath.c and plain arithmetic, row by row.
 */
#include "metrics/metrics_state.h"

#include "base/math/fmath.h"
#include "support/test.h"

enum { MANY = 200000 };

static tn_score_block block;

/* Within one of the last of 32 binary places: the two may round a tie of theirs differently. */
static void assert_term(uint32_t row, tn_sum k, double x)
{
    double got = (double)tn_score_term(&block, k, row);
    double want = rint(x * 0x1p32);
    fail_if(!(fabs(got - want) <= 1 + want * 0x1p-50),
            "term %u of z %a, y %g, w %g: got %.17g, want %.17g", (unsigned)k, block.z[row],
            block.y[row], block.w[row], got, want);
}

static void check_block(const tn_scored *rows, uint32_t from)
{
    for (uint32_t i = 0; i < block.n; i++) {
        double z = (double)rows->logit[from + i];
        double y = (double)rows->label[from + i];
        double w = (double)rows->weight[from + i];
        double p = tn_sigmoid(z);
        assert_term(i, TN_SUM_W, w);
        assert_term(i, TN_SUM_WY, w * y);
        assert_term(i, TN_SUM_WP, w * p);
        assert_term(i, TN_SUM_WL, w * (fmax(z, 0) - z * y + tn_log1p(tn_exp(-fabs(z)))));
        assert_term(i, TN_SUM_SE, w * (p - y) * (p - y));
        assert_term(i, TN_SUM_AE, w * fabs(p - y));
        assert_term(i, TN_SUM_APE, y > 0 ? w * fabs(p - y) / y : 0);
        assert_term(i, TN_SUM_WNZ, y > 0 ? w : 0);
        double bin = fmin(fmax(floor((z + 16) * 0x1p15), 0), TN_BINS - 1);
        assert_int_equal(block.bin[i], (int32_t)bin);
        assert_int_equal(block.cell[i], llrint(w * 65536));
        assert_true(fabs(block.band[i] - fmin(floor(p * 20), 19)) == 0);
    }
}

TEST(every_term_equals_plain_arithmetic)
{
    static float z[MANY];
    static float y[MANY];
    static float w[MANY];
    static const float edges[] = {0,      -0.0F, 1e-30F, -1e-30F, 15.99999F, 16, -16,
                                  -1e-6F, 88,    -88,    709,     -745,      800};
    print_message("seed 51\n");
    uint64_t s = tn_stream2(51, TN_RNG_GENERATE, 0);
    for (uint32_t i = 0; i < MANY; i++) {
        uint64_t at = 3 * (uint64_t)i;
        z[i] = (float)(5 * tn_normal(tn_draw(s, at)));
        double u = tn_unit(tn_draw(s, at + 1));
        y[i] = u < .4 ? 0 : u < .8 ? 1 : (float)(u - .8) * 5;
        w[i] = (float)tn_exp(3 * tn_normal(tn_draw(s, at + 2)));
    }
    memcpy(z, edges, sizeof edges);
    tn_scoring scoring = tn_scoring_of(&(tn_metrics_opts){0});
    tn_scored rows = {.n = MANY, .logit = z, .label = y, .weight = w};
    for (uint32_t from = 0; from < MANY; from += TN_SCORE_BLOCK) {
        assert_int_equal(tn_score_block_fill(&block, &scoring, &rows, from, NULL), TN_OK);
        check_block(&rows, from);
    }
}

TEST(huge_terms_make_a_block_wide_and_small_ones_agree)
{
    static float z[TN_SCORE_BLOCK];
    static float y[TN_SCORE_BLOCK];
    static float w[TN_SCORE_BLOCK];
    for (uint32_t i = 0; i < TN_SCORE_BLOCK; i++) {
        z[i] = (float)i / 16 - 4;
        y[i] = i % 3 == 0 ? 1 : 0;
        w[i] = 1 + (float)i / 64;
    }
    tn_scoring scoring = tn_scoring_of(&(tn_metrics_opts){0});
    tn_scored rows = {.n = TN_SCORE_BLOCK, .logit = z, .label = y, .weight = w};
    assert_int_equal(tn_score_block_fill(&block, &scoring, &rows, 0, NULL), TN_OK);
    assert_false(block.wide);
    tn_u128 narrow = tn_score_block_total(&block, TN_SUM_WL);
    block.wide = true; /* the same terms the other way */
    assert_true(tn_score_block_total(&block, TN_SUM_WL) == narrow);
    w[5] = 0x1p20F;
    assert_int_equal(tn_score_block_fill(&block, &scoring, &rows, 0, NULL), TN_OK);
    assert_true(block.wide);
    check_block(&rows, 0);
    z[5] = 3e38F; /* w * loss is beyond 2^63 and counts as that */
    y[5] = 0;
    assert_int_equal(tn_score_block_fill(&block, &scoring, &rows, 0, NULL), TN_OK);
    assert_true(tn_score_term(&block, TN_SUM_WL, 5) == (tn_u128)1 << 95);
}

TEST(flags_tell_of_soft_labels_and_weights)
{
    const float z[3] = {0, 1, 2};
    const float hard[3] = {0, 1, 1};
    const float soft[3] = {0, 1, .5F};
    const float w[3] = {1, 1, 2};
    tn_scoring scoring = tn_scoring_of(&(tn_metrics_opts){0});
    tn_scored rows = {.n = 3, .logit = z, .label = hard};
    assert_int_equal(tn_score_block_fill(&block, &scoring, &rows, 0, NULL), TN_OK);
    assert_false(block.soft || block.weighted);
    assert_int_equal(block.n, 3);
    rows.label = soft;
    rows.weight = w;
    assert_int_equal(tn_score_block_fill(&block, &scoring, &rows, 0, NULL), TN_OK);
    assert_true(block.soft && block.weighted);
    assert_int_equal(tn_score_block_fill(&block, &scoring, &rows, 2, NULL), TN_OK);
    assert_int_equal(block.n, 1);
}
