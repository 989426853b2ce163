# Redis's append-only file under a mix like YCSB's workload A: half reads, half updates, Zipf keys,
# values of 64 bytes (as the 2B-SSD paper says of its run), a sync before every answer.
# shellcheck shell=bash disable=SC2154  # variables shared with capture.sh

redis_usage() {
    cat <<'USAGE'
Options of redis:
  --keys N        keys in the database                              [default: 100000]
  --clients N     connections                                       [default: 16]
  --operations N  operations in the run, of all clients             [default: 100000]
  --alone N       operations of each kind alone                     [default: 200000]
  --seed N        random seed                                       [default: 1]
USAGE
}

program_options() {
    re_keys=100000
    re_clients=16
    re_operations=100000
    re_alone=200000
    re_seed=1
    while (($#)); do
        case $1 in
            --keys) re_keys=$(option_value "$@"); shift ;;
            --clients) re_clients=$(option_value "$@"); shift ;;
            --operations) re_operations=$(option_value "$@"); shift ;;
            --alone) re_alone=$(option_value "$@"); shift ;;
            --seed) re_seed=$(option_value "$@"); shift ;;
            -h | --help)
                redis_usage
                exit 0
                ;;
            *) usage_error "unknown option of redis \`$1\`" ;;
        esac
        shift
    done
}

program_needs() {
    require_tools "$1" redis-server:redis-server redis-cli:redis-tools redis-benchmark:redis-tools
}

program_comm() {
    echo redis-server
}

program_mount_options() {
    echo defaults
}

program_describe() {
    local version
    version=$(redis-server --version | sed 's/.*v=\([^ ]*\).*/\1/')
    printf 'Redis %s, half HGETALL, half HSET, %s keys of 23 bytes, values of 64, %s clients, seed %s' \
        "$version" "$re_keys" "$re_clients" "$re_seed"
}

program_prepare() {
    re_data=$fs_dir/data
    re_socket=$scratch/redis.socket
    mkdir -- "$re_data"
}

# start_redis OPTION... No port is opened: the clients come through a socket in our directory.
start_redis() {
    on_exit stop_redis
    redis-server --port 0 --unixsocket "$re_socket" --dir "$re_data" --save '' --daemonize yes \
        --pidfile "$scratch/redis.pid" --logfile "$scratch/redis.log" \
        --auto-aof-rewrite-percentage 0 "$@" >/dev/null
    local try
    for try in 1 2 3 4 5 6 7 8 9 10; do
        redis PING >/dev/null 2>&1 && return 0
        sleep "0.$try"
    done
    tail -n 20 -- "$scratch/redis.log" >&2
    die "Redis did not start"
}

stop_redis() {
    local pid
    [[ -s $scratch/redis.pid ]] || return 0
    pid=$(<"$scratch/redis.pid")
    redis SHUTDOWN NOSAVE 2>/dev/null || kill "$pid" 2>/dev/null || return 0
    while [[ -e /proc/$pid ]]; do sleep 0.1; done
}

redis() {
    redis-cli -s "$re_socket" "$@"
}

load() {
    python3 "$here/redis_load.py" --socket "$re_socket" --keys "$re_keys" --seed "$re_seed" "$@" ||
        die "the load on Redis failed"
}

program_load() {
    # Nothing to load before the server runs.
    :
}

program_run() {
    say "the mix"
    start_redis --appendonly yes --appendfsync always
    redis CONFIG SET appendfsync no >/dev/null
    attended load --fill
    redis CONFIG SET appendfsync always >/dev/null
    local aof start
    aof=$(find "$re_data" -name '*.incr.aof' | sort | tail -n 1)
    [[ -n $aof ]] || die "no append-only file"
    start=$(stat --format=%s -- "$aof")
    note clients "$re_clients"
    traced run.trace "$re_clients" "$re_operations" ""
    tail -c "+$((start + 1))" -- "$aof" >"$log_parts/run.aof"

    say "the mix, one client"
    traced one.trace 1 "$((re_operations / re_clients))" one_

    say "each operation alone"
    redis CONFIG SET appendonly no >/dev/null
    local value
    value=$(printf '%064d' 0)
    alone read - HGETALL user0000000__rand_int__
    alone update run.aof HSET user0000000__rand_int__ field0 "$value"
    stop_redis
}

# traced FILE CLIENTS OPERATIONS PREFIX
traced() {
    log_trace_begin
    attended load --clients "$2" --operations "$3" >"$scratch/seconds"
    log_trace_end "$log_parts/$1"
    note "$4seconds" "$(<"$scratch/seconds")"
    note "$4transactions" "$3"
}

# alone NAME RECORDS COMMAND... notes the processor time of server and client, and the server's own
# part of it, during which it can do nothing else.
alone() {
    local name=$1 records=$2 server client_before server_before round used all='' servers=''
    shift 2
    server=$(<"$scratch/redis.pid")
    for ((round = 0; round < log_rounds; round++)); do
        server_before=$(cpu_ns "$server")
        client_before=$(cpu_ns "$$")
        # redis-benchmark writes twelve digits for __rand_int__: keys of 23 bytes again.
        attended redis-benchmark -s "$re_socket" -c "$re_clients" -n "$re_alone" -r "$re_keys" -q "$@" \
            >"$scratch/benchmark.log" 2>&1 || die "redis-benchmark failed"
        used=$(($(cpu_ns "$server") - server_before))
        servers=$(least "$servers" "$used")
        all=$(least "$all" "$(($(cpu_ns "$$") - client_before + used))")
    done
    note_operation "$name" 50 "$re_alone" "$all" "$records" "$servers"
}
