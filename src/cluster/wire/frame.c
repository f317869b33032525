/* frame.c - the header of a message is checked, read and written. */
#include "cluster/wire/frame.h"

#include "base/core/bytes.h"
#include "base/core/error.h"
#include "base/math/crc32c.h"

enum { AT_CRC = TN_FRAME_HEAD - 4 };

typedef enum id_kind { ID_NONE, ID_REQUEST, ID_ANSWER } id_kind;
typedef enum payload_kind { OF_EMPTY, OF_NOTE, OF_KEYS, OF_FLOATS, OF_DOUBLES } payload_kind;

/* Columns of frames.def. */
enum { K = 1 << TN_KEYS, F = 1 << TN_ROW_FLOATS, V = 1 << TN_DENSE_FLOATS };
enum { R = 3, D = 3 << 2, M = TN_FRAME_MISSING };

typedef struct spec {
    const char *name; /* NULL: no such type */
    id_kind id;
    payload_kind payload;
    uint8_t params, counts, flags;
    bool in_session;
} spec;

static const spec specs[] = {
#define TN_FRAME(type, number, name, id, payload, params, counts, flags, session)                  \
    [number] = {(name), ID_##id, OF_##payload, (params), (counts), (flags), (session) != 0},
#include "cluster/wire/frames.def"
};

static const spec *spec_of(uint8_t type)
{
    bool known = type < sizeof specs / sizeof specs[0] && specs[type].name != NULL;
    return known ? &specs[type] : NULL;
}

static bool flags_known(const spec *s, uint8_t flags)
{
    return (flags & ~(uint32_t)s->flags) == 0 && tn_frame_row_values(flags) < TN_VALUES_KINDS &&
           tn_frame_dense_values(flags) < TN_VALUES_KINDS;
}

static bool id_fits(const spec *s, uint64_t sequence)
{
    return s->id == ID_ANSWER || (sequence != 0) == (s->id == ID_REQUEST);
}

static bool counts_fit(const spec *s, const tn_frame *f, const uint32_t *most)
{
    for (uint32_t i = 0; i < TN_FRAME_COUNTS; i++) {
        uint32_t cap = most != NULL ? most[i] : UINT32_MAX;
        if (f->count[i] > ((s->counts >> i & 1) != 0 ? cap : 0)) {
            return false;
        }
    }
    return true;
}

/* Counts have 32 bits and items at most 8 bytes: the sum cannot overflow 64. */
static bool payload_fits(const spec *s, const tn_frame *f)
{
    uint64_t rows = f->count[TN_ROW_FLOATS];
    uint64_t dense = f->count[TN_DENSE_FLOATS];
    uint64_t missing =
        (f->flags & TN_FRAME_MISSING) != 0 ? (f->count[TN_KEYS] + UINT64_C(7)) / 8 : 0;
    switch (s->payload) {
    case OF_EMPTY:
        return f->bytes == 0;
    case OF_NOTE:
        return true; /* the note says where it ends */
    case OF_KEYS:
        return f->bytes >= s->params; /* so do the keys */
    case OF_FLOATS:
        return f->bytes == s->params + rows * tn_values_bytes(tn_frame_row_values(f->flags)) +
                               dense * tn_values_bytes(tn_frame_dense_values(f->flags)) + missing;
    case OF_DOUBLES:
        return f->bytes == dense * sizeof(double);
    default:
        return false;
    }
}

static uint32_t crc_of(const char *message, uint64_t bytes)
{
    uint32_t crc = tn_crc32c(0, message, AT_CRC);
    return tn_crc32c(crc, message + TN_FRAME_HEAD, bytes);
}

/* Checks that these bytes arrived as they were sent, in this version of the protocol. */
static tn_drop check_bytes(const char *message, size_t size, const tn_frame_limits *limits)
{
    return size < TN_FRAME_HEAD                           ? TN_DROP_SHORT
           : size > limits->bytes_max                     ? TN_DROP_LONG
           : tn_load_u32(message) != TN_FRAME_MAGIC       ? TN_DROP_MAGIC
           : tn_load_u16(message + 4) != TN_FRAME_VERSION ? TN_DROP_VERSION
           : tn_load_u32(message + AT_CRC) != crc_of(message, size - TN_FRAME_HEAD) ? TN_DROP_CRC
                                                                                    : TN_DROP_NONE;
}

static tn_frame head_of(const char *message)
{
    tn_frame f = {
        .flags = tn_load_u8(message + 7),
        .job = tn_load_u64(message + 8),
        .session = tn_load_u64(message + 16),
        .incarnation = tn_load_u64(message + 24),
        .sequence = tn_load_u64(message + 32),
        .step = tn_load_u64(message + 40),
        .rank = tn_load_u32(message + 48),
        .bytes = tn_load_u64(message + 64),
        .code = tn_load_u32(message + 72),
    };
    memcpy(f.count, message + 52, sizeof f.count);
    return f;
}

/* Checks that the header is possible. `s` may be NULL. */
static tn_drop check_head(const spec *s, const tn_frame *f, const tn_frame_limits *limits)
{
    bool bound = s == NULL || s->in_session;
    if (f->job != limits->job) {
        return TN_DROP_JOB;
    }
    if (bound && limits->session != 0 && f->session != limits->session) {
        return TN_DROP_SESSION;
    }
    if (s == NULL) {
        return TN_DROP_TYPE;
    }
    if (!flags_known(s, f->flags)) {
        return TN_DROP_FLAGS;
    }
    if (!id_fits(s, f->sequence)) {
        return TN_DROP_SEQUENCE;
    }
    if (f->rank >= limits->peers) {
        return TN_DROP_RANK;
    }
    if (!counts_fit(s, f, limits->count_max)) {
        return TN_DROP_COUNT;
    }
    return payload_fits(s, f) ? TN_DROP_NONE : TN_DROP_SIZE;
}

tn_drop tn_frame_read(tn_frame *out, const void *message, size_t size,
                      const tn_frame_limits *limits)
{
    tn_drop why = check_bytes(message, size, limits);
    if (why != TN_DROP_NONE) {
        return why;
    }
    tn_frame f = head_of(message);
    uint8_t type = tn_load_u8((const char *)message + 6);
    why = check_head(spec_of(type), &f, limits);
    if (why == TN_DROP_NONE && f.bytes != size - TN_FRAME_HEAD) {
        why = TN_DROP_SIZE;
    }
    if (spec_of(type) != NULL) {
        f.type = (tn_frame_type)type;
    }
    if (why == TN_DROP_NONE) {
        f.payload = (const char *)message + TN_FRAME_HEAD;
    }
    if (why == TN_DROP_NONE || why == TN_DROP_SESSION) {
        *out = f;
    }
    return why;
}

void tn_frame_seal(char *message, const tn_frame *frame)
{
    const spec *s = spec_of((uint8_t)frame->type);
    TN_ASSERT(s != NULL && flags_known(s, frame->flags) && id_fits(s, frame->sequence));
    TN_ASSERT(counts_fit(s, frame, NULL) && payload_fits(s, frame));
    tn_store_u32(message, TN_FRAME_MAGIC);
    tn_store_u16(message + 4, TN_FRAME_VERSION);
    tn_store_u8(message + 6, (uint8_t)frame->type);
    tn_store_u8(message + 7, frame->flags);
    tn_store_u64(message + 8, frame->job);
    tn_store_u64(message + 16, frame->session);
    tn_store_u64(message + 24, frame->incarnation);
    tn_store_u64(message + 32, frame->sequence);
    tn_store_u64(message + 40, frame->step);
    tn_store_u32(message + 48, frame->rank);
    memcpy(message + 52, frame->count, sizeof frame->count);
    tn_store_u64(message + 64, frame->bytes);
    tn_store_u32(message + 72, frame->code);
    tn_store_u32(message + AT_CRC, crc_of(message, frame->bytes));
}

bool tn_frame_is_request(tn_frame_type type)
{
    const spec *s = spec_of((uint8_t)type);
    return s != NULL && s->id == ID_REQUEST;
}

const char *tn_frame_type_name(tn_frame_type type)
{
    const spec *s = spec_of((uint8_t)type);
    return s != NULL ? s->name : "unknown";
}

const char *tn_drop_text(tn_drop why)
{
    static const char *const text[TN_DROPS] = {
        "without fault",
#define TN_DROP(name, text) (text),
#include "cluster/wire/frames.def"
    };
    TN_ASSERT(why < TN_DROPS);
    return text[why];
}

const char *tn_refusal_text(uint32_t code)
{
    switch (code) {
#define TN_REFUSAL(name, number, text)                                                             \
    case (number):                                                                                 \
        return (text);
#include "cluster/wire/frames.def"
    default:
        return "for a reason that this version does not know";
    }
}
