# shellcheck shell=dash disable=SC1090,SC2012,SC2086,SC2154
# Checks of the byte window with SQLite, which knows nothing of it. Names that are not set here are those of check.sh.

# The file system ends before the blocks that are pinned.
base=/mnt/base
preloaded() {
  LD_PRELOAD=/usr/lib/liblodger_window_preload.so LODGER_WINDOW=$drive LODGER_WINDOW_PIN=2097152:1048576 "$@"
}
setup="pragma journal_mode=wal; pragma synchronous=full; pragma wal_autocheckpoint=100;"

# rows FROM TO: commits of a row each.
rows() {
  for row in $(seq "$1" "$2"); do
    echo "insert into rows values ($row, randomblob($((1 + row * 37 % 3000))));"
  done
}
make_base() { echo "$setup create table if not exists rows (n integer primary key, data blob);"; }
hundredths() { awk '{ print int($1 * 100) }' /proc/uptime; }
# commits_of COMMAND: how long a commit takes, us.
commits_of() {
  rm -f $base*
  make_base | "$@" sqlite3 $base >/dev/null || die "no data base"
  { echo "$setup"; rows 1 400; } >commits.sql
  from=$(hundredths)
  "$@" sqlite3 $base <commits.sql >/dev/null || die "no commits"
  echo $((($(hundredths) - from) * 25))
}

check_window_latency() {
  must /bin/mke2fs -q -F -t ext4 -E lazy_itable_init=1 $drive 256m
  must mount -t ext4 $drive /mnt
  blocks=$(commits_of env)
  window=$(commits_of preloaded)
  note "a commit takes $window us on the window, $blocks us by blocks"
  [ "$(preloaded sqlite3 $base 'select count(*) from rows')" = 400 ] || die "rows are missing"
  make_base | preloaded sqlite3 $base >/dev/null
  must preloaded sqlite3 $base 'delete from rows'
  must umount /mnt
}

# Commits until the machine ends, and says each on the second serial port once it is made.
commit_for_ever() {
  make_base
  row=$1
  while true; do
    row=$((row + 1))
    rows $row $row
    echo ".system echo committed $row >/dev/ttyS1; : >acknowledged"
  done
}
check_window_commits() {
  is_mounted() { grep -q " /mnt " /proc/mounts; }
  is_mounted || must mount -t ext4 $drive /mnt
  # Not a pipe: what is said ahead is of no matter, and the program must not end with the check.
  mkfifo statements
  commit_for_ever "$(preloaded sqlite3 $base 'select count(*) from rows')" >statements 2>/dev/null &
  preloaded sqlite3 -bail $base <statements >commits.said 2>&1 &
  committing=$!
  # A cut before the first commit would show nothing.
  within 30 [ -e acknowledged ]
  kill -0 $committing || die "it has ended: $(tail -n 3 commits.said)"
  usleep $(($(od -A n -N 1 -t u1 /dev/urandom) * 20000))
}

# Whether all is there that the machine before has said it had committed.
check_window_kept() {
  committed=$(sed -n 's/.*live.committed=\([0-9]*\).*/\1/p' /proc/cmdline)
  [ "$committed" -gt 0 ] || die "nothing was committed"
  must mount -t ext4 $drive /mnt
  kept=$(preloaded sqlite3 $base 'select count(*) from rows') || die "no data base"
  [ "$kept" -ge "$committed" ] || die "$committed commits were acknowledged, $kept are there"
  wrong=$(preloaded sqlite3 $base 'select count(*) from rows where length(data) <> 1 + n * 37 % 3000')
  [ "$wrong" = 0 ] || die "$wrong rows are wrong"
  must_say '^ok$' preloaded sqlite3 $base 'pragma integrity_check'
  note "$committed acknowledged, $kept there"
}
