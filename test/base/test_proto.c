/* test_proto.c - golden messages of docs/formats.md, and messages that must be refused. */
#include "base/codec/proto.h"
#include "base/core/number.h"
#include "support/test.h"

/* Section 2: Example {label: 1, ids: [3,300,-1] packed, uids: same unpacked, x: [.5,-1],
 * s: ["a","bc"]}. */
static const char example_hex[] =
    "0a690a0e0a056c6162656c12051a030a01010a180a0369647312111a0f0a0d03ac02ffffffffffffffffff01"
    "0a1a0a047569647312121a10080308ac0208ffffffffffffffffff010a110a0178120c120a0a080000003f00"
    "0080bf0a0e0a017312090a070a01610a026263";

static size_t from_hex(const char *hex, char *out)
{
    size_t n = strlen(hex) / 2;
    for (size_t i = 0; i < n; i++) {
        uint64_t byte = 0;
        assert_int_equal(tn_read_hex(hex + 2 * i, 2, &byte), TN_NUM_OK);
        out[i] = (char)byte;
    }
    return n;
}

static void is_hex(tn_text *t, const char *hex)
{
    char bytes[1024];
    size_t n = from_hex(hex, bytes);
    assert_int_equal(tn_text_check(t, "message", NULL), TN_OK);
    assert_int_equal(t->size, n);
    assert_memory_equal(t->data, bytes, n);
    tn_text_done(t);
}

/* The varint in `bytes`, copied to memory that ends right behind it. */
static bool read_varint(const char *bytes, size_t size, uint64_t *out, size_t *left)
{
    char block[TN_CACHE_LINE];
    assert_true(size <= sizeof block);
    char *at = block + sizeof block - size; /* a sanitizer sees what lies behind */
    memcpy(at, bytes, size);
    tn_bytes in = {at, size, false};
    *out = tn_proto_varint(&in);
    *left = in.size;
    return !in.failed;
}

TEST(varints_of_every_length_read_back_fast_and_slow)
{
    for (int bits = 0; bits <= 64; bits++) {
        uint64_t top = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
        const uint64_t values[] = {top, top / 3, tn_mix(top) & top, top ^ (top >> 1)};
        for (size_t i = 0; i < 4; i++) {
            tn_text t CLEANUP(tn_text_done) = {0};
            tn_proto_add_varint(&t, values[i]);
            size_t size = t.size;
            uint64_t back = 0;
            size_t left = 1;
            assert_true(read_varint(t.data, size, &back, &left)); /* bytewise */
            assert_int_equal(back, values[i]);
            assert_int_equal(left, 0);
            tn_text_add(&t, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 10);
            assert_true(read_varint(t.data, t.size, &back, &left)); /* eight at a time */
            assert_int_equal(back, values[i]);
            assert_int_equal(left, 10);
        }
    }
}

