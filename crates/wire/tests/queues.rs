//! Does every command that is fetched complete once, in a queue that has room for it, and does the host see it?

use lodger_wire::entry::{CompletionEntry, Outcome, SubmissionEntry};
use lodger_wire::memory::{GuestMemory, Ram};
use lodger_wire::queue::{
    CompletionQueue, DoorbellError, Fetch, Permit, Posted, Priority, ShadowDoorbells,
    SubmissionQueue, needs_event,
};
use lodger_wire::registers::{DoorbellKind, QueueMemory};
use lodger_wire::status::Status;
use lodger_wire::{CommandId, NamespaceId, PageSize, QueueId};
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};

const SUBMISSIONS: u64 = 0x1000;
const COMPLETIONS: u64 = 0x8000;
const ID: QueueId = QueueId(1);

fn queues(submissions: u32, completions: u32, epoch: u32) -> (SubmissionQueue, CompletionQueue) {
    let at = |address, entries| QueueMemory { address, entries };
    let submission = at(SUBMISSIONS, submissions);
    let submission = SubmissionQueue::new(ID, submission, ID, Priority::Urgent);
    let completion = CompletionQueue::new(ID, at(COMPLETIONS, completions), Some(3), epoch);
    (submission, completion)
}

/// What a driver does.
struct Host {
    memory: Ram,
    submissions: u32,
    completions: u32,
    tail: u32,
    /// As completions have said.
    submission_head: u32,
    head: u32,
    phase: bool,
    free_ids: VecDeque<u16>,
    outstanding: BTreeSet<u16>,
}

impl Host {
    fn new(submissions: u32, completions: u32) -> Self {
        Host {
            memory: Ram::new(0x1_0000),
            submissions,
            completions,
            tail: 0,
            submission_head: 0,
            head: 0,
            phase: true,
            free_ids: (0..200).collect(),
            outstanding: BTreeSet::new(),
        }
    }

    /// Puts a command into the queue if there is room.
    fn submit(&mut self) {
        let next = (self.tail + 1) % self.submissions;
        if next == self.submission_head {
            return;
        }
        let id = self.free_ids.pop_front().expect("more than fit");
        let entry = SubmissionEntry::new(2, CommandId(id), NamespaceId(1));
        let at = SUBMISSIONS + 64 * u64::from(self.tail);
        self.memory.write(at, &entry.0).unwrap();
        assert!(self.outstanding.insert(id));
        self.tail = next;
    }

    /// Takes the next completion if there is one.
    fn reap(&mut self) {
        let mut bytes = [0; 16];
        let at = COMPLETIONS + 16 * u64::from(self.head);
        self.memory.read(at, &mut bytes).unwrap();
        let (entry, phase) = CompletionEntry::decode(&bytes);
        if phase != self.phase {
            return;
        }
        assert!(self.outstanding.remove(&entry.command.0), "completed twice");
        assert_eq!(entry.outcome.result, u64::from(entry.command.0) << 20);
        assert_eq!(entry.submission_queue, ID);
        self.free_ids.push_back(entry.command.0);
        self.submission_head = entry.submission_head.into();
        self.head = (self.head + 1) % self.completions;
        self.phase ^= self.head == 0;
    }
}

#[derive(Clone, Debug)]
enum Step {
    Submit,
    RingTail,
    Fetch,
    Complete(usize),
    Reap,
    RingHead,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => Just(Step::Submit),
        2 => Just(Step::RingTail),
        3 => Just(Step::Fetch),
        3 => any::<usize>().prop_map(Step::Complete),
        3 => Just(Step::Reap),
        2 => Just(Step::RingHead),
    ];
    prop::collection::vec(step, 1..400)
}

/// Completes one of the commands under way, in any order.
fn complete(
    under_way: &mut Vec<Permit>,
    index: usize,
    queues: (&SubmissionQueue, &mut CompletionQueue),
    memory: &Ram,
) {
    if under_way.is_empty() {
        return;
    }
    let permit = under_way.swap_remove(index % under_way.len());
    let outcome = Outcome::with_result(u32::from(permit.command().0) << 20);
    let (submission, completion) = queues;
    let posted = completion.complete(permit, outcome, submission.head(), memory);
    assert_eq!(posted, Ok(Posted::Entry));
}

