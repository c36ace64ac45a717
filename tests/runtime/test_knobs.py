"""Settings and their environment variables."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from triton import knobs

GROUPS = ("amd", "autotuning", "build", "cache", "compilation", "language", "nvidia", "proton", "redis", "runtime")


def test_flags_read_the_environment_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, expected in [
        ("1", True),
        ("TRUE", True),
        ("on", True),
        ("Yes", True),
        ("y", True),
        ("2", False),
        ("", False),
    ]:
        monkeypatch.setenv("TRITON_ALWAYS_COMPILE", text)
        assert knobs.compilation.always_compile is expected
    monkeypatch.delenv("TRITON_ALWAYS_COMPILE")
    assert knobs.compilation.always_compile is False
    assert knobs.amd.use_buffer_ops is True
    assert knobs.amd.use_async_copy is None


def test_setting_exports_and_scope_undoes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_KERNEL_DUMP", raising=False)
    with knobs.compilation.scope():
        knobs.compilation.dump_ir = True
        assert os.environ["TRITON_KERNEL_DUMP"] == "1"
        knobs.compilation.listener = print  # type: ignore[assignment]
    assert "TRITON_KERNEL_DUMP" not in os.environ
    assert knobs.compilation.dump_ir is False
    assert knobs.compilation.listener is None


def test_env_goes_back_to_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_REDIS_PORT", "1234")
    with knobs.redis.scope():
        monkeypatch.setattr(knobs, "propagate_env", False)
        knobs.redis.port = 99
        assert (knobs.redis.port, os.environ["TRITON_REDIS_PORT"]) == (99, "1234")
        knobs.redis.port = knobs.env
        assert knobs.redis.port == 1234
        knobs.redis.port = 7
        del knobs.redis.port
        assert knobs.redis.port == 1234
    monkeypatch.setenv("TRITON_REDIS_PORT", "abc")
    with pytest.raises(RuntimeError, match="TRITON_REDIS_PORT='abc' is not an integer"):
        _ = knobs.redis.port


@pytest.mark.parametrize("group", GROUPS)
def test_empty_variables_count_as_unset(monkeypatch: pytest.MonkeyPatch, group: str) -> None:
    """All but flags, which an empty value makes false."""
    knob_group = getattr(knobs, group)
    for name, descriptor in knob_group.knob_descriptors.items():
        if isinstance(descriptor, knobs.env_nvidia_tool):
            continue
        monkeypatch.delenv(descriptor.key, raising=False)
        unset = getattr(knob_group, name)
        monkeypatch.setenv(descriptor.key, "")
        flag = isinstance(descriptor, (knobs.env_bool, knobs.env_opt_bool))
        assert getattr(knob_group, name) == (False if flag else unset), name


def test_copy_and_reset() -> None:
    with knobs.autotuning.scope():
        knobs.autotuning.print = True
        twin = knobs.autotuning.copy()
        assert twin.print is True
        assert knobs.autotuning.reset() is knobs.autotuning
        assert twin.__dict__ == {"print": True}
        assert knobs.autotuning.__dict__ == {}


def test_folders_hang_on_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("TRITON_CACHE_DIR", "TRITON_DUMP_DIR", "TRITON_OVERRIDE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRITON_HOME", str(tmp_path))
    assert knobs.cache.dir == str(tmp_path / ".triton" / "cache")
    assert knobs.cache.dump_dir == str(tmp_path / ".triton" / "dump")


def test_hook_chains_are_false_when_empty() -> None:
    chain: knobs.HookChain[Any] = knobs.HookChain(reversed=True)
    assert not chain
    seen: list[int] = []
    first, second = (lambda: seen.append(1)), (lambda: seen.append(2))
    chain.add(first)
    chain.add(second)
    chain.add(first)
    assert chain
    chain()
    assert seen == [2, 1]
    chain.remove(second)
    chain()
    assert seen == [2, 1, 1]


def test_a_missing_tool_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRITON_PTXAS_PATH", str(tmp_path / "none"))
    with pytest.raises(RuntimeError, match="set TRITON_PTXAS_PATH"):
        _ = knobs.nvidia.ptxas


def test_code_changing_variables_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_F32_DEFAULT", "ieee")
    monkeypatch.setenv("TRITON_PRINT_AUTOTUNING", "0")
    found = knobs.get_cache_invalidating_env_vars()
    assert found["TRITON_F32_DEFAULT"] == "ieee"
    assert "TRITON_PRINT_AUTOTUNING" not in found


def test_fusion(monkeypatch: pytest.MonkeyPatch) -> None:
    assert knobs.language.fp_fusion_enabled(None) is True
    assert knobs.language.fp_fusion_enabled(False) is False
    monkeypatch.setenv("TRITON_FORCE_DISABLE_FP_FUSION", "1")
    assert knobs.language.fp_fusion_enabled(True) is False


def test_import_time_flags_are_read_again_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    with knobs.runtime.scope():
        monkeypatch.setenv("TRITON_DEBUG", "1")
        assert knobs.runtime.debug is False
        knobs.refresh_knobs()
        assert knobs.runtime.debug is True
    assert knobs.runtime.debug is False


@pytest.mark.parametrize("group", GROUPS)
def test_every_group_lists_its_knobs(group: str) -> None:
    knob_group = getattr(knobs, group)
    described = knob_group.knob_descriptors
    tools = {"cuobjdump", "nvdisasm", "ptxas", "ptxas_blackwell"}
    assert described
    for name, descriptor in described.items():
        assert descriptor.name == name and descriptor.key
        if name not in tools:
            json.dumps(getattr(knob_group, name), default=repr)
