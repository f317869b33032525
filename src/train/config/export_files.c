/* export_files.c - the list of export_files.def. */
#include "train/config/export_files.h"

#include <stddef.h>

#define TN_EXPORT_FILE(name) extern const tn_export_file tn_export_file_##name;
#include "train/config/export_files.def"
#undef TN_EXPORT_FILE

const tn_export_file *const tn_all_export_files[] = {
#define TN_EXPORT_FILE(name) &tn_export_file_##name,
#include "train/config/export_files.def"
#undef TN_EXPORT_FILE
    NULL,
};
