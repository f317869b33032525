/* eval_pages.c - the list of eval_pages.def. */
#include "train/report/eval_pages.h"

#include "base/file/output_file.h"

#define TN_EVAL_PAGE(name) extern const tn_eval_page tn_eval_page_##name;
#include "train/report/eval_pages.def"
#undef TN_EVAL_PAGE

const tn_eval_page *const tn_all_eval_pages[] = {
#define TN_EVAL_PAGE(name) &tn_eval_page_##name,
#include "train/report/eval_pages.def"
#undef TN_EVAL_PAGE
    NULL,
};

tn_status tn_eval_page_write(const tn_eval_page *page, const tn_eval_result *f, const char *config,
                             const char *path, tn_error *err)
{
    tn_text text = {0};
    tn_status status = page->make(f, config, &text, err);
    if (status == TN_OK) {
        status = tn_output_put(path, tn_text_str(&text), text.size, &(tn_output_with){.tell = true},
                               err);
    }
    tn_text_done(&text);
    return status;
}
