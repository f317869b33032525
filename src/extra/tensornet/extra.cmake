tnet_extra(tensornet DEPS cli train KITS train/golden
  ROWS "train/begin/weight_sources.def: TN_WEIGHT_SOURCE(tensornet)" "cli/data_tools.def: TN_DATA_TOOL(ckpt)")
