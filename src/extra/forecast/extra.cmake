tnet_extra(forecast DEPS train KITS train/golden ROWS "train/report/forecast_kinds.def: TN_FORECAST_KIND(forecast)")
