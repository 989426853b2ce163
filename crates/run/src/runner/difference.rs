//! What a drive has counted between two instants.

use lodger_core::observe::{AgeingCounters, Counters, HpbCounters, MapCounters, WindowCounters};

/// Something counted.
pub(super) trait Counted {
    /// Takes `part` away. A stale hit is taken back after it was counted, so that a later count may be less than an
    /// earlier one.
    fn take(&mut self, part: &Self);
    /// Adds `part`.
    fn put(&mut self, part: &Self);
}

impl Counted for u64 {
    fn take(&mut self, part: &Self) {
        *self = self.saturating_sub(*part);
    }

    fn put(&mut self, part: &Self) {
        *self = self.saturating_add(*part);
    }
}

impl<T: Counted, const N: usize> Counted for [T; N] {
    fn take(&mut self, part: &Self) {
        self.iter_mut()
            .zip(part)
            .for_each(|(all, part)| all.take(part));
    }

    fn put(&mut self, part: &Self) {
        self.iter_mut()
            .zip(part)
            .for_each(|(all, part)| all.put(part));
    }
}

/// Every field has to be named, so that a new counter is not forgotten: those that count, and those that tell of a state.
macro_rules! counted {
    ($type:ident: $($count:ident)*; $($state:ident)*) => {
        impl Counted for $type {
            fn take(&mut self, part: &Self) {
                let $type { $($count,)* $($state: _,)* } = part;
                $(self.$count.take($count);)*
            }

            fn put(&mut self, part: &Self) {
                let $type { $($count,)* $($state: _,)* } = part;
                $(self.$count.put($count);)*
            }
        }
    };
}

counted!(MapCounters:
    lookups hits waiting_hits misses shared_misses evictions dirty_writebacks background_fills rejected_entries;);

counted!(WindowCounters:
    pins flushes syncs read_dmas infos stores loads pinned_bytes flushed_bytes read_dma_bytes stored_bytes
    loaded_bytes store_tlps store_tlp_bytes load_tlps stray_tlps gated held rejected lost_bytes;);

counted!(HpbCounters:
    hits misses used refused entries_delivered notices groups_fetched evictions activations inactivations unmaps
    write_buffers; present);

counted!(AgeingCounters:
    retries soft_reads uncorrectable program_failures erase_failures replaced_blocks retired_superblocks refreshes
    refused; present mean_erases spare_blocks);

counted!(Counters:
    requests completions host_read_bytes host_written_bytes written_into_room_bytes
    map window hpb read_cache_lookups read_cache_hits
    read_cache_rejected read_ahead_slots read_ahead_joined_slots buffer_writes buffer_absorbed buffer_read_hits
    buffer_drains buffer_logged buffer_rejected reads_by_cause programmed_slots_by_cause programs_by_cause
    padded_slots erases unwritten_slots hmb_read_bytes hmb_written_bytes host_dma_copies host_dma_bytes
    host_dma_polls link_to_host_bytes link_from_host_bytes hmb_given_up ageing; buffer_high_water_slots);
