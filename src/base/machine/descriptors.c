/* descriptors.c - see descriptors.h. */
#include "base/machine/descriptors.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

tn_status tn_descriptors_need(uint64_t n, const char *what, tn_error *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return tn_fail(err, TN_E_IO, "cannot ask for the limit of open files: %s",
                       strerrordesc_np(errno));
    }
    if (limit.rlim_cur >= n) { /* RLIM_INFINITY is the greatest number */
        return TN_OK;
    }
    if (limit.rlim_max < n) {
        return tn_fail(err, TN_E_CONFIG,
                       "%s may need %llu open files, the hard limit is %llu\n"
                       "hint: raise it where the process is started: 'ulimit -n %llu' as root, "
                       "LimitNOFILE= of a service, --ulimit of a container",
                       what, (unsigned long long)n, (unsigned long long)limit.rlim_max,
                       (unsigned long long)n);
    }
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0
               ? TN_OK
               : tn_fail(err, TN_E_IO, "cannot raise the limit of open files: %s",
                         strerrordesc_np(errno));
}
