/* reader_private.h - the threads of a reader and what they share; for reader*.c only.
 *
 *     source --to_parse--> parsers --ring--> assembler --ready--> tn_reader_next
 *        ^----free_blocks-----'  ^---idle works---'  ^----idle batches---'
 *
 * Blocks are numbered as they are cut; the ring puts parsed ones back into that order and holds
 * parsers back that run too far ahead. Queues and lists have locks of their own; everything under
 * `lock` says so.
 */
#pragma once

#include "base/file/file.h"
#include "base/thread/queue.h"
#include "base/thread/threads.h"
#include "io/read/bad_record_limit.h"
#include "io/read/block_reader.h"
#include "io/read/held_rows.h"
#include "io/read/reader.h"
#include "io/rows/batch_builder.h"

#include <pthread.h>

enum {
    TN_PARSERS_MAX = 256,
    TN_BLOCKS_PER_PARSER = 2,
    TN_BLOCKS_MORE = 2,
    TN_BLOCKS_MAX = TN_PARSERS_MAX * TN_BLOCKS_PER_PARSER + TN_BLOCKS_MORE,
    TN_BATCH_BUILDERS_MAX = 4096,
    TN_REASONS_MAX = 64,
    TN_REASON_BYTES = 80,
    TN_LOGGED_PER_FILE = 20, /* bad records */
    TN_MESSAGES_MAX = 64,    /* kept per block */
};

typedef struct tn_work {
    tn_parsed parsed;
    struct tn_work *next; /* in a list */
} tn_work;

/* A part that was dealt, and what was met in it. */
typedef struct tn_deal_part {
    tn_dealt dealt;
    tn_read_counts counts;
    uint64_t *reason; /* bad records, by the reader's reasons; owned; NULL: none */
} tn_deal_part;

/* The parts on their way from the dealer to the source thread, which reads them and alone appends,
 * and to the assembler, which takes their rows in the same order. Guarded by the reader's lock, but
 * the dealer, which stays as it is. */
typedef struct tn_deal {
    tn_dealer dealer;   /* `next` NULL: every part is this reader's, or of its share */
    tn_deal_part *part; /* n, in the order they were dealt; owned */
    uint32_t n, most;
    bool waits; /* the source has nothing to read until more is dealt */
    bool over;
} tn_deal;

struct tn_reader {
    const tn_schema *schema;
    tn_reader_opts opts;
    tn_fileset *files;
    tn_held_rows held; /* kind NONE if opts want all rows */
    uint32_t *order;   /* n_parts: parts in the order of this epoch */
    tn_bad_record_limit bad_limit;

    tn_block_reader *block_reader; /* source thread only */
    tn_block *block;               /* n_blocks */
    tn_queue *free_blocks;
    tn_queue *to_parse;
    tn_queue *ready;
    uint32_t n_blocks;
    uint32_t n_parsers;
    tn_thread *source;
    tn_thread *parser[TN_PARSERS_MAX];
    tn_thread *assembler;
    unsigned char *logged; /* assembler only; by file: bad records shown */
    bool shuffle;
    atomic_bool stop;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* guarded by `lock`: */
    tn_work *ring[TN_BLOCKS_MAX]; /* parsed, by sequence modulo TN_BLOCKS_MAX */
    uint64_t ahead_rows;          /* their rows */
    uint64_t ahead_bytes;         /* their bytes in memory, about */
    uint64_t next;                /* sequence the assembler waits for */
    tn_work *idle_works;
    tn_batch_builder *idle[TN_BATCH_BUILDERS_MAX];    /* n_idle batches without work */
    tn_batch_builder *builder[TN_BATCH_BUILDERS_MAX]; /* n_builders: all there are */
    uint32_t n_idle;
    uint32_t n_builders;
    tn_status status; /* when `ended`: nothing more will be made ready, and why */
    bool ended;
    bool prior_known;
    tn_error err;
    tn_prior prior;
    tn_read_counts counts;
    uint64_t done_bytes;
    tn_deal deal;
    uint32_t n_reasons;
    char reason[TN_REASONS_MAX][TN_REASON_BYTES]; /* why records were bad */
};

/* The source's next part, which the assembler then finds too; false: no more, or the reader stops
 * or has ended. */
bool tn_reader_deal(tn_reader *r, uint32_t *part);

/* The assembler's i-th part. Without `wait` *now is false when it has to be waited for. TN_END: no
 * more. TN_E_STOPPED: the reader stops or has ended. */
tn_status tn_reader_await_deal(tn_reader *r, uint32_t i, bool wait, tn_dealt *out, bool *now);

/* The three kinds of threads; `arg` is the reader. */
tn_status tn_reader_source_thread(void *arg, tn_error *err);
tn_status tn_reader_parser_thread(void *arg, tn_error *err);
tn_status tn_reader_assembler_thread(void *arg, tn_error *err);

/* Frees all blocks of rows, those on their way included; no thread runs any more. */
void tn_reader_free_works(tn_reader *r);

/* Takes note of a block of the i-th part that was dealt; fails when the stream ends with it. */
tn_status tn_reader_take_note(tn_reader *r, uint32_t i, const tn_work *work,
                              tn_error *err) TN_MUST_USE;

/* Judges the bad records once more, when all records of the data went through this reader. */
tn_status tn_reader_judge_all(const tn_reader *r, tn_error *err) TN_MUST_USE;

/* Ends the stream: what is ready is still handed out, then `status`. The first one counts. */
void tn_reader_end(tn_reader *r, tn_status status, const tn_error *err);
