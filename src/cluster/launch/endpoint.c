/* endpoint.c - the address of a peer: read from text, written, and whether it is inside this host.
 */
#include "cluster/launch/endpoint.h"

#include "base/core/number.h"
#include "cluster/launch/netlist.h"

#include <stdio.h>
#include <string.h>

static const char ipc[] = "ipc://";
static const char tcp[] = "tcp://";
static const char name_chars[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
static const char v6_chars[] = "0123456789abcdefABCDEF:.";

static tn_status no_address(const char *text, tn_error *err)
{
    return tn_fail(err, TN_E_CONFIG,
                   "'%.300s' is no address of a peer, such as host:4770, [fd00::7]:4770 or "
                   "ipc:///path",
                   text);
}

static tn_status read_path(const char *text, tn_endpoint *out, tn_error *err)
{
    const char *path = text + sizeof ipc - 1;
    size_t size = strlen(path);
    if (size == 0) {
        return no_address(text, err);
    }
    if (size >= sizeof out->path) {
        return tn_fail(err, TN_E_CONFIG, "the path of a socket has %zu bytes, more than %zu: '%s'",
                       size, sizeof out->path - 1, path);
    }
    *out = (tn_endpoint){.is_ipc = true};
    memcpy(out->path, path, size + 1);
    return TN_OK;
}

/* Returns the end of the host: the ':' of the port, a ']', or the end of the text. NULL: no
 * host. */
static const char *host_end(const char *host, bool bracketed)
{
    if (bracketed) {
        const char *end = host + strspn(host, v6_chars);
        return *end == ']' && memchr(host, ':', (size_t)(end - host)) != NULL ? end : NULL;
    }
    size_t size =
        strcmp(host, "*") == 0 || strncmp(host, "*:", 2) == 0 ? 1 : strspn(host, name_chars);
    return size > 0 ? host + size : NULL;
}

tn_status tn_endpoint_read(const char *text, uint32_t port, tn_endpoint *out, tn_error *err)
{
    TN_ASSERT(port <= UINT16_MAX);
    if (strncmp(text, ipc, sizeof ipc - 1) == 0) {
        return read_path(text, out, err);
    }
    const char *host = strncmp(text, tcp, sizeof tcp - 1) == 0 ? text + sizeof tcp - 1 : text;
    bool bracketed = *host == '[';
    host += bracketed ? 1 : 0;
    const char *end = host_end(host, bracketed);
    if (end == NULL || (size_t)(end - host) >= sizeof out->host) {
        return no_address(text, err);
    }
    const char *rest = end + (bracketed ? 1 : 0);
    uint64_t value = port;
    if (*rest == ':' &&
        (tn_read_u64(rest + 1, strlen(rest + 1), &value) != TN_NUM_OK || value > UINT16_MAX)) {
        return tn_fail(err, TN_E_CONFIG, "the port of '%s' is not a number of 0 to 65535", text);
    }
    if (*rest != ':' && *rest != '\0') {
        return no_address(text, err);
    }
    *out = (tn_endpoint){.port = (uint32_t)value};
    memcpy(out->host, host, (size_t)(end - host));
    return TN_OK;
}

void tn_endpoint_write(const tn_endpoint *e, char out[TN_ENDPOINT_SIZE])
{
    TN_ASSERT(e->is_ipc || (e->host[0] != '\0' && e->port <= UINT16_MAX));
    if (e->is_ipc) {
        (void)snprintf(out, TN_ENDPOINT_SIZE, "%s%s", ipc, e->path);
        return;
    }
    bool v6 = strchr(e->host, ':') != NULL;
    (void)snprintf(out, TN_ENDPOINT_SIZE, "%s%s%s%s:%u", tcp, v6 ? "[" : "", e->host, v6 ? "]" : "",
                   e->port);
}

bool tn_endpoint_is_inside(const tn_endpoint *e)
{
    static const tn_subnet loopback[] = {
        {.bytes = {[10] = 0xff, [11] = 0xff, [12] = 127}, .bits = 104}, /* 127.0.0.0/8 */
        {.bytes = {[15] = 1}, .bits = 128},                             /* ::1 */
    };
    return e->is_ipc || strcmp(e->host, "localhost") == 0 ||
           tn_nets_have(loopback, sizeof loopback / sizeof *loopback, e->host);
}
