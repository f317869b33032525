/* test_safetensors.c - one form when writing, every valid file and no other when reading. */
#include "support/test.h"

#include "base/core/failpoint.h"
#include "base/file/safetensors.h"
#include "base/math/crc32c.h"

static char dir[256];
static char path[TN_PATH_SIZE];

SET_UP
{
    tn_tmpdir_make(dir);
    assert_int_equal(tn_path_join(dir, "x.safetensors", path, NULL), TN_OK);
}

TEAR_DOWN
{
    tn_tmpdir_remove(dir);
}

static tn_status write_doc(const tn_safetensors *doc, tn_error *err)
{
    tn_file *f = NULL;
    TN_TRY(tn_file_create(&f, path, err));
    tn_status status = tn_safetensors_write(f, doc, err);
    if (status != TN_OK) {
        tn_file_abandon(f);
        return status;
    }
    return tn_file_commit(f, err);
}

static tn_status read_bytes(const void *data, size_t size, tn_arena *arena, tn_safetensors *out,
                            tn_error *err)
{
    tn_map bytes = {.data = data, .size = size};
    return tn_safetensors_read(out, &bytes, arena, "x.safetensors", err);
}

TEST(golden_safetensors_vector)
{
    static const float w[2] = {1, -2};
    const tn_tensor_meta meta = {"tnet.model_id", "00010203"};
    const tn_tensor tensor = {.name = "out.W",
                              .dtype = "F32",
                              .rank = 2,
                              .shape = {1, 2},
                              .data = (const char *)w,
                              .size = sizeof w};
    const tn_safetensors doc = {.n_meta = 1, .n_tensors = 1, .meta = &meta, .tensor = &tensor};
    tn_map map = {0};
    assert_int_equal(write_doc(&doc, NULL), TN_OK);
    assert_int_equal(tn_map_file(&map, path, NULL), TN_OK);
    assert_int_equal(map.size, 120);
    assert_int_equal(map.data[0], 104);
    assert_int_equal(tn_crc32c(0, map.data, map.size), 0xd06f75ab);

    tn_arena *arena = tn_arena_new(4096);
    tn_safetensors back = {0};
    assert_int_equal(tn_safetensors_read(&back, &map, arena, path, NULL), TN_OK);
    assert_int_equal(back.n_tensors, 1);
    assert_string_equal(tn_tensor_meta_find(&back, "tnet.model_id"), "00010203");
    assert_null(tn_tensor_meta_find(&back, "other"));
    const tn_tensor *t = tn_tensor_find(&back, "out.W");
    assert_non_null(t);
    assert_string_equal(t->dtype, "F32");
    assert_int_equal(t->size, sizeof w);
    assert_memory_equal(t->data, w, sizeof w);
    tn_arena_free(arena);
    tn_unmap(&map);
}

TEST(tensors_are_written_by_name_and_found_by_name)
{
    enum { N = 40 };
    static char name[N][8];
    static uint64_t value[N];
    tn_tensor tensor[N] = {0};
    for (uint32_t i = 0; i < N; i++) {
        (void)snprintf(name[i], sizeof name[i], "p%u", (i * 7) % N); /* not in order */
        value[i] = i;
        tensor[i] = (tn_tensor){.name = name[i],
                                .dtype = i % 2 == 0 ? "U64" : "U8",
                                .rank = 1,
                                .shape = {i % 2 == 0 ? 1 : 3},
                                .data = (const char *)&value[i],
                                .size = i % 2 == 0 ? 8 : 3};
    }
    const tn_safetensors doc = {.n_tensors = N, .tensor = tensor};
    tn_map map = {0};
    tn_safetensors back = {0};
    tn_arena *arena = tn_arena_new(4096);
    assert_int_equal(write_doc(&doc, NULL), TN_OK);
    assert_int_equal(tn_map_file(&map, path, NULL), TN_OK);
    assert_int_equal(tn_safetensors_read(&back, &map, arena, path, NULL), TN_OK);
    assert_int_equal(back.n_tensors, N);
    for (uint32_t i = 0; i < N; i++) {
        const tn_tensor *t = tn_tensor_find(&back, name[i]);
        assert_non_null(t);
        assert_int_equal(t->data[0], i);
        assert_true(i == 0 || strcmp(back.tensor[i - 1].name, back.tensor[i].name) < 0);
        assert_true(i == 0 || back.tensor[i - 1].data < back.tensor[i].data);
    }
    assert_null(tn_tensor_find(&back, "p"));
    tn_arena_free(arena);
    tn_unmap(&map);
}

