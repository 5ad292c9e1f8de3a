"""The parameters of a bench: what each may be given, and what its arrays say of the others.

In: what a call gave. Out: values, what follows from them, or the sentence that says what is wrong. `host.bench` calls.
"""
