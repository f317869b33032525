/* logs.c - see logs.h */
#include "logs.h"

#include "base/codec/proto.h"
#include "base/file/file.h"
#include "base/math/crc32c.h"
#include "base/math/key.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "io/read/schema_inference.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { INTEGERS = 13, CATEGORIES = 26, FIELDS = 39 };

/* A small number most of the time, as counts and popular ids are. */
static uint64_t skewed(uint64_t x, uint32_t bits)
{
    return tn_mix(x) >> (64 - 1 - tn_mix(x ^ 0x5bd1) % bits);
}

static void criteo_row(tn_text *out, uint64_t row)
{
    tn_text_adds(out, tn_mix(row) % 4 == 0 ? "1" : "0");
    for (uint64_t i = 0; i < INTEGERS; i++) {
        uint64_t x = tn_mix(row * FIELDS + i);
        tn_text_addc(out, '\t');
        if (x % 5 != 0) {
            tn_text_add_u64(out, skewed(x, 10));
        }
    }
    for (uint64_t i = 0; i < CATEGORIES; i++) {
        uint64_t x = tn_mix(row * FIELDS + INTEGERS + i);
        tn_text_addc(out, '\t');
        if (x % 9 != 0) {
            tn_text_addf(out, "%08" PRIx64, tn_mix(skewed(x, 20)) >> 32);
        }
    }
    tn_text_addc(out, '\n');
}

static void criteo_config(tn_text *out)
{
    tn_text_adds(out, "{data: {format: criteo, readers: 1}, slots: [");
    for (uint32_t i = 1; i <= INTEGERS; i++) {
        tn_text_addf(out, "{name: I%u, type: int, transform: ln2_bucket}, ", i);
    }
    for (uint32_t i = 1; i <= CATEGORIES; i++) {
        tn_text_addf(out, "%s{name: C%u, type: hex}", i > 1 ? ", " : "", i);
    }
    tn_text_adds(out, "]}");
}

/* Columns of the Avazu set behind `hour`: those that are hashes, else integers. */
static const char *const avazu_columns[] = {"C1",
                                            "banner_pos",
                                            "site_id",
                                            "site_domain",
                                            "site_category",
                                            "app_id",
                                            "app_domain",
                                            "app_category",
                                            "device_id",
                                            "device_ip",
                                            "device_model",
                                            "device_type",
                                            "device_conn_type",
                                            "C14",
                                            "C15",
                                            "C16",
                                            "C17",
                                            "C18",
                                            "C19",
                                            "C20",
                                            "C21"};

enum { AVAZU_COLUMNS = 21, AVAZU_HEX = 2, AVAZU_HEX_END = 11 };

static void avazu_row(tn_text *out, uint64_t row)
{
    if (row == 0) {
        tn_text_adds(out, "id,click,hour");
        for (uint32_t i = 0; i < AVAZU_COLUMNS; i++) {
            tn_text_addf(out, ",%s", avazu_columns[i]);
        }
        tn_text_addc(out, '\n');
    }
    tn_text_addf(out, "%" PRIu64 ",%d,14102%u%02u", tn_mix(row), tn_mix(row) % 4 == 0,
                 1 + (unsigned)(row / 1000 % 9), (unsigned)(row / 100 % 24));
    for (uint64_t i = 0; i < AVAZU_COLUMNS; i++) {
        uint64_t x = skewed(tn_mix(row * FIELDS + i), 14);
        bool hex = i >= AVAZU_HEX && i < AVAZU_HEX_END;
        tn_text_addf(out, hex ? ",%08" PRIx64 : ",%" PRIu64, hex ? tn_mix(x) >> 32 : x);
    }
    tn_text_addc(out, '\n');
}

static void avazu_config(tn_text *out)
{
    tn_text_adds(out,
                 "{data: {format: avazu, label: click, readers: 1}, slots: [{name: hour, type: "
                 "int, transform: hour}, {name: weekday, column: hour, type: int, transform: "
                 "weekday}, {name: weekend, column: hour, type: int, transform: weekend}");
    for (uint32_t i = 0; i < AVAZU_COLUMNS; i++) {
        bool hex = i >= AVAZU_HEX && i < AVAZU_HEX_END;
        tn_text_addf(out, ", {name: %s, type: %s}", avazu_columns[i], hex ? "hex" : "int");
    }
    tn_text_adds(out, "]}");
}

static void libsvm_row(tn_text *out, uint64_t row)
{
    tn_text_adds(out, tn_mix(row) % 4 == 0 ? "1" : "0");
    for (uint64_t i = 0; i < FIELDS; i++) {
        tn_text_addc(out, ' ');
        tn_text_add_u64(out, i * 100000 + skewed(tn_mix(row * FIELDS + i), 16));
        tn_text_adds(out, ":1");
    }
    tn_text_addc(out, '\n');
}

