/* test_frame.c - headers of messages: their bytes, and that nothing else is taken. */
#include "cluster/wire/frame.h"
#include "cluster/wire/request_headers.h"

#include "base/core/bytes.h"
#include "base/math/crc32c.h"
#include "support/test.h"
#include "wire.h"

enum { ROOM = 4096, NOTE = 17 }; /* bytes of a payload that no other type has */

static void repair(char *message, size_t size)
{
    uint32_t crc = tn_crc32c(0, message, TN_FRAME_HEAD - 4);
    crc = tn_crc32c(crc, message + TN_FRAME_HEAD, size - TN_FRAME_HEAD);
    tn_store_u32(message + TN_FRAME_HEAD - 4, crc);
}

/* A PUSH of 3 keys with 5 floats, bf16, and 2 dense floats: every column of frames.def is in use.
 */
static size_t make_push(char *message)
{
    tn_frame f = wire_sender;
    f.type = TN_FRAME_PUSH;
    f.flags = tn_frame_flags(TN_VALUES_BF16, TN_VALUES_F32);
    f.sequence = 8;
    f.step = 41;
    f.count[TN_KEYS] = 3;
    f.count[TN_ROW_FLOATS] = 5;
    f.count[TN_DENSE_FLOATS] = 2;
    f.bytes = TN_PUSH_PARAMS + 5 * 2 + 2 * 4;
    memset(message + TN_FRAME_HEAD, 0, f.bytes);
    tn_frame_seal(message, &f);
    return TN_FRAME_HEAD + f.bytes;
}

TEST(golden_frame_noted)
{
    char message[TN_FRAME_HEAD];
    tn_frame f = wire_sender;
    f.type = TN_FRAME_NOTED;
    f.sequence = 9;
    tn_frame_seal(message, &f);
    wire_equals(message, sizeof message, wire_golden_noted);
}

TEST(golden_frame_is_read_back)
{
    char message[ROOM];
    size_t size = wire_golden(wire_golden_push, message);
    tn_frame f;
    assert_int_equal(tn_frame_read(&f, message, size, &wire_limits), TN_DROP_NONE);
    assert_int_equal(f.type, TN_FRAME_PUSH);
    assert_true(f.job == wire_sender.job && f.session == wire_sender.session);
    assert_true(f.incarnation == wire_sender.incarnation && f.rank == wire_sender.rank);
    assert_true(f.sequence == 8 && f.step == 41 && f.code == 0);
    assert_int_equal(f.count[TN_KEYS], 3);
    assert_int_equal(f.count[TN_ROW_FLOATS], 5);
    assert_int_equal(f.count[TN_DENSE_FLOATS], 2);
    assert_int_equal(tn_frame_row_values(f.flags), TN_VALUES_BF16);
    assert_int_equal(tn_frame_dense_values(f.flags), TN_VALUES_F32);
    assert_ptr_equal(f.payload, message + TN_FRAME_HEAD);
    assert_int_equal(f.bytes, size - TN_FRAME_HEAD);
}

static const struct {
    const char *name;
    uint64_t sequence, bytes;
    tn_frame_type type;
    uint32_t counts[TN_FRAME_COUNTS], flags;
    bool request;
} types[] = {
    {"hello", 0, NOTE, TN_FRAME_HELLO, {0}, 0, false},
    {"welcome", 0, NOTE, TN_FRAME_WELCOME, {0}, 0, false},
    {"beat", 0, NOTE, TN_FRAME_BEAT, {0}, 0, false},
    {"bye", 0, 0, TN_FRAME_BYE, {0}, 0, false},
    {"pull", 1, 99, TN_FRAME_PULL, {3, 5, 0}, 2 | 1 << 2, true},
    {"peek", 0, 99, TN_FRAME_PEEK, {3, 5, 0}, 2 | TN_FRAME_MISSING, false},
    {"rows", 0, TN_ROWS_PARAMS + 12, TN_FRAME_ROWS, {9, 5, 0}, 1 | TN_FRAME_MISSING, false},
    {"push", UINT64_MAX, TN_PUSH_PARAMS + 10 + 12, TN_FRAME_PUSH, {9, 5, 3}, 1, true},
    {"dense", 1, TN_DENSE_PARAMS + 6, TN_FRAME_DENSE, {0, 0, 3}, 2 << 2, false},
    {"share", 1, 24, TN_FRAME_SHARE, {0, 0, 3}, 0, true},
    {"ask", 1, NOTE, TN_FRAME_ASK, {0}, 0, true},
    {"part", 1, NOTE, TN_FRAME_PART, {0}, 0, false},
    {"report", 1, NOTE, TN_FRAME_REPORT, {0}, 0, true},
    {"noted", 1, 0, TN_FRAME_NOTED, {0}, 0, false},
    {"order", 1, NOTE, TN_FRAME_ORDER, {0}, 0, true},
    {"done", 1, NOTE, TN_FRAME_DONE, {0}, 0, true},
    {"refused", 0, NOTE, TN_FRAME_REFUSED, {0}, 0, false},
};

