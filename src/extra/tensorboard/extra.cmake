tnet_extra(tensorboard DEPS train ROWS "train/run/modules.def: TN_MODULE(tensorboard)")
