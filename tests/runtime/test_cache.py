"""The cache on disk: whole files or none, damage read as a miss, eviction by last use."""

from __future__ import annotations

import json
import os
import sys
import threading
import types
from pathlib import Path

import pytest

from triton import knobs
from triton.runtime import cache


def entry(key: str, size: int = 100) -> cache.FileCacheManager:
    manager = cache.get_cache_manager(key)
    assert isinstance(manager, cache.FileCacheManager)
    cache.store_entry(manager, "k", {"name": "k"}, {"k.obj": b"o" * size, "k.ttir": b"text"})
    return manager


def test_stored_entries_load() -> None:
    manager = entry("ab12")
    loaded = cache.load_entry(manager, "k")
    assert loaded is not None
    metadata, files, paths = loaded
    assert metadata == {"name": "k"}
    assert files == {"k.obj": b"o" * 100, "k.ttir": b"text"}
    assert set(paths) == {"k.obj", "k.ttir", "k.json"}
    assert cache.load_entry(manager, "other") is None


def test_folder_names_are_short_and_safe() -> None:
    key = "0123456789abcdef" * 4
    assert len(cache._base32(key)) == 52
    assert cache._base32("not hexadecimal") == cache._base32("not hexadecimal")
    assert cache._base32("not hexadecimal").isalnum()


def test_short_names_differ_and_fit() -> None:
    long = "k" * 300
    assert cache.short_name("plain_name") == "plain_name"
    assert len(cache.short_name(long)) <= cache.MAX_NAME
    assert cache.short_name(long) != cache.short_name(long + "k")
    assert cache.short_name("a<b>") != cache.short_name("a_b_")
    assert cache.short_name("größe").isascii()


