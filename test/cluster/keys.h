/* keys.h - folders of keys for tests. */
#pragma once

#include "cluster/security/curvekeys.h"

/* The calls of this machine's libzmq; fails the test without. */
const tn_zmq *keys_zmq(void);

/* A new pair as dir/name.key and dir/name.pub. */
tn_curve_pair keys_make(const char *dir, const char *name);

/* dir/name as one string; lent until the eighth call from now. */
const char *keys_path(const char *dir, const char *name);

/* A file of that text, with that mode. */
void keys_put(const char *path, const char *text, unsigned mode);
