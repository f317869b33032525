/* test_fileset.c - which files are meant, how they are compressed, and where they are cut. */
#include "io/read/fileset.h"

#include "base/core/log.h"
#include "io/rows/rows.h"
#include "io/source/remote.h"
#include "setup.h"
#include "support/test.h"

#include <sys/stat.h>
#include <zlib.h>

CLOSER(tn_fileset_free);

static const char libsvm[] = "{data: {format: libsvm, part_bytes: 10B}}";

/* The files of some items, as their names with blanks between. */
static void check_files(const setup *s, const char *item, const char *expected)
{
    tn_fileset *files FREED(tn_fileset_free) = NULL;
    tn_error err = {0};
    tn_text got CLEANUP(tn_text_done) = {0};
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", s->dir, item);
    const char *only = path;
    const tn_strs paths = {1, &only};
    tn_status status = tn_fileset_new(&files, &paths, s->schema, 1, &err);
    for (uint32_t i = 0; status == TN_OK && i < files->n; i++) {
        tn_text_addf(&got, "%s%s", i > 0 ? " " : "", strrchr(files->file[i].path, '/') + 1);
    }
    if (status != TN_OK) {
        assert_int_equal(status, TN_E_DATA);
        assert_null(files);
    }
    assert_string_equal(status == TN_OK ? tn_text_str(&got) : "none", expected);
}

TEST(patterns_match_whole_names_and_folders_hold_plain_files)
{
    OPEN(setup, s, libsvm);
    const char *names[] = {"b.svm", "a.svm", "a.svm.bin", "_SUCCESS", ".hidden", "B.svm"};
    for (uint32_t i = 0; i < 6; i++) {
        (void)setup_file(&s, names[i], "1 1\n", 4);
    }
    PATH_IN(folder, s.dir, "sub");
    assert_int_equal(tn_dir_make(folder, NULL), TN_OK);
    check_files(&s, "*.svm", "B.svm a.svm b.svm");
    check_files(&s, "?.svm", "B.svm a.svm b.svm");
    check_files(&s, "a.svm", "a.svm");
    check_files(&s, "", "B.svm a.svm a.svm.bin b.svm");
    check_files(&s, "x*.svm", "none");
    check_files(&s, "{b,a}.svm", "b.svm a.svm");
    check_files(&s, "{a.svm{.bin,},[bB].*}", "a.svm.bin a.svm B.svm b.svm");
    check_files(&s, "{a,B}{.svm,.svm}", "a.svm a.svm B.svm B.svm");
    check_files(&s, "{a,x}.svm", "none"); /* each must be there */
    check_files(&s, "{a,x*}.svm", "none");
    check_files(&s, "{a}.svm", "none");
    check_files(&s, "{a,b.svm", "none");
    check_files(&s, "x.svm", "none");
    check_files(&s, "sub", "none");
}

TEST(items_keep_their_order_and_unknown_schemes_are_refused)
{
    tn_fileset *files = NULL;
    tn_error err = {0};
    OPEN(setup, s, libsvm);
    const char *two[] = {setup_file(&s, "z", "1 1\n", 4), setup_file(&s, "a", "", 0)};
    const tn_strs paths = {2, two};
    assert_int_equal(tn_fileset_new(&files, &paths, s.schema, 1, &err), TN_OK);
    assert_string_equal(files->file[0].path, two[0]);
    assert_int_equal(files->n_parts, 2);
    assert_int_equal(files->bytes, 4);
    tn_fileset_free(files);
    const char *url = "ftp://host/key";
    const tn_strs remote = {1, &url};
    assert_int_equal(tn_fileset_new(&files, &remote, s.schema, 1, &err), TN_E_DATA);
    assert_non_null(strstr(err.text, "ftp://"));
    assert_non_null(strstr(err.text, "this build"));
}