proptest! {
    #![proptest_config(lodger_testing::config(200))]

    /// A host and a controller at their own pace over rings of any two lengths: every command ends once, none
    /// is lost, and doorbells are never refused.
    #[test]
    fn every_command_completes_once(
        steps in steps(), submissions in 2..20u32, completions in 2..20u32,
    ) {
        let mut host = Host::new(submissions, completions);
        let (mut submission, mut completion) = queues(submissions, completions, 7);
        let mut under_way = Vec::new();
        let drain = (0..200).flat_map(|_| {
            [Step::RingTail, Step::Fetch, Step::Complete(0), Step::Reap, Step::RingHead]
        });
        for step in steps.into_iter().chain(drain) {
            match step {
                Step::Submit => host.submit(),
                Step::RingTail => {
                    submission.set_tail(host.tail).unwrap();
                }
                Step::Fetch => {
                    let fetched = submission.fetch(&mut completion, &host.memory).unwrap();
                    if let Fetch::Command(entry, permit) = fetched {
                        prop_assert_eq!(entry.command(), permit.command());
                        under_way.push(permit);
                    }
                }
                Step::Complete(index) => {
                    let queues = (&submission, &mut completion);
                    complete(&mut under_way, index, queues, &host.memory);
                }
                Step::Reap => host.reap(),
                Step::RingHead => {
                    completion.set_head(host.head).unwrap();
                }
            }
            prop_assert_eq!(completion.under_way() as usize, under_way.len());
            let promised = completion.len() + completion.under_way();
            prop_assert!(promised < completions);
        }
        prop_assert!(under_way.is_empty() && host.outstanding.is_empty());
        prop_assert!(submission.is_empty() && completion.is_empty());
    }

    /// Any doorbell: refused, or the queue is one that a host could have made so.
    #[test]
    fn doorbells_are_refused_or_right(values in prop::collection::vec(0..12u32, 1..100)) {
        let (mut submission, mut completion) = queues(8, 8, 0);
        for value in values {
            let before = (submission.tail(), submission.len());
            match submission.set_tail(value) {
                Ok(new) => prop_assert_eq!(submission.len(), before.1 + new),
                Err(error) => {
                    prop_assert_eq!((submission.tail(), submission.len()), before);
                    prop_assert_eq!(error == DoorbellError::OutOfRange, value >= 8);
                }
            }
            // Nothing has been completed: there is nothing to take.
            prop_assert_eq!(completion.set_head(value).is_ok(), value == 0);
        }
    }

    /// The arithmetic of event indices is the plain one: is the step beyond `event` among those made?
    #[test]
    fn an_event_is_a_step_beyond_the_index(event: u16, old: u16, steps in 0..70000u32) {
        let steps = steps.min(65535) as u16;
        let new = old.wrapping_add(steps);
        let is_passed = (0..steps).any(|step| old.wrapping_add(step) == event);
        prop_assert_eq!(needs_event(event, new, old), is_passed);
    }
}

#[test]
fn a_full_completion_queue_holds_commands_back() {
    let host = &mut Host::new(8, 2);
    let (mut submission, mut completion) = queues(8, 2, 0);
    host.submit();
    host.submit();
    assert_eq!(submission.set_tail(2), Ok(2));
    let Ok(Fetch::Command(_, permit)) = submission.fetch(&mut completion, &host.memory) else {
        panic!("a command");
    };
    let next = submission.fetch(&mut completion, &host.memory);
    assert!(matches!(next, Ok(Fetch::NoRoom)), "one is under way");
    complete(
        &mut vec![permit],
        0,
        (&submission, &mut completion),
        &host.memory,
    );
    let next = submission.fetch(&mut completion, &host.memory);
    assert!(matches!(next, Ok(Fetch::NoRoom)), "one is not taken");
    host.reap();
    assert_eq!(completion.set_head(host.head), Ok(1));
    let next = submission.fetch(&mut completion, &host.memory);
    let Ok(Fetch::Command(entry, permit)) = next else {
        panic!("a command");
    };
    assert_eq!((entry.command().0, submission.head()), (1, 2));
    permit.abandon();
}

#[test]
fn a_completion_for_a_deleted_queue_goes_nowhere() {
    let mut host = Host::new(4, 4);
    let (mut submission, mut old) = queues(4, 4, 1);
    host.submit();
    submission.set_tail(1).unwrap();
    let Ok(Fetch::Command(_, permit)) = submission.fetch(&mut old, &host.memory) else {
        panic!("a command");
    };
    let (_, mut new) = queues(4, 4, 2);
    let posted = new.complete(permit, Status::SUCCESS, 1, &host.memory);
    assert_eq!(posted, Ok(Posted::QueueGone));
    assert!(new.is_empty());
    let mut bytes = [0; 16];
    host.memory.read(COMPLETIONS, &mut bytes).unwrap();
    assert_eq!(bytes, [0; 16]);
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "was dropped without completion")]
fn a_command_cannot_be_forgotten() {
    let mut host = Host::new(4, 4);
    let (mut submission, mut completion) = queues(4, 4, 1);
    host.submit();
    submission.set_tail(1).unwrap();
    drop(submission.fetch(&mut completion, &host.memory));
}

