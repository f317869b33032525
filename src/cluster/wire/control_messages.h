/* control_messages.h - messages between peers and rank 0 beside keys and floats: a struct for
 * each type of frame that carries a control message, and the struct as bytes and back.
 *
 *     tn_note_write(TN_FRAME_BEAT, &beat, &text);                           sender; tn_text_check
 *     why = tn_note_read(&beat, TN_FRAME_BEAT, bytes, size, arena);       receiver
 *
 * A control message ("note") is a message of base/codec/proto.h, and each member of the struct is a
 * field, whose number is its place in control_messages.c. Members that are 0 or empty are not
 * written, and unknown fields are skipped, so members may be added. Texts are UTF-8 without NUL, at
 * most TN_NOTE_TEXT_MAX bytes: a writer cuts longer ones and replaces what is no UTF-8 by '?'.
 * Lists have at most TN_NOTE_LIST_MAX items, and lists that belong together are equally long.
 * Doubles are finite. Enumerations are u64, since they travel as numbers; a reader refuses those
 * without a name.
 *
 * The writer borrows what it is given. What a reader returns lives in the arena, except for
 * tn_note_bytes, which point into the message. Session, step, rank and incarnation are in the frame
 * (cluster/wire/frame.h). Any thread.
 */
#pragma once

#include "base/core/arena.h"
#include "base/core/text.h"
#include "cluster/wire/frame.h"

typedef struct tn_note_numbers {
    const uint64_t *at;
    size_t n;
} tn_note_numbers;

typedef struct tn_note_texts {
    const char *const *at;
    size_t n;
} tn_note_texts;

typedef struct tn_note_bytes {
    const char *at;
    size_t n;
} tn_note_bytes;

/* Parts of the ledger (cluster/ledger/ledger.h) in a rank's hands: lists of equal length. */
typedef struct tn_note_parts {
    tn_note_numbers part, attempt, position;
} tn_note_parts;

/* HELLO: a rank asks to join; rank 0 compares what must be equal before it answers WELCOME. With a
 * status the rank gives up, so the group cannot form: the other fields may be empty. */
typedef struct tn_hello_note {
    const char *version, *host, *address, *config_hash, *structure, *cpu; /* cpu: set of kernels */
    uint64_t pid, peers, threads; /* peers: how many it takes the group for */
    int64_t started;              /* Unix time in milliseconds */
    uint64_t status;              /* tn_status of a rank that gives up; 0: it asks to join */
    const char *text;             /* why */
} tn_hello_note;

/* WELCOME: the group is whole. Lists have an item per rank, owned_from one more. */
typedef struct tn_welcome_note {
    uint64_t checkpoint; /* ordinal of the one that all load; 0: none */
    tn_note_texts address, host;
    tn_note_numbers incarnation, owned_from; /* tn_owners.from */
} tn_welcome_note;

typedef enum tn_peer_state {
    TN_PEER_LOADING,
    TN_PEER_TRAINING,
    TN_PEER_WAITING, /* for a part, or for others */
    TN_PEER_DRAINED, /* all it sent is acknowledged, for a cut */
    TN_PEER_SAVING,
    TN_PEER_EVALUATING,
    TN_PEER_ENDING,
    TN_PEER_STATES
} tn_peer_state;

typedef enum tn_peer_ask {
    TN_ASKS_NOTHING,
    TN_ASKS_SAVE,
    TN_ASKS_STOP,
    TN_ASKS_ROOM, /* its memory is full: the end, too */
    TN_PEER_ASKS
} tn_peer_ask;

/* BEAT: the rank is alive; its progress. The frame's step is its worker's. */
typedef struct tn_beat_note {
    uint64_t state, records, in_flight, rss_bytes, bytes_out, bytes_in;
    uint64_t waits_for;         /* 1 + rank; 0: nobody */
    double rows_per_s, waiting; /* waiting: share of the time since the last beat */
    tn_note_parts held;
    /* tn_peer_ask: by a signal to this rank, or its full memory; of rank 0 STOP alone */
    uint64_t asks;
} tn_beat_note;

/* ASK: reports parts of the epoch that are done (positions: records of each), and with an id asks
 * for the next one. */
typedef struct tn_ask_note {
    uint64_t epoch;
    tn_note_parts done;
    uint64_t id;     /* as tn_ledger_ask; 0: no part is wanted */
    uint64_t number; /* number of this note, not 0 */
} tn_ask_note;

enum { TN_PART_IS, TN_PART_WAIT, TN_PART_NO_MORE, TN_PART_ANSWERS };

