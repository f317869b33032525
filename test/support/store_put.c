/* store_put.c - files that are sent to the store: keys, parts of them, and WebHDFS. */
#include "support/store_request.h"

#include "base/core/text.h"
#include "base/math/sha256.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

bool store_is_read(const ask *a)
{
    return strcmp(a->method, "GET") == 0;
}

static bool is_first(const ask *a, const char *word)
{
    return store_is_fault(a, word) && a->nth == 1;
}

void store_grow(const ask *a)
{
    char full[8192];
    const char *name = a->plain + strlen("block/");
    (void)snprintf(full, sizeof full, "%s/%s", a->s->dir, name);
    if (a->grows && access(full, F_OK) == 0) {
        (void)store_keep(a, name, a->body,
                         store_is_fault(a, "liar") ? a->body_size / 2 : a->body_size);
    }
}

/* The body, as far as it comes; false: the connection ends. */
bool store_read_body(ask *a)
{
    char text[64];
    const size_t size =
        store_header(a, "Content-Length", text, sizeof text) ? strtoull(text, NULL, 10) : 0;
    const size_t cut =
        is_first(a, "cut") || is_first(a, "stall") || store_is_fault(a, "hang") ? 2 : 1;
    a->body = malloc(size + 1);
    memcpy(a->body, a->early, a->n_early);
    a->body_size = a->n_early;
    if (store_header(a, "Expect", text, sizeof text) &&
        !store_send(a->fd, "HTTP/1.1 100 Continue\r\n\r\n", 25)) {
        return false;
    }
    while (a->body_size < size / cut) {
        const bool drop = is_first(a, "slow");
        const size_t left = size - a->body_size;
        const size_t most = drop && left > 100000 ? 100000 : left;
        const ssize_t n = recv(a->fd, a->body + a->body_size, most, 0);
        if (n <= 0) {
            return false;
        }
        a->body_size += (size_t)n;
        (void)(drop ? poll(NULL, 0, 2) : 0);
    }
    if (size > 0 && (is_first(a, "stall") || store_is_fault(a, "hang"))) {
        store_grow(a); /* now: the next attempt may be quicker than the end of this one */
        a->grows = false;
        store_hold(a);
    }
    if (size > 0 && is_first(a, "spoil")) {
        a->body[size / 2] ^= 1;
    }
    return cut == 1 || size == 0;
}

/* Parents are made; a cut file is a file. */
bool store_keep(const ask *a, const char *path, const char *data, size_t size)
{
    char full[8192];
    (void)snprintf(full, sizeof full, "%s/%s", a->s->dir, path);
    for (char *slash = full + strlen(a->s->dir) + 1; (slash = strchr(slash, '/')) != NULL;
         slash++) {
        *slash = '\0';
        (void)mkdir(full, 0755);
        *slash = '/';
    }
    FILE *f = fopen(full, "w");
    return f != NULL && fwrite(data, 1, size, f) == size && fclose(f) == 0;
}

static bool rename_in(const ask *a, const char *from, const char *to)
{
    char source[8192];
    char target[8192];
    (void)snprintf(source, sizeof source, "%s/%s", a->s->dir, from);
    (void)snprintf(target, sizeof target, "%s/%s", a->s->dir, to);
    return rename(source, target) == 0;
}

static bool remove_in(const ask *a, const char *path)
{
    char full[8192];
    (void)snprintf(full, sizeof full, "%s/%s", a->s->dir, path);
    return unlink(full) == 0;
}

/* An answer after what was asked for is done. */
bool store_answer_done(const ask *a, const char *status, const char *more, const char *body)
{
    return !is_first(a, "mute") && store_answer(a, status, more, body);
}

/* An object, all at once. */
static bool put_key(const ask *a, const char *data, size_t size, char tag[64])
{
    object o = {0};
    char tmp[64];
    (void)snprintf(tmp, sizeof tmp, ".parts/tmp-%d", a->fd);
    if (!store_keep(a, a->plain, "", 0) || !store_keep(a, tmp, data, size) ||
        !rename_in(a, tmp, a->plain) || !store_load(a, a->plain, &o)) {
        return false;
    }
    (void)snprintf(tag, 64, "%s",
                   is_first(a, "swap") || store_is_fault(a, "liar") ? "\"0\"" : o.tag);
    store_unload(&o);
    return true;
}

static const char *name_part(const char *upload, unsigned n, char out[200])
{
    (void)snprintf(out, 200, ".parts/%.100s.%u", upload, n);
    return out;
}