static void libsvm_config(tn_text *out)
{
    tn_text_adds(out, "{data: {format: libsvm, readers: 1}}");
}

static void libffm_row(tn_text *out, uint64_t row)
{
    tn_text_adds(out, tn_mix(row) % 4 == 0 ? "1" : "0");
    for (uint64_t i = 0; i < FIELDS; i++) {
        tn_text_addc(out, ' ');
        tn_text_add_u64(out, i);
        tn_text_addc(out, ':');
        tn_text_add_u64(out, tn_mix(skewed(tn_mix(row * FIELDS + i), 20)) >> 1);
        tn_text_adds(out, ":1");
    }
    tn_text_addc(out, '\n');
}

static void libffm_config(tn_text *out)
{
    tn_text_adds(out, "{data: {format: libffm, readers: 1}, slots: [");
    for (uint32_t i = 0; i < FIELDS; i++) {
        tn_text_addf(out, "%s{name: f%u, field: %u}", i > 0 ? ", " : "", i, i);
    }
    tn_text_adds(out, "]}");
}

static void vw_row(tn_text *out, uint64_t row)
{
    tn_text_adds(out, tn_mix(row) % 4 == 0 ? "1" : "-1");
    for (uint64_t i = 0; i < FIELDS; i++) {
        tn_text_addf(out, " |f%u w%" PRIu64, (unsigned)i, skewed(tn_mix(row * FIELDS + i), 20));
    }
    tn_text_addc(out, '\n');
}

static void vw_config(tn_text *out)
{
    tn_text_adds(out, "{data: {format: vw, readers: 1}, slots: [");
    for (uint32_t i = 0; i < FIELDS; i++) {
        tn_text_addf(out, "%s{name: f%u, type: str}", i > 0 ? ", " : "", i);
    }
    tn_text_adds(out, "]}");
}

static void jsonl_row(tn_text *out, uint64_t row)
{
    tn_text_addf(out, "{\"label\": %d", tn_mix(row) % 4 == 0);
    for (uint64_t i = 0; i < FIELDS; i++) {
        uint64_t x = skewed(tn_mix(row * FIELDS + i), 20);
        tn_text_addf(out, i % 2 == 0 ? ", \"f%u\": \"w%" PRIu64 "\"" : ", \"f%u\": %" PRIu64,
                     (unsigned)i, x);
    }
    tn_text_adds(out, "}\n");
}

static void jsonl_config(tn_text *out)
{
    tn_text_adds(out, "{data: {format: jsonl, readers: 1}, slots: [");
    for (uint32_t i = 0; i < FIELDS; i++) {
        tn_text_addf(out, "%s{name: f%u, type: %s}", i > 0 ? ", " : "", i,
                     i % 2 == 0 ? "str" : "id");
    }
    tn_text_adds(out, "]}");
}

enum { CRB_ROWS = 100 };

/* An array as an LZ4 block of literals, which liblz4 copies. */
static void add_literals(tn_text *out, const void *bytes, size_t size)
{
    const size_t more = size - 15;
    tn_text_add_u32le(out, (uint32_t)(size + more / 255 + 2));
    tn_text_addc(out, (char)0xf0);
    for (size_t i = 0; i < more / 255; i++) {
        tn_text_addc(out, (char)255);
    }
    tn_text_addc(out, (char)(more % 255));
    tn_text_add(out, bytes, size);
}

/* Rows come in blocks: the first one of each writes them all. */
static void crb_row(tn_text *out, uint64_t row)
{
    static float label[CRB_ROWS];
    static uint64_t offset[CRB_ROWS + 1];
    static uint64_t index[CRB_ROWS * FIELDS];
    if (row % CRB_ROWS != 0) {
        return;
    }
    for (uint64_t r = 0; r < CRB_ROWS; r++) {
        label[r] = tn_mix(row + r) % 4 == 0 ? 1.0F : 0.0F;
        offset[r + 1] = (r + 1) * FIELDS;
        for (uint64_t i = 0; i < FIELDS; i++) {
            index[r * FIELDS + i] =
                i << 54 | tn_mix(skewed(tn_mix((row + r) * FIELDS + i), 20)) >> 10;
        }
    }
    const size_t begin = out->size;
    tn_text_add_u32le(out, 0xced7230a);
    tn_text_add_u32le(out, 0);
    tn_text_add_u32le(out, 0x474ba8c7);
    tn_text_add_u32le(out, sizeof *index);
    tn_text_add_u32le(out, CRB_ROWS);
    add_literals(out, label, sizeof label);
    add_literals(out, offset, sizeof offset);
    add_literals(out, index, sizeof index);
    tn_text_add_u64le(out, 0); /* neither values nor weights */
    tn_store_u32(out->data + begin + 4, (uint32_t)(out->size - begin - 8));
    while (out->size % 4 != 0) {
        tn_text_addc(out, 0);
    }
}

