/* tickets.c - a file in version 4 of MIT Kerberos' format for credential caches: all numbers are
 * big-endian, texts follow their length.
 */
#include "support/tickets.h"

#include "base/core/text.h"
#include "support/served.h"
#include "support/test.h"

#include <unistd.h>

#define REALM "TEST"

/* Ticket of RFC 4120 in DER, with one byte that is no ciphertext. */
static const uint8_t der[] = {
    0x61, 59, 0x30, 57,                                        /* [APPLICATION 1] SEQUENCE */
    0xa0, 3,  0x02, 1,   5,                                    /* tkt-vno */
    0xa1, 6,  0x1b, 4,   'T',  'E', 'S',  'T',                 /* realm */
    0xa2, 28, 0x30, 26,  0xa0, 3,   0x02, 1,   3,              /* sname: of a service .. */
    0xa1, 19, 0x30, 17,                                        /* .. with two parts */
    0x1b, 4,  'H',  'T', 'T',  'P',                            /* */
    0x1b, 9,  '1',  '2', '7',  '.', '0',  '.', '0', '.',  '1', /* */
    0xa3, 12, 0x30, 10,  0xa0, 3,   0x02, 1,   17,  0xa2, 3,   0x04, 1, 0,
};

static void add_number(tn_text *out, uint32_t value, unsigned bytes)
{
    for (unsigned i = bytes; i-- > 0;) {
        const char byte = (char)(value >> 8 * i & 0xff);
        tn_text_add(out, &byte, 1);
    }
}

static void add_bytes(tn_text *out, const void *data, size_t size)
{
    add_number(out, (uint32_t)size, 4);
    tn_text_add(out, data, size);
}

/* A name of one or two parts. */
static void add_principal(tn_text *out, const char *first, const char *second)
{
    add_number(out, 1, 4);
    add_number(out, second != NULL ? 2 : 1, 4);
    add_bytes(out, REALM, strlen(REALM));
    add_bytes(out, first, strlen(first));
    if (second != NULL) {
        add_bytes(out, second, strlen(second));
    }
}

static void add_ticket(tn_text *out, const char *service, const char *host, time_t from,
                       time_t until)
{
    static const uint8_t key[16] = {1, 2, 3};
    add_principal(out, "somebody", NULL);
    add_principal(out, service, host);
    add_number(out, 17, 2); /* aes128-cts-hmac-sha1-96 */
    add_bytes(out, key, sizeof key);
    add_number(out, (uint32_t)from, 4);
    add_number(out, (uint32_t)from, 4);
    add_number(out, (uint32_t)until, 4);
    add_number(out, 0, 4);
    add_number(out, 0, 1);
    for (int i = 0; i < 3; i++) { /* flags, addresses, authorization data */
        add_number(out, 0, 4);
    }
    add_bytes(out, der, sizeof der);
    add_number(out, 0, 4);
}

void tickets_write(const char *dir, time_t from, time_t until)
{
    tn_text out CLEANUP(tn_text_done) = {0};
    add_number(&out, 0x0504, 2);
    add_number(&out, 0, 2);
    add_principal(&out, "somebody", NULL);
    add_ticket(&out, "krbtgt", REALM, from, until);
    add_ticket(&out, "HTTP", "127.0.0.1", from, until);
    served_write(dir, "tickets", out.data, out.size);
}

void tickets_remove(const char *dir)
{
    PATH_IN(path, dir, "tickets");
    (void)unlink(path);
}

/* NOLINTBEGIN(concurrency-mt-unsafe): no thread is there yet */
void tickets_configure(const char *dir)
{
    static const char lines[] = "[libdefaults]\ndefault_realm = " REALM "\nrdns = false\n"
                                "dns_canonicalize_hostname = false\ndns_lookup_kdc = false\n";
    char path[600];
    served_write(dir, "krb5.conf", lines, sizeof lines - 1);
    (void)snprintf(path, sizeof path, "%s/krb5.conf", dir);
    assert_int_equal(setenv("KRB5_CONFIG", path, 1), 0);
    (void)snprintf(path, sizeof path, "FILE:%s/tickets", dir);
    assert_int_equal(setenv("KRB5CCNAME", path, 1), 0);
}
/* NOLINTEND(concurrency-mt-unsafe) */
