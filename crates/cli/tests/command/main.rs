//! What users ask of the command: one program, for each file would link all of it again.
//! One file of it: `cargo test -p lodger --test command errors::`.

#[cfg(target_os = "linux")]
mod backing;
mod blind;
mod common;
#[cfg(target_os = "linux")]
mod ctl;
mod docs;
mod errors;
#[cfg(unix)]
mod files;
mod fio_line;
mod fio_logs;
mod flushes;
mod held_back;
mod host_memory;
#[cfg(target_os = "linux")]
mod nbd;
mod output;
mod probe;
mod probe_again;
mod probe_blind;
mod probe_command;
mod probe_emit;
mod probe_figures;
mod probe_held_back;
#[cfg(target_os = "linux")]
mod probe_kill;
mod probe_map;
mod probe_study;
mod recorded;
#[cfg(target_os = "linux")]
mod recorded_live;
mod reference;
#[cfg(target_os = "linux")]
mod serve;
mod tables;
mod terminal;
mod time;
mod told;
#[cfg(target_os = "linux")]
mod top;
mod traces;
mod wear;
mod workers;
