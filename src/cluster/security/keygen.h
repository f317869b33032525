/* keygen.h - a new key pair of a peer as two files: what tnet-keygen does.
 *
 *     DIR/NAME.key    the secret half, for the peer alone: mode 0600
 *     DIR/NAME.pub    the public half, for every peer's folder of allowed keys
 *
 * Nothing is overwritten: a peer that lost its old key could not come back.
 */
#ifndef TN_CLUSTER_KEYGEN_H
#define TN_CLUSTER_KEYGEN_H

#include "base/file/file.h"

typedef struct tn_keygen_paths {
    char secret[TN_PATH_SIZE];
    char open[TN_PATH_SIZE];
} tn_keygen_paths;

/* Makes `dir` when it is missing. TN_E_USAGE: `name` is not 1 to 64 letters, digits, '.', '_' and
 * '-', not beginning with '.' or '-'. TN_E_CONFIG: no ZeroMQ, or none with CURVE. TN_E_IO: one of
 * the files is there already, or cannot be written; then there is neither. */
tn_status tn_keygen(const char *dir, const char *name, tn_keygen_paths *out,
                    tn_error *err) TN_MUST_USE;

#endif
