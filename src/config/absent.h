/* absent.h - names of the parts of src/extra that this build was made without.
 *
 * CMake lists them (cmake/Extras.cmake), so that a word which other builds know is not called
 * unknown: "this build has no onnx; configure it with -DTNET_EXTRAS=all". Any thread.
 */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>

#define TN_ABSENT_FORM "this build has no %s; configure it with -DTNET_EXTRAS=all"

/* Returns whether a build with all parts knows `word`, and this one does not. */
bool tn_is_absent(const char *word);

/* Fails with `status` and that sentence if so. */
tn_status tn_absent_check(const char *word, tn_status status, tn_error *err) TN_MUST_USE;
