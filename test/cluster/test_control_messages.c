/* test_control_messages.c - how notes are written: exact bytes, what is left out, texts that are
 * none. */
#include "support/test.h"
#include "wire.h"

#include "base/codec/proto.h"
#include "cluster/wire/control_messages.h"

/* The bytes of a note and what comes back from them. */
typedef struct fixture {
    tn_text text;
    tn_arena *arena;
} fixture;

GROUP_SET_UP
{
    fixture *f = tn_alloc(1, sizeof *f, "a fixture");
    f->arena = tn_arena_new(1 << 12);
    *state = f;
}

GROUP_TEAR_DOWN
{
    fixture *f FREED(tn_free) = *state;
    tn_text_done(&f->text);
    tn_arena_free(f->arena);
}

static void write_note(fixture *f, tn_frame_type type, const void *note)
{
    tn_text_clear(&f->text);
    tn_note_write(type, note, &f->text);
    assert_int_equal(tn_text_check(&f->text, "a note", NULL), TN_OK);
}

static void read_note(fixture *f, tn_frame_type type, void *note)
{
    assert_int_equal(tn_note_read(note, type, tn_text_str(&f->text), f->text.size, f->arena),
                     TN_DROP_NONE);
}

TEST(golden_beat)
{
    fixture *f = *state;
    static const uint64_t part[] = {3, 300};
    static const uint64_t attempt[] = {0, 2};
    static const uint64_t position[] = {1000, 0};
    const tn_beat_note beat = {
        .state = TN_PEER_TRAINING,
        .records = 1024,
        .waits_for = 1,
        .rows_per_s = 1.5,
        .held = {{part, 2}, {attempt, 2}, {position, 2}},
    };
    char message[256];
    tn_frame frame = wire_sender;
    frame.type = TN_FRAME_BEAT;
    frame.step = 41;
    write_note(f, TN_FRAME_BEAT, &beat);
    frame.bytes = f->text.size;
    memcpy(message + TN_FRAME_HEAD, f->text.data, f->text.size);
    tn_frame_seal(message, &frame);
    wire_equals(message, TN_FRAME_HEAD + frame.bytes, wire_golden_beat);
}

TEST_ON(fixture *f, what_is_zero_or_empty_is_left_out)
{
    const tn_hello_note hello = {.version = "", .host = NULL};
    const tn_welcome_note welcome = {0};
    const tn_report_note report = {0};
    write_note(f, TN_FRAME_HELLO, &hello);
    assert_int_equal(f->text.size, 0);
    write_note(f, TN_FRAME_WELCOME, &welcome);
    assert_int_equal(f->text.size, 0);
    write_note(f, TN_FRAME_REPORT, &report);
    assert_int_equal(f->text.size, 0);
    tn_hello_note got;
    read_note(f, TN_FRAME_HELLO, &got);
    assert_string_equal(got.version, "");
    assert_string_equal(got.host, "");
    assert_true(got.pid == 0 && got.started == 0);
}

TEST_ON(fixture *f, negative_numbers_and_zeros_come_back)
{
    const tn_hello_note hello = {.started = -5, .pid = UINT64_MAX};
    tn_hello_note got;
    write_note(f, TN_FRAME_HELLO, &hello);
    read_note(f, TN_FRAME_HELLO, &got);
    assert_true(got.started == -5 && got.pid == UINT64_MAX);
    const tn_report_note report = {.loss_sum = -0.0, .weight_sum = -1e300};
    tn_report_note sums;
    write_note(f, TN_FRAME_REPORT, &report);
    read_note(f, TN_FRAME_REPORT, &sums);
    assert_true(signbit(sums.loss_sum) != 0 && sums.weight_sum < -9e299);
}

TEST_ON(fixture *f, texts_that_are_none_are_mended)
{
    tn_hello_note got;
    const tn_hello_note hello = {.host = "a\xff\xc3\xa4\xc3", .address = "\xed\xa0\x80z"};
    write_note(f, TN_FRAME_HELLO, &hello);
    read_note(f, TN_FRAME_HELLO, &got);
    assert_string_equal(got.host, "a?\xc3\xa4?");
    assert_string_equal(got.address, "???z");
}

/* At a character, not within one. */
TEST_ON(fixture *f, long_texts_are_cut)
{
    static char text[2 * TN_NOTE_TEXT_MAX];
    tn_refused_note got;
    for (size_t before = 0; before < 3; before++) {
        memset(text, 'x', before);
        for (size_t i = before; i + 2 < sizeof text; i += 2) {
            text[i] = '\xc3';
            text[i + 1] = '\xa4';
        }
        write_note(f, TN_FRAME_REFUSED, &(tn_refused_note){.text = text});
        read_note(f, TN_FRAME_REFUSED, &got);
        assert_int_equal(strlen(got.text), TN_NOTE_TEXT_MAX - before % 2);
        assert_memory_equal(got.text, text, strlen(got.text));
    }
}

