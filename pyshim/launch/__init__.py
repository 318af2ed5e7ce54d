"""From options to a program that runs under a policy: environment, checks before exec, report folder."""
