# shellcheck shell=dash disable=SC2046,SC2086,SC2154
# A drive with three namespaces. Names that are not set here are those of check.sh.

# of N: the block device of a namespace. Kernels that look for namespaces at once give them names in any order.
of() { basename "$(dirname "$(grep -l "^$1$" /sys/block/nvme0n*/nsid)")"; }

# fill N: files of a pattern that is each namespace's own.
fill() {
  mkdir -p /mnt/$1
  must /bin/mke2fs -q -F -t ext4 -E lazy_itable_init=1 /dev/$(of $1)
  must mount -t ext4 /dev/$(of $1) /mnt/$1
  must fio --name=file --directory=/mnt/$1 --ioengine=libaio --rw=randrw --bs=4k --iodepth=8 --size=16m --fsync=64 \
    --randseed=$1 --verify=crc32c --verify_fatal=1 >file$1.fio 2>&1
  must cp -r /live /mnt/$1/
}

check_namespaces() {
  must_say 'nvme0n1' nvme list
  note "$(nvme list-ns $controller | tr -d '\t' | tr '\n' ' ')"
  for each in 1:2097152 2:4194304; do
    blocks=$(cat /sys/block/$(of ${each%:*})/size)
    [ "$blocks" = "${each#*:}" ] || die "namespace ${each%:*} has $blocks blocks"
  done
  [ "$(cat /sys/block/$(of 1)/wwid)" != "$(cat /sys/block/$(of 2)/wwid)" ] || die "two have one name"
  mount -t tmpfs tmp /mnt
  fill 1 &
  fill 2 || exit 1
  wait $! || die "the first: $(cat file1.fio | tail -n 3)"
  # One is formatted to 4 KiB under the file systems of the others.
  must nvme format /dev/$(of 3) --lbaf=1 --force >/dev/null
  [ "$(cat /sys/block/$(of 3)/queue/logical_block_size)" = 4096 ] || die "n3 has blocks of $(cat /sys/block/$(of 3)/queue/logical_block_size)"
  must dd if=/dev/urandom of=/dev/$(of 3) bs=1M count=16 oflag=direct 2>/dev/null
  for each in 1 2; do
    (cd /mnt/$each && find . -type f -exec md5sum {} + | sort -k 2) >sums$each
    must umount /mnt/$each
    must e2fsck -f -n /dev/$(of $each)
    must mount -t ext4 /dev/$(of $each) /mnt/$each
    (cd /mnt/$each && md5sum -c -s "$OLDPWD/sums$each") || die "files differ on n$each"
    must umount /mnt/$each
  done
  cmp -s sums1 sums2 && die "both have the same files"
  # What is no namespace.
  must_not nvme read $controller -n 4 -s 0 -c 7 -z 4096 >/dev/null 2>&1
  must_say 'INVALID_NS\|Invalid Namespace' nvme id-ns $controller -n 4
  umount /mnt
}
