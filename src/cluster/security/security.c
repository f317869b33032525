/* security.c - the section cluster.security is read, and what it names is loaded. */
#include "cluster/security/security.h"

#include "base/core/alloc.h"

#include <string.h>

enum { NETS_MAX = 1024 };

static const tn_field fields[] = {
    TN_FIELD_STR(tn_security_opts, key, "~", "file of this peer's secret key, by tnet-keygen"),
    TN_FIELD_STR(tn_security_opts, allow, "~", "folder of the public keys that are let in"),
    TN_FIELD_STRS(tn_security_opts, trusted_net, "~", "networks that are let in without keys"),
    TN_FIELD_END,
};

static const char *const loopback[] = {"127.0.0.0/8", "::1"};
static const tn_strs loopback_nets = {sizeof loopback / sizeof *loopback, loopback};

static void check(const tn_binder *b, const tn_origin *at, const tn_security_opts *o)
{
    tn_subnet net;
    tn_error err = {0};
    if (o->trusted_net.n > 0 && (o->key != NULL || o->allow != NULL)) {
        tn_diag_error(b->diag, at, "'%s' has both keys and trusted_net", b->path);
        tn_diag_hint(b->diag, "key and allow for CURVE, trusted_net for a network without keys");
    } else if (o->trusted_net.n == 0 && (o->key == NULL || o->allow == NULL)) {
        tn_diag_error(b->diag, at, "'%s' has no '%s'", b->path,
                      o->key != NULL     ? "allow"
                      : o->allow != NULL ? "key"
                                         : "key, nor trusted_net");
        tn_diag_hint(b->diag, "{key: peer.key, allow: peers/}, or {trusted_net: [10.1.0.0/16]}");
    }
    if (o->trusted_net.n > NETS_MAX) {
        tn_diag_error(b->diag, at, "'%s.trusted_net' has %u networks, more than %d", b->path,
                      o->trusted_net.n, NETS_MAX);
    }
    for (uint32_t i = 0; i < o->trusted_net.n; i++) {
        if (tn_net_read(o->trusted_net.item[i], &net, &err) != TN_OK) {
            tn_diag_error(b->diag, at, "'%s.trusted_net': %s", b->path, err.text);
        }
    }
}

void tn_security_bind(const tn_binder *b, const tn_tree *tree, tn_security_opts *out)
{
    tn_binder inner = *b;
    inner.path = b->path != NULL ? b->path : "cluster.security";
    *out = (tn_security_opts){0};
    if (tn_tree_is_null(tree)) {
        return;
    }
    inner.at = &tree->at;
    if (tree->kind != TN_TREE_MAP) {
        tn_diag_error(b->diag, &tree->at, "'%s' is no map", inner.path);
        tn_diag_hint(b->diag, "{key: peer.key, allow: peers/}, or {trusted_net: [10.1.0.0/16]}");
        return;
    }
    tn_fields_bind(&inner, fields, tree, out);
    check(&inner, &tree->at, out);
}

static tn_status init_nets(tn_security *s, const tn_strs *texts, tn_error *err)
{
    s->net = tn_try_alloc(texts->n, sizeof *s->net, "trusted networks", err);
    if (s->net == NULL) {
        return TN_E_MEMORY;
    }
    for (uint32_t i = 0; i < texts->n; i++) {
        TN_TRY(tn_net_read(texts->item[i], &s->net[i], err));
    }
    s->n_nets = texts->n;
    return TN_OK;
}

tn_status tn_security_init(tn_security *s, const tn_zmq *z, const tn_security_opts *opts,
                           tn_error *err)
{
    *s = (tn_security){.kind = TN_SECURITY_HOST};
    if (opts != NULL && opts->trusted_net.n > 0) {
        s->kind = TN_SECURITY_NET;
        return init_nets(s, &opts->trusted_net, err);
    }
    TN_TRY(init_nets(s, &loopback_nets, err));
    if (opts == NULL || opts->key == NULL) {
        return TN_OK;
    }
    TN_ASSERT(opts->allow != NULL); /* tn_security_bind saw to it */
    s->kind = TN_SECURITY_CURVE;
    TN_TRY(tn_curve_read(z, opts->key, &s->pair, err));
    TN_TRY(tn_allow_open(&s->allow, z, opts->allow, err));
    uint32_t rank = 0;
    if (!tn_allow_find(s->allow, s->pair.open, &rank)) {
        return tn_fail(
            err, TN_E_CONFIG,
            "the public half of '%s' is not in '%s': the others would not let this peer in",
            opts->key, opts->allow);
    }
    return TN_OK;
}

void tn_security_done(tn_security *s)
{
    tn_curve_forget(&s->pair);
    tn_allow_free(s->allow);
    tn_free(s->net);
    *s = (tn_security){0};
}
