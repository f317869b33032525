/* library.h - shared libraries that are loaded when somebody uses them.
 *
 *     static const tn_library_name it = {"libzmq.so.5", "peers need ZeroMQ, which",
 *                                        "install libzmq5"};
 *     TN_TRY(tn_library_load(&library, &it, err));
 *     TN_TRY(tn_library_find(library, &it, "zmq_ctx_new", &calls->zmq_ctx_new, err));
 *
 * A linked library slows every start of every program, and a missing one would keep all programs
 * from starting. A loaded library stays until the process ends, because any thread may be using its
 * code. Any thread may call.
 */
#pragma once

#include "base/core/error.h"

typedef struct tn_library_name {
    const char *file;
    const char *subject; /* subject of the message "<subject> cannot be loaded: .." */
    const char *hint;
} tn_library_name;

/* Loads a library. TN_E_CONFIG: it is missing or cannot be used; TN_E_MEMORY: no room to map it, or
 * what it needs. */
tn_status tn_library_load(void **out, const tn_library_name *name, tn_error *err) TN_MUST_USE;

/* Writes an address to *out, a pointer to a function. TN_E_CONFIG: the library has none. */
tn_status tn_library_find(void *library, const tn_library_name *name, const char *call, void *out,
                          tn_error *err) TN_MUST_USE;