#[test]
fn a_queue_in_memory_that_is_gone_is_an_error() {
    let memory = Ram::new(0x1000);
    let (mut submission, mut completion) = queues(4, 4, 0);
    submission.set_tail(1).unwrap();
    assert!(submission.fetch(&mut completion, &memory).is_err());
    assert_eq!((submission.len(), completion.under_way()), (1, 0));
}

#[test]
fn completions_are_laid_out_as_the_standard_has_them() {
    let outcome = Outcome {
        status: Status::INVALID_FIELD,
        result: 0x0807_0605_0403_0201,
    };
    let entry = CompletionEntry {
        outcome,
        submission_head: 0x0a09,
        submission_queue: QueueId(0x0c0b),
        command: CommandId(0x0e0d),
    };
    let bytes = entry.encode(true);
    assert_eq!(bytes[..14], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
    assert_eq!(u16::from_le_bytes([bytes[14], bytes[15]]), 1 | 0x4002 << 1);
    assert_eq!(CompletionEntry::decode(&bytes), (entry, true));
}

#[test]
fn shadow_doorbells_lie_a_stride_apart_within_their_page() {
    let shadows = ShadowDoorbells::new(0x1000, 0x2000, PageSize::MIN, 8).unwrap();
    let offset = |queue, kind| shadows.offset(QueueId(queue), kind);
    assert_eq!(offset(0, DoorbellKind::SubmissionTail), Some(0));
    assert_eq!(offset(3, DoorbellKind::CompletionHead), Some(56));
    assert_eq!(offset(255, DoorbellKind::CompletionHead), Some(4088));
    assert_eq!(offset(256, DoorbellKind::SubmissionTail), None);
    let refused = |prp1, prp2| ShadowDoorbells::new(prp1, prp2, PageSize::MIN, 4).is_err();
    assert!(refused(0x1004, 0x2000) && refused(0x1000, 0x2800) && refused(0x1000, 0x1000));
}

#[test]
fn no_order_of_steps_loses_a_wake_up() {
    // The host stores its index, then loads the event index; the controller stores that, then loads the
    // index. In each of the six orders, one of them must notice.
    let kind = DoorbellKind::SubmissionTail;
    for order in 0..16u32 {
        if order.count_ones() != 2 {
            continue;
        }
        let memory = Ram::new(0x3000);
        let shadows = ShadowDoorbells::new(0x1000, 0x2000, PageSize::MIN, 4).unwrap();
        shadows.stay_awake(ID, kind, 5, &memory).unwrap();
        let at = shadows.offset(ID, kind).unwrap();
        memory.store_u32(0x1000 + at, 5).unwrap();
        let (mut host, mut controller, mut is_noticed) = (0, 0, false);
        for step in 0..4 {
            if order >> step & 1 == 0 {
                match host {
                    0 => memory.store_u32(0x1000 + at, 6).unwrap(),
                    _ => {
                        let event = memory.load_u32(0x2000 + at).unwrap() as u16;
                        is_noticed |= needs_event(event, 6, 5);
                    }
                }
                host += 1;
            } else {
                match controller {
                    // The two halves of `sleep`.
                    0 => memory.store_u32(0x2000 + at, 5).unwrap(),
                    _ => is_noticed |= shadows.load(ID, kind, &memory) == Ok(Some(6)),
                }
                controller += 1;
            }
        }
        assert!(is_noticed, "order {order:04b}");
    }
}

#[test]
fn a_controller_that_polls_is_never_rung_for_one_that_sleeps_is() {
    let memory = Ram::new(0x3000);
    let shadows = ShadowDoorbells::new(0x1000, 0x2000, PageSize::MIN, 4).unwrap();
    let kind = DoorbellKind::SubmissionTail;
    let event = || memory.load_u32(0x2008).unwrap() as u16;
    for seen in [0u16, 1, 31] {
        shadows.stay_awake(ID, kind, seen, &memory).unwrap();
        assert!(!needs_event(event(), seen.wrapping_add(1), seen));
        memory.store_u32(0x1008, seen.into()).unwrap();
        let at = (seen, u32::from(seen));
        assert_eq!(shadows.sleep(ID, kind, at, &memory), Ok(None));
        assert!(needs_event(event(), seen.wrapping_add(1), seen));
        memory.store_u32(0x1008, u32::from(seen) + 1).unwrap();
        let awake = shadows.sleep(ID, kind, at, &memory);
        assert_eq!(awake, Ok(Some(u32::from(seen) + 1)));
    }
}