TEST(parts_cover_a_file_and_nothing_more)
{
    tn_fileset *files = NULL;
    OPEN(setup, s, libsvm);
    for (size_t size = 0; size <= 31; size++) {
        const char *path = setup_file(&s, "f", "1 1\n1 2\n1 3\n1 4\n1 5\n1 6\n1 7\n1 8\n", size);
        const tn_strs paths = {1, &path};
        assert_int_equal(tn_fileset_new(&files, &paths, s.schema, 1, NULL), TN_OK);
        assert_int_equal(files->n_parts, size == 0 ? 1 : (size + 9) / 10);
        uint64_t end = 0;
        for (uint32_t i = 0; i < files->n_parts; i++) {
            assert_int_equal(files->part[i].first, end);
            end = files->part[i].end;
        }
        assert_int_equal(end, size);
        tn_fileset_free(files);
    }
}

/* Appends one compressed member. */
static void add_member(tn_text *out, const char *text, size_t size, int bits)
{
    z_stream z = {0};
    unsigned char buffer[65536];
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    union {
        const char *in;
        Bytef *bytes;
    } from = {.in = text};
    z.next_in = from.bytes;
    z.avail_in = (uInt)size;
    z.next_out = buffer;
    z.avail_out = sizeof buffer;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    tn_text_add(out, buffer, sizeof buffer - z.avail_out);
    assert_int_equal(deflateEnd(&z), Z_OK);
}

enum { GZIP = 31, ZLIB = 15 };

static uint32_t rows_of(const char *config, const char *bytes, size_t size, tn_error *err)
{
    tn_parsed parsed CLEANUP(setup_parsed_free);
    OPEN(setup, s, config);
    setup_parse(&s, bytes, size, &parsed);
    uint32_t n = parsed.fault == TN_OK && parsed.n_bad == 0 ? parsed.rows->n : UINT32_MAX;
    *err = parsed.err;
    return n;
}

TEST(gzip_members_are_one_stream_and_a_cut_one_is_an_error)
{
    static const char automatic[] = "{data: {format: libsvm}}";
    tn_text bytes CLEANUP(tn_text_done) = {0};
    tn_error err;
    add_member(&bytes, "1 1\n0 ", 6, GZIP);
    add_member(&bytes, "", 0, GZIP);
    add_member(&bytes, "2\n1 3", 5, GZIP);
    assert_int_equal(rows_of(automatic, bytes.data, bytes.size, &err), 3);
    for (size_t cut = 1; cut < bytes.size; cut++) {
        uint32_t n = rows_of(automatic, bytes.data, bytes.size - cut, &err);
        bool whole_members = n != UINT32_MAX;
        assert_true(!whole_members || n <= 2);
        if (!whole_members && bytes.size - cut >= 3) {
            assert_int_equal(err.code, TN_E_DATA);
            assert_non_null(strstr(err.text, "gzip stream"));
        }
    }
    assert_true(rows_of(automatic, bytes.data, bytes.size - 1, &err) == UINT32_MAX);
    assert_non_null(strstr(err.text, "truncated gzip stream"));
    tn_text_addc(&bytes, 'x');
    assert_true(rows_of(automatic, bytes.data, bytes.size, &err) == UINT32_MAX);
}

