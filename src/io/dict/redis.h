/* redis.h - sends a dictionary to a Redis server, as dict.resp has it.
 *
 *     tn_redis_address to;
 *     TN_TRY(tn_redis_read_url(&to, "redis://user:secret@host:6379/2", err));
 *     TN_TRY(tn_redis_send(&to, dict, TN_RESP_TEXT, stop, &commands, err));
 *
 * Commands are sent without waiting for one answer at a time, and every answer is read. The one
 * that lets readers switch goes last, when the server has said yes to all others; after any failure
 * it was not sent, and sending again is safe. A plain socket: of hiredis we would need its structs,
 * whose layout is a version's, and with them more lines than these. No TLS. One thread.
 */
#pragma once

#include "io/dict/resp.h"

#include <stdatomic.h>

enum { TN_REDIS_WORD = 256 }; /* longest word of a URL and its NUL */

#define TN_REDIS_SCHEME "redis://"

typedef struct tn_redis_address {
    char host[TN_REDIS_WORD], port[TN_REDIS_WORD];
    char user[TN_REDIS_WORD], password[TN_REDIS_WORD]; /* "": none; never shown */
    char db[TN_REDIS_WORD];
} tn_redis_address;

/* redis://[[user]:password@]host[:port][/db]; an IPv6 address in brackets. TN_E_USAGE. */
tn_status tn_redis_read_url(tn_redis_address *out, const char *url, tn_error *err) TN_MUST_USE;

/* TN_E_PEER: nobody is there, an answer is an error or no whole one comes for 30 s, the connection
 * is cut; TN_E_STOPPED: *stop (NULL: nobody asks). And what tn_resp_rows says. */
tn_status tn_redis_send(const tn_redis_address *to, const tn_dict *d, tn_resp_keys keys,
                        const atomic_bool *stop, uint64_t *commands, tn_error *err) TN_MUST_USE;
