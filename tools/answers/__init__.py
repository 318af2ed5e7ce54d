"""The three pages that answer the paper's reviewers, made from data and the library's own arithmetic: docs/sizes.md,
docs/sensitivity.md, docs/robustness.md. `python tools/answers --write` makes them, `--check` compares.
"""
