"""What the compiler asks of a back end."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from ..ir.capabilities import Capabilities


@dataclass(frozen=True)
class GPUTarget:
    """What code is made for. ``arch`` is a number or a name, as the back end defines it."""

    backend: str
    arch: int | str
    warp_size: int


class Language(enum.Enum):
    """Where a kernel's IR comes from."""

    TRITON = 0
    GLUON = 1


Stage = Callable[[Any, dict[str, Any]], Any]


class BaseBackend(ABC):
    """One code generator.

    ``binary_ext`` names the stage whose output the driver loads. A stage's name is also the file ending of its output.
    """

    binary_ext: ClassVar[str] = ""
    supports_native_tensor_specialization: ClassVar[bool] = True

    def __init__(self, target: GPUTarget) -> None:
        self.target = target

    @staticmethod
    @abstractmethod
    def supports_target(target: GPUTarget) -> bool:
        """Whether this back end makes code for ``target``."""

    @abstractmethod
    def hash(self) -> str:
        """Text that changes when the same IR and options may give other code: tool versions, CPU features."""

    @abstractmethod
    def parse_options(self, options: dict[str, Any]) -> Any:
        """A frozen, hashable options record. Names that are not options are ignored; bad values raise ValueError."""

    @abstractmethod
    def add_stages(self, stages: dict[str, Stage], options: Any, language: Language = Language.TRITON) -> None:
        """Add the stages in order. Each takes the output of the one before and the kernel's metadata, to extend."""

    @abstractmethod
    def capabilities(self, options: Any) -> Capabilities:
        """What the front end and the passes may ask about the target."""

    def render(self, name: str, asm: Mapping[str, Any], options: Any) -> str | bytes | None:
        """A text that is not made on the way to the binary, for example assembly; None when there is no such text."""
        return None

    def pack_metadata(self, metadata: Any) -> Any:
        """What ``launch`` gets of a kernel's metadata."""
        return metadata

    def load_dialects(self, context: Any) -> None:
        return None

    def get_module_map(self) -> dict[str, Any]:
        return {}

    def get_codegen_implementation(self, options: Any) -> dict[str, Any]:
        return {}

    @staticmethod
    def parse_attr(desc: str) -> list[tuple[str, int]]:
        """The promises that a specialisation key stands for."""
        return [("tt.divisibility", 16)] if "D" in desc else [("tt.divisibility", 8)] if "E" in desc else []

    @staticmethod
    def get_int_specialization(arg: int, **kwargs: Any) -> str:
        if not kwargs.get("align", True):
            return ""
        return "D" if arg % 16 == 0 else "E" if arg % 8 == 0 else ""

    @staticmethod
    def get_tensor_specialization(arg: Any, **kwargs: Any) -> str:
        return "D" if kwargs.get("align", True) and arg.data_ptr() % 16 == 0 else ""