TEST(every_type_is_read_as_it_was_sealed)
{
    uint32_t n = 0;
#define TN_FRAME(...) n++;
#include "cluster/wire/frames.def"
    assert_int_equal(n, sizeof types / sizeof types[0]);
    for (uint32_t i = 0; i < n; i++) {
        char message[ROOM] = {0};
        tn_frame f = wire_sender;
        f.type = types[i].type;
        f.flags = (uint8_t)types[i].flags;
        f.sequence = types[i].sequence;
        f.bytes = types[i].bytes;
        f.code = i;
        memcpy(f.count, types[i].counts, sizeof f.count);
        tn_frame_seal(message, &f);
        tn_frame read = {0};
        size_t size = TN_FRAME_HEAD + f.bytes;
        assert_int_equal(tn_frame_read(&read, message, size, &wire_limits), TN_DROP_NONE);
        f.payload = message + TN_FRAME_HEAD;
        assert_true(read.type == f.type && read.flags == f.flags && read.code == f.code);
        assert_true(read.sequence == f.sequence && read.bytes == f.bytes);
        assert_memory_equal(read.count, f.count, sizeof f.count);
        assert_ptr_equal(read.payload, f.payload);
        assert_string_equal(tn_frame_type_name(f.type), types[i].name);
        assert_int_equal(tn_frame_is_request(f.type), types[i].request);
    }
    assert_string_equal(tn_frame_type_name((tn_frame_type)0), "unknown");
    assert_string_equal(tn_frame_type_name((tn_frame_type)200), "unknown");
}

/* One change to a good PUSH, whose checksum is put right afterwards unless it is what is wrong. */
static const struct {
    tn_drop fault;
    uint32_t at;
    uint64_t value; /* 8 bytes at `at`, xor */
} damages[] = {
    {TN_DROP_MAGIC, 0, 1},
    {TN_DROP_MAGIC, 3, 0x80},
    {TN_DROP_VERSION, 4, 3},
    {TN_DROP_VERSION, 4, 0x100},
    {TN_DROP_JOB, 8, 1},
    {TN_DROP_JOB, 8, UINT64_C(1) << 63},
    {TN_DROP_SESSION, 16, 1},
    {TN_DROP_SESSION, 16, UINT64_C(1) << 63},
    {TN_DROP_TYPE, 6, 8 ^ 0x12},
    {TN_DROP_TYPE, 6, 8},
    {TN_DROP_TYPE, 6, 8 ^ 0xff},
    {TN_DROP_FLAGS, 7, TN_FRAME_MISSING}, /* not of a PUSH */
    {TN_DROP_FLAGS, 7, 1},                /* 3: no kind of floats */
    {TN_DROP_FLAGS, 7, 3 << 2},
    {TN_DROP_FLAGS, 7, 0x20},
    {TN_DROP_FLAGS, 7, 0x80},
    {TN_DROP_SEQUENCE, 32, 8}, /* a request without id */
    {TN_DROP_RANK, 48, 2 ^ WIRE_PEERS},
    {TN_DROP_RANK, 48, 0x80000000},
    {TN_DROP_COUNT, 52, 0x80000000},
    {TN_DROP_COUNT, 52, 3 ^ (uint64_t)((1 << 20) + 1)},
    {TN_DROP_COUNT, 56, 0x80000000},
    {TN_DROP_COUNT, 60, 0x80000000},
    {TN_DROP_SIZE, 52 + 4, 5 ^ 0x6},
    {TN_DROP_SIZE, 60, 0x3},
    {TN_DROP_SIZE, 64, 1},
    {TN_DROP_SIZE, 64, UINT64_C(1) << 63},
    {TN_DROP_SIZE, 7, 2},      /* the floats of rows are f32 */
    {TN_DROP_SIZE, 7, 1 << 2}, /* those of the dense vector f16 */
};

