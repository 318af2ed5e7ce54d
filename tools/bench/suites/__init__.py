"""The suite: programs by shape, on every simulated GPU, bare and under every shipped policy."""
