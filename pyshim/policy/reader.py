"""Text -> a policy, or everything that is wrong with it, each with its place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyshim.policy import document
from pyshim.policy.finding import Finding
from pyshim.policy.model import Policy
from pyshim.policy.schema import PolicyReader


@dataclass(frozen=True)
class Reading:
    """What came of one file. policy is None if and only if a finding is an error."""

    file: str
    source: str
    policy: Policy | None
    findings: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        return self.policy is not None


def read_file(path: Path, shown: str = "") -> Reading:
    """Reads one policy file. Never raises: what is wrong with the file itself is a finding too."""
    file = shown or str(path)
    try:
        if path.is_dir():
            return _failed(file, Finding("not-a-file", "this is a directory, not a policy file"))
        with path.open("rb") as stream:
            data = stream.read(document.MAX_BYTES + 1)
    except FileNotFoundError:
        return _failed(file, Finding("missing-file", "no such file"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return _failed(file, Finding("unreadable", f"the file cannot be read: {reason}"))
    return read_bytes(data, file)


def read_bytes(data: bytes, file: str) -> Reading:
    """Reads the content of a policy file; `file` is only shown. Never raises."""
    source = document.decode(data)
    if isinstance(source, Finding):
        return _failed(file, source, data[: document.MAX_BYTES].decode("utf-8", "replace"))
    root = document.compose(source)
    if isinstance(root, Finding):
        return _failed(file, root, source)
    reader = PolicyReader()
    policy = reader.policy(root)
    findings = tuple(sorted(reader.findings, key=lambda finding: (finding.line, finding.column)))
    return Reading(file, source, policy, findings)


def _failed(file: str, finding: Finding, source: str = "") -> Reading:
    return Reading(file, source, None, (finding,))
