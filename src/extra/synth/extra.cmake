tnet_extra(synth DEPS cli train io KITS io/datasets ROWS "cli/data_tools.def: TN_DATA_TOOL(gen)")
