# shellcheck shell=dash disable=SC2034,SC2086,SC2154
# `lodger probe` finds from inside the guest what was planted in a drive (the drives are in scripts/live/drives). Names
# that are not set here are those of check.sh.

# role_of ROLE: what the report has of it.
role_of() { sed -n "/^    \"$1\": {/,/^    }/p" probe.json; }
# word_of KEY, and bounds_of KEY: of such a part of a report, its low and high end.
word_of() { sed -n "s/^      \"$1\": \"\(.*\)\",\{0,1\}$/\1/p"; }
bounds_of() { sed -n "/^      \"$1\": {/,/^      }/s/^        \"\(low\|high\)\": \([0-9.]*\).*/\2/p" | tr '\n' ' '; }
# holds LOW HIGH BYTES: whether these lie between them.
holds() { awk -v low="$1" -v high="$2" -v bytes="$3" 'BEGIN { exit !(low <= bytes && bytes <= high) }'; }

# probed TARGET EXPERIMENTS: the report of a drive whose host memory the kernel switches, which it finds as it was.
probed() {
  target=$1
  shift
  must has_host_memory
  can_switch=$(cat /sys/class/nvme/nvme0/hmb 2>/dev/null) || note "no switch for host memory in sysfs"
  options=
  for name in "$@"; do
    options="$options --experiment $name"
    case $name in
      flush | write-buffer) writing="--destroy-data --yes $(cat /sys/class/nvme/nvme0/serial)" ;;
    esac
  done
  began=$(cut -d . -f 1 /proc/uptime)
  lodger probe $target $options ${writing:-} --confidence 0.5 --budget ${budget:-14min} --output-format json \
    --output probe.json >probe.said 2>&1 || [ -n "${budget:-}" ] || die "$(tail -n 3 probe.said)"
  note "$target in $(($(cut -d . -f 1 /proc/uptime) - began)) s"
  must has_host_memory
}

# found ROLE TIER [size=BYTES reach=BYTES unit=BYTES]: what the report must say. Where the kernel switches no host memory it
# may say "undecided", and must not say anything else that is wrong.
wrong=
found() {
  role=$1
  part=$(role_of $role)
  tier=$(echo "$part" | word_of tier)
  echo "$part" | word_of evidence
  if [ "$tier" = undecided ] && [ -z "$can_switch" ]; then
    note "$role: undecided"
    return
  fi
  [ "$tier" = $2 ] || wrong="$wrong $role is not $2;"
  shift 2
  said="$role: $tier"
  for planted in "$@"; do
    bounds=$(echo "$part" | bounds_of ${planted%=*}_bytes)
    said="$said, ${planted%=*} ${bounds:-unknown}"
    holds ${bounds:-1 0} ${planted#*=} || wrong="$wrong ${planted%=*} of $role is not ${planted#*=};"
  done
  note "$said"
}
judged() { [ -z "$wrong" ] || die "$wrong $(grep '^NOTE' /tmp/said | tr '\n' ' ')"; }

check_probe_map() {
  probed /dev/nvme0n1 map-cache read-cache
  found map hmb size=262144 reach=268435456 unit=4194304
  found read_cache device size=65536
  judged
}
check_probe_whole_map() {
  # That there is flash behind fast reads shows only where two of them get in each other's way.
  probed /dev/ng0n1 map-cache read-cache parallelism
  found map device size=524288 reach=536870912
  found read_cache none
  judged
}
check_probe_read_cache() {
  probed /dev/nvme0n1 map-cache read-cache
  found map device size=32768 reach=33554432 unit=4194304
  found read_cache hmb size=262144
  judged
}
check_probe_nothing() {
  probed /dev/ng0n1 map-cache read-cache flush
  found map device size=32768 reach=33554432 unit=4194304
  found read_cache none
  found write_buffer none
  judged
}
check_probe_write_buffer() {
  # Its size takes bursts with seconds of rest before each: so long, and what is known then.
  budget=5min
  probed /dev/nvme0n1 flush write-buffer
  found write_buffer hmb
  judged
}
