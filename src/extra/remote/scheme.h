/* scheme.h - what a kind of store is: how it is asked for bytes, how for names, and how it is given
 * a file.
 *
 *     extern const tn_scheme tn_scheme_s3;
 *
 * A request is built anew for every attempt, because signatures and secrets have their time. All
 * functions may be called by any thread, each with a request of its own.
 */
#pragma once

#include "base/core/text.h"
#include "extra/remote/curlcalls.h"
#include "io/source/uri.h"

#include <stdatomic.h>
#include <stdint.h>

typedef struct tn_remote tn_remote; /* remote_client.h */
typedef struct tn_found tn_found;   /* remote_client.h */
typedef struct tn_scheme tn_scheme;
typedef struct tn_secrets tn_secrets; /* secrets.h */
typedef struct tn_infile tn_infile;   /* base/file/file.h */

/* What a request sends: bytes of a file, or (`file` NULL) a text. */
typedef struct tn_sending {
    const tn_infile *file;
    uint64_t from; /* of the file */
    tn_bytes text;
    uint64_t size;
    char sha256[65]; /* of the bytes; "": no scheme asks for it */
} tn_sending;

/* What is wanted. */
typedef struct tn_wish {
    const tn_scheme *scheme;
    const tn_uri *uri;
    tn_bytes path;        /* the object, or whose `document`: uri->path unless something else */
    const char *document; /* NULL: bytes of the object; else what the scheme calls an answer */
    const char *method;   /* NULL: GET; others have a `document`, and 2xx are their good answers */
    const tn_sending *sends; /* along with it; NULL: nothing */
    bool once;               /* a failure that may pass is for good; no stop ends it */
    uint64_t from, end;      /* bytes; UINT64_MAX: to the end, whereever it is */
    uint64_t size;           /* of the object, as far as is known; UINT64_MAX */
    const char *tag;         /* of its version; NULL: any */
    const atomic_bool *stop; /* ends the wait for an answer; NULL: that of base/core/stop.h */
} tn_wish;

/* One attempt. All is owned by whoever lends it to `build`, empty before. */
typedef struct tn_request {
    const tn_curl *curl;
    tn_secrets *secrets;
    uint64_t next, end; /* bytes that this attempt is for */
    uint32_t node;      /* which of several hosts, counted on and on */
    bool away;          /* a redirect leads to another place: no secrets */
    tn_text url;
    tn_text sign;               /* CURLOPT_AWS_SIGV4; empty: not signed */
    tn_text user;               /* CURLOPT_USERPWD */
    struct curl_slist *headers; /* added with tn_request_header */
    bool netrc;                 /* ~/.netrc may know a password */
    bool kerberos;              /* a ticket goes along: kerberos.h */
    bool failed;                /* no memory */
} tn_request;

void tn_request_header(tn_request *r, const char *name, tn_bytes value);

struct tn_scheme {
    const char *name;
    const char *version_header; /* asks for one version: If-Range, If-Match; NULL: none does */
    bool addressed;             /* the URL says which bytes; an answer 200 begins with them */
    uint32_t redirects_max;
    uint32_t document_bytes_max; /* 0: TN_DOCUMENT_BYTES_MAX */
    void (*build)(const tn_wish *wish, tn_request *out);
    /* Makes of where a redirect has led the address of other bytes; false: it cannot. NULL: every
     * range is redirected anew. */
    bool (*move)(tn_text *url, uint64_t from, uint64_t end);
    /* Appends a word for what an answer of failure says; NULL: nothing does. */
    void (*explain)(tn_bytes body, tn_text *out);
    /* Objects that a URI means; NULL: itself alone. */
    tn_status (*list)(tn_remote *client, const tn_wish *wish, tn_found *found, tn_error *err);
    /* Size and tag, where an answer with bytes does not tell them; NULL: it does. */
    tn_status (*look)(tn_remote *client, const tn_wish *wish, uint64_t *size, tn_text *tag,
                      tn_error *err);
    /* Sends a file to where the wish leads, as a whole or not at all; NULL: it cannot be written
     * to. *lost, of a failure: all was sent, and something else lies there. */
    tn_status (*put)(tn_remote *client, const tn_wish *wish, const tn_infile *file, bool *lost,
                     tn_error *err);
};

extern const tn_scheme tn_scheme_http, tn_scheme_https, tn_scheme_s3, tn_scheme_gs,
    tn_scheme_webhdfs, tn_scheme_swebhdfs, tn_scheme_abfs, tn_scheme_abfss;
