"""The points of a sweep on the workers of a Dask cluster, each recorded once.

In: jobs, and what they need of files and installed packages. Out: a record of each. The sweep calls it.
"""

from kernbench_builtin.sweeps.executors.cluster.executor import ClusterExecutor as ClusterExecutor
