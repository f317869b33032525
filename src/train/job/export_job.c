/* export_job.c - plans the model, exports it, and sends it to a store where one is named. */
#include "train/job/export_job.h"

#include "base/core/log.h"
#include "io/schema/dataopts.h"
#include "io/source/remote.h"
#include "train/checkpoint/checkpoint.h"
#include "train/config/days.h"
#include "train/export/export_target.h"
#include "train/group/ranks.h"

/* Logs what fewer bits cost, if there is a dictionary. */
static void tell_loss(const tn_export_loss *loss, const tn_run *run)
{
    tn_text said = {0};
    if (loss->bytes > 0) {
        tn_export_loss_say(loss, run, &said);
        tn_log(TN_LOG_INFO, "%s", tn_text_str(&said));
    }
    tn_text_done(&said);
}

/* data.days chooses no checkpoint: the newest is exported, whatever they name. */
static void warn_of_day(const tn_data_opts *data, const char *checkpoint, uint32_t day)
{
    if (data->n_days > 0 && day > 0 && !tn_checkpoint_has_day(checkpoint, data->day[0])) {
        char asked[TN_DAY_NAME];
        char learned[TN_DAY_TEXT];
        tn_day_name(data->day[0], asked);
        tn_day_text(day, learned);
        tn_log(TN_LOG_WARN, "%s is not learned; exported is the model of %s", asked, learned);
    }
}

/* Rows by keys of 8 bytes are those of dict.resp alone. */
static tn_status check_redis(const tn_export_opts *e, tn_error *err)
{
    if (e->redis_keys != TN_RESP_TEXT && !tn_strs_has(&e->dict, "resp")) {
        return tn_fail(err, TN_E_CONFIG,
                       "'export.redis_keys' is key8, and nothing is for Redis: export.dict has no "
                       "resp");
    }
    return TN_OK;
}

/* Sends the export to the store of a URI. Removes what an export of all rows makes superfluous,
 * unless a run that may publish is at work there. */
static tn_status send_to_store(const tn_export_target *t, const tn_export_job_opts *o,
                               const char *dir, tn_exported *out, tn_error *err)
{
    bool sent = false;
    TN_TRY(t->upload->send(t, out->model_id, o->stop, &sent, err));
    TN_TRY(tn_uri_join(t->to, out->model_id, out->path, err));
    out->existed = !sent;
    if (o->delta_from == NULL && tn_lock_look(dir, NULL) == TN_OK) {
        t->upload->prune(t, out->model_id);
    }
    return TN_OK;
}

/* The others of a group do not wait for one that fails. */
static tn_status fetch_base(const tn_setup *s, const tn_export_job_opts *o,
                            const tn_export_target *t, tn_error *err)
{
    if (o->delta_from == NULL) {
        return TN_OK;
    }
    const tn_status status = tn_export_fetch_base(t, o->delta_from, err);
    if (status != TN_OK) {
        tn_group_built()->decline(&s->run, status, err->text);
    }
    return status;
}

/* Exports as rank 0; `t` is open. */
static tn_status export_to(tn_setup *s, const tn_export_job_opts *o, const tn_export_target *t,
                           tn_exported *out, tn_error *err)
{
    tn_text dir = {0};
    tn_run_dir(&s->run.run, &dir);
    tn_export_request request = {
        .checkpoint = s->from != NULL ? s->from : tn_text_str(&dir),
        .to = t->folder,
        .delta_from = o->delta_from,
        .calibration = o->calibration,
        .binder = &s->binder,
        .text = &s->text,
        .told_elsewhere = &s->told_elsewhere,
        .stop = o->stop,
    };
    tn_status status = fetch_base(s, o, t, err);
    status = status == TN_OK ? tn_export(s->plan, &request, out, err) : status;
    if (status == TN_OK && t->remote != NULL) {
        status = send_to_store(t, o, tn_text_str(&dir), out, err);
    }
    if (status == TN_OK) {
        warn_of_day(&s->run.data, request.checkpoint, out->day);
    }
    tn_text_done(&dir);
    if (status == TN_OK) {
        tell_loss(&out->loss, &s->run);
    }
    return status;
}

tn_status tn_export_job_run(tn_setup *s, const tn_export_job_opts *o, tn_exported *out,
                            tn_error *err)
{
    TN_ASSERT(s->tree != NULL && (s->reads || s->peers == 0));
    tn_export_target target;
    s->run.checkpoint.resume = "must";
    const char *to = o->to != NULL ? o->to : s->run.export.to;
    TN_TRY(check_redis(&s->run.export, err));
    TN_TRY(tn_export_target_open(&target, to, &s->run, err)); /* all refuse it, or none */
    tn_status status = tn_setup_plan(s, err);
    if (status == TN_OK && s->run.cluster.rank > 0) {
        const tn_watch watch = {.stop = o->stop, .told_elsewhere = &s->told_elsewhere};
        status = tn_group_built()->serve(s->plan, &s->text, &watch, NULL, &s->binder, err);
    } else if (status == TN_OK) {
        status = export_to(s, o, &target, out, err);
    }
    tn_export_target_close(&target);
    return status;
}
