/* dataframe_words.h - what dataframes write where others write an integer.
 *
 *     1.0, -7.00    1, -7       a column of integers in which something is missing becomes one of
 * floats True, FALSE   1, 0        of either case nan, NaN      nothing
 *
 * Asked only once a field was not what was expected, so that all others pay nothing for it.
 */
#ifndef TN_IO_DATAFRAME_WORDS_H
#define TN_IO_DATAFRAME_WORDS_H

#include "base/core/bytes.h"

bool tn_frame_missing(const char *text, size_t size); /* nan */

/* The plain integer that the field stands for, within it or static; size 0: it is missing; failed:
 * it is none of the above. */
tn_bytes tn_frame_plain(const char *text, size_t size);

#endif
