/* cells_format.h - rows of cells (io/arrow/cells.h) as a format, by which readers take rows in
 * memory whatever data.format says of files.
 *
 * A cell means what it would mean in a CSV file that the program had written, so a model learns the
 * same from both. It is in no list: users never name it.
 */
#pragma once

#include "io/format/format.h"

extern const tn_format tn_cells_format;
