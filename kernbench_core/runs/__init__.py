"""A whole run: plug-ins, configuration, session, phase 2, result and files, and the same again from a manifest.

In: a bench, a topology and options. Out: a result, its text, and a folder that can be run again. Notebooks and the
command line call it.
"""
