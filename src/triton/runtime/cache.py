"""Compiled kernels on disk, shared by any number of processes.

One folder per key holds the files of one kernel. Every file is written under a temporary name and renamed, so a reader
sees a whole file or none. The kernel's index is written last and carries a checksum of itself and of every file it
names: whatever is missing, cut short or changed reads as a miss, and is compiled and written again.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import itertools
import json
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from .. import __version__, knobs

MAX_NAME = 80  # the longest file name, so that a deep cache folder still fits Windows' 260 characters
_TRASH = ".evicted-"
_TEMPORARY = ".tmp-"
_STALE_SECONDS = 3600.0
_counter = itertools.count()


def _base32(key: str) -> str:
    """A folder name for a key: lower-case letters and digits of its bytes when it is hexadecimal, else of its hash."""
    try:
        data = bytes.fromhex(key) if key.isalnum() else b""
    except ValueError:
        data = b""
    return base64.b32encode(data or hashlib.sha256(key.encode()).digest()).decode().rstrip("=")


def short_name(name: str) -> str:
    """A file name's stem for a kernel of any name: plain letters, at most MAX_NAME long, different for each name."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "_.-") else "_" for c in name)
    if plain == name and len(name) <= MAX_NAME - 16:
        return name
    return f"{plain[: MAX_NAME - 40]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def digest(data: bytes) -> str:
    """The checksum of a file in the cache."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _replace(source: str, target: str) -> None:
    """Rename over ``target``. Where a reader holds it open and the system forbids that, the old file stays: a file of a
    key has one content, so that is no loss."""
    try:
        os.replace(source, target)
    except PermissionError:
        if not os.path.exists(target):
            raise
        os.unlink(source)


def read_file(path: str) -> bytes | None:
    """A file's bytes, or None when it cannot be read: it may have been evicted just now."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def write_atomically(path: str, data: bytes) -> None:
    """Put a whole file at ``path`` or, on failure, nothing."""
    for attempt in range(_ATTEMPTS):
        try:
            return _write_once(path, data)
        except FileNotFoundError:  # the folder is new, or was evicted just now, perhaps with the file that was written
            if attempt == _ATTEMPTS - 1:
                raise
            os.makedirs(os.path.dirname(path), exist_ok=True)


def _write_once(path: str, data: bytes) -> None:
    name = f"{_TEMPORARY}{os.getpid()}-{next(_counter)}-{threading.get_ident()}"
    temporary = os.path.join(os.path.dirname(path), name)
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o644)
        with open(descriptor, "wb") as file:
            file.write(data)
        _replace(temporary, path)
    except OSError:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


_ATTEMPTS = 8
"""How often a file is written anew because its folder was evicted meanwhile."""


class CacheManager(ABC):
    """Files kept under one key."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        self.key = key

    @abstractmethod
    def get_file(self, filename: str) -> str | None:
        """The path of a file, or None."""

    @abstractmethod
    def put(self, data: Any, filename: str, binary: bool = True) -> str:
        """Keep a file; returns its path."""

    @abstractmethod
    def get_group(self, filename: str) -> dict[str, str] | None:
        """The files of a group by name, or None when the group or one of them is not there."""

    @abstractmethod
    def put_group(self, filename: str, group: dict[str, str]) -> Any:
        """Keep the list of a group's files."""


