"""What becomes of the tasks of a process that dies?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import lodger
from lodger import _workers


def test_a_script_without_a_guard_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text("[a]\nrw=randread\nbs=4k\nsize=1m\n")
    script = tmp_path / "script.py"
    script.write_text("import lodger\nlodger.sweep('job.fio', 'tiny', iodepth=[1, 2], processes=True)\n")
    ran = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 1
    assert "its worker process died, 3 times over" in ran.stderr
    assert '`if __name__ == "__main__":`' in ran.stderr


def deadly(_: None, task: int, stop: lodger.Stop | None) -> int:
    """A task that may take its process with it."""
    if task == 3:
        os._exit(9)
    return task * task


def test_a_task_that_kills_its_process_is_lost_and_no_other() -> None:
    with _workers.Processes(2, None) as there:
        found = dict(_workers.each(there, deadly, range(8)))
    assert isinstance(found.pop(3), _workers.Lost)
    assert found == {task: task * task for task in range(8) if task != 3}
