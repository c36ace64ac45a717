"""Lists names of a table of the Triton API that this package lacks, and functions whose signatures do not fit.

    python devtools/missing_names.py [API.json [module prefix]]

Without a table, that of the tests: the names of the language. A table maps ``modules.<module>.names.<name>`` to
``kind``, ``signature`` (without the compiler's own keywords), ``methods``. A signature fits when every
call that the table's signature allows is allowed here too. Needs NumPy.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LANGUAGE = ROOT / "tests" / "data" / "language_names.json"
INTERNAL = ("_semantic", "_generator", "_builder")


def parameters(signature: str) -> list[tuple[str, str]]:
    """Names in a signature's text, with stars, and the text of each one's default, empty without."""
    depth, parts, current = 0, [], ""
    for character in signature.strip()[1:-1]:
        depth += character in "([{<"
        depth -= character in ")]}>"
        if character == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += character
    parts.append(current)
    found = []
    for part in parts:
        name = re.split(r"[:=]", part.strip(), maxsplit=1)[0].strip()
        if name and name not in ("/",):
            found.append((name, part.partition("=")[2].strip()))
    return found


def own_parameters(value: Any) -> list[inspect.Parameter] | None:
    """The parameters of ``value`` without the compiler's own, or None when it has no readable signature."""
    target = getattr(value, "fn", None) if not inspect.isfunction(value) and not inspect.isclass(value) else value
    try:
        signature = inspect.signature(target if callable(target) else value)
    except (TypeError, ValueError):
        return None
    return [p for p in signature.parameters.values() if p.name not in INTERNAL]


def default_problem(name: str, wanted: str, own: Any) -> str | None:
    """How a default differs from what its text says. Names of objects are not looked up."""
    if not wanted:
        return None
    if own is inspect.Parameter.empty:
        return f"no default for {name}"
    try:
        expected = ast.literal_eval(wanted)
    except (ValueError, SyntaxError):
        return None
    return None if own == expected and isinstance(own, type(expected)) else f"default of {name} is {own!r}"


def signature_problem(value: Any, wanted: str) -> str | None:
    """What a caller who follows ``wanted`` would run into."""
    own = own_parameters(value.function)[1:] if isinstance(value, Bound) else own_parameters(value)
    if own is None:
        return None
    names = {p.name for p in own}
    positional = [p.name for p in own if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    any_positional = any(p.kind is p.VAR_POSITIONAL for p in own)
    any_keyword = any(p.kind is p.VAR_KEYWORD for p in own)
    keyword_only, place = False, 0
    listed = set()
    defaults = {p.name: p.default for p in own}
    for name, default in parameters(wanted):
        if name.startswith("*"):
            keyword_only = True
            if name not in ("*",) and not name.startswith("**") and not any_positional:
                return f"no {name}"
            continue
        listed.add(name)
        if name not in names and not any_keyword:
            return f"no parameter {name}"
        if not keyword_only and not any_positional and (place >= len(positional) or positional[place] != name):
            return f"parameter {place} is {positional[place] if place < len(positional) else 'missing'}, not {name}"
        place += not keyword_only
        problem = default_problem(name, default, defaults.get(name, inspect.Parameter.empty))
        if problem:
            return problem
    for parameter in own:
        needed = parameter.default is parameter.empty and parameter.kind in (
            parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY,
        )  # fmt: skip
        if needed and parameter.name not in listed:
            return f"extra required parameter {parameter.name}"
    return None


def resolve(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        return error


def method_problems(value: Any, methods: Any) -> list[str]:
    """Methods that a class lacks or that take other arguments; ``methods`` may be a list of names."""
    lines = []
    for method in methods:
        if not inspect.isclass(value):
            continue
        if not hasattr(value, method):
            lines.append(method)
            continue
        facts = methods[method] if isinstance(methods, dict) else {}
        wanted = str(facts.get("sig", "?")) if isinstance(facts, dict) else "?"
        if not wanted.startswith("(") or method == "__init__":
            continue
        own = inspect.getattr_static(value, method)
        bound = isinstance(own, (staticmethod, classmethod))
        function = getattr(value, method)
        problem = signature_problem(function if bound else Bound(function), wanted)
        if problem and not bound:  # jitted functions that are methods too are listed with their first parameter
            problem = signature_problem(function, wanted) and problem
        if problem:
            lines.append(f"{method}: {problem} (wanted {wanted})")
    return lines


class Bound:
    """A method as its callers see it: without the object."""

    def __init__(self, function: Any) -> None:
        self.function = function


def check(table: dict[str, Any], prefix: str) -> tuple[dict[str, list[str]], int]:
    """Problems by module, and how many names were looked at."""
    problems: dict[str, list[str]] = {}
    count = 0
    for module, entry in table["modules"].items():
        if not (module == prefix or module.startswith(prefix + ".")):
            continue
        found = resolve(module)
        names = entry["names"]
        count += len(names)
        if isinstance(found, ImportError):
            problems[module] = [f"cannot be imported ({found}): {len(names)} names"]
            continue
        lines = []
        for name, facts in names.items():
            if facts.get("kind") == "type_alias":
                continue
            value = getattr(found, name, None)
            if value is None and not hasattr(found, name):
                lines.append(name)
                continue
            signature = facts.get("init") if facts.get("kind") == "class" else facts.get("signature")
            problem = signature_problem(value, signature) if signature else None
            if problem:
                lines.append(f"{name}: {problem} (wanted {signature})")
            lines += [f"{name}.{line}" for line in method_problems(value, facts.get("methods") or {})]
        if lines:
            problems[module] = lines
    return problems, count


def main(arguments: list[str]) -> int:
    if len(arguments) > 2:
        print(__doc__)
        return 2
    sys.path.insert(0, str(ROOT / "src"))
    with open(arguments[0] if arguments else LANGUAGE, encoding="utf-8") as file:
        table = json.load(file)
    if "modules" not in table:
        table = {"modules": {module: {"names": names} for module, names in table.items()}}
    problems, count = check(table, arguments[1] if len(arguments) == 2 else "triton")
    for module, lines in problems.items():
        print(module)
        for line in lines:
            print(f"    {line}")
    missing = sum(len(lines) for lines in problems.values())
    print(f"{count} names looked at, {missing} lines above")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