TEST(get_says_what_differs)
{
    static const char file[] = "\x38\0\0\0\0\0\0\0"
                               "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}  "
                               "12345678";
    tn_error err = {0};
    tn_safetensors doc = {0};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(4096);
    const tn_tensor *t = NULL;
    assert_int_equal(read_bytes(file, sizeof file - 1, arena, &doc, &err), TN_OK);
    const tn_tensor_want right = {.name = "w", .dtype = "F32", .rank = 1, .shape = {2}};
    tn_tensor_want wrong = right;
    assert_int_equal(tn_tensor_get(&doc, &right, "f", &t, &err), TN_OK);
    assert_memory_equal(t->data, "12345678", 8);
    wrong.name = "v";
    assert_int_equal(tn_tensor_get(&doc, &wrong, "f", &t, &err), TN_E_CKPT);
    assert_string_equal(err.text, "'f': no tensor 'v'");
    wrong = right;
    wrong.dtype = "U8";
    assert_int_equal(tn_tensor_get(&doc, &wrong, "f", &t, &err), TN_E_CKPT);
    assert_string_equal(err.text, "'f': tensor 'w' is F32, U8 expected");
    wrong = right;
    wrong.shape[0] = 3;
    assert_int_equal(tn_tensor_get(&doc, &wrong, "f", &t, &err), TN_E_CKPT);
    wrong = right;
    wrong.rank = 2;
    assert_int_equal(tn_tensor_get(&doc, &wrong, "f", &t, &err), TN_E_CKPT);
}

/* A file of this header and `data_size` bytes behind it; the status of reading it. */
static tn_status read_header(const char *json, size_t data_size, tn_safetensors *out, tn_error *err)
{
    static char file[4096];
    uint64_t n = strlen(json);
    assert_true(8 + n + data_size <= sizeof file);
    memcpy(file, &n, 8);
    memcpy(file + 8, json, n); // NOLINT(bugprone-not-null-terminated-result): bytes
    memset(file + 8 + n, 'd', data_size);
    char *exact = malloc(8 + n + data_size); /* so that ASan sees a read past the end */
    assert_non_null(exact);
    memcpy(exact, file, 8 + n + data_size);
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(4096);
    tn_status status = read_bytes(exact, 8 + n + data_size, arena, out, err);
    free(exact);
    return status;
}

#define TENSOR(shape, offsets)                                                                     \
    "{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

TEST(unusual_but_valid_headers_are_read)
{
    static const struct {
        const char *json;
        size_t data_size;
        uint32_t n;
    } good[] = {
        {"{}", 0, 0},
        {"{}      ", 0, 0},
        {"{\"__metadata__\":{}}", 0, 0},
        {"{\"a\":" TENSOR("[]", "[0,4]") "}", 4, 1},  /* a scalar */
        {"{\"a\":" TENSOR("[0]", "[0,0]") "}", 0, 1}, /* nothing */
        {"{\"a\":" TENSOR("[0,5]", "[4,4]") ",\"b\":" TENSOR("[1]", "[0,4]") "}", 4, 2},
        {"{\"a\":" TENSOR("[1]", "[4,8]") ",\"b\":" TENSOR("[1]", "[0,4]") "}", 8, 2},
        {"{\"a\":" TENSOR("[1]", "[0,4]") ",\"__metadata__\":{\"k\":\"v\"}}", 4, 1},
        {"{\"a\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4],\"more\":1}}", 4, 1},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        tn_safetensors doc = {0};
        assert_int_equal(read_header(good[i].json, good[i].data_size, &doc, NULL), TN_OK);
        assert_int_equal(doc.n_tensors, good[i].n);
    }
}

