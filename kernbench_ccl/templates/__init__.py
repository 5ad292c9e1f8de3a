"""What `kernbench ccl new` writes: a short algorithm for each collective, right as it is: modules that run."""
