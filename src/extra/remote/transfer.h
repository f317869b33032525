/* transfer.h - requests under way, each repeated until it has brought what was wanted.
 *
 *     wait ----> run ----> landed      all bytes are there
 *       ^         |  `---> failed      for good; `err` says why
 *       `---------'                    once more, from the byte that was reached
 *
 *     tn_flight_begin(f, &wish);
 *     while (f->state == TN_FLIGHT_WAITS || f->state == TN_FLIGHT_RUNS) {
 *         tn_wire_work(w);
 *         TN_TRY(tn_wire_wait(w, stop, err));
 *     }
 *
 * A wire is a CURLM with its connections and TN_FLIGHTS flights. Nothing happens but in calls of
 * these functions: no threads, and time in which nobody calls is no silence of the server. Bytes
 * go to the flight's buffer: all of a range, or those of an open end as far as there is room; a
 * document goes to `body`. What a wish sends is sent from its first byte at every attempt; to
 * an `addressed` scheme only when a redirect says where. Rules: remote.h, docs/formats.md
 * section 5. One thread at a time.
 */
#pragma once

#include "extra/remote/http_reply.h"
#include "extra/remote/kerberos.h"
#include "extra/remote/scheme.h"
#include "extra/remote/secrets.h"

#include <stdatomic.h>

enum { TN_FLIGHTS = 4, TN_FLIGHT_BYTES = 4 << 20, TN_DOCUMENT_BYTES_MAX = 256 << 20 };

typedef enum tn_flight_state {
    TN_FLIGHT_IDLE,
    TN_FLIGHT_WAITS,
    TN_FLIGHT_RUNS,
    TN_FLIGHT_LANDED,
    TN_FLIGHT_FAILED
} tn_flight_state;

typedef struct tn_wire tn_wire;

typedef struct tn_flight {
    tn_flight_state state;
    tn_error err; /* of FAILED */

    char *buffer;      /* TN_FLIGHT_BYTES, owned; NULL before the first bytes are wanted */
    size_t have, read; /* bytes in it; of these, taken by the reader */
    tn_text body;      /* of a document */
    tn_http_reply reply;
    uint64_t next;         /* the byte of the object that comes next */
    uint64_t size;         /* of the object: the wish's, or what the first answer said */
    char tag[TN_TAG_SIZE]; /* of its version, likewise; "": not known */

    /* of transfer.c */
    tn_wire *wire;
    tn_wish wish;
    CURL *easy;
    tn_request request;
    tn_text moved;    /* where redirects have led; empty: nowhere */
    tn_text fault;    /* the body of an answer of failure */
    bool judged;      /* the header of the answer is taken for good, or .. */
    bool refused;     /* .. its body is a failure's */
    bool paused;      /* the buffer is full */
    bool renewed;     /* secrets were read anew for this failure */
    bool kept;        /* `moved` is the wire's */
    uint64_t skip;    /* bytes of the body in front of `next` */
    uint64_t skipped; /* .. and those that have come, by this attempt */
    uint64_t reached; /* `next` when the attempt began */
    uint32_t tries;   /* in a row without progress */
    uint32_t redirects;
    uint32_t secrets; /* version */
    uint64_t sent;    /* bytes of wish.sends, by this attempt */
    uint64_t start_ns;
    uint64_t window_ns, window_bytes; /* of the guard against stalls */
    uint64_t came_ns, came_bytes;     /* when something came, and what had come by then */
    char trouble[200];                /* why the last attempt failed; "": there was none */
    char why[CURL_ERROR_SIZE];
    char no_ticket[TN_KERBEROS_WHY]; /* of a request with `kerberos`: why not */
} tn_flight;

struct tn_wire {
    tn_wire *idle; /* the next one in a client's list */
    const tn_curl *curl;
    tn_secrets *secrets;
    CURLM *multi;
    uint64_t worked_ns;
    uint64_t told_ns;       /* when the log was told of a wait; 0: never */
    bool told_trouble;      /* .. that an attempt had failed */
    uint64_t random, drawn; /* of pauses */
    tn_text kept;           /* where a redirect has led for a range of this object, and .. */
    uint64_t kept_part;     /* .. for which 64 MiB of it; empty: nowhere */
    bool keeps_none;        /* such a place was of no use twice */
    tn_flight flight[TN_FLIGHTS];
};

/* Both must outlive it. */
tn_status tn_wire_open(tn_wire **out, const tn_curl *curl, tn_secrets *secrets,
                       tn_error *err) TN_MUST_USE;
void tn_wire_close(tn_wire *w); /* NULL is fine */
void tn_wire_reset(tn_wire *w); /* all flights are idle again; connections stay */

/* From IDLE or LANDED; what `wish` points to must outlive the flight. TN_E_MEMORY. */
tn_status tn_flight_begin(tn_flight *f, const tn_wish *wish, tn_error *err) TN_MUST_USE;
/* The reader has made room in the buffer. */
void tn_flight_resume(tn_flight *f);

/* Takes what has come and starts what is due; waits for nothing. */
void tn_wire_work(tn_wire *w);
/* For at most 50 ms, or until something comes. TN_E_STOPPED when *stop is true; NULL: when the
 * process is to end (base/core/stop.h). */
tn_status tn_wire_wait(tn_wire *w, const atomic_bool *stop, tn_error *err) TN_MUST_USE;
