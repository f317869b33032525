tnet_extra(inspect DEPS cli train io KITS io/setup io/datasets
  ROWS "cli/data_tools.def: TN_DATA_TOOL(infer)" "cli/data_tools.def: TN_DATA_TOOL(check)"
    "cli/data_tools.def: TN_DATA_TOOL(stat)" "cli/data_tools.def: TN_DATA_TOOL(sample)")
