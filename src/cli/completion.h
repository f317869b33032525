/* completion.h - scripts by which a shell completes the words of a program, from its tables.
 *
 *     source <(tnet-train --completion)            # bash
 *     tnet-train --completion=zsh >_tnet-train     # zsh, in a folder of $fpath
 *     tnet-train --completion=fish | source        # fish
 *
 * Each knows the options with their help, the commands of a program that has some, files, and the
 * keys of the configuration. `cmake --install` puts all of them where the shells look.
 */
#pragma once

#include "cli/options.h"

/* All append to `out`, whose check reports a lack of room. */
void tn_completion_bash(tn_text *out, const tn_program *p);
void tn_completion_zsh(tn_text *out, const tn_program *p);
void tn_completion_fish(tn_text *out, const tn_program *p);