TEST_ON(fixture *f, lists_and_bytes_come_back)
{
    static const char *const file[] = {"sparse-0000-1023.tns", "", "dense-0000.safetensors"};
    static const uint64_t each[] = {1, UINT64_MAX, 0};
    static const uint64_t sent[] = {7, 0, 8, 9};
    const tn_note_numbers three = {each, 3};
    const tn_done_note done = {
        .what = TN_ORDER_MARK,
        .number = 42,
        .status = TN_E_IO,
        .text = "no space left",
        .file = {file, 3},
        .file_bytes = three,
        .file_crc = three,
        .file_rows = three,
        .file_first = three,
        .file_last = three,
        .sent = {sent, 4},
    };
    tn_done_note got;
    write_note(f, TN_FRAME_DONE, &done);
    read_note(f, TN_FRAME_DONE, &got);
    assert_true(got.what == TN_ORDER_MARK && got.number == 42 && got.status == TN_E_IO);
    assert_string_equal(got.text, "no space left");
    assert_int_equal(got.file.n, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(got.file.at[i], file[i]);
    }
    assert_memory_equal(got.file_last.at, each, sizeof each);
    assert_int_equal(got.sent.n, 4);
    assert_memory_equal(got.sent.at, sent, sizeof sent);
    assert_int_equal(got.low.n + got.parts.part.n, 0);
    const tn_report_note report = {.number = 1, .metrics = {"a\0b", 3}};
    tn_report_note sums;
    write_note(f, TN_FRAME_REPORT, &report);
    read_note(f, TN_FRAME_REPORT, &sums);
    assert_int_equal(sums.metrics.n, 3);
    assert_memory_equal(sums.metrics.at, "a\0b", 3);
}

/* Every member has a field of its own: what one note holds is found in no other member. */
TEST_ON(fixture *f, every_member_of_a_part_comes_back)
{
    const tn_part_note part = {TN_PART_NO_MORE, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    tn_part_note got = {0};
    write_note(f, TN_FRAME_PART, &part);
    read_note(f, TN_FRAME_PART, &got);
    assert_memory_equal(&got, &part, sizeof part);
    static const uint64_t list[] = {9};
    const tn_ask_note ask = {11, {{list, 1}, {list, 1}, {list, 1}}, 12, 13};
    tn_ask_note asked = {0};
    write_note(f, TN_FRAME_ASK, &ask);
    read_note(f, TN_FRAME_ASK, &asked);
    assert_true(asked.epoch == 11 && asked.done.position.n == 1 && asked.done.position.at[0] == 9);
    assert_true(asked.id == 12 && asked.number == 13);
    const tn_order_note order = {TN_ORDER_CUT, 2, 3, "why", {list, 1}};
    tn_order_note ordered = {0};
    write_note(f, TN_FRAME_ORDER, &order);
    read_note(f, TN_FRAME_ORDER, &ordered);
    assert_true(ordered.what == TN_ORDER_CUT && ordered.number == 2 && ordered.step == 3);
    assert_true(ordered.more.n == 1 && ordered.more.at[0] == list[0]);
    assert_string_equal(ordered.text, "why");
}

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

TEST(notes_by_hand)
{
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
        char *exact FREED(tn_free) = tn_alloc(size + 1, 1, "a note");
        memcpy(exact, bytes, size);
        tn_arena *arena FREED(tn_arena_free) = tn_arena_new(256);
        tn_drop why = tn_note_read(&note, notes[i].type, exact, size, arena);
        fail_if(why != notes[i].why, "'%s': %s", notes[i].hex, tn_drop_text(why));
        if (why != TN_DROP_NONE) {
            assert_memory_equal(&note, untouched, sizeof note);
        }
    }
}

TEST(the_last_of_two_counts_and_lists_are_joined)
{
    char bytes[64];
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(256);
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
}

/* Limits hold for what comes, not only for what is sent. */
TEST(more_than_the_limits_is_dropped)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(256);
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_refused_note refused;
    static char inbox[TN_NOTE_TEXT_MAX + 1];
    memset(inbox, 'a', sizeof inbox);
    for (size_t over = 0; over < 2; over++) {
        tn_text_clear(&text);
        tn_proto_add_bytes(&text, 1, inbox, TN_NOTE_TEXT_MAX + over);
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
}

/* A text that stands a thousand times costs as much as one. */
TEST(memory_is_taken_for_the_last_of_many_texts)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(64);
    tn_text text CLEANUP(tn_text_done) = {0};
    for (uint32_t i = 0; i < 1000; i++) {
        tn_proto_add_bytes(&text, 1, "words", strlen("words"));
    }
    tn_refused_note refused;
    tn_alloc_fail_at(1);
    assert_int_equal(tn_note_read(&refused, TN_FRAME_REFUSED, text.data, text.size, arena),
                     TN_DROP_NONE);
    tn_alloc_fail_at(0);
    assert_string_equal(refused.text, "words");
}

TEST(without_memory_a_note_is_dropped)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(64);
    tn_text text CLEANUP(tn_text_done) = {0};
    char inbox[1000];
    memset(inbox, 'a', sizeof inbox);
    tn_proto_add_bytes(&text, 1, inbox, sizeof inbox);
    tn_refused_note refused = {.text = "as it was"};
    /* arenas that are reserved take memory from tn_alloc_fail_at's door */
    tn_alloc_fail_at(1);
    assert_int_equal(tn_note_read(&refused, TN_FRAME_REFUSED, text.data, text.size, arena),
                     TN_DROP_MEMORY);
    assert_string_equal(refused.text, "as it was");
    assert_int_equal(tn_note_read(&refused, TN_FRAME_REFUSED, text.data, text.size, arena),
                     TN_DROP_NONE);
    assert_int_equal(strlen(refused.text), sizeof inbox);
}
