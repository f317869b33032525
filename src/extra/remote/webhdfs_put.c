/* webhdfs_put.c - sends a file to HDFS: under a hidden name, then its own.
 *
 * https://hadoop.apache.org/docs/stable/hadoop-project-dist/hadoop-hdfs/WebHDFS.html
 *
 *     PUT ..?op=CREATE&overwrite=true           -> 307 to a DataNode, which gets the bytes: 201
 *     GET ..?op=GETFILESTATUS                   the length must be the file's
 *     PUT ..?op=RENAME&destination=..           replaces an older file at once; after its DELETE
 *                                               with HttpFS, which knows no options of RENAME
 *
 * A rename keeps the time of change: the target is what was sent when it has length and time of the
 * hidden file, whatever became of an answer. The hidden name is made of the bytes, so a process
 * that was killed and sends them again takes the same one and leaves none.
 */
#include "extra/remote/scheme_webhdfs.h"

#include "base/file/file.h"
#include "extra/remote/remote_client.h"

#include <string.h>

typedef struct hdfs_upload {
    tn_remote *client;
    const tn_request *request; /* the target */
    tn_text hidden;            /* the path that is written */
    tn_text rename, plain;     /* operations RENAME, over an older file and without one */
    uint64_t size;
    tn_text tag; /* tag of the hidden file: its time of change */
} hdfs_upload;

/* Turns "dir/name" into "dir/.name.0123abcd.tmp": lists pass over names that begin with a dot. */
static tn_status name_paths(hdfs_upload *u, uint32_t crc, tn_error *err)
{
    const tn_bytes path = u->request->path;
    const char *slash = memrchr(path.data, '/', path.size);
    const size_t folder = slash != NULL ? (size_t)(slash - path.data) + 1 : 0;
    tn_text_add(&u->hidden, path.data, folder);
    tn_text_addf(&u->hidden, ".%.*s.%08x.tmp", (int)(path.size - folder), path.data + folder, crc);
    tn_text_adds(&u->plain, "RENAME&destination=%2F");
    tn_uri_encode(&u->plain, path, false);
    tn_text_addf(&u->rename, "%s&renameoptions=OVERWRITE", tn_text_str(&u->plain));
    TN_TRY(tn_text_check(&u->hidden, "a path", err));
    TN_TRY(tn_text_check(&u->plain, "a request", err));
    return tn_text_check(&u->rename, "a request", err);
}

/* Sends a request for the path of `where`, with its `stop` and `once`. */
static tn_status ask(const hdfs_upload *u, const tn_request *where, const char *method,
                     const char *op, const tn_request_body *body, tn_error *err)
{
    tn_text answer = {0};
    tn_http_reply reply;
    tn_request request = *where;
    request.method = method;
    request.document = op;
    request.body = body;
    request.end = UINT64_MAX;
    request.size = UINT64_MAX;
    const tn_status status = tn_remote_ask(u->client, &request, &answer, &reply, err);
    tn_text_done(&answer);
    return status;
}

static tn_request hidden_request(const hdfs_upload *u)
{
    tn_request request = *u->request;
    request.path = (tn_bytes){tn_text_str(&u->hidden), u->hidden.size, false};
    return request;
}

static tn_status other_there(const hdfs_upload *u, tn_error *err)
{
    return tn_fail(err, TN_E_IO, "cannot write '%s': something else lies there than what was sent",
                   u->request->uri->scheme.data);
}

static tn_status send_hidden(hdfs_upload *u, const tn_infile *file, bool *lost, tn_error *err)
{
    const tn_request hidden = hidden_request(u);
    const tn_request_body body = {.file = file, .size = u->size};
    uint64_t size = 0;
    TN_TRY(ask(u, &hidden, "PUT", "CREATE&overwrite=true", &body, err));
    TN_TRY(hidden.scheme->look(u->client, &hidden, &size, &u->tag, err));
    *lost = size != u->size;
    return *lost ? other_there(u, err) : TN_OK;
}

/* Checks whether the target is the file that was sent. */
static tn_status look_after(const hdfs_upload *u, bool *there, tn_error *err)
{
    uint64_t size = 0;
    tn_text tag = {0};
    const tn_status status = u->request->scheme->look(u->client, u->request, &size, &tag, err);
    *there = status == TN_OK && size == u->size && tag.size == u->tag.size &&
             memcmp(tag.data, u->tag.data, tag.size) == 0;
    tn_text_done(&tag);
    return status == TN_E_DATA ? TN_OK : status; /* it is not there, or a folder */
}

/* Renames, and checks what has become of it; TN_OK and not *there: the server did not do it. */
static tn_status give_name(const hdfs_upload *u, const char *op, bool *there, tn_error *err)
{
    tn_error why = {0};
    const tn_request hidden = hidden_request(u);
    const tn_status status = ask(u, &hidden, "PUT", op, NULL, &why);
    TN_TRY(status == TN_E_STOPPED ? tn_fail(err, status, "%s", why.text) : TN_OK);
    TN_TRY(look_after(u, there, err));
    return *there || status == TN_OK ? TN_OK : tn_fail(err, status, "%s", why.text);
}

static tn_status settle(const hdfs_upload *u, tn_error *err)
{
    bool there = false;
    TN_TRY(give_name(u, tn_text_str(&u->rename), &there, err));
    if (!there) {
        const tn_status removed = ask(u, u->request, "DELETE", "DELETE", NULL, err);
        TN_TRY(removed == TN_E_DATA ? TN_OK : removed); /* there was none */
        TN_TRY(give_name(u, tn_text_str(&u->plain), &there, err));
    }
    return there ? TN_OK : other_there(u, err);
}

tn_status tn_webhdfs_put(tn_remote *client, const tn_request *request, const tn_infile *file,
                         bool *lost, tn_error *err)
{
    hdfs_upload u = {.client = client, .request = request, .size = tn_infile_size(file)};
    uint32_t crc = 0;
    tn_status status = tn_infile_crc(file, &crc, err);
    status = status == TN_OK ? name_paths(&u, crc, err) : status;
    if (status == TN_OK) {
        status = send_hidden(&u, file, lost, err);
        status = status == TN_OK ? settle(&u, err) : status;
        if (status != TN_OK) { /* one attempt, since somebody may be waiting for the end */
            tn_request hidden = hidden_request(&u);
            hidden.once = true;
            const tn_status gone = ask(&u, &hidden, "DELETE", "DELETE", NULL, NULL);
            (void)gone; /* it is hidden, and overwritten by who tries again */
        }
    }
    tn_text_done(&u.hidden);
    tn_text_done(&u.rename);
    tn_text_done(&u.plain);
    tn_text_done(&u.tag);
    return status;
}
