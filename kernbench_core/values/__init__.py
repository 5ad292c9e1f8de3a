"""What bytes are: element types, strided regions, immutable values, and the store that says what each address holds.

In: arrays, regions and writers. Out: values, some of them known only after phase 2. Op log, compute, memory and kernel
call it.
"""
