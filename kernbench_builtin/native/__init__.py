"""A second engine, in C++, that times what a run has recorded on other machines, equal bit for bit."""
