/* rendezvous_file.c - rank 0's address is written to a file and read from it. */
#include "cluster/launch/rendezvous_file.h"

#include "base/file/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { JOB_CHARS = 16 };

tn_status tn_rendezvous_file_write(const char *path, uint64_t job, const char *address,
                                   tn_error *err)
{
    TN_ASSERT(job != 0 && strlen(address) < TN_ENDPOINT_SIZE); /* else no reader takes it */
    char dir[TN_PATH_SIZE];
    TN_TRY(tn_path_parent(path, dir, err));
    TN_TRY(tn_dir_make(dir, err));
    tn_text line = {0};
    tn_text_addf(&line, "%0*" PRIx64 " %s\n", JOB_CHARS, job, address);
    tn_status status = tn_text_check(&line, "the address of rank 0", err);
    if (status == TN_OK) {
        status = tn_file_replace(path, line.data, line.size, err);
    }
    tn_text_done(&line);
    return status;
}

/* Returns whether `line` is "job address\n" of this run. */
static bool is_ours(const tn_text *line, uint64_t job, tn_endpoint *out)
{
    char named[JOB_CHARS + 2];
    (void)snprintf(named, sizeof named, "%0*" PRIx64 " ", JOB_CHARS, job);
    if (line->size < JOB_CHARS + 3 || memcmp(line->data, named, JOB_CHARS + 1) != 0 ||
        line->data[line->size - 1] != '\n') {
        return false;
    }
    line->data[line->size - 1] = '\0';
    return tn_endpoint_read(line->data + JOB_CHARS + 1, 0, out, NULL) == TN_OK &&
           (out->is_ipc || out->port != 0);
}

tn_status tn_rendezvous_file_read(const char *path, uint64_t job, char out[TN_ENDPOINT_SIZE],
                                  tn_error *err)
{
    tn_text line = {0};
    tn_endpoint e;
    if (!tn_path_exists(path)) {
        return TN_END;
    }
    tn_status status = tn_file_read_all(path, TN_ENDPOINT_SIZE + JOB_CHARS + 2, &line, err);
    if (status == TN_E_LIMIT || (status == TN_OK && !is_ours(&line, job, &e))) {
        status = TN_END;
    }
    if (status == TN_OK) {
        tn_endpoint_write(&e, out);
    }
    tn_text_done(&line);
    return status;
}
