/* attacksraw.c - attacks by strangers, byte by byte: what anybody can do who reaches the port. */
#include "cluster/attacks.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/math/rng.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    WAIT_MS = 20,
    GREETING = 64, /* of ZMTP 3, RFC 23 */
    SIGNATURE = 10,
    NOISE_BYTES = 100 << 10,
    SLOW = 20, /* connections at a time */
    SLOW_MS = 100,
    FLAG_MORE = 1,
    FLAG_LARGE = 2,
    FLAG_COMMAND = 4,
};

/* ---- a connection ---- */

static int connect_to(int family, const void *address, socklen_t size)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, address, size) != 0 && errno != EINPROGRESS) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* Below 0: not this time. */
static int dial(const attack_on *on)
{
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    struct sockaddr_in ip = {.sin_family = AF_INET, .sin_port = htons((uint16_t)on->at.port)};
    int fd;
    if (on->at.is_ipc) {
        memcpy(path.sun_path, on->at.path, sizeof path.sun_path);
        fd = connect_to(AF_UNIX, &path, sizeof path);
    } else {
        ip.sin_addr.s_addr = inet_addr(on->at.host);
        fd = connect_to(AF_INET, &ip, sizeof ip);
    }
    if (fd >= 0) {
        (void)atomic_fetch_add(&on->score->strikes, 1);
    } else {
        (void)poll(NULL, 0, 1); /* no descriptors, or the queue of the listener is full */
    }
    return fd;
}

/* Whether the other side has said its last word. */
static bool await(int fd, short events, int ms)
{
    struct pollfd p = {.fd = fd, .events = (short)(events | POLLRDHUP)};
    return poll(&p, 1, ms) > 0 && (p.revents & (POLLRDHUP | POLLERR | POLLHUP)) != 0;
}

/* False: the other side does not want it, or the attack is over. */
static bool send_all(const attack_on *on, int fd, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0 && !attack_is_over(on)) {
        ssize_t n = send(fd, at, size, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            return false;
        }
        if (n < 0 && await(fd, POLLOUT, WAIT_MS)) {
            return false; /* who does not read any more does not say so, either */
        }
        if (n < 0) {
            continue;
        }
        at += n;
        size -= (size_t)n;
    }
    return size == 0;
}

/* False: closed, or the attack is over. */
static bool receive(const attack_on *on, int fd, uint8_t *bytes, size_t size)
{
    while (size > 0 && !attack_is_over(on)) {
        ssize_t n = recv(fd, bytes, size, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            return false;
        }
        if (n < 0) {
            (void)await(fd, POLLIN, WAIT_MS);
            continue;
        }
        bytes += n;
        size -= (size_t)n;
    }
    return size == 0;
}

/* Whether the other side has closed it by now; what it said is read. */
static bool is_cut(int fd)
{
    uint8_t said[1000];
    ssize_t n;
    do {
        n = recv(fd, said, sizeof said, 0);
    } while (n > 0 || (n < 0 && errno == EINTR));
    return n == 0 || errno != EAGAIN;
}

static void take_breath(const attack_on *on)
{
    if (on->pause_ns > 0) {
        (void)poll(NULL, 0, (int)(on->pause_ns / 1000000));
    }
}

static void hang_up(const attack_on *on, int fd, bool cut)
{
    (void)atomic_fetch_add(&on->score->cuts, cut);
    (void)close(fd);
    take_breath(on);
}

/* Waits until the other side has had enough. */
static void await_cut(const attack_on *on, int fd)
{
    bool cut = is_cut(fd);
    while (!cut && !attack_is_over(on)) {
        (void)await(fd, POLLIN, WAIT_MS);
        cut = is_cut(fd);
    }
    hang_up(on, fd, cut);
}

/* ---- ZMTP by hand ---- */

static void greet(uint8_t out[GREETING], const char *mechanism)
{
    static const uint8_t begin[] = {0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0};
    memset(out, 0, GREETING);
    memcpy(out, begin, sizeof begin);
    for (size_t i = 0; mechanism[i] != '\0'; i++) {
        out[sizeof begin + i] = (uint8_t)mechanism[i];
    }
}

