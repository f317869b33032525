/* attacks.c - attacks by members: frames with a right checksum that are none of theirs to send. */
#include "cluster/attacks.h"

#include "base/core/clock.h"
#include "base/math/rng.h"

#include <errno.h>
#include <string.h>

static const uint64_t stay_most_ns = 2000000000;

enum { WAIT_MS = 20, NOISE_BYTES = 4096, PARTS = 100, MESSAGE_BYTES = TN_FRAME_HEAD + 8 };

uint32_t attack_count(void)
{
    return attack_n_strangers + attack_n_members;
}

const attack *attack_at(uint32_t i)
{
    TN_ASSERT(i < attack_count());
    return i < attack_n_strangers ? &attack_strangers[i] : &attack_members[i - attack_n_strangers];
}

/* A connection of the free rank. */
typedef struct member {
    tn_sockets *sockets;
    void *dealer;
    uint64_t incarnation;
} member;

static void open_as(const attack_on *on, const tn_security *security, uint64_t incarnation,
                    member *m)
{
    const tn_sockets_opts opts = {
        .rank = on->rank, .size = on->size, .incarnation = incarnation, .security = security};
    *m = (member){.incarnation = incarnation};
    tn_status status = tn_sockets_open(&m->sockets, on->z, &opts, NULL);
    status =
        status == TN_OK ? tn_sockets_dial(m->sockets, 0, &on->at, NULL, &m->dealer, NULL) : status;
    TN_ASSERT(status == TN_OK);
}

static void open_member(const attack_on *on, const tn_security *security, member *m)
{
    open_as(on, security, tn_clock_ns() | 1, m);
}

static void close_member(const member *m)
{
    tn_sockets_hang_up(m->sockets, m->dealer);
    tn_sockets_close(m->sockets);
}

/* What comes back is read and forgotten. */
static void drain(const attack_on *on, const member *m)
{
    char answer[256];
    while (on->z->zmq_recv(m->dealer, answer, sizeof answer, ZMQ_DONTWAIT) >= 0) {
    }
}

static void pause_for(const attack_on *on, const member *m, uint64_t ns)
{
    zmq_pollitem_t item = {.socket = m->dealer, .events = ZMQ_POLLIN};
    const uint64_t until = tn_clock_ns() + ns;
    for (uint64_t now = tn_clock_ns(); now < until && !attack_is_over(on); now = tn_clock_ns()) {
        const uint64_t ms = (until - now) / 1000000 + 1;
        (void)on->z->zmq_poll(&item, 1, ms < WAIT_MS ? (long)ms : WAIT_MS);
        drain(on, m);
    }
}

/* A message of one part, or of as many more as are wanted, once there is room for it. */
static void send(const attack_on *on, const member *m, const void *bytes, size_t size,
                 uint32_t more)
{
    zmq_pollitem_t item = {.socket = m->dealer, .events = ZMQ_POLLOUT};
    while (!attack_is_over(on) && on->z->zmq_poll(&item, 1, WAIT_MS) == 0) {
        drain(on, m);
    }
    if (attack_is_over(on) ||
        on->z->zmq_send(m->dealer, bytes, size, ZMQ_DONTWAIT | (more > 0 ? ZMQ_SNDMORE : 0)) < 0) {
        return;
    }
    for (; more > 0; more--) {
        (void)on->z->zmq_send(m->dealer, "more", 4, ZMQ_DONTWAIT | (more > 1 ? ZMQ_SNDMORE : 0));
    }
    (void)atomic_fetch_add(&on->score->strikes, 1);
    drain(on, m);
}

static tn_frame share(const attack_on *on, const member *m)
{
    return (tn_frame){.type = TN_FRAME_SHARE,
                      .rank = on->rank,
                      .job = on->job,
                      .session = on->session,
                      .incarnation = m->incarnation,
                      .sequence = 1,
                      .count = {0, 0, 1},
                      .bytes = 8};
}

static void send_again_and_again(const attack_on *on, const member *m, const tn_frame *f,
                                 uint32_t more)
{
    char message[MESSAGE_BYTES] = {0};
    tn_frame_seal(message, f);
    while (!attack_is_over(on)) {
        send(on, m, message, sizeof message, more);
        pause_for(on, m, on->pause_ns);
    }
}

