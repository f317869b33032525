# way.awk - the list of docs/way.md: awk -v counts=FILE -f way.awk NAMES RULES CALLS
#
# NAMES has address, function and file of src; CALLS is of calls.c. The rules of what is listed are those of the page:
#   - nothing of base/, and no function of a header but of a *body.h
#   - a leaf, which calls nothing but those, and which only its own file calls, is part of its caller
#   - each function once; again, with "..", only above one that was not listed yet
# Writes the list, and into FILE one line of counts.
BEGIN { FS = "\t" }
FNR == 1 { part++ }
part == 1 { name[$1] = $2; home[$1] = $3; next }
part == 2 {
    split($0, word, " ")
    if (word[1] == "begin") {
        order[++n_begin] = word[2] " " word[3]
        begins[order[n_begin]] = n_begin
    } else if (word[1] == "skip") {
        skips[word[2]] = 1
    }
    next
}
# From here on, what lies below a beginning: a node is a chain of calls.
$2 > skip_below - 1 && skip_below > 0 { next }
{ skip_below = 0 }
inside && $2 <= top { inside = 0 }
!inside {
    key = $1 " " name[$3]
    if (!(key in begins) || begun[key]++) next
    inside = begins[key]
    top = $2
}
name[$3] in skips { skip_below = $2 + 1; next }
{
    i = ++n
    of[i] = inside
    function_of[i] = name[$3]
    file_of[i] = home[$3]
    id[i] = file_of[i] " " function_of[i]
    caller[i] = $2 == top ? 0 : newest[$2 - 1]
    newest[$2] = i
    folded[i] = file_of[i] ~ /^base\// || (file_of[i] ~ /\.h$/ && file_of[i] !~ /body\.h$/)
    if (!all[id[i]]++) n_all++
    if (!all_files[file_of[i]]++) n_all_files++
}
# The nearest caller that is listed; 0: none.
function above(i) {
    for (i = caller[i]; i > 0 && folded[i]; i = caller[i]) {}
    return i
}
function fold_leaves(   i, k) {
    for (i = 1; i <= n; i++) {
        if (folded[i]) continue
        k = above(i)
        if (k > 0) calls[id[k]] = 1
        if (k == 0 || file_of[k] != file_of[i]) entered[id[i]] = 1
    }
    for (i = 1; i <= n; i++) {
        if (!(id[i] in calls) && !(id[i] in entered)) folded[i] = 1
    }
}
function print_one(i, again,   k, depth) {
    depth = 0
    for (k = above(i); k > 0; k = above(k)) depth++
    printf "%*s%s  %s%s\n", 2 * depth, "", function_of[i], file_of[i], again ? "  .." : ""
}
END {
    fold_leaves()
    for (b = 1; b <= n_begin; b++) {
        if (!begun[order[b]]) {
            printf "way: '%s' did not run: test/way/rules names a function that is gone\n", order[b] >"/dev/stderr"
            exit 1
        }
        for (i = 1; i <= n; i++) {
            if (of[i] != b || folded[i] || listed[id[i]]++) continue
            is_new[i] = 1
            n_listed++
            if (!listed_files[file_of[i]]++) n_files++
            for (k = i; k > 0 && !wanted[k]; k = caller[k]) wanted[k] = 1
        }
    }
    for (b = 1; b <= n_begin; b++) {
        split(order[b], word, " ")
        if (word[1] != thread) printf "%s%s\n", (b > 1 ? "\n" : ""), word[1]
        thread = word[1]
        for (i = 1; i <= n; i++) {
            if (of[i] == b && !folded[i] && wanted[i]) print_one(i, !is_new[i])
        }
    }
    printf "%d functions of %d files, of %d of %d that run\n", n_listed, n_files, n_all, n_all_files >counts
}
