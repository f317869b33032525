/* startwait.h - how long a rank waits for its group to form.
 *
 *     tn_startwait w;
 *     tn_startwait_begin(&w, patience_ns, now);
 *     switch (tn_startwait_look(&w, now))            ten times a second, until all are in
 *     TN_STARTWAIT_TELL: log who is missing
 *     TN_STARTWAIT_OVER: give up; tn_startwait_s(&w) seconds were waited
 *
 * A process that was stopped has not waited meanwhile: of the time between two looks at most
 * TN_PULSE_GAP_NS counts. Times are nanoseconds of one monotonic clock. Nothing here reads a clock,
 * waits or allocates.
 */
#ifndef TN_CLUSTER_STARTWAIT_H
#define TN_CLUSTER_STARTWAIT_H

#include <stdint.h>

#define TN_STARTWAIT_TELL_NS UINT64_C(10000000000) /* between two lines about who is missing */

typedef enum tn_startwait_verdict {
    TN_STARTWAIT_ON,
    TN_STARTWAIT_TELL, /* every TN_STARTWAIT_TELL_NS of waiting */
    TN_STARTWAIT_OVER, /* the patience is, from now on for good */
} tn_startwait_verdict;

typedef struct tn_startwait {
    uint64_t patience_ns;
    uint64_t looked_ns, waited_ns, told_ns;
} tn_startwait;

void tn_startwait_begin(tn_startwait *w, uint64_t patience_ns, uint64_t now_ns);
tn_startwait_verdict tn_startwait_look(tn_startwait *w, uint64_t now_ns);
double tn_startwait_s(const tn_startwait *w);

#endif
