#!/bin/sh
# shellcheck shell=dash
# The rules of the NVMe base specification about host memory (2.0: 5.17.2.1, 5.27.1.10, 8.9; TP4104), tried from Linux on
# any drive by passthrough of nvme-cli, as root. A line a rule:
#
#   ok         it holds
#   FAILED     it does not, and what the drive did
#   not tried  the kernel keeps it from programs, or the drive does not offer it
#
# Nothing on the drive is written. Host memory stays the kernel's own, whose list the drive is given again; it is on at the
# end as it was at the beginning. Ends with 1 if a rule failed, with 2 if it could not begin.
set -u

usage() {
  echo "usage: hmb-rules.sh [CONTROLLER]     a controller such as /dev/nvme0 (default), not its namespace" >&2
  exit 2
}
die() {
  echo "error: $1" >&2
  [ $# -lt 2 ] || echo "hint: $2" >&2
  exit 2
}
[ $# -le 1 ] || usage
case ${1:-} in -*) usage ;; esac
controller=${1:-/dev/nvme0}
[ -c "$controller" ] || die "$controller is no controller" "nvme list shows /dev/nvme0n1: its controller is /dev/nvme0"
drive=$(find /dev -maxdepth 1 -name "$(basename "$controller")n*" | sort | head -n 1)
[ -b "$drive" ] || die "$controller has no namespace"
command -v nvme >/dev/null || die "there is no nvme-cli" "it is the package nvme-cli"
switch=/sys/class/nvme/$(basename "$controller")/hmb

# What a failed rule says last.
fail() {
  echo "$*"
  exit 1
}
# A rule that this kernel or this drive leaves no way to try.
skip() {
  echo "$*"
  exit 3
}

# The status of a command from what nvme-cli said of it: 0, or type and code (without More and Do Not Retry).
status_of() {
  case $1 in
  *"ermission denied"* | *"not permitted"* | *"ccess denied"*) echo refused ;;
  *"NVMe status"*)
    code=$(echo "$1" | sed -n 's/.*NVMe status.*(\(0x[0-9a-fA-F]*\)).*/\1/p' | head -n 1)
    echo $((${code:-0x7ff} & 0x7ff))
    ;;
  *uccess* | "") echo 0 ;;
  *) echo "$1" | tail -n 1 ;;
  esac
}
# set_features CDW10 CDW11 [HSIZE LOW HIGH COUNT]: the status.
set_features() {
  said=$(nvme admin-passthru "$controller" --opcode=9 --cdw10="$1" --cdw11="$2" --cdw12="${3:-0}" --cdw13="${4:-0}" \
    --cdw14="${5:-0}" --cdw15="${6:-0}" 2>&1)
  status_of "$said"
}
# ends WITH WHAT: the status of the last Set Features, which `ended` has.
ends() {
  [ "$ended" != refused ] || skip "this kernel keeps Set Features of host memory to its driver"
  [ "$ended" = "$1" ] || fail "$2 ends with status $ended and not $1"
}
# The dword of the answer to Get Features: 1 enabled, 2 returned, 4 access restricted, 8 restricted now.
says() {
  answer=$(nvme admin-passthru "$controller" --opcode=0xa --cdw10=0xd --data-len=4096 --read 2>&1 |
    sed -n 's/.*[^a-z]\(value\|result\): *\(0x\)\{0,1\}\([0-9a-f]*\).*/\3/p' | head -n 1)
  echo $((0x${answer:-0}))
}
is_on() { [ $(($(says) & 1)) -eq 1 ]; }
# list FIELD: of the structure that comes with it: 1 HSIZE, 2 and 3 the list's address, 4 its entries.
list() {
  nvme admin-passthru "$controller" --opcode=0xa --cdw10=0xd --data-len=4096 --read --raw-binary 2>/dev/null |
    od -A n -t u4 -N 16 | awk -v field="$1" '{ print $field }'
}
# The first four bytes from BYTE of Identify Controller.
identified() { nvme id-ctrl "$controller" --raw-binary | od -A n -t u4 -j "$1" -N 4 | tr -d ' '; }
# A sum of what 64 places of the drive hold, by which a wrong byte shows.
contents() {
  step=$(($(cat "/sys/block/$(basename "$drive")/size") / 128 / 64))
  place=0
  while [ $place -lt 64 ]; do
    dd if="$drive" bs=65536 skip=$((place * step)) count=1 iflag=direct 2>/dev/null || fail "place $place cannot be read"
    place=$((place + 1))
  done | sha256sum
}
# The kernel's own way, where it keeps Set Features of host memory to its driver.
switched() {
  if [ "$ended" = refused ] && [ -w "$switch" ]; then
    echo "$1" >"$switch" && ended=0
  fi
}
must_read_the_same() {
  now=$(contents)
  [ "$now" = "$before" ] || fail "other bytes are read than before"
}
off() {
  ended=$(set_features 0xd 0)
  switched 0
}
# on FLAGS [MORE]: with the kernel's own list; its memory is as the drive left it.
on() {
  ended=$(set_features 0xd "$1" "$size" $((low | ${2:-0})) "$high" "$entries")
  [ "$1" -ne 1 ] || switched 1
}
must_be_off() {
  off
  ends 0 "disabling"
  ! is_on || fail "it is disabled, and Get Features says that it is on"
}
must_be_on() {
  must_be_off
  on 3
  ends 0 "memory that returns"
  is_on || fail "it is enabled, and Get Features says that it is off"
}

