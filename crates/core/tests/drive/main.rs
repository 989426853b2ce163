//! What the drive is asked: one program, for each file would compile the model again.
//! One file of it: `cargo test -p lodger-core --test drive truth::`.

mod branch;
mod common;
mod compressed_map;
mod cut_again;
mod details;
mod drawn;
mod hostile_data;
mod hostile_host;
mod hpb_boot;
mod hpb_chunks;
mod hpb_replay;
mod hpb_safety;
mod interface;
mod invariants;
mod large_drives;
mod lost_data;
mod map_reach;
mod memory;
mod power_cuts;
mod ram_cache;
mod recorded;
mod recovery;
mod reference;
mod restore;
mod spec_errors;
mod spec_hints;
mod spec_values;
mod steady;
mod steady_state;
mod swarm;
mod trims_and_cuts;
mod truth;
mod window;
mod window_power;
mod write_amplification;
