/* format_tfrecord.c - the framing of TFRecord files; what a record holds is read by
 * io/format/tfexample.h.
 *
 *     0    u64 n              8   u32 masked crc of bytes 0..7
 *     12   data[n]         12+n   u32 masked crc of data
 */
#include "base/math/crc32c.h"
#include "io/format/format.h"
#include "io/format/tfexample.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"

#include <inttypes.h>

enum { LENGTH_BYTES = 8, HEADER_BYTES = 12, FRAME_BYTES = 16 };

static bool is_header(const char *at)
{
    return tn_crc_mask(tn_crc32c(0, at, LENGTH_BYTES)) == tn_load_u32(at + LENGTH_BYTES);
}

static tn_status wrong_crc(const char *what, uint32_t stored, uint32_t computed, tn_error *err)
{
    return tn_fail(err, TN_E_DATA, "corrupt record %s (crc %08x, computed %08x)", what, stored,
                   computed);
}

static tn_status tfrecord_cut(tn_bytes *window, bool last, const tn_schema *schema,
                              tn_bytes *record, tn_error *err)
{
    const char *at = window->data;
    uint64_t max = schema->data->record_bytes_max;
    if (window->size < HEADER_BYTES) {
        return last && window->size > 0 ? tn_fail(err, TN_E_DATA, "truncated record header")
                                        : TN_END;
    }
    if (!is_header(at)) {
        return wrong_crc("length", tn_load_u32(at + LENGTH_BYTES),
                         tn_crc_mask(tn_crc32c(0, at, LENGTH_BYTES)), err);
    }
    uint64_t n = tn_load_u64(at);
    if (n > max) {
        return tn_fail(
            err, TN_E_LIMIT,
            "record longer than record_bytes_max (%" PRIu64 " bytes, at most %" PRIu64 ")", n, max);
    }
    if (window->size - FRAME_BYTES < n || window->size < FRAME_BYTES) {
        return last ? tn_fail(err, TN_E_DATA, "truncated record") : TN_END;
    }
    uint32_t stored = tn_load_u32(at + HEADER_BYTES + n);
    uint32_t computed = tn_crc_mask(tn_crc32c(0, at + HEADER_BYTES, n));
    if (stored != computed) {
        return wrong_crc("data", stored, computed, err);
    }
    *record = (tn_bytes){at + HEADER_BYTES, n, false};
    window->data += FRAME_BYTES + n;
    window->size -= FRAME_BYTES + n;
    return TN_OK;
}

static uint64_t tfrecord_hop(tn_bytes window, const tn_schema *schema)
{
    if (window.size < HEADER_BYTES || !is_header(window.data)) {
        return 0;
    }
    uint64_t n = tn_load_u64(window.data);
    return n <= schema->data->record_bytes_max ? FRAME_BYTES + n : 0;
}

/* A whole record whose length can be believed, whatever its data: its bytes with frame; else 0. */
static size_t framed(tn_bytes window, const tn_schema *schema)
{
    uint64_t size = tfrecord_hop(window, schema);
    return size <= window.size ? size : 0;
}

/* A wrong data crc skips one record. After a wrong length the first place counts where length crc,
 * limit and data crc all hold; odds of a false one are 2^-64. */
static size_t tfrecord_resync(tn_bytes window, bool last, const tn_schema *schema, bool *found)
{
    size_t whole = framed(window, schema);
    *found = true;
    if (whole > 0) {
        return whole;
    }
    for (size_t i = 1; i + HEADER_BYTES <= window.size; i++) {
        tn_bytes rest = {window.data + i, window.size - i, false};
        if (tfrecord_hop(rest, schema) == 0) {
            continue;
        }
        size_t size = framed(rest, schema);
        if (size == 0 && !last) { /* it may be one: comes back with all of it */
            *found = false;
            return i - 1;
        }
        size_t n = size > 0 ? size - FRAME_BYTES : 0;
        if (size > 0 && tn_crc_mask(tn_crc32c(0, rest.data + HEADER_BYTES, n)) ==
                            tn_load_u32(rest.data + HEADER_BYTES + n)) {
            return i;
        }
    }
    *found = last;
    return last ? window.size : window.size > HEADER_BYTES ? window.size - HEADER_BYTES : 0;
}

static const char *const tfrecord_slot[] = {"step_pool", NULL};

static const char *const tfrecord_data[] = {"group", "record_id", NULL};

extern const tn_format tn_format_tfrecord;
const tn_format tn_format_tfrecord = {
    .name = "tfrecord",
    .help = "TFRecord files of tf.Example or tf.SequenceExample",
    .binary = true,
    .data_options = tfrecord_data,
    .slot_options = tfrecord_slot,
    .cut = tfrecord_cut,
    .resync = tfrecord_resync,
    .hop = tfrecord_hop,
    .parse = tn_tfexample_parse,
};
