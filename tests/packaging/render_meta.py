"""Renders recipe/meta.yaml as conda-build would: Jinja, `# [selector]` comments, variants.

conda-build is not on PyPI, so that the real one cannot be a test dependency. Covers what this recipe uses, and refuses
the rest.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import jinja2
import yaml

_SELECTOR = re.compile(r"^(?P<line>.*?)\s+#\s*\[(?P<condition>[^\[\]]+)\]\s*$")


def _platform(platform: str) -> dict[str, Any]:
    system = platform.split("-")[0]
    return {
        "linux": system == "linux",
        "osx": system == "osx",
        "win": system == "win",
        "unix": system in ("linux", "osx"),
        "linux64": platform == "linux-64",
        "target_platform": platform,
    }


def select(text: str, names: dict[str, Any]) -> str:
    """Drops the lines whose `# [condition]` does not hold; a comment line's condition is left alone."""
    kept: list[str] = []
    for line in text.splitlines():
        found = _SELECTOR.match(line)
        if found is None or line.lstrip().startswith("#"):
            kept.append(line)
        elif eval(found["condition"], {"__builtins__": {}}, names):
            kept.append(found["line"])
    return "\n".join(kept) + "\n"


def variants(config: Path, platform: str, overrides: dict[str, str] | None = None) -> list[dict[str, str]]:
    """Every combination of conda_build_config.yaml's values that holds on `platform`; `zip_keys` go item by item.

    Overriding one key of a group keeps the items that have that value.
    """
    chosen = yaml.safe_load(select(config.read_text(), _platform(platform)))
    groups = chosen.pop("zip_keys", [])
    values = {key: list(map(str, value)) for key, value in chosen.items() if value}
    choices: list[list[dict[str, str]]] = []
    for group in [*groups, *([key] for key in values if not any(key in group for group in groups))]:
        items = [dict(zip(group, item, strict=True)) for item in zip(*(values[key] for key in group), strict=True)]
        wanted = {key: value for key, value in (overrides or {}).items() if key in group}
        kept = [item for item in items if wanted.items() <= item.items()]
        choices.append(kept or [{**items[0], **wanted}])
    extra = {key: value for key, value in (overrides or {}).items() if key not in values}
    return [
        {k: v for item in combination for k, v in item.items()} | extra for combination in itertools.product(*choices)
    ]


def render(recipe: Path, variant: dict[str, str], platform: str) -> dict[str, Any]:
    """The recipe's document under one variant; the build string keeps HASH where conda-build puts the hash."""
    names = {**_platform(platform), **variant}

    def compiler(language: str) -> str:
        return f"{variant[f'{language}_compiler']}_{platform}"

    def stdlib(language: str) -> str:
        name, version = f"{variant[f'{language}_stdlib']}_{platform}", variant.get(f"{language}_stdlib_version")
        return name if version is None else f"{name} {version}.*"

    template = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(select(recipe.read_text(), names))
    document = yaml.safe_load(template.render(compiler=compiler, stdlib=stdlib, PKG_HASH="HASH", **names))
    assert isinstance(document, dict)
    return document


def skip_conditions(recipe: Path) -> list[str]:
    """The conditions of the lines `skip: true  # [condition]`."""
    lines = [found for line in recipe.read_text().splitlines() if (found := _SELECTOR.match(line))]
    return [found["condition"] for found in lines if found["line"].strip() == "skip: true"]


def skipped(recipe: Path, variant: dict[str, str], platform: str) -> bool:
    """Whether one of them holds, without rendering what may not be defined there."""
    names = {**_platform(platform), **variant}
    return any(eval(condition, {"__builtins__": {}}, names) for condition in skip_conditions(recipe))
