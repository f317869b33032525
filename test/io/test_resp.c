/* test_resp.c - a dictionary as commands, and Redis servers that take them, refuse or go away. */
#include "io/dict/resp.h"

#include "support/test.h"

#include "base/core/number.h"
#include "base/file/file.h"
#include "base/keys/record.h"
#include "base/math/key.h"
#include "base/thread/threads.h"
#include "dictfile.h"
#include "io/dict/redis.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef tn_dictfile fixture;

static tn_dict *write_and_open(fixture *f, const tn_dict_spec *spec)
{
    tn_dict *d = NULL;
    tn_dict_written done;
    tn_error err = {0};
    tn_dictrows_sort(f->rows);
    const tn_dict_source source = tn_dictrows_source(f->rows);
    assert_int_equal(tn_remove_file(f->path, NULL), TN_OK);
    if (tn_dict_write(f->path, spec, &source, &done, &err) != TN_OK ||
        tn_dict_open(&d, f->path, TN_VERIFY_FULL, &err) != TN_OK) {
        fail_msg("%s", err.text);
    }
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

static tn_status keep(void *arg, const tn_text *bytes, uint64_t commands, tn_error *err)
{
    (void)commands;
    (void)err;
    tn_text_add(arg, bytes->data, bytes->size);
    return TN_OK;
}

/* The next word "$n\r\n..\r\n" of a command. */
static tn_resp_word next_word(const char **at, const char *end)
{
    uint64_t size = 0;
    const char *from = *at + 1;
    assert_true(*at < end && **at == '$');
    const char *stop = memchr(from, '\r', (size_t)(end - from));
    assert_non_null(stop);
    assert_int_equal(tn_read_u64(from, (size_t)(stop - from), &size), TN_NUM_OK);
    const tn_resp_word word = {stop + 2, (size_t)size};
    assert_true(word.data + size + 2 <= end);
    assert_memory_equal(word.data + size, "\r\n", 2);
    *at = word.data + size + 2;
    return word;
}

/* The next command SET; false behind the last. */
static bool next_set(const char **at, const char *end, tn_resp_word *key, tn_resp_word *value)
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

TEST(golden_command)
{
    static const char want[] =
        "*3\r\n$3\r\nSET\r\n$20\r\ntnet:00010203:user:1\r\n$13\r\n\0\0\0\0\x3f"
        "\0\0\x80\x3f\0\0\0\xc0\r\n";
    fixture *f = *state;
    tn_text stream = {0};
    tn_error err = {0};
    const tn_dict_spec spec = spec_of();
    add_golden_rows(f);
    tn_dict *d = write_and_open(f, &spec);
    assert_int_equal(tn_resp_rows(d, TN_RESP_TEXT, keep, &stream, &err), TN_OK);
    assert_int_equal(sizeof want - 1, 60);
    assert_memory_equal(stream.data, want, sizeof want - 1);
    tn_text_clear(&stream);
    tn_resp_current(d, &stream);
    assert_string_equal(tn_text_str(&stream), "*3\r\n$3\r\nSET\r\n$12\r\ntnet:current\r\n$13\r\n"
                                              "tnet:00010203\r\n");
    tn_text_done(&stream);
    tn_dict_close(d);
}

/* 1 of user, by docs/formats.md section 4: z = 1 ^ 3da0fd9c44cfc9ee, mix(z) = 4b3b8c985678630a,
 * which begins with a line's end. The other sign was chosen for its key, 2a0a0d000a0d2a00: zeros,
 * lines' ends and a '*' are bytes as any, and go first, since rows are in the order of keys. No
 * word of it asks for groups. */
TEST(golden_keys_of_8_bytes)
{
    static const char want[] = "*3\r\n$3\r\nSET\r\n$22\r\ntnet:00010203:\0*\r\n\0\r\n*\r\n$13\r\n"
                               "\0\0\0\x80\x3e\0\0\0\x40\0\0\x40\x40\r\n"
                               "*3\r\n$3\r\nSET\r\n$22\r\ntnet:00010203:\ncxV\x98\x8c;K\r\n$13\r\n"
                               "\0\0\0\0\x3f\0\0\x80\x3f\0\0\0\xc0\r\n"
                               "*3\r\n$3\r\nSET\r\n$18\r\ntnet:00010203:meta\r\n$";
    static const char meta[] = "\r\n{\"model_id\":\"000102030405060708090a0b0c0d0e0f\","
                               "\"keys\":\"key8\",\"segments\":[\"wide\",\"deep\"],\"groups\":["
                               "{\"name\":\"user\",\"salt\":\"3da0fd9c44cfc9ee\"},";
    fixture *f = *state;
    tn_text stream = {0};
    tn_error err = {0};
    tn_dict_spec spec = spec_of();
    spec.check_groups = false;
    f->rows->n = 0;
    tn_dictrows_add(f->rows, &tn_dictrows_layout, 0, 1, 3, (const float[]){.5F, 1, -2});
    tn_dictrows_add(f->rows, &tn_dictrows_layout, 0, UINT64_C(0x997636857796f9b4), 3,
                    (const float[]){.25F, 2, 3});
    tn_dict *d = write_and_open(f, &spec);
    assert_int_equal(tn_resp_rows(d, TN_RESP_KEY8, keep, &stream, &err), TN_OK);
    assert_true(stream.size > sizeof want + sizeof meta);
    assert_memory_equal(stream.data, want, sizeof want - 1);
    assert_memory_equal(strchr(stream.data + sizeof want - 1, '\r'), meta, sizeof meta - 1);
    tn_text_done(&stream);
    tn_dict_close(d);
}

/* Read back by the description alone, as a service in another language would. */
TEST(every_row_is_in_the_stream)
{
    fixture *f = *state;
    const tn_dict_spec spec = spec_of();
    f->rows->n = 0;
    for (uint32_t i = 0; i < 4000; i++) {
        tn_dictrows_add(f->rows, &tn_dictrows_layout, (uint16_t)(i % 2), i, (uint16_t)(1 + i % 3),
                        NULL);
    }
    tn_dict *d = write_and_open(f, &spec);
    tn_text stream = {0};
    tn_error err = {0};
    assert_int_equal(tn_resp_rows(d, TN_RESP_TEXT, keep, &stream, &err), TN_OK);
    const char *at = stream.data;
    const char *end = at + stream.size;
    uint32_t n = 0;
    tn_resp_word key = {0};
    tn_resp_word value = {0};
    while (next_set(&at, end, &key, &value) && at < end) {
        const bool user = memcmp(key.data, "tnet:00010203:user:", 19) == 0;
        uint64_t sign = 0;
        assert_true(user || memcmp(key.data, "tnet:00010203:item:", 19) == 0);
        assert_int_equal(tn_read_u64(key.data + 19, key.size - 19, &sign), TN_NUM_OK);
        const uint32_t table = (uint8_t)value.data[0];
        const tn_dict_table_head *t = tn_dict_table_at(d, table);
        const tn_dict_query query = {tn_key_of(sign, tn_dict_salt(d, user ? 0 : 1)), user ? 0 : 1};
        tn_dict_row row;
        assert_int_equal(value.size, 1 + t->stride);
        assert_int_equal(tn_dict_find_all(d, 1, &query, &row, &err), TN_OK);
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
    tn_text_done(&stream);
    tn_dict_close(d);
}

TEST(what_is_no_whole_dictionary_is_refused)
{
    fixture *f = *state;
    tn_error err = {0};
    tn_text stream = {0};
    tn_dict_spec spec = spec_of();
    add_golden_rows(f);
    spec.delta = true;
    tn_dict *d = write_and_open(f, &spec);
    assert_int_equal(tn_resp_rows(d, TN_RESP_TEXT, keep, &stream, &err), TN_E_CKPT);
    assert_non_null(strstr(err.text, "a delta"));
    tn_dict_close(d);
    spec.delta = false;
    spec.check_groups = false;
    d = write_and_open(f, &spec);
    assert_int_equal(tn_resp_rows(d, TN_RESP_TEXT, keep, &stream, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "does not store groups"));
    tn_dict_close(d);
    tn_text_done(&stream);
}

TEST(addresses)
{
    static const struct {
        const char *url, *host, *port, *user, *password, *db;
    } good[] = {{"redis://h", "h", "6379", "", "", "0"},
                {"redis://h/", "h", "6379", "", "", "0"},
                {"redis://10.0.0.1:7000/15", "10.0.0.1", "7000", "", "", "15"},
                {"redis://:p@ss:word@h:1", "h", "1", "", "p@ss:word", "0"},
                {"redis://me:secret@[::1]:7/2", "::1", "7", "me", "secret", "2"},
                {"redis://[fe80::1]", "fe80::1", "6379", "", "", "0"}};
    static const char *const bad[] = {
        "redis://",       "redis://:80",       "redis://h:",   "redis://h:x",
        "redis://h/name", "redis://h:1234567", "redis://[::1", "redis://[::1]x",
        "redis://me@h",   "redis://h/1/2",     "redis://[]:1"};
    tn_redis_address a;
    tn_error err = {0};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(tn_redis_read_url(&a, good[i].url, &err), TN_OK);
        assert_string_equal(a.host, good[i].host);
        assert_string_equal(a.port, good[i].port);
        assert_string_equal(a.user, good[i].user);
        assert_string_equal(a.password, good[i].password);
        assert_string_equal(a.db, good[i].db);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(tn_redis_read_url(&a, bad[i], &err), TN_E_USAGE);
        assert_null(strstr(err.text, "me@"));
    }
}

/* ---- a server of our own ---- */

typedef struct server {
    int listener;
    uint16_t port;
    uint32_t answers;  /* +OK until then .. */
    const char *bad;   /* .. this; NULL: the connection is closed */
    bool drips;        /* .. `bad` again and again, for some seconds at most */
    uint32_t commands; /* that came, at the end */
    tn_text got;
} server;

static uint32_t commands_in(const tn_text *t)
{
    uint32_t n = 0;
    for (const char *at = t->data; at != NULL && (at = strchr(at, '*')) != NULL; at++) {
        n += at == t->data || at[-1] == '\n';
    }
    return n;
}

/* Until the other side leaves, but not for ever; false: it has left. */
static bool drip(const server *s, int fd)
{
    bool there = true;
    for (uint32_t i = 0; i < 500 && there; i++) {
        there = send(fd, s->bad, strlen(s->bad), MSG_NOSIGNAL) > 0;
        (void)usleep(5000);
    }
    return there;
}

/* Rows of the test hold no '*' behind a line's end, and no zero bytes count: see fill. */
static tn_status serve(void *arg, tn_error *err)
{
    server *s = arg;
    char bytes[4096];
    ssize_t n = 0;
    uint32_t answered = 0;
    (void)err;
    const int fd = accept(s->listener, NULL, NULL);
    while (fd >= 0 && (n = recv(fd, bytes, sizeof bytes, 0)) > 0) {
        for (ssize_t i = 0; i < n; i++) {
            bytes[i] = (char)(bytes[i] == '\0' ? '0' : bytes[i]);
            tn_text_addc(&s->got, bytes[i]);
        }
        s->commands = commands_in(&s->got);
        for (; answered < s->commands && answered < s->answers; answered++) {
            (void)send(fd, "+OK\r\n", 5, MSG_NOSIGNAL);
        }
        if (s->commands > s->answers) {
            if (s->bad == NULL) {
                break;
            }
            (void)send(fd, s->bad, strlen(s->bad), MSG_NOSIGNAL);
            s->answers = UINT32_MAX;
            if (s->drips && drip(s, fd)) {
                break;
            }
        }
    }
    (void)close(fd);
    return TN_OK;
}

static void open_server(server *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(s->listener >= 0);
    assert_int_equal(bind(s->listener, (const struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(s->listener, 1), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&a, &size), 0);
    s->port = ntohs(a.sin_port);
}

static tn_status send_to(server *s, const tn_dict *d, const char *login, tn_error *err)
{
    char url[100];
    uint64_t commands = 0;
    tn_redis_address to;
    tn_thread *thread = NULL;
    (void)snprintf(url, sizeof url, "redis://%s127.0.0.1:%u/3", login, s->port);
    assert_int_equal(tn_redis_read_url(&to, url, err), TN_OK);
    assert_int_equal(tn_thread_start(&thread, "server", serve, s, err), TN_OK);
    const tn_status status = tn_redis_send(&to, d, TN_RESP_TEXT, NULL, &commands, err);
    assert_int_equal(tn_thread_join(thread, NULL), TN_OK);
    (void)close(s->listener);
    assert_true(status != TN_OK || commands == s->commands);
    return status;
}

TEST(a_server_gets_all_and_the_switch_last)
{
    fixture *f = *state;
    const tn_dict_spec spec = spec_of();
    server s = {.answers = UINT32_MAX};
    tn_error err = {0};
    add_golden_rows(f);
    tn_dict *d = write_and_open(f, &spec);
    open_server(&s);
    if (send_to(&s, d, "me:secret@", &err) != TN_OK) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(s.commands, 1 + 1 + 3 + 1 + 1);
    static const char begin[] =
        "*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$6\r\nsecret\r\n*2\r\n$6\r\nSELECT\r\n"
        "$1\r\n3\r\n*3\r\n$3\r\nSET\r\n";
    assert_memory_equal(s.got.data, begin, sizeof begin - 1);
    tn_text last = {0};
    tn_resp_current(d, &last);
    assert_string_equal(s.got.data + s.got.size - last.size, tn_text_str(&last));
    tn_text_done(&last);
    tn_text_done(&s.got);
    tn_dict_close(d);
}

/* Whatever the n-th answer is, the switch was not sent, and one sentence says what came. */
TEST(a_server_that_refuses_or_goes_is_told)
{
    static const struct {
        const char *bad, *says;
    } faults[] = {{"-OOM command not allowed\r\n", "answers '-OOM command not allowed'"},
                  {"-NOAUTH Authentication required.\r\n", "answers '-NOAUTH Auth"},
                  {"-ERR\x1b no\r\n", "answers '-ERR? no'"},
                  {"$3\r\n", "answers '$3'"},
                  {NULL, "is gone after"}};
    fixture *f = *state;
    const tn_dict_spec spec = spec_of();
    add_golden_rows(f);
    tn_dict *d = write_and_open(f, &spec);
    for (uint32_t i = 0; i < 5; i++) {
        for (uint32_t n = 0; n < 1 + 3 + 1; n++) {
            server s = {.answers = n, .bad = faults[i].bad};
            tn_error err = {0};
            open_server(&s);
            assert_int_equal(send_to(&s, d, "", &err), TN_E_PEER);
            if (strstr(err.text, faults[i].says) == NULL) {
                fail_msg("'%s' says not '%s'", err.text, faults[i].says);
            }
            assert_non_null(strstr(err.text, "readers have not switched"));
            assert_null(strstr(tn_text_str(&s.got), "tnet:current"));
            tn_text_done(&s.got);
        }
    }
    tn_dict_close(d);
}

TEST(bytes_that_are_no_answer_are_no_progress)
{
    fixture *f = *state;
    server s = {.answers = 3, .bad = "\r", .drips = true};
    tn_error err = {0};
    const tn_dict_spec spec = spec_of();
    add_golden_rows(f);
    tn_dict *d = write_and_open(f, &spec);
    open_server(&s);
    (void)setenv("TNET_SILENCE", "100", 1); /* NOLINT(concurrency-mt-unsafe): alone */
    assert_int_equal(send_to(&s, d, "", &err), TN_E_PEER);
    (void)unsetenv("TNET_SILENCE"); /* NOLINT(concurrency-mt-unsafe) */
    assert_non_null(strstr(err.text, "no whole answer has come"));
    tn_text_done(&s.got);
    tn_dict_close(d);
}

TEST(nobody_there_is_told)
{
    fixture *f = *state;
    server s = {0};
    char url[100];
    uint64_t commands = 0;
    tn_redis_address to;
    tn_error err = {0};
    const tn_dict_spec spec = spec_of();
    add_golden_rows(f);
    tn_dict *d = write_and_open(f, &spec);
    open_server(&s);
    (void)close(s.listener);
    (void)snprintf(url, sizeof url, "redis://:secret@127.0.0.1:%u", s.port);
    assert_int_equal(tn_redis_read_url(&to, url, &err), TN_OK);
    assert_int_equal(tn_redis_send(&to, d, TN_RESP_TEXT, NULL, &commands, &err), TN_E_PEER);
    assert_non_null(strstr(err.text, "no connection to Redis at '127.0.0.1:"));
    assert_non_null(strstr(err.text, "Connection refused"));
    assert_null(strstr(err.text, "secret"));
    tn_dict_close(d);
}

TEST(a_signal_ends_it)
{
    fixture *f = *state;
    server s = {.answers = UINT32_MAX};
    const atomic_bool stop = true;
    char url[100];
    uint64_t commands = 0;
    tn_redis_address to;
    tn_error err = {0};
    const tn_dict_spec spec = spec_of();
    add_golden_rows(f);
    tn_dict *d = write_and_open(f, &spec);
    open_server(&s); /* nobody accepts: the connection waits in its queue */
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%u", s.port);
    assert_int_equal(tn_redis_read_url(&to, url, &err), TN_OK);
    assert_int_equal(tn_redis_send(&to, d, TN_RESP_TEXT, &stop, &commands, &err), TN_E_STOPPED);
    (void)close(s.listener);
    tn_dict_close(d);
}
