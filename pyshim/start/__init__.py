"""Starting a program: which policy, which environment, which folder for its report."""
