#!/usr/bin/env bash
#
# Captures the block I/O of a real program: the program runs on ext4 over a loop device, and the
# kernel's own block_rq_issue events of that device are written out as ftrace text. Or captures how
# a database logs: bytes and processor time of each kind of transaction, writes and syncs.
#
# Everything the script makes (backing file, loop device, mounts, trace instance, servers) is
# thrown away when it ends, however it ends.

# shellcheck source-path=SCRIPTDIR
set -euo pipefail
shopt -s inherit_errexit
umask 022
export LC_ALL=C

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

# shellcheck source=lib/common.sh
source "$here/lib/common.sh"
# shellcheck source=lib/loopfs.sh
source "$here/lib/loopfs.sh"
# shellcheck source=lib/trace.sh
source "$here/lib/trace.sh"
# shellcheck source=lib/logtrace.sh
source "$here/lib/logtrace.sh"

usage() {
    cat <<'USAGE'
Usage: capture.sh [OPTION]... PROGRAM [-- PROGRAM-OPTION]...

Capture the block I/O of PROGRAM, running on ext4 over a loop device, as ftrace text; or how a
database commits, as distributions. Must run as root, on Linux with loop devices, ext4 and tracefs.

Programs whose block I/O is captured:
  pgbench               PostgreSQL under its own benchmark
  git                   clone, search, check out, commit, gc and delete of a source tree

Databases whose log is captured:
  linkbench             PostgreSQL under LinkBench's mix of operations
  rocksdb               RocksDB under a mix like YCSB's workload A
  redis                 Redis, append-only file, under a mix like YCSB's workload A

  `capture.sh PROGRAM -- --help` lists the options of PROGRAM.

Options:
  -o, --output DIR      where the files go                                [default: .]
      --scratch DIR     directory for the backing file, which needs room for --size;
                        not a RAM disk                                    [default: $TMPDIR or /tmp]
      --size SIZE       size of the file system                           [default: 4G]
      --sector-size N   logical sector of the loop device, 512 or 4096    [default: 512]
      --mount-options O ext4 mount options                                [default: PROGRAM's choice]
      --buffer-kb N     trace buffer for each CPU                         [default: 32768]
      --install         apt-get install what is missing, instead of only naming it
  -h, --help            show this help

Of block I/O, two files are written. PROGRAM-load.ftrace is the preparation (loading tables, first
clone); PROGRAM.ftrace is the run itself, started with nothing in the page cache. Of a database's
log, one: PROGRAM.toml. The capture fails, and writes nothing, if the kernel lost a single event.
USAGE
}

output_dir=.
scratch_parent=${TMPDIR:-/tmp}
fs_size=4G
sector_size=512
mount_options=
buffer_kb=32768
install=no

program=
while (($#)); do
    case $1 in
        -o | --output) output_dir=$(option_value "$@"); shift ;;
        --scratch) scratch_parent=$(option_value "$@"); shift ;;
        --size) fs_size=$(option_value "$@"); shift ;;
        --sector-size) sector_size=$(option_value "$@"); shift ;;
        --mount-options) mount_options=$(option_value "$@"); shift ;;
        --buffer-kb) buffer_kb=$(option_value "$@"); shift ;;
        --install) install=yes ;;
        -h | --help)
            usage
            exit 0
            ;;
        --)
            shift
            break
            ;;
        -*) usage_error "unknown option \`$1\`" ;;
        *)
            [[ -z $program ]] || usage_error "one program at a time: \`$program\` or \`$1\`"
            program=$1
            ;;
    esac
    shift
done

[[ -n $program ]] || usage_error "no program given"
[[ $program =~ ^[a-z0-9-]+$ && -r $here/programs/$program.sh ]] ||
    usage_error "no program \`$program\`; there are: $(program_names "$here/programs")"
[[ $sector_size == 512 || $sector_size == 4096 ]] ||
    usage_error "\`--sector-size\` must be 512 or 4096, found \`$sector_size\`"
[[ $buffer_kb =~ ^[1-9][0-9]*$ ]] ||
    usage_error "\`--buffer-kb\` must be a whole number of KiB, found \`$buffer_kb\`"
fs_bytes=$(numfmt --from=iec -- "$fs_size") ||
    usage_error "\`--size\` must be a size such as 4G, found \`$fs_size\`"

# A program file defines: program_options ARG..., program_needs, program_describe,
# program_mount_options, program_prepare (untraced), program_load, program_run. One that captures
# a database's log has program_comm, too: the name of the processes or threads that write it.
# shellcheck source=/dev/null
source "$here/programs/$program.sh"
program_options "$@"

((EUID == 0)) || die "must run as root: loop devices, mounts and tracefs need it"
require_tools "$install" \
    losetup:mount mount:mount mkfs.ext4:e2fsprogs setpriv:util-linux python3:python3
program_needs "$install"
[[ -d $output_dir && -w $output_dir ]] || die "cannot write to the output directory \`$output_dir\`"

trap_signals
make_scratch "$scratch_parent"
make_loop_fs "$fs_bytes" "$sector_size" "${mount_options:-$(program_mount_options)}"

capture_blocks() {
    open_trace "$buffer_kb"

    say "$program: preparing"
    program_prepare
    settle_fs

    say "$program: load phase"
    trace_begin
    program_load
    settle_fs
    trace_end load

    remount_fs

    say "$program: run phase"
    trace_begin
    program_run
    trace_end run

    # Both phases are complete: only now does anything reach the output directory.
    publish_trace load "$output_dir/$program-load.ftrace"
    publish_trace run "$output_dir/$program.ftrace"
    python3 "$here/ftrace_summary.py" "$output_dir/$program-load.ftrace" "$output_dir/$program.ftrace"
}

# What a database logs: the program file calls log_trace_begin and log_trace_end itself, around
# the part that is to be seen, and notes what it did.
capture_log() {
    open_log_trace "$buffer_kb" "$(program_comm)"
    begin_log_parts

    say "$program: preparing"
    program_prepare
    program_load

    say "$program: run"
    program_run
    publish_log "$output_dir/$program.toml"
}

if declare -F program_comm >/dev/null; then
    capture_log
else
    capture_blocks
fi
