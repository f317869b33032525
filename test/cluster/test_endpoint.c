/* test_endpoint.c - addresses of peers: written, read, judged. */
#include "cluster/launch/endpoint.h"
#include "support/test.h"

static tn_endpoint read(const char *text)
{
    tn_endpoint e;
    tn_error err = {0};
    assert_ok(tn_endpoint_read(text, TN_ENDPOINT_PORT, &e, &err), err.text);
    return e;
}

TEST(addresses_are_written_as_zeromq_wants_them)
{
    static const struct {
        const char *text, *want;
        bool inside;
    } cases[] = {
        {"gpu7:4000", "tcp://gpu7:4000", false},
        {"gpu7", "tcp://gpu7:4770", false},
        {"tcp://a-b_c.example.com:1", "tcp://a-b_c.example.com:1", false},
        {"10.1.0.7:65535", "tcp://10.1.0.7:65535", false},
        {"[fd00::7]:4000", "tcp://[fd00::7]:4000", false},
        {"[fd00::7]", "tcp://[fd00::7]:4770", false},
        {"*:0", "tcp://*:0", false},
        {"0.0.0.0:0", "tcp://0.0.0.0:0", false},
        {"127.0.0.1:5", "tcp://127.0.0.1:5", true},
        {"127.9.9.9:5", "tcp://127.9.9.9:5", true},
        {"[::1]:5", "tcp://[::1]:5", true},
        {"localhost:5", "tcp://localhost:5", true},
        {"128.0.0.1:5", "tcp://128.0.0.1:5", false},
        {"localhost.example:5", "tcp://localhost.example:5", false},
        {"ipc:///run/x/0.sock", "ipc:///run/x/0.sock", true},
        {"ipc://runs/x/sockets/0.sock", "ipc://runs/x/sockets/0.sock", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[TN_ENDPOINT_SIZE];
        tn_endpoint e = read(cases[i].text);
        tn_endpoint_write(&e, text);
        assert_string_equal(text, cases[i].want);
        assert_int_equal(tn_endpoint_is_inside(&e), cases[i].inside);
        tn_endpoint again = read(text);
        assert_memory_equal(&again, &e, sizeof e);
    }
}

TEST(what_is_no_address_is_a_sentence)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "'' is no address of a peer, such as host:4770"},
        {":4000", "is no address of a peer"},
        {"tcp://", "is no address of a peer"},
        {"ipc://", "is no address of a peer"},
        {"udp://a:1", "the port of 'udp://a:1' is not a number"},
        {"a b:1", "is no address of a peer"},
        {"a/b:1", "is no address of a peer"},
        {"fd00::7", "the port of 'fd00::7' is not a number"},
        {"[fd00::7", "is no address of a peer"},
        {"[10.0.0.1]:4", "is no address of a peer"},
        {"[]:4", "is no address of a peer"},
        {"[fd00::7]x", "is no address of a peer"},
        {"[fe80::1%eth0]:9", "is no address of a peer"},
        {"a:", "the port of 'a:' is not a number of 0 to 65535"},
        {"a:65536", "the port of 'a:65536' is not"},
        {"a:1x", "the port of 'a:1x' is not"},
        {"a:-1", "the port of 'a:-1' is not"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_endpoint e = {.port = 7};
        tn_error err = {0};
        assert_int_equal(tn_endpoint_read(cases[i].text, 1, &e, &err), TN_E_CONFIG);
        assert_says(err.text, cases[i].want);
        assert_int_equal(e.port, 7);
    }
}

TEST(paths_and_names_end_where_the_system_does)
{
    char text[400] = "ipc://";
    tn_endpoint e;
    tn_error err = {0};
    memset(text + 6, 'p', 107);
    assert_int_equal(tn_endpoint_read(text, 0, &e, &err), TN_OK);
    text[6 + 107] = 'p';
    assert_int_equal(tn_endpoint_read(text, 0, &e, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "the path of a socket has 108 bytes, more than 107"));
    memset(text, 'h', 255);
    text[255] = '\0';
    assert_int_equal(tn_endpoint_read(text, 65535, &e, &err), TN_OK);
    char whole[TN_ENDPOINT_SIZE];
    tn_endpoint_write(&e, whole);
    assert_int_equal(strlen(whole), 6 + 255 + 6);
    text[255] = 'h';
    text[256] = '\0';
    assert_int_equal(tn_endpoint_read(text, 0, &e, &err), TN_E_CONFIG);
}
