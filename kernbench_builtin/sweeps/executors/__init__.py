"""Who carries out the points of a sweep: processes of this machine, or those of a cluster.

In: jobs, plain data. Out: a record of each, as it finishes. The sweep calls it.
"""
