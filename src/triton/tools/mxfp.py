"""Numbers of the OCP microscaling formats on the host: 4-bit floats (e2m1) and scales that are powers of two (e8m0)."""

from __future__ import annotations

from typing import Any

_E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)  # bit 3 is the sign
_E8M0_BIAS, _E8M0_NAN = 127, 255


class _Codes:
    """One code in each byte of ``data``; ``size`` is kept for ``random``."""

    data: Any
    size: tuple[int, ...]

    def __init__(self, data: Any = None, size: Any = None, device: Any = None) -> None:
        import torch

        self.device = device
        if data is not None:
            if not isinstance(data, torch.Tensor):
                raise TypeError(f"data: expected a torch tensor, got {type(data).__name__}")
            self.data = self._from_float(data.to(device))
        elif size is not None:
            self.size = size if isinstance(size, tuple) else (size,)
        else:
            raise ValueError("either data or size is needed")

    def _from_float(self, values: Any) -> Any:
        raise NotImplementedError

    def _shape(self) -> tuple[int, ...]:
        return self.size if hasattr(self, "size") else tuple(self.data.shape)


def _only_float32(dtype: Any) -> None:
    import torch

    if dtype != torch.float32:
        raise ValueError(f"the numbers can be had as torch.float32, not {dtype}")


class MXFP4Tensor(_Codes):
    """A tensor of e2m1 numbers, made from ``data`` by rounding to nearest even; what is too large becomes 6."""

    def random(self) -> MXFP4Tensor:
        """Fills it with random codes."""
        import torch

        self.data = torch.randint(0, 16, self._shape(), dtype=torch.uint8, device=self.device)
        return self

    def to(self, dtype: Any) -> Any:
        """The numbers as a tensor of float32."""
        import torch

        _only_float32(dtype)
        table = torch.tensor([*_E2M1, *(-v for v in _E2M1)], dtype=dtype, device=self.data.device)
        return table[self.data.long()]

    def _from_float(self, values: Any) -> Any:
        import torch

        numbers = torch.tensor(_E2M1, dtype=torch.float64, device=values.device)
        between = (numbers[1:] + numbers[:-1]) / 2
        size = values.double().abs().nan_to_num(nan=torch.inf, posinf=torch.inf)
        code = torch.bucketize(size, between)  # a tie goes down
        at = between[code.clamp(max=len(between) - 1)]
        code = torch.where((size == at) & (code % 2 == 1), code + 1, code)
        negative = torch.signbit(values) & ~values.isnan()
        return (code + 8 * negative).to(torch.uint8)

    def to_packed_tensor(self, dim: int) -> Any:
        """Two codes in each byte along ``dim``, the earlier one in the low half; an odd end is filled with zero."""
        import torch

        low, high = self._halves(self.data, dim)
        if high.shape[dim] < low.shape[dim]:
            shape = [*low.shape]
            shape[dim] = 1
            high = torch.cat([high, high.new_zeros(shape)], dim)
        return low | (high << 4)

    def unpack_packed_tensor(self, packed_tensor: Any, dim: int, original_shape: Any) -> Any:
        """The codes of a packed tensor, one in each byte."""
        import torch

        dim %= packed_tensor.ndim
        codes = torch.stack([packed_tensor & 0xF, packed_tensor >> 4], dim + 1)
        return codes.flatten(dim, dim + 1).narrow(dim, 0, original_shape[dim]).contiguous()

    @staticmethod
    def _halves(codes: Any, dim: int) -> tuple[Any, Any]:
        at: list[Any] = [slice(None)] * codes.ndim
        halves = []
        for start in (0, 1):
            at[dim] = slice(start, None, 2)
            halves.append(codes[tuple(at)])
        return halves[0], halves[1]


class MXScaleTensor(_Codes):
    """A tensor of e8m0 scales, made from ``data`` by rounding down to a power of two; what is not a positive finite
    number becomes NaN."""

    def random(self, low: float | None = None, high: float | None = None) -> MXScaleTensor:
        """Fills it with random powers of two from ``low`` to ``high``, both included."""
        import torch

        first = 0 if low is None else self._code(low)
        last = _E8M0_NAN - 1 if high is None else self._code(high)
        self.data = torch.randint(first, last + 1, self._shape(), dtype=torch.uint8, device=self.device)
        return self

    def _code(self, value: float) -> int:
        import torch

        return int(self._from_float(torch.tensor([value], dtype=torch.float64))[0])

    def to(self, dtype: Any) -> Any:
        """The scales as a tensor of float32."""
        _only_float32(dtype)
        return fp8e8m0_to_float32(self.data)

    def _from_float(self, values: Any) -> Any:
        import torch

        exponent = torch.frexp(values.double()).exponent - 1
        code = (exponent + _E8M0_BIAS).clamp(0, _E8M0_NAN - 1)
        return torch.where(values.isfinite() & (values > 0), code, _E8M0_NAN).to(torch.uint8)


def fp8e8m0_to_float32(scale: Any) -> Any:
    """The numbers of e8m0 codes as float32: two to the power of code - 127; code 255 is NaN."""
    import torch

    value = torch.ldexp(torch.ones_like(scale, dtype=torch.float64), scale.long() - _E8M0_BIAS)
    return torch.where(scale == _E8M0_NAN, torch.nan, value).float()
