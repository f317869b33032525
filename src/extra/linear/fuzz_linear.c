/* fuzz_linear.c - any bytes as a model that VW (first byte odd) or xLearn printed: refused with
 * file and line, or lines whose names are words and whose numbers are finite; a copy of the cursor
 * reads the same.
 */
#include "base/core/compiler.h"
#include "extra/linear/linear_text.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // NOLINT: libFuzzer's name

enum { NUMBERS = 64 };

static void see_line(const tn_linear_text *t, const tn_linear_line *line)
{
    float number[NUMBERS];
    tn_error err = {0};
    TN_ASSERT(line->n > 0 && (line->n == 1 || line->kind == TN_LINEAR_VECTOR));
    TN_ASSERT(line->kind != TN_LINEAR_VECTOR || !t->vw);
    for (size_t i = 0; i < line->name.size; i++) {
        TN_ASSERT(memchr(t->vw ? "\n:| \t\r" : "\n:\n:\n:", line->name.data[i], 6) == NULL);
    }
    if (line->n <= NUMBERS && tn_linear_text_numbers(t, line, number, &err) == TN_OK) {
        for (uint32_t i = 0; i < line->n; i++) {
            TN_ASSERT(number[i] - number[i] == 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) // NOLINT
{
    tn_error err = {0};
    tn_linear_text t;
    tn_linear_line line;
    if (size == 0) {
        return 0;
    }
    const tn_bytes bytes = {.data = (const char *)data + 1, .size = size - 1};
    tn_status status = tn_linear_text_begin(&t, (data[0] & 1) != 0, bytes, "f", &err);
    while (status == TN_OK) {
        tn_linear_text copy = t;
        tn_linear_line again = {.index = 1};
        status = tn_linear_text_next(&t, &line, &err);
        TN_ASSERT(tn_linear_text_next(&copy, &again, &err) == status && copy.line == t.line);
        if (status == TN_OK) {
            TN_ASSERT(again.index == line.index && again.number.data == line.number.data);
            see_line(&t, &line);
        }
    }
    TN_ASSERT(status == TN_END || (status == TN_E_DATA && strncmp(err.text, "f:", 2) == 0));
    return 0;
}