static const char ready[] = "\4\x1c\5READY\13Socket-Type\0\0\0\6DEALER";

/* Through greeting and handshake of a connection without keys. */
static bool enter(const attack_on *on, int fd)
{
    uint8_t bytes[GREETING];
    uint8_t rest[256];
    greet(bytes, "NULL");
    return send_all(on, fd, bytes, GREETING) && receive(on, fd, rest, GREETING) &&
           send_all(on, fd, ready, sizeof ready - 1) && receive(on, fd, rest, 2) &&
           receive(on, fd, rest + 2, rest[1]);
}

/* As far as somebody without a key gets. */
static bool come_near(const attack_on *on, int fd)
{
    uint8_t bytes[GREETING];
    greet(bytes, "CURVE");
    return on->has_keys ? send_all(on, fd, bytes, GREETING) && receive(on, fd, bytes, GREETING)
                        : enter(on, fd);
}

/* ---- attacks ---- */

static void run_garbage(const attack_on *on)
{
    static const uint64_t stream = UINT64_C(0x9a5ba9e);
    uint64_t *noise = tn_alloc(NOISE_BYTES / sizeof *noise, sizeof *noise, "noise");
    for (uint64_t i = 0; !attack_is_over(on); i++) {
        for (uint64_t k = 0; k < NOISE_BYTES / sizeof *noise; k++) {
            noise[k] = tn_draw(stream, (i % 64) << 32 | k);
        }
        int fd = dial(on);
        if (fd >= 0) {
            const bool whole = send_all(on, fd, noise, NOISE_BYTES);
            if (whole) {
                await_cut(on, fd);
            } else {
                hang_up(on, fd, !attack_is_over(on));
            }
        }
    }
    tn_free(noise);
}

/* A frame, or the first command of a handshake, of 2^62 bytes. */
static void run_huge(const attack_on *on)
{
    uint8_t head[9] = {0, 0x40};
    head[0] = on->has_keys ? FLAG_COMMAND | FLAG_LARGE : FLAG_LARGE;
    while (!attack_is_over(on)) {
        int fd = dial(on);
        if (fd >= 0) {
            (void)(come_near(on, fd) && send_all(on, fd, head, sizeof head));
            await_cut(on, fd);
        }
    }
}

/* Parts of a message that never ends. */
static void run_endless(const attack_on *on)
{
    enum { PART = 8192, HEAD = 9 };
    static const uint8_t part[HEAD + PART] = {FLAG_MORE | FLAG_LARGE, 0, 0, 0, 0, 0, 0, 0x20, 0};
    while (!attack_is_over(on)) {
        int fd = dial(on);
        uint64_t sent = 0;
        bool open = fd >= 0 && come_near(on, fd);
        while (open && (on->flood_bytes == 0 || sent < on->flood_bytes)) {
            open = send_all(on, fd, part, sizeof part);
            sent += sizeof part;
            if (sent % (64 * sizeof part) == 0) {
                take_breath(on);
            }
        }
        if (fd >= 0) {
            hang_up(on, fd, !open && !attack_is_over(on));
        }
    }
}

/* Connections that say nothing; those that are closed are opened again. */
static void run_idle(const attack_on *on)
{
    struct pollfd *p = tn_alloc(on->idle, sizeof *p, "connections");
    for (uint32_t i = 0; i < on->idle; i++) {
        p[i].fd = -1;
    }
    while (!attack_is_over(on)) {
        for (uint32_t i = 0; i < on->idle && !attack_is_over(on); i++) {
            if (p[i].fd >= 0 && p[i].revents != 0 && is_cut(p[i].fd)) {
                (void)atomic_fetch_add(&on->score->cuts, 1);
                (void)close(p[i].fd);
                p[i].fd = -1;
            }
            if (p[i].fd < 0) {
                p[i] = (struct pollfd){.fd = dial(on), .events = POLLIN};
            }
        }
        (void)poll(p, on->idle, WAIT_MS);
    }
    for (uint32_t i = 0; i < on->idle; i++) {
        if (p[i].fd >= 0) {
            (void)close(p[i].fd);
        }
    }
    tn_free(p);
}

