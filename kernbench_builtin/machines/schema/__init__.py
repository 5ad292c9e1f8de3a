"""A JSON Schema (2020-12) of configurations, made from what reads them: sections, parameters, registered names.

In: the classes of sections, and the components, shapes of networks and kinds of machine that are registered. Out: plain
data for `json.dumps`. The command line calls it; nothing else does, as what reads a configuration needs no schema.
"""
