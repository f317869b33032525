/* test_exportrows.c - rows of the table written by one thread and by several. */
#include "support/test.h"

#include "base/file/file.h"
#include "exportkit.h"

#include <stdio.h>

static void read_file(const char *dir, const char *name, tn_text *out)
{
    char path[TN_PATH_SIZE];
    assert_int_equal(tn_path_join(dir, name, path, NULL), TN_OK);
    assert_int_equal(tn_file_read_all(path, 1 << 26, out, NULL), TN_OK);
}

/* Rows as a dictionary and as text, and what changed since the model before. */
static void any_number_of_threads_writes_the_same_export(void **state)
{
    static const char *const overrides[] = {"train.epochs=2", "checkpoint.keep=9",
                                            "export.dict=[tnd, tsv]", NULL};
    static const char *const files[] = {"dict.tnd", "dict.tsv"};
    exportkit k;
    tn_text first[2][2] = {{{0}}};
    tn_error err = {0};
    (void)state;
    exportkit_open(&k, "{type: widedeep, hidden: [16, 8]}", overrides);
    exportkit_train(&k);
    for (uint32_t threads = 1; threads <= 4; threads++) {
        char to[300];
        tn_exported out[2] = {{.model_id = ""}};
        (void)snprintf(to, sizeof to, "%s/to-%u", k.dir, threads);
        k.run.train.threads = threads;
        for (uint32_t i = 0; i < 2; i++) {
            char run[300];
            (void)snprintf(run, sizeof run, "%s/run/ckpt-%u", k.dir, i + 1);
            tn_export_request request = {.checkpoint = run, .to = to, .binder = &k.binder};
            request.delta_from = i > 0 ? out[0].model_id : NULL;
            assert_int_equal(tn_export(k.plan, &request, &out[i], &err), TN_OK);
            for (uint32_t n = 0; n < 2; n++) {
                tn_text bytes = {0};
                tn_text *want = &first[i][n];
                read_file(out[i].path, files[n], threads == 1 ? want : &bytes);
                if (threads > 1) {
                    assert_int_equal(bytes.size, want->size);
                    assert_memory_equal(bytes.data, want->data, want->size);
                }
                tn_text_done(&bytes);
            }
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        tn_text_done(&first[i][0]);
        tn_text_done(&first[i][1]);
    }
    exportkit_close(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads_writes_the_same_export),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
