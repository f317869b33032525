#!/bin/bash
# make.sh - data/aliccp of Ali-CCP: impressions joined with their common features, as Vowpal Wabbit's text with a namespace
# for each field. What was bought without a click is left out; every tenth row of training validates.
. "$(dirname "$0")/../kit"
takes 4 "sample_skeleton_train.csv common_features_train.csv sample_skeleton_test.csv common_features_test.csv" "$@"
makes data/aliccp train.vw valid.vw test.vw
joined() {
    awk -F , 'function vw(list, f, n, i, p, field, k, by, text) {
            n = split(list, f, "\001"); k = 0; text = ""
            for (i = 1; i <= n; i++) {
                split(f[i], p, "[\002\003]")
                if (!(p[1] in by)) field[++k] = p[1]
                by[p[1]] = by[p[1]] " " p[2] ":" p[3]
            }
            for (i = 1; i <= k; i++) text = text " |" field[i] by[field[i]]
            return text
        }
        NR == FNR { common[$1] = $3; next }
        $2 == 0 && $3 == 1 { next }
        { print $2, "\047" $1 vw($6 ($4 in common ? "\001" common[$4] : "")) }' "$2" "$1"
}
joined "$1" "$2" | awk -v to="$making/" '{ print >(to (NR % 10 ? "train" : "valid") ".vw") }'
joined "$3" "$4" >"$making/test.vw"
made
