/* exported_group.h - the segments of one share group's rows in an export, and their places in the
 * dictionary; for the files that read a model and score with it. */
#ifndef TN_SERVE_EXPORTED_GROUP_H
#define TN_SERVE_EXPORTED_GROUP_H

#include "base/keys/init.h"
#include "base/keys/record.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_exported_group {
    tn_record record;
    uint32_t in_dict;                  /* the dictionary's number of the group, in every layer */
    uint32_t segment[TN_SEGMENTS_MAX]; /* the dictionary's numbers of the record's segments */
    bool missing_init;                 /* a key without a row reads as first values */
    tn_init init[TN_SEGMENTS_MAX];
} tn_exported_group;

#endif
