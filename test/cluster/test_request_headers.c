/* test_request_headers.c - the fixed fields of PULL, PUSH, ROWS and DENSE, and the bits of missing
 * keys.
 */
#include "cluster/wire/request_headers.h"
#include "ps/table/row.h"

#include "base/core/bytes.h"
#include "support/test.h"
#include "wire.h"

static const double reject[] = {-1, -0.0, HUGE_VAL, -HUGE_VAL, (double)NAN};
enum { STRANGE = sizeof reject / sizeof reject[0] };

TEST(a_pull_tells_its_batch)
{
    char bytes[TN_PULL_PARAMS];
    tn_pull_params p = {2, 1.5};
    memcpy(bytes, &p, TN_PULL_PARAMS);
    wire_equals(bytes, sizeof bytes, "0200000000000000000000000000f83f");
    p = (tn_pull_params){0};
    assert_int_equal(tn_pull_params_get(&p, bytes), TN_DROP_NONE);
    assert_true(p.examples == 2 && p.weight_sum > 1.4 && p.weight_sum < 1.6);
    for (uint32_t i = 0; i < STRANGE; i++) {
        memcpy(bytes, &(tn_pull_params){9, reject[i]}, TN_PULL_PARAMS);
        assert_int_equal(tn_pull_params_get(&p, bytes), TN_DROP_PARAMS);
        assert_int_equal(p.examples, 2);
    }
    memcpy(bytes, &(tn_pull_params){0, 0}, TN_PULL_PARAMS); /* an empty batch */
    assert_int_equal(tn_pull_params_get(&p, bytes), TN_DROP_NONE);
    memcpy(bytes, &(tn_pull_params){0, 1}, TN_PULL_PARAMS); /* weight of nothing */
    assert_int_equal(tn_pull_params_get(&p, bytes), TN_DROP_PARAMS);
}

TEST(a_push_names_its_pull)
{
    char bytes[TN_PUSH_PARAMS];
    tn_push_params p = {7, .5, 20000, 2, -1.5};
    memcpy(bytes, &p, TN_PUSH_PARAMS);
    wire_equals(bytes, sizeof bytes,
                "0700000000000000000000000000e03f204e000000000040000000000000f8bf");
    p = (tn_push_params){0};
    assert_int_equal(tn_push_params_get(&p, bytes), TN_DROP_NONE);
    assert_true(p.pull == 7 && p.day == 20000 && p.norm > 1.9F && p.norm < 2.1F &&
                p.lr_factor > .4 && p.lr_factor < .6 && p.loss < -1.4);
    tn_store_u32(bytes + 20, 0x7f800000); /* infinite */
    assert_int_equal(tn_push_params_get(&p, bytes), TN_DROP_PARAMS);
    memcpy(bytes, &(tn_push_params){9, .5, TN_ROW_DAY_MAX + 1, 0, 0}, TN_PUSH_PARAMS);
    assert_int_equal(tn_push_params_get(&p, bytes), TN_DROP_PARAMS);
    memcpy(bytes, &(tn_push_params){0, .5, 1, 0, 0}, TN_PUSH_PARAMS);
    assert_int_equal(tn_push_params_get(&p, bytes), TN_DROP_PARAMS);
    for (uint32_t i = 0; i < STRANGE; i++) {
        memcpy(bytes, &(tn_push_params){9, reject[i], 1, 0, 0}, TN_PUSH_PARAMS);
        assert_int_equal(tn_push_params_get(&p, bytes), TN_DROP_PARAMS);
        assert_int_equal(p.pull, 7);
    }
}

