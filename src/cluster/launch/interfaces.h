/* interfaces.h - the address of this machine that the others should use.
 *
 * A machine has many addresses: loopback, bridges of containers, a management network, a fast one.
 * A peer finds the address that it binds in this order:
 *
 *     the name of an interface, a number       as it is
 *     another name                             the address that it resolves to
 *     loopback, or an unknown name             the address of the route to rank 0
 *     no route either                          the only interface that is up, or an error
 *
 * The third line is for Debian, where a machine's own name means 127.0.1.1. A name or a number
 * of another machine is an error, which lists what there is. Names may be looked up in DNS, so
 * these functions block as long as the resolver does: call them before anything else runs.
 */
#pragma once

#include "cluster/launch/endpoint.h"

enum { TN_INTERFACE_NAME = 16 }; /* longest name and its NUL */

/* Returns whether `host` is a name or an address of this machine. Unknown names are not. */
bool tn_interfaces_have(const char *host);

/* Puts a number in place of the host of `bind`, which stays as it is when it is ipc or "*".
 * `toward` is the address of rank 0, or NULL. *name is the interface's, "" when it has none.
 * TN_E_CONFIG: nothing above fits. */
tn_status tn_interfaces_choose(tn_endpoint *bind, const tn_endpoint *toward,
                               char name[TN_INTERFACE_NAME], tn_error *err) TN_MUST_USE;
