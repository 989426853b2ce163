# A PostgreSQL server of our own in the captured file system, for the programs that need one.
# shellcheck shell=bash disable=SC2154  # variables shared with capture.sh

postgres_needs() {
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

as_postgres() {
    setpriv --reuid="$pg_user" --regid="$(id -g "$pg_user")" --clear-groups \
        env -i PATH="$pg_bin:/usr/bin:/bin" HOME="$pg_home" PGHOST="$pg_home" PGUSER="$pg_user" \
        PGDATABASE=postgres LC_ALL=C "$@"
}

prepare_postgres() {
    # Socket, log and home: beside the traced file system, not in it.
    pg_home=$scratch/pg
    pg_data=$fs_dir/data
    install -d -m 700 -o "$pg_user" -- "$pg_home" "$pg_data"
}

init_postgres() {
    attended as_postgres initdb --pgdata="$pg_data" --auth=trust --no-locale --encoding=UTF8 \
        --data-checksums >"$pg_home/initdb.log" 2>&1 || die_with_log "$pg_home/initdb.log" "initdb failed"
    cat >>"$pg_data/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_directories = '$pg_home'
CONF
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
