/* test_control_messages.c - how notes are written: exact bytes, what is left out, texts that are
 * none. */
#include "cluster/wire/control_messages.h"

#include "base/core/alloc.h"
#include "support/test.h"
#include "wire.h"

#include <math.h>
#include <string.h>

/* The bytes of a note and what comes back from them. */
typedef struct fixture {
    tn_text text;
    tn_arena *arena;
} fixture;

static int set_up(void **state)
{
    fixture *f = tn_alloc(1, sizeof *f, "a fixture");
    f->arena = tn_arena_new(1 << 12);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    tn_text_done(&f->text);
    tn_arena_free(f->arena);
    tn_free(f);
    return 0;
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

static void golden_beat(void **state)
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

static void what_is_zero_or_empty_is_left_out(void **state)
{
    fixture *f = *state;
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

static void negative_numbers_and_zeros_come_back(void **state)
{
    fixture *f = *state;
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

static void texts_that_are_none_are_mended(void **state)
{
    fixture *f = *state;
    tn_hello_note got;
    const tn_hello_note hello = {.host = "a\xff\xc3\xa4\xc3", .address = "\xed\xa0\x80z"};
    write_note(f, TN_FRAME_HELLO, &hello);
    read_note(f, TN_FRAME_HELLO, &got);
    assert_string_equal(got.host, "a?\xc3\xa4?");
    assert_string_equal(got.address, "???z");
}

/* At a character, not within one. */
static void long_texts_are_cut(void **state)
{
    fixture *f = *state;
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

static void lists_and_bytes_come_back(void **state)
{
    fixture *f = *state;
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
static void every_member_of_a_part_comes_back(void **state)
{
    fixture *f = *state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_beat),
        cmocka_unit_test(what_is_zero_or_empty_is_left_out),
        cmocka_unit_test(negative_numbers_and_zeros_come_back),
        cmocka_unit_test(texts_that_are_none_are_mended),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(lists_and_bytes_come_back),
        cmocka_unit_test(every_member_of_a_part_comes_back),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
