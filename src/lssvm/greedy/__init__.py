"""One basis function at a time: FSALS-SVM, PFSALS-SVM and their neighbours [Jiao2007]_."""

from lssvm.greedy.leave_one_out import Observations, greedy_leave_one_out
from lssvm.greedy.path import Greedy, GreedyPath
from lssvm.greedy.paths import greedy_paths

__all__ = ["Greedy", "GreedyPath", "Observations", "greedy_leave_one_out", "greedy_paths"]
