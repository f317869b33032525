/* test_zmqcalls.c - libzmq is found when it is there, and missed in words when it is not. */
#include "cluster/security/zmqcalls.h"
#include "support/test.h"

TEST(the_library_of_this_machine_is_loaded_whole)
{
    tn_zmq z;
    tn_error err = {0};
    assert_int_equal(tn_zmq_load(&z, &err), TN_OK);
    void *context = z.zmq_ctx_new();
    assert_non_null(context);
    assert_int_equal(z.zmq_ctx_get(context, ZMQ_IO_THREADS), 1);
    assert_int_equal(z.zmq_ctx_term(context), 0);
}

TEST(a_missing_library_is_a_sentence_that_says_what_to_install)
{
    tn_zmq z = {0};
    tn_error err = {0};
    assert_int_equal(tn_zmq_load_from(&z, "libno_such_thing.so.5", &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "libno_such_thing.so.5"));
    assert_non_null(strstr(err.text, "hint: install libzmq5"));
    assert_null(z.zmq_ctx_new);
}

TEST(a_library_without_the_calls_names_the_first_that_is_missing)
{
    tn_zmq z = {0};
    tn_error err = {0};
    assert_int_equal(tn_zmq_load_from(&z, "libm.so.6", &err), TN_E_CONFIG);
    assert_string_equal(err.text, "'libm.so.6' has no 'zmq_version'");
    assert_null(z.zmq_ctx_new);
}
