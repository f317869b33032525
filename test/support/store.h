/* store.h - a server of files over HTTP, S3 and WebHDFS, with faults: what tests of remote data
 * talk to.
 *
 *     http://127.0.0.1:PORT/a.csv                    DIR/a.csv
 *     http://127.0.0.1:PORT/BUCKET/KEY               the same as s3://BUCKET/KEY in path style;
 *     http://127.0.0.1:PORT/BUCKET?list-type=2&..    .. lists, two keys a page
 *     http://127.0.0.1:PORT/webhdfs/v1/PATH?op=..    OPEN (a redirect), LISTSTATUS, GETFILESTATUS
 *
 * It takes files, too: PUT of a key, whole or in parts (which wait in DIR/.parts), and of WebHDFS
 * CREATE (a redirect; the file grows as bytes come), RENAME, DELETE.
 *
 * A bucket "signed" wants valid signatures of key AKID with secret STORE_SECRET; lists of "badlist"
 * do not say how they go on, those of "deadlist" do not come, those of "hugelist" have pages of 16
 * MiB. Without end are "roundlist" (one token, ever other names), "freshlist" (the first page with
 * other tokens) and "emptylist" (likewise, and nothing on it). The second port is a NameNode on
 * standby. A segment "!word" in a path (a link to '.' in DIR) is a fault:
 *
 *     !cut       every 2nd answer ends in the middle
 *     !bits      every answer ends after 100,000 bytes
 *     !crumbs    .. after 100 bytes
 *     !stall     every 3rd stops in the middle
 *     !slow      every 4th drips
 *     !creep     the 2nd ends in the middle, the first half of later ones takes a second or more
 *     !busy      each range is 503 with Retry-After twice
 *     !flood     all are 503
 *     !later     likewise, with a Retry-After of an hour
 *     !change    another object from the 4th request on
 *     !sneak     the same, and conditions are ignored
 *     !expire    from the 4th request on only the token "new" is taken
 *     !shift     a range begins one byte behind what was asked for
 *     !noranges  200 for every range
 *     !whole     a DataNode that takes neither offset nor length, but of a first look (64 bytes)
 *     !bare      no length beside 416
 *     !chunked   200 without length, of a DataNode the bytes asked for
 *     !nolength  200 that ends with the connection
 *     !notag     no ETag, no Last-Modified
 *     !forget    neither from the 3rd request on
 *     !twice     two lengths, the second one the half
 *     !wrong     announces 10 bytes too many
 *     !loop      redirects to itself
 *     !hop       redirects to the path without it
 *     !denied    403
 *     !rude      403 for a reason that holds control characters and a line of its own; so does the
 *                region that !hop tells
 *     !once      403 for a DataNode's address that has been used
 *     !safe      a NameNode in safe mode, where each request is refused twice
 *     !sick      500 of the NameNode that is on standby else
 *     !kerberos  a NameNode that knows whom by a ticket or a token: 401 without, 403 to a user.name
 *     !badticket one that takes no ticket
 *     !httpfs    the place that it redirects to wants a ticket
 *     !dead      no answer, ever, nor to what is sent; a file DIR/asked shows the request
 *
 * Of files that are sent every request of its own (method, path, query without uploadId) is counted
 * for itself:
 *
 *     !cut       the first one ends in the middle of the body
 *     !stall     the first one is not read to its end
 *     !slow      the first one is read drop by drop
 *     !mute      the first one is done, and not answered
 *     !spoil     a bit of the first one changes on its way
 *     !swap      the first one is answered with the ETag of something else, all of !liar,
 *                 whose DataNode keeps the half
 *     !full      there is no room, but for the first part of several
 *     !old       RENAME knows no options
 *     !hang      no request is read to its end
 */
#pragma once

#include <stdint.h>

#define STORE_SECRET "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

typedef struct store store;

store *store_open(const char *dir); /* NULL: errno says why */
void store_close(store *s);
/* Waits until the server has read and answered all that closed clients have sent: requests that a
 * client gave up still come in, and would be counted as the next one's. No client may be connected.
 */
void store_await_idle(const store *s);
unsigned store_port(const store *s);
unsigned store_standby_port(const store *s);
uint64_t store_requests(const store *s); /* so far */
uint64_t store_held(const store *s);     /* requests so far that are not answered, ever */
uint64_t store_connections(const store *s);
/* Requests whose headers have shown a secret where none was to be sent. */
uint64_t store_leaks(const store *s);
uint64_t store_tickets(const store *s); /* requests to a NameNode with a ticket */
