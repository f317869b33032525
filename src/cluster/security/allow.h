/* allow.h - whose keys are let in: a folder of public CURVE keys.
 *
 *     peers/rank-0.pub      the key of rank 0, and of nobody else
 *     peers/rank-1.pub
 *
 *     peers/team.pub        or: one key that every rank of the group holds
 *
 * A peer that comes with a key of rank-N.pub is rank N and can speak for no other. The shared key
 * tells members from strangers, not members from each other: for launchers that give ranks to
 * machines as they please. Other files of the folder, secret ones too, are not looked at.
 *
 * Read once, then only read: any thread.
 */
#ifndef TN_CLUSTER_ALLOW_H
#define TN_CLUSTER_ALLOW_H

#include "cluster/security/curvekeys.h"

enum { TN_ALLOW_MAX = 4096 }; /* keys in one folder */

#define TN_RANK_ANY UINT32_MAX /* the shared key's */

typedef struct tn_allow tn_allow;

/* TN_E_CONFIG: no folder, no key in it, a file that is no key, one key under two names, or two keys
 * without a rank. */
tn_status tn_allow_open(tn_allow **out, const tn_zmq *z, const char *dir,
                        tn_error *err) TN_MUST_USE;
void tn_allow_free(tn_allow *a); /* NULL is fine */

uint32_t tn_allow_count(const tn_allow *a);

/* Whose key it is: a rank, or TN_RANK_ANY. False: nobody's. */
bool tn_allow_find(const tn_allow *a, const uint8_t key[TN_CURVE_BYTES], uint32_t *rank);

/* The key that `rank` must have: its own, else the shared one. TN_E_CONFIG: there is none. */
tn_status tn_allow_key_of(const tn_allow *a, uint32_t rank, uint8_t out[TN_CURVE_BYTES],
                          tn_error *err) TN_MUST_USE;

#endif