/* Every rank gets as many bytes of each file as any other one, to one byte a part. */
TEST(several_ranks_have_equal_shares_of_each_file)
{
    static const uint32_t sizes[] = {1000, 31, 3, 2, 0};
    enum { FILES = sizeof sizes / sizeof sizes[0], RANKS = 3 };
    char bytes[1000];
    const char *path[FILES];
    char names[FILES][300];
    tn_fileset *files = NULL;
    memset(bytes, '1', sizeof bytes);
    OPEN(setup, s, "{data: {format: libsvm, part_bytes: 100B}}");
    for (uint32_t i = 0; i < FILES; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "f%u", i);
        (void)snprintf(names[i], sizeof names[i], "%s", setup_file(&s, name, bytes, sizes[i]));
        path[i] = names[i];
    }
    const tn_strs paths = {FILES, path};
    assert_int_equal(tn_fileset_new(&files, &paths, s.schema, RANKS, NULL), TN_OK);
    uint32_t p = 0;
    uint32_t n[FILES];
    for (uint32_t i = 0; i < FILES; i++) {
        uint64_t at = 0;
        for (n[i] = 0; p < files->n_parts && files->part[p].source == i; p++, n[i]++) {
            const tn_part_info *part = &files->part[p];
            assert_int_equal(part->first, at);
            assert_true(part->end - at <= 100);
            assert_int_equal(tn_fileset_unit(files, p - n[i]), sizes[i] < RANKS ? 1 : RANKS);
            at = part->end;
        }
        assert_int_equal(at, sizes[i]);
        for (uint32_t k = p - n[i]; k < p; k++) {
            const uint64_t size = files->part[k].end - files->part[k].first;
            assert_in_range(size, sizes[i] / n[i], sizes[i] / n[i] + 1);
        }
    }
    assert_int_equal(p, files->n_parts);
    assert_true(n[0] == 4 * RANKS && n[1] == RANKS && n[2] == RANKS && n[3] == 1 && n[4] == 1);
    tn_fileset_free(files);
    const tn_strs one = {1, path + 1}; /* small data: still four parts for each rank */
    assert_int_equal(tn_fileset_new(&files, &one, s.schema, RANKS, NULL), TN_OK);
    assert_int_equal(files->n_parts, 4 * RANKS);
    tn_fileset_free(files);
}

TEST(zlib_must_be_asked_for_in_text)
{
    tn_text bytes CLEANUP(tn_text_done) = {0};
    tn_error err;
    add_member(&bytes, "1 1\n0 2\n", 8, ZLIB);
    assert_int_equal(
        rows_of("{data: {format: libsvm, compression: zlib}}", bytes.data, bytes.size, &err), 2);
    assert_true(rows_of("{data: {format: libsvm}}", bytes.data, bytes.size, &err) == UINT32_MAX);
    tn_text_addc(&bytes, 'x');
    assert_true(rows_of("{data: {format: libsvm, compression: zlib}}", bytes.data, bytes.size,
                        &err) == UINT32_MAX);
    assert_non_null(strstr(err.text, "something stands behind the zlib stream"));
}

TEST(compressions_that_are_not_read_are_named)
{
    tn_fileset *files = NULL;
    tn_error err = {0};
    OPEN(setup, s, libsvm);
    const char *marks[] = {"PAR1----", "BZh9----", "\xfd\x37zXZ\0--"};
    const char *names[] = {"parquet", "bzip2", "xz"};
    for (uint32_t i = 0; i < 3; i++) {
        const char *path = setup_file(&s, "f", marks[i], 8);
        const tn_strs paths = {1, &path};
        assert_int_equal(tn_fileset_new(&files, &paths, s.schema, 1, &err), TN_E_DATA);
        assert_non_null(strstr(err.text, names[i]));
    }
}

TEST(a_gzipped_tfrecord_is_known_by_its_first_bytes)
{
    tn_text plain CLEANUP(tn_text_done) = {0};
    tn_text bytes CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    const char *config = "{data: {format: tfrecord, weight: weight}, slots: [{name: user}]}";
    char golden[256] CLEANUP(tn_tmpdir_cleanup);
    tn_tmpdir_unpack(golden, "rows");
    PATH_IN(path, golden, "rows.tfrecord");
    assert_int_equal(tn_file_read_all(path, 1 << 20, &plain, &err), TN_OK);
    add_member(&bytes, plain.data, plain.size, GZIP);
    assert_int_equal(rows_of(config, bytes.data, bytes.size, &err), 256);
    tn_text_clear(&bytes);
    add_member(&bytes, plain.data, plain.size, ZLIB);
    assert_int_equal(rows_of(config, bytes.data, bytes.size, &err), 256);
}

