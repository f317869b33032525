tnet_extra(tune PROGRAM tnet_tune DEPS train metrics io ROWS "train/config/sections.def: TN_SECTION(tune, \"what tnet-tune tries\")")
