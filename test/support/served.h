/* served.h - a folder that a store serves, with secrets for it: what tests of remote data begin
 * with.
 *
 *     served s;
 *     served_open(&s, "!cut !stall b signed");        links to '.' in s.dir: faults, buckets
 *     served_write(s.dir, "a.bin", data, size);
 *     served_uri(&s, "http://127.0.0.1:%u/!cut/a.bin", uri);
 *     served_close(&s);
 *
 * Failures end the test.
 */
#pragma once

#include "support/store.h"

#include <stdatomic.h>
#include <stddef.h>

typedef struct served {
    char dir[256];
    char secrets[300]; /* a file in it */
    store *server;
} served;

void served_open(served *s, const char *links);
void served_close(served *s);

void served_write(const char *dir, const char *name, const void *data, size_t size);
/* Bytes that look random, the same ever; free. */
char *served_bytes(size_t size);
/* The file of secrets anew: [default] with the places of the store, and these lines. */
void served_secrets(const served *s, const char *lines);

enum { SERVED_URI = 512 };
/* "%u" in a form is the store's port; "%n" is that of the standby and, behind a comma, the store's.
 */
void served_uri(const served *s, const char *form, char out[SERVED_URI]);

/* A thread that sets `stop` as soon as so many requests have come, and so many are held. */
typedef struct served_stop {
    const served *s;
    atomic_bool stop;
    uint64_t requests, held;
} served_stop;
void *served_stop_thread(void *stop);

/* Divides the silence after which a server counts as lost. "1" leaves it as it is, so that a busy
 * machine is not taken for a silent server. */
void served_silence(const char *divisor);
