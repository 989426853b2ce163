# A throw-away ext4 on a loop device over a file in the scratch directory.
# shellcheck shell=bash disable=SC2034,SC2154  # variables shared with capture.sh

# make_loop_fs BYTES SECTOR OPTIONS sets `loop_device`, `loop_dev` (MAJOR:MINOR), `fs_dir`.
make_loop_fs() {
    local bytes=$1 sector=$2
    fs_bytes_made=$bytes
    fs_sector=$sector
    fs_options=$3
    fs_dir=$scratch/fs
    local image=$scratch/disk.img

    fallocate --length "$bytes" -- "$image" ||
        die "no room for a backing file of $bytes bytes in \`$scratch\`; see \`--scratch\` and \`--size\`"
    loop_device=$(losetup --find --show --direct-io=on --sector-size "$sector" -- "$image") ||
        die "no loop device: the kernel needs CONFIG_BLK_DEV_LOOP and /dev/loop-control"
    on_exit detach_loop
    local sysfs=/sys/block/${loop_device#/dev/}
    loop_dev=$(<"$sysfs/dev")
    # losetup only warns when the backing file system refuses direct I/O.
    loop_direct_io=$(<"$sysfs/loop/dio")
    [[ $loop_direct_io == 1 ]] || say "warning: the loop device does not use direct I/O"
    loop_has_fua=$(<"$sysfs/queue/fua")
    loop_scheduler=$(sed -n 's/.*\[\(.*\)\].*/\1/p' "$sysfs/queue/scheduler")

    # Everything that mkfs may leave to a kernel thread is done now, so that it does not turn up
    # in the middle of the trace.
    mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 "$loop_device" ||
        die "mkfs.ext4 failed on \`$loop_device\`"
    mkdir -- "$fs_dir"
    on_exit unmount_fs
    mount_fs
}

mount_fs() {
    mount -t ext4 -o "$fs_options" "$loop_device" "$fs_dir" ||
        die "cannot mount ext4 with \`$fs_options\`"
}

unmount_fs() {
    local try
    mountpoint --quiet -- "$fs_dir" || return 0
    # A program that was just killed may hold the mount for a moment.
    for try in 1 2 3 4 5; do
        umount -- "$fs_dir" 2>/dev/null && return 0
        sleep "$try"
    done
    umount -- "$fs_dir"
}

detach_loop() {
    # Exact match on the name: the device is ours only while it backs our file.
    [[ $(losetup --noheadings --output BACK-FILE -- "$loop_device" 2>/dev/null) == "$scratch"/* ]] ||
        return 0
    losetup --detach "$loop_device"
}

# Writes out all that is dirty in this file system, and only in this one.
settle_fs() {
    sync --file-system -- "$fs_dir"
}

# An unmount empties the page cache of this file system and leaves the rest of the machine's alone.
remount_fs() {
    unmount_fs
    mount_fs
}