TEST(each_fault_of_a_header_is_found)
{
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        char message[ROOM];
        tn_frame f = {.step = 77};
        size_t size = make_push(message);
        tn_store_u64(message + damages[i].at,
                     tn_load_u64(message + damages[i].at) ^ damages[i].value);
        repair(message, size);
        assert_int_equal(tn_frame_read(&f, message, size, &wire_limits), damages[i].fault);
        assert_int_equal(f.step, damages[i].fault == TN_DROP_SESSION ? 41 : 77);
    }
}

TEST(an_id_stands_where_one_belongs)
{
    char message[ROOM] = {0};
    tn_frame f = wire_sender;
    f.type = TN_FRAME_BYE;
    tn_frame_seal(message, &f);
    tn_store_u64(message + 32, 1);
    repair(message, TN_FRAME_HEAD);
    assert_int_equal(tn_frame_read(&f, message, TN_FRAME_HEAD, &wire_limits), TN_DROP_SEQUENCE);
    tn_store_u8(message + 6, TN_FRAME_NOTED); /* an answer has that of its request */
    repair(message, TN_FRAME_HEAD);
    assert_int_equal(tn_frame_read(&f, message, TN_FRAME_HEAD, &wire_limits), TN_DROP_NONE);
}

TEST(a_type_has_its_own_counts_only)
{
    char message[ROOM] = {0};
    for (uint32_t i = 0; i < TN_FRAME_COUNTS; i++) {
        tn_frame f = wire_sender;
        f.type = TN_FRAME_BEAT;
        tn_frame_seal(message, &f);
        tn_store_u32(message + 52 + (size_t)4 * i, 1);
        repair(message, TN_FRAME_HEAD);
        assert_int_equal(tn_frame_read(&f, message, TN_FRAME_HEAD, &wire_limits), TN_DROP_COUNT);
    }
}

/* Everything is wrong at once, then one thing after the other is put right. */
TEST(the_first_of_many_faults_is_told)
{
    char message[ROOM] = {0};
    tn_frame_limits limits = {.job = 1, .session = 2, .bytes_max = 90, .peers = 1};
    const size_t size = 100; /* 20 bytes of payload, none is due */
    tn_frame f;
    assert_int_equal(tn_frame_read(&f, message, 79, &limits), TN_DROP_SHORT);
    memset(message, 0xff, 72);
    assert_int_equal(tn_frame_read(&f, message, size, &limits), TN_DROP_LONG);
    limits.bytes_max = size;
    assert_int_equal(tn_frame_read(&f, message, size, &limits), TN_DROP_MAGIC);
    tn_store_u32(message, TN_FRAME_MAGIC);
    assert_int_equal(tn_frame_read(&f, message, size, &limits), TN_DROP_VERSION);
    tn_store_u16(message + 4, TN_FRAME_VERSION);
    assert_int_equal(tn_frame_read(&f, message, size, &limits), TN_DROP_CRC);
    static const struct {
        uint32_t at, bytes;
        uint64_t value;
        tn_drop fault; /* while it is wrong */
    } mend[] = {
        {8, 8, 1, TN_DROP_JOB},    {16, 8, 2, TN_DROP_SESSION},  {6, 1, TN_FRAME_BYE, TN_DROP_TYPE},
        {7, 1, 0, TN_DROP_FLAGS},  {32, 8, 0, TN_DROP_SEQUENCE}, {48, 4, 0, TN_DROP_RANK},
        {52, 4, 0, TN_DROP_COUNT}, {56, 4, 0, TN_DROP_COUNT},    {60, 4, 0, TN_DROP_COUNT},
        {64, 8, 20, TN_DROP_SIZE},
    };
    for (size_t i = 0; i < sizeof mend / sizeof mend[0]; i++) {
        repair(message, size);
        assert_int_equal(tn_frame_read(&f, message, size, &limits), mend[i].fault);
        memcpy(message + mend[i].at, &mend[i].value, mend[i].bytes);
    }
    repair(message, size); /* the length is true now, but a BYE has none */
    assert_int_equal(tn_frame_read(&f, message, size, &limits), TN_DROP_SIZE);
    tn_store_u64(message + 64, 0);
    repair(message, TN_FRAME_HEAD);
    assert_int_equal(tn_frame_read(&f, message, TN_FRAME_HEAD, &limits), TN_DROP_NONE);
}

