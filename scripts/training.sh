#!/bin/sh
# What `make fast` has the command do, so that the compiler sees which ways its code takes.
#
#   scripts/training.sh LODGER FOLDER       what each run says goes to a file in FOLDER
#
# Each way a request can take, on other drives than `make bench` and scripts/mqsim.py measure: a build must not be fitted to
# what it is judged by. There is one drive with a byte window; the databases on it are others. Each run takes about as long as the others, as the compiler keeps for hot
# what makes up nearly all of what was counted.
set -eu
cd "$(dirname "$0")/.."
lodger=$1
folder=$2
mkdir -p "$folder"

# A job of fio on a drive: NAME DRIVE PRECONDITION REQUESTS LINES [OPTIONS].
job() {
    name=$1 drive=$2 precondition=$3 requests=$4 lines=$5
    shift 5
    printf '[job]\n%b\nnumber_ios=%s\n' "$lines" "$requests" >"$folder/$name.fio"
    "$lodger" simulate -q "$folder/$name.fio" --drive "$drive" --precondition "$precondition" --seed 7 "$@" \
        >"$folder/$name.txt"
}

small='rw=randread\nbs=4k\nnorandommap'
job hit-16 wd-black-3d sequential 600000 "$small\niodepth=16\nsize=96g"
job hit-1 a1000 sequential 600000 "$small\niodepth=1\nsize=40g"
job hit-256 pm963 sequential 300000 "$small\niodepth=256\nsize=200g"
job hit-mapped-once wd-black-3d sequential 300000 'rw=randread\nbs=4k\niodepth=8\nsize=2g'
job in-host-memory bg4 sequential 400000 "$small\niodepth=16\nsize=12g"
job in-host-memory-1 ex900 sequential 300000 "$small\niodepth=1\nsize=8g"
job over-cxl cxl-512 sequential 200000 "$small\niodepth=16\nsize=64g"
job beyond-reach bg4 sequential 200000 "$small\niodepth=16"
job beyond-reach-1 a80 sequential 150000 "$small\niodepth=1" --hmb off
job ages aging-tlc sequential 200000 "$small\niodepth=16"
job steady wd-black-3d random 200000 'rw=randwrite\nbs=4k\niodepth=16\nnorandommap' --set capacity=12GiB \
    --set nand.pages_per_block=96 --set ftl.overprovisioning=0.2
job steady-hmb bg4 random 150000 'rw=randwrite\nbs=4k\niodepth=16\nnorandommap'
job mixed a80 random 200000 'rw=randrw\nrwmixread=60\nbs=4k\niodepth=16\nnorandommap'
job mixed-16k a1000 random 80000 'rw=randrw\nrwmixread=50\nbs=16k\niodepth=8\nnorandommap'
job read-64k wd-black-3d sequential 80000 'rw=read\nbs=64k\niodepth=16'
job read-64k-hmb ex900 sequential 60000 'rw=read\nbs=64k\niodepth=4'
job write-64k wd-black-3d sequential 60000 'rw=write\nbs=64k\niodepth=16'
job write-64k-hmb bg4 sequential 40000 'rw=write\nbs=64k\niodepth=16'
job trims m730 random 80000 'rw=randtrimwrite\nbs=16k\niodepth=4'
job flushes a1000 sequential 60000 'rw=randwrite\nbs=4k\niodepth=2\nfsync=8'
job phone galaxy-s7 sequential 300000 "$small\niodepth=4\nsize=4g"
job phone-1 galaxy-s7 sequential 300000 "$small\niodepth=1\nsize=2g"
job phone-writes galaxy-s7 sequential 60000 'rw=randrw\nbs=4k\niodepth=4\nsize=2g'
job buffer-in-host-memory hong-hmb-buffer sequential 80000 'rw=randrw\nbs=4k\niodepth=8'
job logs 2b-ssd none 60000 'rw=write\nbs=4k\niodepth=1\nfsync=1'
for name in redis rocksdb; do
    "$lodger" simulate -q "workloads/logging/$name.toml" --drive 2b-ssd >"$folder/$name.txt"
done
for name in git pgbench; do
    "$lodger" simulate -q "workloads/$name.ftrace" --drive rc100-240 >"$folder/$name.txt"
done

# A trace as it is read: two reads to a write, in four formats.
trace() {
    awk -v format="$1" -v requests=200000 'BEGIN {
        srand(7)
        if (format == "csv") print "time_us,op,offset_bytes,length_bytes"
        for (i = 0; i < requests; i++) {
            page = int(rand() * 2500000); writes = rand() < 0.33
            if (format == "csv") printf "%d,%s,%d,4096\n", i * 5, writes ? "W" : "R", page * 4096
            if (format == "alibaba") printf "3,%s,%d,4096,%d\n", writes ? "W" : "R", page * 4096, i * 5
            if (format == "mqsim") printf "%d 0 %d 8 %d\n", i * 5000, page * 8, writes ? 0 : 1
            if (format == "msr")
                printf "%d,src,0,%s,%d,4096,99\n", 128000000000000000 + i * 50, writes ? "Write" : "Read", page * 4096
        }
    }' >"$folder/$1.trace"
    "$lodger" simulate -q "$folder/$1.trace" --format "$1" --drive wd-black-3d --replay closed --stream \
        >"$folder/trace-$1.txt"
    rm "$folder/$1.trace"
}
for format in csv alibaba mqsim msr; do trace "$format"; done
