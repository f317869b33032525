/* discovered_input.h - what data say of themselves, for tools whose configuration says less.
 *
 *     tn_data_use(s, options, (tn_data_ask){.complete = tn_discover_missing, ..}, use, flags, err);
 *
 * `use` finds in->found then, a tn_discovery, or NULL where nothing was looked for. Both are
 * tn_data_ask.complete; TN_E_DATA and others of tn_discovery_find.
 */
#pragma once

#include "cli/data_tool.h"
#include "extra/inspect/column_discovery.h"

/* Finds the slots where none are listed, and no label unless one is named. */
tn_status tn_discover_missing(tn_data_input *in, const tn_tree **root, tn_error *err) TN_MUST_USE;

/* Finds the format and all columns, whatever their label. TN_E_USAGE: slots are listed. */
tn_status tn_discover_all(tn_data_input *in, const tn_tree **root, tn_error *err) TN_MUST_USE;
