# shellcheck shell=dash disable=SC1090,SC2012,SC2086,SC2154
# Checks of commands, one by one, as a user gives them with nvme-cli. Names that are not set here
# are those of check.sh; none of what they hold has spaces.

check_attached() {
  must is_there
  must_say "Lodger" nvme id-ctrl $controller
  queues=$(ls /sys/block/nvme0n1/mq | wc -l)
  [ "$queues" -ge "$(nproc)" ] || die "$queues queues"
  note "$queues queues, $(($(cat /sys/block/nvme0n1/size) / 1953125)) GB"
}

check_host_memory() {
  dmesg | grep -i "host memory buffer" || die "the kernel did not allocate host memory"
  must has_host_memory
  must_say "(EHM): Enabled" nvme get-feature $controller -f 0x0d -H
  must_say "(HSIZE): [1-9]" nvme get-feature $controller -f 0x0d -H
  note "$(dmesg | sed -n 's/.*nvme0: \(.*host memory buffer.*\)/\1/p' | head -n 1)"
}

check_health() {
  before=$(nvme smart-log $controller | number_of 'Data Units Written')
  pattern data 4096
  write_at data 0
  after=$(nvme smart-log $controller | number_of 'Data Units Written')
  [ $((after - before)) -ge 32 ] || die "16 MiB written, and $((after - before)) units counted"
  must_say "critical_warning.*: 0$" nvme smart-log $controller
}

check_errors() {
  before=$(nvme smart-log $controller | number_of 'num_err_log_entries')
  blocks=$(cat /sys/block/nvme0n1/size)
  must_not nvme read $drive -s "$blocks" -c 0 -z 512 -d data
  after=$(nvme smart-log $controller | number_of 'num_err_log_entries')
  [ "$after" -eq $((before + 1)) ] || die "one error, and $((after - before)) counted"
  must_say "LBA Out of Range" nvme error-log $controller -e 1
}

check_flush() {
  must nvme flush $drive -n 1
  must_not nvme flush $drive -n 7
}

check_deallocate() {
  pattern data 64
  zeros nothing 16
  write_at data 1000
  must nvme dsm $drive --namespace-id=1 -d -s 8064,8192 -b 64,64
  read_at back 1000 64
  dd if=data of=expected bs=4096 2>/dev/null
  must dd if=nothing of=expected bs=4096 seek=8 count=8 conv=notrunc 2>/dev/null
  must dd if=nothing of=expected bs=4096 seek=24 count=8 conv=notrunc 2>/dev/null
  same back expected
}

check_write_zeroes() {
  pattern data 64
  zeros nothing 64
  write_at data 2000
  # 8 KiB and a block at either end.
  must nvme write-zeroes $drive --namespace-id=1 -s 16007 -c 17
  read_at back 2000 64
  cp data expected
  must dd if=nothing of=expected bs=512 seek=7 count=18 conv=notrunc 2>/dev/null
  same back expected
}

check_compare() {
  pattern data 2
  write_at data 3000
  must nvme compare $drive -s 24000 -c 15 -z 8192 -d data
  printf 'x' | dd of=data bs=1 seek=8191 conv=notrunc 2>/dev/null
  said=$(nvme compare $drive -s 24000 -c 15 -z 8192 -d data 2>&1) && die "other data compares equal"
  echo "$said" | grep -qi "compare" || die "$said"
  must nvme verify $drive --namespace-id=1 -s 24000 -c 15
}

check_reset() {
  pattern data 256
  write_at data 4000
  for _ in 1 2 3; do
    must nvme reset $controller
    within 10 is_back
  done
  read_at back 4000 256
  same back data
  must has_host_memory
}

check_abort() {
  # A command that is not there cannot be aborted; its completion says so in bit 0.
  must_say "value: 0x0*1$\|result: 0x0*1$" nvme admin-passthru $controller --opcode=8 --cdw10=0x12340001
}

# The LBA format of so many bytes.
format_of() { nvme id-ns $drive | sed -n "s/^lbaf *\([0-9]*\) .*lbads:$1 .*/\1/p" | head -n 1; }

check_format() {
  pattern data 64
  zeros nothing 64
  for power in 12 9; do
    write_at data 0
    bytes=$((1 << power))
    format=$(format_of $power)
    [ -n "$format" ] || die "no format of $bytes bytes"
    must nvme format $drive -l "$format" -f
    within 10 is_back
    now=$(cat /sys/block/nvme0n1/queue/logical_block_size)
    [ "$now" = "$bytes" ] || die "blocks of $now bytes after a format to $bytes"
    read_at back 0 64
    same back nothing
    load "format-$bytes" --rw=randrw --bs=4k --iodepth=8 --size=16m --io_size=8m
  done
  for erase in 1 2; do
    write_at data 0
    must nvme format $drive -s "$erase" -f
    within 10 is_back
    read_at back 0 64
    same back nothing
  done
}

sanitized() { nvme sanitize-log $controller | grep -q '(SSTAT) *: *\(257\|0x101\)'; }

check_sanitize() {
  pattern data 64
  zeros nothing 64
  for action in start-block-erase start-crypto-erase; do
    write_at data 5000
    must nvme sanitize $controller -a "$action"
    within 60 sanitized
    read_at back 5000 64
    same back nothing
  done
  load sanitized --rw=randrw --bs=4k --iodepth=8 --size=16m --io_size=8m
  must_say '(SSTAT) *: *\(1\|0x1\)$' nvme sanitize-log $controller
}

check_power_states() {
  last=$(nvme id-ctrl $controller | number_of npss)
  [ "$last" -ge 1 ] || die "one power state alone"
  tolerance=/sys/class/nvme/nvme0/power/pm_qos_latency_tolerance_us
  # The driver lets the drive rest by itself, but not while nobody tolerates latency.
  sleep 1
  must_say "0x0*1\$" nvme get-feature $controller -f 2
  echo 0 >$tolerance || die "no $tolerance"
  for state in $(seq 0 "$last") 0; do
    must nvme set-feature $controller -f 2 -V "$state"
    must_say "value:\(0x\)*0*$state\$" nvme get-feature $controller -f 2
    # Any command wakes it.
    pattern data 1
    write_at data 6000
    read_at back 6000 1
    same back data
  done
  must_not nvme set-feature $controller -f 2 -V $((last + 1))
  echo 100000 >$tolerance
}

check_saved_features() {
  must nvme set-feature $controller -f 4 -V 350 --save
  must nvme set-feature $controller -f 4 -V 340
  must_say "0x0*154\$" nvme get-feature $controller -f 4
  must nvme reset $controller
  within 10 is_back
  must_say "0x0*15e\$" nvme get-feature $controller -f 4
  must_say "0x0*15e\$" nvme get-feature $controller -f 4 -s 2
}

# What the base specification says of host memory, where the kernel lets programs ask.
check_host_memory_rules() {
  load rules --rw=randwrite --bs=4k --iodepth=16 --size=64m --io_size=16m
  sh /live/hmb-rules.sh $controller >rules.said 2>&1 || die "$(grep -e FAILED -e error -e failed rules.said | tr '\n' ';')"
  note "$(tail -n 1 rules.said)"
  must has_host_memory
}

check_no_host_memory() {
  must_not has_host_memory
  dmesg | grep -q "allocated .* host memory buffer" && die "the kernel allocated host memory"
  return 0
}

# Nobody comes; how much of a processor the drive takes meanwhile is looked at from outside.
check_idle() { sleep 20; }
