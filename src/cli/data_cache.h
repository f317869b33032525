/* data_cache.h - tnet-data convert to.format=tnb: rows into a binary cache (io/read/cache.h). */
#ifndef TN_CLI_DATA_CACHE_H
#define TN_CLI_DATA_CACHE_H

#include "cli/data_tool.h"

/* Whether the options `to.` ask for one. */
bool tn_data_to_cache(const tn_tree *to);

/* Reads in->paths and writes `path`, which ends in .tnb; in->from was bound with TN_DATASET_PARTS.
 */
tn_status tn_data_make_cache(const tn_data_input *in, const char *path, tn_error *err) TN_MUST_USE;

#endif
