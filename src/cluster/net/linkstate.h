/* linkstate.h - what the files of the link share; for link*.c only.
 *
 *     link.c         opening, closing, posting
 *     linkloop.c     the net thread: who is sent what when, who hears what came
 *     linksend.c     a parcel as a message of ZeroMQ
 *     linkreceive.c  a message of ZeroMQ as a letter, if it is one
 */
#ifndef TN_CLUSTER_LINKSTATE_H
#define TN_CLUSTER_LINKSTATE_H

#include "base/thread/threads.h"
#include "cluster/net/link.h"

#include <pthread.h>

/* First in, first out. Zeros: empty. */
typedef struct tn_parcel_list {
    tn_parcel *first, *last;
} tn_parcel_list;

void tn_parcel_list_add(tn_parcel_list *l, tn_parcel *p);
tn_parcel *tn_parcel_list_take(tn_parcel_list *l); /* not empty */
void tn_parcel_list_drop(tn_parcel_list *l);       /* all of them */

/* Another rank, as the net thread knows it; but for the last two, which anybody may. */
typedef struct tn_link_dest {
    void *dealer; /* NULL: nobody knows where it is */
    tn_resend resend;
    tn_parcel_list requests;      /* that have no number yet */
    tn_parcel_list plain;         /* to be sent once */
    bool blocked;                 /* the connection takes nothing at the moment */
    uint64_t logged_ns;           /* when a fault of it was told last */
    _Atomic uint32_t open;        /* requests without an answer */
    _Atomic uint64_t incarnation; /* that answers must be of; 0: any */
} tn_link_dest;

struct tn_link {
    tn_zmq z;
    tn_link_opts opts;
    tn_sockets *sockets;
    void *router;
    tn_greeter *greeter; /* of the dealer to rank 0; guarded by lock; NULL: none */
    tn_flood *flood;     /* over the router's connections; NULL: over ipc */
    int wake;            /* eventfd */
    tn_thread *thread;
    atomic_bool stop;
    _Atomic uint64_t session;

    pthread_mutex_t lock;
    tn_parcel_list outbox; /* guarded by lock, as are these */
    void **dialled;        /* size: dealers */
    bool news;             /* some are new */
    tn_link_counts told;   /* counts, as they were a moment ago */

    tn_link_dest *dest; /* size; the net thread's, as is what follows */
    tn_link_counts counts;
    uint64_t next_tick;
    zmq_pollitem_t *item; /* size + 2 */
    uint32_t *item_rank;
};

/* The net thread; arg is the link. */
tn_status tn_link_loop(void *arg, tn_error *err);

typedef enum tn_sent { TN_SENT, TN_SENT_LATER, TN_SENT_NEVER } tn_sent;

/* Completes the header; once per parcel. */
void tn_link_seal(tn_link *l, tn_parcel *p);

/* LATER: the connection takes no more now. */
tn_sent tn_link_send(tn_link *l, void *dealer, tn_parcel *p);

/* Seals and sends an answer, and drops it: who misses it asks again. */
void tn_link_send_answer(tn_link *l, tn_parcel *p);

enum { TN_LINK_ROUTER = -1 }; /* or the rank of a dealer */

/* The next message of a socket; false: there is none. *out is NULL when it was dropped. */
bool tn_link_receive(tn_link *l, int64_t socket, tn_letter **out);

#endif
