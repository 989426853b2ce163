#!/bin/busybox sh
# shellcheck shell=dash disable=SC1090,SC2012,SC2086,SC2154
# Runs one check in the guest: check.sh NAME. What it says last is what was wrong; a line `NOTE ...` tells more of a
# check that passed.
set -u
drive=/dev/nvme0n1
controller=/dev/nvme0
mkdir -p /tmp/work && cd /tmp/work || exit 1

note() { echo "NOTE $*"; }
die() { echo "$*"; exit 1; }
# Does it, and fails if that does.
must() { "$@" || die "failed: $*"; }
# Fails unless it fails.
must_not() { if "$@"; then die "should have failed: $*"; fi; }
# must_say WORDS COMMAND...: what it says has the words.
must_say() {
  words=$1
  shift
  said=$("$@" 2>&1)
  echo "$said" | grep -q -e "$words" || die "no \`$words\` in what \`$*\` says: $(echo "$said" | tail -n 3)"
}
# Waits for up to so many seconds until a command succeeds.
within() {
  left=$(($1 * 5))
  shift
  until "$@"; do
    left=$((left - 1))
    [ $left -gt 0 ] || die "waited in vain for: $*"
    usleep 200000
  done
}
# number_of FIELD: of what nvme-cli prints.
number_of() { sed -n "s/^$1[ \t]*: *\([0-9]*\).*/\1/p" | head -n 1; }
pattern() { dd if=/dev/urandom of="$1" bs=4096 count="$2" 2>/dev/null; }
# write_at FILE PAGE, and the opposite: read_at FILE PAGE COUNT
write_at() { must dd if="$1" of=$drive bs=4096 seek="$2" oflag=direct conv=notrunc,fsync 2>/dev/null; }
read_at() { must dd if=$drive of="$1" bs=4096 skip="$2" count="$3" iflag=direct 2>/dev/null; }
same() { must cmp "$1" "$2"; }
zeros() { dd if=/dev/zero of="$1" bs=4096 count="$2" 2>/dev/null; }
# What fio is asked beside the kind of load; it verifies what it reads.
load() {
  name=$1
  shift
  fio --name="$name" --filename=$drive --direct=1 --ioengine=libaio --verify=crc32c --verify_fatal=1 \
    --group_reporting "$@" >"$name.fio" 2>&1 || die "fio $name: $(grep -v '^$' "$name.fio" | tail -n 3)"
  grep -q "err= 0" "$name.fio" || die "fio $name: no \`err= 0\`"
}
slot() { basename "$(readlink /sys/class/nvme/nvme0/device)"; }
is_there() { [ -b $drive ]; }
is_live() { [ "$(cat /sys/class/nvme/nvme0/state 2>/dev/null)" = live ]; }
is_back() { is_there && is_live; }
has_host_memory() { nvme get-feature $controller -f 0x0d 2>&1 | grep -q 'value:0x0*[13]$'; }

for part in /live/*-checks.sh; do
  . "$part"
done
"check_$1" || exit 1
