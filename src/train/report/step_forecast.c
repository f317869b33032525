/* step_forecast.c - the row of forecast_kinds.def, and when it is asked. */
#include "train/report/step_forecast.h"

#include <stddef.h>

enum { PACED_STEPS = 16 }; /* steps of a run after which it makes its own forecast */
#define PACED_S 0.1        /* seconds of a run before it makes its own forecast */

#define TN_FORECAST_KIND(name) extern const tn_forecast_kind tn_forecast_kind_##name;
#include "train/report/forecast_kinds.def"
#undef TN_FORECAST_KIND

const tn_forecast_kind *tn_forecast_built(void)
{
    static const tn_forecast_kind *const built[] = {
#define TN_FORECAST_KIND(name) &tn_forecast_kind_##name,
#include "train/report/forecast_kinds.def"
#undef TN_FORECAST_KIND
        NULL};
    return built[0];
}

void tn_paced_step(tn_paced *p, double waited, double took)
{
    TN_ASSERT(p->batch > 0);
    p->seconds += took;
    if (p->n++ == 0) { /* waits for the first window, and touches its memory for the first time */
        p->window = waited;
        return;
    }
    p->computed += took - waited;
    if (p->predicted == 0 && p->n > PACED_STEPS && p->computed >= PACED_S &&
        tn_forecast_built() != NULL) {
        p->predicted = tn_forecast_built()->predict(p);
    }
}
