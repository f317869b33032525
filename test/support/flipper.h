/* flipper.h - a TCP proxy that turns bits of bytes that pass, as a broken network card would.
 *
 *     static const flip at[] = {{.connection = 0, .back = true, .byte = 70}};
 *     flipper *f = flipper_open(port_of_peer, at, 1, 0, 0);
 *     tn_link_dial(link, 1, 127.0.0.1:flipper_port(f))
 *     ..
 *     flipper_close(f);
 *
 * Connections are counted from 0, bytes of each direction from 0. One thread; a connection that
 * ends on one side is ended on the other.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct flip {
    uint32_t connection;
    bool back; /* what is sent to the one who has dialled */
    uint64_t byte;
} flip;

typedef struct flipper flipper;

/* Between who dials and 127.0.0.1:`to`. Turns a bit of these bytes, a list that must outlive it,
 * and of a chunk with the probability `rate`, by the seed. Fails the test when it cannot. */
flipper *flipper_open(uint32_t to, const flip *at, uint32_t n, double rate, uint64_t seed);
void flipper_close(flipper *f);

uint32_t flipper_port(const flipper *f);

/* Bytes that were changed, and connections that were accepted. */
uint32_t flipper_flips(const flipper *f);
uint32_t flipper_connections(const flipper *f);
