/* harm.c - see harm.h. */
#include "harm.h"

#include "base/core/bytes.h"
#include "base/core/error.h"
#include "base/math/crc32c.h"
#include "base/math/rng.h"

#include <string.h>

enum {
    AT_VERSION = 4,
    AT_TYPE = 6,
    AT_FLAGS = 7,
    AT_JOB = 8,
    AT_SESSION = 16,
    AT_SEQUENCE = 32,
    AT_RANK = 48,
    AT_COUNTS = 52,
    AT_SIZE = 64,
    AT_CRC = 76
};

static const uint64_t high_bit = UINT64_C(1) << 63;

harm_message harm_seal(const tn_frame *frame, const char *payload)
{
    harm_message m = {.size = TN_FRAME_HEAD + frame->bytes};
    TN_ASSERT(m.size <= HARM_BYTES);
    memcpy(m.bytes + TN_FRAME_HEAD, payload, frame->bytes);
    tn_frame_seal(m.bytes, frame);
    return m;
}

static void seal_again(harm_message *m)
{
    const uint32_t head = tn_crc32c(0, m->bytes, AT_CRC);
    tn_store_u32(m->bytes + AT_CRC,
                 tn_crc32c(head, m->bytes + TN_FRAME_HEAD, m->size - TN_FRAME_HEAD));
}

/* ---- a broken network: the checksum, or what comes before it, sees it ---- */

static tn_drop turn_bits(harm_message *m, uint64_t x)
{
    for (uint64_t n = 1 + x % 3; n > 0; n--) { /* one byte each: none is turned back */
        const size_t at = (x >> 8) % (m->size / 3) + (n - 1) * (m->size / 3);
        m->bytes[at] = (char)(m->bytes[at] ^ 1 << (x >> (3 + n) & 7));
    }
    return TN_DROPS;
}

static tn_drop cut(harm_message *m, uint64_t x)
{
    m->size = x % m->size;
    return m->size < TN_FRAME_HEAD ? TN_DROP_SHORT : TN_DROP_CRC;
}

static tn_drop lengthen(harm_message *m, uint64_t x)
{
    const size_t more = 1 + x % 64;
    memset(m->bytes + m->size, (int)(x >> 8 & 0xff), more);
    m->size += more;
    return TN_DROP_CRC;
}

/* ---- a hostile sender: the checksum is right ---- */

static tn_drop lengthen_whole(harm_message *m, uint64_t x)
{
    (void)lengthen(m, x);
    seal_again(m);
    return TN_DROP_SIZE;
}

static tn_drop cut_whole(harm_message *m, uint64_t x)
{
    m->size = TN_FRAME_HEAD + x % (m->size - TN_FRAME_HEAD);
    seal_again(m);
    return TN_DROP_SIZE;
}

static tn_drop other_magic(harm_message *m, uint64_t x)
{
    m->bytes[x % 4]++;
    seal_again(m);
    return TN_DROP_MAGIC;
}

static tn_drop other_version(harm_message *m, uint64_t x)
{
    m->bytes[AT_VERSION + x % 2]++;
    seal_again(m);
    return TN_DROP_VERSION;
}

static tn_drop other_job(harm_message *m, uint64_t x)
{
    m->bytes[AT_JOB + x % 8]++;
    seal_again(m);
    return TN_DROP_JOB;
}

static tn_drop other_session(harm_message *m, uint64_t x)
{
    m->bytes[AT_SESSION + x % 8]++;
    seal_again(m);
    return TN_DROP_SESSION;
}

static tn_drop no_type(harm_message *m, uint64_t x)
{
    m->bytes[AT_TYPE] = (char)(x % 2 == 0 ? 0 : 128 + x / 2 % 128);
    seal_again(m);
    return TN_DROP_TYPE;
}

static tn_drop wrong_flags(harm_message *m, uint64_t x)
{
    m->bytes[AT_FLAGS] = (char)(1 << (5 + x % 3));
    seal_again(m);
    return TN_DROP_FLAGS;
}

static tn_drop no_sequence(harm_message *m, uint64_t x)
{
    (void)x;
    tn_store_u64(m->bytes + AT_SEQUENCE, 0);
    seal_again(m);
    return TN_DROP_SEQUENCE;
}

static tn_drop no_rank(harm_message *m, uint64_t x)
{
    tn_store_u32(m->bytes + AT_RANK, UINT32_MAX - (uint32_t)(x % 1000));
    seal_again(m);
    return TN_DROP_RANK;
}

static tn_drop huge_count(harm_message *m, uint64_t x)
{
    tn_store_u32(m->bytes + AT_COUNTS + 4 * (x % TN_FRAME_COUNTS), UINT32_MAX);
    seal_again(m);
    return TN_DROP_COUNT;
}

static tn_drop wrong_size(harm_message *m, uint64_t x)
{
    const uint64_t size = tn_load_u64(m->bytes + AT_SIZE);
    tn_store_u64(m->bytes + AT_SIZE, x % 2 == 0 ? size + 1 : size | high_bit);
    seal_again(m);
    return TN_DROP_SIZE;
}

tn_drop harm_one(harm_message *m, uint64_t stream, uint64_t *draws, const tn_frame_limits *limits)
{
    static tn_drop (*const ways[])(harm_message *, uint64_t) = {
        turn_bits,   cut,           lengthen,  lengthen_whole, cut_whole,
        other_magic, other_version, other_job, other_session,  no_type,
        wrong_flags, no_sequence,   no_rank,   huge_count,     wrong_size,
    };
    const uint64_t x = tn_draw(stream, (*draws)++);
    const uint64_t which = tn_draw(stream, (*draws)++) % (sizeof ways / sizeof *ways + 1);
    if (which < sizeof ways / sizeof *ways) {
        return ways[which](m, x);
    }
    TN_ASSERT(limits->bytes_max < HARM_BYTES);
    m->size = limits->bytes_max + 1;
    return TN_DROP_LONG;
}