class FileCacheManager(CacheManager):
    """A folder of the local cache (or, with ``dump`` and ``override``, of those folders)."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        super().__init__(key)
        root = knobs.cache.dump_dir if dump else knobs.cache.override_dir if override else knobs.cache.dir
        if not root:
            raise RuntimeError("the cache folder's name is empty; set TRITON_CACHE_DIR")
        self.cache_dir = os.path.join(root, key)
        self.lock_path: str | None = None  # nothing is locked: files appear by renaming

    def _make_path(self, filename: str) -> str:
        return os.path.join(self.cache_dir, filename)

    def has_file(self, filename: str) -> bool:
        return os.path.exists(self._make_path(filename))

    def get_file(self, filename: str) -> str | None:
        path = self._make_path(filename)
        return path if os.path.exists(path) else None

    def put(self, data: Any, filename: str, binary: bool = True) -> str:
        path = self._make_path(filename)
        write_atomically(path, data if isinstance(data, bytes) else str(data).encode())
        return path

    def get_group(self, filename: str) -> dict[str, str] | None:
        index = self.get_file(f"__grp__{filename}")
        if index is None:
            return None
        data = read_file(index)
        try:
            names = json.loads(data or b"")["child_paths"]
        except (ValueError, KeyError):
            return None
        group = {name: self._make_path(os.path.basename(path)) for name, path in names.items()}
        return group if all(os.path.exists(path) for path in group.values()) else None

    # Names are kept without their folder, so that the folder may be copied elsewhere.
    def put_group(self, filename: str, group: dict[str, str]) -> str:
        names = {name: os.path.basename(path) for name, path in group.items()}
        return self.put(json.dumps({"child_paths": names}), f"__grp__{filename}")


class RemoteCacheBackend(ABC):
    """Where a cache shared between machines keeps one key's files."""

    def __init__(self, key: str) -> None:
        self.key = key

    @abstractmethod
    def get(self, filenames: list[str]) -> dict[str, bytes]:
        """The files that are there."""

    @abstractmethod
    def put(self, filename: str, data: bytes) -> Any:
        """Keep a file."""


class RedisRemoteCacheBackend(RemoteCacheBackend):
    """Files in a Redis server, as ``TRITON_REDIS_HOST``, ``_PORT`` and ``_KEY_FORMAT`` say. Needs the redis package."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        import redis  # type: ignore[import-not-found]  # only for those who chose this backend

        self._key = key
        self._key_fmt = knobs.redis.key_format
        self._redis = redis.Redis(host=knobs.redis.host, port=knobs.redis.port)

    def _get_key(self, filename: str) -> str:
        return self._key_fmt.format(key=self._key, filename=filename)

    def get(self, filenames: list[str]) -> dict[str, bytes]:
        found = self._redis.mget([self._get_key(name) for name in filenames])
        return {name: data for name, data in zip(filenames, found, strict=True) if data is not None}

    def put(self, filename: str, data: bytes) -> Any:
        return self._redis.set(self._get_key(filename), data)


class RemoteCacheManager(CacheManager):
    """A remote cache with the local one in front of it: remote files are copied into the local folder."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        super().__init__(key)
        self._override = override
        self._dump = dump
        self._file_cache_manager = FileCacheManager(key, override, dump)
        self._backend: RemoteCacheBackend = knobs.cache.remote_manager_class(key)

    @property
    def _local_only(self) -> bool:
        return self._override or self._dump

    def _materialize(self, filename: str, data: bytes) -> str:
        return self._file_cache_manager.put(data, filename)

    def get_file(self, filename: str) -> str | None:
        if self._local_only:
            return self._file_cache_manager.get_file(filename)
        found = self._backend.get([filename])
        return self._materialize(filename, found[filename]) if filename in found else None

    def put(self, data: Any, filename: str, binary: bool = True) -> str:
        payload = data if isinstance(data, bytes) else str(data).encode()
        if not self._local_only:
            self._backend.put(filename, payload)
        return self._file_cache_manager.put(payload, filename)

    def get_group(self, filename: str) -> dict[str, str] | None:
        if self._local_only:
            return self._file_cache_manager.get_group(filename)
        index = f"__grp__{filename}"
        found = self._backend.get([index])
        if index not in found:
            return None
        names = json.loads(found[index])["child_paths"]
        files = self._backend.get([os.path.basename(path) for path in names.values()])
        if len(files) < len(names):
            return None
        return {name: self._materialize(os.path.basename(p), files[os.path.basename(p)]) for name, p in names.items()}

    def put_group(self, filename: str, group: dict[str, str]) -> str:
        names = {name: os.path.basename(path) for name, path in group.items()}
        return self.put(json.dumps({"child_paths": names}), f"__grp__{filename}")


def get_cache_manager(key: str) -> CacheManager:
    """The files under ``key``, in the cache that the knobs choose."""
    if knobs.cache.remote_manager_class is not None:
        return RemoteCacheManager(_base32(key))
    cls = knobs.cache.manager_class or FileCacheManager
    manager: CacheManager = cls(_base32(key))
    return manager


def get_override_manager(key: str) -> CacheManager:
    return FileCacheManager(_base32(key), override=True)


def get_dump_manager(key: str) -> CacheManager:
    return FileCacheManager(_base32(key), dump=True)


