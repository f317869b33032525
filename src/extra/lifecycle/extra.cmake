tnet_extra(lifecycle DEPS cli train metrics ps ROWS "cli/data_tools.def: TN_DATA_TOOL(lifecycle)")
