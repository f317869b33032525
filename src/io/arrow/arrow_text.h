/* arrow_text.h - the text of values of Arrow that are neither a number nor a text: decimals, dates
 * and times, as ISO 8601 and a CSV file write them.
 *
 *     decimal 1250 of scale 2     12.50            of scale -2: 125000
 *     day 20787                   2026-11-30       years below 0 with -, as -0044-03-15
 *     27000500 milliseconds       07:30:00.500     no fraction where it is 0
 *
 * Pure functions of any value; each returns the length of what it writes, at most
 * TN_ARROW_TEXT_ROOM bytes, without a NUL.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { TN_ARROW_TEXT_ROOM = 256, TN_ARROW_SCALE_MAX = 100 };

/* Writes an integer of 4, 8, 16 or 32 little-endian bytes, divided by 10^scale; |scale| is at most
 * TN_ARROW_SCALE_MAX. */
size_t tn_arrow_write_decimal(char *out, const void *value, uint32_t bytes, int32_t scale);

size_t tn_arrow_write_date(char *out, int64_t days); /* since 1970-01-01 */

/* Writes a time of the day, counted in units of 10^-digits seconds; digits: 0, 3, 6 or 9. */
size_t tn_arrow_write_time(char *out, int64_t time, uint32_t digits);

/* Writes date, blank, and time of a moment since 1970, counted in such units; `zone_s` seconds are
 * added. */
size_t tn_arrow_write_timestamp(char *out, int64_t time, uint32_t digits, int32_t zone_s);

size_t tn_arrow_write_u64(char *out, uint64_t value);
