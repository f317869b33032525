/* scheme.h - kinds of stores: how each is asked for bytes and for names, and how it gets a file.
 *
 *     extern const tn_scheme tn_scheme_s3;
 *
 * A request is built anew for every attempt, because signatures and secrets have their time. All
 * functions may be called by any thread, each with a request of its own.
 */
#pragma once

#include "base/core/text.h"
#include "extra/remote/curlcalls.h"
#include "extra/remote/http_reply.h"
#include "extra/remote/uri.h"

#include <stdatomic.h>
#include <stdint.h>

typedef struct tn_remote tn_remote; /* remote_client.h */
typedef struct tn_found tn_found;   /* remote_client.h */
typedef struct tn_scheme tn_scheme;
typedef struct tn_secrets tn_secrets; /* secrets.h */
typedef struct tn_infile tn_infile;   /* base/file/file.h */

/* Body of a request: bytes of a file, or (`file` NULL) a text. */
typedef struct tn_request_body {
    const tn_infile *file;
    uint64_t from; /* position of the first byte in the file */
    tn_bytes text;
    uint64_t size;
    char sha256[65]; /* hash of the bytes; "": no scheme asks for it */
} tn_request_body;

/* Something that is asked of a store. */
typedef struct tn_request {
    const tn_scheme *scheme;
    const tn_uri *uri;
    tn_bytes path;        /* the object, or that of `document`; mostly uri->path */
    const char *document; /* NULL: bytes of the object; else the scheme's name of the answer */
    const char *method;   /* NULL: GET; others have a `document`, and 2xx are their good answers */
    const tn_request_body *body; /* NULL: nothing is sent */
    bool once;                   /* there is one attempt, and no stop ends it */
    uint64_t from, end;          /* range of bytes; end UINT64_MAX: to the end of the object */
    uint64_t size;               /* size of the object; UINT64_MAX: not known */
    const char *tag;             /* version of the object; NULL: any */
    const atomic_bool *stop;     /* ends the wait for an answer; NULL: that of base/core/stop.h */
} tn_request;

/* One attempt of a request. Whoever lends it to `build` owns all of it; texts are empty before. */
typedef struct tn_attempt {
    const tn_curl *curl;
    tn_secrets *secrets;
    uint64_t next, end; /* range of bytes that this attempt is for */
    uint32_t node;      /* number of the host to ask, of several, which only grows */
    bool away;          /* a redirect leads to another place: no secrets */
    tn_text url;
    tn_text sign;                    /* CURLOPT_AWS_SIGV4; empty: not signed */
    tn_text user;                    /* CURLOPT_USERPWD */
    struct curl_slist *headers;      /* added with tn_attempt_header */
    bool netrc;                      /* ~/.netrc may know a password */
    bool kerberos;                   /* a ticket goes along: curlcalls.h */
    bool failed;                     /* no memory for a header */
    char no_ticket[TN_KERBEROS_WHY]; /* why GSS-API had no ticket for it; "": it had one */
} tn_attempt;

/* Adds a header; without a `name` the value is the whole line. */
void tn_attempt_header(tn_attempt *a, const char *name, tn_bytes value);
/* Empties texts and headers, secrets first; `next`, `end` and `node` stay. */
void tn_attempt_clear(tn_attempt *a);
/* Returns whether memory ran out for some part of it. */
bool tn_attempt_is_short(const tn_attempt *a);
void tn_attempt_done(tn_attempt *a);

/* An answer whose status is a failure, or a redirect. All of it is lent. */
typedef struct tn_failed_answer {
    const tn_request *request;
    const tn_attempt *attempt;
    const tn_http_reply *reply;
    tn_bytes body; /* its first 64 KiB */
} tn_failed_answer;

typedef enum tn_judgement_kind {
    TN_JUDGED_RETRY,     /* the same request once more, after a pause */
    TN_JUDGED_NEXT_HOST, /* the same to the next host of several */
    TN_JUDGED_REDIRECT,  /* the same at the place that the answer names */
    TN_JUDGED_REFUSE     /* a failure for good, unless renewed secrets help */
} tn_judgement_kind;

/* The decision about such an answer. */
typedef struct tn_judgement {
    tn_judgement_kind kind;
    uint32_t pause_s; /* at least this long before the next attempt; 0: as the answer says */
    tn_text why;      /* a sentence for users: what the server says */
} tn_judgement;

/* Adds the store's own name of a failure to the sentence: " (NoSuchKey)". */
void tn_judgement_name(tn_judgement *v, const char *name);

struct tn_scheme {
    const char *name;
    const char *version_header; /* asks for one version: If-Range, If-Match; NULL: none does */
    bool range_in_url;          /* the URL names the bytes; an answer 200 begins with them */
    bool redirects_first;       /* a NameNode: the body is sent only after its redirect */
    uint32_t redirects_max;
    uint32_t document_bytes_max; /* 0: TN_DOCUMENT_BYTES_MAX */
    void (*build)(const tn_request *request, tn_attempt *out);
    /* Changes the URL of a redirect to that of other bytes; false: it cannot. NULL: every range is
     * redirected anew. */
    bool (*move)(tn_text *url, uint64_t from, uint64_t end);
    /* Changes the judgement by HTTP's rules of an answer, in which the store may say more than its
     * status does. NULL: it never does. */
    void (*judge)(const tn_failed_answer *answer, tn_judgement *v);
    /* Lists the objects that a URI means; NULL: itself alone. */
    tn_status (*list)(tn_remote *client, const tn_request *request, tn_found *found, tn_error *err);
    /* Asks for size and tag, where an answer with bytes does not name them; NULL: it does. */
    tn_status (*look)(tn_remote *client, const tn_request *request, uint64_t *size, tn_text *tag,
                      tn_error *err);
    /* Sends a file to the place of the request, as a whole or not at all; NULL: it cannot be
     * written to. *lost, of a failure: all was sent, and something else is there. */
    tn_status (*put)(tn_remote *client, const tn_request *request, const tn_infile *file,
                     bool *lost, tn_error *err);
};

extern const tn_scheme tn_scheme_http, tn_scheme_https, tn_scheme_s3, tn_scheme_gs,
    tn_scheme_webhdfs, tn_scheme_swebhdfs, tn_scheme_abfs, tn_scheme_abfss;
