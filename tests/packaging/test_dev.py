"""dev.py's decisions, and the pieces it makes a channel from."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import dev  # noqa: E402


def test_reachable_channel_is_used(monkeypatch):
    monkeypatch.delenv("CONDA_CHANNEL", raising=False)
    asked: list[tuple[str, float]] = []
    source = dev.choose_source("auto", lambda name, seconds: asked.append((name, seconds)))
    assert (source.name, source.local, source.variants) == ("conda-forge", False, ())
    assert asked == [("conda-forge", 5.0)]


def test_channel_of_the_environment_is_asked_first(monkeypatch):
    monkeypatch.setenv("CONDA_CHANNEL", "mirror")
    assert dev.choose_source("auto", lambda name, seconds: None).name == "mirror"


def test_unreachable_channel_falls_back_to_our_own(monkeypatch):
    monkeypatch.delenv("CONDA_CHANNEL", raising=False)
    source = dev.choose_source("auto", lambda name, seconds: "no route")
    assert source.local and source.name == str(dev.DEV / "channel") and "no route" in source.reason


def test_local_asks_nobody():
    def probe(name: str, seconds: float) -> str | None:
        raise AssertionError("no channel is asked")

    assert dev.choose_source("local", probe).local


def test_named_channel_that_does_not_answer_is_an_error():
    with pytest.raises(dev.Failure, match=r"channel mine cannot be reached: no route"):
        dev.choose_source("mine", lambda name, seconds: "no route")


def test_probe_gives_up_in_time(monkeypatch, tmp_path):
    # A Python that never answers stands for a network that drops packets.
    slow = tmp_path / "python"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr(dev, "tools_python", lambda: slow)
    start = time.monotonic()
    assert dev.probe_channel("any", 0.3) == "no answer in 0.3 s"
    assert time.monotonic() - start < 5


def test_probe_reads_a_channel_that_is_there(monkeypatch, tmp_path):
    pytest.importorskip("rattler")
    monkeypatch.setattr(dev, "tools_python", lambda: Path(sys.executable))
    (tmp_path / "linux-64").mkdir()
    assert dev.probe_channel(tmp_path.as_uri(), 20) is not None
    (tmp_path / "linux-64/repodata.json").write_text("{}")
    assert dev.probe_channel(tmp_path.as_uri(), 20) is None


def test_version_and_test_requirements_are_read_from_their_one_place():
    namespace: dict[str, object] = {}
    line = next(t for t in (ROOT / "src/triton/__init__.py").read_text().splitlines() if t.startswith("__version__"))
    exec(line, namespace)
    assert dev.project_version() == namespace["__version__"]
    assert any(need.startswith("pytest") for need in dev.test_extra())


def test_children_see_no_other_python(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    monkeypatch.setenv("VIRTUAL_ENV", "elsewhere")
    env = dev.environment(PYTHONPATH="here")
    assert env["PYTHONPATH"] == "here" and "VIRTUAL_ENV" not in env
    assert Path(env["PIP_CACHE_DIR"]).is_relative_to(dev.DEV)


def test_failing_command_is_one_line():
    with pytest.raises(dev.Failure, match=r"exit status 3 from: .*exit"):
        dev.call(sys.executable, "-c", "import sys; sys.exit(3)")


def test_result_of_reads_the_last_line_and_passes_the_rest_on(capfd):
    code = "print('working'); print('RESULT [1, 2]')"
    assert dev.result_of(sys.executable, "-c", code, env=dev.environment()) == [1, 2]
    assert capfd.readouterr().out == "working\n"


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"]])
def test_help(words):
    done = subprocess.run([sys.executable, ROOT / "dev.py", *words], capture_output=True, text=True)
    assert done.returncode == 0 and "package" in done.stdout


def test_rest_of_the_line_goes_to_pytest_in_order():
    assert dev.parse(["test", "-q", "tests/ir", "-k", "a or b"]).rest == ["-q", "tests/ir", "-k", "a or b"]
    assert dev.parse(["run", "--channel", "local", "softmax"]).rest == ["softmax"]
    with pytest.raises(SystemExit):
        dev.parse(["package", "extra"])


def test_ignored_files_cover_what_dev_makes():
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert "/.dev/" in ignored and "/src/triton/_C/*.so" in ignored


def test_package_and_index_read_back(tmp_path):
    pytest.importorskip("zstandard")
    from devtools.condapkg import Spec, write_index, write_package

    tree = tmp_path / "tree"
    (tree / "bin").mkdir(parents=True)
    (tree / "bin/tool").write_text("#!/bin/sh\n")
    (tree / "bin/tool").chmod(0o755)
    (tree / "bin/alias").symlink_to("tool")
    spec = Spec(name="tool", version="1.2", depends=("python >=3.10",), run_exports={"weak": ["tool >=1.2"]})
    path = write_package(spec, tree, tmp_path / "channel")
    write_index([spec], tmp_path / "channel")

    assert path.name == "tool-1.2-0.conda"
    with zipfile.ZipFile(path) as archive:
        assert sorted(archive.namelist()) == ["info-tool-1.2-0.tar.zst", "metadata.json", "pkg-tool-1.2-0.tar.zst"]
    record = json.loads((tmp_path / "channel/linux-64/repodata.json").read_text())["packages.conda"][path.name]
    assert record["depends"] == ["python >=3.10"] and record["size"] == path.stat().st_size
    assert json.loads((tmp_path / "channel/noarch/repodata.json").read_text())["packages.conda"] == {}

    package = pytest.importorskip("rattler_build.package").Package.from_file(path)
    assert (package.name, package.version, package.depends) == ("tool", "1.2", ["python >=3.10"])
    assert sorted(package.files) == ["bin/alias", "bin/tool"]


def test_wheel_requirements_become_match_specs():
    pytest.importorskip("packaging")
    from devtools.wheels import conda_spec

    assert conda_spec("Lazy_Loader>=0.4") == "lazy-loader >=0.4"
    assert conda_spec("scipy (>=1.11,<2)") == "scipy <2,>=1.11"
    assert conda_spec('tomli; python_version < "3.0"') is None
    assert conda_spec('pytest>=7; extra == "test"') is None


def test_wheel_is_staged_where_conda_has_it(tmp_path):
    pytest.importorskip("packaging")
    from devtools.wheels import stage_wheel

    wheel = tmp_path / "My_Tool-2.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("my_tool/__init__.py", "")
        archive.writestr("My_Tool-2.0.data/scripts/mine", "#!python\n")
        archive.writestr("My_Tool-2.0.dist-info/METADATA", "Name: My_Tool\nVersion: 2.0\nRequires-Dist: numpy>=1\n")
        archive.writestr("My_Tool-2.0.dist-info/RECORD", "my_tool/__init__.py,,\n")
        archive.writestr("My_Tool-2.0.dist-info/entry_points.txt", "[console_scripts]\nmy-tool = my_tool:main\n")
    tree = tmp_path / "tree"
    spec = stage_wheel(wheel, tree)
    assert (spec.name, spec.version, spec.noarch) == ("my-tool", "2.0", "python")
    assert spec.depends == ("python >=3.10", "numpy >=1") and spec.entry_points == ("my-tool = my_tool:main",)
    assert (tree / "site-packages/my_tool/__init__.py").is_file()
    assert (tree / "bin/mine").stat().st_mode & 0o111


def test_zig_gets_the_arguments_it_knows(monkeypatch):
    from devtools import zig_compiler

    monkeypatch.setattr(zig_compiler, "system_library", lambda name: f"/lib/{name}")
    link = ["-shared", "-Xlinker", "--exclude-libs", "-Xlinker", "ALL", "-Wl,-Bsymbolic-functions", "a.o", "-o", "a.so"]
    runtime = ["/lib/libstdc++.so.6", "/lib/libgcc_s.so.1"]
    assert zig_compiler.translate(link) == ["-shared", "a.o", "-o", "a.so", *runtime]
    assert zig_compiler.translate(["-c", "a.cpp", "-o", "a.o"]) == ["-c", "a.cpp", "-o", "a.o"]


def test_all_that_a_machine_lacks_is_said_at_once(monkeypatch):
    monkeypatch.setattr(dev, "compiler", lambda: None)
    monkeypatch.setattr(dev, "has_headers", lambda: False)
    monkeypatch.setattr(dev, "has_ensurepip", lambda: False)
    monkeypatch.setattr(dev, "apt_install", lambda *packages: False)
    with pytest.raises(dev.Failure, match=r"apt-get install g\+\+ python3-dev python3-venv"):
        dev.prepare_machine()


def test_other_users_do_not_run_apt(monkeypatch):
    monkeypatch.setattr(dev.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(dev.subprocess, "run", lambda *a, **k: pytest.fail("apt-get was run"))
    assert dev.apt_install("g++") is False


def test_link_flags_of_libllvm_leave_other_targets_out(tmp_path):
    pytest.importorskip("zstandard")
    from devtools import llvm

    config = tmp_path / "include/llvm/Config/mlc-all"
    config.mkdir(parents=True)
    (config / "Targets.def").write_text("LLVM_TARGET(AMDGPU)\nLLVM_TARGET(ARM)\nLLVM_TARGET(NVPTX)\nLLVM_TARGET(X86)\n")
    (tmp_path / "lib").mkdir()
    for name in ("Core", "ARMCodeGen", "ARMInfo", "X86CodeGen", "NVPTXDesc", "AMDGPUUtils"):
        (tmp_path / "lib" / f"libLLVM{name}.a").touch()
    kept = [path.name for path in llvm._archives(tmp_path)]
    assert kept == ["libLLVMAMDGPUUtils.a", "libLLVMCore.a", "libLLVMNVPTXDesc.a", "libLLVMX86CodeGen.a"]
