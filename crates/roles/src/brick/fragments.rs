//! Fragments of objects at a brick's disk, which is played by the test.

use super::tests::{Bench, GATEWAY, NOW};
use super::*;
use base::{ObjectVersion, Payload};
use rules::fair::Fcfs;
use wire::disk::{Blocks, Command, Reply, StoreError};
use wire::{FragmentOutcome, Service};

const FRAGMENT: FragmentId = FragmentId { version: ObjectVersion(7), segment: 2, index: 5 };

fn put(bench: &mut Bench, operation: u64, bytes: usize) {
    let message =
        Message::PutFragment { operation, fragment: FRAGMENT, service: Service::default(), is_new: true };
    let packet = Packet { message, payload: Payload::zeros(bytes) };
    bench.step(BrickEvent::Packet { from: GATEWAY, packet });
}

fn get(bench: &mut Bench, operation: u64, blocks: u32) {
    bench.ask(Message::GetFragment { operation, fragment: FRAGMENT, blocks, service: Service::default() });
}

/// What the brick said of questions about fragments since the last call.
fn told(bench: &mut Bench) -> Vec<(u64, FragmentOutcome)> {
    let told = bench.sent.drain(..).filter_map(|message| match message {
        Message::FragmentPut { operation, outcome, .. } | Message::Fragment { operation, outcome, .. } => {
            Some((operation, outcome))
        }
        _ => None,
    });
    told.collect()
}

fn drop_versions(bench: &mut Bench, versions: Vec<ObjectVersion>) {
    let packet = Message::DropVersions { versions }.into();
    bench.step(BrickEvent::Packet { from: NodeId::Directory, packet });
}

fn answer(bench: &mut Bench, reply: impl FnOnce(Command) -> Reply) {
    let (disk, command) = bench.asked.remove(0);
    let reply = reply(command);
    bench.step(BrickEvent::Store { disk, reply });
}

#[test]
fn a_fragment_is_told_to_be_there_once_it_is_on_stable_storage() {
    let mut bench = Bench::new(1, Vec::new());
    put(&mut bench, 1, 2 * BLOCK);
    assert_eq!(told(&mut bench), []);
    answer(&mut bench, |command| {
        let Command::Mend { token, span, width: 1, stamps, payload } = command else { panic!("{command:?}") };
        assert_eq!((span, payload.len()), (FRAGMENT.span(2), 2 * BLOCK));
        assert!(stamps.len() == 2 && stamps.iter().all(|stamp| !stamp.is_zero()));
        Reply::Staged { token, result: Ok(()) }
    });
    assert_eq!(told(&mut bench), [(1, FragmentOutcome::Done)]);
    put(&mut bench, 2, BLOCK);
    answer(&mut bench, |command| {
        let Command::Mend { token, .. } = command else { panic!("{command:?}") };
        Reply::Staged { token, result: Err(StoreError::NoSpace) }
    });
    assert_eq!(told(&mut bench), [(2, FragmentOutcome::NoSpace)]);
}

#[test]
fn a_fragment_that_is_not_whole_is_not_served() {
    let mut bench = Bench::new(1, Vec::new());
    let is_there = base::Stamp(1);
    let cases = [
        (vec![is_there, is_there], vec![], FragmentOutcome::Done),
        (vec![is_there, base::Stamp::ZERO], vec![], FragmentOutcome::Missing),
        (vec![base::Stamp::ZERO; 2], vec![], FragmentOutcome::Missing),
        (vec![is_there, is_there], vec![1], FragmentOutcome::Unreadable),
    ];
    for (operation, (stamps, unreadable, outcome)) in (1..).zip(cases) {
        get(&mut bench, operation, 2);
        answer(&mut bench, |command| {
            let Command::Read { token, span, content: true, .. } = command else { panic!("{command:?}") };
            assert_eq!(span, FRAGMENT.span(2));
            let content = Payload::zeros(2 * BLOCK);
            Reply::Read { token, result: Ok(Blocks { stamps, content, unreadable }) }
        });
        assert_eq!(told(&mut bench), [(operation, outcome)]);
    }
}

