#!/bin/busybox sh
# shellcheck shell=dash disable=SC1090,SC2012,SC2086,SC2154
# A shell in the guest, until the user leaves it.
cat <<TEXT

Linux $(uname -r) with a drive of Lodger: /dev/nvme0n1. Programs: nvme, fio, mkfs of ext4 and xfs, busybox.

  nvme id-ctrl /dev/nvme0
  nvme get-feature /dev/nvme0 -f 0x0d -H
  fio --name=reads --filename=/dev/nvme0n1 --direct=1 --ioengine=libaio --rw=randread --bs=4k --iodepth=32 --runtime=5 --time_based

\`exit\` ends the machine.

TEXT
dmesg | grep -i "host memory buffer"
cd /tmp || exit 1
export PS1='guest# '
setsid cttyhack /bin/sh
poweroff -f
