#!/bin/sh
# Builds a wheel that installs without a compiler: out/wheels/*.whl.
#
#   scripts/wheel.sh [OPTIONS OF MATURIN]
#
# Linked by zig against the glibc of manylinux2014, so that it runs on any Linux since; the Python package
# `ziglang` is that linker. One wheel is for all Pythons from 3.11 on. Then it is installed into an empty
# environment and tried there.
set -eu
cd "$(dirname "$0")/.."

venv=.venv-wheel
if [ ! -x "$venv/bin/maturin" ]; then
    "${PYTHON:-python3}" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        "maturin>=1.16,<2" ziglang
fi
rm -rf out/wheels
PATH="$PWD/$venv/bin:$PATH" maturin build --profile dist --strip --out out/wheels \
    --zig --compatibility manylinux2014 "$@"

try=$(mktemp -d)
trap 'rm -rf "$try"' EXIT
"${PYTHON:-python3}" -m venv "$try"
"$try/bin/python" -m pip install --quiet --disable-pip-version-check out/wheels/*.whl
"$try/bin/lodger" --version
"$try/bin/lodger" simulate workloads/jobs/randread.fio --drive rc100-480 --output /dev/null
"$try/bin/python" -c 'import lodger
print(lodger.simulate(lodger.Workload("workloads/jobs/randread.fio"), "rc100-480"))'
ls -sh out/wheels
