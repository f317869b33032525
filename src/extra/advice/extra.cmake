tnet_extra(advice DEPS train models metrics ROWS "train/run/modules.def: TN_MODULE(advise)")
