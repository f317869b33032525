/* test_npz.c - bytes of npy and npz files; Python's zipfile and struct read them, where there is
 * one. */
#include "extra/arrays/npz.h"

#include "support/test.h"

TEST(an_npy_head_is_a_multiple_of_64)
{
    static const char want[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }";
    tn_text t CLEANUP(tn_text_done) = {0};
    tn_npy a = {.name = "out.W", .type = "<f4", .item_bytes = 4, .rank = 2, .shape = {1, 2}};
    tn_npy_head(&t, &a);
    assert_int_equal(t.size, 128);
    assert_memory_equal(t.data, "\x93NUMPY\x01\x00\x76\x00", 10);
    assert_memory_equal(t.data + 10, want, sizeof want - 1);
    for (size_t i = 10 + sizeof want - 1; i < 127; i++) {
        assert_int_equal(t.data[i], ' ');
    }
    assert_int_equal(t.data[127], '\n');
}

TEST(one_dimension_ends_in_a_comma)
{
    tn_text t CLEANUP(tn_text_done) = {0};
    tn_npy a = {.name = "x", .type = "<u8", .item_bytes = 8, .rank = 1, .shape = {7}};
    tn_npy_head(&t, &a);
    assert_non_null(strstr(t.data + 10, "'shape': (7,), }"));
}

static void write_two(const char *path)
{
    static const float w[] = {1, -2, 3, 4, 5, 6};
    static const char ids[] = "a\0\0bcd";
    tn_npz *z = NULL;
    assert_int_equal(tn_npz_create(&z, path, NULL), TN_OK);
    tn_npy a = {.name = "deep.1", .type = "<f4", .item_bytes = 4, .rank = 2, .shape = {2, 3}};
    assert_int_equal(tn_npz_add(z, &a, w, NULL), TN_OK);
    tn_npy b = {.name = "id", .type = "|S3", .item_bytes = 3, .rank = 1, .shape = {2}};
    assert_int_equal(tn_npz_add(z, &b, ids, NULL), TN_OK);
    assert_int_equal(tn_npz_commit(z, NULL), TN_OK);
}

TEST(equal_arrays_give_equal_files)
{
    TMPDIR(dir);
    char path[2][300];
    tn_text text[2] = {{0}, {0}};
    for (uint32_t i = 0; i < 2; i++) {
        (void)snprintf(path[i], sizeof path[i], "%s/%u.npz", dir, i);
        write_two(path[i]);
        assert_int_equal(tn_file_read_all(path[i], 1 << 20, &text[i], NULL), TN_OK);
    }
    assert_int_equal(text[0].size, text[1].size);
    assert_memory_equal(text[0].data, text[1].data, text[0].size);
    assert_memory_equal(text[0].data, "PK\x03\x04", 4);
    tn_text_done(&text[0]);
    tn_text_done(&text[1]);
}

/* An independent reader: zipfile checks names, sizes and CRC-32, the script the data. */
TEST(another_program_reads_it)
{
    static const char script[] =
        "import sys,zipfile,struct,ast\n"
        "z=zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None\n"
        "assert z.namelist()==['deep.1.npy','id.npy'], z.namelist()\n"
        "def npy(b):\n"
        "  assert b[:8]==b'\\x93NUMPY\\x01\\x00'; n,=struct.unpack('<H',b[8:10])\n"
        "  assert (10+n)%64==0; return ast.literal_eval(b[10:10+n].decode()), b[10+n:]\n"
        "h,d=npy(z.read('deep.1.npy'))\n"
        "assert h=={'descr':'<f4','fortran_order':False,'shape':(2,3)}, h\n"
        "assert struct.unpack('<6f',d)==(1,-2,3,4,5,6)\n"
        "h,d=npy(z.read('id.npy'))\n"
        "assert h['shape']==(2,) and h['descr']=='|S3' and d==b'a\\0\\0bcd'\n";
    if (system("python3 -c 'import zipfile' >/dev/null 2>&1") != 0) { /* NOLINT */
        skip();
    }
    TMPDIR(dir);
    char command[700];
    PATH_IN(path, dir, "a.npz");
    PATH_IN(program, dir, "read.py");
    (void)snprintf(command, sizeof command, "python3 %s %s", program, path);
    write_two(path);
    assert_int_equal(tn_file_replace(program, script, sizeof script - 1, NULL), TN_OK);
    assert_int_equal(system(command), 0); /* NOLINT */
}

TEST(what_is_written_is_found)
{
    static const float want[] = {1, -2, 3, 4, 5, 6};
    TMPDIR(dir);
    PATH_IN(path, dir, "a.npz");
    write_two(path);
    tn_map map = {0};
    tn_error err = {0};
    tn_npz_matrix found = {0};
    assert_int_equal(tn_map_file(&map, path, &err), TN_OK);
    assert_int_equal(tn_npz_find(&map, path, "deep.1", &found, &err), TN_OK);
    assert_int_equal(found.rows, 2);
    assert_int_equal(found.cols, 3);
    assert_memory_equal(found.data, want, sizeof want);
    assert_int_equal(tn_npz_find(&map, "f", "deep", &found, &err), TN_E_DATA);
    assert_string_equal(err.text, "'f' has no array 'deep'");
    assert_int_equal(tn_npz_find(&map, "f", "id", &found, &err), TN_E_DATA);
    assert_non_null(strstr(err.text, "not float32 of two dimensions"));
    /* One bit of the values, then each end before the whole. */
    tn_text copy = {0};
    tn_text_add(&copy, map.data, map.size);
    copy.data[found.data - map.data] ^= 1;
    const tn_map other = {.data = copy.data, .size = copy.size};
    assert_int_equal(tn_npz_find(&other, "f", "deep.1", &found, &err), TN_E_DATA);
    assert_non_null(strstr(err.text, "another CRC"));
    for (size_t size = 0; size < map.size; size++) {
        const tn_map cut = {.data = map.data, .size = size};
        assert_int_equal(tn_npz_find(&cut, "f", "deep.1", &found, &err), TN_E_DATA);
    }
    tn_text_done(&copy);
    tn_unmap(&map);
}

/* Files of test/fuzz/corpus/npz: array a is [2 x 3] in those that are whole. */
TEST(files_of_others_are_read_or_refused)
{
    static const char *const files[][2] = {
        {"two", NULL},
        {"wide", NULL},
        {"crc", "another CRC"},
        {"f8", "not float32"},
        {"fortran", "row behind row"},
        {"shape", "another size than its shape"},
        {"cut", "does not end in a directory"},
        {"empty", "too short"},
        {"packed", "compressed (numpy.savez writes them as they are)"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[300];
        (void)snprintf(path, sizeof path, "test/fuzz/corpus/npz/%s", files[i][0]);
        tn_map map = {0};
        tn_error err = {0};
        tn_npz_matrix found = {0};
        assert_int_equal(tn_map_file(&map, path, &err), TN_OK);
        const tn_status status = tn_npz_find(&map, path, "a", &found, &err);
        if (files[i][1] != NULL) {
            assert_int_equal(status, TN_E_DATA);
            fail_if(strstr(err.text, files[i][1]) == NULL, "%s: %s", path, err.text);
        } else {
            assert_int_equal(status, TN_OK);
            assert_true(found.rows == 2 && found.cols == 3);
        }
        tn_unmap(&map);
    }
}
