#!/usr/bin/env bash
# Runs every parser on inputs that libFuzzer makes, guided by what they reach in the code, and then random
# drives with random requests and power cuts. A panic, more than 10 s on an input or more than 1 GiB is a
# failure: the input is kept, and how to run it again is printed.
#
# Only stable Rust and a C++ compiler are needed. libFuzzer wants counters in the code, which are an option
# of LLVM's that stable compilers take, too; the sanitizers, which they do not, would find nothing in code
# that is safe.
#
#   SECONDS_EACH    how long each target runs (60)
#   SEED            of the random numbers, printed (the time)
#   TARGETS         which ones (all)
#   FUZZ_DIR        where inputs are collected, kept from run to run (target/fuzz)
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${SECONDS_EACH:-60}
seed=${SEED:-$(date +%s)}
folder=${FUZZ_DIR:-$PWD/target/fuzz}
triple=$(rustc -vV | sed -n 's/^host: //p')
export CARGO_TARGET_DIR=$folder/build

command -v c++ >/dev/null || command -v g++ >/dev/null || {
  echo "left out: libFuzzer needs a C++ compiler" >&2
  exit 0
}

mkdir -p "$folder"
counters="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
counters+=" -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
counters+=" -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
counters+=" -Ccodegen-units=1"
# With a target named, build scripts and macros go without counters.
RUSTFLAGS=$counters cargo build --release --quiet --manifest-path fuzz/Cargo.toml \
  --target "$triple"
fuzz=$CARGO_TARGET_DIR/$triple/release/fuzz
LODGER_FUZZ_SEEDS=$folder/seeds "$fuzz" >"$folder/targets" 2>"$folder/seeds.log" || {
  cat "$folder/seeds.log" >&2
  exit 1
}

echo "seed $seed, $seconds s for each target; inputs are kept in $folder"
failed=0
for target in ${TARGETS:-$(cat "$folder/targets")}; do
  mkdir -p "$folder/corpus/$target" "$folder/found/$target"
  words=()
  [ -f "$folder/seeds/$target.dict" ] && words=("-dict=$folder/seeds/$target.dict")
  log=$folder/$target.log
  if LODGER_FUZZ_TARGET=$target "$fuzz" \
    -seed="$seed" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1536 -malloc_limit_mb=0 \
    -max_len=20000 -artifact_prefix="$folder/found/$target/" "${words[@]}" \
    "$folder/corpus/$target" "$folder/seeds/$target" >"$log" 2>&1; then
    printf '%-9s %s\n' "$target" "$(grep -E '^Done|DONE' "$log" | tail -1)"
    printf '%-9s %s\n' "" "$(grep -oE 'cov: .* exec/s: [0-9]+' "$log" | tail -1)"
  else
    failed=1
    grep -vE '^#[0-9]+|^"' "$log" | tail -40
    echo "error: target \`$target\` failed with seed $seed; the input is in $folder/found/$target" >&2
    echo "hint: LODGER_FUZZ_TARGET=$target $fuzz FILE runs it again" >&2
  fi
done

# Random drives, requests and power cuts against a naive drive: new ones as long as the time lasts.
if [ -z "${TARGETS:-}" ] && [ -f crates/core/tests/drive/swarm.rs ]; then
  unset CARGO_TARGET_DIR
  cargo test --quiet -p lodger-core --test drive swarm:: --no-run
  end=$((SECONDS + seconds))
  rounds=0
  export LODGER_CASES=${SWARM_CASES:-50}
  while ((SECONDS < end)); do
    export LODGER_SEED=$((seed + rounds * LODGER_CASES))
    if ! cargo test --quiet -p lodger-core --test drive swarm:: >"$folder/swarm.log" 2>&1; then
      failed=1
      tail -40 "$folder/swarm.log"
      echo "error: the swarm failed" >&2
      echo "hint: LODGER_SEED=$LODGER_SEED LODGER_CASES=$LODGER_CASES cargo test -p lodger-core --test drive swarm::" >&2
      break
    fi
    rounds=$((rounds + 1))
  done
  printf '%-9s %s\n' swarm "$rounds rounds of $LODGER_CASES drives, seeds from $seed"
fi
exit "$failed"
