"""Coupled simulated annealing with variance control, as the 2010 paper's appendix has it, in loops.

The coupling term sums over the current states, and the variance is that of their shares in it (the
printed formula is a variance only of numbers that sum to one).
"""

import math


def acceptance(E_probes, E_states, T):
    """A = exp(-E(y)/T) / (exp(-E(y)/T) + rho), rho = sum over the current states."""
    rho = sum(math.exp(-E / T) for E in E_states)
    return [math.exp(-E / T) / (math.exp(-E / T) + rho) for E in E_probes]


def variance(E_states, T):
    """Mean square of the shares minus the squared mean share, computed as a plain variance."""
    rho = sum(math.exp(-E / T) for E in E_states)
    shares = [math.exp(-E / T) / rho for E in E_states]
    mean = sum(shares) / len(shares)
    return sum((share - mean) ** 2 for share in shares) / len(shares)


def reflect(x, low, width):
    """Bounce one coordinate between the walls until it is inside."""
    high = low + width
    while not low <= x <= high:
        x = 2 * low - x if x < low else 2 * high - x
    return x


def anneal(energy, low, width, q, evaluations, T_0, rng):
    """Algorithm 6 with one inner iteration; return the states in the order of their evaluation."""
    asked = []

    def assess(x):
        asked.append(list(x))
        return energy(x)

    d = len(low)
    u = rng.random((q, d))
    states = [[low[j] + width[j] * u[i, j] for j in range(d)] for i in range(q)]
    E = [assess(x) for x in states]
    mean = sum(E) / q
    T_ac = math.sqrt(sum((e - mean) ** 2 for e in E) / q)
    wanted = 0.99 * (q - 1) / q**2
    k = 0
    while len(asked) < evaluations:
        T_k = T_0 / (k + 1)
        u, r = rng.random((q, d)), rng.random(q)
        n = min(q, evaluations - len(asked))
        probes = [
            [
                reflect(
                    states[i][j] + width[j] * T_k * math.tan(math.pi * (u[i, j] - 0.5)),
                    low[j],
                    width[j],
                )
                for j in range(d)
            ]
            for i in range(n)
        ]
        E_probes = [assess(y) for y in probes]
        A = acceptance(E_probes, E, T_ac)
        for i in range(n):
            if E_probes[i] <= E[i] or A[i] > r[i]:
                states[i], E[i] = probes[i], E_probes[i]
        T_ac *= 0.95 if variance(E, T_ac) < wanted else 1.05
        k += 1
    return asked
