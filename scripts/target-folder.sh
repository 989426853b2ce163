#!/bin/sh
# Where cargo puts what it builds.
set -eu
cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/'