static void run_replay(const attack_on *on)
{
    member m;
    open_member(on, on->member, &m);
    const tn_frame f = share(on, &m);
    send_again_and_again(on, &m, &f, 0);
    close_member(&m);
}

static void run_other_job(const attack_on *on)
{
    member m;
    open_member(on, on->member, &m);
    tn_frame f = share(on, &m);
    f.job++;
    send_again_and_again(on, &m, &f, 0);
    close_member(&m);
}

static void run_other_session(const attack_on *on)
{
    member m;
    open_member(on, on->member, &m);
    tn_frame f = share(on, &m);
    f.session++;
    send_again_and_again(on, &m, &f, 0);
    close_member(&m);
}

/* Says to be the one it talks to, or another one. */
static void run_other_rank(const attack_on *on)
{
    member m;
    open_member(on, on->member, &m);
    tn_frame f = share(on, &m);
    f.rank = on->rank - 1;
    send_again_and_again(on, &m, &f, 0);
    close_member(&m);
}

/* Says to be no start of its rank: no answer would find it. */
static void run_nobody(const attack_on *on)
{
    member m;
    open_as(on, on->member, 0, &m);
    const tn_frame f = share(on, &m);
    send_again_and_again(on, &m, &f, 0);
    close_member(&m);
}

static void run_many_parts(const attack_on *on)
{
    member m;
    open_member(on, on->member, &m);
    const tn_frame f = share(on, &m);
    send_again_and_again(on, &m, &f, PARTS);
    close_member(&m);
}

static void run_noise(const attack_on *on)
{
    char noise[NOISE_BYTES];
    member m;
    open_member(on, on->member, &m);
    for (uint64_t i = 0; !attack_is_over(on); i++) {
        const uint64_t x = tn_draw(tn_stream0(3), i);
        memset(noise, (int)(x & 0xff), sizeof noise);
        memcpy(noise, "TNF1\1", 6); /* the checksum is the first thing that is wrong */
        send(on, &m, noise, TN_FRAME_HEAD + x % (NOISE_BYTES - TN_FRAME_HEAD), 0);
        pause_for(on, &m, on->pause_ns);
    }
    close_member(&m);
}

/* Whoever is refused once gives up: libzmq tries the same key no more. So it is a new one each
 * time, which stays longer from time to time, for machines on which a handshake takes long. */
static void run_unlisted(const attack_on *on)
{
    uint64_t stay_ns = 10000000;
    while (!attack_is_over(on)) {
        member m;
        open_member(on, on->stranger, &m);
        const tn_frame f = share(on, &m);
        char message[MESSAGE_BYTES] = {0};
        tn_frame_seal(message, &f);
        const uint64_t until = tn_clock_ns() + stay_ns;
        while (!attack_is_over(on) && tn_clock_ns() < until) {
            (void)on->z->zmq_send(m.dealer, message, sizeof message, ZMQ_DONTWAIT);
            pause_for(on, &m, 1000000);
        }
        (void)atomic_fetch_add(&on->score->strikes, 1);
        stay_ns = stay_ns < stay_most_ns ? stay_ns + stay_ns / 8 : stay_ns;
        close_member(&m);
    }
}

const attack attack_members[] = {
    {"unlisted", ATTACK_UNLISTED, TN_DROP_NONE, run_unlisted},
    {"replay", ATTACK_MEMBER, TN_DROP_NONE, run_replay},
    {"parts", ATTACK_MEMBER, TN_DROP_NONE, run_many_parts},
    {"job", ATTACK_MEMBER, TN_DROP_JOB, run_other_job},
    {"session", ATTACK_MEMBER, TN_DROP_SESSION, run_other_session},
    {"rank", ATTACK_MEMBER, TN_DROP_RANK, run_other_rank},
    {"nobody", ATTACK_MEMBER, TN_DROP_RANK, run_nobody},
    {"noise", ATTACK_MEMBER, TN_DROP_CRC, run_noise},
};
const uint32_t attack_n_members = sizeof attack_members / sizeof attack_members[0];
