/* frame.h - one message between peers: a fixed header and a payload, in one piece.
 *
 *      0 u32 magic "TNF1"    8 u64 job           40 u64 step               72 u32 code
 *      4 u16 version 1      16 u64 session       48 u32 rank               76 u32 crc
 *      6 u8  type           24 u64 incarnation   52 u32 count[3]           80 payload
 *      7 u8  flags          32 u64 sequence      64 u64 payload bytes
 *
 * Little-endian. crc is the CRC-32C of all other bytes, 0 to 75 and the payload. `job` is the id of
 * a run, `session` of a formation of a group, `incarnation` of a start of a rank; `sequence` that
 * of a request that changes state, from 1 per sender and destination, and 0 in all others; an
 * answer repeats sequence and step of its request. frames.def lists the types, which of them carry
 * an id and what their payloads hold; docs/formats.md section 10 has the bytes.
 *
 *     memcpy(message + TN_FRAME_HEAD, ...);                  frame.bytes of payload
 *     tn_frame_seal(message, &frame);
 *
 *     tn_drop why = tn_frame_read(&frame, message, size, &limits);
 *     if (why != TN_DROP_NONE) ...                        drop it, n_dropped[why]++
 *
 * Every frame is hostile. tn_frame_read checks fields in the order of TN_DROP in frames.def, and
 * reads none before those that it depends on. It allocates nothing. The payload is checked by its
 * decoder (request_headers.h, key_codec.h, float_codec.h, control_messages.h), with reasons of the
 * same list. That a rank is the one whose key or address the connection has is for the receiver to
 * check. Pure functions, any thread.
 */
#pragma once

#include "cluster/wire/float_codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TN_FRAME_HEAD = 80,
    TN_FRAME_VERSION = 1,
    TN_FRAME_MAGIC = 0x31464e54, /* "TNF1" */
    TN_MEET = 1,                 /* code of PULL and ROWS: after this step all pause */
    /* a flag: after the floats comes a bit for each key without a row */
    TN_FRAME_MISSING = 1 << 4,
};

/* Bytes of the fixed fields that a payload begins with (request_headers.h). */
enum { TN_PULL_PARAMS = 16, TN_PUSH_PARAMS = 32, TN_ROWS_PARAMS = 24, TN_DENSE_PARAMS = 24 };

typedef enum tn_frame_type {
#define TN_FRAME(name, number, ...) TN_FRAME_##name = (number),
#include "cluster/wire/frames.def"
} tn_frame_type;

typedef enum tn_drop {
    TN_DROP_NONE,
#define TN_DROP(name, text) TN_DROP_##name,
#include "cluster/wire/frames.def"
    TN_DROPS /* how many */
} tn_drop;

typedef enum tn_refusal {
#define TN_REFUSAL(name, number, text) TN_REFUSAL_##name = (number),
#include "cluster/wire/frames.def"
} tn_refusal;

/* Items of a payload. */
typedef enum tn_frame_count {
    TN_KEYS,
    TN_ROW_FLOATS,
    TN_DENSE_FLOATS,
    TN_FRAME_COUNTS
} tn_frame_count;

typedef struct tn_frame {
    tn_frame_type type;
    uint8_t flags; /* tn_frame_flags, TN_FRAME_MISSING */
    uint32_t rank; /* rank of the sender */
    uint32_t code; /* code of REFUSED, SHARE, BYE, PULL, ROWS; elsewhere 0 and ignored */
    uint64_t job, session, incarnation, sequence, step;
    uint32_t count[TN_FRAME_COUNTS];
    const char *payload; /* lent by the message; at any address */
    uint64_t bytes;      /* bytes of the payload */
} tn_frame;

/* The limits of a receiver. */
typedef struct tn_frame_limits {
    uint64_t job;
    uint64_t session;   /* 0: any, since there is none yet */
    uint64_t bytes_max; /* bound of a whole frame */
    uint32_t peers;     /* ranks are below */
    uint32_t count_max[TN_FRAME_COUNTS];
} tn_frame_limits;

/* Reads a frame. *out is written when TN_DROP_NONE, and when TN_DROP_SESSION, so that its sender
 * can be refused: then without a payload, unchecked, and of type 0 when that is not known. */
tn_drop tn_frame_read(tn_frame *out, const void *message, size_t size,
                      const tn_frame_limits *limits) TN_MUST_USE;

/* Writes the header in front of frame->bytes of payload, which are at message + TN_FRAME_HEAD
 * already. Does not read frame->payload. */
void tn_frame_seal(char *message, const tn_frame *frame);

/* Convert between kinds of floats and their flags. */
static inline uint8_t tn_frame_flags(tn_values rows, tn_values dense)
{
    return (uint8_t)((uint32_t)rows | (uint32_t)dense << 2);
}

static inline tn_values tn_frame_row_values(uint8_t flags)
{
    return (tn_values)(flags & 3);
}

static inline tn_values tn_frame_dense_values(uint8_t flags)
{
    return (tn_values)(flags >> 2 & 3);
}

bool tn_frame_is_request(tn_frame_type type);       /* has an id and wants an answer */
const char *tn_frame_type_name(tn_frame_type type); /* "push" */
const char *tn_drop_text(tn_drop why);              /* "a message <text>": for people */
const char *tn_refusal_text(uint32_t code);         /* text of a refusal; never NULL */
