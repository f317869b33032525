/* rendezvous_file.h - a file in which rank 0 writes its address, for launchers that do not give it.
 *
 *     RUN_DIR/peers.root     "0123456789abcdef tcp://10.1.0.7:41234\n": the run, the address
 *
 * The run's name distinguishes this address from one of an earlier run. All machines must see the
 * folder. A file system may show the file late, so the others read it again until their own
 * deadline.
 */
#pragma once

#include "cluster/launch/endpoint.h"

/* Writes the file, by rank 0 once it has bound. Makes the folder. */
tn_status tn_rendezvous_file_write(const char *path, uint64_t job, const char *address,
                                   tn_error *err) TN_MUST_USE;

/* Reads the file, by the others: TN_END while there is nothing of this run. Never waits. */
tn_status tn_rendezvous_file_read(const char *path, uint64_t job, char out[TN_ENDPOINT_SIZE],
                                  tn_error *err) TN_MUST_USE;