/* PART: the answer to an ASK. After TN_PART_WAIT a second one follows unasked; if that is lost, the
 * rank asks again under the same id and gets the same part. */
typedef struct tn_part_note {
    uint64_t answer, epoch, part, source, begin, end, attempt, position;
    uint64_t id;     /* id of the ask */
    uint64_t number; /* number of the note that this answers; 0: it comes unasked */
} tn_part_note;

/* REPORT: sums so far, so that one that is lost, repeated or late does no harm. */
typedef struct tn_report_note {
    /* number grows across restarts; samples: learned from since the rank began */
    uint64_t number, samples;
    double loss_sum, weight_sum;  /* sum of w l, and of w; with samples, 0 at staleness 0 */
    uint64_t epoch, records, bad; /* read of that epoch */
    tn_note_bytes metrics;        /* scores since then: tn_metrics_pack, coarse */
} tn_report_note;

typedef enum tn_order_what {
    TN_ORDER_START,    /* train until all meet again, in epoch `number`; apart: be ready to */
    TN_ORDER_CUT,      /* finish what is pulled, drain, say DONE with parts in hand and sent */
    TN_ORDER_MARK,     /* begin the snapshot `number`, go on; DONE with files when written */
    TN_ORDER_ABANDON,  /* the cut or snapshot `number` */
    TN_ORDER_RETURN,   /* to one rank: give back your parts of epoch `number`: DONE with them */
    TN_ORDER_EVALUATE, /* text: the data */
    TN_ORDER_EXPORT,   /* write the rows of the model of `step`; text: where to */
    TN_ORDER_STOP,     /* end the run; number: tn_status, text: why */
    TN_ORDER_BYE,      /* the run is over: leave */
    TN_ORDER_LOAD,     /* checkpoint `number`, 0: none; text: what of it */
    TN_ORDER_GO,       /* apart: train; every other rank's shard is ready for the START */
    /* during an evaluation, to one rank: DONE with the next scored rows, or none */
    TN_ORDER_ROWS,
    TN_ORDER_PRIOR, /* begin epoch `number`: DONE with clicks and weight of its first rows */
    TN_ORDER_SWEEP, /* rows that expire on day `number` leave: DONE with counts in `metrics` */
    TN_ORDERS
} tn_order_what;

/* `more` of a mark: run, step of the base, whether it is a delta; of a start: bits of the rates'
 * factor, the step at which they end, the day of rows, and of the first one bits of the output bias
 * of each task; of a prior: that day; of a stop: 1 + the
 * rank that reports to people; of evaluations, rows: cluster/train/score_exchange.h. */
typedef struct tn_order_note {
    uint64_t what, number, step; /* step: before which it is to be carried out; 0: at once */
    const char *text;
    tn_note_numbers more;
} tn_order_note;

/* DONE: an order is carried out, or failed. Lists of an item per file, per rank, per part. */
typedef struct tn_done_note {
    uint64_t what, number, status; /* status: tn_status */
    const char *text;              /* text of a failure */
    tn_note_texts file;
    tn_note_numbers file_bytes, file_crc, file_rows, file_first, file_last; /* tn_manifest_file */
    tn_note_numbers sent;             /* after a cut: sequence of the last request to each rank */
    tn_note_numbers low, incarnation; /* after a mark: of each rank's tn_dedup */
    tn_note_parts parts;
    uint64_t records, samples, bad; /* counts of the epoch so far, or of an evaluation */
    /* metrics of these: tn_task_results_pack; for rows: tn_scored_add; for a sweep:
     * tn_group_rows_pack; for a prior: tn_prior.task */
    tn_note_bytes metrics;
    double clicks, weight; /* sums of the first rows */
    tn_note_bytes figures; /* cluster/train/peer_progress.h: the rank's counts */
} tn_done_note;

typedef struct tn_refused_note {
    const char *text; /* beside the frame's code: the sentence for people */
    uint64_t status,
        teller; /* for a run that is ending: tn_status; 1 + the rank that reports to people */
} tn_refused_note;

enum { TN_NOTE_TEXT_MAX = 4096, TN_NOTE_LIST_MAX = 1 << 16 };

/* Writes a note. `note` is the struct of the type, which is one that carries a note: tn_beat_note
 * for TN_FRAME_BEAT. */
void tn_note_write(tn_frame_type type, const void *note, tn_text *out);

/* Reads a note. *note is written when TN_DROP_NONE; texts are never NULL. */
tn_drop tn_note_read(void *note, tn_frame_type type, const char *bytes, size_t size,
                     tn_arena *arena) TN_MUST_USE;
