"""Points chosen by Optuna, one after the other, from what the ones before gave; it is imported only here.

In: axes, objectives and how many trials. Out: records in the folder of a sweep, and Optuna's journal beside them, from
which a search goes on. The drive of a sweep calls it.
"""
