"""Digests of values, functions with their code, and data, by content."""

from __future__ import annotations

import pickle
import sys
import sysconfig
from dis import get_instructions
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from truerank.core.errors import InvalidInputError


def content_digest(value: object) -> str:
    """Return a digest (32 hexadecimal digits) of a value: equal for equal contents, in practice different otherwise.

    The digest depends on dtype, shape and values of arrays; on class and attributes of objects, or on the result of
    their method `digested()`; and on code, defaults, enclosed values and named global values of functions (in installed
    packages only on code and defaults). The digest of a class includes its methods. Classes of installed packages, and
    all functions and classes of truerank, are digested by name: store the version with any stored digest. Modules are
    digested by their files and imported modules, installed modules by name and `__version__`.

    Raises
    ------
    InvalidInputError
        For a value that cannot be pickled, such as an open file or a lock. The message names it.

    Examples
    --------
    >>> content_digest([1.0, np.arange(3)]) == content_digest([1.0, np.arange(3)])
    True
    >>> content_digest(lambda y: y + 1) == content_digest(lambda y: y + 2)
    False
    """
    writer = _Writer()
    try:
        writer.dump(value)
    except (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"these settings cannot be compared with a later run ({error}). Use only numbers, texts, arrays and plain "
            f"functions as settings, or run without a checkpoint or state"
        ) from error
    return writer.hash.hexdigest()


class _Writer(pickle.Pickler):
    """A pickler that writes values into a hash, independently of object identity and of the process."""

    def __init__(self) -> None:
        self.hash = blake2b(digest_size=16)
        super().__init__(SimpleNamespace(write=self.hash.update), protocol=5)
        self.fast = True  # no references to what was written before
        self._met: set[int] = set()  # functions and classes whose code is written already

    def reducer_override(self, value: Any) -> Any:
        """Return the name and the contents of a value for the hash."""
        if value is _of:
            return NotImplemented
        if isinstance(value, np.ndarray) and not value.dtype.hasobject and value.dtype.kind != "T":
            return _of, ("array", value.dtype.str, value.shape, pickle.PickleBuffer(np.ascontiguousarray(value).data))
        if isinstance(value, np.ndarray):
            return _of, ("objects", value.shape, value.tolist())
        if isinstance(value, ModuleType):
            return _of, ("module", value.__name__, self._source_of(value))
        if isinstance(value, CodeType):
            consts = [sorted(map(repr, one)) if isinstance(one, frozenset) else one for one in value.co_consts]
            return _of, ("code", value.co_code, consts, value.co_names, value.co_varnames, value.co_flags)
        if hasattr(value, "py_func"):  # a function that numba compiles
            value = value.py_func
        if isinstance(value, FunctionType | type):
            return self._code_of(value)
        if hasattr(type(value), "digested"):
            return _of, (type(value).__qualname__, value.digested())
        return NotImplemented

    def _source_of(self, module: ModuleType) -> Any:
        """Return the files of a module and of its imported modules, or the version of an installed module."""
        if _installed(SimpleNamespace(__module__=module.__name__)):
            return str(getattr(module, "__version__", ""))
        if id(module) in self._met or module.__name__ == "__main__":  # whose functions count by their code
            return None
        self._met.add(id(module))
        files = [Path(file)] if (file := getattr(module, "__file__", None)) else []
        for folder in getattr(module, "__path__", ()):
            files += sorted(Path(folder).rglob("*.py"))
        parts = {getattr(one, "__module__", None) or "" for one in list(vars(module).values())}
        parts |= {one.__name__ for one in list(vars(module).values()) if isinstance(one, ModuleType)}
        used = [sys.modules[name] for name in sorted(map(str, parts)) if name in sys.modules]
        return [file.read_bytes() for file in files], [one for one in used if one is not module]

    def _code_of(self, value: Any) -> Any:
        name = f"{value.__module__}.{value.__qualname__}"
        ours = name.startswith("truerank.") and "<" not in name  # identified by the version
        if ours or id(value) in self._met or (isinstance(value, type) and _installed(value)):
            return _of, (name,)
        self._met.add(id(value))
        if isinstance(value, type):
            own = {
                key: getattr(one, "__func__", getattr(one, "fget", one))
                for key, one in vars(value).items()
                if key != "_abc_impl" and (callable(one) or not key.startswith("__"))
            }
            return _of, (name, value.__bases__, own)
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        used: dict[str, Any] = {}
        if not _installed(value):
            used = {key: value.__globals__.get(key) for key in _names(value.__code__)}
            used |= {f"import {key}": _imported(key) for key in _imports(value.__code__)}
        return _of, (name, value.__code__, value.__defaults__, value.__kwdefaults__, cells, used)


def _of(*parts: Any) -> None:
    """Stand for the constructor of a value in the hash."""


def _names(code: CodeType) -> list[str]:
    """Return the names that a function and functions inside it may look up as global names."""
    inside = [name for one in code.co_consts if isinstance(one, CodeType) for name in _names(one)]
    return sorted({*code.co_names, *inside})


def _imports(code: CodeType) -> list[str]:
    """Return the modules that a function, or a function inside it, imports when it runs."""
    inside = [name for one in code.co_consts if isinstance(one, CodeType) for name in _imports(one)]
    return sorted({one.argval for one in get_instructions(code) if one.opname == "IMPORT_NAME"} | {*inside})


def _imported(name: str) -> ModuleType | None:
    try:
        return import_module(name)
    except Exception:  # the function will fail when it runs
        return None


def _installed(value: object) -> bool:
    """Return whether a function or class is from truerank, the standard library or an installed package."""
    top = value.__module__.partition(".")[0]
    if top in sys.stdlib_module_names - {"__main__"} or top == "truerank":
        return True
    file = getattr(sys.modules.get(value.__module__), "__file__", None)
    return file is not None and any(
        Path(file).is_relative_to(sysconfig.get_path(name)) for name in ("purelib", "platlib")
    )
