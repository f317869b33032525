/* interfaces.c - the addresses of this machine, and which of them a peer binds. */
#include "cluster/launch/interfaces.h"

#include "base/core/text.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { INTERFACES_MAX = 64 };

typedef struct interface {
    char name[TN_INTERFACE_NAME]; /* "eth0" */
    char address[64];             /* "10.1.0.7" */
    bool is_loopback;
} interface;

/* Writes the number of an IPv4 or IPv6 address. Returns false for another family. */
static bool to_text(const struct sockaddr *a, char out[64])
{
    const socklen_t size =
        a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    return getnameinfo(a, size, out, 64, NULL, 0, NI_NUMERICHOST) == 0;
}

static void add_family(const struct ifaddrs *list, int family, interface *out, uint32_t *n)
{
    for (const struct ifaddrs *i = list; i != NULL && *n < INTERFACES_MAX; i = i->ifa_next) {
        interface *at = &out[*n];
        bool wanted = i->ifa_addr != NULL && i->ifa_addr->sa_family == family &&
                      (i->ifa_flags & IFF_UP) != 0 && to_text(i->ifa_addr, at->address);
        /* an address of one link is of no use without its zone */
        if (!wanted || strncmp(at->address, "fe80:", 5) == 0) {
            continue;
        }
        (void)snprintf(at->name, sizeof at->name, "%s", i->ifa_name);
        at->is_loopback = (i->ifa_flags & IFF_LOOPBACK) != 0;
        (*n)++;
    }
}

/* Lists the addresses of interfaces that are up, IPv4 first. */
static tn_status list_interfaces(interface out[INTERFACES_MAX], uint32_t *n, tn_error *err)
{
    struct ifaddrs *list = NULL;
    if (getifaddrs(&list) != 0) {
        return tn_fail(err, TN_E_IO, "cannot list the network interfaces: %s",
                       strerrordesc_np(errno));
    }
    *n = 0;
    add_family(list, AF_INET, out, n);
    add_family(list, AF_INET6, out, n);
    freeifaddrs(list);
    return TN_OK;
}

/* Returns the first interface of that name, or with that address. */
static const interface *find(const interface *list, uint32_t n, const char *text)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(list[i].address, text) == 0 || strcmp(list[i].name, text) == 0) {
            return &list[i];
        }
    }
    return NULL;
}

static struct addrinfo *look_up(const char *host, const char *port)
{
    const struct addrinfo wish = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM};
    struct addrinfo *found = NULL;
    return getaddrinfo(host, port, &wish, &found) == 0 ? found : NULL;
}

/* Returns the interface that a name means, one that others can reach if there is one. *known: the
 * name means something. */
static const interface *of_name(const interface *list, uint32_t n, const char *host, bool *known)
{
    const interface *best = NULL;
    struct addrinfo *found = look_up(host, NULL);
    *known = found != NULL;
    for (const struct addrinfo *a = found; a != NULL; a = a->ai_next) {
        char address[64];
        const interface *i = to_text(a->ai_addr, address) ? find(list, n, address) : NULL;
        if (i != NULL && (best == NULL || (best->is_loopback && !i->is_loopback))) {
            best = i;
        }
    }
    if (found != NULL) {
        freeaddrinfo(found);
    }
    return best;
}

bool tn_interfaces_have(const char *host)
{
    interface list[INTERFACES_MAX];
    uint32_t n = 0;
    bool known = false;
    return list_interfaces(list, &n, NULL) == TN_OK && of_name(list, n, host, &known) != NULL;
}

/* Returns the interface that packets to `e` leave by; nothing is sent. */
static const interface *on_the_way(const interface *list, uint32_t n, const tn_endpoint *e)
{
    const interface *best = NULL;
    struct addrinfo *found = look_up(e->host, "9");
    for (const struct addrinfo *a = found; a != NULL && best == NULL; a = a->ai_next) {
        int fd = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        struct sockaddr_storage own = {0};
        socklen_t size = sizeof own;
        char address[64];
        void *at = &own;
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0 &&
            getsockname(fd, at, &size) == 0 && to_text(at, address)) {
            best = find(list, n, address);
        }
        if (fd >= 0) {
            (void)close(fd);
        }
    }
    if (found != NULL) {
        freeaddrinfo(found);
    }
    return best;
}

static const interface *the_only_open_one(const interface *list, uint32_t n)
{
    const interface *only = NULL;
    for (uint32_t i = 0; i < n; i++) {
        if (list[i].is_loopback) {
            continue;
        }
        if (only != NULL && strcmp(only->name, list[i].name) != 0) {
            return NULL;
        }
        only = only == NULL ? &list[i] : only;
    }
    return only;
}

static tn_status none_fits(const interface *list, uint32_t n, const char *host, tn_error *err)
{
    tn_text text = {0};
    for (uint32_t i = 0; i < n; i++) {
        tn_text_addf(&text, " %s (%s)", list[i].name, list[i].address);
    }
    tn_status status = tn_fail(err, TN_E_CONFIG,
                               "'%s' is no address of this machine that others could reach\n"
                               "hint: set TNET_BIND to one of its interfaces:%.800s",
                               host, tn_text_str(&text));
    tn_text_done(&text);
    return status;
}

tn_status tn_interfaces_choose(tn_endpoint *bind, const tn_endpoint *toward,
                               char name[TN_INTERFACE_NAME], tn_error *err)
{
    interface list[INTERFACES_MAX];
    uint32_t n = 0;
    name[0] = '\0';
    if (bind->is_ipc || strcmp(bind->host, "*") == 0) {
        return TN_OK;
    }
    TN_TRY(list_interfaces(list, &n, err));
    const interface *i = find(list, n, bind->host);
    bool is_name = i != NULL && strcmp(i->name, bind->host) == 0;
    bool said = is_name || tn_endpoint_is_inside(bind);
    bool known = false;
    i = i != NULL ? i : of_name(list, n, bind->host, &known);
    if (!said && (i == NULL ? !known : i->is_loopback)) {
        const interface *way =
            toward != NULL && !toward->is_ipc ? on_the_way(list, n, toward) : NULL;
        i = way != NULL ? way : the_only_open_one(list, n);
    }
    if (i == NULL) {
        return none_fits(list, n, bind->host, err);
    }
    (void)snprintf(bind->host, sizeof bind->host, "%s", i->address);
    memcpy(name, i->name, sizeof i->name);
    return TN_OK;
}
