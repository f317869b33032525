/* transfer.h - requests under way, each repeated until it has brought what was wanted.
 *
 *     wait ----> run ----> done        all bytes are there
 *       ^         |  `---> failed      for good; tn_transfer_error says why
 *       `---------'                    once more, from the byte that was reached
 *
 *     tn_transfer *t = tn_http_pool_transfer(pool, 0);
 *     TN_TRY(tn_transfer_begin(t, &request, err));
 *     while (tn_transfer_state_of(t) != TN_TRANSFER_DONE) {          or FAILED
 *         tn_http_pool_work(pool);
 *         TN_TRY(tn_http_pool_wait(pool, stop, err));
 *     }
 *
 * A pool is a CURLM with its connections and TN_TRANSFERS transfers. It has no thread: all work is
 * done in calls of these functions, and a time in which nobody calls does not count as silence of
 * the server. A transfer buffers all bytes of a range, or those of an open end as far as there is
 * room, or a whole document. Every attempt sends the body of a request from its first byte; to a
 * scheme that `redirects_first` only after a redirect. Rules: remote.h, docs/formats.md section 5.
 * One thread at a time.
 */
#pragma once

#include "extra/remote/scheme.h"
#include "extra/remote/secrets.h"

#include <stdatomic.h>

enum { TN_TRANSFERS = 4, TN_TRANSFER_BYTES = 4 << 20, TN_DOCUMENT_BYTES_MAX = 256 << 20 };

typedef enum tn_transfer_state {
    TN_TRANSFER_IDLE,
    TN_TRANSFER_WAITS,
    TN_TRANSFER_RUNS,
    TN_TRANSFER_DONE,
    TN_TRANSFER_FAILED
} tn_transfer_state;

typedef struct tn_transfer tn_transfer;
typedef struct tn_http_pool tn_http_pool;

/* Opens a pool. `curl` and `secrets` must outlive it. TN_E_MEMORY. */
tn_status tn_http_pool_open(tn_http_pool **out, const tn_curl *curl, tn_secrets *secrets,
                            tn_error *err) TN_MUST_USE;
void tn_http_pool_close(tn_http_pool *p); /* NULL is fine */
void tn_http_pool_reset(tn_http_pool *p); /* all transfers are idle again; connections stay */

/* Returns transfer i modulo TN_TRANSFERS, which the pool owns. */
tn_transfer *tn_http_pool_transfer(tn_http_pool *p, uint32_t i);
/* Returns the link by which a client lists its idle pools. */
tn_http_pool **tn_http_pool_next(tn_http_pool *p);

/* Receives what has come and starts what is due; waits for nothing. */
void tn_http_pool_work(tn_http_pool *p);
/* Waits for at most 50 ms, or until something comes. TN_E_STOPPED when *stop is true; NULL: when
 * the process is to end (base/core/stop.h). */
tn_status tn_http_pool_wait(tn_http_pool *p, const atomic_bool *stop, tn_error *err) TN_MUST_USE;

/* Begins a request on a transfer that is IDLE or DONE; what `request` points to must outlive the
 * transfer. TN_E_MEMORY. */
tn_status tn_transfer_begin(tn_transfer *t, const tn_request *request, tn_error *err) TN_MUST_USE;
tn_transfer_state tn_transfer_state_of(const tn_transfer *t);
const tn_error *tn_transfer_error(const tn_transfer *t); /* for a transfer that has FAILED */
/* Returns the header of the last answer; status 0: there was none. */
const tn_http_reply *tn_transfer_reply(const tn_transfer *t);
/* Returns the bytes of the object that have come and were not consumed, or the whole document; lent
 * until the pool works again. */
tn_bytes tn_transfer_bytes(const tn_transfer *t);
/* Drops the first `size` of these bytes of an object, so that others have room. */
void tn_transfer_consume(tn_transfer *t, size_t size);
/* Makes a transfer that is DONE idle again. */
void tn_transfer_end(tn_transfer *t);
