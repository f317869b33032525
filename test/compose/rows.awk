# rows.awk - the rows of a comma-separated file that every configuration of test/compose cuts its data from: columns of
# every type, lists, values beside a list, gaps, weights, groups that stand together, and ids. The same on every machine.
#
#     awk -v rows=4000 -f rows.awk
function below(n) {
    state = state * 16807 % 2147483647
    return state % n
}
function share() { return below(1000003) / 1000003 }
function often_small(n) { return int(n * share() * share()) }
BEGIN {
    state = 20261101
    split("red green blue north south east west up down left", words, " ")
    print "label,u,n,h,w,x,y,t,tw,s,d,a,b,c,wt,g,rid,buy,v"
    for (i = 0; i < rows; i++) {
        u = often_small(60)
        n = often_small(30) - 12
        w = 1 + often_small(10)
        x = int(share() * 2000) / 100 - 5
        y = share() < .1 ? "" : int(exp(4 * share()) * 8) / 8
        t = tw = s = c = ""
        for (k = below(4); k > 0; k--) {
            bar = t == "" ? "" : "|"
            t = t bar often_small(40)
            tw = tw bar (1 + below(8)) / 4
            s = s bar words[1 + often_small(10)]
        }
        for (k = 1 + below(3); k > 0; k--) c = c (c == "" ? "" : "|") 2000 + often_small(30)
        z = (u % 7 - 3) * .5 + (w % 3 - 1) * .8 + (x - 5) * .1 + n % 5 * .2 - .5
        label = share() < 1 / (1 + exp(-z))
        printf "%d,%d,%d,%x,%s,%g,%s,%s,%s,%s,261101%02d,%d,%d,%s,%g,%d,r%d,%d,%s\n", label, u, n,
            often_small(50) * 265443 + 1, words[w], x, y, t, tw, s, below(24), often_small(80), 1000 + often_small(50), c,
            (1 + below(4)) / 2, int(i / 8), i, label && (u + w) % 3 == 0,
            i % 9 ? sprintf("%.3f|%.2f|%d", (u * 37 + i * 13) % 200 / 100 - 1, (w * 11 + n) % 7 / 4, i % 5 - 2) : ""
    }
}
