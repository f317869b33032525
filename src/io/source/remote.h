/* remote.h - objects that a URI names, found and read as files are.
 *
 *     http://HOST/PATH   https://HOST/PATH     one object
 *     s3://BUCKET/KEY    gs://BUCKET/KEY       one object, a pattern, or what lies under KEY/
 *     webhdfs://HOST:PORT/PATH                 the same; swebhdfs:// is it over TLS
 *     webhdfs://HOST:PORT,HOST:PORT/PATH       NameNodes: the first that is not on standby
 *     abfs(s)://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH          one object, by its SAS
 *
 *     TN_TRY(tn_remotes()->open(&r, data->secrets, err));
 *     TN_TRY(tn_remotes()->list(r, "s3://logs/day=1/part-*", arena, &object, &n, err));
 *     TN_TRY(tn_remotes()->probe(r, &object[0], arena, err));
 *     TN_TRY(tn_remotes()->stream_open(&s, r, &object[0], from, stop, err));
 *     TN_TRY(tn_remotes()->stream_read(s, data, size, &got, err));       got 0: the end
 *
 * A reader gets the bytes of one version of the object, each once and in order, or an error. A
 * version is a size and a tag: the strong ETag, else Last-Modified; of WebHDFS the time of change.
 * An answer that shows another one ends the read ("changed while being read"), as does a body that
 * is shorter than announced and cannot be read on.
 *
 *     object   |---- done ----|-- 4 MiB --|-- 4 MiB --|-- 4 MiB --|-- 4 MiB --|
 *                             ^ read here   up to TN_TRANSFERS ranged requests under way
 *
 * Requests that fail are repeated from the byte that was reached, at random times below 0.2 s * 2^k
 * and 30 s, at Retry-After where the server says so, and until 8 in a row brought less than 1024
 * bytes each. A request that brings less than 1024 bytes a second in 30 s counts as failed. After 2
 * s without a byte the log says what is waited for. TNET_FAST divides these times in test builds,
 * TNET_SILENCE the last but one. What is read, and which error comes at which byte, does not depend
 * on when answers come. Every wait, the first one too, ends within 50 ms with TN_E_STOPPED when the
 * process is to end (base/core/stop.h).
 *
 * Secrets come from a file, the environment and ~/.aws/credentials (secrets.h), never from a URI,
 * go only to the host they are of and are in no message. TLS is always verified; a redirect never
 * leads from https to http. Proxies are those of the environment, as with curl(1).
 *
 * Files go the other way:
 *
 *     s3://BUCKET/KEY  gs://BUCKET/KEY           one PUT, or parts put together: never half there
 *     webhdfs://HOST:PORT/PATH  swebhdfs://..    a hidden file beside, which is renamed
 *
 *     TN_TRY(tn_remotes()->check_target("s3://models/a/dict.tnd", false, err));  asks nobody
 *     TN_TRY(tn_remotes()->open(&r, data->secrets, err));
 *     TN_TRY(tn_remotes()->put(r, "/tmp/dict.tnd", "s3://models/a/dict.tnd", stop, err));
 *
 * The store keeps this promise: after TN_OK the bytes of the file lie there, by size and by the
 * version that the store has named; what lay there before is replaced at once. After a failure or
 * a stop nothing has changed under that name, but by HttpFS, whose older file may be gone. Bytes
 * are compared on their way: by S3 with the SHA-256 that is signed, by HDFS with its own sums.
 *
 * Attempts, pauses, silences, secrets and redirects are those of reading. A kill leaves
 * a hidden file, which the next attempt with the same bytes uses up, or parts of an upload, which
 * stores remove by a rule of the bucket (AbortIncompleteMultipartUpload). Any thread; memory: 256
 * KiB.
 *
 * libcurl is loaded by `open`: TN_E_CONFIG when it is not there. A tn_remote may be used by
 * any thread, a stream by one at a time. Memory of a stream: 16 MiB, kept by the tn_remote with its
 * connections for the next one. Formats: docs/formats.md section 5.
 */
#pragma once

#include "base/core/error.h"
#include "base/file/file.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_arena tn_arena; /* base/core/arena.h */
typedef struct tn_strs tn_strs;   /* config/values.h */
typedef struct tn_remote tn_remote;

