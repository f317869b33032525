/* redis.c - a connection to Redis: what is sent, and the answers that come meanwhile. */
#include "io/dict/redis.h"

#include "base/core/clock.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { CONNECT_S = 10, ANSWER_S = 30, POLL_MS = 100, ANSWER_MAX = 512 };

typedef struct connection {
    int fd; /* -1: none */
    char where[2 * TN_REDIS_WORD];
    const atomic_bool *stop;
    uint64_t sent, answered; /* commands */
    char line[ANSWER_MAX];   /* of an answer that has begun; longer ones are cut */
    size_t size;
} connection;

/* ---- where to ---- */

/* out := from .. end; false: it has no room. */
static bool take(char out[TN_REDIS_WORD], const char *from, const char *end)
{
    const size_t size = (size_t)(end - from);
    if (size >= TN_REDIS_WORD) {
        return false;
    }
    memcpy(out, from, size);
    out[size] = '\0';
    return true;
}

static bool is_number(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0' && strlen(text) <= 5;
}

static bool read_user(tn_redis_address *a, const char *from, const char *end)
{
    const char *colon = memchr(from, ':', (size_t)(end - from));
    return colon != NULL && take(a->user, from, colon) && take(a->password, colon + 1, end);
}

static bool read_host(tn_redis_address *a, const char *from, const char *end)
{
    const bool bracket = *from == '[';
    const char *close = bracket ? memchr(from, ']', (size_t)(end - from)) : NULL;
    const char *behind = bracket ? (close != NULL ? close + 1 : end) : from;
    const char *colon = memchr(behind, ':', (size_t)(end - behind));
    const char *host_end = close != NULL ? close : colon != NULL ? colon : end;
    (void)snprintf(a->port, sizeof a->port, "6379");
    return (!bracket || close != NULL) && (!bracket || behind == (colon != NULL ? colon : end)) &&
           take(a->host, from + (bracket ? 1 : 0), host_end) && a->host[0] != '\0' &&
           (colon == NULL || take(a->port, colon + 1, end)) && is_number(a->port);
}

tn_status tn_redis_read_url(tn_redis_address *out, const char *url, tn_error *err)
{
    tn_redis_address a = {.db = "0"};
    const size_t scheme = strlen(TN_REDIS_SCHEME);
    TN_ASSERT(strncmp(url, TN_REDIS_SCHEME, scheme) == 0);
    const char *from = url + scheme;
    const char *at = strrchr(from, '@'); /* a password may hold more */
    const char *host = at != NULL ? at + 1 : from;
    const char *end = host + strcspn(host, "/");
    const bool good = (at == NULL || read_user(&a, from, at)) && read_host(&a, host, end) &&
                      (*end == '\0' || end[1] == '\0' ||
                       (take(a.db, end + 1, end + strlen(end)) && is_number(a.db)));
    if (!good) {
        return tn_fail(err, TN_E_USAGE, "'redis://%.64s' is not like redis://host:port/db", host);
    }
    *out = a;
    return TN_OK;
}

/* ---- the wire ---- */

static tn_status no_connection(const connection *c, const char *why, tn_error *err)
{
    return tn_fail(err, TN_E_PEER, "no connection to Redis at '%s': %s", c->where, why);
}

static tn_status cut(const connection *c, const char *why, tn_error *err)
{
    return tn_fail(
        err, TN_E_PEER,
        "the Redis at '%s' is gone after %llu answers to %llu commands: %s; readers have not "
        "switched to the new model",
        c->where, (unsigned long long)c->answered, (unsigned long long)c->sent, why);
}

static tn_status open_connection(connection *c, const tn_redis_address *to, tn_error *err)
{
    const struct addrinfo wish = {.ai_socktype = SOCK_STREAM};
    const struct timeval patience = {.tv_sec = CONNECT_S};
    struct addrinfo *found = NULL;
    int why = 0;
    (void)snprintf(c->where, sizeof c->where, "%s:%s", to->host, to->port);
    const int unknown = getaddrinfo(to->host, to->port, &wish, &found);
    if (unknown != 0) {
        return no_connection(c, gai_strerror(unknown), err);
    }
    for (const struct addrinfo *a = found; a != NULL && c->fd < 0; a = a->ai_next) {
        c->fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
        if (c->fd >= 0 &&
            (setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0 ||
             connect(c->fd, a->ai_addr, a->ai_addrlen) != 0)) {
            why = errno == EINPROGRESS ? ETIMEDOUT : errno;
            (void)close(c->fd);
            c->fd = -1;
        }
    }
    freeaddrinfo(found);
    return c->fd >= 0 ? TN_OK : no_connection(c, strerrordesc_np(why), err);
}

/* An answer without its line's end: all that we send is answered by +OK. */
static tn_status judge(connection *c, tn_error *err)
{
    c->line[c->size] = '\0';
    tn_make_printable(c->line, "");
    c->size = 0;
    if (c->line[0] != '+' || c->answered == c->sent) {
        return tn_fail(
            err, TN_E_PEER,
            "the Redis at '%s' answers '%s' after %llu of %llu commands; readers have not "
            "switched to the new model",
            c->where, c->line, (unsigned long long)c->answered, (unsigned long long)c->sent);
    }
    c->answered++;
    return TN_OK;
}

