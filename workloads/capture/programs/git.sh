# git on a real source tree: thousands of small files created, read, replaced and deleted; pack
# files written in long runs; metadata and journal traffic; discards when files are deleted.
# shellcheck shell=bash disable=SC2154  # variables shared with capture.sh

git_tree_package=golang-1.19-src

git_usage() {
    cat <<USAGE
Options of git:
  --tree DIR      source tree to work on. By default Debian's package $git_tree_package is
                  downloaded with \`apt-get download\` and unpacked, not installed
  --subdir DIR    use only this part of the tree; of the package,
                  usr/share/go-1.19/src/cmd unless given
  --commits N     commits in the history, after the first           [default: 20]
  --seed N        chooses the files that each commit edits          [default: 1]
USAGE
}

program_options() {
    git_tree=
    git_subdir=
    git_commits=20
    git_seed=1
    while (($#)); do
        case $1 in
            --tree) git_tree=$(option_value "$@"); shift ;;
            --subdir) git_subdir=$(option_value "$@"); shift ;;
            --commits) git_commits=$(option_value "$@"); shift ;;
            --seed) git_seed=$(option_value "$@"); shift ;;
            -h | --help)
                git_usage
                exit 0
                ;;
            *) usage_error "unknown option of git \`$1\`" ;;
        esac
        shift
    done
    [[ -n $git_tree || -n $git_subdir ]] || git_subdir=usr/share/go-1.19/src/cmd
    [[ $git_commits =~ ^[1-9][0-9]*$ ]] ||
        usage_error "\`--commits\` must be a positive number, found \`$git_commits\`"
}

program_needs() {
    require_tools "$1" git:git apt-get:apt dpkg-deb:dpkg
    [[ -z $git_tree || -d $git_tree/$git_subdir ]] ||
        die "no directory \`$git_tree/$git_subdir\`"
}

program_mount_options() {
    # Deleted files become discards at the next journal commit.
    echo discard
}

program_describe() {
    printf '%s on %s, %s commits, seed %s' "$(git --version)" "$git_tree_name" "$git_commits" "$git_seed"
}

program_prepare() {
    git_home=$scratch/git
    mkdir -- "$git_home"
    if [[ -n $git_tree ]]; then
        git_tree_name="a given tree"
    else
        fetch_tree
    fi
    # The history is made beside the traced file system, not in it.
    cp -r -- "$git_tree/$git_subdir" "$git_home/origin"
    quiet_git -C "$git_home/origin" init --initial-branch=main
    quiet_git -C "$git_home/origin" add --all --force
    quiet_git -C "$git_home/origin" commit --message="the tree"
    local i
    for ((i = 1; i <= git_commits; i++)); do
        edit_and_commit "$git_home/origin" "$((git_seed * 1000 + i))" 50
    done
}

fetch_tree() {
    say "downloading $git_tree_package"
    (cd -- "$git_home" && apt-get download -qq -o APT::Sandbox::User=root "$git_tree_package") ||
        die "could not download $git_tree_package; \`apt-get update\` may help, or name a tree: \`-- --tree DIR\`"
    git_tree=$git_home/tree
    dpkg-deb --extract "$git_home/$git_tree_package"_*.deb "$git_tree"
    git_tree_name="$git_tree_package $(dpkg-deb --field "$git_home/$git_tree_package"_*.deb Version)"
}

# No configuration but this, and dates that do not move: object names are the same every time.
quiet_git() {
    env -i PATH=/usr/bin:/bin HOME="$git_home" LC_ALL=C GIT_CONFIG_NOSYSTEM=1 \
        GIT_AUTHOR_NAME=capture GIT_AUTHOR_EMAIL=capture@example.invalid \
        GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_NAME=capture \
        GIT_COMMITTER_EMAIL=capture@example.invalid GIT_COMMITTER_DATE='2024-01-01T00:00:00Z' \
        git -c safe.directory='*' -c gc.auto=0 -c advice.detachedHead=false "$@" >>"$git_home/log" 2>&1 || {
        tail -n 20 -- "$git_home/log" >&2
        die "\`git $*\` failed"
    }
}

# edit_and_commit REPO SEED COUNT appends a line to COUNT files that the seed chooses.
edit_and_commit() {
    python3 "$here/edit_files.py" --seed "$2" --count "$3" "$1" || die "cannot edit files in \`$1\`"
    quiet_git -C "$1" commit --all --message="edit $2"
}

program_load() {
    attended quiet_git clone --quiet "file://$git_home/origin" "$fs_dir/work"
}

program_run() {
    local work=$fs_dir/work i

    # Cold reads of the whole tree.
    attended quiet_git -C "$work" status --short
    attended quiet_git -C "$work" grep --count 'func '

    # Back in history and forth again.
    attended quiet_git -C "$work" checkout "HEAD~$git_commits"
    settle_fs
    attended quiet_git -C "$work" checkout main
    settle_fs

    # Work of a day, in a minute.
    for i in 1 2 3; do
        edit_and_commit "$work" "$((git_seed * 1000 + 500 + i))" 50
    done
    settle_fs

    # A second copy while the first is repacked from a cold cache.
    remount_fs
    attended quiet_git clone --quiet "file://$work" "$fs_dir/second"
    attended quiet_git -C "$work" gc --quiet
    settle_fs

    # Deletion: the discards come with the journal commit.
    attended rm -rf -- "$fs_dir/second"
    settle_fs
}
