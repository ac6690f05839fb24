"""The unit of systemd is one that systemd takes, and says what the server needs."""

import shutil
import subprocess
from pathlib import Path

import pytest
from server_process import KGATHER

PACKAGING = Path(__file__).parent.parent.parent / "packaging"
UNIT = (PACKAGING / "kgather.service").read_text(encoding="utf-8")


@pytest.mark.slow
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze here")
    unit = tmp_path / "kgather.service"
    unit.write_text(UNIT.replace("/opt/kgather/bin/kgather", KGATHER[0]), encoding="utf-8")
    run = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout + run.stderr) == (0, "")


@pytest.mark.parametrize(
    "line",
    [
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "User=kgather",
        "Type=notify",
        "UMask=0077",
        "LimitCORE=0",
        "CapabilityBoundingSet=",
        "PrivateTmp=yes",
        "ExecReload=/bin/kill -HUP $MAINPID",
    ],
)
def test_the_unit_is_hardened(line: str) -> None:
    assert line in UNIT.splitlines()
