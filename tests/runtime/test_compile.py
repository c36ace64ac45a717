"""``triton.compile``: sources, stages, metadata, the cache of compiled kernels, dumps and overrides."""

from __future__ import annotations

import copy
import gc
import json
import os
import pickle
import warnings
from pathlib import Path
from typing import Any

import kernels
import numpy as np
import pytest
from reference_backend import ReferenceBackend, ReferenceDriver

import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompiledKernel, IRSource
from triton.compiler.errors import CodeGenerationError
from triton.runtime.cache import MAX_NAME, _base32
from triton.runtime.errors import OutOfResources

pytestmark = pytest.mark.usefixtures("device")
SIGNATURE = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}
TARGET = GPUTarget("reference", "", 32)


def source(block: int = 32) -> ASTSource:
    return ASTSource(kernels.add, SIGNATURE, {"BLOCK": block}, {(0,): [["tt.divisibility", 16]]})


def compile(block: int = 32, **options: Any) -> CompiledKernel:
    return triton.compile(source(block), target=TARGET, options=options)


def check(kernel: CompiledKernel) -> None:
    x, out = np.arange(40, dtype="f4"), np.zeros(40, "f4")
    kernel[(2,)](x, x, out, 40, 32)
    np.testing.assert_array_equal(out, 2 * x)


def test_a_compiled_kernel_knows_everything() -> None:
    kernel = compile(num_warps=2)
    assert kernel.metadata.name == kernel.name == kernel.metadata["name"] == "add"
    assert (kernel.metadata.num_warps, kernel.metadata.num_ctas, kernel.shared) == (2, 1, 0)
    assert kernel.metadata.target == TARGET
    assert len(kernel.hash) == 64 and kernel.metadata.hash == kernel.hash
    assert kernel.metadata.written == [2]
    assert list(kernel.asm) == ["source", "ttir", "bin"]
    assert kernel.asm["source"].startswith("def add(") and "store" in kernel.asm["ttir"]
    assert isinstance(kernel.asm["bin"], bytes) and kernel.kernel == kernel.asm["bin"]
    assert kernel.src.fn is kernels.add and kernel.src.constants == {(4,): 32}
    assert set(kernel.metadata.timings) == {"ir", "ttir", "bin"}
    assert kernel.n_regs == 0
    kernel._init_handles()
    assert kernel.n_regs == 7
    check(kernel)


def test_texts_that_are_costly_are_made_when_asked_for() -> None:
    kernel = compile()
    assert "loud" not in kernel.asm
    assert "STORE" in kernel.asm["loud"] and "loud" in kernel.asm
    with pytest.raises(KeyError, match=r"'sass' is none of this kernel's stages: source, ttir"):
        _ = kernel.asm["sass"]
    assert kernel.asm.get("so") is None


def test_pytorchs_calling_convention() -> None:
    kernel = compile()
    kernel._init_handles()
    x, out = np.arange(40, dtype="f4"), np.zeros(40, "f4")
    events: list[Any] = []
    kernel.run(
        2, 1, 1, 0, kernel.function, kernel.packed_metadata, None, events.append, events.append, x, x, out, 40, 32
    )
    np.testing.assert_array_equal(out, 2 * x)
    assert events == [None, None]
    assert kernel.launch_metadata((2, 1, 1), 0, x, x, out, 40, 32) is None


def test_kernels_travel_as_pytorch_sends_them() -> None:
    kernel = compile()
    check(kernel)
    state = {**kernel.__dict__, "module": None, "function": None, "run": None}
    state["src"] = None
    twin = CompiledKernel.__new__(CompiledKernel)
    twin.__dict__.update(pickle.loads(pickle.dumps(state)))
    twin.src = kernel.src
    twin._init_handles()
    check(twin)
    assert twin.asm["loud"] == kernel.asm["loud"]


def test_second_compile_is_read_from_the_cache() -> None:
    first = compile()
    second = compile()
    assert ReferenceBackend.stages_run == ["add"]
    assert second.hash == first.hash and second.kernel == first.kernel
    assert second.metadata.timings == first.metadata.timings
    check(second)
    compile(64)
    compile(num_warps=8)
    triton.compile(ASTSource(kernels.add, SIGNATURE, {"BLOCK": 32}), target=TARGET)
    assert ReferenceBackend.stages_run == ["add"] * 4


def test_the_folder_is_where_pytorch_looks(cache_dir: Path) -> None:
    kernel = compile()
    folder = cache_dir / _base32(kernel.hash)
    assert sorted(p.name for p in folder.iterdir()) == ["add.bin", "add.json", "add.ttir"]
    assert set(kernel.metadata_group.values()) == {str(p) for p in folder.iterdir()}
    again = CompiledKernel(source(), kernel.metadata_group, kernel.hash)
    check(again)


