//! Do the registers lead a host through its start, its resets and its end as the standard has it, and does
//! nothing a host can write bring them out of step?

use lodger_wire::registers::{
    Capabilities, DoorbellKind, Effect, EnableError, Ignored, PmrCapabilities, PmrHealth, PmrSize,
    ReadEffect, Registers, SUBSYSTEM_RESET_WORD, Shutdown, offset,
};
use lodger_wire::{PageSize, QueueId};
use proptest::prelude::*;

/// CC as Linux writes it: entries of 64 and 16 bytes, pages of 4 KiB, NVM commands.
const LINUX_CC: u32 = 4 << 20 | 6 << 16;

fn read32(registers: &Registers, at: u64) -> u32 {
    let mut bytes = [0; 4];
    registers.read(at, &mut bytes);
    u32::from_le_bytes(bytes)
}

fn read64(registers: &Registers, at: u64) -> u64 {
    let mut bytes = [0; 8];
    registers.read(at, &mut bytes);
    u64::from_le_bytes(bytes)
}

fn write32(registers: &mut Registers, at: u64, value: u32) -> Effect {
    registers.write(at, &value.to_le_bytes())
}

/// A controller as it is after Linux's `nvme_pci_enable`, `nvme_disable_ctrl` and `nvme_enable_ctrl`.
fn started() -> Registers {
    let mut registers = Registers::new(Capabilities::default());
    write32(&mut registers, offset::AQA, 31 << 16 | 31);
    registers.write(offset::ASQ, &0x1_0000_0000u64.to_le_bytes());
    registers.write(offset::ACQ, &0x1_0000_1000u64.to_le_bytes());
    let effect = write32(&mut registers, offset::CC, LINUX_CC | 1);
    assert!(matches!(effect, Effect::Enable(_)), "{effect:?}");
    registers.ready();
    registers
}

#[test]
fn linux_starts_the_controller() {
    let mut registers = Registers::new(Capabilities::default());
    // nvme_pci_enable: is it there at all?
    assert_ne!(read32(&registers, offset::CSTS), u32::MAX);
    let cap = read64(&registers, offset::CAP);
    assert_eq!(cap & 0xffff, 1023, "MQES");
    assert_eq!(cap >> 24 & 0xff, 40, "TO");
    assert_eq!(cap >> 32 & 15, 0, "DSTRD");
    assert_eq!(cap >> 37 & 0xff, 0x41, "CSS");
    assert_eq!((cap >> 48 & 15, cap >> 52 & 15), (0, 4), "MPSMIN, MPSMAX");
    assert_eq!(read32(&registers, offset::VS), 0x0002_0000);
    // Are there memory buffers? No.
    assert_eq!(read32(&registers, offset::CMBSZ), 0);
    assert_eq!(read32(&registers, offset::PMRCAP), 0);
    // nvme_disable_ctrl: it was not enabled, and stays so.
    assert_eq!(write32(&mut registers, offset::CC, 0), Effect::None);
    assert_eq!(read32(&registers, offset::CSTS) & 1, 0);
    // nvme_pci_configure_admin_queue: queues of 32 entries; lo_hi_writeq is two writes.
    write32(&mut registers, offset::AQA, 31 << 16 | 31);
    write32(&mut registers, offset::ASQ, 0x8000_0000);
    write32(&mut registers, offset::ASQ + 4, 0x12);
    write32(&mut registers, offset::ACQ, 0x8000_1000);
    write32(&mut registers, offset::ACQ + 4, 0x12);
    // nvme_enable_ctrl: CRTO if CRMS says so, then CC with and without EN.
    assert_eq!(cap >> 59 & 3, 1, "CRMS");
    assert_eq!(read32(&registers, offset::CRTO) & 0xffff, 40);
    assert_eq!(write32(&mut registers, offset::CC, LINUX_CC), Effect::None);
    assert_eq!(read32(&registers, offset::CC), LINUX_CC);
    let Effect::Enable(enable) = write32(&mut registers, offset::CC, LINUX_CC | 1) else {
        panic!("it is enabled");
    };
    assert_eq!(enable.admin_submission.address, 0x12_8000_0000);
    assert_eq!(enable.admin_completion.address, 0x12_8000_1000);
    assert_eq!(enable.admin_completion.entries, 32);
    assert_eq!(enable.page, PageSize::MIN);
    assert_eq!(
        read32(&registers, offset::CSTS),
        0,
        "not ready before it is"
    );
    registers.ready();
    assert_eq!(read32(&registers, offset::CSTS), 1);
    assert_eq!(registers.io_entry_sizes(), (6, 4));
    // The first command.
    let Effect::Doorbell(doorbell) = write32(&mut registers, offset::DOORBELLS, 1) else {
        panic!("a doorbell");
    };
    assert_eq!(doorbell.queue, QueueId::ADMIN);
    assert_eq!(
        (doorbell.kind, doorbell.value),
        (DoorbellKind::SubmissionTail, 1)
    );
}

