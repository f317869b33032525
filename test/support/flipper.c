/* flipper.c - see flipper.h. */
#include "support/flipper.h"

#include "support/test.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAIRS = 16, CHUNK = 16 << 10, LOOK_MS = 20 };

/* A connection: fd[0] who has dialled, fd[1] to whom; fd[0] is -1 where there is none. */
typedef struct pair {
    int fd[2];
    uint32_t number;
    uint64_t passed[2]; /* bytes that came from fd[0], from fd[1] */
} pair;

struct flipper {
    int listener;
    uint32_t port, to;
    const flip *at;
    uint32_t n_at;
    double rate;
    uint64_t stream, drawn;
    pair pairs[PAIRS];
    _Atomic uint32_t flips, connections;
    atomic_bool stop;
    pthread_t thread;
};

static struct sockaddr_in here(uint32_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
}

static void end(pair *p)
{
    (void)close(p->fd[0]);
    (void)close(p->fd[1]);
    p->fd[0] = -1;
}

static void let_in(flipper *f)
{
    const struct sockaddr_in at = here(f->to);
    const void *address = &at;
    const int in = accept(f->listener, NULL, NULL);
    const int out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pair *p = f->pairs;
    while (p < f->pairs + PAIRS && p->fd[0] >= 0) {
        p++;
    }
    if (in < 0 || out < 0 || p == f->pairs + PAIRS || connect(out, address, sizeof at) != 0) {
        (void)close(in);
        (void)close(out);
        return;
    }
    *p = (pair){.fd = {in, out}, .number = atomic_fetch_add(&f->connections, 1)};
}

static double draw(flipper *f)
{
    return tn_open(tn_draw(f->stream, f->drawn++));
}

static void turn(flipper *f, char *byte)
{
    *byte = (char)(*byte ^ (1 << (uint32_t)(8 * draw(f))));
    (void)atomic_fetch_add(&f->flips, 1);
}

static bool send_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL);
        if (n <= 0) {
            return false;
        }
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

static void pass(flipper *f, pair *p, uint32_t side)
{
    char bytes[CHUNK];
    const ssize_t got = recv(p->fd[side], bytes, sizeof bytes, 0);

    if (got <= 0) {
        end(p);
        return;
    }
    const uint64_t from = p->passed[side];
    p->passed[side] += (uint64_t)got;
    for (uint32_t i = 0; i < f->n_at; i++) {
        const flip *x = &f->at[i];
        if (x->connection == p->number && x->back == (side == 1) && x->byte >= from &&
            x->byte < p->passed[side]) {
            turn(f, bytes + (x->byte - from));
        }
    }
    if (draw(f) < f->rate) {
        turn(f, bytes + (size_t)((double)got * draw(f)));
    }
    if (!send_all(p->fd[1 - side], bytes, (size_t)got)) {
        end(p);
    }
}

static void *run(void *arg)
{
    flipper *f = arg;
    while (!atomic_load(&f->stop)) {
        struct pollfd item[1 + 2 * PAIRS] = {{.fd = f->listener, .events = POLLIN}};
        for (uint32_t i = 0; i < PAIRS; i++) {
            for (uint32_t side = 0; side < 2; side++) {
                const bool stands = f->pairs[i].fd[0] >= 0;
                item[1 + 2 * i + side] =
                    (struct pollfd){.fd = stands ? f->pairs[i].fd[side] : -1, .events = POLLIN};
            }
        }
        (void)poll(item, 1 + 2 * PAIRS, LOOK_MS);
        for (uint32_t i = 0; i < 2 * PAIRS; i++) {
            if (item[1 + i].revents != 0 && f->pairs[i / 2].fd[0] >= 0) {
                pass(f, &f->pairs[i / 2], i % 2);
            }
        }
        if ((item[0].revents & POLLIN) != 0) {
            let_in(f);
        }
    }
    return NULL;
}

flipper *flipper_open(uint32_t to, const flip *at, uint32_t n, double rate, uint64_t seed)
{
    flipper *f = NULL;
    struct sockaddr_in own = here(0);
    void *address = &own;
    socklen_t size = sizeof own;
    assert_int_equal(TN_ALLOC(f, 1, "a proxy", NULL), TN_OK);
    f->to = to;
    f->at = at;
    f->n_at = n;
    f->rate = rate;
    f->stream = tn_stream0(seed);
    for (uint32_t i = 0; i < PAIRS; i++) {
        f->pairs[i].fd[0] = -1;
    }
    f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(f->listener >= 0);
    assert_int_equal(bind(f->listener, address, sizeof own), 0);
    assert_int_equal(listen(f->listener, PAIRS), 0);
    assert_int_equal(getsockname(f->listener, address, &size), 0);
    f->port = ntohs(own.sin_port);
    assert_int_equal(pthread_create(&f->thread, NULL, run, f), 0);
    return f;
}

void flipper_close(flipper *f)
{
    atomic_store(&f->stop, true);
    (void)pthread_join(f->thread, NULL);
    for (uint32_t i = 0; i < PAIRS; i++) {
        if (f->pairs[i].fd[0] >= 0) {
            end(&f->pairs[i]);
        }
    }
    (void)close(f->listener);
    tn_free(f);
}

uint32_t flipper_port(const flipper *f)
{
    return f->port;
}

uint32_t flipper_flips(const flipper *f)
{
    return atomic_load(&f->flips);
}

uint32_t flipper_connections(const flipper *f)
{
    return atomic_load(&f->connections);
}
