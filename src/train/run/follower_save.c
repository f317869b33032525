/* follower_save.c - a rank's part of a checkpoint that rank 0 orders. */
#include "train/checkpoint/checkpoint.h"
#include "train/run/follower_state.h"

#include <stdio.h>
#include <string.h>

static tn_status say_files(tn_follower *f, const tn_ckpt_wrote *wrote, tn_error *err)
{
    enum { FIELDS = 5 };
    const uint32_t n = wrote->n_files;
    tn_arena *arena = tn_arena_new(1 << 12);
    const char **name = TN_NEW_ARRAY(arena, const char *, n + 1);
    uint64_t *number = TN_NEW_ARRAY(arena, uint64_t, (size_t)FIELDS * n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const tn_manifest_file *file = &wrote->file[i];
        const uint64_t of_file[FIELDS] = {file->bytes, file->crc, file->rows, file->first,
                                          file->last};
        name[i] = file->name;
        for (uint32_t k = 0; k < FIELDS; k++) {
            number[k * n + i] = of_file[k];
        }
    }
    tn_done_note note = {.what = TN_ORDER_MARK,
                         .number = f->marked,
                         .text = "",
                         .file = {name, n},
                         .file_bytes = {number, n},
                         .file_crc = {number + n, n},
                         .file_rows = {number + 2UL * n, n},
                         .file_first = {number + 3UL * n, n},
                         .file_last = {number + 4UL * n, n},
                         .records = wrote->rows};
    tn_status status = tn_follower_tell(f, &note, err);
    tn_arena_free(arena);
    return status;
}

tn_status tn_follower_note_share(tn_follower *f, tn_error *err)
{
    if (f->share == NULL || !tn_ckptshare_written(f->share)) {
        return TN_OK;
    }
    tn_ckpt_wrote wrote;
    tn_error why = {0};
    tn_status status = tn_ckptshare_end(f->share, &wrote, &why);
    if (status == TN_OK) {
        status = say_files(f, &wrote, err);
    } else {
        const tn_order_note order = {.what = TN_ORDER_MARK, .number = f->marked};
        status = tn_follower_say_done(f, &order, status, &why, err);
    }
    tn_ckptshare_free(f->share);
    f->share = NULL;
    return status;
}

tn_status tn_follower_mark(tn_follower *f, const tn_order_note *order, tn_error *err)
{
    if (order->more.n != 3 || strlen(order->text) >= sizeof((tn_ckpt_order *)NULL)->folder) {
        return tn_fail(err, TN_E_PEER, "rank 0 does not say what to save");
    }
    tn_ckpt_order what = {.ordinal = order->number,
                          .run_id = order->more.at[0],
                          .step = order->step,
                          .base_step = order->more.at[1],
                          .delta = order->more.at[2] != 0};
    (void)snprintf(what.folder, sizeof what.folder, "%s", order->text);
    tn_error why = {0};
    tn_ckptshare_free(f->share);
    f->marked = order->number;
    tn_status status = tn_peers_refresh(f->peers, &why);
    if (status == TN_OK) {
        status = tn_ckptshare_begin(&f->share, f->w, tn_text_str(&f->run_dir), &what, &why);
    }
    return status == TN_OK ? TN_OK : tn_follower_say_done(f, order, status, &why, err);
}

tn_status tn_follower_abandon(tn_follower *f, const tn_order_note *order, tn_error *err)
{
    tn_ckptshare_free(f->share); /* waits */
    f->share = NULL;
    return tn_follower_say_done(f, order, TN_OK, NULL, err);
}
