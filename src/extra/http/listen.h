/* listen.h - the socket that a server listens on. */
#pragma once

#include "base/core/error.h"

#include <stdint.h>

/* Binds host:port, or a Unix socket at a path, whose file is replaced if nobody listens there. Host
 * NULL: all addresses; port 0: any that is free. `name`: how clients reach it, "127.0.0.1:8501".
 * *out does not block. TN_E_IO: taken, not ours, or no such address. */
enum { TN_LISTEN_NAME_MAX = 160 };
tn_status tn_listen(const char *host, uint32_t port, const char *unix_path, int *out,
                    char name[TN_LISTEN_NAME_MAX], tn_error *err) TN_MUST_USE;