#[test]
fn a_fragment_that_is_checked_is_looked_up_or_read_and_not_sent() {
    let mut bench = Bench::new(1, Vec::new());
    let is_there = base::Stamp(1);
    for (operation, reads) in [(1, false), (2, true)] {
        let service = Service::default();
        bench.ask(Message::CheckFragment { operation, fragment: FRAGMENT, blocks: 2, reads, service });
        answer(&mut bench, |command| {
            let Command::Read { token, span, content, .. } = command else { panic!("{command:?}") };
            assert_eq!((span, content), (FRAGMENT.span(2), reads));
            let content = if reads { Payload::zeros(2 * BLOCK) } else { Payload::new() };
            let blocks = Blocks { stamps: vec![is_there; 2], content, unreadable: Vec::new() };
            Reply::Read { token, result: Ok(blocks) }
        });
        assert_eq!(told(&mut bench), [(operation, FragmentOutcome::Done)]);
    }
}

#[test]
fn a_fragment_waits_for_its_turn_and_may_be_withdrawn() {
    let mut bench = Bench::new(1, Vec::new());
    let mut fx = Vec::new();
    bench.brick.set_discipline(NOW, 0, Box::new(Fcfs::default()), Places(1), &mut fx);
    bench.take(fx);
    put(&mut bench, 1, BLOCK);
    get(&mut bench, 2, 1);
    put(&mut bench, 3, BLOCK);
    assert_eq!(bench.asked.len(), 1, "one at a time");
    bench.ask(Message::Cancel { operations: vec![2] });
    assert!(
        bench
            .sent
            .iter()
            .any(|message| matches!(message, Message::Cancelled { withdrawn, .. } if *withdrawn == [2]))
    );
    bench.answer_all();
    assert_eq!(told(&mut bench), [(1, FragmentOutcome::Done), (3, FragmentOutcome::Done)]);
}

#[test]
fn what_waits_of_a_version_that_is_dropped_never_reaches_the_disk() {
    let mut bench = Bench::new(2, Vec::new());
    let mut fx = Vec::new();
    (0..2).for_each(|disk| {
        bench.brick.set_discipline(NOW, disk, Box::new(Fcfs::default()), Places(1), &mut fx)
    });
    bench.take(fx);
    put(&mut bench, 1, BLOCK);
    put(&mut bench, 2, BLOCK);
    drop_versions(&mut bench, vec![FRAGMENT.version]);
    let discards = bench.asked.iter().filter(|(_, command)| {
        matches!(command, Command::Discard { volume, stretch: None } if *volume == FRAGMENT.span(1).volume)
    });
    assert_eq!(discards.count(), 2, "at each disk");
    bench.answer_all();
    assert_eq!(told(&mut bench), [(2, FragmentOutcome::Missing), (1, FragmentOutcome::Done)]);
}

/// Found from outside: any gateway could destroy objects that were visible, without a word to the index.
#[test]
fn only_the_directory_says_that_versions_are_dropped() {
    let mut bench = Bench::new(1, Vec::new());
    for from in
        [NodeId::Gateway(base::GatewayId(9)), NodeId::Brick(BrickId(9)), NodeId::Client(base::ClientId(9))]
    {
        let packet = Message::DropVersions { versions: vec![FRAGMENT.version] }.into();
        bench.step(BrickEvent::Packet { from, packet });
        assert!(bench.asked.is_empty(), "{from}");
    }
    drop_versions(&mut bench, vec![FRAGMENT.version]);
    assert_eq!(bench.asked.len(), 1);
}

#[test]
fn what_no_fragment_can_be_is_refused() {
    let mut bench = Bench::new(1, Vec::new());
    put(&mut bench, 1, BLOCK - 1);
    put(&mut bench, 2, 0);
    put(&mut bench, 3, 257 * BLOCK);
    get(&mut bench, 4, 0);
    get(&mut bench, 5, u32::MAX);
    let beyond = FragmentId { segment: FragmentId::SEGMENTS, ..FRAGMENT };
    bench.ask(Message::GetFragment {
        operation: 6,
        fragment: beyond,
        blocks: 1,
        service: Service::default(),
    });
    assert!(bench.asked.is_empty());
    let refused: Vec<_> = (1..=6).map(|operation| (operation, FragmentOutcome::Failed)).collect();
    assert_eq!(told(&mut bench), refused);
    // Another name of a version that there is.
    drop_versions(&mut bench, vec![ObjectVersion(FRAGMENT.version.0 | 1 << 63)]);
    assert!(bench.asked.is_empty());
}

