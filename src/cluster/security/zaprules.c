/* zaprules.c - see zaprules.h. */
#include "cluster/security/zaprules.h"

#include "base/core/number.h"

#include <string.h>

enum { VERSION, ID, DOMAIN, ADDRESS, ROUTING_ID, MECHANISM, CREDENTIALS };

/* How libzmq writes the other end of an ipc connection: "localhost:uid:gid:pid". No address of a
 * TCP connection is written with a name. */
static const char ipc_peer[] = "localhost:";

static bool is(const tn_bytes *frame, const char *text)
{
    size_t size = strlen(text);
    return frame->size == size && memcmp(frame->data, text, size) == 0;
}

const char *tn_zap_verdict_text(tn_zap_verdict v)
{
    static const char *const texts[] = {
        [TN_ZAP_ADMITTED] = "admitted",
        [TN_ZAP_MALFORMED] = "the request makes no sense",
        [TN_ZAP_FOREIGN] = "another domain",
        [TN_ZAP_MECHANISM] = "another mechanism than the one in use",
        [TN_ZAP_USER] = "another user",
        [TN_ZAP_ADDRESS] = "the address is in no trusted network",
        [TN_ZAP_KEY] = "the key is not on the list",
    };
    TN_ASSERT((size_t)v < sizeof texts / sizeof *texts);
    return texts[v];
}

static bool is_ipc(const tn_bytes *from)
{
    return from->size >= sizeof ipc_peer - 1 &&
           memcmp(from->data, ipc_peer, sizeof ipc_peer - 1) == 0;
}

static tn_zap_verdict judge_user(const tn_zap_rules *rules, const tn_bytes *from)
{
    const char *uid = from->data + sizeof ipc_peer - 1;
    const char *end = memchr(uid, ':', from->size - (sizeof ipc_peer - 1));
    uint64_t value = 0;
    if (end == NULL || tn_read_u64(uid, (size_t)(end - uid), &value) != TN_NUM_OK) {
        return TN_ZAP_MALFORMED;
    }
    return value == rules->uid ? TN_ZAP_ADMITTED : TN_ZAP_USER;
}

static tn_zap_verdict judge_address(const tn_security *s, const tn_bytes *from)
{
    char address[64];
    if (from->size >= sizeof address || memchr(from->data, '\0', from->size) != NULL) {
        return TN_ZAP_MALFORMED;
    }
    memcpy(address, from->data, from->size);
    address[from->size] = '\0';
    return tn_nets_have(s->net, s->n_nets, address) ? TN_ZAP_ADMITTED : TN_ZAP_ADDRESS;
}

static tn_zap_verdict judge_key(const tn_security *s, const tn_bytes *frame, uint32_t n,
                                uint32_t *rank)
{
    uint8_t key[TN_CURVE_BYTES];
    if (n != CREDENTIALS + 1 || frame[CREDENTIALS].size != sizeof key) {
        return TN_ZAP_MALFORMED;
    }
    memcpy(key, frame[CREDENTIALS].data, sizeof key);
    return tn_allow_find(s->allow, key, rank) ? TN_ZAP_ADMITTED : TN_ZAP_KEY;
}

tn_zap_verdict tn_zap_judge(const tn_zap_rules *rules, const tn_bytes *frame, uint32_t n,
                            uint32_t *rank)
{
    const tn_security *s = rules->security;
    uint32_t whose = TN_RANK_ANY;
    tn_zap_verdict v = TN_ZAP_MECHANISM;
    if (n <= MECHANISM || n > TN_ZAP_FRAMES || !is(&frame[VERSION], "1.0")) {
        return TN_ZAP_MALFORMED;
    }
    if (!is(&frame[DOMAIN], TN_ZAP_DOMAIN)) {
        return TN_ZAP_FOREIGN;
    }
    if (is_ipc(&frame[ADDRESS])) {
        v = is(&frame[MECHANISM], "NULL") ? judge_user(rules, &frame[ADDRESS]) : TN_ZAP_MECHANISM;
    } else if (is(&frame[MECHANISM], "NULL") && s->kind != TN_SECURITY_CURVE) {
        v = judge_address(s, &frame[ADDRESS]);
    } else if (is(&frame[MECHANISM], "CURVE") && s->kind == TN_SECURITY_CURVE) {
        v = judge_key(s, frame, n, &whose);
    }
    if (v == TN_ZAP_ADMITTED) {
        *rank = whose;
    }
    return v;
}

tn_zap_verdict tn_zap_judge_dialled(const tn_zap_rules *rules, const char *address)
{
    const tn_bytes from = {.data = address, .size = strlen(address)};
    if (is_ipc(&from)) {
        return judge_user(rules, &from);
    }
    return rules->security->kind == TN_SECURITY_CURVE ? TN_ZAP_ADMITTED
                                                      : judge_address(rules->security, &from);
}
