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
#pragma once

#include "base/file/file.h"
#include "cluster/security/zmqcalls.h"

#include <stdint.h>

enum { TN_CURVE_BYTES = 32, TN_CURVE_CHARS = 40 };

typedef struct tn_curve_pair {
    uint8_t open[TN_CURVE_BYTES]; /* the public half */
    uint8_t secret[TN_CURVE_BYTES];
} tn_curve_pair;

/* Makes a new pair from the system's random numbers. TN_E_CONFIG: this libzmq knows no CURVE. */
tn_status tn_curve_make(const tn_zmq *z, tn_curve_pair *out, tn_error *err) TN_MUST_USE;

/* Writes both files or, when the second cannot be written, none. A file that is there already is
 * TN_E_IO and stays as it is. */
tn_status tn_curve_write(const tn_zmq *z, const tn_curve_pair *pair, const char *secret_path,
                         const char *open_path, tn_error *err) TN_MUST_USE;

/* Reads the pair of a secret file; its public half is computed. TN_E_CONFIG when the file is
 * missing, is no key, or can be read or written by anybody but its owner. */
tn_status tn_curve_read(const tn_zmq *z, const char *secret_path, tn_curve_pair *out,
                        tn_error *err) TN_MUST_USE;

/* Reads the key of a public file. TN_E_CONFIG as above; anybody may read it. */
tn_status tn_curve_read_open(const tn_zmq *z, const char *open_path, uint8_t out[TN_CURVE_BYTES],
                             tn_error *err) TN_MUST_USE;

/* Overwrites it with zeros, which no optimizer takes away. */
void tn_curve_forget(tn_curve_pair *pair);

/* Files of a new pair, DIR/NAME.key and DIR/NAME.pub. They never replace others: a peer that lost
 * its old key could not come back. */
typedef struct tn_keygen_paths {
    char secret[TN_PATH_SIZE];
    char open[TN_PATH_SIZE];
} tn_keygen_paths;

/* Makes a new pair, for tnet-keygen. Makes `dir` when it is missing. TN_E_USAGE: `name` is not 1 to
 * 64 letters, digits, '.', '_' and '-', not beginning with '.' or '-'. TN_E_CONFIG: no ZeroMQ, or
 * none with CURVE. TN_E_IO: one of the files is there already, or cannot be written; then there is
 * neither. */
tn_status tn_keygen(const char *dir, const char *name, tn_keygen_paths *out,
                    tn_error *err) TN_MUST_USE;
