/* source_stdin.c - bytes of standard input, named '-'.
 *
 * A pipe may be silent for long, so reads wait and look whether they should stop.
 */
#include "base/core/alloc.h"
#include "io/source/source.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

typedef struct input {
    const atomic_bool *stop;
} input;

static bool stdin_takes(const char *path)
{
    return strcmp(path, "-") == 0;
}

static tn_status stdin_open(void **state, const char *path, uint64_t from, const atomic_bool *stop,
                            tn_error *err)
{
    (void)path;
    if (from != 0) {
        return tn_fail(err, TN_E_DATA, "standard input cannot be read from the middle");
    }
    input *in = tn_try_alloc(1, sizeof *in, "standard input", err);
    if (in == NULL) {
        return TN_E_MEMORY;
    }
    in->stop = stop;
    *state = in;
    return TN_OK;
}

static tn_status stdin_read(void *state, void *data, size_t size, size_t *n, tn_error *err)
{
    input *in = state;
    for (;;) {
        TN_TRY(tn_source_wait(STDIN_FILENO, "standard input", in->stop, err));
        ssize_t got = read(STDIN_FILENO, data, size);
        if (got >= 0) {
            *n = (size_t)got;
            return TN_OK;
        }
        if (errno != EINTR && errno != EAGAIN) {
            return tn_fail(err, TN_E_IO, "cannot read standard input: %s", strerrordesc_np(errno));
        }
    }
}

static void stdin_close(void *state)
{
    tn_free(state);
}

extern const tn_source_kind tn_source_stdin;
const tn_source_kind tn_source_stdin = {
    .name = "stdin",
    .help = "standard input, named '-'",
    .once = true,
    .takes = stdin_takes,
    .open = stdin_open,
    .read = stdin_read,
    .close = stdin_close,
};
