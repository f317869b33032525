/* rank_counts.h - what the readers of a rank have met in an epoch, and what its table holds: counts
 * that add up, over readers and over ranks.
 *
 *     tn_met_add_reader(&m, reader, TN_ALL_PARTS);    a reader is about to be closed
 *     tn_met_add(&sum, &m);                           another rank's
 *     tn_figures_pack(&figures, &text);               a rank, in each DONE
 * (cluster/wire/control_structs.h) tn_figures_unpack(&figures, note->figures);     rank 0
 *
 * A part that a rank gives back before it is over is counted by whoever reads it to its end: that
 * reader begins at the part's first byte, wherever in it the learning goes on.
 */
#ifndef TN_TRAIN_RANK_COUNTS_H
#define TN_TRAIN_RANK_COUNTS_H

#include "cluster/wire/control_lists.h"
#include "io/read/reader.h"
#include "ps/table/table.h"

typedef struct tn_met {
    tn_read_counts counts; /* sources: of the data, the same for all */
    tn_text reasons;       /* as tn_reader_bad_reasons, each reason once */
} tn_met;

#define TN_ALL_PARTS UINT32_MAX

void tn_met_done(tn_met *m);  /* empty, and usable again */
void tn_met_clear(tn_met *m); /* the same, but keeps the memory */
void tn_met_add_reader(tn_met *m, tn_reader *reader, uint32_t parts); /* its first ones */
void tn_met_add(tn_met *m, const tn_met *more);

/* Rows of a table, or of those of several ranks. */
typedef struct tn_held {
    uint64_t created, rows, bytes;
} tn_held;
tn_held tn_held_of(const tn_table *t);

typedef struct tn_figures {
    uint64_t number; /* grows with each time the rank tells them */
    uint64_t epoch;  /* that `met` is of */
    tn_held held;
    tn_met met;
} tn_figures;

/* Little-endian u64: number, epoch; of the table created, rows, bytes; of the epoch bytes, records,
 * blank, bad, duplicate_key; behind them the reasons. Appends; tn_text_check tells whether it
 * fitted. */
void tn_figures_pack(const tn_figures *f, tn_text *out);

/* Replaces what `f` holds, which tn_met_done frees; false, and `f` as it was, where the bytes are
 * no figures: they may come from outside. */
bool tn_figures_unpack(tn_figures *f, tn_note_bytes bytes);

#endif
