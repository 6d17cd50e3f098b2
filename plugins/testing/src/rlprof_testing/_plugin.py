"""The laws of every plugin: it is found, it fits, it is light, and it says what it does."""

from __future__ import annotations

import inspect
import json
import os
import sys
from importlib import metadata
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import pytest

from rlprof import PluginError, plugins
from rlprof_cli.contract import arguments, misfits
from rlprof_testing._drive import python

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

F = TypeVar("F", bound="Callable[..., Any]")

_REASON = "_rlprof_overrides"
"""A replaced standard test needs a reason; it is kept under this name."""
HEAVY = (
    "torch", "torch_npu", "tensorflow", "jax", "cupy", "numpy", "pandas", "triton",
    "transformers", "vllm", "sglang", "ray", "deepspeed", "megatron", "verl",
)  # fmt: skip
"""Modules that a plugin may import only inside functions."""

_LAUNCHERS = ("RLPROF_", "TORCHELASTIC_", "SLURM_", "OMPI_", "RANK", "WORLD_SIZE", "LOCAL_RANK")

_IMPORT = """
import json, sys, threading
from pkgutil import resolve_name
plugin, heavy = json.loads(sys.argv[1])
resolve_name(plugin)()
loaded = sorted({name.partition(".")[0] for name in sys.modules} & set(heavy))
print(json.dumps({"loaded": loaded, "threads": threading.active_count()}))
"""


def overrides(reason: str) -> Callable[[F], F]:
    """Mark a test that replaces a standard one, with the reason: `@overrides("needs a GPU")`."""
    if not isinstance(reason, str) or not reason.strip():
        raise TypeError('overrides: say why, as in @overrides("the engine cannot be killed alone")')

    def mark(test: F) -> F:
        setattr(test, _REASON, reason)
        return test

    return mark


def _silent_overrides(cls: type) -> list[str]:
    """Return the standard tests that *cls* replaces or removes without a reason."""
    own = [base for base in cls.__mro__ if not base.__module__.startswith("rlprof_testing")]
    kit = [base for base in cls.__mro__ if base.__module__.startswith("rlprof_testing")]
    standard = {name for base in kit for name in vars(base) if name.startswith("test_")}
    return sorted(
        name
        for name in standard
        for base in own
        if name in vars(base) and not _has_reason(vars(base)[name])
    )


def _has_reason(test: Any) -> bool:
    if getattr(test, _REASON, ""):
        return True
    marks = getattr(test, "pytestmark", [])
    return any(mark.name == "xfail" and mark.kwargs.get("reason") for mark in marks)


