/* socketpeers.c - see socketpeers.h. */
#include "cluster/socketpeers.h"

#include "base/core/clock.h"
#include "cluster/keys.h"
#include "support/test.h"

void peers_open(peer *p, uint32_t rank, const tn_security_opts *opts)
{
    tn_error err = {0};
    *p = (peer){0};
    assert_ok(tn_security_init(&p->security, keys_zmq(), opts, &err), err.text);
    const tn_sockets_opts o = {
        .rank = rank, .size = 4, .incarnation = 0xabcdef + rank, .security = &p->security};
    assert_ok(tn_sockets_open(&p->sockets, keys_zmq(), &o, &err), err.text);
}

void peers_listen(peer *p, const tn_endpoint *e)
{
    tn_error err = {0};
    assert_ok(tn_sockets_listen(p->sockets, e, &p->router, p->at, &err), err.text);
}

void peers_dial(peer *p, const peer *to, uint32_t rank)
{
    peers_dial_watched(p, to, rank, NULL);
}

void peers_dial_watched(peer *p, const peer *to, uint32_t rank, tn_handshake_watch *watch)
{
    tn_error err = {0};
    tn_endpoint e;
    assert_int_equal(tn_endpoint_read(to->at, 0, &e, &err), TN_OK);
    assert_ok(tn_sockets_dial(p->sockets, rank, &e, watch, &p->dealer, &err), err.text);
}

void peers_close(peer *p)
{
    tn_sockets_hang_up(p->sockets, p->router);
    tn_sockets_hang_up(p->sockets, p->dealer);
    tn_sockets_close(p->sockets);
    tn_security_done(&p->security);
}

double peers_deadline(void)
{
    return tn_clock_s() + PEERS_DEADLINE_MS / 1e3;
}

bool peers_send(void *socket, const char *text, double until_s)
{
    zmq_pollitem_t item = {.socket = socket, .events = ZMQ_POLLOUT};
    while (tn_clock_s() < until_s) {
        if (keys_zmq()->zmq_poll(&item, 1, PEERS_SLICE_MS) == 1 &&
            keys_zmq()->zmq_send(socket, text, strlen(text), 0) >= 0) {
            return true;
        }
    }
    return false;
}

bool peers_receive(void *socket, bool has_id, received *out, double until_s)
{
    const tn_zmq *z = keys_zmq();
    zmq_pollitem_t item = {.socket = socket, .events = ZMQ_POLLIN};
    zmq_msg_t message;
    *out = (received){0};
    while (z->zmq_poll(&item, 1, PEERS_SLICE_MS) != 1) {
        if (tn_clock_s() >= until_s) {
            return false;
        }
    }
    if (has_id) {
        int size = z->zmq_recv(socket, out->id, sizeof out->id, 0);
        assert_in_range(size, 1, sizeof out->id);
        out->id_size = (size_t)size;
    }
    assert_int_equal(z->zmq_msg_init(&message), 0);
    int size = z->zmq_msg_recv(&message, socket, 0);
    assert_in_range(size, 0, sizeof out->text - 1);
    memcpy(out->text, z->zmq_msg_data(&message), (size_t)size);
    out->admitted = tn_zap_sender(z, &message, &out->whose);
    assert_int_equal(z->zmq_msg_close(&message), 0);
    return true;
}

void peers_deliver(peer *from, peer *to, const char *text, uint32_t whose)
{
    received r;
    assert_true(peers_send(from->dealer, text, peers_deadline()));
    assert_true(peers_receive(to->router, true, &r, peers_deadline()));
    assert_string_equal(r.text, text);
    assert_true(r.admitted);
    assert_int_equal(r.whose, whose);
}
