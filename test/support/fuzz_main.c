/* fuzz_main.c - replays a corpus through a fuzz target, without any fuzzer.
 *
 * Linked with test/fuzz/fuzz_<name>.c where libFuzzer is not; every file of the folders given on
 * the command line is one input. So each past finding is an ordinary test.
 */
#include "base/core/text.h"
#include "base/file/file.h"

#include <stdint.h>
#include <stdio.h>

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    tn_error err = {0};
    tn_text bytes = {0};
    if (tn_file_read_all(path, (size_t)64 << 20, &bytes, &err) != TN_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    (void)LLVMFuzzerTestOneInput((const uint8_t *)tn_text_str(&bytes), bytes.size);
    tn_text_done(&bytes);
    return 0;
}

static int replay_folder(const char *folder)
{
    tn_error err = {0};
    tn_text names = {0};
    uint32_t n = 0;
    if (tn_dir_list(folder, &names, &n, &err) != TN_OK || n == 0) {
        (void)fprintf(stderr, "no corpus in '%s': %s\n", folder, err.text);
        return 1;
    }
    int failed = 0;
    const char *name = names.data;
    for (uint32_t i = 0; i < n; i++) {
        tn_text path = {0};
        tn_text_addf(&path, "%s/%s", folder, name);
        failed |= replay_file(tn_text_str(&path));
        tn_text_done(&path);
        while (*name++ != '\0') {
        }
    }
    tn_text_done(&names);
    (void)printf("%s: %u inputs\n", folder, n);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = argc < 2;
    for (int i = 1; i < argc; i++) {
        failed |= replay_folder(argv[i]);
    }
    return failed;
}