#[test]
fn a_reset_lasts_until_it_is_done_and_keeps_the_admin_queues() {
    let mut registers = started();
    assert_eq!(
        write32(&mut registers, offset::CC, LINUX_CC),
        Effect::Disable
    );
    assert_eq!(read32(&registers, offset::CC), 0);
    assert_eq!(read32(&registers, offset::CSTS), 1, "still stopping");
    assert_eq!(
        write32(&mut registers, offset::DOORBELLS, 1),
        Effect::Ignored(Ignored::NotReady)
    );
    assert_eq!(registers.reset_done(), Effect::None);
    assert_eq!(read32(&registers, offset::CSTS), 0);
    assert_eq!(read32(&registers, offset::AQA), 31 << 16 | 31);
    assert_eq!(read64(&registers, offset::ASQ), 0x1_0000_0000);
}

#[test]
fn a_host_that_does_not_wait_for_the_reset_is_served_after_it() {
    let mut registers = started();
    write32(&mut registers, offset::CC, 0);
    assert_eq!(
        write32(&mut registers, offset::CC, LINUX_CC | 1),
        Effect::None
    );
    assert!(matches!(registers.reset_done(), Effect::Enable(_)));
    // One that changes its mind once more is not.
    write32(&mut registers, offset::CC, 0);
    write32(&mut registers, offset::CC, LINUX_CC | 1);
    assert_eq!(write32(&mut registers, offset::CC, 0), Effect::None);
    assert_eq!(registers.reset_done(), Effect::None);
    assert_eq!(read32(&registers, offset::CSTS), 0);
}

#[test]
fn a_shutdown_is_noticed_once_and_a_reset_ends_it() {
    let mut registers = started();
    let notice = LINUX_CC | 1 | 1 << 14;
    assert_eq!(
        write32(&mut registers, offset::CC, notice),
        Effect::Shutdown(Shutdown::Normal)
    );
    assert_eq!(read32(&registers, offset::CSTS) >> 2 & 3, 1);
    assert_eq!(write32(&mut registers, offset::CC, notice), Effect::None);
    registers.shutdown_done();
    assert_eq!(read32(&registers, offset::CSTS) >> 2 & 3, 2);
    write32(&mut registers, offset::CC, 0);
    registers.reset_done();
    assert_eq!(read32(&registers, offset::CSTS), 0);
    // Abruptly, of a controller that is off.
    assert_eq!(
        write32(&mut registers, offset::CC, 2 << 14),
        Effect::Shutdown(Shutdown::Abrupt)
    );
    assert_eq!(
        write32(&mut registers, offset::CC, 3 << 14),
        Effect::Ignored(Ignored::Reserved)
    );
}

#[test]
fn a_shutdown_in_the_write_that_enables_counts_when_it_is_said_again() {
    let mut registers = Registers::new(Capabilities::default());
    write32(&mut registers, offset::AQA, 1 << 16 | 1);
    let both = LINUX_CC | 1 | 1 << 14;
    assert!(matches!(
        write32(&mut registers, offset::CC, both),
        Effect::Enable(_)
    ));
    assert_eq!(read32(&registers, offset::CC), LINUX_CC | 1);
    let effect = write32(&mut registers, offset::CC, both);
    assert_eq!(effect, Effect::Shutdown(Shutdown::Normal));
}

#[test]
fn what_the_controller_cannot_do_is_a_fatal_status() {
    let refused = |cc: u32, aqa: u32, asq: u64| {
        let mut registers = Registers::new(Capabilities::default());
        write32(&mut registers, offset::AQA, aqa);
        registers.write(offset::ASQ, &asq.to_le_bytes());
        let effect = write32(&mut registers, offset::CC, cc | 1);
        let has_failed = read32(&registers, offset::CSTS) == 2;
        match effect {
            Effect::Refused(error) => {
                assert!(has_failed);
                Some(error)
            }
            _ => None,
        }
    };
    let queues = 1 << 16 | 1;
    assert_eq!(refused(0, queues, 0x1000), None);
    assert_eq!(refused(1 << 4, queues, 0), Some(EnableError::CommandSet));
    assert_eq!(refused(5 << 7, queues, 0), Some(EnableError::PageSize));
    assert_eq!(refused(7 << 11, queues, 0), Some(EnableError::Arbitration));
    assert_eq!(refused(0, 1, 0), Some(EnableError::QueueSize));
    assert_eq!(refused(0, 1 << 16, 0), Some(EnableError::QueueSize));
    assert_eq!(
        refused(1 << 7, queues, 0x1000),
        Some(EnableError::QueueAddress)
    );
}

