/* netlist.h - lists of networks, and whether an address lies in one of them.
 *
 *     10.0.0.0/8        an IPv4 network
 *     192.168.7.12      one address: /32
 *     fd00:12::/48      an IPv6 network
 *     2001:db8::7       one address: /128
 *
 * Names are not looked up: the address of a name may change after a list was read. An IPv4 address
 * that an IPv6 socket reports (::ffff:10.0.0.7) is that IPv4 address. Pure functions, any thread.
 */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_subnet {
    uint8_t bytes[16]; /* IPv4 as ::ffff:a.b.c.d */
    uint32_t bits;     /* bits of the prefix, 0 .. 128 */
} tn_subnet;

/* Reads a network. TN_E_CONFIG: no address, a prefix that is too long, or bits set after it. */
tn_status tn_net_read(const char *text, tn_subnet *out, tn_error *err) TN_MUST_USE;

/* Returns whether an address is in one of the networks; false also for a text that is no address. A
 * zone ("fe80::1%eth0") is not looked at. */
bool tn_nets_have(const tn_subnet *net, uint32_t n, const char *address);
