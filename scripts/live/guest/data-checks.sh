# shellcheck shell=dash disable=SC1090,SC2012,SC2086,SC2154
# Checks of what the drive holds, under load and while it is taken away and given back. Names that are not set here
# are those of check.sh; none of what they hold has spaces.

MIX="--rw=randrw --bssplit=4k/70:8k/10:16k/10:64k/10 --iodepth=16 --numjobs=4 --offset_increment=64m"

check_random_mix() {
  load mix $MIX --size=48m --io_size=12m
  load mix512 --rw=randrw --bssplit=512/40:4k/40:12k/20 --verify_interval=512 --iodepth=16 --size=16m --io_size=6m
  note "$(sed -n 's/^ *\(read\|write\): \(IOPS=[^,]*\).*/\1 \2/p' mix.fio | tr '\n' ' ')"
}

check_trim_mix() {
  load trims --rw=randwrite --bs=4k --iodepth=16 --size=32m --trim_percentage=20 --trim_verify_zero=1
}

# filesystem MAKE FSCK: made, filled, checked, and the files are what they were.
filesystem() {
  must $1 $drive >/dev/null
  must mount -t "$3" $drive /mnt
  must cp -r /bin /live /mnt/
  must fio --name=file --directory=/mnt --ioengine=libaio --rw=randrw --bs=4k --iodepth=8 --size=16m --fsync=64 \
    --verify=crc32c --verify_fatal=1 >file.fio 2>&1
  (cd /mnt && find . -type f -exec md5sum {} + | sort -k 2) >sums
  rm -rf /mnt/live
  grep -v ' ./live/' sums >rest
  must fstrim /mnt
  must umount /mnt
  must $2 $drive
  must mount -t "$3" $drive /mnt
  (cd /mnt && md5sum -c -s "$OLDPWD/rest") || die "files differ on $3"
  note "$(wc -l <rest) files, $(df -m /mnt | awk 'END { print $3 }') MiB"
  must umount /mnt
}

check_ext4() { filesystem "/bin/mke2fs -q -F -t ext4 -E lazy_itable_init=1" "e2fsck -f -n" ext4; }
check_xfs() {
  for module in /modules/later/*.ko; do
    [ -e "$module" ] && insmod "$module" 2>/dev/null
  done
  filesystem "mkfs.xfs -q -f -c options=/etc/xfs.conf" "xfs_repair -n" xfs
}

# What was flushed, for checks that take the drive away.
keep() { load kept --rw=write --bs=64k --iodepth=4 --offset=1g --size=16m --do_verify=0 --end_fsync=1; }
kept() { load kept --rw=write --bs=64k --iodepth=4 --offset=1g --size=16m --verify_only; }
# A load in the background, that has not to end well.
disturb() {
  fio --name=load --filename=$drive --direct=1 --ioengine=libaio --rw=randrw --bs=4k --iodepth=32 --numjobs=2 \
    --size=64m --time_based --runtime="$1" >load.fio 2>&1 &
  sleep 1
}

# Who still has the drive open would keep its name from it when it comes back.
let_go() {
  killall fio 2>/dev/null
  wait
}

# thrice_under_load COMMAND: while fio writes and verifies, pass after pass. How long a pass takes depends on the machine;
# what is done under load must be done more than once.
thrice_under_load() {
  rm -f enough
  trap 'touch enough' EXIT TERM
  while [ ! -e enough ]; do
    load under $MIX --size=48m --io_size=16m
  done &
  loading=$!
  for _ in 1 2 3; do
    sleep 1
    kill -0 $loading 2>/dev/null || break
    "$1"
  done
  touch enough
  wait $loading || exit 1
}

reset_once() { must nvme reset $controller; }
check_reset_under_load() { thrice_under_load reset_once; }

host_memory_off() { nvme set-feature $controller -f 0x0d -V 0; }

switch_by_sysfs() {
  echo 0 >$hmb || die "sysfs does not switch it off"
  must_not has_host_memory
  echo 1 >$hmb || die "sysfs does not switch it on"
  must has_host_memory
}
# The driver does not know that it is off, and gives it again at the next reset.
switch_by_passthrough() {
  must host_memory_off
  must_not has_host_memory
  must nvme reset $controller
  within 10 is_back
  must has_host_memory
}

check_host_memory_under_load() {
  hmb=/sys/class/nvme/nvme0/hmb
  way=passthrough
  [ -e $hmb ] && way=sysfs
  # Seen of Linux 6.12.117: this feature is nobody's but the driver's, not even root's.
  if [ $way = passthrough ] && host_memory_off 2>&1 | grep -q "Permission denied"; then
    note "not switched: without sysfs, and the kernel refuses the feature by passthrough"
    return
  fi
  thrice_under_load switch_by_$way
  note "by $way"
}

check_unbind() {
  keep
  for round in 1 2 3; do
    [ $round = 1 ] || disturb 20
    where=$(slot)
    echo "$where" >/sys/bus/pci/drivers/nvme/unbind || die "no unbind"
    must_not is_there
    let_go
    echo "$where" >/sys/bus/pci/drivers/nvme/bind || die "no bind"
    within 20 is_back
  done
  must has_host_memory
  kept
}

check_remove() {
  keep
  for _ in 1 2 3; do
    disturb 20
    echo 1 >"/sys/bus/pci/devices/$(slot)/remove" || die "no remove"
    must_not is_there
    let_go
    echo 1 >/sys/bus/pci/rescan
    within 20 is_back
  done
  kept
}

# Two halves of one check: the machine ends between them as by a power cut of the host.
check_write_before_cut() {
  keep
  disturb 60
  sleep 2
}
check_read_after_cut() { kept; }