#[test]
fn admin_queues_end_within_all_addresses() {
    let mut registers = Registers::new(Capabilities::default());
    write32(&mut registers, offset::AQA, 4095 << 16 | 4095);
    registers.write(offset::ASQ, &(!0xfffu64).to_le_bytes());
    let effect = write32(&mut registers, offset::CC, LINUX_CC | 1);
    assert_eq!(effect, Effect::Refused(EnableError::QueueAddress));
}

#[test]
fn page_size_and_command_set_stay_while_the_controller_is_enabled() {
    let mut registers = started();
    let changed = 9 << 20 | 9 << 16 | 1 << 11 | 2 << 7 | 6 << 4 | 1;
    assert_eq!(write32(&mut registers, offset::CC, changed), Effect::None);
    assert_eq!(read32(&registers, offset::CC), 9 << 20 | 9 << 16 | 1);
}

#[test]
fn a_failed_controller_comes_back_by_a_reset() {
    let mut registers = started();
    registers.fail();
    assert!(!registers.is_ready());
    assert_eq!(read32(&registers, offset::CSTS), 3);
    assert_eq!(write32(&mut registers, offset::CC, 0), Effect::Disable);
    // Its transfers are not over before: a host that sees RDY at 0 takes its memory back.
    assert_eq!(read32(&registers, offset::CSTS), 1);
    registers.fail();
    registers.reset_done();
    assert_eq!(read32(&registers, offset::CSTS), 0);
    assert!(matches!(
        write32(&mut registers, offset::CC, LINUX_CC | 1),
        Effect::Enable(_)
    ));
}

#[test]
fn the_subsystem_is_reset_by_its_word_only() {
    let mut registers = started();
    assert_eq!(
        write32(&mut registers, offset::NSSR, 1),
        Effect::Ignored(Ignored::Reserved)
    );
    let effect = write32(&mut registers, offset::NSSR, SUBSYSTEM_RESET_WORD);
    assert_eq!(effect, Effect::SubsystemReset);
    assert_eq!(read32(&registers, offset::CSTS), 1 << 4, "NSSRO alone");
    assert_eq!(read32(&registers, offset::AQA), 0, "all registers");
    registers.reset_done();
    write32(&mut registers, offset::CSTS, 1 << 4);
    assert_eq!(read32(&registers, offset::CSTS), 0);
}

#[test]
fn doorbells_lie_a_stride_apart() {
    let doorbell_stride = 2;
    let mut registers = Registers::new(Capabilities {
        doorbell_stride,
        ..Capabilities::default()
    });
    write32(&mut registers, offset::AQA, 1 << 16 | 1);
    write32(&mut registers, offset::CC, 1);
    registers.ready();
    let Effect::Doorbell(doorbell) = write32(&mut registers, 0x1000 + 7 * 16, 0xffff_0005) else {
        panic!("a doorbell");
    };
    assert_eq!((doorbell.queue, doorbell.value), (QueueId(3), 5));
    assert_eq!(doorbell.kind, DoorbellKind::CompletionHead);
    assert_eq!(
        write32(&mut registers, 0x1004, 5),
        Effect::Ignored(Ignored::ReadOnly)
    );
}

#[test]
fn only_whole_registers_are_written() {
    let mut registers = started();
    for width in [0, 1, 2, 3, 5, 8] {
        let effect = registers.write(offset::CC, &[0; 8][..width]);
        assert_eq!(effect, Effect::Ignored(Ignored::Width), "{width} bytes");
    }
    assert_eq!(
        registers.write(offset::CC + 2, &[0; 4]),
        Effect::Ignored(Ignored::Width)
    );
    assert_eq!(
        registers.write(0x1000, &[0; 8]),
        Effect::Ignored(Ignored::Width)
    );
    assert!(registers.is_ready());
    // Reads may be of any part.
    let mut byte = [0];
    registers.read(offset::CC + 2, &mut byte);
    assert_eq!(byte, [0x46]);
}

#[test]
fn a_drive_that_is_gone_reads_as_ones() {
    let mut registers = started();
    registers.vanish(true);
    assert_eq!(read32(&registers, offset::CSTS), u32::MAX);
    assert_eq!(
        write32(&mut registers, offset::CC, 0),
        Effect::Ignored(Ignored::Vanished)
    );
    registers.vanish(false);
    assert_eq!(read32(&registers, offset::CSTS), 1);
}

