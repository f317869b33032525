/* fuzz_dump.c - any bytes as a dump of a table: refused with its place, or every row stays inside.
 *
 * The first byte says which columns hold whole numbers.
 */
#include "base/core/error.h"
#include "extra/dump/dump.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // NOLINT: libFuzzer's name

static void see_rows(tn_dump *d, const tn_dump_head *head)
{
    const tn_dump_row *row = NULL;
    tn_error err = {0};
    tn_status status;
    uint64_t line = tn_dump_line(d);
    while ((status = tn_dump_next(d, &row, &err)) == TN_OK) {
        TN_ASSERT(tn_dump_line(d) == ++line);
        TN_ASSERT(row->show >= 0 && row->click >= 0 && row->group[0] != '\0');
        for (uint32_t i = 0; i < head->n; i++) {
            for (uint32_t k = 0; k < row->value[i].n; k++) {
                float x = row->value[i].at[k];
                TN_ASSERT(head->column[i].whole || x - x == 0);
            }
        }
    }
    TN_ASSERT(status == TN_END || err.text[0] != '\0');
}

static void see_file(const char *path, uint8_t whole)
{
    tn_dump *d = NULL;
    tn_error err = {0};
    if (tn_dump_open(&d, path, &err) != TN_OK) {
        TN_ASSERT(d == NULL && err.text[0] != '\0');
        return;
    }
    const tn_dump_head *head = tn_dump_head_of(d);
    TN_ASSERT(strlen(head->model_id) == 32);
    for (uint32_t i = 0; i < head->n && i < 8; i++) {
        if ((whole >> i & 1) != 0) {
            tn_dump_set_whole(d, i);
        }
    }
    see_rows(d, head);
    tn_dump_close(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) // NOLINT
{
    int fd = size > 0 ? memfd_create("dump", 0) : -1;
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd >= 0 && write(fd, data + 1, size - 1) == (ssize_t)size - 1) {
        see_file(path, data[0]);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return 0;
}