typedef struct tn_remote_object {
    const char *uri;
    uint64_t size;     /* UINT64_MAX: not known */
    const char *tag;   /* name of this version; NULL: not known */
    bool ranged;       /* it can be read from the middle; else `size` may be unknown */
    const char *first; /* its first bytes, `n_first` of them; NULL: it was not probed */
    uint32_t n_first;
} tn_remote_object;

enum { TN_REMOTE_FIRST = 64 };

typedef struct tn_remote_stream tn_remote_stream;

/* The functions of the row of remotes.def; without a row every URI is refused. */
typedef struct tn_remote_kind {
    /* Decides whether a path is a URI that is read here. TN_E_DATA: it is one, and cannot be. */
    tn_status (*is)(const char *path, bool *out, tn_error *err);

    /* `secrets` is a file, see secrets.h; NULL: none. */
    tn_status (*open)(tn_remote **out, const char *secrets, tn_error *err);
    void (*close)(tn_remote *r); /* NULL is fine; streams are closed before */

    /* Lists the objects that a URI means, sorted bytewise, in `arena`. A pattern matches whole
     * names between slashes; a folder means its names but those that begin with '.' or '_'. An
     * object that is named itself is probed. TN_E_DATA: there are none, or the server refuses. */
    tn_status (*list)(tn_remote *r, const char *uri, tn_arena *arena, tn_remote_object **out,
                      uint32_t *n, tn_error *err);

    /* Completes what is known of an object, by one request for its first TN_REMOTE_FIRST bytes;
     * does nothing if that was done. TN_E_DATA: it is not there, or not the version that was
     * listed. */
    tn_status (*probe)(tn_remote *r, tn_remote_object *object, tn_arena *arena, tn_error *err);

    /* Opens a stream from byte `from` on, which is 0 unless the object is `ranged`. The object was
     * probed or listed with size and tag; it and `r` must outlive the stream. Reads end when *stop
     * turns true; NULL: when the process is to end. */
    tn_status (*stream_open)(tn_remote_stream **out, tn_remote *r, const tn_remote_object *object,
                             uint64_t from, const atomic_bool *stop, tn_error *err);
    void (*stream_close)(tn_remote_stream *s); /* NULL is fine */
    /* Fetches no byte from `until` on before it is asked for. */
    void (*stream_until)(tn_remote_stream *s, uint64_t until);
    /* Reads at least 1 byte and at most `size`; *n 0: the end. TN_E_DATA: the object changed, is
     * gone, or the server refuses; TN_E_IO: it cannot be reached; TN_E_STOPPED. */
    tn_status (*stream_read)(tn_remote_stream *s, void *data, size_t size, size_t *n,
                             tn_error *err);

    /* Checks the URI of a folder that gets files, or of a file. TN_E_CONFIG: it is no URI, names no
     * file, has a secret, is a pattern, or of a store that is not written to. */
    tn_status (*check_target)(const char *uri, bool is_file, tn_error *err);

    /* Sends the file at `path`, which must not change meanwhile. TN_E_IO: it cannot be read, or the
     * store refuses it or cannot be reached; TN_E_CONFIG as above; TN_E_STOPPED when *stop (NULL:
     * the process's) turns true, within 50 ms and the one request that removes what was sent, which
     * a silent server gets 3 s for. */
    tn_status (*put)(tn_remote *r, const char *path, const char *uri, const atomic_bool *stop,
                     tn_error *err);

    /* Checks which hosts would get a header of a file of secrets. TN_E_CONFIG: one that names no
     * host would go to a second one. Warns once, if `warn`, of one that goes unencrypted to another
     * machine. */
    tn_status (*check_hosts)(const char *secrets, const tn_strs *const lists[], uint32_t n,
                             bool warn, tn_error *err);
} tn_remote_kind;

const tn_remote_kind *tn_remotes(void);

size_t tn_uri_scheme(const char *text); /* bytes before "://"; 0: the text is no URI */
bool tn_uri_is(const char *text);       /* "word://.." */
/* Writes "a/b" of "a" or "a/", and "b". TN_E_LIMIT. */
tn_status tn_uri_join(const char *uri, const char *name, char out[TN_PATH_SIZE],
                      tn_error *err) TN_MUST_USE;
