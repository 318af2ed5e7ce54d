"""Programs of developers, run from the root of the tree: python -m tools.FOLDER.NAME. docs: CONTRIBUTING.md."""
