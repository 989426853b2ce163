# Messages, requirements, and a clean-up stack that runs however the script ends.
# shellcheck shell=bash disable=SC2034  # variables shared with capture.sh

say() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
}

die() {
    printf '%s: error: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

usage_error() {
    local name=${0##*/}
    printf '%s: error: %s\n\n%s\n' "$name" "$*" "hint: \`$name --help\` lists the options" >&2
    exit 2
}

# option_value OPTION [VALUE]... prints VALUE, or fails naming OPTION.
option_value() {
    (($# >= 2)) || usage_error "option \`$1\` needs a value"
    printf '%s\n' "$2"
}

program_names() {
    local file names=()
    for file in "$1"/*.sh; do
        file=${file##*/}
        names+=("${file%.sh}")
    done
    printf '%s\n' "${names[*]}"
}

# require_tools INSTALL TOOL:PACKAGE... names every missing tool at once, or installs them when
# INSTALL is `yes`.
require_tools() {
    local install=$1 pair missing=() packages=()
    shift
    for pair in "$@"; do
        if ! command -v "${pair%%:*}" >/dev/null; then
            missing+=("${pair%%:*}")
            packages+=("${pair#*:}")
        fi
    done
    ((${#missing[@]})) || return 0
    if [[ $install != yes ]]; then
        say "error: missing: ${missing[*]}"
        die "install with \`apt-get install ${packages[*]}\`, or run again with \`--install\`"
    fi
    say "installing ${packages[*]}"
    apt-get install -y --no-install-recommends "${packages[@]}" >&2 ||
        die "could not install ${packages[*]}"
}

# --- clean-up ---------------------------------------------------------------------------------

cleanup_stack=()
child_group=

# on_exit COMMAND ARG... runs the command at exit, last registered first. Each must be safe to
# run even if what it undoes is already gone.
on_exit() {
    cleanup_stack+=("$(printf '%q ' "$@")")
}

clean_up() {
    local status=$? i failed=no
    # A second interrupt must not leave a mounted loop device behind.
    trap '' INT TERM HUP
    trap - EXIT
    # A step that fails must not keep the later ones from running.
    set +e
    if [[ -n $child_group ]]; then
        kill -- "-$child_group" 2>/dev/null
        wait "$child_group" 2>/dev/null
    fi
    for ((i = ${#cleanup_stack[@]} - 1; i >= 0; i--)); do
        eval "${cleanup_stack[i]}" || {
            failed=yes
            say "clean-up failed: ${cleanup_stack[i]}"
        }
    done
    [[ $failed == no ]] || ((status)) || status=1
    exit "$status"
}

trap_signals() {
    trap clean_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    trap 'exit 129' HUP
}

# attended COMMAND ARG... runs a long command such that a signal to the script ends it at once:
# bash runs traps during `wait`, but not while a foreground command runs. Job control gives the
# command a process group of its own, so that all of it can be ended.
attended() {
    local status=0
    set -m
    "$@" </dev/null &
    child_group=$!
    set +m
    wait "$child_group" || status=$?
    child_group=
    return "$status"
}

# make_scratch PARENT makes the throw-away directory, in `scratch`.
make_scratch() {
    [[ -d $1 && -w $1 ]] || die "cannot write to the scratch directory \`$1\`"
    case $(stat --file-system --format=%T -- "$1") in
        tmpfs | ramfs) die "\`$1\` is a RAM disk, where a flush costs nothing; name a real one with \`--scratch\`" ;;
    esac
    scratch=$(realpath -- "$(mktemp -d -- "$1/capture.XXXXXX")")
    # Servers run as another user and must be able to walk through.
    chmod 711 "$scratch"
    # --one-file-system: should an unmount ever fail, do not delete through the mount.
    on_exit rm -rf --one-file-system -- "$scratch"
}
