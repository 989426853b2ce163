#!/usr/bin/env bash
# Builds the what-if page, one file that needs nothing else: what-if.sh [PAGE] (out/what-if.html).
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
page=${1:-out/what-if.html}
target=wasm32-unknown-unknown

# What rustc would say without the target, a missing crate `std`, helps nobody.
libraries=$("${RUSTC:-rustc}" --print target-libdir --target "$target")
if ! compgen -G "$libraries/libstd-*" >/dev/null; then
  echo "the Rust target $target is missing: adding it with rustup" >&2
  if ! command -v rustup >/dev/null 2>&1 || ! rustup target add "$target"; then
    echo "error: the page needs the Rust target \`$target\`, and rustup could not add it" >&2
    echo "hint: \`rustup target add $target\` with a network, or your distribution's package of it (Debian: libstd-rust-dev-wasm32)" >&2
    exit 2
  fi
fi

"$cargo" build -q --profile page --target "$target" -p lodger-what-if-wasm
folder=$("$cargo" metadata --format-version 1 --no-deps | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
module=$folder/$target/page/lodger_what_if_wasm.wasm
# Packed it is a third as long; the date is left out, so that equal modules give equal pages.
python3 - "$module" <<'PY'
import gzip, pathlib, sys
module = pathlib.Path(sys.argv[1])
module.with_suffix(".wasm.gz").write_bytes(gzip.compress(module.read_bytes(), 9, mtime=0))
PY
"$cargo" run -q --release -p lodger-what-if --bin what-if-page -- "$module.gz" "$page"
