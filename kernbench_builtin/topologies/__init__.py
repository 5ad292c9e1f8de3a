"""Topology presets: one YAML file each, over the values that all share in `base.yaml`."""
