/* test_netlist.c - networks as people write them, and who lies in them. */
#include "cluster/launch/netlist.h"
#include "support/test.h"

static bool lies_in(const char *network, const char *address)
{
    tn_subnet net;
    tn_error err = {0};
    assert_ok(tn_net_read(network, &net, &err), err.text);
    return tn_nets_have(&net, 1, address);
}

TEST(addresses_lie_in_their_networks_and_in_no_other)
{
    static const struct {
        const char *net, *in, *out;
    } cases[] = {
        {"10.0.0.0/8", "10.255.3.4", "11.0.0.1"},
        {"10.1.2.3", "10.1.2.3", "10.1.2.4"},
        {"192.168.4.0/22", "192.168.7.255", "192.168.8.0"},
        {"192.168.4.128/25", "192.168.4.128", "192.168.4.127"},
        {"172.16.0.0/12", "172.31.0.1", "172.32.0.1"},
        {"0.0.0.0/0", "203.0.113.9", "2001:db8::1"},
        {"fd00:12::/32", "fd00:12:ffff::1", "fd00:13::1"},
        {"2001:db8::7", "2001:db8::7", "2001:db8::8"},
        {"2001:db8::/33", "2001:db8:7fff::", "2001:db8:8000::"},
        {"::1", "::1", "::2"},
        {"::/0", "2001:db8::1", ""},
        {"10.0.0.0/8", "::ffff:10.9.8.7", "::ffff:9.9.8.7"},
        {"fe80::/10", "fe80::1%eth0", "fec0::1%eth0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(lies_in(cases[i].net, cases[i].in));
        assert_false(lies_in(cases[i].net, cases[i].out));
    }
}

TEST(what_is_no_address_lies_nowhere)
{
    static const char *const texts[] = {
        "",
        "localhost",
        "10.0.0",
        "10.0.0.256",
        "10.0.0.1:80",
        "[::1]",
        "0x0a.0.0.1",
        "%eth0",
        "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc:dddd:eeee"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_false(lies_in("0.0.0.0/0", texts[i]));
        assert_false(lies_in("::/0", texts[i]));
    }
    assert_false(tn_nets_have(NULL, 0, "127.0.0.1"));
}

TEST(a_list_is_searched_to_its_end)
{
    tn_subnet net[3];
    assert_int_equal(tn_net_read("10.0.0.0/24", &net[0], NULL), TN_OK);
    assert_int_equal(tn_net_read("fd00::/8", &net[1], NULL), TN_OK);
    assert_int_equal(tn_net_read("192.0.2.1", &net[2], NULL), TN_OK);
    assert_true(tn_nets_have(net, 3, "192.0.2.1"));
    assert_false(tn_nets_have(net, 2, "192.0.2.1"));
    assert_false(tn_nets_have(net, 3, "192.0.2.2"));
}

TEST(faults_say_what_a_network_looks_like)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "'' is neither an address nor a network such as 10.0.0.0/8"},
        {"example.com", "'example.com' is neither"},
        {"10.0.0/8", "'10.0.0/8' is neither"},
        {"10.0.0.0/33", "the prefix of '10.0.0.0/33' is not a number of 0 to 32 bits"},
        {"10.0.0.0/", "the prefix of '10.0.0.0/' is not"},
        {"10.0.0.0/8x", "the prefix of '10.0.0.0/8x' is not"},
        {"fd00::/129", "the prefix of 'fd00::/129' is not a number of 0 to 128 bits"},
        {"10.0.0.5/8", "'10.0.0.5/8' has bits set behind its prefix (did you mean '10.0.0.0/8'?)"},
        {"fd00::1/8", "(did you mean 'fd00::/8'?)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_subnet net = {.bits = 7};
        tn_error err = {0};
        assert_int_equal(tn_net_read(cases[i].text, &net, &err), TN_E_CONFIG);
        assert_says(err.text, cases[i].want);
        assert_int_equal(net.bits, 7);
    }
}
