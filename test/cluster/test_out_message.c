/* test_out_message.c - buffers of messages: shared, given back, used again. */
#include "cluster/net/out_message.h"

#include "support/test.h"

TEST(a_parcel_comes_back_with_its_last_reference)
{
    tn_out_messages *pool = NULL;
    tn_out_message *p = NULL;
    tn_out_message *again = NULL;
    assert_int_equal(tn_out_messages_new(&pool, NULL), TN_OK);
    assert_int_equal(tn_out_message_take(&p, pool, 1000, NULL), TN_OK);
    assert_int_equal(p->frame.bytes, 1000);
    memset(tn_out_message_payload(p), 1, 1000);
    p->frame.step = 7;
    p->sealed = true;
    tn_out_message_hold(p);
    tn_out_message_drop(p);
    assert_int_equal(tn_out_message_take(&again, pool, 900, NULL), TN_OK);
    assert_ptr_not_equal(p, again); /* somebody still has it */
    tn_out_message_drop(again);
    tn_out_message_drop(p);
    tn_alloc_fail_at(1); /* what is there is used again */
    assert_int_equal(tn_out_message_take(&again, pool, 1200, NULL), TN_OK);
    tn_alloc_fail_at(0);
    assert_ptr_equal(again, p);
    assert_true(!again->sealed && again->frame.step == 0);
    tn_out_message_drop(again);
    tn_out_message_drop(NULL);
    tn_out_messages_free(pool);
    tn_out_messages_free(NULL);
}

TEST(what_cannot_be_had_is_told)
{
    tn_out_messages *pool = NULL;
    tn_out_message *p = NULL;
    tn_error err = {0};
    tn_alloc_fail_at(1);
    assert_int_equal(tn_out_messages_new(&pool, NULL), TN_E_MEMORY);
    assert_int_equal(tn_out_messages_new(&pool, NULL), TN_OK);
    tn_alloc_fail_at(1);
    assert_int_equal(tn_out_message_take(&p, pool, 10, NULL), TN_E_MEMORY);
    assert_null(p);
    tn_alloc_fail_at(0);
    assert_int_equal(tn_out_message_take(&p, pool, UINT64_C(1) << 30, &err), TN_E_LIMIT);
    assert_string_equal(err.text, "a message of 1073741824 bytes is longer than 1 GiB");
    assert_int_equal(tn_out_message_take(&p, pool, 0, NULL), TN_OK);
    tn_out_message_drop(p);
    tn_out_messages_free(pool);
}
