/* store_request.h - a request to the store, and what its parts share: store.c serves what is
 * read, store_list.c lists, store_put.c takes what is sent.
 */
#pragma once

#include "support/store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { WORDS = 1 << 14 };

struct store {
    const char *dir;
    int listening[2];
    unsigned port[2];
    pthread_t thread[2];
    atomic_bool stop;
    atomic_uint connections_open;
    atomic_ullong requests, connections, leaks, tickets, held;
    atomic_uint passed[WORDS]; /* requests of each path */
};

typedef struct ask {
    store *s;
    int fd;
    char method[8];
    char *body; /* as far as it has come; owned */
    size_t body_size;
    const char *early; /* bytes of it that came with the head */
    size_t n_early;
    char *headers;                /* lines behind the first */
    char path[4096], query[4096]; /* as they came */
    char plain[4096];             /* path, decoded, without the slash in front */
    unsigned nth;                 /* request of this path, from 1 */
    bool standby;
    bool grows; /* a file of a DataNode, which has what has come of it */
} ask;

typedef struct object {
    char *data;
    size_t size;
    char tag[64], date[64];
    bool changed;
} object;

bool store_is_fault(const ask *a, const char *word);
bool store_send(int fd, const void *data, size_t size);
/* A whole answer of text; `more` are header lines. True: the connection goes on. */
bool store_answer(const ask *a, const char *status, const char *more, const char *body);
/* Until the other side leaves, or the store does. */
void store_hold(const ask *a);
bool store_header(const ask *a, const char *name, char *out, size_t size);
/* A parameter of the query, decoded; "" when there is none. */
void store_parameter(const ask *a, const char *name, char *out, size_t size);
bool store_load(const ask *a, const char *path, object *out);
void store_unload(object *o);

bool store_is_read(const ask *a);
/* The body, as far as it comes; false: the connection ends. */
bool store_read_body(ask *a);
/* What has come of a file that grows is there, unless it was removed meanwhile. */
void store_grow(const ask *a);
/* Parents are made; a cut file is a file. */
bool store_keep(const ask *a, const char *path, const char *data, size_t size);
/* An answer after what was asked for is done. */
bool store_answer_done(const ask *a, const char *status, const char *more, const char *body);
bool store_serve_s3(const ask *a);
bool store_serve_list(const ask *a);
/* A redirect to the DataNode, or what the NameNode does itself. */
bool store_serve_hdfs(const ask *a, const char *path, const char *op);
