/* s3_put.c - sends a file to S3: one PUT, or a multipart upload.
 *
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateMultipartUpload.html and its
 * neighbours.
 *
 *     POST KEY?uploads=                        -> UploadId
 *     PUT KEY?partNumber=1&uploadId=..         -> ETag, for each part
 *     POST KEY?uploadId=..  <Complete..>       -> the object is there, all at once
 *     DELETE KEY?uploadId=..                   after a failure: else parts are kept, and paid for
 *
 * Each request is signed with the SHA-256 of what it sends, which the store compares: bytes that
 * change on their way are refused. What lies there afterwards must have the size of the file and
 * the ETag that the store has answered.
 */
#include "extra/remote/scheme_s3.h"

#include "base/core/alloc.h"
#include "base/file/file.h"
#include "base/math/sha256.h"
#include "extra/remote/remote_client.h"
#include "extra/remote/s3_list.h"

#include <string.h>

enum { HASHED_BYTES = 1 << 18 };

typedef struct s3_upload {
    tn_remote *client;
    const tn_request *request;
    const tn_infile *file;
    tn_text id;     /* id of a multipart upload, encoded for a query */
    tn_text etag;   /* ETag of the object, as the store has answered */
    tn_text answer; /* body of the last answer */
    tn_text parts;  /* <Part>.. elements of the parts that were sent */
} s3_upload;

/* ---- requests ---- */

static tn_status hash_file(tn_request_body *s, tn_error *err)
{
    char *data = NULL;
    uint8_t digest[32];
    tn_sha256 h;
    tn_status status = TN_OK;
    TN_TRY(TN_ALLOC(data, HASHED_BYTES, "bytes of a file", err));
    tn_sha256_init(&h);
    for (uint64_t at = 0; at < s->size && status == TN_OK;) {
        const uint64_t left = s->size - at;
        const size_t size = left < HASHED_BYTES ? (size_t)left : HASHED_BYTES;
        status = tn_infile_read(s->file, s->from + at, data, size, err);
        if (status == TN_OK) {
            tn_sha256_add(&h, data, size);
        }
        at += size;
    }
    tn_sha256_end(&h, digest);
    tn_sha256_hex(digest, s->sha256);
    tn_free(data);
    return status;
}

static void hash_text(tn_request_body *s)
{
    tn_sha256_hex_of(s->text.data, s->text.size, s->sha256);
    s->size = s->text.size;
}

static tn_status ask(s3_upload *u, const char *method, const char *query,
                     const tn_request_body *body, tn_http_reply *reply, tn_error *err)
{
    tn_request request = *u->request;
    request.method = method;
    request.document = query;
    request.body = body;
    request.end = UINT64_MAX;
    request.size = UINT64_MAX;
    return tn_remote_ask(u->client, &request, &u->answer, reply, err);
}

static tn_status send_span(s3_upload *u, const char *query, uint64_t from, uint64_t size,
                           tn_http_reply *reply, tn_error *err)
{
    tn_request_body s = {.file = u->file, .from = from, .size = size};
    TN_TRY(hash_file(&s, err));
    return ask(u, "PUT", query, &s, reply, err);
}

/* ---- in parts ---- */

static tn_status odd_answer(const s3_upload *u, const char *what, tn_error *err)
{
    return tn_fail(err, TN_E_IO, "cannot write '%s': the store %s", u->request->uri->scheme.data,
                   what);
}

static tn_status begin_parts(s3_upload *u, tn_error *err)
{
    tn_http_reply reply;
    tn_text id = {0};
    TN_TRY(ask(u, "POST", "uploads=", NULL, &reply, err));
    const bool named =
        tn_s3_element((tn_bytes){tn_text_str(&u->answer), u->answer.size, false}, "UploadId", &id);
    tn_uri_encode(&u->id, (tn_bytes){tn_text_str(&id), id.size, false}, false);
    tn_text_done(&id);
    TN_TRY(tn_text_check(&u->id, "the name of an upload", err));
    return named && u->id.size > 0 ? TN_OK : odd_answer(u, "does not name the upload", err);
}

static tn_status send_parts(s3_upload *u, uint64_t part_bytes, tn_error *err)
{
    const uint64_t size = tn_infile_size(u->file);
    tn_text query = {0};
    tn_status status = TN_OK;
    uint32_t n = 1;
    for (uint64_t at = 0; at < size && status == TN_OK; at += part_bytes, n++) {
        const uint64_t left = size - at;
        tn_http_reply reply;
        tn_text_clear(&query);
        tn_text_addf(&query, "partNumber=%u&uploadId=%s", n, tn_text_str(&u->id));
        status = tn_text_check(&query, "a request", err);
        if (status == TN_OK) {
            status = send_span(u, tn_text_str(&query), at, left < part_bytes ? left : part_bytes,
                               &reply, err);
        }
        if (status == TN_OK && reply.etag[0] == '\0') {
            status = odd_answer(u, "names no ETag of a part", err);
        }
        if (status == TN_OK) {
            tn_text_addf(&u->parts, "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>", n,
                         reply.etag);
        }
    }
    TN_ASSERT(n <= TN_S3_PARTS_MAX + 1);
    tn_text_done(&query);
    return status;
}

