/* yaml_flow.h - the few words of YAML in which option tables write their defaults.
 *
 *     adam      ~      [auc, logloss]      {type: adam, lr: 1e-3}      {uniform: [-0.01, 0.01]}
 *
 * For text that is part of the program: what is wrong in it is a bug. Users' YAML
 * is read by config/yaml.h.
 */
#ifndef TN_CONFIG_YAML_FLOW_H
#define TN_CONFIG_YAML_FLOW_H

#include "config/tree.h"

/* Every node has the origin {source}. */
tn_tree *tn_flow_read(tn_arena *arena, const char *text, const char *source);

#endif
