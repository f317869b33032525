/* netlist.c - networks are read, and addresses compared with them. */
#include "cluster/launch/netlist.h"

#include "base/core/number.h"

#include <arpa/inet.h>
#include <string.h>

enum { V4_AT = 12, V4_BITS = 96, BITS = 128 };

/* Reads the 16 bytes of an address of `size` characters; *v4 says how it was written. */
static bool read_address(const char *text, size_t size, uint8_t out[16], bool *v4)
{
    static const uint8_t mapped[V4_AT] = {[10] = 0xff, [11] = 0xff};
    char copy[INET6_ADDRSTRLEN];
    if (size == 0 || size >= sizeof copy) {
        return false;
    }
    memcpy(copy, text, size);
    copy[size] = '\0';
    *v4 = inet_pton(AF_INET, copy, out + V4_AT) == 1;
    if (*v4) {
        memcpy(out, mapped, sizeof mapped);
        return true;
    }
    return inet_pton(AF_INET6, copy, out) == 1;
}

static void cut_behind(uint8_t bytes[16], uint32_t bits)
{
    TN_ASSERT(bits <= BITS);
    for (uint32_t i = 0; i < 16; i++) {
        uint32_t kept = bits > 8 * i ? bits - 8 * i : 0;
        if (kept < 8) {
            bytes[i] &= (uint8_t)(0xff00U >> kept);
        }
    }
}

tn_status tn_net_read(const char *text, tn_subnet *out, tn_error *err)
{
    const char *slash = strchr(text, '/');
    size_t size = slash != NULL ? (size_t)(slash - text) : strlen(text);
    tn_subnet net = {.bits = BITS};
    bool v4 = false;
    if (!read_address(text, size, net.bytes, &v4)) {
        return tn_fail(err, TN_E_CONFIG,
                       "'%s' is neither an address nor a network such as 10.0.0.0/8", text);
    }
    if (slash != NULL) {
        uint64_t bits = 0;
        uint64_t most = v4 ? BITS - V4_BITS : BITS;
        if (tn_read_u64(slash + 1, strlen(slash + 1), &bits) != TN_NUM_OK || bits > most) {
            return tn_fail(err, TN_E_CONFIG, "the prefix of '%s' is not a number of 0 to %u bits",
                           text, (unsigned)most);
        }
        net.bits = (uint32_t)bits + (v4 ? V4_BITS : 0);
    }
    uint8_t cut[16];
    memcpy(cut, net.bytes, sizeof cut);
    cut_behind(cut, net.bits);
    if (memcmp(cut, net.bytes, sizeof cut) != 0) {
        char plain[INET6_ADDRSTRLEN];
        const char *shown =
            inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? cut + V4_AT : cut, plain, sizeof plain);
        TN_ASSERT(shown != NULL && slash != NULL);
        return tn_fail(err, TN_E_CONFIG,
                       "'%s' has bits set behind its prefix (did you mean '%s%s'?)", text, shown,
                       slash);
    }
    *out = net;
    return TN_OK;
}

bool tn_nets_have(const tn_subnet *net, uint32_t n, const char *address)
{
    uint8_t bytes[16];
    uint8_t cut[16];
    bool v4 = false;
    bool has = false;
    bool is_address = read_address(address, strcspn(address, "%"), bytes, &v4);
    for (uint32_t i = 0; i < n && is_address && !has; i++) {
        memcpy(cut, bytes, sizeof cut);
        cut_behind(cut, net[i].bits);
        has = memcmp(cut, net[i].bytes, sizeof cut) == 0;
    }
    return has;
}
