/* harm.h - messages as a broken network or a hostile sender would leave them.
 *
 *     harm_message m = harm_seal(&frame, payload);
 *     tn_drop why = harm_one(&m, stream, &draws, &limits);    TN_DROPS: for one reason or another
 *     tn_frame_read(&f, m.bytes, m.size, &limits)  ==  why
 */
#pragma once

#include "cluster/wire/frame.h"

enum { HARM_BYTES = 4096 };

typedef struct harm_message {
    size_t size;
    char bytes[HARM_BYTES];
} harm_message;

/* The frame as its sender writes it; frame->bytes of payload. */
harm_message harm_seal(const tn_frame *frame, const char *payload);

/* Makes the message one that no receiver with these limits may take, in one of many ways: bits
 * turned, cut, lengthened, or a header that says what it must not with a right checksum. */
tn_drop harm_one(harm_message *m, uint64_t stream, uint64_t *draws, const tn_frame_limits *limits);