TEST(blocks_do_not_depend_on_where_parts_begin)
{
    tn_block_reader *feed = NULL;
    tn_block block = {.n_records = 0};
    OPEN(setup, s, libsvm);
    tn_fileset *files FREED(tn_fileset_free) = NULL;
    const char *path = setup_file(&s, "f", "1 11\n\n0 2\n1 333\n0", 17);
    const tn_strs paths = {1, &path};
    assert_int_equal(tn_fileset_new(&files, &paths, s.schema, 1, NULL), TN_OK);
    assert_int_equal(tn_block_reader_new(&feed, s.schema, files, NULL, NULL), TN_OK);
    const uint32_t records[] = {3, 2}; /* begin at 0 5 6 | 10 16 */
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t part = 2; part-- > 0;) {
            tn_block_reader_go(feed, part);
            tn_block_reader_next(feed, &block);
            assert_int_equal(block.fault, TN_OK);
            assert_true(block.last);
            assert_int_equal(block.n_records, records[part]);
            assert_int_equal(block.line, part == 0 ? 1 : 0);
            assert_int_equal(block.offset + block.record[0].at, part == 0 ? 0 : 10);
        }
    }
    uint64_t lines = 0;
    assert_true(tn_fileset_lines_before(files, 0, 16, &lines));
    assert_int_equal(lines, 4);
    tn_block_done(&block);
    tn_block_reader_free(feed);
}

/* Opens `path` with its nth allocation failing, n = 1, 2, .. until none does; fails the test when
 * nobody asked for `what`. */
static void check_asked_for(const setup *s, const char *path, const char *what)
{
    const tn_strs paths = {1, &path};
    tn_fileset *files = NULL;
    bool asked = false;
    tn_status status = TN_E_MEMORY;
    for (uint64_t nth = 1; status == TN_E_MEMORY; nth++) {
        tn_error err = {0};
        tn_alloc_fail_at(nth);
        status = tn_fileset_new(&files, &paths, s->schema, 1, &err);
        tn_alloc_fail_at(0);
        asked |= strstr(err.text, what) != NULL;
    }
    assert_int_equal(status, TN_OK);
    tn_fileset_free(files);
    assert_true(asked);
}

TEST(memory_for_what_files_say_is_asked_for)
{
    enum { ROWS = 4000 };
    tn_text rows CLEANUP(tn_text_done) = {0};
    OPEN(setup, s, "{data: {format: libsvm, part_bytes: 4B}}");
    for (uint32_t i = 0; i < ROWS; i++) {
        tn_text_adds(&rows, "1 1\n");
    }
    const char *path = setup_file(&s, "rows", rows.data, rows.size);
    check_asked_for(&s, path, "for parts of files");
}

/* ---- lines are right wherever one asks, and asking often costs one pass over the file ---- */

enum { LINES = 60000 };

static const char lines_config[] =
    "{data: {format: libsvm, part_bytes: 16kB, shuffle: 7, bad_records_max: 100%}}";

/* Lines of 5 to 10 bytes; every tenth is at fault. */
static void make_lines(tn_text *out)
{
    for (uint32_t i = 0; i < LINES; i++) {
        tn_text_addf(out, i % 10 == 9 ? "x %u\n" : "1 %u\n", i);
    }
}

TEST(every_place_has_its_line_in_any_order)
{
    tn_text text CLEANUP(tn_text_done) = {0};
    OPEN(setup, s, lines_config);
    tn_fileset *files FREED(tn_fileset_free) = NULL;
    make_lines(&text);
    const char *path[2] = {setup_file(&s, "a", "1 1\n0 2\n", 8),
                           setup_file(&s, "b", text.data, text.size)};
    const tn_strs paths = {2, path};
    assert_int_equal(tn_fileset_new(&files, &paths, s.schema, 1, NULL), TN_OK);
    assert_true(files->n_parts > 20);
    uint64_t before = setup_bytes_read();
    uint64_t at = 0;
    for (uint32_t i = 0; i < 2000; i++) {
        uint64_t lines = 0;
        at = (at * 31 + UINT64_C(7919) * i) % text.size;
        assert_true(tn_fileset_lines_before(files, 1, at, &lines));
        assert_int_equal(lines, tn_count_lines(text.data, at));
    }
    /* backwards in a part begins at the part, never at the file */
    assert_true(setup_bytes_read() - before < text.size + UINT64_C(2000) * (16 << 10));
    uint64_t lines = 0;
    assert_true(tn_fileset_lines_before(files, 0, 8, &lines));
    assert_int_equal(lines, 2);
    assert_false(tn_fileset_lines_before(files, 0, 9, &lines)); /* the file is shorter */
}

