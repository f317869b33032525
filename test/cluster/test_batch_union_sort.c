/* test_batch_union_sort.c - runs of several ranks in one order, equal keys in rank order. */
#include "cluster/sync/batch_union_sort.h"

#include "base/math/rng.h"
#include "support/test.h"

enum { MOST = 400 };

static void check(const tn_member *m, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        const tn_member *a = &m[i - 1];
        assert_true(a->key <= m[i].key);
        if (a->key == m[i].key) {
            assert_true(a->group <= m[i].group);
        }
        if (tn_member_is_same(a, &m[i])) {
            assert_true(a->rank < m[i].rank);
        }
    }
}

/* Keys are few, so ranks have many in common. */
static void runs_become_one_and_equal_keys_stay_in_rank_order(void **state)
{
    (void)state;
    for (uint64_t turn = 0; turn < 300; turn++) {
        tn_member m[MOST];
        tn_member spare[MOST];
        uint64_t stream = tn_stream2(1, 2, turn);
        uint32_t n = 0;
        uint64_t sum = 0;
        for (uint32_t rank = 0; rank < 1 + turn % 17; rank++) {
            for (uint32_t k = 0; k < 40 && n < MOST; k++) {
                if (tn_unit(tn_draw(stream, n * 64U + k + rank * 10000U)) < 0.3) {
                    m[n] = (tn_member){
                        .key = k / 2, .group = k % 2, .rank = (uint16_t)rank, .index = n};
                    sum += m[n++].index;
                }
            }
        }
        tn_members_sort(m, spare, n);
        check(m, n);
        for (uint32_t i = 0; i < n; i++) {
            sum -= m[i].index;
        }
        assert_int_equal(sum, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_become_one_and_equal_keys_stay_in_rank_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
