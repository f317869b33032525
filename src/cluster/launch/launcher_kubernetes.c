/* launcher_kubernetes.c - pods of an indexed Job or of a StatefulSet, with a headless service.
 *
 *     indexed Job      JOB_COMPLETION_INDEX=2, host name train-2      train-0.SERVICE is rank 0
 *     StatefulSet      host name tnet-2                               tnet-0.SERVICE
 *
 * Kubernetes gives a pod neither their number nor the service's name: TNET_PEERS and
 * TNET_SERVICE do. A pod has a network of its own, so all listen at the same port.
 */
#include "base/core/arena.h"
#include "base/core/number.h"
#include "cluster/launch/endpoint.h"
#include "cluster/launch/launcher.h"

#include <string.h>

/* Returns the number at the end of "train-2"; *out is the position of its '-'. NULL: there is
 * none. */
static const char *ordinal(const char *host, uint32_t *out)
{
    const char *dash = strrchr(host, '-');
    uint64_t value = 0;
    if (dash == NULL || dash == host ||
        tn_read_u64(dash + 1, strlen(dash + 1), &value) != TN_NUM_OK || value >= TN_PEERS_MAX) {
        return NULL;
    }
    *out = (uint32_t)value;
    return dash;
}

static tn_status name_pods(const tn_launch_env *env, const char *service, const char *dash,
                           tn_arena *arena, tn_launched *out, tn_error *err)
{
    TN_ASSERT(dash != NULL && out->size > 1 && out->size <= TN_PEERS_MAX);
    uint32_t port = TN_ENDPOINT_PORT;
    TN_TRY(tn_env_u32(env, "TNET_PORT", UINT16_MAX + 1, &port, err));
    const char **address = TN_NEW_ARRAY(arena, const char *, out->size);
    const char **host = TN_NEW_ARRAY(arena, const char *, out->size);
    for (uint32_t r = 0; r < out->size; r++) {
        host[r] = tn_arena_text(arena, "%.*s-%u", (int)(dash - env->host), env->host, r);
        address[r] = tn_arena_text(arena, "%s.%s:%u", host[r], service, port);
    }
    out->address = address;
    out->host = host;
    out->job = tn_arena_text(arena, "%.*s.%s", (int)(dash - env->host), env->host, service);
    return TN_OK;
}

static tn_status find(const tn_launch_env *env, uint32_t size, tn_arena *arena, tn_launched *out,
                      tn_error *err)
{
    const char *service = tn_env(env, "TNET_SERVICE");
    uint32_t number = TN_UNSET_U32;
    const char *dash = ordinal(env->host, &number);
    TN_TRY(tn_env_u32(env, "JOB_COMPLETION_INDEX", TN_PEERS_MAX, &out->rank, err));
    bool is_pod = tn_env(env, "KUBERNETES_SERVICE_HOST") != NULL;
    if (out->rank == TN_UNSET_U32 && (!is_pod || service == NULL || dash == NULL)) {
        return TN_OK; /* a pod by itself, or none */
    }
    if (size == TN_UNSET_U32 && service == NULL) {
        return TN_OK; /* an indexed Job whose pods have nothing to do with each other */
    }
    out->is_here = true;
    out->size = size;
    if (out->rank == TN_UNSET_U32) {
        out->rank = number;
    }
    if (size == TN_UNSET_U32 || size == 1 || service == NULL) {
        return TN_OK;
    }
    if (dash == NULL || number != out->rank) {
        return tn_fail(err, TN_E_CONFIG,
                       "pod %u has the host name '%s', which does not end in -%u\n"
                       "hint: set the pods' subdomain to the name of the headless service",
                       out->rank, env->host, out->rank);
    }
    return name_pods(env, service, dash, arena, out, err);
}

static const char *const variables[] = {"TNET_PORT", "TNET_SERVICE", "JOB_COMPLETION_INDEX",
                                        "KUBERNETES_SERVICE_HOST", NULL};

const tn_launcher tn_launcher_kubernetes = {
    .name = "Kubernetes", .variables = variables, .find = find};
