/* startwait.c - see startwait.h. */
#include "cluster/group/startwait.h"

#include "base/core/error.h"
#include "cluster/group/failure_detector.h"

void tn_startwait_begin(tn_startwait *w, uint64_t patience_ns, uint64_t now_ns)
{
    *w = (tn_startwait){.patience_ns = patience_ns, .looked_ns = now_ns};
}

tn_startwait_verdict tn_startwait_look(tn_startwait *w, uint64_t now_ns)
{
    TN_ASSERT(now_ns >= w->looked_ns);
    const uint64_t passed = now_ns - w->looked_ns;
    w->waited_ns += passed < TN_PULSE_GAP_NS ? passed : TN_PULSE_GAP_NS;
    w->looked_ns = now_ns;
    if (w->waited_ns > w->patience_ns) {
        return TN_STARTWAIT_OVER;
    }
    if (w->waited_ns - w->told_ns < TN_STARTWAIT_TELL_NS) {
        return TN_STARTWAIT_ON;
    }
    w->told_ns = w->waited_ns;
    return TN_STARTWAIT_TELL;
}

double tn_startwait_s(const tn_startwait *w)
{
    return (double)w->waited_ns * 1e-9;
}
