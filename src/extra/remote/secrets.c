/* secrets.c - three places are read into one table of texts. */
#include "extra/remote/secrets.h"

#include "base/core/alloc.h"
#include "base/core/log.h"
#include "base/file/file.h"
#include "extra/remote/uri.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { FILE_BYTES_MAX = 1 << 20 };

static const struct {
    const char *name;           /* in files */
    const char *environment[2]; /* NULL: none */
    bool aws;                   /* ~/.aws/credentials may say it */
} known[TN_SECRETS] = {
    [TN_SECRET_KEY] = {"aws_access_key_id", {"AWS_ACCESS_KEY_ID"}, true},
    [TN_SECRET_SECRET] = {"aws_secret_access_key", {"AWS_SECRET_ACCESS_KEY"}, true},
    [TN_SECRET_TOKEN] = {"aws_session_token", {"AWS_SESSION_TOKEN"}, true},
    [TN_SECRET_REGION] = {"region", {"AWS_REGION", "AWS_DEFAULT_REGION"}, true},
    [TN_SECRET_ENDPOINT] = {"endpoint_url", {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}, true},
    [TN_SECRET_STYLE] = {"addressing_style", {NULL}, true},
    [TN_SECRET_SAS] = {"azure_sas", {"AZURE_STORAGE_SAS_TOKEN"}, false},
    [TN_SECRET_HDFS_USER] = {"webhdfs_user", {"HADOOP_USER_NAME"}, false},
    [TN_SECRET_HDFS_DELEGATION] = {"webhdfs_delegation", {NULL}, false},
    [TN_SECRET_HDFS_KERBEROS] = {"webhdfs_kerberos", {NULL}, false},
    [TN_SECRET_HTTP_HEADER] = {"http_header", {NULL}, false},
};

struct tn_secrets {
    pthread_mutex_t lock;
    const char *file; /* NULL: none */
    /* guarded by `lock`: */
    tn_text value[TN_SECRETS];
    bool has[TN_SECRETS];
    tn_text headers; /* "http_header HOST = VALUE" of the file, line by line */
    tn_text host;    /* the host that gets the header without one; empty: none was read yet */
    uint32_t version;
};

/* ---- files of sections ---- */

static tn_bytes trim(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t')) {
        at++;
    }
    while (end > at && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r')) {
        end--;
    }
    return (tn_bytes){at, (size_t)(end - at), false};
}

