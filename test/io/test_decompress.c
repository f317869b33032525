/* test_decompress.c - members of every compression read back whole, in pieces of any size; cut and
 * damaged ones are errors with a place. */
#include "base/core/bytes.h"
#include "base/core/failpoint.h"
#include "base/core/text.h"
#include "base/math/crc32c.h"
#include "io/schema/dataopts.h"
#include "io/source/decompress.h"
#include "io/source/source.h"
#include "support/test.h"

#include <zlib.h>

static void add_deflated(tn_text *out, const char *text, int bits)
{
    unsigned char bytes[1024];
    union {
        const char *in;
        Bytef *bytes;
    } from = {.in = text};
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = from.bytes;
    z.avail_in = (uInt)strlen(text);
    z.next_out = bytes;
    z.avail_out = sizeof bytes;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    tn_text_add(out, bytes, sizeof bytes - z.avail_out);
    assert_int_equal(deflateEnd(&z), Z_OK);
}

static void add_gzip(tn_text *out, const char *text)
{
    add_deflated(out, text, 31);
}

static void add_zlib(tn_text *out, const char *text)
{
    add_deflated(out, text, 15);
}

/* A frame of one segment and one raw block. */
static void add_zstd(tn_text *out, const char *text)
{
    const size_t n = strlen(text);
    const char head[] = {0x28,    (char)0xb5,           0x2f,           (char)0xfd, 0x20,
                         (char)n, (char)(n << 3 | 0x1), (char)(n >> 5), 0};
    tn_text_add(out, head, sizeof head);
    tn_text_add(out, text, n);
}

/* A frame of one block as it is. */
static void add_lz4(tn_text *out, const char *text)
{
    const size_t n = strlen(text);
    const char head[] = {0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, (char)0x82, (char)n, 0, 0, (char)0x80};
    tn_text_add(out, head, sizeof head);
    tn_text_add(out, text, n);
    tn_text_add(out, "\0\0\0\0", 4);
}

static void add_chunk(tn_text *out, int kind, const char *body, size_t size)
{
    const char head[] = {(char)kind, (char)size, (char)(size >> 8), 0};
    tn_text_add(out, head, sizeof head);
    tn_text_add(out, body, size);
}

/* A stream of padding, a plain chunk with the first byte and a compressed one of a literal. */
static void add_snappy(tn_text *out, const char *text)
{
    const size_t n = strlen(text);
    char body[80] = {0};
    add_chunk(out, 0xff, "sNaPpY", 6);
    add_chunk(out, 0xfe, "\0\0\0", 3);
    if (n == 0) {
        return;
    }
    tn_store_u32(body, tn_crc_mask(tn_crc32c(0, text, 1)));
    body[4] = text[0];
    add_chunk(out, 1, body, 5);
    assert_in_range(n, 2, 60);
    tn_store_u32(body, tn_crc_mask(tn_crc32c(0, text + 1, n - 1)));
    body[4] = (char)(n - 1);
    body[5] = (char)((n - 2) << 2);
    memcpy(body + 6, text + 1, n - 1);
    add_chunk(out, 0, body, 6 + n - 1);
}

static const struct {
    void (*add)(tn_text *, const char *);
    uint32_t compression;
    bool many; /* members may follow one another */
} kinds[] = {{add_gzip, TN_COMPRESSION_GZIP, true},
             {add_zlib, TN_COMPRESSION_ZLIB, false},
             {add_zstd, TN_COMPRESSION_ZSTD, true},
             {add_lz4, TN_COMPRESSION_LZ4, true},
             {add_snappy, TN_COMPRESSION_SNAPPY, true}};
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct memory {
    const char *at;
    size_t left;
} memory;

static tn_status read_memory(void *arg, void *data, size_t size, size_t *n, tn_error *err)
{
    (void)err;
    memory *m = arg;
    *n = size < m->left ? size : m->left;
    memcpy(data, m->at, *n);
    m->at += *n;
    m->left -= *n;
    return TN_OK;
}

