"""What a plug-in offers, asked once at start-up: its hooks are called, and each entry that they return is checked.

In: a plug-in's module and who provides it. Out: its entries by sort, and those that are left out. The loader calls it.
"""
