/* eval_pages.h - pages that show an evaluation to people: tnet-eval --report page.html
 *
 * To add one: a constant tn_eval_page_NAME of a folder of src/extra, whose row in eval_pages.def is
 * TN_EVAL_PAGE(NAME). The program writes the first one.
 */
#pragma once

#include "train/report/eval_result.h"

typedef struct tn_eval_page {
    /* Appends the page. `config`: the resolved configuration as text; NULL: none. */
    tn_status (*make)(const tn_eval_result *f, const char *config, tn_text *out, tn_error *err);
} tn_eval_page;

extern const tn_eval_page *const tn_all_eval_pages[]; /* NULL-terminated */

/* Writes the page into a file that is replaced as a whole. */
tn_status tn_eval_page_write(const tn_eval_page *page, const tn_eval_result *f, const char *config,
                             const char *path, tn_error *err) TN_MUST_USE;
