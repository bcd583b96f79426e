"""Generated texts with numbers that depend on their words."""

from __future__ import annotations

import numpy as np

GOOD = ("good great excellent lovely wonderful fine superb pleasant charming perfect").split()
BAD = ("bad awful terrible poor dull boring horrible weak disappointing nasty").split()
OTHER = (
    "the a film service room food staff place time story price dinner hotel street city table "
    "plot scene music night day people bed view window it was we had very quite and with for in"
).split()
GRADES = {"trainee": -1.5, "junior": -1.0, "": 0.0, "senior": 0.7, "head": 1.2, "chief": 1.6}
JOBS = {"engineer": 1.0, "nurse": -0.2, "teacher": 0.0, "cook": -1.0, "driver": -0.8}
JOBS |= {"surgeon": 2.0, "clerk": -0.6, "police officer": 0.1, "architect": 0.6, "lawyer": 1.1}
PLACES = (
    "",
    "north",
    "south",
    "of the city",
    "night shift",
    "department B",
    "for schools",
    "Ghent",
)


def reviews(n, seed=0):
    """Return remarks of about 17 words, and how much their writers liked something."""
    rng = np.random.default_rng(seed)
    liking = rng.normal(size=n)
    texts = []
    for chance in 1.0 / (1.0 + np.exp(-2.5 * liking)):
        words = rng.choice(OTHER, 12).tolist()
        for good in rng.random(5) < chance:
            words.insert(int(rng.integers(len(words))), str(rng.choice(GOOD if good else BAD)))
        texts.append(" ".join(words))
    return np.array(texts, dtype=object), liking


def job_titles(n, seed=0):
    """Return titles, some of which repeat, and what they earn."""
    rng = np.random.default_rng(seed)
    parts = [rng.choice(list(some), n) for some in (GRADES, JOBS, PLACES)]
    titles = [" ".join(" ".join(row).split()) for row in zip(*parts, strict=True)]
    effects = [GRADES[grade] + JOBS[job] for grade, job in zip(*parts[:2], strict=True)]
    return np.array(titles, dtype=object), np.array(effects) + 0.4 * rng.normal(size=n)


def product_names(n, seed=0):
    """Return names of products with typing errors, nearly all different, and their prices."""
    rng = np.random.default_rng(seed)
    brands = {"samsong": 1.0, "nokira": 0.5, "philipps": -0.5, "toshibo": -1.0}
    things = {"television": 2.0, "refrigerator": 1.2, "camera": 0.8, "printer": 0.0}
    things |= {"keyboard": -0.8, "toaster": -1.4, "headphones": -1.0}
    names, prices = [], []
    for _ in range(n):
        brand, thing = str(rng.choice(list(brands))), str(rng.choice(list(things)))
        letters = list(f"{brand} {thing} {rng.integers(100, 999)}")
        for _ in range(int(rng.poisson(1.5))):
            place = int(rng.integers(len(letters)))
            letters[place] = ("", chr(97 + int(rng.integers(26))))[int(rng.integers(2))]
        names.append("".join(letters))
        prices.append(brands[brand] + things[thing] + 0.3 * rng.normal())
    return np.array(names, dtype=object), np.array(prices)
