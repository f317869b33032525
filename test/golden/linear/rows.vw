-1 |user erin |page:1 c1 lang:de |tag y:0.81 |_ 1 k
1 |user dave |page:2 a1 lang:en |tag x:0.87 |_ 2 k
-1 |user dave |page:2 b2 lang:de |tag z:1.86 |_ 2 k
-1 |user alice |page:1 b1 lang:de |tag z:1.92 x:1.41 |_ 1 k
-1 |user bob |page:1 b2 lang:de |tag y:1.99 |_ 1 k
-1 |user bob |page:1 a1 lang:en |tag y:1.83 x:1.71 |_ 1 k
1 |user carol |page:2 c1 lang:de |tag x:1.56 z:1.89 |_ 2 k
1 |user frank |page:1 b1 lang:de |tag z:0.87 x:0.9 |_ 1 k
1 |user dave |page:2 b2 lang:de |tag y:0.46 |_ 2 k
1 |user alice |page:1 b2 lang:de |tag x:1.7 |_ 1 k
-1 |user erin |page:1 b1 lang:de |tag y:1.87 |_ 1 k
-1 |user alice |page:1 a1 lang:en |tag y:1.06 z:1.33 |_ 1 k
-1 |user carol |page:1 a2 lang:en |tag x:1.2 |_ 1 k
1 |user dave |page:1 a2 lang:en |tag y:0.25 z:1.23 |_ 1 k
1 |user carol |page:2 a2 lang:en |tag y:1.83 x:0.41 |_ 2 k
1 |user alice |page:1 a2 lang:en |tag y:0.56 x:0.86 |_ 1 k
1 |user bob |page:1 a2 lang:en |tag y:1.81 |_ 1 k
1 |user frank |page:1 b1 lang:de |tag z:1.65 |_ 1 k
1 |user erin |page:1 a2 lang:en |tag x:0.98 y:1.84 |_ 1 k
-1 |user carol |page:1 c1 lang:de |tag x:1.14 |_ 1 k
1 |user frank |page:2 a2 lang:en |tag z:0.36 |_ 2 k
1 |user frank |page:1 b2 lang:de |tag x:1.41 z:1.33 |_ 1 k
1 |user erin |page:1 b1 lang:de |tag x:1.52 |_ 1 k
1 |user frank |page:1 a1 lang:en |tag y:1.76 z:1.09 |_ 1 k
1 |user dave |page:1 b2 lang:de |tag z:0.53 |_ 1 k
-1 |user alice |page:1 a2 lang:en |tag z:1.88 x:1.94 |_ 1 k
-1 |user alice |page:2 b1 lang:de |tag y:1.76 |_ 2 k
-1 |user alice |page:2 b1 lang:de |tag z:1.12 |_ 2 k
-1 |user erin |page:1 a2 lang:en |tag x:0.6 |_ 1 k
1 |user bob |page:1 a1 lang:en |tag y:1.87 x:1.53 |_ 1 k
-1 |user alice |page:2 c1 lang:de |tag z:0.39 x:1.77 |_ 2 k
-1 |user bob |page:1 a1 lang:en |tag x:1.1 y:0.7 |_ 1 k
-1 |user alice |page:1 b2 lang:de |tag z:1.75 |_ 1 k
1 |user frank |page:1 c1 lang:de |tag z:1.69 y:1.89 |_ 1 k
-1 |user frank |page:1 b2 lang:de |tag y:0.29 |_ 1 k
-1 |user carol |page:2 b2 lang:de |tag y:1.72 |_ 2 k
1 |user carol |page:1 b2 lang:de |tag y:1.92 |_ 1 k
1 |user bob |page:1 b2 lang:de |tag y:0.54 |_ 1 k
1 |user dave |page:1 a2 lang:en |tag x:1.95 |_ 1 k
1 |user frank |page:2 a1 lang:en |tag x:1.32 |_ 2 k
