"""The pages that answer questions from data and the library's own arithmetic: docs/sizes.md, docs/sensitivity.md and
docs/robustness.md what the paper's reviewers asked, docs/overlap.md what the overlap suite found on a GPU,
docs/answers.md what was open. `python tools/answers --write` makes them, `--check` compares.
"""