#[test]
fn what_is_asked_for_again_while_the_disk_works_for_it_is_done_once() {
    let mut bench = Bench::new(1, Vec::new());
    put(&mut bench, 1, BLOCK);
    put(&mut bench, 1, BLOCK);
    get(&mut bench, 2, 1);
    get(&mut bench, 2, 1);
    assert_eq!(bench.asked.len(), 2);
    bench.answer_all();
    put(&mut bench, 1, BLOCK);
    assert_eq!(bench.asked.len(), 1, "an answer may be lost");
}

/// Found with Figure 8 of RobuSTore: a disk that took more than 2 s for two fragments did each of them twice, as repeats waited for turns of
/// their own.
#[test]
fn what_is_asked_for_again_while_the_disk_works_for_it_takes_no_second_turn() {
    let mut bench = Bench::new(1, Vec::new());
    let mut fx = Vec::new();
    bench.brick.set_discipline(NOW, 0, Box::new(Fcfs::default()), Places(1), &mut fx);
    bench.take(fx);
    put(&mut bench, 1, BLOCK);
    put(&mut bench, 1, BLOCK);
    get(&mut bench, 2, 1);
    get(&mut bench, 2, 1);
    assert_eq!(bench.asked.len(), 1, "one at a time");
    answer(&mut bench, |command| {
        let Command::Mend { token, .. } = command else { panic!("{command:?}") };
        Reply::Staged { token, result: Ok(()) }
    });
    get(&mut bench, 2, 1);
    assert_eq!(bench.asked.len(), 1);
    bench.answer_all();
    assert_eq!(told(&mut bench), [(1, FragmentOutcome::Done), (2, FragmentOutcome::Missing)]);
    assert!(bench.asked.is_empty(), "nothing is done twice");
}

const SMALL: FragmentId = FragmentId { version: ObjectVersion(300), segment: 0, index: 1 };

/// Its disk may be another one, as addresses are spread over disks.
#[test]
fn a_small_fragment_that_an_earlier_release_put_is_found() {
    for (disks, wanted) in [(1, true), (3, true), (3, false)] {
        let mut bench = Bench::new(disks, Vec::new());
        let service = Service::default();
        let (operation, fragment, blocks) = (1, SMALL, 2);
        bench.ask(match wanted {
            true => Message::GetFragment { operation, fragment, blocks, service },
            false => Message::CheckFragment { operation, fragment, blocks, reads: false, service },
        });
        for (place, stamp) in [(SMALL.span(2), 0), (SMALL.span_alone(2), 1)] {
            find(&mut bench, (place, wanted), stamp, Vec::new());
        }
        assert_eq!(told(&mut bench), [(1, FragmentOutcome::Done)]);
        assert!(bench.asked.is_empty());
    }
}

/// A disk that was asked for this place finds two blocks of that stamp there.
fn find(bench: &mut Bench, asked: (wire::Span, bool), stamp: u64, unreadable: Vec<u32>) {
    answer(bench, |command| {
        let Command::Read { token, span, content, .. } = command else { panic!("{command:?}") };
        assert_eq!((span, content), asked);
        let (stamps, content) = (vec![base::Stamp(stamp); 2], Payload::zeros(2 * BLOCK));
        Reply::Read { token, result: Ok(Blocks { stamps, content, unreadable }) }
    });
}