# ---- entries: the files of one compiled kernel ----------------------------------------------------------------------


def _sealed(data: Mapping[str, Any]) -> bytes:
    body = json.dumps(data, default=str)
    return f'{body[:-1]}, "checksum": "{digest(body.encode())}"}}'.encode()


def _unsealed(data: bytes) -> dict[str, Any] | None:
    text = data.decode("utf-8", "replace")
    body, mark, tail = text.rpartition(', "checksum": "')
    body += "}"
    if not mark or tail != f'{digest(body.encode())}"}}':
        return None
    entry: dict[str, Any] = json.loads(body)
    return entry


def store_entry(
    manager: CacheManager, name: str, metadata: dict[str, Any], files: Mapping[str, bytes]
) -> dict[str, str]:
    """Publish a kernel: its files, then the index that makes them count. Returns the paths by file name.

    Raises OSError when the folder cannot be written.
    """
    group = {filename: manager.put(data, filename) for filename, data in files.items()}
    sums = {filename: [len(data), digest(data)] for filename, data in files.items()}
    index = f"{name}.json"
    group[index] = manager.put(_sealed({**metadata, "files": sums}), index)
    if isinstance(manager, FileCacheManager):
        _keep_package_key()
        _account(os.path.dirname(manager.cache_dir), manager.key, sum(map(len, files.values())))
    return group


def load_entry(manager: CacheManager, name: str) -> tuple[dict[str, Any], dict[str, bytes], dict[str, str]] | None:
    """``(metadata, files, paths)`` of a published kernel, or None when it is not there, not whole or not intact."""
    index = f"{name}.json"
    path = manager.get_file(index)
    if path is None:
        return None
    index_data = read_file(path)
    metadata = None if index_data is None else _unsealed(index_data)
    if metadata is None:
        return None
    files: dict[str, bytes] = {}
    paths = {index: path}
    for filename, (size, checksum) in metadata.pop("files").items():
        file_path = manager.get_file(filename)
        data = None if file_path is None else read_file(file_path)
        if file_path is None or data is None or len(data) != size or digest(data) != checksum:
            return None
        files[filename], paths[filename] = data, file_path
    if knobs.cache.size is not None:
        try:
            os.utime(path)  # the time of last use, for eviction
        except OSError:
            return None
    return metadata, files, paths


_unwritable: set[str] = set()


def warn_unwritable(error: OSError) -> None:
    """Say once per folder that kernels are compiled without being kept."""
    root = knobs.cache.dir
    if root not in _unwritable:
        _unwritable.add(root)
        knobs.warn_once(f"triton: cannot write the cache folder {root} ({error}); kernels are not kept between runs")


# ---- eviction -------------------------------------------------------------------------------------------------------

_written: dict[str, int] = {}
_eviction_lock = threading.Lock()


def _account(root: str, key: str, size: int) -> None:
    """Count what was written, and evict when a limit is set and enough was: a scan for each kernel would be slow."""
    limit = knobs.cache.size
    if limit is None:
        return
    with _eviction_lock:
        first = root not in _written
        _written[root] = _written.get(root, 0) + size
        if not first and _written[root] < limit // 16:
            return
        _written[root] = 0
    evict(root, limit, keep=key)


def _entry_facts(path: str) -> tuple[float, int]:
    """``(last use, bytes)`` of one folder of the cache."""
    used, size = 0.0, 0
    with os.scandir(path) as files:
        for file in files:
            facts = file.stat(follow_symlinks=False)
            size += facts.st_size
            used = max(used, facts.st_mtime)
            if file.name.startswith(_TEMPORARY) and time.time() - facts.st_mtime > _STALE_SECONDS:
                os.unlink(file.path)
    return used, size


def _remove(folder: str) -> None:
    """Delete a folder that is out of use. What stays, because someone holds it open, goes with a later scan."""
    import shutil  # brings the compression libraries with it; launches do without them

    try:
        shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        root = os.path.dirname(folder)
        knobs.warn_once(f"triton: what was evicted from the cache folder {root} cannot be removed ({error})")


