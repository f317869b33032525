/* held_rows.c - reads the words, and finds where the last rows begin. */
#include "io/read/held_rows.h"

#include "base/core/number.h"
#include "io/read/blocks.h"

#include <string.h>

static const char *const words[] = {[TN_HELD_SHARE] = "share ", [TN_HELD_LAST] = "last "};

tn_status tn_held_rows_read(const char *text, tn_data_opts *data, bool *is_word, tn_error *err)
{
    *is_word = false;
    for (uint32_t kind = TN_HELD_SHARE; kind <= TN_HELD_LAST; kind++) {
        const size_t size = strlen(words[kind]);
        if (strncmp(text, words[kind], size) != 0) {
            continue;
        }
        const char *number = text + size;
        const size_t digits = strcspn(number, "%");
        const bool percent = strcmp(number + digits, "%") == 0;
        double part = 0;
        const bool good =
            (percent || number[digits] == '\0') && tn_read_f64(number, digits, &part) == TN_NUM_OK;
        part /= percent ? 100 : 1;
        *is_word = true;
        data->held = kind;
        data->held_part = part;
        return good && part > 0 && part < 1
                   ? TN_OK
                   : tn_fail(err, TN_E_CONFIG,
                             "data.valid: '%s' is not a part of the rows, like 10%% or 0.1", text);
    }
    return TN_OK;
}

static tn_status find_last(tn_held_rows *out, const tn_data_opts *data, const tn_fileset *files,
                           tn_error *err)
{
    double bytes = 0;
    for (uint32_t i = 0; i < files->n; i++) {
        const tn_file_entry *file = &files->file[i];
        if (file->size == UINT64_MAX || file->compression != TN_COMPRESSION_NONE) {
            return tn_fail(err, TN_E_DATA,
                           "data.valid: {last: ..} counts bytes, and '%s' is %s\nhint: {share: ..} "
                           "holds back rows by chance",
                           file->path,
                           file->size == UINT64_MAX ? "of no known size" : "compressed");
        }
        bytes += (double)file->size;
    }
    double left = bytes * (1 - data->held_part); /* bytes that are learned */
    uint32_t i = 0;
    while (i + 1 < files->n && left >= (double)files->file[i].size) {
        left -= (double)files->file[i++].size;
    }
    out->source = i;
    out->from = (uint64_t)left;
    return TN_OK;
}

tn_status tn_held_rows_find(tn_held_rows *out, const tn_data_opts *data, const tn_fileset *files,
                            tn_error *err)
{
    *out = (tn_held_rows){.kind = data->held, .part = data->held_part};
    TN_ASSERT(data->held == TN_HELD_NONE || (data->held_part > 0 && data->held_part < 1));
    return data->held == TN_HELD_LAST ? find_last(out, data, files, err) : TN_OK;
}
