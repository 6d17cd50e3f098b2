"""`annotate`: a function as a phase or a span, at next to no cost while rlprof is off.

The wrapper is generated with the parameters of the function: passing them by name costs 30 ns,
`*args, **kwargs` cost 130 (CPython 3.11). The kind of function stays: a coroutine function remains
a coroutine function, an async generator function remains one.
"""

from __future__ import annotations

import functools
import inspect
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from rlprof.session import _current

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

_WRAPPER = """
def _rlprof_make(_rlprof_fn, _rlprof_open):
    {define} wrapper({parameters}):
        _rlprof_session = _rlprof_current.session
        if _rlprof_session is None:
            return ({call} _rlprof_fn({arguments}))
        with _rlprof_open(_rlprof_session{detached}):
            return ({call} _rlprof_fn({arguments}))
    return wrapper
"""
_PLAIN = {"define": "def", "call": "", "detached": ""}
_COROUTINE = {"define": "async def", "call": "await", "detached": ""}
# A generator shares its caller's context between two items, so its scope sets no parent there.
_GENERATOR = {"define": "def", "call": "yield from", "detached": ", True"}
_GIVEN: dict[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*{0}",
    inspect.Parameter.KEYWORD_ONLY: "{0}={0}",
    inspect.Parameter.VAR_KEYWORD: "**{0}",
}
# Async generators have no `yield from`.
_ASYNC_GENERATOR = """
def _rlprof_make(_rlprof_fn, _rlprof_open):
    async def wrapper({parameters}):
        _rlprof_session = _rlprof_current.session
        _rlprof_inner = _rlprof_fn({arguments})
        with _rlprof_open(_rlprof_session, True):
            try:
                _rlprof_item = await _rlprof_inner.__anext__()
                while True:
                    try:
                        _rlprof_sent = yield _rlprof_item
                    except GeneratorExit:
                        await _rlprof_inner.aclose()
                        raise
                    except BaseException as _rlprof_exc:
                        _rlprof_item = await _rlprof_inner.athrow(_rlprof_exc)
                    else:
                        _rlprof_item = await _rlprof_inner.asend(_rlprof_sent)
            except StopAsyncIteration:
                return
    return wrapper
"""


@overload
def annotate(name: F) -> F: ...
@overload
def annotate(name: str | None = None, *, span: bool = False) -> Callable[[F], F]: ...


def annotate(name: Any = None, *, span: bool = False) -> Any:
    """Make a function a phase of the step (`span=True`: a span) while a session is open.

    `@annotate`, `@annotate("update_actor")`, `@annotate("tool_call", span=True)`. Choose a span
    for functions that run concurrently, such as one request: a phase may open a window, and only
    one window is open at once.
    """
    if callable(name):
        return _annotated(name, name.__name__, span=span)
    return lambda function: _annotated(function, name or function.__name__, span=span)


def _annotated(function: Any, name: str, *, span: bool) -> Any:
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(_annotated(function.__func__, name, span=span))
    template, words = _WRAPPER, _PLAIN
    if inspect.isasyncgenfunction(function):
        template = _ASYNC_GENERATOR
    elif inspect.iscoroutinefunction(function):
        words = _COROUTINE
    elif inspect.isgeneratorfunction(function):
        words = _GENERATOR
    code = getattr(function, "__code__", None)
    parameters, arguments = _signature(function) if code else ("*args, **kwargs",) * 2
    made: dict[str, Any] = {"_rlprof_current": _current, "__name__": __name__}
    text = template.format(parameters=parameters, arguments=arguments, **words)
    exec(compile(text, "<rlprof.annotate>", "exec"), made)  # noqa: S102 -- only names go in
    wrapper = made["_rlprof_make"](function, functools.partial(_open, name, span))
    if code:
        wrapper.__defaults__ = function.__defaults__
        wrapper.__kwdefaults__ = function.__kwdefaults__
    return functools.wraps(function)(wrapper)


def _open(name: str, span: bool, session: Any, detached: bool = False) -> Any:  # noqa: FBT001, FBT002 -- called from the templates
    if session is None:
        from rlprof.session._off import NOTHING

        return NOTHING
    scope = session.span(name) if span else session.phase(name)
    scope.detached = detached
    return scope


def _signature(function: FunctionType) -> tuple[str, str]:
    """Write the parameters of *function*, without defaults, and the call that hands them on."""
    bare = inspect.signature(FunctionType(function.__code__, {}, closure=function.__closure__))
    given = [_GIVEN.get(one.kind, "{0}").format(name) for name, one in bare.parameters.items()]
    return str(bare)[1:-1], ", ".join(given)
