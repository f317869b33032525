tnet_extra(dump DEPS train ps nn dict KITS train/exportkit
  ROWS "train/begin/weight_sources.def: TN_WEIGHT_SOURCE(dump)" "train/config/export_files.def: TN_EXPORT_FILE(tsv)")
