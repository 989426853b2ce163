# How a database writes its log: its calls that write and sync, and what they become on the loop
# device, through a trace instance of our own.
# shellcheck shell=bash disable=SC2034,SC2154  # variables shared with capture.sh

log_calls="write pwrite64 fdatasync"

# open_log_trace BUFFER_KB COMM traces the calls of the processes or threads named COMM, and the
# writes of the loop device, whoever issues them.
open_log_trace() {
    local buffer_kb=$1 comm=$2 root=$scratch/tracefs call edge event
    local dev=$((${loop_dev%:*} << 20 | ${loop_dev#*:}))
    mount_tracefs "$root"
    [[ -d $root/events/syscalls/sys_enter_fdatasync ]] ||
        die "the kernel has no events of system calls: it needs CONFIG_FTRACE_SYSCALLS"
    log_instance=$root/instances/lodger-log-$$
    open_instance "$log_instance" "$buffer_kb" block_rq_issue "dev == $dev"
    enable_event "$log_instance" block/block_rq_complete "dev == $dev"
    for call in $log_calls; do
        for edge in enter exit; do
            event=syscalls/sys_${edge}_$call
            enable_event "$log_instance" "$event" "comm == \"$comm\""
        done
    done
}

enable_event() {
    echo "$3" >"$1/events/$2/filter" || die "the kernel refused the filter of \`$2\`"
    echo 1 >"$1/events/$2/enable"
}

log_trace_begin() {
    : >"$log_instance/trace"
    echo 1 >"$log_instance/tracing_on"
}

# log_trace_end FILE
log_trace_end() {
    echo 0 >"$log_instance/tracing_on"
    refuse_lost_events "$log_instance"
    cat -- "$log_instance/trace" >"$1"
}

# cpu_ns PID... prints the processor time that these processes, their children (ended ones, too)
# and their children have used.
cpu_ns() {
    python3 "$here/cpu_time.py" "$@"
}

# Each kind of transaction runs alone this often; the round with the least processor time counts, as
# whatever else the machine does can only add to it (caches, frequency, a shared core).
log_rounds=3

# least A B prints the smaller, B if A is empty.
least() {
    if [[ -z $1 ]] || (($2 < $1)); then echo "$2"; else echo "$1"; fi
}

# note_operation NAME SHARE TRANSACTIONS CPU_NS RECORDS [SERVER_CPU_NS] adds a kind of transaction
# that ran alone: its share of the mix in per cent, the processor time of all its transactions, and
# the file in which its log records are, or `-`. SERVER_CPU_NS is the part of a server that serves
# one after the other.
note_operation() {
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" "$5" "${6-0}" >>"$log_parts/operations.tsv"
}

# note KEY VALUE adds a line to what is said of the run.
note() {
    printf '%s\t%s\n' "$1" "$2" >>"$log_parts/run.tsv"
}

begin_log_parts() {
    log_parts=$scratch/parts
    install -d -m 755 -- "$log_parts"
    local kernel
    # The part after the dash names whoever built the kernel.
    kernel=$(uname -r)
    note program "$(program_describe)"
    note machine "Linux ${kernel%%-*}, $(uname -m), $(nproc) CPUs; ext4 (mount options $fs_options) on a loop device with direct I/O"
}

publish_log() {
    python3 "$here/log_distributions.py" --parts "$log_parts" --output "$scratch/log.toml" ||
        die "cannot make distributions of what was captured"
    install -m 644 -- "$scratch/log.toml" "$1"
    say "wrote $1"
}
