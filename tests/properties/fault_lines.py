"""What every line of a ConfigError looks like, whatever the config: `where: what; what to do`."""

import re

_LONGEST = 1000
_ADVICE = (
    re.compile(r"(?:^|: )expected .+, got .+"),  # what was expected is what to do
    re.compile(r"\S; \S"),
    re.compile(r" \([a-z ]+: .+\)$"),  # what there is: (installed: torch)
    re.compile(r"^is not YAML: .+"),  # PyYAML's words, at line and column
    re.compile(r"^cannot be read: .+"),  # the system's
)


def misformed(error):
    """Say of each line of *error* that has not its form what is wrong with it."""
    count, lines = len(error.faults), str(error).split("\n  ")
    head = [f"{error.source}: {count} faults"] if count > 1 else []
    found = [] if lines == [*head, *error.faults] else [f"the lines are not the faults: {lines}"]
    for line in error.faults:
        where, _, words = line.removeprefix(error.source).partition(": ")
        if not line.startswith(error.source) or not re.fullmatch(r"(?::\d+){0,2}", where):
            found.append(f"says not where: {line!r}")
        if not line.isprintable():
            found.append(f"holds what breaks a line or a terminal: {line!r}")
        if len(line) > _LONGEST:
            found.append(f"is {len(line)} characters long: {line[:80]!r}")
        if not any(form.search(words) for form in _ADVICE):
            found.append(f"says not what to do: {line!r}")
        if line.endswith(".") and not line.endswith("..."):
            found.append(f"ends with a period: {line!r}")
    return found
