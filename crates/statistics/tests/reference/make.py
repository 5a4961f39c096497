"""Computes reference.json with other programs. The tests of `statistics` compare with this table.

    pip install scipy==1.17.1 statsmodels==0.15.0 pragmastat==13.0.1
    python make.py > reference.json

Samples come from splitmix64, so that the table does not depend on a version of NumPy's generator.
"""

import json
import math
from importlib.metadata import version

import pragmastat
from scipy import stats
from statsmodels.stats.multitest import multipletests

MASK = (1 << 64) - 1


class Random:
    """splitmix64"""

    def __init__(self, seed):
        self.state = seed

    def bits(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def uniform(self):
        return (self.bits() >> 11) / (1 << 53)

    def values(self, count, shift, steps):
        """Values with a normal law. `steps` above 0 rounds them to multiples of 1 / steps, which makes ties."""
        values = []
        for _ in range(count):
            radius = math.sqrt(-2 * math.log(1 - self.uniform()))
            value = shift + radius * math.cos(2 * math.pi * self.uniform())
            values.append(round(value * steps) / steps if steps else value)
        return values


random = Random(2026)
table = {
    "made_by": {name: version(name) for name in ("scipy", "statsmodels", "pragmastat")},
    "signed_ranks": [],
    "rank_sums": [],
    "centres": [],
    "spreads": [],
    "shifts": [],
    "corrections": [],
    "quantile_ranks": [],
    "shares": [],
    "fisher": [],
    "student": [],
}

for count, shift, steps in [(6, 1, 0), (9, 0, 0), (12, 0.5, 0), (20, 0.3, 0), (25, 0.2, 0), (7, 0.5, 2), (10, 0, 1), (11, 1, 3)]:
    values = random.values(count, shift, steps)
    # With ties, the distribution over all sign flips is used. A difference of 0 has a rank, but no sign (Pratt).
    method = stats.PermutationMethod(n_resamples=math.inf) if steps else "exact"
    p = stats.wilcoxon(values, zero_method="pratt", method=method).pvalue
    table["signed_ranks"].append({"values": values, "p": p})

for n, m, shift, steps in [(4, 4, 2, 0), (5, 9, 0, 0), (8, 8, 1, 0), (12, 7, 0.5, 0), (30, 30, 0.4, 0), (4, 6, 1, 1), (6, 6, 0, 2), (7, 5, 0.5, 1)]:
    before, after = random.values(n, 0, steps), random.values(m, shift, steps)
    found = stats.mannwhitneyu(after, before, method="exact")
    p = found.pvalue
    if steps:
        # With ties, the distribution over all ways to choose the runs after the change is used. p is the share of ways
        # whose statistic is at least as far from the mean.
        def far(x, y):
            return abs(stats.mannwhitneyu(x, y, method="asymptotic").statistic - n * m / 2)

        p = stats.permutation_test((after, before), far, n_resamples=math.inf, alternative="greater").pvalue
    table["rank_sums"].append({"before": before, "after": after, "u": found.statistic, "p": p})

for count in (6, 7, 10, 21, 64):
    values = random.values(count, 0.5, 0)
    table["centres"].append({"values": values, "centre": pragmastat.center(values)})
    table["spreads"].append({"values": values, "spread": pragmastat.spread(values)})

for n, m in ((4, 4), (5, 8), (9, 9), (20, 13)):
    before, after = random.values(n, 5, 0), random.values(m, 6, 0)
    table["shifts"].append({"before": before, "after": after, "shift": pragmastat.shift(after, before)})

for count in (1, 2, 5, 11, 40):
    p = [random.uniform() ** 3 for _ in range(count)]
    holm, bh = (multipletests(p, method=method)[1].tolist() for method in ("holm", "fdr_bh"))
    table["corrections"].append({"p": p, "holm": holm, "benjamini_hochberg": bh})

for count, share in ((10, 0.5), (57, 0.25), (100, 0.9), (368, 0.99), (1000, 0.99), (5000, 0.999)):
    # The values are equal to their ranks, so the bounds of the quantile are the ranks of the bounds.
    found = stats.quantile_test(range(1, count + 1), q=share * count, p=share).confidence_interval(0.95)
    table["quantile_ranks"].append({"count": count, "share": share, "low": int(found.low), "high": int(found.high)})

for before, after in ((3, 18), (1, 1), (0, 9), (40, 25), (7, 0), (300, 280)):
    # For a fixed sum of two counts in equal times, the second count has a binomial distribution.
    test = stats.binomtest(after, before + after, 0.5)
    bounds = test.proportion_ci(0.95, method="exact")
    table["shares"].append(
        {
            "before": before,
            "after": after,
            "low": bounds.low / (1 - bounds.low),
            "high": bounds.high / (1 - bounds.high) if before else None,
            "p": test.pvalue,
        }
    )

for before, after in (([3, 9997], [18, 9982]), ([0, 20], [5, 15]), ([12, 5], [4, 9]), ([1, 1], [1, 1])):
    table["fisher"].append({"before": before, "after": after, "p": stats.fisher_exact([before, after]).pvalue})

for share, freedom in ((0.975, 1), (0.975, 5.5), (0.95, 12), (0.995, 63)):
    table["student"].append({"share": share, "freedom": freedom, "quantile": stats.t.ppf(share, freedom)})

print(json.dumps(table, indent=1))