TEST(every_flipped_bit_is_found)
{
    char message[ROOM];
    size_t size = make_push(message);
    tn_frame f;
    for (size_t bit = 0; bit < 8 * size; bit++) {
        message[bit / 8] = (char)(message[bit / 8] ^ 1 << bit % 8);
        assert_int_not_equal(tn_frame_read(&f, message, size, &wire_limits), TN_DROP_NONE);
        message[bit / 8] = (char)(message[bit / 8] ^ 1 << bit % 8);
    }
    assert_int_equal(tn_frame_read(&f, message, size, &wire_limits), TN_DROP_NONE);
}

TEST(every_cut_message_is_found)
{
    char message[ROOM];
    size_t size = make_push(message);
    for (size_t less = 0; less < size; less++) {
        tn_frame f;
        tn_drop why = tn_frame_read(&f, message, less, &wire_limits);
        assert_int_equal(why, less < TN_FRAME_HEAD ? TN_DROP_SHORT : TN_DROP_CRC);
    }
}

/* 2^32 - 1 floats of 4 bytes, twice, are no 4294967288 bytes. */
TEST(sizes_do_not_overflow)
{
    char message[ROOM];
    size_t size = make_push(message);
    tn_frame_limits limits = wire_limits;
    memset(limits.count_max, 0xff, sizeof limits.count_max);
    tn_store_u8(message + 7, 0);
    memset(message + 52, 0xff, 12);
    tn_store_u64(message + 64, (uint32_t)(TN_PUSH_PARAMS + UINT32_MAX * 4U * 2U));
    repair(message, size);
    tn_frame f;
    assert_int_equal(tn_frame_read(&f, message, size, &limits), TN_DROP_SIZE);
}

/* Who wants in has no session yet; who is told that its session ended learns of the new one. */
TEST(who_joins_or_is_refused_needs_no_session)
{
    static const tn_frame_type type[] = {TN_FRAME_HELLO, TN_FRAME_WELCOME, TN_FRAME_REFUSED};
    char message[ROOM];
    tn_frame f = wire_sender;
    for (size_t i = 0; i < sizeof type / sizeof type[0]; i++) {
        f.session = 5;
        f.type = type[i];
        tn_frame_seal(message, &f);
        assert_int_equal(tn_frame_read(&f, message, TN_FRAME_HEAD, &wire_limits), TN_DROP_NONE);
    }
    f.type = TN_FRAME_BEAT;
    tn_frame_seal(message, &f);
    assert_int_equal(tn_frame_read(&f, message, TN_FRAME_HEAD, &wire_limits), TN_DROP_SESSION);
    assert_true(f.session == 5 && f.type == TN_FRAME_BEAT && f.payload == NULL);
    tn_store_u8(message + 6, 99); /* of a later version, say */
    repair(message, TN_FRAME_HEAD);
    assert_int_equal(tn_frame_read(&f, message, TN_FRAME_HEAD, &wire_limits), TN_DROP_SESSION);
    assert_true(f.session == 5 && f.type == 0);
    tn_store_u8(message + 6, TN_FRAME_BEAT);
    repair(message, TN_FRAME_HEAD);
    tn_frame_limits any = wire_limits;
    any.session = 0;
    assert_int_equal(tn_frame_read(&f, message, TN_FRAME_HEAD, &any), TN_DROP_NONE);
}

/* ZeroMQ hands out messages at any address. */
TEST(messages_may_lie_anywhere)
{
    char message[ROOM];
    char moved[ROOM];
    size_t size = make_push(message);
    for (size_t by = 0; by < 16; by++) {
        tn_frame f;
        memcpy(moved + by, message, size);
        assert_int_equal(tn_frame_read(&f, moved + by, size, &wire_limits), TN_DROP_NONE);
        assert_int_equal(f.step, 41);
    }
}

TEST(every_fault_and_refusal_has_words)
{
    for (uint32_t i = 0; i < TN_DROPS; i++) {
        assert_true(strlen(tn_drop_text((tn_drop)i)) > 3);
    }
    assert_string_equal(tn_drop_text(TN_DROP_CRC), "with a wrong checksum");
    assert_string_equal(tn_refusal_text(TN_REFUSAL_SESSION), "the session ended");
    assert_string_equal(tn_refusal_text(0), "for a reason that this version does not know");
    assert_string_equal(tn_refusal_text(999), tn_refusal_text(0));
}
