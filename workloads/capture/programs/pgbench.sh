# PostgreSQL under pgbench: small synchronous log writes, random reads of a cold table, and a
# checkpoint's scattered write-back.
# shellcheck shell=bash disable=SC2154  # variables shared with capture.sh

# shellcheck source=workloads/capture/lib/postgres.sh
source "$here/lib/postgres.sh"

pgbench_usage() {
    cat <<'USAGE'
Options of pgbench:
  --scale N       pgbench scale; a unit is about 15 MB               [default: 40]
  --clients N     concurrent sessions                               [default: 8]
  --rate N        transactions per second, arriving at random
                  (Poisson); 0 is as fast as possible               [default: 30]
  --seconds N     length of the run                                 [default: 45]
  --seed N        random seed of pgbench                            [default: 1]
USAGE
}

program_options() {
    pg_scale=40
    pg_clients=8
    pg_rate=30
    pg_seconds=45
    pg_seed=1
    while (($#)); do
        case $1 in
            --scale) pg_scale=$(option_value "$@"); shift ;;
            --clients) pg_clients=$(option_value "$@"); shift ;;
            --rate) pg_rate=$(option_value "$@"); shift ;;
            --seconds) pg_seconds=$(option_value "$@"); shift ;;
            --seed) pg_seed=$(option_value "$@"); shift ;;
            -h | --help)
                pgbench_usage
                exit 0
                ;;
            *) usage_error "unknown option of pgbench \`$1\`" ;;
        esac
        shift
    done
    [[ $pg_rate =~ ^[0-9]+$ ]] ||
        usage_error "\`--rate\` must be a whole number, found \`$pg_rate\`"
}

program_needs() {
    postgres_needs "$1"
}

program_mount_options() {
    echo defaults
}

program_describe() {
    printf '%s, pgbench TPC-B-like, scale %s, %s clients, ' \
        "$("$pg_bin/postgres" --version)" "$pg_scale" "$pg_clients"
    if ((pg_rate)); then printf '%s' "$pg_rate"; else printf 'unlimited'; fi
    printf ' transactions/s, %s s, seed %s' "$pg_seconds" "$pg_seed"
}

program_prepare() {
    prepare_postgres
}

program_load() {
    init_postgres
    # Small buffers, so that reads reach the device; checkpoints as often as PostgreSQL allows,
    # so that a short run sees one. fsync and full_page_writes stay on.
    cat >>"$pg_data/postgresql.conf" <<CONF
shared_buffers = 32MB
checkpoint_timeout = 30s
max_wal_size = 256MB
log_checkpoints = on
CONF
    start_postgres
    attended as_postgres pgbench --initialize --quiet --scale="$pg_scale" >"$pg_home/load.log" 2>&1 ||
        die_with_log "$pg_home/load.log" "pgbench --initialize failed"
    # Shut down, so that the run can start with a remounted file system.
    stop_postgres
}

program_run() {
    local pace=()
    ((pg_rate == 0)) || pace=(--rate="$pg_rate")
    start_postgres
    attended as_postgres pgbench --client="$pg_clients" --jobs=2 "${pace[@]}" \
        --time="$pg_seconds" --random-seed="$pg_seed" --no-vacuum >"$pg_home/run.log" 2>&1 ||
        die_with_log "$pg_home/run.log" "pgbench failed"
    # pgbench's own figures, for the log.
    grep -E '^(number of transactions|latency average|tps|number of failed)' "$pg_home/run.log" >&2 || true
    # The trace ends here, before the shutdown checkpoint.
}
