/* configfile.h - the layers of a configuration, one tree each; part of config.c. */
#ifndef TN_TRAIN_CONFIGFILE_H
#define TN_TRAIN_CONFIGFILE_H

#include "train/config/config.h"

/* The file with what it includes below it, later ones on top; NULL: reported. */
tn_tree *tn_config_file(const tn_binder *b, const tn_field *fields, const char *path) TN_MUST_USE;

/* {a: {b: value}} from "a.b=value"; NULL: reported. */
tn_tree *tn_config_override(const tn_binder *b, const char *assignment) TN_MUST_USE;

/* The same from "TNET_A__B=value". */
tn_tree *tn_config_variable(const tn_binder *b, const char *variable) TN_MUST_USE;

/* Whether a variable of the environment is meant for the configuration: TNET_A__B, or TNET_A where
 * `a` is a section. Others that begin with TNET_ belong to other parts of the program. */
bool tn_is_config_variable(const tn_field *fields, const char *variable);

#endif
