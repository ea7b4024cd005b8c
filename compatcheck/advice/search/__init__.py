"""Which versions clear what is wrong and are nearest to what the user has."""

from compatcheck.advice.search._clauses import Clause, Scale
from compatcheck.advice.search._conflict import Conflict, explain
from compatcheck.advice.search._cost import cheapest, cost, distance, outside_all
from compatcheck.advice.search._search import Found, search
from compatcheck.advice.search._ways import ways

__all__ = [
    "Clause",
    "Conflict",
    "Found",
    "Scale",
    "cheapest",
    "cost",
    "distance",
    "explain",
    "outside_all",
    "search",
    "ways",
]
