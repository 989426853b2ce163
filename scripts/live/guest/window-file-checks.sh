# shellcheck shell=dash disable=SC2086,SC2154
# Checks of the byte window with ranges of files. Names that are not set here are those of check.sh.

part=${drive}p1
# Sectors before the partition: far enough that nothing of it is where one would look who forgets them.
start=2097152
window() { pin_file $drive "$@"; }
# The range that is pinned: 31 pages of the file from page 19 on, so that it begins and ends within what is cached as one, at
# 64 KiB of the window as entry 2.
from=77824
length=126976
range_of() { dd if="$1" bs=4096 skip=19 count=31 ${2:-} 2>/dev/null; }
is_readable() { range_of "$@" >/dev/null; }
range_at() { dd if=$drive bs=512 skip="$1" count=248 iflag=direct 2>/dev/null; }
pin_range() { must window pin 2 /mnt/file $from $length 65536; }
# numbers FROM: bytes of a range, others for each.
numbers() { seq "$1" "$(($1 + 90000))" | head -c $length; }
drop() { echo 3 >/proc/sys/vm/drop_caches; }

# Blocks by their number, as a program would pin them that does not ask where the partition begins.
pin_blocks() {
  must nvme io-passthru $drive --opcode=0xc0 --namespace-id=1 --cdw12="$1" --cdw14=16 --cdw15=0x1f02 >/dev/null
}
flush_blocks() { must nvme io-passthru $drive --opcode=0xc4 --namespace-id=1 --cdw15=2 >/dev/null; }

partitioned() {
  printf 'o\nn\np\n1\n%s\n+256M\nw\n' $start | fdisk -u $drive >fdisk.said 2>&1
  within 10 [ -b $part ]
  [ "$(cat /sys/class/block/${part##*/}/start)" = $start ] || die "the partition begins elsewhere: $(cat fdisk.said)"
}

# Refusals, by the kernel's own answers.
refused() {
  dd if=/dev/zero of=/mnt/hole bs=4096 seek=64 count=1 2>/dev/null
  must_say 'a hole' window pin 2 /mnt/hole 0 4096 0
  must fallocate -l 1048576 /mnt/allocated
  must_say 'never written' window pin 2 /mnt/allocated 0 4096 0
  must_say 'has 1048576 bytes' window pin 2 /mnt/file 1048576 4096 0
  pattern /tmp/elsewhere 16
  must_say 'no block device' window pin 2 /tmp/elsewhere 0 4096 0
  # Two files that take turns are in pieces.
  for page in 0 1 2 3; do
    for name in one other; do
      dd if=/live/check.sh of=/mnt/$name bs=4096 seek=$page count=1 conv=notrunc,sync,fsync 2>/dev/null
    done
  done
  extents=$(window extents /mnt/one 0 16384 | wc -l)
  [ "$extents" = 1 ] || must_say "in $extents pieces" window pin 2 /mnt/one 0 16384 0
  must umount /mnt
  must mount -t ext4 -o data=journal $part /mnt
  must_say 'through its journal' window pin 2 /mnt/file $from 4096 0
  must umount /mnt
  must mount -t ext4 $part /mnt
}

check_window_file() {
  partitioned
  must /bin/mke2fs -q -F -t ext4 -b 4096 -E lazy_itable_init=1 $part
  must mount -t ext4 $part /mnt
  pattern old 256
  must cp old /mnt/file
  sync
  refused
  range_of old >range.old
  lba=$(window extents /mnt/file $from $length | cut -d ' ' -f 2)
  # The drive itself has the file there, and not where one would look who forgets the partition.
  range_at $lba >found
  same range.old found
  range_at $((lba - start)) >found
  must_not cmp -s range.old found
  # Blocks there can be pinned and flushed as well: the file knows nothing of it.
  pin_blocks $((lba - start))
  must is_readable /mnt/file iflag=direct
  numbers 100000 >wrong
  must window store 2 65536 <wrong
  flush_blocks
  drop
  range_of /mnt/file >found
  same range.old found

  # Its pages are cached; pinned, neither they nor the blocks can be read or written.
  must cat /mnt/file >/dev/null
  said=$(pin_range) || die "$said"
  [ "$said" = "$lba $length" ] || die "pinned $said, not $lba $length"
  must_not is_readable /mnt/file
  must_not is_readable /mnt/file iflag=direct
  must_not dd if=wrong of=/mnt/file bs=4096 seek=20 count=4 conv=notrunc oflag=direct 2>/dev/null
  # The rest of the file goes on. Kernels that read ahead into large folios fail to read what is in one with the range.
  must dd if=/mnt/file of=head bs=4096 count=19 iflag=direct 2>/dev/null
  drop
  dd if=/mnt/file of=/dev/null bs=4096 count=19 2>/dev/null
  failed=0
  for page in $(seq 0 18); do
    dd if=/mnt/file of=/dev/null bs=4096 skip=$page count=1 2>/dev/null || failed=$((failed + 1))
  done
  note "of the 19 pages before the range $failed cannot be read by way of the cache"
  must dd if=old of=/mnt/file bs=4096 seek=50 skip=50 conv=notrunc,fsync 2>/dev/null
  # The range cannot be written by way of the cache, which keeps what it could not write: the flush drops that.
  must_not dd if=wrong of=/mnt/file bs=4096 seek=24 count=4 conv=notrunc,fsync 2>/dev/null
  must window load 65536 $length >found
  same range.old found
  numbers 1 >new
  must window store 2 65536 <new
  must window flush 2 /mnt/file $from
  for way in "" iflag=direct; do
    range_of /mnt/file "$way" >found
    same new found
  done
  { dd if=old bs=4096 count=19 2>/dev/null; cat new; dd if=old bs=4096 skip=50 2>/dev/null; } >whole
  same whole /mnt/file
  must umount /mnt
  must e2fsck -f -n $part
  must mount -t ext4 $part /mnt
  same whole /mnt/file
}

# What was stored and synced when the machine and the drive lose their power is the file's.
check_window_file_cut() {
  said=$(pin_range) || die "$said"
  numbers 5000 >newer
  must window store 2 65536 <newer
}
check_window_file_kept() {
  must mount -t ext4 $part /mnt
  must_not is_readable /mnt/file
  must_say 'entry 2 has the blocks' window flush 2 /mnt/file 0
  must window flush 2 /mnt/file $from
  numbers 5000 >newer
  range_of /mnt/file >found
  same newer found
  must umount /mnt
  must e2fsck -f -n $part
}

# A program in C, on a drive without partitions and with blocks of 4096 bytes.
check_window_c() {
  must /bin/mke2fs -q -F -t ext4 -E lazy_itable_init=1 $drive 256m
  must mount -t ext4 $drive /mnt
  must window_in_c $drive /mnt/file
  must umount /mnt
  must e2fsck -f -n $drive
}
