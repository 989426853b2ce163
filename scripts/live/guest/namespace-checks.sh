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

# comes N, goes N: the kernel looks for namespaces after a command that changes which there are.
is_namespace() { grep -qs "^$1$" /sys/block/nvme0n*/nsid; }
comes() {
  for _ in $(seq 100); do is_namespace $1 && [ -b /dev/$(of $1) ] && return; sleep 0.1; done
  die "namespace $1 does not come"
}
goes() {
  for _ in $(seq 100); do is_namespace $1 || return; sleep 0.1; done
  die "namespace $1 does not go"
}
# make N: one of 32 MiB, attached, that is to be namespace N.
make() {
  must_say "nsid: *$1" nvme create-ns $controller --nsze=65536 --ncap=65536 --flbas=0
  must nvme attach-ns $controller --namespace-id=$1 --controllers=0
  comes $1
}
sum() { dd if=$1 bs=1M count=32 2>/dev/null | md5sum; }

check_manage_namespaces() {
  must nvme delete-ns $controller --namespace-id=1
  goes 1
  make 1
  make 2
  [ "$(cat /sys/block/$(of 2)/size)" = 65536 ] || die "n2 has $(cat /sys/block/$(of 2)/size) blocks"
  for each in 1 2; do
    must dd if=/dev/urandom of=/dev/$(of $each) bs=1M count=32 oflag=direct 2>/dev/null
  done
  first=$(sum /dev/$(of 1)) second=$(sum /dev/$(of 2))
  [ "$first" != "$second" ] || die "both hold the same"
  must nvme detach-ns $controller --namespace-id=1 --controllers=0
  goes 1
  must_not nvme detach-ns $controller --namespace-id=1 --controllers=0 >/dev/null 2>&1
  must nvme attach-ns $controller --namespace-id=1 --controllers=0
  comes 1
  [ "$(sum /dev/$(of 1))" = "$first" ] || die "n1 was detached, and holds something else"
  # What is made in its place holds nothing of it.
  must nvme delete-ns $controller --namespace-id=1
  goes 1
  make 1
  [ "$(sum /dev/$(of 1))" = "$(sum /dev/zero)" ] || die "a new namespace holds something"
  [ "$(sum /dev/$(of 2))" = "$second" ] || die "n2 holds something else"
  note "$(nvme list-ns $controller --all | tr -d '\t' | tr '\n' ' ')"
}
