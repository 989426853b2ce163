# RocksDB's write-ahead log under a mix like YCSB's workload A: half reads, half updates, skewed
# keys, values of 64 bytes (as the 2B-SSD paper says of its run), every write synchronous.
# shellcheck shell=bash disable=SC2154  # variables shared with capture.sh

rocksdb_usage() {
    cat <<'USAGE'
Options of rocksdb:
  --keys N        keys in the database                              [default: 1000000]
  --threads N     client threads                                    [default: 16]
  --operations N  operations of each thread in the run              [default: 10000]
  --alone N       operations of each kind alone                     [default: 500000]
  --seed N        random seed of db_bench                           [default: 1]
USAGE
}

program_options() {
    rd_keys=1000000
    rd_threads=16
    rd_operations=10000
    rd_alone=500000
    rd_seed=1
    while (($#)); do
        case $1 in
            --keys) rd_keys=$(option_value "$@"); shift ;;
            --threads) rd_threads=$(option_value "$@"); shift ;;
            --operations) rd_operations=$(option_value "$@"); shift ;;
            --alone) rd_alone=$(option_value "$@"); shift ;;
            --seed) rd_seed=$(option_value "$@"); shift ;;
            -h | --help)
                rocksdb_usage
                exit 0
                ;;
            *) usage_error "unknown option of rocksdb \`$1\`" ;;
        esac
        shift
    done
}

program_needs() {
    require_tools "$1" db_bench:rocksdb-tools ldb:rocksdb-tools
}

program_comm() {
    echo db_bench
}

program_mount_options() {
    echo defaults
}

program_describe() {
    printf 'RocksDB %s, db_bench mixgraph, half gets, half puts, %s keys of 23 bytes, values of 64, %s threads, seed %s' \
        "$(dpkg-query --show --showformat='${Version} (Debian)' rocksdb-tools)" \
        "$rd_keys" "$rd_threads" "$rd_seed"
}

program_prepare() {
    rd_db=$fs_dir/db
    rd_log=$scratch/db_bench.log
}

# bench BENCHMARK OPTION... on the one database. Keys as YCSB's, `user` and 19 digits, are 23
# bytes long. The memtable takes all that a run writes, so that no compaction runs beside it.
bench() {
    local benchmark=$1
    shift
    attended db_bench --benchmarks="$benchmark" --db="$rd_db" --num="$rd_keys" --key_size=23 \
        --compression_type=none --write_buffer_size=268435456 --seed="$rd_seed" "$@" \
        >"$rd_log" 2>&1 || {
        tail -n 20 -- "$rd_log" >&2
        die "db_bench failed"
    }
}

# mix GETS PUTS OPTION...: the key distribution is that of db_bench's documentation for mixgraph,
# a power law fitted to a production store (Cao et al., FAST 2020): mixgraph has no Zipf of its own.
# A Pareto distribution of width 0 gives every value 64 bytes.
mix() {
    local gets=$1 puts=$2
    shift 2
    bench mixgraph --use_existing_db=1 --mix_get_ratio="$gets" --mix_put_ratio="$puts" \
        --keyrange_num=1 --key_dist_a=0.002312 --key_dist_b=0.3467 \
        --value_k=0 --value_sigma=0 --value_theta=64 "$@"
}

program_load() {
    bench fillrandom --value_size=64 --disable_wal=1
    bench compact --use_existing_db=1
}

# alone NAME GETS PUTS: one thread, no log; once and twice as long, and the difference is the
# operations' own time, without what opening the database takes.
alone() {
    local name=$1 gets=$2 puts=$3 round once='' twice=''
    for ((round = 0; round < log_rounds; round++)); do
        once=$(least "$once" "$(mix_cpu_ns "$gets" "$puts" "$rd_alone")")
        twice=$(least "$twice" "$(mix_cpu_ns "$gets" "$puts" "$((2 * rd_alone))")")
    done
    note_operation "$name" 50 "$rd_alone" "$((twice - once))" "$4"
}

mix_cpu_ns() {
    local before after
    before=$(cpu_ns "$$")
    mix "$1" "$2" --threads=1 --reads="$3" --disable_wal=1
    after=$(cpu_ns "$$")
    echo "$((after - before))"
}

# traced FILE THREADS PREFIX
traced() {
    local started
    log_trace_begin
    started=$(date +%s%N)
    mix 0.5 0.5 --threads="$2" --reads="$rd_operations" --sync=1
    note "$3seconds" "$(python3 -c "print(($(date +%s%N) - $started) / 1e9)")"
    log_trace_end "$log_parts/$1"
    note "$3transactions" "$(($2 * rd_operations))"
}

program_run() {
    local log
    say "the mix"
    note clients "$rd_threads"
    traced run.trace "$rd_threads" ""
    log=$(find "$rd_db" -name '*.log' -size +0 | sort | tail -n 1)
    [[ -n $log ]] || die "no write-ahead log is left of the run"
    ldb dump_wal --walfile="$log" >"$log_parts/run.wal" 2>&1

    say "the mix, one client"
    traced one.trace 1 one_

    say "each operation alone"
    alone read 1 0 -
    alone update 0 1 run.wal
}