TEST(many_bad_records_cost_one_more_pass)
{
    tn_error err = {0};
    tn_text text CLEANUP(tn_text_done) = {0};
    OPEN(setup, s, lines_config);
    make_lines(&text);
    const char *path = setup_file(&s, "rows", text.data, text.size);
    const tn_reader_opts opts = {
        .paths = {1, &path}, .batch_rows = 100, .prefetch = 1, .training = true, .seed = 3};
    uint64_t before = setup_bytes_read();
    assert_int_equal(setup_drain(&s, &opts, &err), TN_END);
    /* every part is read with a quarter megabyte behind its end at most, and once more for lines */
    uint64_t parts = text.size / 16000 + 1;
    assert_true(setup_bytes_read() - before < 2 * text.size + parts * (UINT64_C(512) << 10));
}

/* The one message of a part that begins inside the file. */
TEST(a_line_too_long_is_named_by_its_line_in_every_part)
{
    tn_error err = {0};
    tn_text text CLEANUP(tn_text_done) = {0};
    OPEN(setup, s, "{data: {format: libsvm, part_bytes: 64B, record_bytes_max: 100B}}");
    for (uint32_t i = 0; i < 40; i++) {
        tn_text_adds(&text, "1 2:3\n");
    }
    for (uint32_t i = 0; i < 40; i++) {
        tn_text_adds(&text, i == 0 ? "1" : " 1:2");
    }
    const char *path = setup_file(&s, "rows", text.data, text.size);
    const tn_reader_opts opts = {.paths = {1, &path}, .batch_rows = 100, .prefetch = 1};
    assert_int_equal(setup_drain(&s, &opts, &err), TN_E_DATA);
    assert_non_null(strstr(err.text, "/rows:41:1: error: record longer than record_bytes_max"));
}

/* ---- headers of hosts ---- */

static char last_line[300];
static uint32_t n_lines;

static void keep_line(tn_log_level level, const char *line)
{
    assert_int_equal(level, TN_LOG_WARN);
    (void)snprintf(last_line, sizeof last_line, "%s", line);
    n_lines++;
}

TEST(a_header_without_a_host_is_for_one_host_in_all_lists)
{
    bool is = false;
    if (tn_remotes()->is("http://a.example/1", &is, NULL) != TN_OK) {
        skip(); /* src/extra/remote is not built */
    }
    static const char *const urls[] = {"http://a.example:80/1", "http://a.example:80/2", "x.tsv",
                                       "s3://b/1", "https://c.example/3"};
    tn_error err = {0};
    OPEN(setup, s, libsvm);
    tn_data_opts data = {.train = {3, urls}, .valid = {1, &urls[3]}};
    const tn_strs more = {1, &urls[4]};
    const tn_strs none = {0};
    assert_int_equal(tn_fileset_check_hosts(&data, &more, true, &err), TN_OK); /* no secrets */
    const char line[] = "http_header = Authorization: Bearer hidden\n";
    data.secrets = setup_file(&s, "secrets", line, sizeof line - 1);
    assert_int_equal(chmod(data.secrets, 0600), 0);
    tn_log_set(keep_line, TN_LOG_WARN);
    assert_int_equal(tn_fileset_check_hosts(&data, &none, true, &err), TN_OK);
    assert_int_equal(n_lines, 1);
    assert_non_null(strstr(last_line, "goes to 'a.example:80' where others can read it"));
    assert_int_equal(tn_fileset_check_hosts(&data, &more, false, &err), TN_E_CONFIG);
    assert_non_null(
        strstr(err.text, "names no host, and there are 'a.example:80' and 'c.example'"));
    assert_null(strstr(err.text, "hidden"));
    const char own[] = "http_header c.example = Authorization: Bearer hidden\n";
    data.secrets = setup_file(&s, "secrets", own, sizeof own - 1);
    assert_int_equal(tn_fileset_check_hosts(&data, &more, true, &err), TN_OK);
    assert_int_equal(n_lines, 1); /* that one is encrypted */
    tn_log_set(NULL, TN_LOG_INFO);
}