class PluginTests:
    """The part of the kit that all kinds share; inherit one of its subclasses."""

    kind: ClassVar[plugins.Kind]

    plugin: ClassVar[type[Any]]
    """The class under test."""
    name: ClassVar[str] = ""
    """The plugin's name in a config; empty: the name of its entry point."""
    works_here: bool | str = True
    """True, or why this machine cannot run the plugin; may be a property."""
    heavy: ClassVar[tuple[str, ...]] = HEAVY
    """Modules to import only when needed; add yours: `heavy = (*ToolTests.heavy, "mine")`."""

    def __init_subclass__(cls) -> None:
        """Refuse a subclass that replaces the guard."""
        guard = PluginTests.test_standard_tests_are_replaced_only_with_a_reason
        if cls.test_standard_tests_are_replaced_only_with_a_reason is not guard:
            raise TypeError(f"{cls.__name__} replaces the test that checks for replaced tests")

    @pytest.fixture(autouse=True)
    def _alone(self) -> Iterator[None]:
        """Remove the variables of launchers first, and those of the plugin afterwards."""
        before = dict(os.environ)
        for variable in [name for name in before if name.startswith(_LAUNCHERS)]:
            del os.environ[variable]
        yield
        os.environ.clear()
        os.environ.update(before)

    @pytest.fixture(name="called")
    def _called(self, monkeypatch: pytest.MonkeyPatch) -> str:
        """Return the plugin's name; register it in this process, as it may not be installed."""
        name = self.name or next(self._names(), self.plugin.__name__.lower())
        monkeypatch.setitem(plugins._registered, (self.kind, name), self.plugin)
        return name

    def _names(self) -> Iterator[str]:
        """Yield the names under which an installed distribution offers exactly this class."""
        for entry in metadata.entry_points(group=plugins.GROUPS[self.kind]):
            if entry.attr == self.plugin.__qualname__ and entry.load() is self.plugin:
                yield entry.name

    def skip_where_it_cannot_run(self) -> None:
        """Skip a test that records, with the declared reason."""
        if self.works_here is not True:
            reason = str(self.works_here).strip()
            assert reason not in ("", "False"), (
                'works_here: no reason; give one: works_here = "needs ..."'
            )
            pytest.skip(reason)

    def test_standard_tests_are_replaced_only_with_a_reason(self) -> None:
        """You replace a standard test only with `@overrides("why")` or `xfail(reason=...)`."""
        silent = _silent_overrides(type(self))

        assert silent == [], (
            f"{', '.join(silent)} in {type(self).__name__} replaces a standard test silently; "
            'say why: @rlprof.testing.overrides("...") or @pytest.mark.xfail(reason="...")'
        )

    def test_it_is_offered_by_its_name(self) -> None:
        """An installed distribution offers the class, so that a config can name it."""
        names = list(self._names())
        group, where = plugins.GROUPS[self.kind], f"{self.plugin.__module__.partition('._')[0]}"

        assert names, (
            f"no installed distribution offers {self.plugin.__qualname__}; add to pyproject.toml\n"
            f'  [project.entry-points."{group}"]\n'
            f'  {self.name or "mine"} = "{where}:{self.plugin.__qualname__}"\n'
            "and install it: pip install -e ."
        )
        assert not self.name or self.name in names, f"it is offered as {names}, not {self.name!r}"
        assert plugins.load(self.kind, names[0]) is self.plugin

    def test_it_fits_the_contract(self, called: str) -> None:
        """Its hooks are marked, exist in core, and take only arguments that core passes."""
        try:
            loaded = plugins.load(self.kind, called)
        except PluginError as exc:  # the reason of core, and the reason in an author's terms
            pytest.fail("\n".join([str(exc), *misfits(self.kind, self.plugin)]))
        assert loaded is self.plugin
        assert misfits(self.kind, self.plugin) == []

    def test_its_hooks_are_called_as_they_are(self) -> None:
        """No hook is a coroutine or a generator; only an engine's start and stop may be async."""
        wrong = []
        for hook in arguments(self.kind):
            method = inspect.getattr_static(self.plugin, hook, None)
            function = getattr(method, "__func__", method)
            is_async = inspect.iscoroutinefunction(function) and (
                self.kind != "engine" or hook not in ("start", "stop")
            )
            if is_async or inspect.isgeneratorfunction(function):
                wrong.append(hook)

        assert wrong == [], f"{', '.join(wrong)}: core does not await it; make it a plain function"

    def test_it_says_in_a_line_what_it_does(self) -> None:
        """The class has a docstring, whose first line `rlprof plugins` shows."""
        own = vars(self.plugin).get("__doc__") or ""
        line = next(iter(own.strip().splitlines()), "")

        assert line, f"give class {self.plugin.__name__} a docstring: one line, what it does"

    def test_importing_it_is_light(self, tmp_path: Path) -> None:
        """Importing and instantiating the plugin imports nothing heavy and starts no thread."""
        where = f"{self.plugin.__module__}:{self.plugin.__qualname__}"
        argument = json.dumps([where, self.heavy])
        result = python([sys.executable, "-c", _IMPORT, argument], cwd=tmp_path)

        assert result.returncode == 0, f"{where} cannot be imported elsewhere: {result.stderr}"
        found = json.loads(result.stdout.splitlines()[-1])
        assert found["loaded"] == [], (
            f"importing it imports {', '.join(found['loaded'])}, in every rank that names the "
            "plugin; import this inside the functions that need it"
        )
        assert found["threads"] == 1, "importing it starts a thread; start threads in `start`"
