"""PyTorch as what computes the data of runs, on the CPU or a GPU."""
