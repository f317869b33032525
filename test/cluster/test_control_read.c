/* test_control_read.c - notes from bytes that nobody trusts. */
#include "cluster/wire/control_messages.h"

#include "base/codec/proto.h"
#include "base/core/alloc.h"
#include "support/test.h"
#include "wire.h"

#include <math.h>
#include <string.h>

static const struct {
    tn_drop why;
    tn_frame_type type;
    const char *hex;
} notes[] = {
    {TN_DROP_NONE, TN_FRAME_REFUSED, ""},
    {TN_DROP_NONE, TN_FRAME_REFUSED, "0a026f6b"},
    {TN_DROP_NONE, TN_FRAME_REFUSED, "78050a026f6b"},       /* a field that is not known */
    {TN_DROP_NONE, TN_FRAME_REFUSED, "0a0378797a0a026f6b"}, /* twice: the last one counts */
    {TN_DROP_NOTE, TN_FRAME_REFUSED, "0a036f6b"},           /* longer than what is there */
    {TN_DROP_NOTE, TN_FRAME_REFUSED, "0a"},
    {TN_DROP_NOTE, TN_FRAME_REFUSED, "0805"},                      /* a number for a text */
    {TN_DROP_NOTE, TN_FRAME_REFUSED, "0a026f00"},                  /* NUL */
    {TN_DROP_NOTE, TN_FRAME_REFUSED, "0a01ff"},                    /* no UTF-8 */
    {TN_DROP_NOTE, TN_FRAME_REFUSED, "0a01c3"},                    /* half a character */
    {TN_DROP_NOTE, TN_FRAME_REFUSED, "00000a026f6b"},              /* field 0 */
    {TN_DROP_NOTE, TN_FRAME_REFUSED, "7b0a026f6b"},                /* a group of old */
    {TN_DROP_NONE, TN_FRAME_ORDER, "080a"},                        /* go */
    {TN_DROP_NOTE, TN_FRAME_ORDER, "087f"},                        /* no such order */
    {TN_DROP_NOTE, TN_FRAME_ORDER, "08ffffffffffffffffff02"},      /* more than 64 bits */
    {TN_DROP_NOTE, TN_FRAME_ORDER, "0d00000000"},                  /* four bytes for a varint */
    {TN_DROP_NONE, TN_FRAME_DONE, "180b"},                         /* the last status */
    {TN_DROP_NOTE, TN_FRAME_DONE, "180c"},                         /* no such status */
    {TN_DROP_NONE, TN_FRAME_BEAT, "41000000000000f83f"},           /* 1.5 */
    {TN_DROP_NOTE, TN_FRAME_BEAT, "41000000000000f07f"},           /* infinite */
    {TN_DROP_NOTE, TN_FRAME_BEAT, "41000000000000f8ff"},           /* no number */
    {TN_DROP_NOTE, TN_FRAME_BEAT, "4005"},                         /* a varint for a double */
    {TN_DROP_NONE, TN_FRAME_BEAT, "5201035a010162010a"},           /* one part */
    {TN_DROP_NONE, TN_FRAME_BEAT, "5201035201045a0201016202010a"}, /* a list in two pieces */
    {TN_DROP_NOTE, TN_FRAME_BEAT, "5201035a010162020a0b"},         /* lists of 1, 1, 2 */
    {TN_DROP_NOTE, TN_FRAME_BEAT, "520103"},                       /* of 1, 0, 0 */
    {TN_DROP_NOTE, TN_FRAME_BEAT, "5003"},                         /* not packed */
    {TN_DROP_NOTE, TN_FRAME_BEAT, "520180"},                       /* half a number */
    {TN_DROP_NOTE, TN_FRAME_WELCOME, "120161"},                    /* an address without host */
    {TN_DROP_NONE, TN_FRAME_WELCOME, "1201611a0162220105"},
    {TN_DROP_NOTE, TN_FRAME_WELCOME, "1201611a01ff220105"}, /* no UTF-8 in a list */
};

static void notes_by_hand(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
        union {
            tn_refused_note refused;
            tn_order_note order;
            tn_done_note done;
            tn_beat_note beat;
            tn_welcome_note welcome;
            char bytes[1024];
        } note;
        char untouched[sizeof note];
        char bytes[64];
        memset(&note, 0x55, sizeof note);
        memset(untouched, 0x55, sizeof untouched);
        size_t size = wire_golden(notes[i].hex, bytes);
        char *exact = tn_alloc(size + 1, 1, "a note");
        memcpy(exact, bytes, size);
        tn_arena *arena = tn_arena_new(256);
        tn_drop why = tn_note_read(&note, notes[i].type, exact, size, arena);
        if (why != notes[i].why) {
            fail_msg("'%s': %s", notes[i].hex, tn_drop_text(why));
        }
        if (why != TN_DROP_NONE) {
            assert_memory_equal(&note, untouched, sizeof note);
        }
        tn_arena_free(arena);
        tn_free(exact);
    }
}

