/* test_resp.c - a dictionary as commands for Redis. */
#include "base/core/number.h"
#include "base/file/file.h"
#include "base/keys/record.h"
#include "base/math/key.h"
#include "dict/dict.h"
#include "dict/dictfile.h"
#include "support/test.h"
#include "train/config/export_files.h"
#include "train/config/run.h"

CLOSER(tn_dict_close);

typedef tn_dictfile fixture;

static tn_dict *write_and_open(fixture *f, const tn_dict_spec *spec)
{
    tn_dict *d = NULL;
    tn_dict_written done;
    tn_error err = {0};
    tn_dictrows_sort(f->rows);
    const tn_dict_source source = tn_dictrows_source(f->rows);
    assert_int_equal(tn_remove_file(f->path, NULL), TN_OK);
    fail_if(tn_dict_write(f->path, spec, &source, &done, &err) != TN_OK ||
                tn_dict_open(&d, f->path, TN_VERIFY_FULL, &err) != TN_OK,
            "%s", err.text);
    return d;
}

static tn_dict_spec spec_of(void)
{
    tn_dict_spec spec = tn_dictrows_spec();
    spec.json = "{\"segments\":[\"wide\",\"deep\"]}";
    return spec;
}

static void add_golden_rows(fixture *f)
{
    f->rows->n = 0;
    tn_dictrows_add(f->rows, &tn_dictrows_layout, 0, 1, 3, (const float[]){.5F, 1, -2});
    tn_dictrows_add(f->rows, &tn_dictrows_layout, 1, 1, 3, (const float[]){-.5F, .25F, 4});
    tn_dictrows_add(f->rows, &tn_dictrows_layout, 1, 2, 1, (const float[]){.125F, 0, 0});
}

extern const tn_export_file tn_export_file_resp;

/* The file that an export would have of the dictionary, in `out`. */
static tn_status make(const fixture *f, const tn_dict *d, tn_resp_keys keys, tn_text *out,
                      tn_error *err)
{
    char path[320];
    tn_file *file = NULL;
    const tn_export_opts opts = {.redis_keys = keys};
    (void)snprintf(path, sizeof path, "%s/dict.resp", f->dir);
    assert_int_equal(tn_remove_file(path, NULL), TN_OK);
    assert_int_equal(tn_file_create(&file, path, NULL), TN_OK);
    const tn_status status = tn_export_file_resp.of_rows(d, &opts, file, err);
    if (status != TN_OK) {
        tn_file_abandon(file);
        return status;
    }
    assert_int_equal(tn_file_commit(file, NULL), TN_OK);
    assert_int_equal(tn_file_read_all(path, 1 << 24, out, NULL), TN_OK);
    return status;
}

typedef struct word {
    const char *data;
    size_t size;
} word;

/* The next word "$n\r\n..\r\n" of a command. */
static word next_word(const char **at, const char *end)
{
    uint64_t size = 0;
    const char *from = *at + 1;
    assert_true(*at < end && **at == '$');
    const char *stop = memchr(from, '\r', (size_t)(end - from));
    assert_non_null(stop);
    assert_int_equal(tn_read_u64(from, (size_t)(stop - from), &size), TN_NUM_OK);
    const word w = {stop + 2, (size_t)size};
    assert_true(w.data + size + 2 <= end);
    assert_memory_equal(w.data + size, "\r\n", 2);
    *at = w.data + size + 2;
    return w;
}

/* The next command SET; false after the last. */
static bool next_set(const char **at, const char *end, word *key, word *value)
{
    if (*at == end) {
        return false;
    }
    assert_memory_equal(*at, "*3\r\n", 4);
    *at += 4;
    assert_memory_equal(next_word(at, end).data, "SET", 3);
    *key = next_word(at, end);
    *value = next_word(at, end);
    return true;
}

GROUP(tn_dictfile_set_up, tn_dictfile_tear_down);

TEST_ON(fixture *f, golden_command)
{
    static const char want[] =
        "*3\r\n$3\r\nSET\r\n$20\r\ntnet:00010203:user:1\r\n$13\r\n\0\0\0\0\x3f"
        "\0\0\x80\x3f\0\0\0\xc0\r\n";
    tn_text stream CLEANUP(tn_text_done) = {0};
    const tn_dict_spec spec = spec_of();
    add_golden_rows(f);
    tn_dict *d FREED(tn_dict_close) = write_and_open(f, &spec);
    assert_int_equal(make(f, d, TN_RESP_TEXT, &stream, NULL), TN_OK);
    assert_int_equal(sizeof want - 1, 60);
    assert_memory_equal(stream.data, want, sizeof want - 1);
    static const char last[] = "*3\r\n$3\r\nSET\r\n$12\r\ntnet:current\r\n$13\r\ntnet:00010203\r\n";
    assert_string_equal(stream.data + stream.size - (sizeof last - 1), last);
}

/* 1 of user, by docs/formats.md section 4: z = 1 ^ 3da0fd9c44cfc9ee, mix(z) = 4b3b8c985678630a,
 * which begins with a line's end. The other sign was chosen for its key, 2a0a0d000a0d2a00: zeros,
 * lines' ends and a '*' are bytes as any, and go first, since rows are in the order of keys. No
 * word of it asks for groups. */
