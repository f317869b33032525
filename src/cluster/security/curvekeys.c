/* curvekeys.c - CURVE key pairs are made, written and read; tnet-keygen. */
#include "cluster/security/curvekeys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    TEXT_SIZE = TN_CURVE_CHARS + 1, /* with its NUL */
    FILE_MAX = 1024,                /* bytes read of a file that may be no key */
    OTHERS = 077                    /* mode bits of everybody but the owner */
};

static tn_status check_curve(const tn_zmq *z, tn_error *err)
{
    if (z->zmq_has("curve") == 0) {
        return tn_fail(err, TN_E_CONFIG, "this libzmq was built without CURVE");
    }
    return TN_OK;
}

tn_status tn_curve_make(const tn_zmq *z, tn_curve_pair *out, tn_error *err)
{
    char open[TEXT_SIZE];
    char secret[TEXT_SIZE];
    TN_TRY(check_curve(z, err));
    if (z->zmq_curve_keypair(open, secret) != 0) {
        return tn_fail(err, TN_E_CONFIG, "cannot make a key: %s", z->zmq_strerror(errno));
    }
    bool decoded = z->zmq_z85_decode(out->open, open) != NULL &&
                   z->zmq_z85_decode(out->secret, secret) != NULL;
    explicit_bzero(secret, sizeof secret);
    TN_ASSERT(decoded);
    return TN_OK;
}

typedef tn_status create_fn(tn_file **out, const char *path, tn_error *err);

static tn_status write_key(const tn_zmq *z, const uint8_t key[TN_CURVE_BYTES], const char *path,
                           create_fn *create, tn_error *err)
{
    char line[TEXT_SIZE];
    tn_file *f = NULL;
    TN_TRY(create(&f, path, err));
    const char *text = z->zmq_z85_encode(line, key, TN_CURVE_BYTES);
    TN_ASSERT(text != NULL);
    line[TN_CURVE_CHARS] = '\n';
    tn_status status = tn_file_write(f, line, sizeof line, err);
    explicit_bzero(line, sizeof line);
    if (status != TN_OK) {
        tn_file_abandon(f);
        return status;
    }
    return tn_file_commit(f, err);
}

tn_status tn_curve_write(const tn_zmq *z, const tn_curve_pair *pair, const char *secret_path,
                         const char *open_path, tn_error *err)
{
    TN_TRY(write_key(z, pair->secret, secret_path, tn_file_create_private, err));
    tn_status status = write_key(z, pair->open, open_path, tn_file_create, err);
    tn_error later = {0}; /* the first failure is the one that is reported */
    if (status != TN_OK && tn_remove_file(secret_path, &later) != TN_OK) {
        tn_error_context(err, "%s", later.text);
    }
    return status;
}

/* Reads the key of a file: 40 characters; a newline may follow them and nothing else. */
static tn_status read_key(const tn_zmq *z, const char *path, uint8_t key[TN_CURVE_BYTES],
                          tn_error *err)
{
    tn_text text = {0};
    const char *fault = NULL;
    tn_status status = tn_file_read_all(path, FILE_MAX, &text, err);
    if (status == TN_OK) {
        size_t size = text.size;
        size -= size == TEXT_SIZE && text.data[TN_CURVE_CHARS] == '\n' ? 1 : 0;
        if (size != TN_CURVE_CHARS || memchr(text.data, '\0', size) != NULL) {
            status = TN_E_LIMIT;
        } else {
            text.data[size] = '\0';
            fault = z->zmq_z85_decode(key, text.data) == NULL ? "not Z85" : NULL;
        }
    }
    if (text.data != NULL) {
        explicit_bzero(text.data, text.size);
    }
    tn_text_done(&text);
    fault = status == TN_E_LIMIT ? "not 40 characters" : fault;
    if (fault != NULL) {
        return tn_fail(err, TN_E_CONFIG, "'%s' is no key: %s", path, fault);
    }
    return status == TN_E_IO ? (err->code = TN_E_CONFIG) : status;
}

