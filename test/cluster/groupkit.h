/* groupkit.h - groups of ranks in one process, over sockets in a folder of the test's own. */
#pragma once

#include "cluster/group/group.h"

#include <pthread.h>

enum { GROUPKIT_RANKS = 4, GROUPKIT_TEXT = 1500 };

/* Makes the folder of a group of tests, and timers an eighth as long. Silences stay half as long,
 * so that a busy machine loses no rank. */
int groupkit_set_up(void **state);
int groupkit_tear_down(void **state);

/* Divides silences by `divisor` from here on, for tests in which a rank is to be lost. */
void groupkit_silence(const char *divisor);

typedef struct groupkit {
    uint32_t n;
    uint32_t from[GROUPKIT_RANKS + 1];
    tn_owners owners;
    tn_security security;
    char at[GROUPKIT_RANKS][TN_ENDPOINT_PATH];
    const char *address[GROUPKIT_RANKS];
    const char *host[GROUPKIT_RANKS];
    tn_membership membership[GROUPKIT_RANKS];
    tn_group *group[GROUPKIT_RANKS];
} groupkit;

/* n ranks that know each other's addresses; none is open yet. */
void groupkit_set(groupkit *x, uint32_t n);
tn_group_opts groupkit_opts(groupkit *x, uint32_t rank);
void groupkit_open(groupkit *x, uint32_t rank, const tn_group_opts *opts);
void groupkit_open_first(groupkit *x, uint32_t n);
void groupkit_form(groupkit *x); /* opens all, the last first, and forms the group */
void groupkit_close(groupkit *x);

/* Followers on threads of their own, which carry out orders until they end: they fail those with
 * the text "fail", of all others they say DONE with 10 records and 3 bytes of metrics. */
typedef struct groupkit_follower {
    tn_group *group;
    tn_status status;
    tn_error err;
    uint32_t n_orders;
    char texts[GROUPKIT_TEXT];
} groupkit_follower;

typedef struct groupkit_seats {
    groupkit_follower f[GROUPKIT_RANKS];
    pthread_t thread[GROUPKIT_RANKS];
} groupkit_seats;

void groupkit_seat(groupkit *x, groupkit_seats *s);
void groupkit_join(const groupkit *x, groupkit_seats *s);

/* Gives an order and waits for it; *sum grows by rank times records of each. */
tn_status groupkit_order(tn_group *g, uint64_t what, uint64_t number, const char *text,
                         uint64_t *sum, tn_error *err) TN_MUST_USE;
