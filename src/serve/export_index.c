/* export_index.c - the table of EXPORT.json. */
#include "serve/export_index.h"

#include <string.h>

static const char *check_name(void *entry)
{
    const char *name = ((const tn_export_entry *)entry)->name;
    return name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL ? "name" : NULL;
}

static const tn_doc_row entry_rows[] = {
    TN_DOC_STR(tn_export_entry, name, "name"),
    TN_DOC_CHECK(check_name), /* becomes a path */
    TN_DOC_COUNT(tn_export_entry, bytes, UINT64_MAX, "bytes"),
    TN_DOC_CRC(tn_export_entry, crc, "crc32c"),
    TN_DOC_END,
};

static const tn_doc_row index_rows[] = {
    TN_DOC_ID(tn_export_index, model_id, 1, "model_id"),
    TN_DOC_U64(tn_export_index, step, 0, UINT64_MAX, "step"),
    TN_DOC_STR(tn_export_index, day, "day", TN_DOC_MAY_MISS),
    TN_DOC_LIST(tn_export_index, n_files, file, const tn_export_entry *, '{', entry_rows,
                TN_EXPORT_FILES_MAX, "files"),
    TN_DOC_END,
};

const tn_document tn_export_index_document = {.format = "tnet-export",
                                              .is = "the index of an export",
                                              .newest = 1,
                                              .newer = TN_E_CKPT,
                                              .rows = index_rows};
