#!/bin/sh
# Builds the Python package in a virtual environment of its own and redoes the published figures:
# out/reproduce.html, out/reproduce.json and the table docs/validation/studies.md.
#
#   scripts/reproduce.sh [ARGUMENTS OF lodger reproduce]
#
# With arguments, the table is left as it is.
set -eu
cd "$(dirname "$0")/.."
. scripts/python-env.sh

mkdir -p out
if [ $# -eq 0 ]; then
    set -- --markdown docs/validation/studies.md
fi
exec "$venv/bin/lodger" reproduce --report out/reproduce.html --json out/reproduce.json "$@"
