/* allow.c - a folder of public keys is read and searched. */
#include "cluster/security/allow.h"

#include "base/core/alloc.h"
#include "base/core/number.h"
#include "base/file/file.h"

#include <stdlib.h>
#include <string.h>

typedef struct entry {
    uint8_t key[TN_CURVE_BYTES];
    uint32_t rank;
    char name[64]; /* of its file, for messages; may be cut */
} entry;

struct tn_allow {
    uint32_t n;
    char dir[TN_PATH_SIZE];
    entry item[]; /* by key */
};

static const char ending[] = ".pub";
static const char prefix[] = "rank-";

/* The length of a name without its ending; 0: another kind of file. */
static size_t stem(const char *name)
{
    size_t size = strlen(name);
    size_t end = sizeof ending - 1;
    return size > end && strcmp(name + size - end, ending) == 0 ? size - end : 0;
}

static tn_status rank_of(const char *dir, const char *name, uint32_t *out, tn_error *err)
{
    size_t start = sizeof prefix - 1;
    size_t end = stem(name);
    if (strncmp(name, prefix, start) != 0) {
        *out = TN_RANK_ANY;
        return TN_OK;
    }
    uint64_t rank = 0;
    /* 007 would be a second name of 7 */
    bool padded = name[start] == '0' && end - start > 1;
    if (end <= start || padded || tn_read_u64(name + start, end - start, &rank) != TN_NUM_OK ||
        rank >= TN_RANK_ANY) {
        return tn_fail(err, TN_E_CONFIG, "'%s/%s' names no rank, as rank-7.pub does", dir, name);
    }
    *out = (uint32_t)rank;
    return TN_OK;
}

static int by_key(const void *a, const void *b)
{
    const entry *x = a;
    const entry *y = b;
    return memcmp(x->key, y->key, sizeof x->key);
}

static tn_status add(tn_allow *a, const tn_zmq *z, const char *name, tn_error *err)
{
    char path[TN_PATH_SIZE];
    entry e = {0};
    TN_TRY(rank_of(a->dir, name, &e.rank, err));
    TN_TRY(tn_path_join(a->dir, name, path, err));
    TN_TRY(tn_curve_read_open(z, path, e.key, err));
    size_t size = strlen(name);
    memcpy(e.name, name, size < sizeof e.name ? size : sizeof e.name - 1);
    for (uint32_t i = 0; i < a->n && e.rank == TN_RANK_ANY; i++) {
        if (a->item[i].rank == TN_RANK_ANY) {
            return tn_fail(err, TN_E_CONFIG,
                           "'%s' has two keys without a rank: '%s' and '%s'\n"
                           "hint: name them rank-N.pub, or let all peers share one",
                           a->dir, a->item[i].name, e.name);
        }
    }
    a->item[a->n++] = e;
    return TN_OK;
}

static tn_status check_distinct(const tn_allow *a, tn_error *err)
{
    for (uint32_t i = 1; i < a->n; i++) {
        if (by_key(&a->item[i - 1], &a->item[i]) == 0) {
            return tn_fail(err, TN_E_CONFIG, "'%s' and '%s' of '%s' are the same key",
                           a->item[i - 1].name, a->item[i].name, a->dir);
        }
    }
    return TN_OK;
}

/* `names` as tn_dir_list gives them. */
static tn_status read_all(tn_allow *a, const tn_zmq *z, const char *names, uint32_t n,
                          tn_error *err)
{
    for (uint32_t i = 0; i < n; i++, names += strlen(names) + 1) {
        if (stem(names) > 0) {
            TN_TRY(add(a, z, names, err));
        }
    }
    if (a->n == 0) {
        return tn_fail(err, TN_E_CONFIG,
                       "no *.pub in '%s': nobody could come in\n"
                       "hint: tnet-keygen %s rank-0",
                       a->dir, a->dir);
    }
    qsort(a->item, a->n, sizeof *a->item, by_key);
    return check_distinct(a, err);
}

static uint32_t count_keys(const char *names, uint32_t n)
{
    uint32_t keys = 0;
    for (uint32_t i = 0; i < n; i++, names += strlen(names) + 1) {
        keys += stem(names) > 0 ? 1 : 0;
    }
    return keys;
}

tn_status tn_allow_open(tn_allow **out, const tn_zmq *z, const char *dir, tn_error *err)
{
    *out = NULL;
    tn_text names = {0};
    tn_allow *a = NULL;
    uint32_t n = 0;
    tn_status status = tn_dir_list(dir, &names, &n, err);
    if (status == TN_E_IO) {
        status = err->code = TN_E_CONFIG;
    }
    uint32_t keys = status == TN_OK ? count_keys(tn_text_str(&names), n) : 0;
    if (keys > TN_ALLOW_MAX) {
        status =
            tn_fail(err, TN_E_CONFIG, "'%s' holds %u keys, more than %d", dir, keys, TN_ALLOW_MAX);
    }
    if (status == TN_OK) {
        a = tn_try_alloc(1, sizeof *a + keys * sizeof *a->item, "allowed keys", err);
        status = a == NULL ? TN_E_MEMORY : TN_OK;
    }
    if (a != NULL) {
        TN_ASSERT(strlen(dir) < sizeof a->dir); /* it was opened */
        memcpy(a->dir, dir, strlen(dir) + 1);
        status = read_all(a, z, tn_text_str(&names), n, err);
    }
    tn_text_done(&names);
    if (status != TN_OK) {
        tn_allow_free(a);
        return status;
    }
    *out = a;
    return TN_OK;
}

void tn_allow_free(tn_allow *a)
{
    tn_free(a);
}

uint32_t tn_allow_count(const tn_allow *a)
{
    return a->n;
}

bool tn_allow_find(const tn_allow *a, const uint8_t key[TN_CURVE_BYTES], uint32_t *rank)
{
    entry wanted = {0};
    memcpy(wanted.key, key, sizeof wanted.key);
    const entry *found = bsearch(&wanted, a->item, a->n, sizeof *a->item, by_key);
    if (found == NULL) {
        return false;
    }
    *rank = found->rank;
    return true;
}

tn_status tn_allow_key_of(const tn_allow *a, uint32_t rank, uint8_t out[TN_CURVE_BYTES],
                          tn_error *err)
{
    const entry *best = NULL;
    for (uint32_t i = 0; i < a->n; i++) {
        const entry *e = &a->item[i];
        if (e->rank == rank || (e->rank == TN_RANK_ANY && best == NULL)) {
            best = e;
        }
    }
    if (best == NULL) {
        return tn_fail(err, TN_E_CONFIG, "no public key of rank %u in '%s'", rank, a->dir);
    }
    memcpy(out, best->key, TN_CURVE_BYTES);
    return TN_OK;
}
