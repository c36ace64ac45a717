"""Machine code as text: what ``cuobjdump`` prints, with control bits and labels."""

from __future__ import annotations

import sys

import pytest

from triton.compiler.compiler import get_sass as where_libraries_look
from triton.tools.disasm import extract, get_sass, parseCtrl, processSassLines

PRINTED = """
	code for sm_90a
	.target	sm_90a

		Function : other
        /*0000*/                   EXIT ;                                      /* 0x000000000000794d */
                                                                               /* 0x000fea0003800000 */
		..........

		Function : kernel
	.headerflags	@"EF_CUDA_SM90"
        /*0000*/                   S2R R7, SR_TID.X ;                          /* 0x0000000000077919 */
                                                                               /* 0x000e220000002100 */
        /*0010*/                   LOP3.LUT R7, R7, 0x7f, RZ, 0xc0, !PT ;      /* 0x0000007f07077812 */
                                                                               /* 0x001fd600078ec0ff */
        /*0020*/              @!P0 BRA 0x50 ;                                  /* 0x0000000000208947 */
                                                                               /* 0x000fea0003800000 */
        /*0030*/                   CALL.REL.NOINC 0x10 ;                       /* 0x0000000000007944 */
                                                                               /* 0x000fea0003c00000 */
        /*0040*/                   BRA `(.L_1) ;                               /* 0x0000000000007947 */
                                                                               /* 0x000fc0000383ffff */
        /*0050*/                   EXIT ;                                      /* 0x000000000000794d */
                                                                               /* 0x000fea0003800000 */
"""


@pytest.mark.parametrize(
    "upper, text",
    [
        ("0x000e220000002100", "--:-:0:-:1"),  # its result sets barrier 0
        ("0x001fd600078ec0ff", "01:-:-:Y:b"),  # waits for barrier 0
        ("0x000fea0003800000", "--:-:-:-:5"),
        ("0x004fd80000010000", "04:-:-:Y:c"),
    ],
)
def test_control_bits(upper: str, text: str) -> None:
    assert parseCtrl(f"   /* {upper} */") == text


def test_jumps_get_labels() -> None:
    labels: dict[int, int] = {}
    second = "/* 0x000fea0003800000 */"
    for target, number in ((0x50, 0), (0x20, 1), (0x50, 0)):
        first = f"  /*0020*/  @!P0 BRA {target:#x} ;  /* 0x0000000000208947 */"
        assert processSassLines(first, second, labels) == ("--:-:-:-:5", f"@!P0 BRA {target:#x}")
        assert labels[target] == number
    for bad in ("BRA 0x50", ""):
        with pytest.raises(ValueError, match="no first line"):
            processSassLines(bad, second, labels)
        with pytest.raises(ValueError, match="no second line"):
            parseCtrl(bad)


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Stands for cuobjdump: ``-fun`` other than kernel and other finds nothing, an empty file is refused."""
    if sys.platform == "win32":
        pytest.skip("the stand-in for cuobjdump is a shell script")
    (tmp_path / "printed").write_text(PRINTED)
    path = tmp_path / "cuobjdump"
    path.write_text(
        f"""#!/bin/sh
case "$*" in
  *--version*) echo "Cuda compilation tools, release 13.0, V13.0.85"; exit 0;;
esac
for file in "$@"; do :; done
[ -s "$file" ] || {{ echo "cuobjdump fatal: not a binary" >&2; exit 1; }}
case "$*" in *missing*) exit 0;; esac
cat {tmp_path}/printed
"""
    )
    path.chmod(0o755)
    monkeypatch.setenv("TRITON_CUOBJDUMP_PATH", str(path))
    return path


def test_a_listing(program, tmp_path) -> None:
    listing = """Function:other
--:-:-:-:5	EXIT;

Function:kernel
--:-:0:-:1	S2R R7, SR_TID.X;
LBB1:
01:-:-:Y:b	LOP3.LUT R7, R7, 0x7f, RZ, 0xc0, !PT;
--:-:-:-:5	@!P0 BRA LBB0;
--:-:-:-:5	CALL.REL.NOINC LBB1;
--:-:-:Y:0	BRA `(.L_1);
LBB0:
--:-:-:-:5	EXIT;
"""
    assert get_sass(b"code") == listing
    (tmp_path / "x.cubin").write_bytes(b"code")
    assert extract(str(tmp_path / "x.cubin"), "kernel") == listing
    assert where_libraries_look is get_sass


def test_what_cannot_be_listed(program, tmp_path) -> None:
    with pytest.raises(RuntimeError, match=r"cuobjdump cannot read .*: cuobjdump fatal: not a binary"):
        get_sass(b"")
    with pytest.raises(RuntimeError, match="has no function 'missing'"):
        get_sass(b"code", "missing")


def test_no_cuobjdump(monkeypatch) -> None:
    monkeypatch.setenv("TRITON_CUOBJDUMP_PATH", "/nowhere/cuobjdump")
    with pytest.raises(RuntimeError, match="cuobjdump"):
        get_sass(b"code")