fn with_pmr() -> Registers {
    let pmr = Some(PmrCapabilities {
        data_reads: true,
        data_writes: true,
        bar: 2,
        memory_read_persists: false,
        status_read_persists: true,
        timeout_500ms: 4,
        memory_space: true,
        elasticity: PmrSize { unit: 1, count: 8 },
        reads_bypass_writes: false,
        sustained_writes: PmrSize {
            unit: 2,
            count: 100,
        },
    });
    Registers::new(Capabilities {
        pmr,
        ..Capabilities::default()
    })
}

#[test]
fn the_persistent_memory_region_is_enabled_and_made_persistent_by_a_read() {
    let mut registers = with_pmr();
    assert_eq!(read64(&registers, offset::CAP) >> 56 & 1, 1);
    let cap = read32(&registers, offset::PMRCAP);
    assert_eq!(cap, 1 << 3 | 1 << 4 | 2 << 5 | 1 << 11 | 4 << 16 | 1 << 24);
    assert_eq!(read32(&registers, offset::PMRSTS), 1 << 8, "not ready");
    let effect = write32(&mut registers, offset::PMRCTL, 1);
    assert_eq!(effect, Effect::PmrEnable(true));
    registers.pmr_ready(PmrHealth::ReadOnly);
    let mut status = [0; 4];
    let effect = registers.read(offset::PMRSTS, &mut status);
    assert_eq!(effect, ReadEffect::PersistPmr);
    assert_eq!(u32::from_le_bytes(status), 2 << 9);
    assert_eq!(read32(&registers, offset::PMREBS), 8 << 8 | 1);
    assert_eq!(read32(&registers, offset::PMRSWTP), 100 << 8 | 2);
    let effect = write32(&mut registers, offset::PMRMSCU, 1);
    assert_eq!(effect, Effect::PmrMemorySpace(None));
    let effect = write32(&mut registers, offset::PMRMSCL, 0x8000_0002);
    assert_eq!(effect, Effect::PmrMemorySpace(Some(0x1_8000_0000)));
}

#[derive(Clone, Debug)]
enum Step {
    Read(u64, usize),
    Write(u64, Vec<u8>),
    Ready,
    ResetDone,
    ShutdownDone,
}

fn steps() -> impl Strategy<Value = Step> {
    let at = prop_oneof![
        0..0x70u64,
        0xe00..0xe20u64,
        0x1000..0x1040u64,
        Just(offset::CC),
        any::<u64>()
    ];
    let bytes = prop::collection::vec(any::<u8>(), 0..17);
    prop_oneof![
        (at.clone(), 0..17usize).prop_map(|(at, width)| Step::Read(at, width)),
        (at, bytes).prop_map(|(at, bytes)| Step::Write(at, bytes)),
        any::<[u8; 4]>().prop_map(|cc| Step::Write(offset::CC, cc.to_vec())),
        Just(Step::Write(offset::CC, vec![1, 0, 0x46, 0])),
        Just(Step::Write(offset::AQA, vec![31, 0, 31, 0])),
        Just(Step::Ready),
        Just(Step::ResetDone),
        Just(Step::ShutdownDone),
    ]
}

proptest! {
    #![proptest_config(lodger_testing::config(500))]

    /// Whatever a host does: no panic, ready only while enabled or stopping, doorbells only while ready,
    /// and what Enable promises.
    #[test]
    fn no_host_brings_the_registers_out_of_step(steps in prop::collection::vec(steps(), 1..80)) {
        let mut registers = with_pmr();
        let mut is_enabled = false;
        for step in steps {
            let effect = match step {
                Step::Read(at, width) => {
                    registers.read(at, &mut vec![0; width]);
                    Effect::None
                }
                Step::Write(at, bytes) => registers.write(at, &bytes),
                Step::Ready => {
                    registers.ready();
                    Effect::None
                }
                Step::ResetDone => registers.reset_done(),
                Step::ShutdownDone => {
                    registers.shutdown_done();
                    Effect::None
                }
            };
            match effect {
                Effect::Enable(enable) => {
                    prop_assert!(!is_enabled);
                    is_enabled = true;
                    for queue in [enable.admin_submission, enable.admin_completion] {
                        prop_assert!((2..=4096).contains(&queue.entries));
                        prop_assert!(enable.page.is_aligned(queue.address));
                    }
                }
                Effect::Disable | Effect::SubsystemReset => is_enabled = false,
                Effect::Doorbell(_) => prop_assert!(is_enabled && registers.is_ready()),
                _ => {}
            }
            prop_assert!(!registers.is_ready() || is_enabled);
            let csts = read32(&registers, offset::CSTS);
            prop_assert_eq!(csts & !0x1f, 0);
            prop_assert_ne!(csts >> 2 & 3, 3);
        }
    }
}
