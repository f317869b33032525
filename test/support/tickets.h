/* tickets.h - a Kerberos credential cache without a KDC: a ticket for HTTP/127.0.0.1 of a realm
 * that does not exist, which the client's library takes and only a server with its key could read.
 *
 *     tickets_configure(dir);                      in main, before threads: KRB5_CONFIG, KRB5CCNAME
 *     tickets_write(dir, now - 60, now + 3600);
 *     tickets_remove(dir);
 */
#pragma once

#include <time.h>

void tickets_configure(const char *dir);
void tickets_write(const char *dir, time_t from, time_t until);
void tickets_remove(const char *dir);