TEST(hostile_headers_are_refused)
{
    static const struct {
        const char *json;
        size_t data_size;
    } bad[] = {
        {"", 0},
        {"{", 0},
        {" {}", 0},
        {"[]", 0},
        {"{} x", 0},
        {"{}", 1},                                             /* bytes of nobody */
        {"{\"a\":1}", 0},                                      /* no tensor */
        {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4}, /* no dtype */
        {"{\"a\":{\"dtype\":\"F31\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4},
        {"{\"a\":{\"dtype\":4,\"shape\":[1],\"data_offsets\":[0,4]}}", 4},
        {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4}, /* no shape */
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4},          /* no offsets */
        {"{\"a\":" TENSOR("[1]", "[0]") "}", 4},
        {"{\"a\":" TENSOR("[1]", "[0,4,4]") "}", 4},
        {"{\"a\":" TENSOR("[1]", "[4,0]") "}", 4},
        {"{\"a\":" TENSOR("[1]", "[0,8]") "}", 4}, /* past the end */
        {"{\"a\":" TENSOR("[2]", "[0,4]") "}", 4}, /* shape says otherwise */
        {"{\"a\":" TENSOR("[-1]", "[0,4]") "}", 4},
        {"{\"a\":" TENSOR("[1.5]", "[0,4]") "}", 4},
        {"{\"a\":" TENSOR("[\"1\"]", "[0,4]") "}", 4},
        {"{\"a\":" TENSOR("[4611686018427387905,1]", "[0,4]") "}", 4}, /* 4 * it overflows to 4 */
        {"{\"a\":" TENSOR("[4294967296,4294967296]", "[0,0]") "}", 0},
        {"{\"a\":" TENSOR("[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 4}, /* rank 9 */
        {"{\"a\":" TENSOR("[1]", "[4,8]") "}", 8},                 /* a hole first */
        {"{\"a\":" TENSOR("[1]", "[0,4]") "}", 8},                 /* bytes behind */
        {"{\"a\":" TENSOR("[1]", "[0,4]") ",\"b\":" TENSOR("[1]", "[0,4]") "}", 4},
        {"{\"a\":" TENSOR("[2]", "[0,8]") ",\"b\":" TENSOR("[1]", "[4,8]") "}", 8},
        {"{\"a\":" TENSOR("[1]", "[0,4]") ",\"a\":" TENSOR("[1]", "[4,8]") "}", 8},
        {"{\"__metadata__\":1}", 0},
        {"{\"__metadata__\":{\"k\":1}}", 0},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tn_error err = {0};
        tn_safetensors doc = {.n_meta = 77};
        fail_if(read_header(bad[i].json, bad[i].data_size, &doc, &err) == TN_OK, "accepted: %s",
                bad[i].json);
        assert_int_equal(err.code, TN_E_CKPT);
        assert_memory_equal(err.text, "'x.safetensors': ", 17);
        assert_int_equal(doc.n_meta, 77); /* untouched */
    }
}

TEST(sizes_are_checked_before_the_header_is_read)
{
    static const uint64_t sizes[] = {9, 100000001, UINT64_MAX, UINT64_MAX - 7};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(64);
    for (size_t i = 0; i < 4; i++) {
        tn_error err = {0};
        tn_safetensors doc = {0};
        char file[16] = "xxxxxxxx{}      ";
        memcpy(file, &sizes[i], 8);
        assert_int_equal(read_bytes(file, sizeof file, arena, &doc, &err), TN_E_CKPT);
        assert_int_equal(read_bytes(file, i, arena, &doc, &err), TN_E_CKPT);
    }
}

TEST(a_write_that_fails_leaves_no_file)
{
    static const float w[1] = {1};
    const tn_tensor tensor = {
        .name = "w", .dtype = "F32", .rank = 1, .shape = {1}, .data = (const char *)w, .size = 4};
    const tn_safetensors doc = {.n_tensors = 1, .tensor = &tensor};
    tn_error err = {0};
    assert_int_equal(tn_failpoint_set("io.write:ENOSPC", &err), TN_OK);
    assert_int_equal(write_doc(&doc, &err), TN_E_IO);
    assert_int_equal(tn_failpoint_set(NULL, &err), TN_OK);
    assert_false(tn_path_exists(path));
}
