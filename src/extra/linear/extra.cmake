tnet_extra(linear DEPS train
  ROWS "train/begin/weight_sources.def: TN_WEIGHT_SOURCE(vw)" "train/begin/weight_sources.def: TN_WEIGHT_SOURCE(xlearn)")
