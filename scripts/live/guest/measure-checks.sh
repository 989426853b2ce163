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

# values_of FILE: reads a second, mean and 99th percentile of their latency (us), of terse lines of fio or Lodger.
values_of() { awk -F ';' '{ sub(/.*=/, "", $30); print $8, $16, $30 }' "$1"; }
# job GIB RAMP RUN: random reads over the first so many GiB, ms before they count and from then on.
job() {
  cat <<JOB
[reads]
filename=$drive
ioengine=libaio
direct=1
rw=randread
bs=4k
iodepth=32
norandommap
randrepeat=0
time_based
size=$(awk "BEGIN { print $1 * 1024 }")m
ramp_time=${2}ms
runtime=${3}ms
JOB
}
# knee_of STATE COLUMN: the span at which the rate falls through the middle between its first and its last value.
knee_of() {
  awk -v state=$1 -v column=$2 '$1 == state { span[++n] = $2; rate[n] = $column }
    END { middle = (rate[1] + rate[n]) / 2
      for (i = 1; i < n; i++) if (rate[i] > middle && rate[i + 1] <= middle) {
        printf "%.2f", span[i] + (span[i + 1] - span[i]) * (rate[i] - middle) / (rate[i] - rate[i + 1]); exit } }' curve
}

# Reads over more and more of the drive by fio, with host memory and without, beside what `lodger simulate` makes of the
# same jobs. The drive is slower than real by LIVE_SLOWER, so that the guest keeps up with it.
check_knees() {
  : >curve
  for state in 1 0; do
    spans="1 8 16 20 22 24 26 28 32 96"
    given=default
    [ $state = 1 ] || { spans="0.25 0.5 0.75 1 1.25 1.5 2 8"; given=off; }
    echo $state >/sys/class/nvme/nvme0/hmb || die "host memory is not switched"
    for span in $spans; do
      job $span $((1000 * LIVE_SLOWER)) $((500 * LIVE_SLOWER)) >live.fio
      job $span 1000 500 >model.fio
      fio --output-format=terse live.fio >live.said 2>&1 || die "fio: $(tail -n 3 live.said)"
      lodger simulate -q --drive $LIVE_DRIVE --hmb $given --output-format terse model.fio >model.said 2>&1 || die "$(tail -n 3 model.said)"
      echo $state $span $(values_of live.said) $(values_of model.said) | awk -v slower=$LIVE_SLOWER \
        '{ $3 *= slower; $4 /= slower; $5 /= slower; print }' >>curve
      note "host memory $state, $(tail -n 1 curve | awk '{ printf "%s GiB: %.0f/s, %.0f us, 99 %% %.0f us; model %.0f/s, %.0f us, 99 %% %.0f us", $2, $3, $4, $5, $6, $7, $8 }')"
    done
  done
  echo 1 >/sys/class/nvme/nvme0/hmb
  for state in 1 0; do
    live=$(knee_of $state 3)
    model=$(knee_of $state 6)
    note "host memory $state: knee at $live GiB, of the model at $model GiB"
    awk -v live="$live" -v model="$model" 'BEGIN { exit !(live > 0 && live < 1.05 * model && model < 1.05 * live) }' ||
      die "the knee with host memory $state is at $live GiB and not at $model GiB"
  done
  apart=$(awk '{ ratio = $3 / $6; if (ratio > 1.05 || ratio < 0.9) print $1, $2, ratio }' curve)
  [ -z "$apart" ] || die "rates are apart (host memory, GiB, ratio): $(echo "$apart" | tr '\n' ';')"
}
