/* store_list.c - lists of a bucket in pages, as S3 has them, and as it must not. */
#include "support/store_request.h"

#include "base/core/text.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    KEYS_MAX = 4096,
    PAGE = 2,
    HUGE_BLANKS = 16 << 10 /* KiB */,
    ENDLESS = 100 /* pages, for a test */
};

typedef struct keys {
    char *key[KEYS_MAX];
    size_t n;
} keys;

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Files below a folder of the bucket; links only where the prefix goes through them. */
static void walk(const char *bucket, const char *folder, const char *prefix, keys *out)
{
    char full[8192];
    (void)snprintf(full, sizeof full, "%s/%s", bucket, folder);
    DIR *dir = opendir(full);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this thread's */
    for (struct dirent *e = NULL; dir != NULL && (e = readdir(dir)) != NULL;) {
        char key[4096];
        struct stat st;
        (void)snprintf(key, sizeof key, "%s%s", folder, e->d_name);
        (void)snprintf(full, sizeof full, "%s/%s", bucket, key);
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || lstat(full, &st) != 0) {
            continue;
        }
        if (S_ISREG(st.st_mode)) {
            if (strncmp(key, prefix, strlen(prefix)) == 0 && out->n < KEYS_MAX) {
                out->key[out->n++] = strdup(key);
            }
            continue;
        }
        (void)snprintf(key, sizeof key, "%s%s/", folder, e->d_name);
        if (!S_ISLNK(st.st_mode) || strncmp(key, prefix, strlen(key)) == 0) {
            walk(bucket, key, prefix, out);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

static void add_escaped(tn_text *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\n') {
            tn_text_adds(out, "&#10;");
        } else if (*text == '&') {
            tn_text_adds(out, "&amp;");
        } else if (*text == '<') {
            tn_text_adds(out, "&lt;");
        } else if (*text == '+') {
            tn_text_adds(out, "&#43;");
        } else {
            tn_text_addc(out, *text);
        }
    }
}

static void add_key(const ask *a, const char *bucket, const char *key, tn_text *out)
{
    object o = {0};
    char path[8192];
    (void)snprintf(path, sizeof path, "%s/%s", bucket, key);
    tn_text_adds(out, "<Contents><Key>");
    add_escaped(out, key);
    if (store_load(a, path, &o)) {
        o.tag[strlen(o.tag) - 1] = '\0';
        tn_text_addf(out, "</Key><ETag>&quot;%s&quot;</ETag><Size>%zu</Size></Contents>", o.tag + 1,
                     o.size);
    }
    store_unload(&o);
}

static bool is_endless(const ask *a, bool likewise)
{
    return (likewise || strcmp(a->plain, "freshlist") == 0) && a->nth < ENDLESS;
}

static void add_blanks(const ask *a, tn_text *out)
{
    for (size_t i = 0; strcmp(a->plain, "hugelist") == 0 && i < HUGE_BLANKS; i++) {
        tn_text_addf(out, "%1024s", "");
    }
}

bool store_serve_list(const ask *a)
{
    static const char mark[] = "t/+="; /* what must be encoded in a query */
    char prefix[4096];
    char delimiter[16];
    char token[4096];
    char bucket[8192];
    tn_text out = {0};
    keys found = {.n = 0};
    store_parameter(a, "prefix", prefix, sizeof prefix);
    store_parameter(a, "delimiter", delimiter, sizeof delimiter);
    store_parameter(a, "continuation-token", token, sizeof token);
    const char *after = strncmp(token, mark, 4) == 0 ? token + 4 : "";
    const bool round = strcmp(a->plain, "roundlist") == 0;
    const bool empty = strcmp(a->plain, "emptylist") == 0;
    const bool endless = is_endless(a, round || empty);
    after = endless ? "" : after;
    (void)snprintf(bucket, sizeof bucket, "%s/%s", a->s->dir, a->plain);
    walk(bucket, "", empty ? "no such prefix" : prefix, &found);
    qsort(found.key, found.n, sizeof *found.key, by_name);
    tn_text_adds(&out, "<?xml version=\"1.0\"?><ListBucketResult>");
    size_t n = 0;
    for (size_t i = 0; i < found.n; i++) {
        const bool below = *delimiter != '\0' && strchr(found.key[i] + strlen(prefix), '/') != NULL;
        if (below || strcmp(found.key[i], after) <= 0) {
            continue;
        }
        if (n++ == PAGE) {
            break;
        }
        add_key(a, a->plain, found.key[i], &out);
        (void)snprintf(token, sizeof token, "%s%s", mark, found.key[i]);
    }
    if (endless && round) {
        tn_text_addf(&out, "<Contents><Key>%u</Key><Size>1</Size></Contents>", a->nth);
    } else if (endless) {
        (void)snprintf(token, sizeof token, "%u", a->nth);
    }
    const bool more = n > PAGE || endless;
    tn_text_addf(&out, "<IsTruncated>%s</IsTruncated>", more ? "true" : "false");
    if (more && strcmp(a->plain, "badlist") != 0) {
        tn_text_adds(&out, "<NextContinuationToken>");
        add_escaped(&out, token);
        tn_text_adds(&out, "</NextContinuationToken>");
    }
    add_blanks(a, &out);
    tn_text_adds(&out, "</ListBucketResult>");
    const bool goes_on = store_answer(a, "200 OK", "", tn_text_str(&out));
    for (size_t i = 0; i < found.n; i++) {
        free(found.key[i]);
    }
    tn_text_done(&out);
    return goes_on;
}
