"""What would be done with a kernel on a GPU, and why: the library's own arithmetic, asked without a GPU."""
