/* layerblocks.h - named parts of a list of layers, with arguments, written once and used several
 * times.
 *
 *     blocks:
 *       tower:
 *         args: [x]
 *         layers:
 *           - {name: h, dense: x, units: 64, activation: relu}
 *           - {name: y, dense: h, units: 16}
 *         output: y
 *     layers:
 *       - {name: user, block: tower, x: user_slots}
 *       - {name: item, block: tower, x: [item_slots, num], weights: tower}
 *
 * A block knows its arguments and its own layers, nothing else; it may use other blocks, not
 * itself. The use "user" is the layers "user.h" and "user.y", and a layer "user" that is the
 * output. Weights are those of these names, or with `weights: tower` "tower.h.W" .., which all uses
 * that say so share; running values are always the layer's own.
 */
#pragma once

#include "config/values.h"

/* Returns the list with the layers of each block in place of its use: plain layers, which keep
 * their origins. Lives in b->arena. `blocks` NULL: there are none. NULL: a fault in b->diag. */
tn_tree *tn_blocks_write_out(const tn_tree *blocks, const tn_tree *layers, const tn_binder *b);
