/* target.c - the words of targets. */
#include "base/keys/target.h"

#include <stddef.h>

const char *const tn_target_words[] = {"click", "side", "number", "order", NULL};
