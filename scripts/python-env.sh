# Builds the Python package into a virtual environment of its own, `.venv`. Sourced by other scripts
# from the root of the repository, with `set -eu`. Sets `venv` and `target`.
#
# Needs Rust and Python 3.11 or later (PYTHON names another interpreter). Only what has changed is
# built again; the environment is made once and again when its list of packages changes.
# shellcheck shell=sh

venv=.venv
packages="maturin>=1.16,<2 pytest>=8 numpy>=1.25 mypy>=1.15 altair>=6,<7 vl-convert-python>=1.9
  pyarrow>=15 pandas>=2.2 polars>=1 distributed>=2024.1 optuna>=4 basedpyright>=1.20"

find_python() {
    for python in "${PYTHON:-}" python3.11 python3.12 python3.13 python3.14 python3; do
        if [ -n "$python" ] &&
            "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$python"
            return
        fi
    done
    echo "error: Python 3.11 or later is needed" >&2
    echo >&2
    echo "hint: PYTHON=/path/to/python $0" >&2
    exit 2
}

if [ "$(cat "$venv/.packages" 2>/dev/null || true)" != "$packages" ]; then
    python=$(find_python)
    "$python" -m venv "$venv"
    # Words are packages.
    # shellcheck disable=SC2086
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check $packages
    echo "$packages" >"$venv/.packages"
fi

# The binary that the package's command is compared with shares all its parts with the package.
cargo build --quiet --release --package lodger
# Used by the scripts that source this one.
# shellcheck disable=SC2034
target=$(cargo metadata --format-version 1 --no-deps |
    "$venv/bin/python" -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
VIRTUAL_ENV="$PWD/$venv" PATH="$PWD/$venv/bin:$PATH" \
    maturin develop --quiet --release