/* Replaces `out` by what `bytes` are, read in pieces of `step`. */
static tn_status read_all(uint32_t compression, const char *bytes, size_t size, size_t step,
                          tn_text *out, tn_error *err)
{
    char piece[256];
    memory m = {bytes, size};
    const tn_decompress_from from = {read_memory, &m};
    tn_decompressor *d = NULL;
    tn_status status = tn_decompressor_new(&d, compression, NULL, 0, "f", err);
    tn_text_clear(out);
    for (size_t n = 1; status == TN_OK && n > 0;) {
        status = tn_decompressor_read(d, &from, piece, step, &n, err);
        assert_true(n <= step && (status == TN_OK || n == 0));
        tn_text_add(out, piece, n);
    }
    tn_decompressor_free(d);
    return status;
}

TEST(members_are_one_stream)
{
    tn_text bytes CLEANUP(tn_text_done) = {0};
    tn_text out CLEANUP(tn_text_done) = {0};
    for (uint32_t k = 0; k < KINDS; k++) {
        tn_error err = {0};
        tn_text_clear(&bytes);
        assert_int_equal(read_all(kinds[k].compression, "", 0, 100, &out, &err), TN_OK);
        assert_int_equal(out.size, 0);
        kinds[k].add(&bytes, "the first one, ");
        if (kinds[k].many) {
            kinds[k].add(&bytes, "");
        }
        kinds[k].many ? kinds[k].add(&bytes, "and the second") : (void)0;
        const char *want = kinds[k].many ? "the first one, and the second" : "the first one, ";
        static const size_t steps[] = {1, 2, 7, 256};
        for (uint32_t s = 0; s < sizeof steps / sizeof *steps; s++) {
            assert_ok(read_all(kinds[k].compression, bytes.data, bytes.size, steps[s], &out, &err),
                      err.text);
            assert_string_equal(tn_text_str(&out), want);
        }
    }
}

/* Every cut within a member, with its place; a changed byte of the text where there is a checksum.
 */
TEST(cut_and_damaged_streams_are_errors)
{
    static const char text[] = "rows of a day";
    tn_text bytes CLEANUP(tn_text_done) = {0};
    tn_text out CLEANUP(tn_text_done) = {0};
    for (uint32_t k = 0; k < KINDS; k++) {
        const uint32_t c = kinds[k].compression;
        tn_error err = {0};
        tn_text_clear(&bytes);
        kinds[k].add(&bytes, text);
        for (size_t size = 1; size < bytes.size; size++) {
            const tn_status status = read_all(c, bytes.data, size, 100, &out, &err);
            char want[80];
            (void)snprintf(want, sizeof want, "f:@%zu: error: truncated %s stream", size,
                           tn_compression_name(c));
            if (c == TN_COMPRESSION_SNAPPY && status == TN_OK) { /* between two chunks */
                assert_true(size == 10 || size == 17 || size == 26);
                assert_int_equal(out.size, size == 26 ? 1 : 0);
                continue;
            }
            assert_int_equal(status, TN_E_DATA);
            assert_string_equal(err.text, want);
        }
        for (size_t i = 0; i < 16; i++) {
            tn_text_addc(&bytes, 'x');
            assert_int_equal(read_all(c, bytes.data, bytes.size, 100, &out, &err), TN_E_DATA);
            assert_int_equal(read_all(c, bytes.data, bytes.size, 1, &out, &err), TN_E_DATA);
        }
        if (c == TN_COMPRESSION_ZSTD || c == TN_COMPRESSION_LZ4) {
            continue;
        }
        for (size_t i = bytes.size - 16 - 5; i < bytes.size - 16; i++) {
            bytes.data[i] ^= 1;
            assert_int_equal(read_all(c, bytes.data, bytes.size - 16, 100, &out, &err), TN_E_DATA);
            assert_non_null(strstr(err.text, ": error: corrupt "));
            bytes.data[i] ^= 1;
        }
    }
}

