"""Points chosen by Optuna, one after the other, from what the ones before gave; it is imported only here.

In: axes, objectives and how many trials. Out: records in the folder of a sweep, by which a search goes on: it is made
again, and what is recorded is not run. The drive of a sweep calls it.
"""