@pytest.mark.parametrize("victim", ["k.obj", "k.ttir", "k.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "gone"])
def test_damage_reads_as_a_miss(victim: str, damage: str) -> None:
    manager = entry("ab12")
    path = Path(manager.cache_dir) / victim
    data = bytearray(path.read_bytes())
    if damage == "gone":
        path.unlink()
    else:
        if damage == "flip":
            data[len(data) // 2] ^= 4
        path.write_bytes({"flip": bytes(data), "cut": bytes(data[:-1]), "empty": b""}[damage])
    assert cache.load_entry(manager, "k") is None
    assert cache.load_entry(entry("ab12"), "k") is not None


def test_every_bit_flip_in_the_index_is_seen() -> None:
    manager = entry("ab12")
    path = Path(manager.cache_dir) / "k.json"
    whole = path.read_bytes()
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 1
        path.write_bytes(bytes(damaged))
        assert cache.load_entry(manager, "k") is None, position


def test_a_folder_can_be_copied_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = entry("ab12")
    manager.put_group("all", {"k.obj": os.path.join(manager.cache_dir, "k.obj")})
    other = tmp_path / "other"
    other.mkdir()
    os.rename(manager.cache_dir, other / os.path.basename(manager.cache_dir))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(other))
    moved = cache.get_cache_manager("ab12")
    assert cache.load_entry(moved, "k") is not None
    group = moved.get_group("all")
    assert group is not None and group["k.obj"].startswith(str(other))


def test_no_temporary_files_remain(cache_dir: Path) -> None:
    for i in range(5):
        entry(f"{i:02x}")
    left = [p.name for p in cache_dir.rglob("*") if p.name.startswith(".")]
    assert left == []


def test_failed_writes_leave_nothing(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = cache.get_cache_manager("ab")
    manager.put(b"x", "first")

    def refuse(source: str, target: str) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        manager.put(b"x", "second")
    assert [p.name for p in cache_dir.rglob("*") if p.is_file()] == ["first"]


def test_a_target_held_open_elsewhere_keeps_its_content(monkeypatch: pytest.MonkeyPatch, cache_dir: Path) -> None:
    manager = cache.get_cache_manager("ab")
    path = manager.put(b"x", "file")

    def refuse(source: str, target: str) -> None:
        raise PermissionError("open in another process")

    monkeypatch.setattr(os, "replace", refuse)
    assert manager.put(b"x", "file") == path
    assert [p.name for p in cache_dir.rglob("*") if p.is_file()] == ["file"]


def test_many_threads_write_and_read_one_key() -> None:
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(10):
                loaded = cache.load_entry(entry("cc"), "k")
                assert loaded is not None
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def used(manager: cache.FileCacheManager, when: float) -> None:
    for name in os.listdir(manager.cache_dir):
        os.utime(os.path.join(manager.cache_dir, name), (when, when))


def test_a_folder_evicted_while_a_file_is_written(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may move the folder away between the writing of a file and its renaming."""
    replace, evictions = cache._replace, []

    def after_eviction(source: str, target: str) -> None:
        if len(evictions) < 3:
            evictions.append(cache.evict(str(cache_dir), 0))
        replace(source, target)

    monkeypatch.setattr(cache, "_replace", after_eviction)
    manager = entry("ee12")
    assert evictions == [1, 1, 1]
    assert manager.get_file("k.obj") is not None or manager.get_file("k.ttir") is not None
    assert not list(cache_dir.glob("**/.tmp-*"))


def test_eviction_removes_the_least_recently_used(cache_dir: Path) -> None:
    managers = [entry(f"{i:02x}", 1000) for i in range(4)]
    for i, manager in enumerate(managers):
        used(manager, 1_000_000.0 + i)
    used(managers[0], 2_000_000.0)
    size = sum(p.stat().st_size for p in cache_dir.rglob("*") if p.is_file())
    assert cache.evict(str(cache_dir), size // 2) == 2
    alive = [cache.load_entry(m, "k") is not None for m in managers]
    assert alive == [True, False, False, True]
    assert cache.evict(str(cache_dir), size) == 0


def test_the_size_limit_is_kept(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_SIZE", "20k")
    assert knobs.cache.size == 20 << 10
    cache._written.clear()
    for i in range(40):
        manager = entry(f"{i:02x}", 2000)
        assert cache.load_entry(manager, "k") is not None, "what was just stored stays"
    size = sum(p.stat().st_size for p in cache_dir.rglob("*") if p.is_file())
    assert size <= 24 << 10


def test_a_hit_counts_as_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_SIZE", "1G")
    manager = entry("ab")
    used(manager, 1_000_000.0)
    assert cache.load_entry(manager, "k") is not None
    assert os.stat(os.path.join(manager.cache_dir, "k.json")).st_mtime > 1_000_000.0


def test_stale_temporary_files_go_with_a_scan(cache_dir: Path) -> None:
    manager = entry("ab")
    stale = Path(manager.cache_dir) / f"{cache._TEMPORARY}1-2-3"
    stale.write_bytes(b"")
    os.utime(stale, (1_000_000.0, 1_000_000.0))
    cache.evict(str(cache_dir), 1 << 30)
    assert not stale.exists()
    assert cache.load_entry(manager, "k") is not None


@pytest.mark.parametrize("text", ["many", "10X", "-1"])
def test_a_bad_size_is_named(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_SIZE", text)
    with pytest.raises(RuntimeError, match="TRITON_CACHE_SIZE"):
        _ = knobs.cache.size


class Shelf(cache.RemoteCacheBackend):
    """A remote cache that is a dictionary."""

    files: dict[str, bytes] = {}  # noqa: RUF012 - shared on purpose

    def get(self, filenames: list[str]) -> dict[str, bytes]:
        return {n: self.files[self.key + n] for n in filenames if self.key + n in self.files}

    def put(self, filename: str, data: bytes) -> None:
        self.files[self.key + filename] = data


def test_a_remote_cache_fills_the_local_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = types.ModuleType("shelf_module")
    module.Shelf = Shelf  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "shelf_module", module)
    monkeypatch.setenv("TRITON_REMOTE_CACHE_BACKEND", "shelf_module:Shelf")
    manager = cache.get_cache_manager("ab")
    assert isinstance(manager, cache.RemoteCacheManager)
    cache.store_entry(manager, "k", {"name": "k"}, {"k.obj": b"1"})
    manager.put_group("g", {"k.obj": "anywhere/k.obj"})
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "second machine"))
    again = cache.get_cache_manager("ab")
    loaded = cache.load_entry(again, "k")
    assert loaded is not None and loaded[1] == {"k.obj": b"1"}
    group = again.get_group("g")
    assert group is not None and Path(group["k.obj"]).read_bytes() == b"1"


def test_a_cache_manager_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine(cache.FileCacheManager):
        pass

    module = types.ModuleType("mine_module")
    module.Mine = Mine  # type: ignore[attr-defined]
    module.Other = dict  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mine_module", module)
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "mine_module:Mine")
    assert isinstance(cache.get_cache_manager("ab"), Mine)
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "mine_module:Other")
    with pytest.raises(RuntimeError, match="CacheManager"):
        cache.get_cache_manager("ab")


def test_the_index_is_json(cache_dir: Path) -> None:
    manager = entry("ab")
    data = json.loads((Path(manager.cache_dir) / "k.json").read_bytes())
    assert data["name"] == "k" and set(data["files"]) == {"k.obj", "k.ttir"}


def test_the_package_key_is_stable() -> None:
    assert cache.triton_key() == cache.triton_key()
    cache.triton_key.cache_clear()
    assert cache.triton_key().startswith("3.")


def test_the_package_key_is_kept_and_checked(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.triton_key.cache_clear()
    key = cache.triton_key()
    entry("ab")
    (kept,) = cache_dir.rglob(cache._KEY_FILE)
    reads: list[str] = []
    real = open

    def counting(path: object, *args: object, **kwargs: object) -> object:
        reads.append(str(path))
        return real(path, *args, **kwargs)  # type: ignore[call-overload]

    monkeypatch.setattr(cache, "open", counting, raising=False)
    cache.triton_key.cache_clear()
    assert cache.triton_key() == key and reads == [str(kept)]
    kept.write_text("3.0-forged\nchecksum")
    cache.triton_key.cache_clear()
    assert cache.triton_key() == key and len(reads) > 50
    monkeypatch.undo()
    cache.triton_key.cache_clear()
