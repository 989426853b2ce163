#!/bin/sh
# Builds the Python package in a virtual environment of its own and holds what papers say against the
# simulation: out/reproduce.html and out/reproduce.json.
#
#   scripts/reproduce.sh [--full] [ARGUMENTS OF lodger reproduce]
#
# One seed each, without nulls and without the studies that take minutes. With --full all studies, eight seeds (one for those that take
# minutes) and all nulls (about two hours on two cores; what is cut off goes on), and the table docs/validation/studies.md is written.
set -eu
cd "$(dirname "$0")/.."
. scripts/python-env.sh

mkdir -p out
if [ "${1:-}" = --full ]; then
    shift
    set -- --full --seeds 8 --nulls --keep out/reproduce-runs.jsonl --markdown docs/validation/studies.md "$@"
fi
exec "$venv/bin/lodger" reproduce --report out/reproduce.html --json out/reproduce.json "$@"
