#!/bin/sh
# Builds the command as fast as it gets: out/fast/lodger.
#
#   scripts/fast.sh
#
# The compiler is shown which ways the code takes (profile-guided optimisation): the command is built so that it counts
# them, does what scripts/training.sh has it do, and is built again with the counts. Both builds must say the same
# of each run: what is fast must not be something else.
set -eu
cd "$(dirname "$0")/.."

fail() {
    echo "error: $1" >&2
    echo "hint: $2; \`cargo build --profile dist -p lodger\` builds without counts" >&2
    exit 1
}
# The counts are read by the tool of the compiler's own LLVM: another version may not know their form.
host=$(rustc -vV | sed -n 's/^host: //p')
profdata=$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata
[ -x "$profdata" ] || rustup component add llvm-tools ||
    fail "the compiler has no llvm-profdata" "install it with \`rustup component add llvm-tools\`"
[ -x "$profdata" ] || fail "there is no $profdata" "rustup's llvm-tools bring it"

target=$(scripts/target-folder.sh)/fast
# Named for the machine's target, flags do not go to what runs while building, which would count too.
# Encoded, as the name of a folder may have blanks; and so flags that are encoded already count, too.
between=$(printf '\037')
own=${CARGO_ENCODED_RUSTFLAGS:-$(echo "${RUSTFLAGS:-}" | xargs | tr ' ' '\037')}
build() {
    CARGO_ENCODED_RUSTFLAGS="${own:+$own$between}$1" CARGO_TARGET_DIR="$target" \
        cargo build --profile dist --package lodger --bin lodger --target "$host"
    cp "$target/$host/dist/lodger" "$2"
}

rm -rf "$target/counts" "$target/said" "$target/says"
build "-Cprofile-generate=$target/counts" "$target/counting"
echo "counting: runs of all kinds" >&2
scripts/training.sh "$target/counting" "$target/said"
"$profdata" merge -o "$target/counts.profdata" "$target/counts"
build "-Cprofile-use=$target/counts.profdata" "$target/lodger"
scripts/training.sh "$target/lodger" "$target/says"
diff -r "$target/said" "$target/says" >&2 ||
    fail "the fast build says something else than the counting one" "this is a defect: please report it"
mkdir -p out/fast
mv "$target/lodger" out/fast/lodger
out/fast/lodger --version
echo "out/fast/lodger: $(du -h out/fast/lodger | cut -f 1)"