rule_sizes() {
  [ "$(identified 276)" -le "$(identified 272)" ] || fail "HMMIN is $(identified 276), HMPRE $(identified 272)"
}
rule_reported() {
  is_on || fail "Get Features says that it is off"
  [ "$size" -ge "$(identified 276)" ] || fail "HSIZE is $size, HMMIN $(identified 276)"
  [ "$entries" -gt 0 ] || fail "a list of $entries entries"
}
rule_off() { must_be_off; }
rule_off_twice() {
  must_be_off
  ended=$(set_features 0xd 0)
  ends 0 "disabling what is disabled"
}
rule_without() {
  must_be_off
  must_read_the_same
}
rule_returns() {
  must_be_on
  [ $(($(says) & 2)) -eq 2 ] || fail "Get Features does not say that memory returned"
  must_read_the_same
}
rule_new() {
  must_be_off
  on 1
  ends 0 "memory without what was in it"
  [ $(($(says) & 3)) -eq 1 ] || fail "Get Features says $(says)"
  must_read_the_same
}
rule_on_twice() {
  must_be_on
  on 1
  ends 12 "enabling what is enabled"
  is_on || fail "it is off after that"
}
rule_no_entries() {
  must_be_off
  ended=$(set_features 0xd 1 "$size" "$low" "$high" 0)
  ends 2 "a list without entries"
  ! is_on || fail "it is on after that"
}
rule_low_bits() {
  must_be_off
  on 3 15
  ends 0 "an address whose bits 3:0 are set"
}
rule_not_saved() {
  must_be_on
  ended=$(set_features 0x8000000d 0)
  ends 269 "saving it"
  is_on || fail "it is off after that"
}
rule_restricted() {
  must_be_off
  if [ $(($(identified 96) & 1 << 17)) -ne 0 ]; then
    on 7
    ends 0 "access restricted while the drive rests (HMNARE), which CTRATT offers,"
    [ $(($(says) & 4)) -eq 4 ] || fail "Get Features does not say so"
  else
    on 7
    ends 2 "access restricted while the drive rests (HMNARE), which CTRATT does not offer,"
  fi
}
is_live() { [ "$(cat "/sys/class/nvme/$(basename "$controller")/state")" = live ] && [ -b "$drive" ]; }
rule_reset() {
  must_be_off
  on 1
  ends 0 "memory without what was in it"
  told=$(dmesg 2>/dev/null | grep -c "failed to set host mem")
  nvme reset "$controller" || fail "the reset fails"
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    is_live && break
    sleep 1
  done
  # The driver gives it anew, which is refused if the drive thinks that it still has it.
  [ "$(dmesg 2>/dev/null | grep -c "failed to set host mem")" = "$told" ] || fail "what its driver gives is refused"
  is_on || fail "it is off after its driver has given it anew"
  must_read_the_same
}

failed=0
tried=0
left=0
# try SECTION RULE WORDS
try() {
  what=$("rule_$2")
  case $? in
  0) verdict=ok tried=$((tried + 1)) ;;
  3) verdict="not tried" left=$((left + 1)) ;;
  *) verdict=FAILED tried=$((tried + 1)) failed=$((failed + 1)) ;;
  esac
  printf '%-9s  %-9s  %s%s\n' "$verdict" "$1" "$3" "${what:+: $what}"
}

[ "$(identified 272)" -gt 0 ] || die "$controller asks for no host memory (HMPRE is 0)"
is_on || die "$controller has no host memory now" "echo 1 > $switch, or nvme.max_host_mem_size_mb on the kernel's command line"
size=$(list 1) low=$(list 2) high=$(list 3) entries=$(list 4)
before=$(contents)
give_back() { is_on || on 1; }
trap give_back EXIT

try 5.17.2.1 sizes "HMMIN is at most HMPRE"
try 5.27.1.10 reported "Get Features says what the driver gave"
try 5.27.1.10 off "it is disabled, and Get Features says so"
try 5.27.1.10 off_twice "disabling what is disabled succeeds"
try 8.9 without "without it every byte is as with it"
try 5.27.1.10 returns "memory that returns as it was (MR) serves on"
try 5.27.1.10 new "memory of which the drive is told nothing serves on"
try 5.27.1.10 on_twice "enabling twice is a Command Sequence Error, and changes nothing"
try 5.27.1.10 no_entries "a list without entries is an Invalid Field"
try 5.27.1.10 low_bits "bits 3:0 of the list's address are not looked at"
try 5.27.1.10 not_saved "it cannot be saved"
try TP4104 restricted "access is restricted (HMNARE) where CTRATT offers that, and nowhere else"
try 8.9 reset "a reset ends it, and then it can be given anew"
echo "$tried rules tried, $failed failed, $left not tried"
[ $failed -eq 0 ] || exit 1