def evict(root: str, limit: int, keep: str = "") -> int:
    """Remove the least recently used folders until ``root`` holds at most ``limit`` bytes. Returns how many went.

    A folder is renamed before it is deleted, so that no reader sees half of one. Folders that other processes remove or
    hold at the same time are passed over.
    """
    entries: list[tuple[float, int, str]] = []
    try:
        with os.scandir(root) as folders:
            for folder in folders:
                if not folder.is_dir(follow_symlinks=False):
                    continue
                if folder.name.startswith(_TRASH):
                    _remove(folder.path)
                    continue
                try:
                    entries.append((*_entry_facts(folder.path), folder.path))
                except OSError:
                    continue
    except OSError:
        return 0
    total = sum(size for _, size, _ in entries)
    removed = 0
    for _, size, path in sorted(entries):
        if total <= limit:
            break
        if os.path.basename(path) == keep:
            continue
        trash = os.path.join(root, f"{_TRASH}{os.getpid()}-{next(_counter)}")
        try:
            os.rename(path, trash)
        except OSError:
            continue
        _remove(trash)
        total -= size
        removed += 1
    return removed


# ---- keys -----------------------------------------------------------------------------------------------------------

_CODE_FOLDERS = (
    "analysis",
    "backends",
    "compiler",
    "frontend",
    "ir",
    "language",
    "layouts",
    "lowering",
    "passes",
    "rules",
)


def _package_files() -> Iterator[tuple[str, os.stat_result]]:
    """The files of this package that decide what code is made, in a fixed order."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = [os.path.join(package, name) for name in (*_CODE_FOLDERS, "_C")]
    while folders:
        folder = folders.pop(0)
        if not os.path.isdir(folder):
            continue
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        folders[:0] = [entry.path for entry in entries if entry.is_dir() and entry.name != "__pycache__"]
        for entry in entries:
            if entry.name.endswith(".py") or entry.name.startswith("libtriton"):
                yield entry.path, entry.stat()


# A key that was worked out in this process and is to be kept: (fingerprint of the files, key).
_new_key: tuple[str, str] | None = None
_KEY_FILE = "package.key"


@functools.cache
def triton_key() -> str:
    """Text that changes with this package: its version and a hash of the sources that decide what code is made.

    Hashing takes longer than all else that a cache hit does, so the hash is kept in the cache under the files' sizes
    and times.
    """
    global _new_key
    files = list(_package_files())
    facts = "".join(f"{path}:{stat.st_size}:{stat.st_mtime_ns};" for path, stat in files)
    fingerprint = hashlib.sha256(f"{__version__};{facts}".encode()).hexdigest()
    kept = read_file(os.path.join(knobs.cache.dir, _base32(fingerprint), _KEY_FILE))
    if kept is not None:
        key, _, checksum = kept.decode("ascii", "replace").partition("\n")
        if checksum == digest(key.encode()):
            return key
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    contents = hashlib.sha256()
    for path, stat in files:
        contents.update(os.path.relpath(path, package).encode())
        if path.endswith(".py"):
            with open(path, "rb") as file:
                contents.update(file.read())
        else:
            contents.update(f"{stat.st_size}-{stat.st_mtime_ns}".encode())
    key = f"{__version__}-{contents.hexdigest()}"
    _new_key = fingerprint, key
    return key


def _keep_package_key() -> None:
    """Write a newly worked out package key, beside the kernel that was compiled with it."""
    global _new_key
    if _new_key is not None:
        (fingerprint, key), _new_key = _new_key, None
        FileCacheManager(_base32(fingerprint)).put(f"{key}\n{digest(key.encode())}", _KEY_FILE)


def options_key(options: Any) -> str:
    """Text for an options record; equal for equal options."""
    own = getattr(options, "hash", None)
    if callable(own):
        return str(own())
    return repr(sorted(vars(options).items()))


def get_cache_key(src: Any, backend: Any, backend_options: Any, env_vars: Mapping[str, str]) -> str:
    """Text that decides a kernel's code: package, source, specialisation, tools, options and variables."""
    return "-".join(
        (triton_key(), src.hash(), backend.hash(), options_key(backend_options), repr(sorted(env_vars.items())))
    )


def make_so_cache_key(version_hash: str, signature: Any, constants: Any, ids: Any, **kwargs: Any) -> str:
    """A key for a host-side helper library made for one signature."""
    text = f"{version_hash}-{signature!r}-{constants!r}-{ids!r}-{sorted(kwargs.items())!r}"
    return hashlib.sha256(text.encode()).hexdigest()
