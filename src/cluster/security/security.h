/* security.h - who may speak to a peer: the section cluster.security.
 *
 *     security: ~                                    this host only: ipc of the same user, loopback
 *     security: {key: peer.key, allow: peers/}       CURVE: everybody whose public key is in peers/
 *     security: {trusted_net: [10.1.0.0/16]}         no keys: every address of these networks
 *
 * The last two are for addresses that others can reach. CURVE encrypts and knows who speaks;
 * trusted_net trusts every program on every machine of the list.
 */
#ifndef TN_CLUSTER_SECURITY_H
#define TN_CLUSTER_SECURITY_H

#include "cluster/launch/netlist.h"
#include "cluster/security/allow.h"
#include "config/field.h"

/* As written. Texts live in the binder's arena. */
typedef struct tn_security_opts {
    const char *key;   /* path of this peer's secret key */
    const char *allow; /* folder of public keys */
    tn_strs trusted_net;
} tn_security_opts;

/* Reads the tree of cluster.security (NULL or null: nothing is set). Faults and contradictions go
 * to b->diag; files are not looked at. */
void tn_security_bind(const tn_binder *b, const tn_tree *tree, tn_security_opts *out);

typedef enum tn_security_kind {
    TN_SECURITY_HOST,  /* nobody from outside */
    TN_SECURITY_CURVE, /* pair, allow */
    TN_SECURITY_NET,   /* net */
} tn_security_kind;

typedef struct tn_security {
    tn_security_kind kind;
    tn_curve_pair pair;
    tn_allow *allow; /* owned */
    uint32_t n_nets;
    tn_subnet *net; /* owned; HOST: the loopback networks */
} tn_security;

/* Loads what bound options name. `opts` may be NULL: nothing is set. tn_security_done may be called
 * after a failure, too. */
tn_status tn_security_init(tn_security *s, const tn_zmq *z, const tn_security_opts *opts,
                           tn_error *err) TN_MUST_USE;
void tn_security_done(tn_security *s); /* overwrites the secret */

#endif
