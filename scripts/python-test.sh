#!/bin/sh
# Builds the Python package in a virtual environment of its own and runs its tests.
#
#   scripts/python-test.sh [ARGUMENTS OF PYTEST]
set -eu
cd "$(dirname "$0")/.."
. scripts/python-env.sh

LODGER_BINARY="$target/release/lodger" exec "$venv/bin/python" -m pytest "$@"