@pytest.mark.parametrize("victim", ["add.bin", "add.ttir", "add.json"])
def test_damaged_entries_are_compiled_again(cache_dir: Path, victim: str) -> None:
    kernel = compile()
    path = cache_dir / _base32(kernel.hash) / victim
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    check(compile())
    assert ReferenceBackend.stages_run == ["add"] * 2
    check(compile())
    assert ReferenceBackend.stages_run == ["add"] * 2


def test_always_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    compile()
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    compile()
    assert ReferenceBackend.stages_run == ["add"] * 2


def test_code_changing_variables_are_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    first = compile()
    monkeypatch.setenv("TRITON_F32_DEFAULT", "ieee")
    second = compile()
    assert first.hash != second.hash
    assert second.metadata.TRITON_F32_DEFAULT == "ieee"


def test_binary_only(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_STORE_BINARY_ONLY", "1")
    kernel = compile()
    assert sorted(p.name for p in (cache_dir / _base32(kernel.hash)).iterdir()) == ["add.bin", "add.json"]
    check(compile())


@pytest.mark.parametrize("kind", ["file", "below a file"])
def test_an_unusable_cache_folder_warns_once(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / f"blocked {kind}"
    blocked.write_text("in the way")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(blocked if kind == "file" else blocked / "cache"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check(compile())
        check(compile(64))
    assert len([w for w in caught if "cannot write the cache folder" in str(w.message)]) == 1
    assert ReferenceBackend.stages_run == ["add"] * 2
    assert blocked.read_text() == "in the way"


def test_long_names_in_deep_folders_with_odd_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path
    while len(str(deep)) < 180:
        deep = deep / "größe und länge 長い"
    monkeypatch.setenv("TRITON_CACHE_DIR", str(deep))
    name = "k" * 300
    path = tmp_path / "long.py"
    path.write_text(
        f"import triton\nimport triton.language as tl\n@triton.jit\ndef {name}(out):\n    tl.store(out, 3)\n"
    )
    scope: dict[str, Any] = {"__name__": "long_names"}
    exec(__builtins__["compile"](path.read_text(), str(path), "exec"), scope)
    for _ in range(2):
        kernel = triton.compile(ASTSource(scope[name], {"out": "*i32"}), target=TARGET)
        out = np.zeros(1, "i4")
        kernel[(1,)](out)
        assert out[0] == 3 and kernel.name == name
    assert ReferenceBackend.stages_run == [name]
    assert max(len(p.name) for p in deep.rglob("*")) <= MAX_NAME + 8


def test_text_in_a_file_is_a_source(tmp_path: Path) -> None:
    path = tmp_path / "written.ttir"
    path.write_text(compile().asm["ttir"])
    for src in (str(path), IRSource(path)):
        kernel = triton.compile(src, target=TARGET)
        assert kernel.src.signature == {name: kind for name, kind in SIGNATURE.items() if kind != "constexpr"}
        x, out = np.arange(40, dtype="f4"), np.zeros(40, "f4")
        kernel[(2,)](x, x, out, 40)
        np.testing.assert_array_equal(out, 2 * x)
    path = tmp_path / "written.foo"
    path.write_text("")
    with pytest.raises(ValueError, match="no stage is called 'foo'; stages: ttir, bin"):
        triton.compile(str(path), target=TARGET)


def test_dumps_and_overrides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DUMP_DIR", str(tmp_path / "dump"))
    monkeypatch.setenv("TRITON_OVERRIDE_DIR", str(tmp_path / "override"))
    monkeypatch.setenv("TRITON_KERNEL_DUMP", "1")
    compile()
    (folder,) = (tmp_path / "dump").iterdir()
    assert sorted(p.name for p in folder.iterdir()) == ["add.bin", "add.source", "add.ttir"]
    monkeypatch.delenv("TRITON_KERNEL_DUMP")
    edited = (folder / "add.ttir").read_text().replace("= add %", "= mul %", 10)
    put = tmp_path / "override" / folder.name
    put.mkdir(parents=True)
    (put / "add.ttir").write_text(edited)
    monkeypatch.setenv("TRITON_KERNEL_OVERRIDE", "1")
    kernel = compile()
    assert "= add %" not in kernel.asm["ttir"]


def test_one_configuration_can_bring_its_ir(tmp_path: Path) -> None:
    path = tmp_path / "mine.ttir"
    path.write_text(compile().asm["ttir"])
    check(compile(ir_override=str(path)))


def test_the_listener_hears_of_hits_and_misses() -> None:
    heard: list[dict[str, Any]] = []
    with knobs.compilation.scope():
        knobs.compilation.listener = lambda **kwargs: heard.append(kwargs)
        compile()
        compile()
    assert [h["cache_hit"] for h in heard] == [False, True]
    assert [name for name, _ in heard[0]["times"].lowering_stages] == ["ttir", "bin"]
    assert heard[0]["times"].total > 0 and heard[1]["times"].total_lowering == 0
    assert heard[0]["metadata"]["name"] == "add" and "add.bin" in heard[0]["metadata_group"]


def test_a_stages_hook_sees_and_changes_the_stages(cache_dir: Path) -> None:
    def hook(stages: dict[str, Any], options: Any, language: Any, capability: Any) -> None:
        before = stages["bin"]
        stages["bin"] = lambda module, metadata: before(module, {**metadata, "seen": True})

    with knobs.runtime.scope():
        knobs.runtime.add_stages_inspection_hook = hook
        check(compile())
    assert not cache_dir.exists()


def test_load_and_unload_hooks() -> None:
    events: list[str] = []
    start = lambda module, function, name, group, hash: events.append(f"start {name} {module}")  # noqa: E731
    end = lambda module, function, name, group, hash: events.append(f"end {name} {module is not None}")  # noqa: E731
    unload = lambda module, function, name, group, hash: events.append(f"unload {name}")  # noqa: E731
    with knobs.runtime.scope():
        gc.collect()  # kernels of earlier tests
        knobs.runtime.reset()
        knobs.runtime.kernel_load_start_hook.add(start)
        knobs.runtime.kernel_load_end_hook.add(end)
        knobs.runtime.kernel_unload_hook.add(unload)
        kernel = compile()
        check(kernel)
        check(kernel)
        del kernel
        gc.collect()
    assert events == ["start add None", "end add True", "unload add"]


def test_failures_of_the_code_generator_say_where() -> None:
    with pytest.raises(CodeGenerationError, match=r"kernels.py:\d+: kernel 'add': stage 'ttir' failed: this cannot be"):
        compile(fail="code")
    check(compile())


def test_too_much_shared_memory_is_told_at_load() -> None:
    kernel = compile(fail="shared")
    with pytest.raises(OutOfResources, match="shared memory: required 1073741824, the limit is 1048576") as caught:
        kernel._init_handles()
    twin = pickle.loads(pickle.dumps(caught.value))
    assert (twin.required, twin.limit, twin.name) == (1 << 30, 1 << 20, "shared memory")


def test_missing_back_ends_are_named() -> None:
    with pytest.raises(RuntimeError, match=r"back end 'metal' is not part of this build .*; available: .*reference"):
        triton.compile(source(), target=GPUTarget("metal", 3, 32))


def test_sources_check_their_signature() -> None:
    with pytest.raises(ValueError, match="lacks parameter 'n'"):
        ASTSource(kernels.add, {k: v for k, v in SIGNATURE.items() if k != "n"})
    with pytest.raises(ValueError, match="no parameter 'z'"):
        ASTSource(kernels.add, {**SIGNATURE, "z": "i32"})
    by_path = ASTSource(kernels.add, SIGNATURE, {(4,): 32}, {(0,): [("tt.divisibility", 16)]})
    assert by_path.hash() == source().hash()
    shuffled = ASTSource(kernels.add, dict(reversed(SIGNATURE.items())), {"BLOCK": 32}, source().attrs)
    assert shuffled.hash() == source().hash()
    assert source(32).hash() != source(64).hash()


def test_the_overlap_variant_needs_no_python_source(device: ReferenceDriver) -> None:
    kernel = compile()
    sent = copy.copy(kernel.src)
    sent.fn = None
    kernel.src = sent
    data = np.arange(32, dtype="f4")
    kernel[(1,)](data, data, data, 32, 32)
    np.testing.assert_array_equal(data, 2 * np.arange(32))
    assert device.launches[-1][1].may_alias is True


def test_metadata_is_json(cache_dir: Path) -> None:
    kernel = compile()
    path = kernel.metadata_group["add.json"]
    data = json.loads(Path(path).read_bytes())
    assert data["target"] == {"backend": "reference", "arch": "", "warp_size": 32}
    assert os.path.dirname(path).startswith(str(cache_dir))
    with pytest.raises(AttributeError, match="no 'colour'"):
        _ = kernel.metadata.colour


def test_bugs_of_the_compiler_leave_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DUMP_DIR", str(tmp_path / "dump"))
    with pytest.raises(
        CodeGenerationError, match=r"compiler itself failed in stage 'ttir': KeyError\('a bug'\); .*fail"
    ):
        compile(fail="bug")
    (folder,) = (tmp_path / "dump").iterdir()
    contents = {path.name: path.read_text() for path in folder.iterdir()}
    assert "def add(" in contents["kernel.py"] and "store" in contents["before_ttir.txt"]
    assert "KeyError" in contents["error.txt"] and "'n': 'i32'" in contents["signature.txt"]
    check(compile())