/* Ends an upload in parts. A lost answer, and a second one that knows no such upload, leave open
 * what is there; 200 may be the beginning of an answer that ends as a failure. */
static tn_status end_parts(s3_upload *u, bool *lost, tn_error *err)
{
    tn_text list = {0};
    tn_text query = {0};
    tn_http_reply reply = {0};
    tn_text_addf(&list, "<CompleteMultipartUpload>%s</CompleteMultipartUpload>",
                 tn_text_str(&u->parts));
    tn_text_addf(&query, "uploadId=%s", tn_text_str(&u->id));
    tn_status status = tn_text_check(&list, "the list of parts", err);
    status = status == TN_OK ? tn_text_check(&query, "a request", err) : status;
    if (status == TN_OK) {
        tn_request_body s = {.text = {tn_text_str(&list), list.size, false}};
        hash_text(&s);
        status = ask(u, "POST", tn_text_str(&query), &s, &reply, err);
        *lost = status == TN_E_DATA && reply.status == 404;
    }
    if (status == TN_OK) {
        const tn_bytes answer = {tn_text_str(&u->answer), u->answer.size, false};
        *lost = !tn_s3_element(answer, "ETag", &u->etag);
        status = *lost ? odd_answer(u, "does not put the parts together", err)
                       : tn_text_check(&u->etag, "an ETag", err);
    }
    tn_text_done(&list);
    tn_text_done(&query);
    return status;
}

/* Removes the parts that were sent, by one attempt, since somebody may be waiting for the end. */
static void take_back(s3_upload *u)
{
    tn_text query = {0};
    tn_http_reply reply;
    tn_request request = *u->request;
    const tn_request *whole = u->request;
    request.once = true;
    u->request = &request;
    tn_text_addf(&query, "uploadId=%s", tn_text_str(&u->id));
    if (!query.failed) {
        const tn_status gone = ask(u, "DELETE", tn_text_str(&query), NULL, &reply, NULL);
        (void)gone; /* the store removes what is left, if it was configured to: docs/data.md */
    }
    u->request = whole;
    tn_text_done(&query);
}

/* Returns the size of parts, which grows with the file: there are never more than
 * TN_S3_PARTS_MAX. */
static uint64_t part_size(uint64_t size)
{
    const uint64_t least = size / TN_S3_PARTS_MAX + 1;
    return least > TN_S3_PART_BYTES ? least : TN_S3_PART_BYTES;
}

static tn_status put_parts(s3_upload *u, bool *lost, tn_error *err)
{
    TN_TRY(begin_parts(u, err));
    tn_status status = send_parts(u, part_size(tn_infile_size(u->file)), err);
    status = status == TN_OK ? end_parts(u, lost, err) : status;
    if (status != TN_OK) {
        take_back(u);
    }
    return status;
}

static tn_status put_whole(s3_upload *u, tn_error *err)
{
    tn_http_reply reply;
    TN_TRY(send_span(u, "", 0, tn_infile_size(u->file), &reply, err));
    tn_text_adds(&u->etag, reply.etag);
    return tn_text_check(&u->etag, "an ETag", err);
}

/* Checks what is there. A user who may write and not read skips this: the store has compared the
 * bytes with their hash. */
static tn_status look_after(s3_upload *u, bool *lost, tn_error *err)
{
    const uint64_t size = tn_infile_size(u->file);
    tn_request request = *u->request;
    tn_http_reply reply;
    request.end = 1;
    request.size = UINT64_MAX;
    const tn_status status = tn_remote_ask(u->client, &request, &u->answer, &reply, err);
    if (status == TN_E_DATA && (reply.status == 401 || reply.status == 403)) {
        return TN_OK;
    }
    TN_TRY(status == TN_E_DATA && reply.status == 404 ? TN_OK : status);
    const uint64_t there = reply.status == 200 && reply.has_length ? reply.length
                           : reply.has_total                       ? reply.total
                                                                   : UINT64_MAX;
    const bool same_tag = reply.etag[0] == '\0' || u->etag.size == 0 ||
                          strcmp(reply.etag, tn_text_str(&u->etag)) == 0;
    *lost = there != size || !same_tag;
    return *lost ? odd_answer(u, "has something else there than what was sent", err) : TN_OK;
}

tn_status tn_s3_put(tn_remote *client, const tn_request *request, const tn_infile *file, bool *lost,
                    tn_error *err)
{
    s3_upload u = {.client = client, .request = request, .file = file};
    tn_status status =
        tn_infile_size(file) <= TN_S3_PART_BYTES ? put_whole(&u, err) : put_parts(&u, lost, err);
    status = status == TN_OK ? look_after(&u, lost, err) : status;
    tn_text_done(&u.id);
    tn_text_done(&u.etag);
    tn_text_done(&u.answer);
    tn_text_done(&u.parts);
    return status;
}