static void the_last_of_two_counts_and_lists_are_joined(void **state)
{
    (void)state;
    char bytes[64];
    tn_arena *arena = tn_arena_new(256);
    tn_refused_note refused;
    size_t size = wire_golden("0a0378797a0a026f6b", bytes);
    assert_int_equal(tn_note_read(&refused, TN_FRAME_REFUSED, bytes, size, arena), TN_DROP_NONE);
    assert_string_equal(refused.text, "ok");
    tn_beat_note beat;
    size = wire_golden("5201035201045a0201016202010a", bytes);
    assert_int_equal(tn_note_read(&beat, TN_FRAME_BEAT, bytes, size, arena), TN_DROP_NONE);
    assert_int_equal(beat.held.part.n, 2);
    assert_true(beat.held.part.at[0] == 3 && beat.held.part.at[1] == 4);
    assert_true(beat.held.position.at[1] == 10);
    tn_arena_free(arena);
}

/* Limits hold for what comes, not only for what is sent. */
static void more_than_the_limits_is_dropped(void **state)
{
    (void)state;
    tn_arena *arena = tn_arena_new(256);
    tn_text text = {0};
    tn_refused_note refused;
    static char letters[TN_NOTE_TEXT_MAX + 1];
    memset(letters, 'a', sizeof letters);
    for (size_t over = 0; over < 2; over++) {
        tn_text_clear(&text);
        tn_proto_add_bytes(&text, 1, letters, TN_NOTE_TEXT_MAX + over);
        assert_int_equal(tn_note_read(&refused, TN_FRAME_REFUSED, text.data, text.size, arena),
                         over ? TN_DROP_NOTE_LIMIT : TN_DROP_NONE);
    }
    tn_done_note done;
    for (size_t over = 0; over < 2; over++) { /* `sent` has no companions */
        tn_text_clear(&text);
        size_t begin = tn_proto_begin(&text, 11);
        for (size_t i = 0; i < TN_NOTE_LIST_MAX + over; i++) {
            tn_proto_add_varint(&text, i);
        }
        tn_proto_end(&text, begin);
        assert_int_equal(tn_note_read(&done, TN_FRAME_DONE, text.data, text.size, arena),
                         over ? TN_DROP_NOTE_LIMIT : TN_DROP_NONE);
    }
    assert_int_equal(done.sent.n, TN_NOTE_LIST_MAX);
    assert_int_equal(done.sent.at[65535], 65535);
    tn_text_clear(&text);
    for (size_t i = 0; i < TN_NOTE_LIST_MAX + 1; i++) {
        tn_proto_add_bytes(&text, 5, "", 0);
    }
    assert_int_equal(tn_note_read(&done, TN_FRAME_DONE, text.data, text.size, arena),
                     TN_DROP_NOTE_LIMIT);
    tn_text_done(&text);
    tn_arena_free(arena);
}

/* A text that stands a thousand times costs as much as one. */
static void memory_is_taken_for_the_last_of_many_texts(void **state)
{
    (void)state;
    tn_arena *arena = tn_arena_new(64);
    tn_text text = {0};
    for (uint32_t i = 0; i < 1000; i++) {
        tn_proto_add_str(&text, 1, "words");
    }
    tn_refused_note refused;
    tn_alloc_fail_at(1);
    assert_int_equal(tn_note_read(&refused, TN_FRAME_REFUSED, text.data, text.size, arena),
                     TN_DROP_NONE);
    tn_alloc_fail_at(0);
    assert_string_equal(refused.text, "words");
    tn_text_done(&text);
    tn_arena_free(arena);
}

static void without_memory_a_note_is_dropped(void **state)
{
    (void)state;
    tn_arena *arena = tn_arena_new(64);
    tn_text text = {0};
    char letters[1000];
    memset(letters, 'a', sizeof letters);
    tn_proto_add_bytes(&text, 1, letters, sizeof letters);
    tn_refused_note refused = {.text = "as it was"};
    /* arenas that are reserved take memory from tn_alloc_fail_at's door */
    tn_alloc_fail_at(1);
    assert_int_equal(tn_note_read(&refused, TN_FRAME_REFUSED, text.data, text.size, arena),
                     TN_DROP_MEMORY);
    assert_string_equal(refused.text, "as it was");
    assert_int_equal(tn_note_read(&refused, TN_FRAME_REFUSED, text.data, text.size, arena),
                     TN_DROP_NONE);
    assert_int_equal(strlen(refused.text), sizeof letters);
    tn_text_done(&text);
    tn_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_by_hand),
        cmocka_unit_test(the_last_of_two_counts_and_lists_are_joined),
        cmocka_unit_test(more_than_the_limits_is_dropped),
        cmocka_unit_test(memory_is_taken_for_the_last_of_many_texts),
        cmocka_unit_test(without_memory_a_note_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
