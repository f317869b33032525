/* zaprules.h - whether a connection is let in: one request of ZAP (RFC 27), judged.
 *
 *     ipc         NULL      a process of the same user
 *     TCP         NULL      an address of the trusted networks; loopback when nothing is set
 *     TCP         CURVE     a key of the allow list; then the rank is known, too
 *     all else              nobody
 *
 * A request is the frames version, id, domain, address, routing id, mechanism, credentials. libzmq
 * writes them, and puts into them what the other side sent: every byte is looked at. Pure
 * functions, any thread.
 */
#ifndef TN_CLUSTER_ZAPRULES_H
#define TN_CLUSTER_ZAPRULES_H

#include "base/core/bytes.h"
#include "cluster/security/security.h"

#define TN_ZAP_DOMAIN "tnet"

enum { TN_ZAP_ID = 1, TN_ZAP_FRAMES = 8 }; /* the id's place; more frames than any request has */

typedef enum tn_zap_verdict {
    TN_ZAP_ADMITTED,
    TN_ZAP_MALFORMED, /* not a request as RFC 27 has it */
    TN_ZAP_FOREIGN,   /* of another domain */
    TN_ZAP_MECHANISM, /* PLAIN, or keys where none are used, or none where they are */
    TN_ZAP_USER,      /* ipc from another user */
    TN_ZAP_ADDRESS,   /* not of a trusted network */
    TN_ZAP_KEY,       /* not on the allow list */
    TN_ZAP_VERDICTS,
} tn_zap_verdict;

/* As people say it: "the key is not on the list". */
const char *tn_zap_verdict_text(tn_zap_verdict v);

typedef struct tn_zap_rules {
    const tn_security *security; /* must outlive the rules */
    uint32_t uid;                /* of this process */
} tn_zap_rules;

/* *rank: of the key, TN_RANK_ANY where nothing ties the connection to one. Written when admitted.
 */
tn_zap_verdict tn_zap_judge(const tn_zap_rules *rules, const tn_bytes *frame, uint32_t n,
                            uint32_t *rank);

/* Of the other end of a connection that this process dialled, by its address as libzmq writes it.
 * Over TCP with keys it had to show that of the rank that was meant: CURVE has seen to it. */
tn_zap_verdict tn_zap_judge_dialled(const tn_zap_rules *rules, const char *address);

#endif
