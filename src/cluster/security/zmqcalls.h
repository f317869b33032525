/* zmqcalls.h - libzmq, loaded when there are peers to talk to.
 *
 * No program is linked with it: its C++ runtime, Kerberos and multicast libraries would cost every
 * start of every program milliseconds and megabytes, and most runs are one process. The header is
 * needed to build, the library to run with peers.
 *
 *     tn_zmq z;
 *     TN_TRY(tn_zmq_load(&z, err));
 *     void *context = z.zmq_ctx_new();
 *
 * The functions, their arguments and their errno are those of zmq.h. Libraries before 4.3.3 are
 * refused: strangers can run code in a process that listens with them, or stall it (CVE-2019-6250,
 * CVE-2019-13132, CVE-2020-15166). A tn_zmq is a copy of addresses: copy it freely, any thread.
 */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>
#include <zmq.h>

#if ZMQ_VERSION < ZMQ_MAKE_VERSION(4, 3, 3)
#error "libzmq 4.3.3 or newer is needed"
#endif

#define TN_ZMQ_CALLS(CALL)                                                                         \
    CALL(zmq_version)                                                                              \
    CALL(zmq_has)                                                                                  \
    CALL(zmq_strerror)                                                                             \
    CALL(zmq_ctx_new)                                                                              \
    CALL(zmq_ctx_set)                                                                              \
    CALL(zmq_ctx_get)                                                                              \
    CALL(zmq_ctx_shutdown)                                                                         \
    CALL(zmq_ctx_term)                                                                             \
    CALL(zmq_socket)                                                                               \
    CALL(zmq_close)                                                                                \
    CALL(zmq_setsockopt)                                                                           \
    CALL(zmq_getsockopt)                                                                           \
    CALL(zmq_bind)                                                                                 \
    CALL(zmq_connect)                                                                              \
    CALL(zmq_disconnect)                                                                           \
    CALL(zmq_socket_monitor)                                                                       \
    CALL(zmq_poll)                                                                                 \
    CALL(zmq_send)                                                                                 \
    CALL(zmq_recv)                                                                                 \
    CALL(zmq_msg_init)                                                                             \
    CALL(zmq_msg_init_size)                                                                        \
    CALL(zmq_msg_init_data)                                                                        \
    CALL(zmq_msg_send)                                                                             \
    CALL(zmq_msg_recv)                                                                             \
    CALL(zmq_msg_close)                                                                            \
    CALL(zmq_msg_move)                                                                             \
    CALL(zmq_msg_data)                                                                             \
    CALL(zmq_msg_size)                                                                             \
    CALL(zmq_msg_more)                                                                             \
    CALL(zmq_msg_gets)                                                                             \
    CALL(zmq_curve_keypair)                                                                        \
    CALL(zmq_curve_public)                                                                         \
    CALL(zmq_z85_encode)                                                                           \
    CALL(zmq_z85_decode)

#define TN_ZMQ_MEMBER(name) __typeof__ (&(name))(name);

typedef struct tn_zmq {
    TN_ZMQ_CALLS(TN_ZMQ_MEMBER)
} tn_zmq;

/* Loads libzmq. TN_E_CONFIG, with what to install, when there is no library or one that is too
 * old. */
tn_status tn_zmq_load(tn_zmq *out, tn_error *err) TN_MUST_USE;

/* Loads it from another file: for tests. */
tn_status tn_zmq_load_from(tn_zmq *out, const char *file, tn_error *err) TN_MUST_USE;
