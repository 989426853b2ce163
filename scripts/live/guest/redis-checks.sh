# shellcheck shell=dash disable=SC1090,SC2012,SC2086,SC2154
# Checks of the byte window with Redis, which knows nothing of it. Names that are not set here are those of check.sh and
# window-checks.sh.

socket=/tmp/redis
redis() { redis-cli -s $socket "$@"; }
# redis_of COMMAND: starts it; each command that changes something is answered once the append-only file is synced.
redis_of() {
  ifconfig lo up
  "$@" redis-server --port 0 --unixsocket $socket --dir /mnt --appendonly yes --appendfsync always --save '' \
    --enable-debug-command no >redis.said 2>&1 &
  server=$!
  answers() { [ "$(redis ping 2>/dev/null)" = PONG ]; }
  within 60 answers
}
end_redis() {
  redis shutdown nosave >/dev/null 2>&1
  wait $server
}
# pushes FROM TO: each makes a list longer by the number of its place.
pushes() { seq "$1" "$2" | sed 's/^/rpush rows /'; }
# pushes_of COMMAND: how long one takes, us.
pushes_of() {
  rm -rf /mnt/appendonlydir
  redis_of "$@"
  pushes 1 400 >pushes
  from=$(hundredths)
  redis <pushes >pushed
  took=$((($(hundredths) - from) * 25))
  [ "$(tail -n 1 pushed)" = 400 ] || die "not pushed: $(tail -n 1 pushed), $(tail -n 3 redis.said)"
  end_redis
  echo $took
}

check_redis_latency() {
  must /bin/mke2fs -q -F -t ext4 -E lazy_itable_init=1 $drive 256m
  must mount -t ext4 $drive /mnt
  blocks=$(pushes_of env) || die "$blocks"
  window=$(pushes_of preloaded) || die "$window"
  grep -q "lodger window:" redis.said && die "$(grep 'lodger window:' redis.said)"
  note "a command takes $window us on the window, $blocks us by blocks"
  rm -rf /mnt/appendonlydir
  must umount /mnt
}

# Commands until the machine ends, and says each on the second serial port once it is answered.
check_redis_commits() {
  is_mounted() { grep -q " /mnt " /proc/mounts; }
  is_mounted || must mount -t ext4 $drive /mnt
  redis ping >/dev/null 2>&1 || redis_of preloaded
  (
    pushes $(($(redis llen rows) + 1)) 1000000 | redis | while read -r row; do
      echo "committed $row" >/dev/ttyS1
      : >acknowledged
    done
  ) &
  # A cut before the first one would show nothing.
  within 30 [ -e acknowledged ]
  # What its child writes anew meanwhile is no log.
  redis bgrewriteaof >rewrite
  grep -q started rewrite || die "$(cat rewrite)"
  usleep $(($(od -A n -N 1 -t u1 /dev/urandom) * 20000))
  pidof redis-server >/dev/null || die "it has ended: $(tail -n 3 redis.said)"
}

# Whether all is there that the machine before has said was answered.
check_redis_kept() {
  committed=$(sed -n 's/.*live.committed=\([0-9]*\).*/\1/p' /proc/cmdline)
  [ "$committed" -gt 0 ] || die "nothing was committed"
  must mount -t ext4 $drive /mnt
  redis_of preloaded
  kept=$(redis llen rows)
  [ "$kept" -ge "$committed" ] || die "$committed commands were answered, $kept are there"
  redis lrange rows 0 -1 >rows
  seq 1 "$kept" | cmp -s - rows || die "rows are wrong"
  note "$committed answered, $kept there"
}
