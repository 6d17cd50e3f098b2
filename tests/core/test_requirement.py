from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from rlprof._requirement import refuses

QUICK = settings(max_examples=500, deadline=None)
NUMBERS = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(lambda n: ".".join(map(str, n)))
MARKED = st.builds(
    "{}{}".format, NUMBERS, st.sampled_from(["a1", "rc2", ".dev0", ".post1", "+local", "rc1.dev3"])
)
CLAUSES = st.one_of(
    st.builds("{}{}".format, st.sampled_from(["==", "!=", "<=", ">=", "<", ">"]), NUMBERS),
    st.builds("{}{}.*".format, st.sampled_from(["==", "!="]), NUMBERS),
    st.builds("~={}.{}".format, NUMBERS, st.integers(0, 3)),
)
ASKED = st.lists(CLAUSES, max_size=3).map(",".join)


@QUICK
@given(asked=ASKED, version=NUMBERS)
def test_of_plain_versions_it_says_what_pip_says(asked, version):
    """Numbers and dots are compared as PEP 440 has it."""
    fits = SpecifierSet(asked).contains(Version(version))

    assert refuses(f"rlprof{asked}", version) is not fits


@QUICK
@given(asked=ASKED, version=MARKED)
def test_of_other_versions_it_refuses_none_that_pip_takes(asked, version):
    """Before and after releases it is in doubt, and says nothing then."""
    fits = SpecifierSet(asked).contains(Version(version), prereleases=True)

    assert not (fits and refuses(f"rlprof{asked}", version))


@pytest.mark.parametrize(
    ("requirement", "version"),
    [
        ("", "0.1.0"),
        ("rlprof", "0.1.0"),
        ("rlprof>=99", ""),
        ("rlprof>=99", "1!0.1"),
        ("rlprof>=99;python_version<'3'", "0.1"),
        ("rlprof@https://example.org/rlprof>=99", "0.1"),
        ("rlprof===99", "0.1"),
        ("rlprof>=1!0", "0.1"),
        ("rlprof>=9rc1", "0.1"),
        ("rlprof>=", "0.1"),
        ("(((", "0.1"),
    ],
)
def test_what_is_not_plain_is_taken_to_fit(requirement, version):
    """Epochs, markers, addresses and what nobody can read refuse nothing."""
    assert not refuses(requirement, version)


@pytest.mark.parametrize(
    "requirement", ["rlprof[torch](>=0.2)", "RLPROF [a,b] (>= 0.2, < 1)", "rlprof>=0.2,>=9rc1"]
)
def test_a_bound_is_found_however_it_is_written(requirement):
    """Extras, parentheses, blanks, and a clause beside that cannot be read."""
    assert refuses(requirement, "0.1.0")
