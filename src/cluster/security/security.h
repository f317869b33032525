/* security.h - which peers may connect: the section cluster.security.
 *
 *     security: ~                                    this host only: ipc of the same user, loopback
 *     security: {key: peer.key, allow: peers/}       CURVE: everybody whose public key is in peers/
 *     security: {trusted_net: [10.1.0.0/16]}         no keys: every address of these networks
 *
 * The last two are for addresses that others can reach. CURVE encrypts and proves the sender;
 * trusted_net trusts every program on every machine of the list.
 */
#pragma once

#include "cluster/launch/netlist.h"
#include "cluster/security/curvekeys.h"
#include "config/values.h"

/* ---- the folder of allowed keys ----
 *
 *     peers/rank-0.pub      the key of rank 0, and of nobody else
 *     peers/rank-1.pub
 *
 *     peers/team.pub        or: one key that every rank of the group holds
 *
 * A peer that comes with the key of rank-N.pub is rank N and can speak for no other. The shared key
 * distinguishes members from strangers, not members from each other: for launchers that assign
 * ranks to machines as they please. Other files of the folder, secret ones too, are not read.
 *
 * Read once, then only read: any thread. */

enum { TN_ALLOW_MAX = 4096 }; /* keys in one folder */

#define TN_RANK_ANY UINT32_MAX /* the shared key's */

typedef struct tn_allow tn_allow;

/* Reads a folder. TN_E_CONFIG: no folder, no key in it, a file that is no key, one key under two
 * names, or two keys without a rank. */
tn_status tn_allow_open(tn_allow **out, const tn_zmq *z, const char *dir,
                        tn_error *err) TN_MUST_USE;
void tn_allow_free(tn_allow *a); /* NULL is fine */

/* Finds the rank of a key, TN_RANK_ANY for the shared one. Returns false when the key is not
 * allowed. */
bool tn_allow_find(const tn_allow *a, const uint8_t key[TN_CURVE_BYTES], uint32_t *rank);

/* Finds the key that `rank` must have: its own, else the shared one. TN_E_CONFIG: there is none. */
tn_status tn_allow_key_of(const tn_allow *a, uint32_t rank, uint8_t out[TN_CURVE_BYTES],
                          tn_error *err) TN_MUST_USE;

/* ---- the section ---- */

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
    uint32_t uid;   /* user id of this process, and so of its peers over ipc */
} tn_security;

/* Loads what bound options name. `opts` may be NULL: nothing is set. tn_security_done may be called
 * after a failure, too. */
tn_status tn_security_init(tn_security *s, const tn_zmq *z, const tn_security_opts *opts,
                           tn_error *err) TN_MUST_USE;
void tn_security_done(tn_security *s); /* overwrites the secret */