TEST_ON(fixture *f, golden_keys_of_8_bytes)
{
    static const char want[] = "*3\r\n$3\r\nSET\r\n$22\r\ntnet:00010203:\0*\r\n\0\r\n*\r\n$13\r\n"
                               "\0\0\0\x80\x3e\0\0\0\x40\0\0\x40\x40\r\n"
                               "*3\r\n$3\r\nSET\r\n$22\r\ntnet:00010203:\ncxV\x98\x8c;K\r\n$13\r\n"
                               "\0\0\0\0\x3f\0\0\x80\x3f\0\0\0\xc0\r\n"
                               "*3\r\n$3\r\nSET\r\n$18\r\ntnet:00010203:meta\r\n$";
    static const char meta[] = "\r\n{\"model_id\":\"000102030405060708090a0b0c0d0e0f\","
                               "\"keys\":\"key8\",\"segments\":[\"wide\",\"deep\"],\"groups\":["
                               "{\"name\":\"user\",\"salt\":\"3da0fd9c44cfc9ee\"},";
    tn_text stream CLEANUP(tn_text_done) = {0};
    tn_dict_spec spec = spec_of();
    spec.check_groups = false;
    f->rows->n = 0;
    tn_dictrows_add(f->rows, &tn_dictrows_layout, 0, 1, 3, (const float[]){.5F, 1, -2});
    tn_dictrows_add(f->rows, &tn_dictrows_layout, 0, UINT64_C(0x997636857796f9b4), 3,
                    (const float[]){.25F, 2, 3});
    tn_dict *d FREED(tn_dict_close) = write_and_open(f, &spec);
    assert_int_equal(make(f, d, TN_RESP_KEY8, &stream, NULL), TN_OK);
    assert_true(stream.size > sizeof want + sizeof meta);
    assert_memory_equal(stream.data, want, sizeof want - 1);
    const char *size_end = strchr(tn_text_str(&stream) + sizeof want - 1, '\r');
    assert_non_null(size_end);
    assert_memory_equal(size_end, meta, sizeof meta - 1);
}

/* Read back by the description alone, as a service in another language would. */
TEST_ON(fixture *f, every_row_is_in_the_stream)
{
    const tn_dict_spec spec = spec_of();
    f->rows->n = 0;
    for (uint32_t i = 0; i < 4000; i++) {
        tn_dictrows_add(f->rows, &tn_dictrows_layout, (uint16_t)(i % 2), i, (uint16_t)(1 + i % 3),
                        NULL);
    }
    tn_dict *d FREED(tn_dict_close) = write_and_open(f, &spec);
    tn_text stream CLEANUP(tn_text_done) = {0};
    assert_int_equal(make(f, d, TN_RESP_TEXT, &stream, NULL), TN_OK);
    const char *at = stream.data;
    const char *end = at + stream.size;
    uint32_t n = 0;
    word key = {0};
    word value = {0};
    while (next_set(&at, end, &key, &value) && key.data[14] != 'm') {
        const bool user = memcmp(key.data, "tnet:00010203:user:", 19) == 0;
        uint64_t sign = 0;
        assert_true(user || memcmp(key.data, "tnet:00010203:item:", 19) == 0);
        assert_int_equal(tn_read_u64(key.data + 19, key.size - 19, &sign), TN_NUM_OK);
        const uint32_t table = (uint8_t)value.data[0];
        const tn_dict_table_head *t = tn_dict_table_at(d, table);
        const tn_dict_query query = {tn_key_of(sign, tn_dict_salt(d, user ? 0 : 1)), user ? 0 : 1};
        tn_dict_row row;
        assert_int_equal(value.size, 1 + t->stride);
        assert_int_equal(tn_dict_find_all(d, 1, &query, &row, NULL), TN_OK);
        assert_int_equal(tn_dict_table_number(d, row.table), table);
        assert_memory_equal(row.at, value.data + 1, t->stride);
        n++;
    }
    assert_int_equal(n, 4000);
    assert_memory_equal(key.data, "tnet:00010203:meta", 18);
    static const char meta[] =
        "{\"model_id\":\"000102030405060708090a0b0c0d0e0f\",\"segments\":[\"wide\",\"deep\"],"
        "\"groups\":[{\"name\":\"user\",\"salt\":\"3da0fd9c44cfc9ee\"},{\"name\":\"item\","
        "\"salt\":\"5fe193bb4b6b9cd0\"}],\"tables\":[{\"stride\":";
    assert_true(value.size > sizeof meta);
    assert_memory_equal(value.data, meta, sizeof meta - 1);
}

TEST_ON(fixture *f, what_is_no_whole_dictionary_is_refused)
{
    tn_error err = {0};
    tn_text stream CLEANUP(tn_text_done) = {0};
    tn_dict_spec spec = spec_of();
    add_golden_rows(f);
    spec.delta = true;
    tn_dict *d = write_and_open(f, &spec);
    assert_int_equal(make(f, d, TN_RESP_TEXT, &stream, &err), TN_E_CKPT);
    assert_non_null(strstr(err.text, "a delta"));
    tn_dict_close(d);
    spec.delta = false;
    spec.check_groups = false;
    d = write_and_open(f, &spec);
    assert_int_equal(make(f, d, TN_RESP_TEXT, &stream, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "does not store groups"));
    tn_dict_close(d);
}