#[test]
fn a_place_that_cannot_be_read_does_not_hide_what_lies_alone() {
    let cases = [
        (vec![0], 1, FragmentOutcome::Done),
        (vec![0], 0, FragmentOutcome::Unreadable),
        (vec![], 0, FragmentOutcome::Missing),
    ];
    for (unreadable, stamp, outcome) in cases {
        let mut bench = Bench::new(1, Vec::new());
        let service = Service::default();
        bench.ask(Message::GetFragment { operation: 1, fragment: SMALL, blocks: 2, service });
        find(&mut bench, (SMALL.span(2), true), 0, unreadable);
        find(&mut bench, (SMALL.span_alone(2), true), stamp, Vec::new());
        assert_eq!(told(&mut bench), [(1, outcome)]);
    }
}

/// The second look must not begin anew where it waits for its turn.
#[test]
fn a_repeat_goes_on_looking_where_a_fragment_lies_alone() {
    let mut bench = Bench::new(1, Vec::new());
    let mut fx = Vec::new();
    bench.brick.set_discipline(NOW, 0, Box::new(Fcfs::default()), Places(1), &mut fx);
    bench.take(fx);
    let ask = |bench: &mut Bench| {
        let service = Service::default();
        bench.ask(Message::GetFragment { operation: 1, fragment: SMALL, blocks: 2, service });
    };
    ask(&mut bench);
    put(&mut bench, 2, BLOCK);
    find(&mut bench, (SMALL.span(2), true), 0, Vec::new());
    ask(&mut bench);
    answer(&mut bench, |command| {
        let Command::Mend { token, .. } = command else { panic!("{command:?}") };
        Reply::Staged { token, result: Ok(()) }
    });
    find(&mut bench, (SMALL.span_alone(2), true), 1, Vec::new());
    assert_eq!(told(&mut bench), [(2, FragmentOutcome::Done), (1, FragmentOutcome::Done)]);
    assert!(bench.asked.is_empty());
}

#[test]
fn a_version_that_begins_packs_is_not_dropped_with_all_that_lies_in_them() {
    let mut bench = Bench::new(1, Vec::new());
    drop_versions(&mut bench, vec![ObjectVersion(256), ObjectVersion(257)]);
    let dropped: Vec<_> = bench
        .asked
        .iter()
        .filter_map(|(_, command)| match command {
            Command::Discard { volume, .. } => Some(*volume),
            _ => None,
        })
        .collect();
    assert_eq!(dropped, [FragmentId::volume(ObjectVersion(257))]);
}

/// A putter sends more than it needs, and calls off what it does not count on.
#[test]
fn what_its_putter_calls_off_is_given_back() {
    let staged = |command: Command| {
        let Command::Mend { token, .. } = command else { panic!("{command:?}") };
        Reply::Staged { token, result: Ok(()) }
    };
    let erases = |bench: &Bench| {
        let spans = bench.asked.iter().filter_map(|(_, command)| match command {
            Command::Erase { span, .. } => Some(*span),
            _ => None,
        });
        spans.collect::<Vec<_>>()
    };
    let mut bench = Bench::new(1, Vec::new());
    put(&mut bench, 1, 2 * BLOCK);
    answer(&mut bench, staged);
    bench.ask(Message::Cancel { operations: vec![1] });
    assert_eq!(erases(&bench), [FRAGMENT.span(2)]);
    // The disk still works for it.
    let mut bench = Bench::new(1, Vec::new());
    put(&mut bench, 1, 2 * BLOCK);
    bench.ask(Message::Cancel { operations: vec![1] });
    assert_eq!(erases(&bench), []);
    answer(&mut bench, staged);
    assert_eq!(erases(&bench), [FRAGMENT.span(2)]);
    // Somebody made it again meanwhile, and may count on it.
    let mut bench = Bench::new(1, Vec::new());
    put(&mut bench, 1, 2 * BLOCK);
    answer(&mut bench, staged);
    let (operation, service) = (2, Service::default());
    let message = Message::PutFragment { operation, fragment: FRAGMENT, service, is_new: false };
    let packet = Packet { message, payload: Payload::zeros(2 * BLOCK) };
    bench.step(BrickEvent::Packet { from: GATEWAY, packet });
    answer(&mut bench, staged);
    bench.ask(Message::Cancel { operations: vec![1, 2] });
    assert_eq!(erases(&bench), []);
}
