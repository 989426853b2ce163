#!/bin/sh
# Builds the command as one file that needs nothing of the system it runs on: out/lodger.
#
#   scripts/static.sh [TARGET]          x86_64-unknown-linux-musl, say; this machine's without it
#
# Linked with musl where rustup has it; else with glibc, static as well.
set -eu
cd "$(dirname "$0")/.."

target=${1:-$(uname -m)-unknown-linux-musl}
if ! rustup target add "$target" 2>/dev/null; then
    echo "note: no $target here: linking glibc instead" >&2
    target=$(rustc -vV | sed -n 's/^host: //p')
    export RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static"
fi
cargo build --profile dist --package lodger --bin lodger --target "$target"
folder=$(scripts/target-folder.sh)
mkdir -p out
cp "$folder/$target/dist/lodger" out/lodger
# A file that would look for libraries when it starts says so here.
if ldd out/lodger 2>/dev/null | grep -q '=>'; then
    echo "error: out/lodger needs libraries" >&2
    exit 1
fi
out/lodger --version
echo "out/lodger: $(du -h out/lodger | cut -f 1), for $target"
