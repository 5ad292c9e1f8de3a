"""An example plug-in of kernbench: hardware models of a vendor called "example"."""
