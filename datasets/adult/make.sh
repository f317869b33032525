#!/bin/bash
# make.sh - data/adult of the census income set: a header in front of each file, without its comment and blank lines.
. "$(dirname "$0")/../kit"
takes 2 "adult.data adult.test" "$@"
is_file "$1" 5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d
is_file "$2" a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05
makes data/adult train.csv.gz test.csv.gz
compress() {
    echo "age, workclass, fnlwgt, education, education_num, marital_status, occupation, relationship, race, sex, capital_gain, capital_loss, hours_per_week, native_country, wage_class" |
        cat - "$1" | grep -v -e '^|' -e '^$' | gzip -n >"$making/$2.csv.gz"
}
compress "$1" train
compress "$2" test
made