static tn_status check_mode(const char *path, tn_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        return tn_fail(err, TN_E_CONFIG, "cannot read '%s': %s", path, strerrordesc_np(errno));
    }
    if ((st.st_mode & OTHERS) != 0) {
        return tn_fail(err, TN_E_CONFIG,
                       "the secret key '%s' is open to others: its mode is 0%o, not 0600\n"
                       "hint: chmod 600 %s, and make a new one if somebody may have read it",
                       path, (unsigned)(st.st_mode & 07777), path);
    }
    return TN_OK;
}

void tn_curve_forget(tn_curve_pair *pair)
{
    explicit_bzero(pair, sizeof *pair);
}

tn_status tn_curve_read(const tn_zmq *z, const char *secret_path, tn_curve_pair *out, tn_error *err)
{
    char secret[TEXT_SIZE];
    char open[TEXT_SIZE];
    tn_curve_pair pair;
    TN_TRY(check_curve(z, err));
    TN_TRY(check_mode(secret_path, err));
    TN_TRY(read_key(z, secret_path, pair.secret, err));
    bool computed = z->zmq_z85_encode(secret, pair.secret, TN_CURVE_BYTES) != NULL &&
                    z->zmq_curve_public(open, secret) == 0 &&
                    z->zmq_z85_decode(pair.open, open) != NULL;
    TN_ASSERT(computed);
    *out = pair;
    explicit_bzero(secret, sizeof secret);
    tn_curve_forget(&pair);
    return TN_OK;
}

tn_status tn_curve_read_open(const tn_zmq *z, const char *open_path, uint8_t out[TN_CURVE_BYTES],
                             tn_error *err)
{
    uint8_t key[TN_CURVE_BYTES];
    TN_TRY(read_key(z, open_path, key, err));
    memcpy(out, key, sizeof key);
    return TN_OK;
}

enum { NAME_MAX_BYTES = 64 };

static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

/* ---- tnet-keygen ---- */

static tn_status check_name(const char *name, tn_error *err)
{
    size_t size = strlen(name);
    if (size == 0 || size > NAME_MAX_BYTES || strspn(name, allowed) != size || name[0] == '.' ||
        name[0] == '-') {
        return tn_fail(err, TN_E_USAGE,
                       "'%.80s' cannot name a key: 1 to %d letters, digits, '.', '_' and '-', no "
                       "'.' or '-' first",
                       name, NAME_MAX_BYTES);
    }
    return TN_OK;
}

static tn_status path_of(const char *dir, const char *name, const char *ending,
                         char out[TN_PATH_SIZE], tn_error *err)
{
    char file[NAME_MAX_BYTES + 8];
    (void)snprintf(file, sizeof file, "%s.%s", name, ending);
    TN_TRY(tn_path_join(dir, file, out, err));
    if (tn_path_exists(out)) {
        return tn_fail(err, TN_E_IO, "'%s' is there already\nhint: keys are never overwritten",
                       out);
    }
    return TN_OK;
}

tn_status tn_keygen(const char *dir, const char *name, tn_keygen_paths *out, tn_error *err)
{
    tn_zmq z;
    tn_curve_pair pair;
    tn_keygen_paths paths;
    TN_TRY(check_name(name, err));
    TN_TRY(path_of(dir, name, "key", paths.secret, err));
    TN_TRY(path_of(dir, name, "pub", paths.open, err));
    TN_TRY(tn_zmq_load(&z, err));
    TN_TRY(tn_curve_make(&z, &pair, err));
    tn_status status = tn_dir_make(dir, err);
    if (status == TN_OK) {
        status = tn_curve_write(&z, &pair, paths.secret, paths.open, err);
    }
    tn_curve_forget(&pair);
    TN_TRY(status);
    *out = paths;
    return tn_dir_sync(dir, err);
}
