/* data_cache.c - see data_cache.h. The reader makes the cache as training would, batches and all.
 */
#include "cli/data_cache.h"

#include "cli/signals.h"
#include "io/read/cache.h"
#include "io/read/reader.h"

#include <stdio.h>
#include <string.h>

enum { BATCH_ROWS = 4096, PREFETCH = 4 };

bool tn_data_to_cache(const tn_tree *to)
{
    const tn_tree *format = tn_tree_get(to, "format");
    return format != NULL && format->kind == TN_TREE_SCALAR && strcmp(format->text, "tnb") == 0;
}

static tn_status check_target(const tn_data_input *in, const char *path, tn_error *err)
{
    for (const tn_tree *t = in->to->first; t != NULL; t = t->next) {
        if (strcmp(t->key, "format") != 0) {
            return tn_fail(err, TN_E_USAGE, "'to.%s' means nothing for a binary cache", t->key);
        }
    }
    return tn_tnb_is_named(path)
               ? TN_OK
               : tn_fail(err, TN_E_USAGE, "a binary cache is a file named *.tnb, not '%s'", path);
}

/* The batches are not what is wanted, only that all of them were made. */
static tn_status drain(tn_reader *reader, tn_error *err)
{
    tn_batch *batch = NULL;
    tn_status status;
    while ((status = tn_reader_next(reader, &batch, err)) == TN_OK) {
        tn_reader_recycle(reader, batch);
    }
    return status == TN_END ? TN_OK : status;
}

tn_status tn_data_make_cache(const tn_data_input *in, const char *path, tn_error *err)
{
    TN_TRY(check_target(in, path, err));
    TN_TRY(tn_output_check(path, &in->inputs, err));
    const tn_reader_opts opts = {
        .paths = in->paths, .batch_rows = BATCH_ROWS, .prefetch = PREFETCH, .make_cache = path};
    tn_reader *reader = NULL;
    TN_TRY(tn_reader_open(&reader, in->from.schema, &opts, err));
    tn_signals_remove(tn_reader_cache_tmp(reader));
    tn_status status = drain(reader, err);
    tn_read_counts n;
    tn_reader_counts(reader, &n);
    tn_reader_close(reader);
    if (status == TN_OK) {
        (void)fprintf(tn_data_counts_to(path),
                      "rows %llu, blank %llu, bad %llu, duplicate names %llu, sources %u\n",
                      (unsigned long long)(n.records - n.bad), (unsigned long long)n.blank,
                      (unsigned long long)n.bad, (unsigned long long)n.duplicate_key, n.sources);
    }
    return status;
}
