# shellcheck shell=dash disable=SC2012,SC2154
# Checks of what only Debian's ordinary kernels do: they suspend devices, and their driver is a module.

# All devices are suspended and resumed as for `$state` of /sys/power/state; the machine goes on meanwhile, as one that stops
# could not be woken.
suspend_once() {
  before=$(dmesg | grep -c "PM: suspend exit")
  # Seconds until devices are resumed.
  echo 1 >/sys/module/suspend/parameters/pm_test_delay
  echo devices >/sys/power/pm_test || die "the kernel does not suspend devices alone"
  echo "$state" >/sys/power/state || die "not suspended: $(dmesg | tail -n 3)"
  [ "$(dmesg | grep -c "PM: suspend exit")" -gt "$before" ] || die "not suspended: $(dmesg | tail -n 3)"
  within 20 is_back
  must has_host_memory
}

# suspended STATE: at rest, and three times under load; what was flushed before is there.
suspended() {
  state=$1
  keep
  suspend_once
  thrice_under_load suspend_once
  kept
  note "4 times, three of them under load"
}
check_suspend_to_idle() { suspended freeze; }
check_suspend_to_ram() {
  echo deep >/sys/power/mem_sleep || die "no deep sleep: $(cat /sys/power/mem_sleep)"
  suspended mem
}

# loaded PARAMETER...: the driver is taken away, and comes back so.
loaded() {
  must rmmod nvme
  must_not is_there
  must insmod /modules/*-nvme.ko "$@"
  within 20 is_back
}
# MiB that the drive was given, as the driver says.
given() { dmesg | sed -n 's/.*allocated \([0-9]*\) MiB host memory buffer.*/\1/p' | tail -n 1; }
check_module() {
  keep
  full=$(given)
  loaded max_host_mem_size_mb=0
  must_not has_host_memory
  kept
  loaded "max_host_mem_size_mb=$((full / 2))"
  must has_host_memory
  [ "$(given)" -le $((full / 2)) ] || die "$(given) MiB were given, not half of $full"
  kept
  loaded
  must has_host_memory
  [ "$(given)" = "$full" ] || die "$(given) MiB were given, not $full"
  kept
  note "$full MiB, none, half and again"
}
