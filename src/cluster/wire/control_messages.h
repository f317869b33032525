/* control_messages.h - the structs of control_structs.h as bytes of a message, and back.
 *
 *     tn_note_write(TN_FRAME_BEAT, &beat, &text);                           sender; tn_text_check
 *     why = tn_note_read(&beat, TN_FRAME_BEAT, bytes, size, arena);       receiver
 *
 * A note is a message of base/codec/proto.h; a member is a field, whose numbers are in
 * control_messages.c. Members that are 0 or empty are not written; fields that are not known are
 * skipped, so members may be added. Texts are UTF-8 without NUL and at most TN_NOTE_TEXT_MAX bytes:
 * a writer cuts longer ones and puts '?' for what is none. Lists have at most TN_NOTE_LIST_MAX
 * items, and lists that belong together are equally long. Doubles are finite. What a writer is
 * given is lent; what a reader yields lives in the arena, but for tn_note_bytes, which the message
 * lends. Session, step, rank and incarnation are in the frame. Any thread.
 */
#ifndef TN_CLUSTER_CONTROL_MESSAGES_H
#define TN_CLUSTER_CONTROL_MESSAGES_H

#include "base/core/arena.h"
#include "base/core/text.h"
#include "cluster/wire/control_structs.h"
#include "cluster/wire/frame.h"

enum { TN_NOTE_TEXT_MAX = 4096, TN_NOTE_LIST_MAX = 1 << 16 };

/* `note` is the struct of the type, which is one that carries a note: tn_beat_note for
 * TN_FRAME_BEAT. */
void tn_note_write(tn_frame_type type, const void *note, tn_text *out);

/* *note is written when TN_DROP_NONE; texts are never NULL. */
tn_drop tn_note_read(void *note, tn_frame_type type, const char *bytes, size_t size,
                     tn_arena *arena) TN_MUST_USE;

#endif
