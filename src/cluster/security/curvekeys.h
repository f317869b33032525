/* curvekeys.h - the CURVE key pair of a peer: made, written, read.
 *
 *     NAME.key    the secret half, 40 characters of Z85 and a newline; mode 0600
 *     NAME.pub    the public half, the same way; may go anywhere
 *
 *     tn_curve_pair pair;
 *     TN_TRY(tn_curve_make(&z, &pair, err));
 *     TN_TRY(tn_curve_write(&z, &pair, "peers/rank-0.key", "peers/rank-0.pub", err));
 *     tn_curve_forget(&pair);
 *
 * Z85 is RFC 32 of ZeroMQ: 5 printable characters for 4 bytes. Keys are 32 bytes here, text in
 * files only; messages name files, and of keys only the public half of one that is refused. Any
 * thread.
 */
#ifndef TN_CLUSTER_CURVEKEYS_H
#define TN_CLUSTER_CURVEKEYS_H

#include "cluster/security/zmqcalls.h"

#include <stdint.h>

enum { TN_CURVE_BYTES = 32, TN_CURVE_CHARS = 40 };

typedef struct tn_curve_pair {
    uint8_t open[TN_CURVE_BYTES]; /* the public half */
    uint8_t secret[TN_CURVE_BYTES];
} tn_curve_pair;

/* A new pair from the system's random numbers. TN_E_CONFIG: this libzmq knows no CURVE. */
tn_status tn_curve_make(const tn_zmq *z, tn_curve_pair *out, tn_error *err) TN_MUST_USE;

/* Both files or, when the second cannot be written, none. A file that is there already is TN_E_IO
 * and stays as it is. */
tn_status tn_curve_write(const tn_zmq *z, const tn_curve_pair *pair, const char *secret_path,
                         const char *open_path, tn_error *err) TN_MUST_USE;

/* The pair of a secret file; its public half is computed. TN_E_CONFIG when the file is missing, is
 * no key, or can be read or written by anybody but its owner. */
tn_status tn_curve_read(const tn_zmq *z, const char *secret_path, tn_curve_pair *out,
                        tn_error *err) TN_MUST_USE;

/* The key of a public file. TN_E_CONFIG as above; anybody may read it. */
tn_status tn_curve_read_open(const tn_zmq *z, const char *open_path, uint8_t out[TN_CURVE_BYTES],
                             tn_error *err) TN_MUST_USE;

/* Overwrites it with zeros, which no optimizer takes away. */
void tn_curve_forget(tn_curve_pair *pair);

#endif