static bool is(tn_bytes text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

/* Finds the next "name = value" of a section, past which *at goes; `within`: the lines are of
 * it. */
static bool next_value(tn_bytes *at, bool *within, const char *section, tn_bytes *name,
                       tn_bytes *value)
{
    const char *end = at->data + at->size;
    while (at->data < end) {
        const char *stop = memchr(at->data, '\n', (size_t)(end - at->data));
        stop = stop != NULL ? stop : end;
        const tn_bytes line = trim(at->data, stop);
        at->data = stop + (stop < end);
        at->size = (size_t)(end - at->data);
        const char *equals = line.size > 0 ? memchr(line.data, '=', line.size) : NULL;
        if (line.size > 1 && line.data[0] == '[') {
            const char *close = line.data + line.size - 1;
            *within = *close == ']' && is(trim(line.data + 1, close), section);
        } else if (*within && equals != NULL && line.data[0] != '#') {
            *name = trim(line.data, equals);
            *value = trim(equals + 1, line.data + line.size);
            return true;
        }
    }
    return false;
}

/* Lines in front of the first head are of this one. */
static bool is_default(const char *section)
{
    return strcmp(section, "default") == 0;
}

bool tn_secrets_find(tn_bytes file, const char *section, const char *name, tn_bytes *out)
{
    bool within = is_default(section);
    tn_bytes one;
    while (next_value(&file, &within, section, &one, out)) {
        if (is(one, name)) {
            return out->size > 0;
        }
    }
    return false;
}

/* ---- headers of one host ---- */

/* Reads the host of "http_header HOST". Returns false for another name. */
static bool names_header(tn_bytes name, tn_bytes *host)
{
    static const char word[] = "http_header";
    const size_t n = sizeof word - 1;
    const bool has = name.size > n + 1 && memcmp(name.data, word, n) == 0 &&
                     (name.data[n] == ' ' || name.data[n] == '\t');
    if (has) {
        *host = trim(name.data + n, name.data + name.size);
    }
    return has;
}

/* Compares "HOST" or "HOST:PORT" with a host and port. */
static bool is_host(tn_bytes named, tn_bytes host)
{
    const char *bracket = memchr(host.data, ']', host.size);
    const char *from = bracket != NULL ? bracket : host.data;
    const char *colon = memchr(from, ':', (size_t)(host.data + host.size - from));
    const size_t bare = colon != NULL ? (size_t)(colon - host.data) : host.size;
    return (named.size == host.size || named.size == bare) &&
           strncasecmp(named.data, host.data, named.size) == 0;
}

/* ---- the three places ---- */

static const char *environment(const char *name)
{
    const char *value = name != NULL ? getenv(name) : NULL; // NOLINT(concurrency-mt-unsafe)
    return value != NULL && *value != '\0' ? value : NULL;
}

static bool from_environment(tn_secret i, tn_bytes *out)
{
    const char *value = environment(known[i].environment[0]);
    value = value != NULL ? value : environment(known[i].environment[1]);
    if (value != NULL) {
        *out = (tn_bytes){value, strlen(value), false};
    }
    return value != NULL;
}

typedef struct places {
    const char *section;
    tn_bytes own, aws; /* files */
} places;

/* Looks in place 0, 1 or 2. */
static bool look(const places *p, uint32_t place, tn_secret i, tn_bytes *out)
{
    if (place == 1) {
        return from_environment(i, out);
    }
    return (place == 0 || known[i].aws) &&
           tn_secrets_find(place == 0 ? p->own : p->aws, p->section, known[i].name, out);
}

/* Takes secret and token from the place that has the key. */
static bool choose(const places *p, tn_secret i, tn_bytes *out)
{
    tn_bytes key;
    for (uint32_t place = 0; place < 3; place++) {
        const bool grouped = i == TN_SECRET_SECRET || i == TN_SECRET_TOKEN;
        if (grouped ? look(p, place, TN_SECRET_KEY, &key) : look(p, place, i, out)) {
            return grouped ? look(p, place, i, out) : true;
        }
    }
    return false;
}

static void forget(tn_text *text)
{
    if (text->data != NULL) {
        explicit_bzero(text->data, text->size);
    }
    tn_text_done(text);
}

static void take(tn_secrets *s, const places *p)
{
    bool changed = s->version == 0;
    for (tn_secret i = 0; i < TN_SECRETS; i++) {
        tn_bytes value = {"", 0, false};
        const bool has = choose(p, i, &value);
        const bool same = has == s->has[i] && value.size == s->value[i].size &&
                          (!has || memcmp(value.data, tn_text_str(&s->value[i]), value.size) == 0);
        if (!same) {
            changed = true;
            tn_text_clear(&s->value[i]);
            tn_text_add(&s->value[i], value.data, value.size);
            s->has[i] = has && !s->value[i].failed;
        }
    }
    tn_text headers = {0};
    tn_bytes own = p->own;
    bool within = is_default(p->section);
    tn_bytes name;
    tn_bytes host;
    tn_bytes value;
    while (next_value(&own, &within, p->section, &name, &value)) {
        if (names_header(name, &host)) {
            tn_text_addf(&headers, "%.*s = %.*s\n", (int)name.size, name.data, (int)value.size,
                         value.data);
        }
    }
    changed = changed || strcmp(tn_text_str(&headers), tn_text_str(&s->headers)) != 0;
    forget(&s->headers);
    s->headers = headers;
    s->version += changed;
}

static void aws_file(char path[TN_PATH_SIZE])
{
    const char *named = environment("AWS_SHARED_CREDENTIALS_FILE");
    const char *home = environment("HOME");
    const int n = named != NULL ? snprintf(path, TN_PATH_SIZE, "%s", named)
                                : snprintf(path, TN_PATH_SIZE, "%s/.aws/credentials",
                                           home != NULL ? home : "");
    if (n < 0 || n >= TN_PATH_SIZE) {
        path[0] = '\0';
    }
}

static tn_status check_mode(const char *file, tn_error *err)
{
    struct stat st;
    if (stat(file, &st) != 0) {
        return tn_fail(err, TN_E_CONFIG, "cannot read data.secrets '%s': %s", file,
                       strerrordesc_np(errno));
    }
    if ((st.st_mode & 077) != 0) {
        return tn_fail(err, TN_E_CONFIG,
                       "data.secrets '%s' may be read by others\nhint: chmod 600 '%s'", file, file);
    }
    return TN_OK;
}

/* Refuses a file that holds nothing that is read, which is a mistake, and so is a host that no URI
 * has. */
static tn_status check_says(const char *file, tn_bytes own, const char *section, tn_error *err)
{
    tn_bytes name;
    tn_bytes value;
    tn_bytes host;
    bool says = false;
    bool within = is_default(section);
    for (tn_bytes left = own; next_value(&left, &within, section, &name, &value);) {
        for (tn_secret i = 0; i < TN_SECRETS && value.size > 0; i++) {
            says = says || is(name, known[i].name);
        }
        if (names_header(name, &host)) {
            says = true;
            if (memchr(host.data, '/', host.size) != NULL) {
                return tn_fail(err, TN_E_CONFIG,
                               "data.secrets '%s': '%.*s' names no host\nhint: http_header "
                               "HOST[:PORT] = NAME: VALUE",
                               file, (int)name.size, name.data);
            }
        }
    }
    return says ? TN_OK
                : tn_fail(err, TN_E_CONFIG,
                          "data.secrets '%s' says nothing that is known in its section [%s]\nhint: "
                          "lines are 'name = value'; docs/data.md lists the names",
                          file, section);
}

static tn_status check_bool(const places *p, const char *file, tn_secret i, tn_error *err)
{
    tn_bytes value;
    if (!choose(p, i, &value) || is(value, "true") || is(value, "false")) {
        return TN_OK;
    }
    return tn_fail(err, TN_E_CONFIG, "data.secrets '%s': %s is '%.*s', and must be true or false",
                   file, known[i].name, (int)(value.size < 40 ? value.size : 40), value.data);
}

/* Reads all places, with the lock held. */
static tn_status read_places(tn_secrets *s, tn_error *err)
{
    tn_text own = {0};
    tn_text aws = {0};
    tn_status status = s->file != NULL ? check_mode(s->file, err) : TN_OK;
    if (status == TN_OK && s->file != NULL) {
        status = tn_file_read_all(s->file, FILE_BYTES_MAX, &own, err);
    }
    const char *profile = environment("AWS_PROFILE");
    profile = profile != NULL ? profile : "default";
    if (status == TN_OK && s->file != NULL && s->version == 0) {
        status = check_says(s->file, (tn_bytes){tn_text_str(&own), own.size, false}, profile, err);
    }
    if (status == TN_OK) {
        char path[TN_PATH_SIZE];
        aws_file(path);
        if (tn_file_read_all(path, FILE_BYTES_MAX, &aws, NULL) != TN_OK) {
            tn_text_clear(&aws); /* most have none */
        }
        const places all = {
            profile, {tn_text_str(&own), own.size, false}, {tn_text_str(&aws), aws.size, false}};
        status = check_bool(&all, s->file, TN_SECRET_HDFS_KERBEROS, err);
        if (status == TN_OK) {
            take(s, &all);
        }
    }
    tn_text_done(&own);
    tn_text_done(&aws);
    return status;
}

tn_status tn_secrets_open(tn_secrets **out, const char *file, tn_error *err)
{
    tn_secrets *s = NULL;
    *out = NULL;
    TN_TRY(TN_ALLOC(s, 1, "secrets", err));
    (void)pthread_mutex_init(&s->lock, NULL);
    s->file = file;
    tn_status status = read_places(s, err);
    if (status != TN_OK) {
        tn_secrets_close(s);
        return status;
    }
    *out = s;
    return TN_OK;
}

void tn_secrets_close(tn_secrets *s)
{
    if (s != NULL) {
        for (tn_secret i = 0; i < TN_SECRETS; i++) {
            forget(&s->value[i]);
        }
        forget(&s->headers);
        tn_text_done(&s->host);
        (void)pthread_mutex_destroy(&s->lock);
        tn_free(s);
    }
}

bool tn_secrets_add(tn_secrets *s, tn_secret which, tn_text *out)
{
    TN_ASSERT(which < TN_SECRETS);
    (void)pthread_mutex_lock(&s->lock);
    const bool has = s->has[which];
    if (has) {
        tn_text_add(out, s->value[which].data, s->value[which].size);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return has;
}

/* Finds the line of a host, with the lock held. */
static bool find_header(const tn_secrets *s, tn_bytes host, tn_bytes *value)
{
    tn_bytes left = {tn_text_str(&s->headers), s->headers.size, false};
    bool within = true;
    tn_bytes name;
    tn_bytes named;
    while (next_value(&left, &within, "", &name, value)) {
        if (names_header(name, &named) && is_host(named, host)) {
            return true;
        }
    }
    return false;
}

bool tn_secrets_add_header(tn_secrets *s, tn_bytes host, tn_text *out)
{
    tn_bytes value;
    (void)pthread_mutex_lock(&s->lock);
    const bool own = find_header(s, host, &value);
    const bool has =
        own ? value.size > 0 : s->has[TN_SECRET_HTTP_HEADER] && is(host, tn_text_str(&s->host));
    if (has && own) {
        tn_text_add(out, value.data, value.size);
    } else if (has) {
        tn_text_add(out, s->value[TN_SECRET_HTTP_HEADER].data,
                    s->value[TN_SECRET_HTTP_HEADER].size);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return has;
}

tn_status tn_secrets_admit(tn_secrets *s, const tn_uri *uri, tn_error *err)
{
    tn_bytes value;
    const tn_bytes host = uri->host;
    tn_status status = TN_OK;
    if (!is(uri->scheme, "http") && !is(uri->scheme, "https")) {
        return TN_OK;
    }
    (void)pthread_mutex_lock(&s->lock);
    if (s->has[TN_SECRET_HTTP_HEADER] && !find_header(s, host, &value)) {
        if (s->host.size == 0) {
            tn_text_add(&s->host, host.data, host.size);
        } else if (!is(host, tn_text_str(&s->host))) {
            status =
                tn_fail(err, TN_E_CONFIG,
                        "http_header of data.secrets names no host, and there are '%s' and "
                        "'%.*s'\nhint: 'http_header %s = ..', a line for each host that is "
                        "to get one",
                        tn_text_str(&s->host), (int)host.size, host.data, tn_text_str(&s->host));
        }
    }
    (void)pthread_mutex_unlock(&s->lock);
    return status;
}

bool tn_secrets_is_true(tn_secrets *s, tn_secret which)
{
    tn_text value = {0};
    (void)tn_secrets_add(s, which, &value);
    const bool yes = is((tn_bytes){tn_text_str(&value), value.size, false}, "true");
    tn_text_done(&value);
    return yes;
}

uint32_t tn_secrets_version(tn_secrets *s)
{
    (void)pthread_mutex_lock(&s->lock);
    const uint32_t version = s->version;
    (void)pthread_mutex_unlock(&s->lock);
    return version;
}

bool tn_secrets_refresh(tn_secrets *s, uint32_t since)
{
    (void)pthread_mutex_lock(&s->lock);
    const bool read = s->version == since && read_places(s, NULL) == TN_OK;
    const bool changed = s->version != since;
    (void)pthread_mutex_unlock(&s->lock);
    (void)read;
    return changed;
}
