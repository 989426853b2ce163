# shellcheck shell=dash disable=SC2034,SC2086,SC2154
# Measurements, which nothing depends on: they end well if they could be made.

# iops_of DRIVE: reads of 4 KiB a second, with interrupts and polled, one and 32 at once; the best of three rounds.
iops_of() {
  for way in "libaio 1" "libaio 32" "io_uring 1" "io_uring 32"; do
    set -- $way "$1"
    hipri=
    [ $1 = io_uring ] && hipri=--hipri
    fio --name=iops --filename="$3" --ioengine=$1 $hipri --iodepth=$2 --rw=randread --bs=4k --direct=1 --readonly \
      --size=256m --time_based --ramp_time=1 --runtime=4 --output-format=terse >iops.fio 2>&1 || die "fio: $(tail -n 3 iops.fio)"
    set -- "$3" "$1" "$2" "$(cut -d ';' -f 8 iops.fio | tail -n 1)"
    echo "IOPS $(basename "$1") $2 $3 $4"
  done
}

# Both drives in turn, so that what else the machine does meets both.
check_iops() {
  for round in 1 2 3; do
    for name in nvme0n1 nvme1n1; do
      iops_of /dev/$name >>all.iops || die "$(cat all.iops)"
    done
  done
  for way in "libaio 1" "libaio 32" "io_uring 1" "io_uring 32"; do
    for name in nvme0n1 nvme1n1; do
      best=$(grep "IOPS $name $way " all.iops | awk '{ print $5 }' | sort -n | tail -n 1)
      note "$(cat /sys/block/$name/device/model | tr -s ' ') $way: $best"
    done
  done
}
