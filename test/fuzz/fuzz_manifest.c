/* fuzz_manifest.c - any bytes as MANIFEST. The crc is put right first, so that the parser behind it
 * is reached; what is accepted can be written again. */
#include "base/codec/json.h"
#include "train/checkpoint/run_state.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // NOLINT: libFuzzer's name

enum { CRC_TAIL = 21 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) // NOLINT
{
    tn_run_sections run = {0};
    tn_run_sections run_back = {0};
    tn_manifest m = {.sections = {tn_run_sections_rows, &run}};
    tn_text text = {0};
    tn_arena *arena = tn_arena_new(1 << 12);
    tn_text_add(&text, data, size > CRC_TAIL ? size - CRC_TAIL : size);
    tn_json_close_with_crc(&text);
    if (tn_manifest_read(&m, &text, arena, "fuzz", NULL) == TN_OK) {
        tn_text again = {0};
        tn_manifest back = {.sections = {tn_run_sections_rows, &run_back}};
        uint32_t crc = 0;
        run.kept.days = tn_days_pack(&run.kept.days);
        tn_status status = tn_manifest_write(&m, &again, &crc, NULL);
        TN_ASSERT(status == TN_OK);
        status = tn_manifest_read(&back, &again, arena, "again", NULL);
        TN_ASSERT(status == TN_OK && back.crc == crc);
        tn_text_done(&again);
    }
    tn_arena_free(arena);
    tn_text_done(&text);
    return 0;
}
