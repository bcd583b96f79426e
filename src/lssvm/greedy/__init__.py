"""One basis function at a time: FSALS-SVM, PFSALS-SVM and their neighbours [Jiao2007]_."""

from lssvm.greedy.forward import greedy_paths
from lssvm.greedy.path import Greedy, GreedyPath, Observations, greedy_leave_one_out

__all__ = ["Greedy", "GreedyPath", "Observations", "greedy_leave_one_out", "greedy_paths"]
