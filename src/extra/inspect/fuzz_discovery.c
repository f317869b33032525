/* fuzz_discovery.c - any bytes as a file of which nobody knows the columns: what is found is
 * written as a configuration that reads as the same columns.
 *
 * The first byte picks what is known of it, the rest is the file.
 */
#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/core/text.h"
#include "config/diag.h"
#include "config/tree.h"
#include "config/values.h"
#include "config/yaml.h"
#include "extra/inspect/column_discovery.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // NOLINT: libFuzzer's name

static const char *const known[] = {
    "{}",
    "{format: csv}",
    "{format: tsv, header: false}",
    "{format: csv, delimiter: ';', header: true}",
    "{format: jsonl}",
    "{format: tfrecord}",
};

static const tn_tree *read_tree(tn_arena *arena, const char *text, size_t size)
{
    tn_diag diag = {0};
    const tn_yaml_in in = {.text = text, .size = size, .source = "fuzz"};
    const tn_tree *tree = tn_yaml_read(arena, &diag, &in);
    tn_diag_done(&diag);
    return tree;
}

/* Names that YAML cannot hold are not read back. */
static void check_config(const tn_discovery *found, tn_arena *arena)
{
    tn_text text = {0};
    tn_discovery_config(found, &text);
    const tn_tree *root = read_tree(arena, tn_text_str(&text), text.size);
    const tn_tree *slots = root != NULL ? tn_tree_get(root, "slots") : NULL;
    TN_ASSERT(root == NULL || tn_tree_count(slots) == found->n);
    const tn_tree *slot = slots != NULL ? slots->first : NULL;
    for (uint32_t i = 0; slot != NULL; i++, slot = slot->next) {
        const tn_tree *column = tn_tree_get(slot, "column");
        column = column != NULL ? column : tn_tree_get(slot, "name");
        TN_ASSERT(column != NULL && column->kind == TN_TREE_SCALAR);
        TN_ASSERT(strcmp(column->text, found->column[i].name) == 0);
    }
    tn_text_done(&text);
}

static void discover(const char *path, const char *given)
{
    tn_arena *arena = tn_arena_new(1 << 16);
    const tn_strs paths = {.item = &path, .n = 1};
    tn_discovery found;
    tn_error err = {0};
    tn_status status =
        tn_discovery_find(&found, &paths, read_tree(arena, given, strlen(given)), arena, &err);
    if (status == TN_OK) {
        TN_ASSERT(found.format != NULL && (found.n > 0) == tn_discovery_has_columns(found.format));
        check_config(&found, arena);
    } else {
        TN_ASSERT(status == TN_E_DATA && err.text[0] != '\0');
    }
    tn_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) // NOLINT
{
    int fd = size > 1 ? memfd_create("discovery", MFD_CLOEXEC) : -1;
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd >= 0 && write(fd, data + 1, size - 1) == (ssize_t)(size - 1)) {
        discover(path, known[data[0] % (sizeof known / sizeof *known)]);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return 0;
}
