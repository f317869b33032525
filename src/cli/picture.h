/* picture.h - `--profile[=FILE]`: a table of what the run's threads did, and a file of their spans.
 *
 *     tn_picture picture = {0};
 *     TN_TRY(tn_picture_open(&picture, flags.profile, "runs/a/trace.json", &inputs, err));
 *     ... a run that is given picture.profile ...
 *     status = tn_picture_show(&picture, stdout, status, err);      also after a failure
 */
#pragma once

#include "base/file/output_file.h"
#include "train/report/profile.h"

#include <stdio.h>

#define TN_PICTURE_HELP                                                                            \
    "print what every thread's time went to, and write its latest spans for ui.perfetto.dev"

extern const char *const tn_picture_bare[]; /* for TN_FLAG_STR_OR */

typedef struct tn_picture {
    tn_profile *profile; /* NULL: not asked for */
    tn_text path;
} tn_picture;

/* Opens the file. `asked`: the option's value, NULL when it was not given; `usual`: the file when
 * none is named. A FILE that cannot be written, or that is one of `inputs`, is refused right here,
 * and not after hours. */
tn_status tn_picture_open(tn_picture *p, const char *asked, const char *usual,
                          const tn_inputs *inputs, tn_error *err) TN_MUST_USE;

/* Prints to `out`, stdout or stderr, writes and frees, whatever became of the run; nothing of a run
 * that never began. Returns `status`, or the failure to write when that was good. */
tn_status tn_picture_show(tn_picture *p, FILE *out, tn_status status, tn_error *err) TN_MUST_USE;
