/* remote_objects.c - from a URI to objects: lists, and the facts that come with the first bytes. */
#include "extra/remote/remote_client.h"

#include <stdlib.h>
#include <string.h>

tn_status tn_http_is(const char *path, bool *out, tn_error *err)
{
    tn_uri u;
    const tn_scheme *scheme = NULL;
    if (!tn_uri_is(path)) {
        *out = false;
        return TN_OK;
    }
    TN_TRY(tn_remote_parse(path, &u, &scheme, err));
    *out = true;
    return TN_OK;
}

/* ---- one object ---- */

static const char *keep(tn_arena *arena, const char *data, size_t size)
{
    char *copy = tn_arena_alloc(arena, size + 1, 1, 1);
    memcpy(copy, data, size);
    copy[size] = '\0';
    return copy;
}

/* Asks for size and tag, where the scheme has a request of its own for them. */
static tn_status look(tn_remote *r, const tn_request *request, tn_remote_object *object,
                      tn_arena *arena, tn_error *err)
{
    tn_text tag = {0};
    if (request->scheme->look == NULL || object->tag != NULL) {
        return TN_OK;
    }
    tn_status status = request->scheme->look(r, request, &object->size, &tag, err);
    if (status == TN_OK) {
        object->tag = keep(arena, tag.data, tag.size);
    }
    tn_text_done(&tag);
    return status;
}

/* Takes the facts of an object from the answer to a request for its first bytes. */
static void learn(const tn_request *request, const tn_http_reply *reply, tn_remote_object *object,
                  tn_arena *arena)
{
    if (request->scheme->range_in_url) {
        object->ranged = true;
        return;
    }
    const char *tag = tn_http_reply_tag(reply);
    const bool whole = reply->status == 200;
    if (whole ? reply->has_length : reply->has_total) {
        object->size = whole ? reply->length : reply->total;
    }
    if (object->tag == NULL && *tag != '\0') {
        object->tag = keep(arena, tag, strlen(tag));
    }
    object->ranged = !whole && object->size != UINT64_MAX && object->tag != NULL;
}

tn_status tn_http_probe(tn_remote *r, tn_remote_object *object, tn_arena *arena, tn_error *err)
{
    tn_uri uri;
    tn_request request = {0};
    tn_text answer = {0};
    tn_http_reply reply = {0};
    if (object->first != NULL) {
        return TN_OK;
    }
    TN_TRY(tn_remote_parse(object->uri, &uri, &request.scheme, err));
    request.uri = &uri;
    request.path = uri.path;
    TN_TRY(look(r, &request, object, arena, err));
    request.size = object->size;
    request.tag = object->tag;
    if (object->size == 0) {
        object->first = keep(arena, "", 0);
        return TN_OK;
    }
    request.end = object->size < TN_REMOTE_FIRST ? object->size : TN_REMOTE_FIRST;
    tn_status status = tn_remote_ask(r, &request, &answer, &reply, err);
    if (status == TN_OK) {
        learn(&request, &reply, object, arena);
        object->first = keep(arena, tn_text_str(&answer), answer.size);
        object->n_first = (uint32_t)answer.size;
    }
    tn_text_done(&answer);
    return status;
}

/* ---- all that a URI means ---- */

static int by_uri(const void *a, const void *b)
{
    const tn_remote_object *x = a;
    const tn_remote_object *y = b;
    return strcmp(x->uri, y->uri);
}

/* Finds the object itself, if it is there. */
static tn_status find_one(tn_remote *r, const tn_request *request, tn_found *found, tn_error *err)
{
    TN_TRY(tn_arena_reserve(found->arena, 2 * sizeof *found->object, "an object", err));
    found->object = TN_NEW_ARRAY(found->arena, tn_remote_object, 1);
    *found->object = (tn_remote_object){.size = UINT64_MAX};
    const char *uri = request->uri->scheme.data;
    found->object->uri = keep(found->arena, uri, strlen(uri));
    TN_TRY(tn_http_probe(r, found->object, found->arena, err));
    found->n = 1;
    return TN_OK;
}

/* Finds the objects under "PATH/", in stores that have no folders. */
static tn_status find_under(tn_remote *r, const tn_request *request, tn_found *found, tn_error *err)
{
    tn_text path = {0};
    tn_request folder = *request;
    tn_text_addf(&path, "%.*s/", (int)request->path.size, request->path.data);
    folder.path = (tn_bytes){tn_text_str(&path), path.size, false};
    tn_status status = tn_text_check(&path, "a path", err);
    status = status == TN_OK ? request->scheme->list(r, &folder, found, err) : status;
    tn_text_done(&path);
    return status;
}

static tn_status find_all(tn_remote *r, const tn_request *request, tn_found *found, tn_error *err)
{
    const tn_bytes path = request->path;
    const bool pattern = tn_uri_plain(path) < path.size;
    const bool folder = path.size == 0 || path.data[path.size - 1] == '/';
    if (request->scheme->list == NULL) {
        return !pattern ? find_one(r, request, found, err)
                        : tn_fail(err, TN_E_DATA,
                                  "'%s': %s has no lists of names to match a pattern with\n"
                                  "hint: name every object, or write {a,b}",
                                  request->uri->scheme.data, request->scheme->name);
    }
    if (pattern || folder || request->scheme->look != NULL) { /* schemes with `look` have folders */
        return request->scheme->list(r, request, found, err);
    }
    tn_error why = {0};
    tn_status status = find_one(r, request, found, &why);
    if (status == TN_E_DATA) {
        const tn_status under = find_under(r, request, found, err);
        if (under == TN_E_STOPPED || (under == TN_OK && found->n > 0)) {
            return under;
        }
    }
    if (status != TN_OK && err != NULL) {
        *err = why;
    }
    return status;
}

tn_status tn_http_list(tn_remote *r, const char *uri, tn_arena *arena, tn_remote_object **out,
                       uint32_t *n, tn_error *err)
{
    tn_uri u;
    tn_request request = {.end = UINT64_MAX, .size = UINT64_MAX};
    tn_found found = {.arena = arena};
    TN_TRY(tn_remote_parse(uri, &u, &request.scheme, err));
    request.uri = &u;
    request.path = u.path;
    TN_TRY(tn_secrets_admit(r->secrets, &u, err));
    TN_TRY(find_all(r, &request, &found, err));
    if (found.n == 0) {
        const bool pattern = tn_uri_plain(u.path) < u.path.size;
        return tn_fail(err, TN_E_DATA, "no object %s '%s'", pattern ? "matches" : "lies in", uri);
    }
    qsort(found.object, found.n, sizeof *found.object, by_uri);
    *out = found.object;
    *n = found.n;
    return TN_OK;
}
