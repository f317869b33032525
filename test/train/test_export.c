/* test_export.c - trainer, export and scorer agree; what is exported, and what a loader refuses. */
#include "train/export.h"

#include "support/test.h"

#include "base/alloc.h"
#include "base/crc32c.h"
#include "base/json.h"
#include "base/key.h"
#include "exportkit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NARROW "slots: {deep: [user, item, hist, tags, top, gone, age, count, amount]}"

static const char *const models[] = {
    "{type: lr}",
    "{type: fm, " NARROW "}",
    "{type: widedeep, hidden: [16, 8]}",
    "{type: widedeep, hidden: [16, 8], head: concat, batch_norm: true, dropout: 0.2}",
    "{type: deepfm, hidden: [16], activation: tanh, " NARROW "}",
    "{type: deepfm, hidden: [16, 8], batch_norm: true, activation: prelu, " NARROW "}",
    "{type: dcn, hidden: [16]}",
    "{type: dcnv2, hidden: [16]}",
};

/* S1: TensorNet's serving divides 0 by 0 for an empty slot where its training has zeros. */
static void s1_trainer_and_export_agree_on_every_edge_row(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        exportkit k;
        uint32_t n[2];
        exportkit_open(&k, models[i], NULL);
        exportkit_train(&k);
        tn_exported out = exportkit_export(&k);
        float *trainer = exportkit_trainer_logits(&k, &n[0]);
        float *scorer = exportkit_bundle_logits(&k, out.path, &n[1]);
        assert_int_equal(n[0], 48);
        assert_int_equal(n[1], n[0]);
        for (uint32_t r = 0; r < n[0]; r++) {
            if (!(fabsf(trainer[r] - scorer[r]) <= 1e-6F * fmaxf(1, fabsf(trainer[r])))) {
                fail_msg("%s: row %u: trainer %.9g, export %.9g", models[i], r, (double)trainer[r],
                         (double)scorer[r]);
            }
        }
        tn_free(trainer);
        tn_free(scorer);
        exportkit_close(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(s1_trainer_and_export_agree_on_every_edge_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