static void crb_config(tn_text *out)
{
    tn_text_adds(out, "{data: {format: crb, slot_bits: high 10, readers: 1}, slots: [");
    for (uint32_t i = 0; i < FIELDS; i++) {
        tn_text_addf(out, "%s{name: f%u, field: %u}", i > 0 ? ", " : "", i, i);
    }
    tn_text_adds(out, "]}");
}

static void add_int64(tn_text *out, const char *name, uint64_t value)
{
    size_t entry = tn_proto_begin(out, 1);
    tn_proto_add_bytes(out, 1, name, strlen(name));
    size_t feature = tn_proto_begin(out, 2);
    size_t list = tn_proto_begin(out, 3);
    size_t packed = tn_proto_begin(out, 1);
    tn_proto_add_varint(out, value);
    tn_proto_end(out, packed);
    tn_proto_end(out, list);
    tn_proto_end(out, feature);
    tn_proto_end(out, entry);
}

static void tfrecord_row(tn_text *out, uint64_t row)
{
    static const char zeros[12] = {0};
    size_t begin = out->size;
    tn_text_add(out, zeros, sizeof zeros);
    size_t features = tn_proto_begin(out, 1);
    add_int64(out, "label", tn_mix(row) % 4 == 0);
    for (uint64_t i = 0; i < FIELDS; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "%u", (unsigned)i);
        add_int64(out, name, tn_mix(skewed(tn_mix(row * FIELDS + i), 20)) >> 33);
    }
    tn_proto_end(out, features);
    uint64_t n = out->size - begin - sizeof zeros;
    tn_store_u64(out->data + begin, n);
    tn_store_u32(out->data + begin + 8, tn_crc_mask(tn_crc32c(0, out->data + begin, 8)));
    tn_text_add_u32le(out, tn_crc_mask(tn_crc32c(0, out->data + begin + sizeof zeros, n)));
}

static void tfrecord_config(tn_text *out)
{
    tn_text_adds(out, "{data: {format: tfrecord, readers: 1}, slots: [");
    for (uint32_t i = 0; i < FIELDS; i++) {
        tn_text_addf(out, "%s{name: '%u'}", i > 0 ? ", " : "", i);
    }
    tn_text_adds(out, "]}");
}

const tn_log tn_logs[] = {
    {"criteo", "4.0 M rows/s", criteo_row, criteo_config},
    {"libsvm", "1000 MB/s", libsvm_row, libsvm_config},
    {"libffm", "1000 MB/s", libffm_row, libffm_config},
    {"tfrecord", "2.5 M rows/s", tfrecord_row, tfrecord_config},
    {"vw", "none", vw_row, vw_config},
    {"avazu", "none", avazu_row, avazu_config},
    {"jsonl", "none", jsonl_row, jsonl_config},
    {"crb", "none", crb_row, crb_config},
    {NULL, NULL, NULL, NULL},
};

tn_status tn_log_file_write(tn_log_file *f, const tn_log *log, uint64_t rows, tn_error *err)
{
    tn_text text = {0};
    tn_diag diag = {0};
    *f = (tn_log_file){.arena = tn_arena_new(1 << 16)};
    for (uint64_t i = 0; i < rows; i++) {
        log->add_row(&text, i);
    }
    (void)snprintf(f->path, sizeof f->path, "/tmp/bench_log.%d", (int)getpid());
    TN_TRY(tn_text_check(&text, "rows", err));
    TN_TRY(tn_file_replace(f->path, text.data, text.size, err));
    f->bytes = text.size;
    tn_text_clear(&text);
    log->add_config(&text);
    tn_binder b = {.arena = f->arena, .diag = &diag};
    tn_fields_bind(&b, tn_dataset_fields, tn_tree_read_flow(f->arena, text.data, "bench"),
                   &f->config);
    tn_status status = tn_schema_new(&f->schema, &f->config.data, &f->config.slots, &b, err);
    tn_diag_done(&diag);
    tn_text_done(&text);
    return status;
}

void tn_log_file_done(const tn_log_file *f)
{
    (void)unlink(f->path);
    tn_arena_free(f->arena);
}