TEST(rows_tell_the_joint_batch)
{
    char bytes[TN_ROWS_PARAMS];
    tn_rows_params p = {4, 9, 1.5};
    memcpy(bytes, &p, TN_ROWS_PARAMS);
    wire_equals(bytes, sizeof bytes, "04000000000000000900000000000000000000000000f83f");
    p = (tn_rows_params){0};
    assert_int_equal(tn_rows_params_get(&p, bytes), TN_DROP_NONE);
    assert_true(p.first == 4 && p.examples == 9 && p.weight_sum > 1.4 && p.weight_sum < 1.6);
    for (uint32_t i = 0; i < STRANGE; i++) {
        memcpy(bytes, &(tn_rows_params){0, 9, reject[i]}, TN_ROWS_PARAMS);
        assert_int_equal(tn_rows_params_get(&p, bytes), TN_DROP_PARAMS);
        assert_int_equal(p.first, 4);
    }
    memcpy(bytes, &(tn_rows_params){0, 0, 0}, TN_ROWS_PARAMS); /* nobody has any */
    assert_int_equal(tn_rows_params_get(&p, bytes), TN_DROP_NONE);
    memcpy(bytes, &(tn_rows_params){0, 0, 1}, TN_ROWS_PARAMS); /* weight of nothing */
    assert_int_equal(tn_rows_params_get(&p, bytes), TN_DROP_PARAMS);
    memcpy(bytes, &(tn_rows_params){10, 9, 1}, TN_ROWS_PARAMS); /* behind the last */
    assert_int_equal(tn_rows_params_get(&p, bytes), TN_DROP_PARAMS);
}

TEST(a_dense_answer_tells_norm_and_staleness)
{
    char bytes[TN_DENSE_PARAMS];
    tn_dense_params p = {1.5, 3, -.5};
    memcpy(bytes, &p, TN_DENSE_PARAMS);
    wire_equals(bytes, sizeof bytes, "000000000000f83f0300000000000000000000000000e0bf");
    p = (tn_dense_params){0};
    assert_int_equal(tn_dense_params_get(&p, bytes), TN_DROP_NONE);
    assert_true(p.staleness == 3 && p.grad_norm > 1.4 && p.grad_norm < 1.6 && p.loss < -.4);
    for (uint32_t i = 0; i < STRANGE; i++) {
        memcpy(bytes, &(tn_dense_params){reject[i], 9, 0}, TN_DENSE_PARAMS);
        assert_int_equal(tn_dense_params_get(&p, bytes), TN_DROP_PARAMS);
        assert_int_equal(p.staleness, 3);
    }
}

TEST(shared_sums_are_finite)
{
    static const double sums[] = {1.5, -0.0, -1e300};
    char bytes[sizeof sums];
    double got[3] = {7, 7, 7};
    memcpy(bytes, sums, 3 * sizeof(double));
    wire_equals(bytes, 8, "000000000000f83f");
    for (uint32_t i = 2; i < STRANGE; i++) { /* those that are not finite */
        for (uint32_t at = 0; at < 3; at++) {
            tn_store_f64(bytes + (size_t)8 * at, reject[i]);
            assert_int_equal(tn_share_get(got, 3, bytes), TN_DROP_VALUES);
            assert_true(got[0] >= 7 && got[0] <= 7);
            tn_store_f64(bytes + (size_t)8 * at, sums[at]);
        }
    }
    assert_int_equal(tn_share_get(got, 3, bytes), TN_DROP_NONE);
    assert_memory_equal(got, sums, sizeof sums);
}

/* Of any number of keys, to the places of an order. */
TEST(missing_keys_are_told_by_bits)
{
    for (uint32_t n = 0; n < 40; n++) {
        bool missing[40];
        bool got[40] = {false};
        uint32_t index[40];
        char bits[5 + 1];
        memset(bits, 0x55, sizeof bits);
        for (uint32_t i = 0; i < n; i++) {
            missing[i] = i % 3 == 1;
            index[i] = n - 1 - i;
        }
        tn_missing_put(bits, missing, n);
        assert_int_equal(bits[(n + 7) / 8], 0x55);
        assert_int_equal(tn_missing_get(got, (tn_key_order){n, index}, bits), TN_DROP_NONE);
        for (uint32_t i = 0; i < n; i++) {
            assert_int_equal(got[n - 1 - i], missing[i]);
        }
        if (n % 8 != 0) {
            bits[n / 8] = (char)(bits[n / 8] ^ 0x80);
            assert_int_equal(tn_missing_get(got, (tn_key_order){n, index}, bits), TN_DROP_MISSING);
        }
    }
}
