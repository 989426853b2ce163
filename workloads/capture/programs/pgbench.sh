# PostgreSQL under pgbench: small synchronous log writes, random reads of a cold table, and a
# checkpoint's scattered write-back.
# shellcheck shell=bash disable=SC2154  # variables shared with capture.sh

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
    pg_bin=$(newest_postgres)
    if [[ -z $pg_bin ]]; then
        require_tools "$1" postgres:postgresql
        pg_bin=$(newest_postgres)
        [[ -n $pg_bin ]] || die "no PostgreSQL under /usr/lib/postgresql"
    fi
    # PostgreSQL refuses to run as root. Debian's package makes this user.
    pg_user=postgres
    id -- "$pg_user" >/dev/null 2>&1 || die "no user \`$pg_user\`, which Debian's package makes"
}

# Debian keeps the server off PATH, one directory for each major version.
newest_postgres() {
    find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1
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

as_postgres() {
    setpriv --reuid="$pg_user" --regid="$(id -g "$pg_user")" --clear-groups \
        env -i PATH="$pg_bin:/usr/bin:/bin" HOME="$pg_home" PGHOST="$pg_home" PGUSER="$pg_user" \
        PGDATABASE=postgres LC_ALL=C "$@"
}

program_prepare() {
    # Socket, log and home: beside the traced file system, not in it.
    pg_home=$scratch/pg
    pg_data=$fs_dir/data
    install -d -m 700 -o "$pg_user" -- "$pg_home" "$pg_data"
}

start_postgres() {
    on_exit stop_postgres
    as_postgres pg_ctl --pgdata="$pg_data" --log="$pg_home/server.log" --silent --wait start ||
        die_with_log "$pg_home/server.log" "PostgreSQL did not start"
}

stop_postgres() {
    [[ -e $pg_data/postmaster.pid ]] || return 0
    as_postgres pg_ctl --pgdata="$pg_data" --mode=fast --silent --wait stop ||
        as_postgres pg_ctl --pgdata="$pg_data" --mode=immediate --silent --wait stop
}

die_with_log() {
    tail -n 20 -- "$1" >&2
    die "$2"
}

program_load() {
    attended as_postgres initdb --pgdata="$pg_data" --auth=trust --no-locale --encoding=UTF8 \
        --data-checksums >"$pg_home/initdb.log" 2>&1 || die_with_log "$pg_home/initdb.log" "initdb failed"
    # Small buffers, so that reads reach the device; checkpoints as often as PostgreSQL allows,
    # so that a short run sees one. fsync and full_page_writes stay on.
    cat >>"$pg_data/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_directories = '$pg_home'
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