static bool serve_complete(const ask *a, const char *upload)
{
    char path[200];
    char tag[64];
    char line[200];
    tn_text whole = {0};
    object part = {0};
    unsigned n = 1;
    for (; store_load(a, name_part(upload, n, path), &part); n++) {
        (void)snprintf(line, sizeof line, "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>",
                       n, part.tag);
        tn_text_add(&whole, part.data, part.size);
        store_unload(&part);
        if (strstr(a->body, line) == NULL) {
            tn_text_done(&whole);
            return store_answer(a, "200 OK", "", "<Error><Code>InvalidPart</Code></Error>");
        }
        part = (object){0};
    }
    if (n == 1) {
        return store_answer(a, "404 Not Found", "", "<Error><Code>NoSuchUpload</Code></Error>");
    }
    const bool good = put_key(a, whole.data, whole.size, tag);
    tn_text_done(&whole);
    while (--n > 0) {
        (void)remove_in(a, name_part(upload, n, path));
    }
    (void)snprintf(line, sizeof line, "<X><ETag>&quot;%.*s&quot;</ETag></X>", (int)strlen(tag) - 2,
                   tag + 1);
    return good && store_answer_done(a, "200 OK", "", line);
}

static bool serve_part(const ask *a, const char *upload, const char *number)
{
    char path[200];
    char head[200];
    object part = {0};
    (void)name_part(upload, (unsigned)strtoul(number, NULL, 10), path);
    if (!store_keep(a, path, a->body, a->body_size) || !store_load(a, path, &part)) {
        return false;
    }
    (void)snprintf(head, sizeof head, "ETag: %s\r\n", part.tag);
    store_unload(&part);
    return store_answer_done(a, "200 OK", head, "");
}

static bool drop_parts(const ask *a, const char *upload)
{
    char path[200];
    for (unsigned n = 1; remove_in(a, name_part(upload, n, path)); n++) {
    }
    return store_answer(a, "204 No Content", "", "");
}

/* Whether the hash of the body is the one that was announced. */
static bool is_whole(const ask *a)
{
    char said[80] = "";
    char found[65];
    uint8_t digest[32];
    tn_sha256 h;
    tn_sha256_init(&h);
    tn_sha256_add(&h, a->body, a->body_size);
    tn_sha256_end(&h, digest);
    tn_sha256_hex(digest, found);
    return !store_header(a, "x-amz-content-sha256", said, sizeof said) || strcmp(said, found) == 0;
}

bool store_serve_s3(const ask *a)
{
    char upload[100];
    char number[16];
    char tag[64];
    char head[200];
    store_parameter(a, "uploadId", upload, sizeof upload);
    store_parameter(a, "partNumber", number, sizeof number);
    if (!is_whole(a)) {
        return store_answer(a, "400 Bad Request", "",
                            "<Error><Code>XAmzContentSHA256Mismatch</Code></Error>");
    }
    for (char *c = upload; *c != '\0'; c++) { /* as names of files have it */
        if (*c == '/') {
            *c = '-';
        }
    }
    if (strcmp(a->method, "DELETE") == 0) {
        return drop_parts(a, upload);
    }
    if (strcmp(a->method, "POST") == 0 && *upload == '\0') {
        (void)snprintf(head, sizeof head, "<X><UploadId>u/%llu+</UploadId></X>",
                       (unsigned long long)atomic_load(&a->s->requests));
        return store_answer(a, "200 OK", "", head);
    }
    if (*upload != '\0') {
        return *number != '\0' ? serve_part(a, upload, number) : serve_complete(a, upload);
    }
    if (!put_key(a, a->body, a->body_size, tag)) {
        return false;
    }
    (void)snprintf(head, sizeof head, "ETag: %s\r\n", tag);
    return store_answer_done(a, "200 OK", head, "");
}

/* A redirect to the DataNode, or what the NameNode does itself. */
bool store_serve_hdfs(const ask *a, const char *path, const char *op)
{
    char to[4096];
    char head[8400];
    struct stat st;
    if (strcmp(op, "CREATE") == 0 && a->body_size > 0) {
        return store_answer(a, "400 Bad Request", "", "");
    }
    if (strcmp(op, "CREATE") == 0) {
        (void)snprintf(head, sizeof head, "Location: http://127.0.0.1:%u/block/%s?%s\r\n",
                       a->s->port[0], a->path + strlen("/webhdfs/v1/"), a->query);
        return store_answer(a, "307 Temporary Redirect", head, "");
    }
    if (strcmp(op, "DELETE") == 0) {
        return store_answer_done(a, "200 OK", "",
                                 remove_in(a, path) ? "{\"boolean\":true}" : "{\"boolean\":false}");
    }
    store_parameter(a, "destination", to, sizeof to);
    (void)snprintf(head, sizeof head, "%s%s", a->s->dir, to);
    const bool options =
        strstr(a->query, "renameoptions=OVERWRITE") != NULL && !store_is_fault(a, "old");
    const bool done = (options || stat(head, &st) != 0) && rename_in(a, path, to + 1);
    return options ? (done ? store_answer_done(a, "200 OK", "", "")
                           : store_answer(
                                 a, "404 Not Found", "",
                                 "{\"RemoteException\":{\"exception\":\"FileNotFoundException\"}}"))
                   : store_answer_done(a, "200 OK", "",
                                       done ? "{\"boolean\":true}" : "{\"boolean\":false}");
}