TEST(a_varint_need_not_be_the_shortest)
{
    uint64_t value = 7;
    size_t left = 0;
    assert_true(read_varint("\x81\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10, &value, &left));
    assert_int_equal(value, 1);
    assert_true(read_varint("\x80\x00", 2, &value, &left));
    assert_int_equal(value, 0);
}

TEST(a_varint_beyond_64_bits_is_refused)
{
    uint64_t value = 0;
    size_t left = 0;
    char good[10];
    memset(good, 0xff, 9);
    good[9] = 1;
    const char *bad[] = {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
                         "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
                         "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81"};
    char room[20] = {0};
    memcpy(room, good, sizeof good);
    assert_true(read_varint(good, 10, &value, &left) && value == UINT64_MAX);
    assert_true(read_varint(room, 20, &value, &left) && value == UINT64_MAX && left == 10);
    for (size_t i = 0; i < 3; i++) {
        memcpy(room, bad[i], 10);
        assert_false(read_varint(bad[i], 10, &value, &left));
        assert_false(read_varint(room, 20, &value, &left));
        assert_false(read_varint(good, 3 + i, &value, &left)); /* ends too early */
    }
    assert_false(read_varint("", 0, &value, &left));
}

/* Reads "key kind count;" for each feature, which is all a reader must find. */
static void read_feature(tn_bytes entry, tn_text *out)
{
    tn_proto_field f = {0};
    tn_proto_field inner = {0};
    while (tn_proto_next(&entry, &f)) {
        if (f.tag == TN_PROTO_TAG(1, TN_WIRE_BYTES)) {
            tn_text_add(out, f.bytes.data, f.bytes.size);
            continue;
        }
        assert_int_equal(f.tag, TN_PROTO_TAG(2, TN_WIRE_BYTES));
        assert_true(tn_proto_next(&f.bytes, &inner));
        tn_text_addf(out, " %u:", inner.tag >> 3);
        for (tn_proto_field item; tn_proto_next(&inner.bytes, &item);) {
            tn_text_addf(out, item.tag == 8 ? " %lld" : " <%lld>", (long long)item.value);
            while (inner.tag >> 3 == 3 && item.tag == 10 && item.bytes.size > 0) {
                tn_text_addf(out, " %lld", (long long)tn_proto_varint(&item.bytes));
            }
            assert_false(item.bytes.failed);
        }
    }
    assert_false(entry.failed);
    tn_text_addc(out, ';');
}

TEST(golden_example)
{
    char bytes[256];
    tn_bytes in = {bytes, from_hex(example_hex, bytes), false};
    assert_int_equal(in.size, 107);
    tn_text found CLEANUP(tn_text_done) = {0};
    tn_proto_field features = {0};
    tn_proto_field entry = {0};
    assert_true(tn_proto_next(&in, &features));
    assert_int_equal(features.tag, 0x0a);
    while (tn_proto_next(&features.bytes, &entry)) {
        read_feature(entry.bytes, &found);
    }
    assert_false(tn_proto_next(&in, &entry));
    assert_false(in.failed || features.bytes.failed);
    assert_string_equal(tn_text_str(&found), "label 3: <1> 1;ids 3: <13> 3 300 -1;uids 3: 3 300 -1;"
                                             "x 2: <8>;s 1: <1> <2>;");
}

/* Walks into everything that is length-delimited as far as it reads as a message. */
static void walk(tn_bytes in, int depth)
{
    tn_proto_field f = {0};
    while (depth < 8 && tn_proto_next(&in, &f)) {
        if ((f.tag & 7) == TN_WIRE_BYTES) {
            assert_true(f.bytes.data + f.bytes.size <= in.data + in.size);
            walk(f.bytes, depth + 1);
        }
    }
}

TEST(a_cut_or_flipped_message_never_reads_outside)
{
    char bytes[256];
    enum { SIZE = 107 };
    assert_int_equal(from_hex(example_hex, bytes), SIZE);
    for (size_t cut = 0; cut < SIZE; cut++) {
        char *block FREED(tn_free) = tn_alloc(2, TN_CACHE_LINE, "bytes");
        char *at = block + 2 * (size_t)TN_CACHE_LINE - cut;
        memcpy(at, bytes, cut);
        tn_bytes in = {at, cut, false};
        tn_proto_field f = {0};
        while (tn_proto_next(&in, &f)) {
        }
        assert_int_equal(in.failed, cut > 0); /* the one field encloses all bytes */
    }
    for (uint64_t i = 0; i < 20000; i++) {
        char flipped[256];
        memcpy(flipped, bytes, SIZE);
        uint64_t x = tn_draw(11, i);
        flipped[x % SIZE] = (char)(x >> 32);
        flipped[(x >> 16) % SIZE] = (char)(x >> 40);
        walk((tn_bytes){flipped, SIZE, false}, 0);
    }
}

TEST(unknown_fields_of_four_wire_types_are_stepped_over)
{
    tn_text t CLEANUP(tn_text_done) = {0};
    tn_proto_add_u64(&t, 9, UINT64_MAX);
    tn_proto_add_f64(&t, 1000, 2.5);
    tn_proto_add_varint(&t, TN_PROTO_TAG((1U << 29) - 1, TN_WIRE_FIXED32));
    tn_text_add_f32le(&t, -1);
    tn_proto_add_bytes(&t, 16, "abc", strlen("abc"));
    tn_proto_add_bytes(&t, 7, "", 0);
    const uint32_t tags[] = {TN_PROTO_TAG(9, 0), TN_PROTO_TAG(1000, 1),
                             TN_PROTO_TAG((1U << 29) - 1, 5), TN_PROTO_TAG(16, 2),
                             TN_PROTO_TAG(7, 2)};
    const uint64_t values[] = {UINT64_MAX, UINT64_C(0x4004000000000000), 0xbf800000, 3, 0};
    tn_bytes in = {t.data, t.size, false};
    tn_proto_field f = {0};
    for (size_t i = 0; i < 5; i++) {
        assert_true(tn_proto_next(&in, &f));
        assert_int_equal(f.tag, tags[i]);
        assert_int_equal(f.value, values[i]);
    }
    assert_false(tn_proto_next(&in, &f));
    assert_false(in.failed);
}

TEST(field_0_and_other_wire_types_are_refused)
{
    const struct {
        const char *bytes;
        size_t size;
    } bad[] = {
        {"\x00\x01", 2},                                      /* field 0 */
        {"\x02\x00", 2},                                      /* field 0 with a length */
        {"\x0b\x0c", 2},                                      /* group start */
        {"\x0c\x00", 2},                                      /* group end */
        {"\x0e\x00", 2},                                      /* 6 */
        {"\x0f\x00", 2},                                      /* 7 */
        {"\x88\x80\x80\x80\x10\x01", 6},                      /* number 2^29 + 1 */
        {"\x0a\x02\x61", 3},                                  /* length beyond the end */
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11}, /* length 2^64 - 1 */
        {"\x0a", 1},
        {"\x08", 1},
        {"\x0d\x01\x02\x03", 4},
        {"\x09\x01\x02\x03\x04\x05\x06\x07", 8},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tn_bytes in = {bad[i].bytes, bad[i].size, false};
        tn_proto_field f = {0};
        assert_false(tn_proto_next(&in, &f));
        assert_true(in.failed);
        assert_false(tn_proto_next(&in, &f));
    }
}

TEST(golden_tensorboard_version_and_scalar)
{
    tn_text t = {0};
    tn_proto_add_f64(&t, 1, 1.7e9);
    tn_proto_add_bytes(&t, 3, "brain.Event:2", strlen("brain.Event:2"));
    size_t source = tn_proto_begin(&t, 10);
    tn_proto_add_bytes(&t, 1, "tnet", strlen("tnet"));
    tn_proto_end(&t, source);
    is_hex(&t, "0900000040fc54d9411a0d627261696e2e4576656e743a3252060a04746e6574");

    const float loss = .5F;
    tn_proto_add_f64(&t, 1, 1.7e9 + 1);
    tn_proto_add_u64(&t, 2, 100);
    size_t summary = tn_proto_begin(&t, 5);
    size_t value = tn_proto_begin(&t, 1);
    tn_proto_add_bytes(&t, 1, "train/loss", strlen("train/loss"));
    size_t tensor = tn_proto_begin(&t, 8);
    tn_proto_add_u64(&t, 1, 1);
    tn_proto_add_bytes(&t, 2, "", 0);
    tn_proto_add_bytes(&t, 4, &loss, sizeof loss);
    tn_proto_end(&t, tensor);
    size_t metadata = tn_proto_begin(&t, 9);
    size_t plugin = tn_proto_begin(&t, 1);
    tn_proto_add_bytes(&t, 1, "scalars", strlen("scalars"));
    tn_proto_end(&t, plugin);
    tn_proto_add_u64(&t, 4, 1);
    tn_proto_end(&t, metadata);
    tn_proto_end(&t, value);
    tn_proto_end(&t, summary);
    is_hex(&t, "0900004040fc54d94110642a290a270a0a747261696e2f6c6f7373420a0801120022040000003f4a0d"
               "0a090a077363616c6172732001");
}

TEST(a_long_inner_message_gets_a_long_length)
{
    tn_text t = {0};
    size_t begin = tn_proto_begin(&t, 1);
    for (int i = 0; i < 20000; i++) {
        tn_text_addc(&t, (char)('a' + i % 26));
    }
    tn_proto_end(&t, begin);
    tn_bytes in = {t.data, t.size, false};
    tn_proto_field f = {0};
    assert_true(tn_proto_next(&in, &f));
    assert_int_equal(f.bytes.size, 20000);
    assert_ptr_equal(f.bytes.data, t.data + 4);
    assert_memory_equal(t.data + 4, "abcdef", 6);
    assert_int_equal(t.data[4 + 19999], 'a' + 19999 % 26);
    assert_int_equal(in.size, 0);
    tn_text_done(&t);
    tn_text small CLEANUP(tn_text_done) = {.size_max = 8};
    begin = tn_proto_begin(&small, 1);
    tn_text_adds(&small, "1234567");
    tn_proto_end(&small, begin); /* no room for the length: remembered, nothing moves */
    assert_int_equal(tn_text_check(&small, "message", NULL), TN_E_LIMIT);
}
