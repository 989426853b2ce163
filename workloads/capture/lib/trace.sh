# block_rq_issue events of the loop device, through a trace instance of our own, so that nobody
# else's tracing is disturbed.
# shellcheck shell=bash disable=SC2154  # variables shared with capture.sh

# open_trace BUFFER_KB sets up two instances: `issue` has the requests as issued to the device;
# `fua` counts the writes that the file system submitted with FUA. A loop device has no FUA, and
# the kernel turns such a write into a write and a flush before it is issued.
open_trace() {
    local buffer_kb=$1 root=$scratch/tracefs
    mount_tracefs "$root"

    issue_instance=$root/instances/lodger-issue-$$
    fua_instance=$root/instances/lodger-fua-$$
    # As the tracing filter sees it: MAJOR << 20 | MINOR.
    local dev=$((${loop_dev%:*} << 20 | ${loop_dev#*:}))
    open_instance "$issue_instance" "$buffer_kb" block_rq_issue "dev == $dev"
    open_instance "$fua_instance" 4096 block_bio_queue "dev == $dev && rwbs ~ \"*WF*\""
}

mount_tracefs() {
    mkdir -- "$1"
    mount -t tracefs nodev "$1" 2>/dev/null ||
        die "cannot mount tracefs: the kernel needs CONFIG_TRACING, and the machine must not be locked down"
    on_exit umount -- "$1"
    [[ -d $1/events/block/block_rq_issue ]] ||
        die "the kernel has no block_rq_issue event: it needs CONFIG_BLK_DEV_IO_TRACE"
}

open_instance() {
    local dir=$1 buffer_kb=$2 event=$3 filter=$4
    mkdir -- "$dir" || die "cannot make the trace instance \`${dir##*/}\`"
    on_exit close_instance "$dir"
    echo 0 >"$dir/tracing_on"
    # One clock for all CPUs, so that the merged order is the order of issue.
    echo mono >"$dir/trace_clock"
    echo "$buffer_kb" >"$dir/buffer_size_kb" || die "no memory for trace buffers; see \`--buffer-kb\`"
    echo "$filter" >"$dir/events/block/$event/filter"
    echo 1 >"$dir/events/block/$event/enable"
}

close_instance() {
    [[ -d $1 ]] || return 0
    echo 0 >"$1/tracing_on"
    rmdir -- "$1"
}

trace_begin() {
    local dir
    for dir in "$issue_instance" "$fua_instance"; do
        : >"$dir/trace"
        echo 1 >"$dir/tracing_on"
    done
}

# trace_end PHASE stops tracing and keeps the events in the scratch directory.
trace_end() {
    local phase=$1
    echo 0 >"$issue_instance/tracing_on"
    echo 0 >"$fua_instance/tracing_on"
    refuse_lost_events "$issue_instance"
    refuse_lost_events "$fua_instance"
    cat -- "$issue_instance/trace" >"$scratch/$phase.raw"
    grep -c -v '^#' "$fua_instance/trace" >"$scratch/$phase.fua" || true
}

refuse_lost_events() {
    local lost
    lost=$(awk -F: '/^(overrun|commit overrun|dropped events):/ { n += $2 } END { print n + 0 }' \
        "$1"/per_cpu/cpu*/stats)
    ((lost == 0)) || die "the kernel lost $lost events; use a larger \`--buffer-kb\`"
}

# publish_trace PHASE FILE writes the kernel's text as it is, with its provenance as comments
# after the kernel's own header.
publish_trace() {
    local phase=$1 file=$2 kernel
    # The part after the dash names whoever built the kernel.
    kernel=$(uname -r)
    {
        sed -n '/^#/p' "$scratch/$phase.raw"
        printf '#\n'
        printf '# program: %s\n' "$(program_describe)"
        printf '# phase: %s\n' "$phase"
        printf '# system: Linux %s, %s CPUs\n' "${kernel%%-*}" "$(nproc)"
        printf '# file system: ext4, %s bytes, mount options %s\n' "$fs_bytes_made" "$fs_options"
        printf '# device: loop, direct I/O %s, logical sector %s, scheduler %s, FUA %s\n' \
            "$loop_direct_io" "$fs_sector" "$loop_scheduler" "$loop_has_fua"
        printf '# writes submitted with FUA: %s\n' "$(<"$scratch/$phase.fua")"
        printf '#\n'
        sed '/^#/d' "$scratch/$phase.raw"
    } >"$scratch/$phase.ftrace"
    install -m 644 -- "$scratch/$phase.ftrace" "$file"
    say "wrote $file"
}