static tn_status read_answers(connection *c, tn_error *err)
{
    char bytes[1 << 14];
    const ssize_t n = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR ? TN_OK : cut(c, strerrordesc_np(errno), err);
    }
    if (n == 0) {
        return cut(c, "it has closed the connection", err);
    }
    for (ssize_t i = 0; i < n; i++) {
        if (bytes[i] == '\n') {
            TN_TRY(judge(c, err));
        } else if (bytes[i] != '\r' && c->size + 1 < sizeof c->line) {
            c->line[c->size++] = bytes[i];
        }
    }
    return TN_OK;
}

/* Waits for one of the events. *out stays 0 for a while. */
static tn_status wait_for(const connection *c, short events, uint64_t since, short *out,
                          tn_error *err)
{
    struct pollfd p = {.fd = c->fd, .events = events};
    *out = 0;
    if (c->stop != NULL && atomic_load(c->stop)) {
        return tn_fail(err, TN_E_STOPPED,
                       "stopped by a signal; readers of Redis have not switched to the new model");
    }
    if (tn_clock_ns() - since > tn_silence_ns(ANSWER_S * UINT64_C(1000000000))) {
        return cut(c, "no whole answer has come and no command gone for 30 s", err);
    }
    if (poll(&p, 1, POLL_MS) < 0 && errno != EINTR) {
        return cut(c, strerrordesc_np(errno), err);
    }
    *out = p.revents;
    return TN_OK;
}

/* As much as there is room for. */
static tn_status send_some(const connection *c, const char **data, size_t *size, tn_error *err)
{
    const ssize_t n = send(c->fd, *data, *size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        return cut(c, strerrordesc_np(errno), err);
    }
    *data += n > 0 ? n : 0;
    *size -= n > 0 ? (size_t)n : 0;
    return TN_OK;
}

/* Sends all, and with `drain` waits for all answers. */
static tn_status exchange(connection *c, const char *data, size_t size, bool drain, tn_error *err)
{
    uint64_t since = tn_clock_ns();
    while (size > 0 || (drain && c->answered < c->sent)) {
        short ready = 0;
        const uint64_t answered = c->answered;
        const size_t left = size;
        TN_TRY(wait_for(c, (short)(POLLIN | (size > 0 ? POLLOUT : 0)), since, &ready, err));
        if ((ready & (POLLIN | POLLHUP | POLLERR)) != 0) {
            TN_TRY(read_answers(c, err));
        }
        if ((ready & POLLOUT) != 0 && size > 0) {
            TN_TRY(send_some(c, &data, &size, err));
        }
        since = c->answered > answered || size < left ? tn_clock_ns() : since;
    }
    return TN_OK;
}

static tn_status put(void *arg, const tn_text *bytes, uint64_t commands, tn_error *err)
{
    connection *c = arg;
    c->sent += commands;
    return exchange(c, bytes->data, bytes->size, false, err);
}

/* One command or some, and their answers. */
static tn_status ask(connection *c, const tn_text *bytes, uint64_t commands, tn_error *err)
{
    TN_TRY(tn_text_check(bytes, "commands for Redis", err));
    c->sent += commands;
    return exchange(c, tn_text_str(bytes), bytes->size, true, err);
}

static tn_resp_word word(const char *text)
{
    return (tn_resp_word){text, strlen(text)};
}

static tn_status log_in(connection *c, const tn_redis_address *to, tn_error *err)
{
    tn_text hello = {0};
    const bool named = to->user[0] != '\0';
    const tn_resp_word auth[] = {word("AUTH"), word(named ? to->user : to->password),
                                 word(to->password)};
    const bool guarded = named || to->password[0] != '\0';
    if (guarded) {
        tn_resp_command(&hello, named ? 3 : 2, auth);
    }
    tn_resp_command(&hello, 2, (const tn_resp_word[]){word("SELECT"), word(to->db)});
    const tn_status status = ask(c, &hello, guarded ? 2 : 1, err);
    tn_text_done(&hello);
    return status;
}

static tn_status send_all(connection *c, const tn_redis_address *to, const tn_dict *d,
                          tn_resp_keys keys, tn_error *err)
{
    tn_text last = {0};
    TN_TRY(open_connection(c, to, err));
    TN_TRY(log_in(c, to, err));
    TN_TRY(tn_resp_rows(d, keys, put, c, err));
    TN_TRY(ask(c, &last, 0, err));
    tn_resp_current(d, &last);
    const tn_status status = ask(c, &last, 1, err);
    tn_text_done(&last);
    return status;
}

tn_status tn_redis_send(const tn_redis_address *to, const tn_dict *d, tn_resp_keys keys,
                        const atomic_bool *stop, uint64_t *commands, tn_error *err)
{
    connection c = {.fd = -1, .stop = stop};
    const tn_status status = send_all(&c, to, d, keys, err);
    if (c.fd >= 0) {
        (void)close(c.fd);
    }
    *commands = status == TN_OK ? c.answered : 0;
    TN_ASSERT(status != TN_OK || c.answered == c.sent);
    return status;
}