/* A greeting of one byte every now and then. */
static void run_slow(const attack_on *on)
{
    int fd[SLOW];
    uint32_t said[SLOW] = {0};
    uint8_t greeting[GREETING];
    greet(greeting, on->has_keys ? "CURVE" : "NULL");
    for (uint32_t i = 0; i < SLOW; i++) {
        fd[i] = -1;
    }
    for (uint64_t next = 0; !attack_is_over(on);) {
        const uint64_t now = tn_clock_ns();
        if (now < next) {
            (void)poll(NULL, 0, WAIT_MS);
            continue;
        }
        next = now + SLOW_MS * UINT64_C(1000000);
        for (uint32_t i = 0; i < SLOW; i++) {
            if (fd[i] >= 0 && is_cut(fd[i])) {
                (void)atomic_fetch_add(&on->score->cuts, 1);
                (void)close(fd[i]);
                fd[i] = -1;
            }
            if (fd[i] < 0) {
                fd[i] = dial(on);
                said[i] = 0;
            }
            if (fd[i] >= 0) {
                (void)send(fd[i], &greeting[said[i]++ % GREETING], 1, MSG_NOSIGNAL);
            }
        }
    }
    for (uint32_t i = 0; i < SLOW; i++) {
        if (fd[i] >= 0) {
            (void)close(fd[i]);
        }
    }
}

/* One protocol after the other, none of which is spoken there. */
static void speak(const attack_on *on, const void *bytes, size_t size)
{
    int fd = dial(on);
    if (fd >= 0) {
        (void)send_all(on, fd, bytes, size);
        await_cut(on, fd);
    }
}

static void run_zmtp1(const attack_on *on)
{
    static const uint8_t said[] = {1, 0, 5, 0, 'a', 'b', 'c', 'd'};
    while (!attack_is_over(on)) {
        speak(on, said, sizeof said);
    }
}

static void run_zmtp2(const attack_on *on)
{
    static const uint8_t said[] = {0xff, 0, 0, 0, 0, 0, 0,   0,   1,   0x7f,
                                   1,    5, 0, 0, 0, 4, 'a', 'b', 'c', 'd'};
    while (!attack_is_over(on)) {
        speak(on, said, sizeof said);
    }
}

/* Where keys are used without any, else with them. */
static void run_other_mechanism(const attack_on *on)
{
    uint8_t said[GREETING + sizeof ready - 1];
    greet(said, on->has_keys ? "NULL" : "CURVE");
    memcpy(said + GREETING, ready, sizeof ready - 1);
    while (!attack_is_over(on)) {
        speak(on, said, sizeof said);
    }
}

static void run_plain(const attack_on *on)
{
    static const char hello[] = "\4\16\5HELLO\3abc\3abc";
    uint8_t said[GREETING + sizeof hello - 1];
    greet(said, "PLAIN");
    memcpy(said + GREETING, hello, sizeof hello - 1);
    while (!attack_is_over(on)) {
        speak(on, said, sizeof said);
    }
}

const attack attack_strangers[] = {
    {"garbage", ATTACK_STRANGER, TN_DROP_NONE, run_garbage},
    {"huge", ATTACK_STRANGER, TN_DROP_NONE, run_huge},
    {"endless", ATTACK_STRANGER, TN_DROP_NONE, run_endless},
    {"idle", ATTACK_STRANGER, TN_DROP_NONE, run_idle},
    {"slow", ATTACK_STRANGER, TN_DROP_NONE, run_slow},
    {"zmtp1", ATTACK_STRANGER, TN_DROP_NONE, run_zmtp1},
    {"zmtp2", ATTACK_STRANGER, TN_DROP_NONE, run_zmtp2},
    {"mechanism", ATTACK_STRANGER, TN_DROP_NONE, run_other_mechanism},
    {"plain", ATTACK_STRANGER, TN_DROP_NONE, run_plain},
};
const uint32_t attack_n_strangers = sizeof attack_strangers / sizeof attack_strangers[0];
