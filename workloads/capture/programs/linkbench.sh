# PostgreSQL's log under LinkBench's mix of operations (Armstrong, Ponnekanti, Borthakur and
# Callaghan: LinkBench, a Database Benchmark Based on the Facebook Social Graph, SIGMOD 2013).
# pgbench runs the operations; the shares, access exponents and payload medians are those of
# LinkBench's own config/FBWorkload.properties.
# shellcheck shell=bash disable=SC2154  # variables shared with capture.sh

# shellcheck source=workloads/capture/lib/postgres.sh
source "$here/lib/postgres.sh"

# NAME SHARE, per cent: FBWorkload.properties, "Operation mix for request phase".
linkbench_shares="
addlink 8.9886601
deletelink 2.9907664
updatelink 8.0122125
countlink 4.8863567
getlink 0.5261142
getlinklist 50.7119145
getnode 12.9326683
addnode 2.5732789
updatenode 7.366437
deletenode 1.0115914"

linkbench_usage() {
    cat <<'USAGE'
Options of linkbench:
  --nodes N       nodes of the graph; about 1.5 kB each              [default: 200000]
  --clients N     concurrent sessions                               [default: 64]
  --seconds N     length of the run                                 [default: 20]
  --operation-seconds N
                  how long each kind of operation runs alone, thrice [default: 2]
  --warm-up N     seconds before the run, after a checkpoint        [default: 40]
  --seed N        random seed of pgbench                            [default: 1]
USAGE
}

program_options() {
    lb_nodes=200000
    lb_clients=64
    lb_seconds=20
    lb_operation_seconds=2
    lb_warm_up=40
    lb_seed=1
    while (($#)); do
        case $1 in
            --nodes) lb_nodes=$(option_value "$@"); shift ;;
            --clients) lb_clients=$(option_value "$@"); shift ;;
            --seconds) lb_seconds=$(option_value "$@"); shift ;;
            --operation-seconds) lb_operation_seconds=$(option_value "$@"); shift ;;
            --warm-up) lb_warm_up=$(option_value "$@"); shift ;;
            --seed) lb_seed=$(option_value "$@"); shift ;;
            -h | --help)
                linkbench_usage
                exit 0
                ;;
            *) usage_error "unknown option of linkbench \`$1\`" ;;
        esac
        shift
    done
}

program_needs() {
    postgres_needs "$1"
}

program_comm() {
    echo postgres
}

program_mount_options() {
    echo defaults
}

program_describe() {
    printf '%s, LinkBench operations by pgbench, %s nodes, %s clients, seed %s' \
        "$("$pg_bin/postgres" --version)" "$lb_nodes" "$lb_clients" "$lb_seed"
}

program_prepare() {
    prepare_postgres
    install -d -m 755 -- "$pg_home/sql"
    install -m 644 -- "$here"/programs/linkbench/*.sql "$pg_home/sql"
}

sql() {
    as_postgres psql --quiet --no-align --tuples-only --set=ON_ERROR_STOP=1 --set=nodes="$lb_nodes" "$@" \
        2>>"$pg_home/psql.log" || die_with_log "$pg_home/psql.log" "psql failed"
}

program_load() {
    init_postgres
    # All data in memory, as on the paper's host. No checkpoint begins by itself, so that the run
    # sees the log between checkpoints, not the page images that follow one. Segments of the log
    # are recycled, as they are in a server that has run for a while.
    cat >>"$pg_data/postgresql.conf" <<CONF
shared_buffers = 1GB
max_connections = 100
checkpoint_timeout = 1h
min_wal_size = 1GB
max_wal_size = 3GB
CONF
    start_postgres
    sql --file="$pg_home/sql/schema.sql"
    attended sql --file="$pg_home/sql/load.sql" >/dev/null
    sql --command="VACUUM" --command="CHECKPOINT"
}

# pgbench_run CLIENTS SECONDS SYNCHRONOUS [FILE@WEIGHT]... leaves pgbench's report in run.log.
pgbench_run() {
    local clients=$1 seconds=$2 synchronous=$3 file files=()
    shift 3
    for file in "$@"; do
        files+=(--file="$pg_home/sql/$file")
    done
    attended as_postgres env PGOPTIONS="-c synchronous_commit=$synchronous" pgbench \
        --client="$clients" --jobs="$((clients < 2 ? 1 : 2))" --time="$seconds" --protocol=prepared \
        --random-seed="$lb_seed" --define=nodes="$lb_nodes" --no-vacuum "${files[@]}" \
        >"$pg_home/run.log" 2>&1 || die_with_log "$pg_home/run.log" "pgbench failed"
}

pgbench_transactions() {
    sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' "$pg_home/run.log"
}

log_position() {
    sql --command="SELECT pg_current_wal_insert_lsn()"
}

# logged FROM TO FILE writes the log records between two positions, in pg_waldump's words.
logged() {
    # Makes what an asynchronous commit left in memory durable: pg_waldump reads files.
    sql --command="SELECT pg_logical_emit_message(true, 'capture', '')" >/dev/null
    as_postgres pg_waldump --path="$pg_data/pg_wal" --start="$1" --end="$2" >"$3" \
        2>"$pg_home/waldump.log" || die_with_log "$pg_home/waldump.log" "pg_waldump failed"
}

program_run() {
    local name share mix=() from to before after postmaster round count all cpu_each
    while read -r name share; do
        # pgbench takes whole numbers as weights.
        [[ -z $name ]] || mix+=("$name.sql@$(printf '%.0f' "${share}e5")")
    done <<<"$linkbench_shares"

    say "warming up"
    pgbench_run 8 "$lb_warm_up" off "${mix[@]}"
    sql --command="CHECKPOINT"
    pgbench_run 8 "$lb_warm_up" off "${mix[@]}"

    say "the mix"
    from=$(log_position)
    log_trace_begin
    pgbench_run "$lb_clients" "$lb_seconds" on "${mix[@]}"
    log_trace_end "$log_parts/run.trace"
    to=$(log_position)
    logged "$from" "$to" "$log_parts/run.waldump"
    note clients "$lb_clients"
    note seconds "$lb_seconds"
    note transactions "$(pgbench_transactions)"

    say "the mix, one client"
    log_trace_begin
    pgbench_run 1 "$lb_seconds" on "${mix[@]}"
    log_trace_end "$log_parts/one.trace"
    note one_seconds "$lb_seconds"
    note one_transactions "$(pgbench_transactions)"

    say "each operation alone"
    postmaster=$(head -n 1 "$pg_data/postmaster.pid")
    while read -r name share; do
        [[ -n $name ]] || continue
        cpu_each='' all=0
        from=$(log_position)
        for ((round = 0; round < log_rounds; round++)); do
            before=$(cpu_ns "$postmaster" "$$")
            pgbench_run 1 "$lb_operation_seconds" off "$name.sql"
            after=$(cpu_ns "$postmaster" "$$")
            count=$(pgbench_transactions)
            all=$((all + count))
            cpu_each=$(least "$cpu_each" "$(((after - before) / count))")
        done
        to=$(log_position)
        logged "$from" "$to" "$log_parts/$name.waldump"
        note_operation "$name" "$share" "$all" "$((cpu_each * all))" "$name.waldump"
    done <<<"$linkbench_shares"
}
