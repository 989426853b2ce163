#!/usr/bin/env bash
# What `make lint` checks. Tools that are not installed and slow to install are left out, and said so.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
python=${PYTHON:-python3}

step() { printf '\n== %s\n' "$*"; }
has() { command -v "$1" >/dev/null 2>&1; }

step "Cargo.lock is up to date"
"$cargo" metadata --locked --format-version 1 >/dev/null

step "Rust: format"
"$cargo" fmt --all -- --check
"$cargo" fmt --manifest-path fuzz/Cargo.toml -- --check

step "Rust: lints"
"$cargo" clippy --workspace --all-targets -- -D warnings

step "Rust: API documentation"
RUSTDOCFLAGS="${RUSTDOCFLAGS:-} -D warnings" "$cargo" doc --workspace --no-deps --document-private-items

step "Dependencies: licences, bans, sources"
if has cargo-deny; then
  "$cargo" deny --all-features check bans licenses sources
else
  echo "cargo-deny is not installed: left out"
fi

step "Python: syntax and lints"
mapfile -t files < <(git ls-files '*.py')
if ((${#files[@]})); then
  "$python" - "${files[@]}" <<'PY'
import ast, sys
for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as file:
        ast.parse(file.read(), name)
PY
  if has ruff; then
    ruff check "${files[@]}"
  else
    echo "ruff is not installed: syntax only"
  fi
fi

step "Shell scripts"
mapfile -t files < <(git ls-files '*.sh' .ci/run)
for file in "${files[@]}"; do
  bash -n "$file"
done
if has shellcheck; then
  shellcheck -x "${files[@]}"
else
  echo "shellcheck is not installed: syntax only"
fi
