/* export_target.c - opens the place of exports, and knows by a list who sends them. */
#include "train/export/export_target.h"

#include "config/absent.h"
#include "io/source/remote.h"
#include "train/config/run.h"
#include "train/export/export_folder.h"

#include <string.h>

#define TN_UPLOAD(name) extern const tn_upload tn_upload_##name;
#include "train/export/uploads.def"
#undef TN_UPLOAD

static const tn_upload *const uploads[] = {
#define TN_UPLOAD(name) &tn_upload_##name,
#include "train/export/uploads.def"
#undef TN_UPLOAD
    NULL,
};

tn_status tn_export_target_open(tn_export_target *t, const char *to, const tn_run *run,
                                tn_error *err)
{
    *t = (tn_export_target){.to = to, .upload = uploads[0]};
    if (to == NULL || *to == '\0') {
        return tn_fail(err, TN_E_CONFIG, "export.to names no folder");
    }
    if (!tn_uri_is(to)) {
        TN_TRY(tn_path_check(to, 0, TN_E_USAGE, err));
        memcpy(t->folder, to, strlen(to) + 1);
        return TN_OK;
    }
    TN_TRY(tn_remotes()->check_target(to, false, err));
    TN_TRY(tn_absent_check("upload", TN_E_CONFIG, err));
    TN_ASSERT(t->upload != NULL);
    tn_text dir = {0};
    tn_run_dir(&run->run, &dir);
    tn_status status = tn_text_check(&dir, "run.dir", err);
    status = status == TN_OK ? tn_path_join(tn_text_str(&dir), "upload", t->folder, err) : status;
    tn_text_done(&dir);
    TN_TRY(status);
    return tn_remotes()->open(&t->remote, run->data.secrets, err);
}

void tn_export_target_close(tn_export_target *t)
{
    tn_remotes()->close(t->remote);
    t->remote = NULL;
}

tn_status tn_export_fetch_base(const tn_export_target *t, const char *model_id, tn_error *err)
{
    const bool may_be_there = t->remote != NULL && tn_export_is_id(model_id);
    return may_be_there ? t->upload->fetch_base(t, model_id, err) : TN_OK;
}
