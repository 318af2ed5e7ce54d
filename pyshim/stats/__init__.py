"""What the preloaded library leaves behind, read with suspicion: pages."""
