/* listen.c - TCP and Unix sockets that listen. */
#include "extra/http/listen.h"

#include "base/file/file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

/* Binds and listens; -1, with errno, when that is refused. */
static int listen_at(const struct sockaddr *address, socklen_t size)
{
    const int on = 1;
    const int off = 0;
    const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    if (address->sa_family != AF_UNIX) {
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    }
    if (address->sa_family == AF_INET6) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    if (bind(fd, address, size) != 0 || listen(fd, BACKLOG) != 0) {
        const int why = errno;
        (void)close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

static void name_address(int fd, char name[TN_LISTEN_NAME_MAX])
{
    struct sockaddr_storage at;
    socklen_t size = sizeof at;
    char host[NI_MAXHOST] = "?";
    char port[NI_MAXSERV] = "?";
    if (getsockname(fd, (struct sockaddr *)&at, &size) == 0) {
        (void)getnameinfo((struct sockaddr *)&at, size, host, sizeof host, port, sizeof port,
                          NI_NUMERICHOST | NI_NUMERICSERV);
    }
    (void)snprintf(name, TN_LISTEN_NAME_MAX,
                   strchr(host, ':') != NULL ? "[%.100s]:%s" : "%.100s:%s", host, port);
}

static tn_status listen_tcp(const char *host, uint32_t port, int *out, tn_error *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char text[16];
    (void)snprintf(text, sizeof text, "%u", port);
    const int fault = getaddrinfo(host, text, &hints, &found);
    if (fault != 0) {
        return tn_fail(err, TN_E_IO, "there is no address '%s': %s", host != NULL ? host : "*",
                       gai_strerror(fault));
    }
    *out = -1;
    for (int pass = 0; pass < 2 && *out < 0; pass++) { /* IPv6 first: such a socket takes both */
        for (const struct addrinfo *a = found; a != NULL && *out < 0; a = a->ai_next) {
            if ((a->ai_family == AF_INET6) == (pass == 0)) {
                *out = listen_at(a->ai_addr, a->ai_addrlen);
            }
        }
    }
    const int why = errno;
    freeaddrinfo(found);
    return *out >= 0 ? TN_OK
                     : tn_fail(err, TN_E_IO, "cannot listen on port %u of '%s': %s", port,
                               host != NULL ? host : "*", strerrordesc_np(why));
}

/* Whether a server answers at a Unix socket. */
static bool is_alive(const struct sockaddr_un *at)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool alive = fd >= 0 && connect(fd, (const struct sockaddr *)at, sizeof *at) == 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    return alive;
}

static tn_status listen_unix(const char *path, int *out, tn_error *err)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const size_t size = strlen(path);
    if (size >= sizeof at.sun_path) {
        return tn_fail(err, TN_E_IO, "the path of a Unix socket has %zu bytes, at most %zu: '%s'",
                       size, sizeof at.sun_path - 1, path);
    }
    memcpy(at.sun_path, path, size + 1);
    *out = listen_at((const struct sockaddr *)&at, sizeof at);
    if (*out < 0 && errno == EADDRINUSE && !is_alive(&at)) {
        (void)(tn_remove_file(path, NULL) == TN_OK);
        *out = listen_at((const struct sockaddr *)&at, sizeof at);
    }
    return *out >= 0
               ? TN_OK
               : tn_fail(err, TN_E_IO, "cannot listen at '%s': %s", path, strerrordesc_np(errno));
}

tn_status tn_listen(const char *host, uint32_t port, const char *unix_path, int *out,
                    char name[TN_LISTEN_NAME_MAX], tn_error *err)
{
    if (unix_path != NULL) {
        TN_TRY(listen_unix(unix_path, out, err));
        (void)snprintf(name, TN_LISTEN_NAME_MAX, "%s", unix_path);
        return TN_OK;
    }
    TN_TRY(listen_tcp(host, port, out, err));
    name_address(*out, name);
    return TN_OK;
}