/* Zeros fill blocks of tapes and disks; other bytes are told for what they are, however few. */
TEST(what_stands_behind_the_last_member_is_zeros_or_told)
{
    static const char *const others[] = {"x", "xyz", "garbage behind it", "\x1fx", "\x28\xb5\x2f."};
    static const uint32_t kinds_here[] = {0, 2, 3}; /* gzip, zstd, lz4 */
    tn_text bytes CLEANUP(tn_text_done) = {0};
    tn_text out CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    static const char zeros[600] = {0};
    add_gzip(&bytes, "rows, ");
    add_gzip(&bytes, "more rows");
    tn_text_add(&bytes, zeros, sizeof zeros);
    assert_int_equal(read_all(TN_COMPRESSION_GZIP, bytes.data, bytes.size, 100, &out, &err), TN_OK);
    assert_string_equal(tn_text_str(&out), "rows, more rows");
    add_gzip(&bytes, " behind zeros");
    assert_int_equal(read_all(TN_COMPRESSION_GZIP, bytes.data, bytes.size, 7, &out, &err), TN_OK);
    assert_string_equal(tn_text_str(&out), "rows, more rows behind zeros");
    for (uint32_t k = 0; k < 3; k++) {
        for (uint32_t i = 0; i < sizeof others / sizeof *others; i++) {
            tn_text_clear(&bytes);
            kinds[kinds_here[k]].add(&bytes, "rows");
            tn_text_adds(&bytes, others[i]);
            const uint32_t c = kinds[kinds_here[k]].compression;
            assert_int_equal(read_all(c, bytes.data, bytes.size, 100, &out, &err), TN_E_DATA);
            assert_non_null(strstr(err.text, ": error: something stands behind the "));
            assert_string_equal(tn_text_str(&out), "rows");
        }
    }
}

TEST(a_frame_that_is_skipped_may_come_first)
{
    static const char frame[] = "\x50\x2a\x4d\x18\4\0\0\0four"; /* as of pzstd */
    static const char large[] = "\x5f\x2a\x4d\x18\xff\0\0\0and so on";
    const uint32_t want[] = {TN_COMPRESSION_ZSTD, TN_COMPRESSION_LZ4, TN_COMPRESSION_ZSTD};
    tn_text bytes CLEANUP(tn_text_done) = {0};
    tn_text out CLEANUP(tn_text_done) = {0};
    for (uint32_t k = 0; k < 3; k++) {
        uint32_t found = 0;
        tn_text_clear(&bytes);
        tn_text_add(&bytes, k < 2 ? frame : large, 12);
        k == 1 ? add_lz4(&bytes, "rows") : add_zstd(&bytes, "rows");
        const tn_bytes first = {bytes.data, bytes.size, false};
        assert_int_equal(tn_compression_of(first, false, "f", &found, NULL), TN_OK);
        assert_int_equal(found, want[k]);
        if (k < 2) {
            assert_int_equal(read_all(found, bytes.data, bytes.size, 100, &out, NULL), TN_OK);
            assert_string_equal(tn_text_str(&out), "rows");
        }
    }
}

TEST(without_libisal_zlib_inflates_the_same)
{
    assert_int_equal(tn_failpoint_set("library.isal:EIO", NULL), TN_OK);
    members_are_one_stream(state);
    cut_and_damaged_streams_are_errors(state);
    assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
}

TEST(chunks_of_snappy_stand_in_order)
{
    static const struct {
        const char *bytes;
        size_t size;
    } wrong[] = {
        {"\x01\x05\0\0----x", 9},                     /* no mark */
        {"\xff\x06\0\0sNaPpX", 10},                   /* another mark */
        {"\xff\x06\0\0sNaPpY\x02\x01\0\0x", 15},      /* a kind that may not be passed over */
        {"\xff\x06\0\0sNaPpY\x01\x03\0\0---", 17},    /* no room for the checksum */
        {"\xff\x06\0\0sNaPpY\x01\x05\0\x01----", 18}, /* more than a chunk may hold */
    };
    tn_text out CLEANUP(tn_text_done) = {0};
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tn_error err = {0};
        assert_int_equal(
            read_all(TN_COMPRESSION_SNAPPY, wrong[i].bytes, wrong[i].size, 100, &out, &err),
            TN_E_DATA);
        assert_non_null(strstr(err.text, "corrupt snappy stream"));
    }
}
