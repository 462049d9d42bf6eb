//! Disks that are older than what their brick promised, and views that begin before the directory knows the disks.

use super::*;

/// A brick that begins anew on what another one noted.
fn begun_anew() -> Bench {
    let mut bench = Bench::new(1, Vec::new());
    bench.begin(1, 3);
    bench.answer_all();
    Bench::new(1, bench.notes)
}

#[test]
fn what_was_recovered_is_not_served_before_it_is_known_whether_it_is_old() {
    let mut bench = begun_anew();
    let serves = |bench: &Bench| bench.brick.groups().serves(GROUP, ViewNumber(1));
    assert_eq!(serves(&bench), Err(None));
    bench.fence(2, 3);
    bench.answer_all();
    assert!(!bench.has_sent(is_fenced), "its silence about a write could be for want of it");
    bench.tell(told(wire::Standing::Waits, NOW));
    assert!(serves(&bench).is_err() && !bench.brick.is_leased(NOW));
    bench.tell(told(wire::Standing::Stands { incarnation: 2, behind: Vec::new() }, NOW));
    assert!(serves(&bench).is_ok() && bench.brick.is_leased(NOW));
}

#[test]
fn an_old_disk_serves_nothing_and_says_nothing_until_it_joins_anew() {
    let mut bench = begun_anew();
    let behind = vec![(GROUP, ViewNumber(1))];
    bench.tell(told(wire::Standing::Stands { incarnation: 2, behind }, NOW));
    assert!(bench.brick.groups().serves(GROUP, ViewNumber(1)).is_err());
    assert!(bench.brick.groups().takes(GROUP, ViewNumber(1)).is_err());
    bench.tell(told(wire::Standing::Stands { incarnation: 2, behind: Vec::new() }, NOW));
    assert!(bench.brick.groups().takes(GROUP, ViewNumber(1)).is_err(), "it has not been left out yet");
    bench.fence(2, 3);
    bench.begin(2, 3);
    bench.answer_all();
    assert!(!bench.has_sent(is_fenced) && !bench.has_sent(is_activated), "that view counts on what it lacks");
    let joins = GroupView { joining: Slots(1), ..view(3, 2) };
    bench.fence_view(joins.clone(), false);
    bench.begin_view(joins);
    bench.answer_all();
    assert!(bench.has_sent(is_activated));
    assert!(bench.brick.groups().takes(GROUP, ViewNumber(3)).is_ok());
}

#[test]
fn a_run_that_is_ousted_serves_nothing_ever_again() {
    let mut bench = begun_anew();
    bench.tell(told(wire::Standing::Stands { incarnation: 2, behind: Vec::new() }, NOW));
    bench.brick.membership.status.disks = vec![1];
    bench.brick.set_journals([(0, 10)].into_iter());
    bench.tell(told(wire::Standing::Ousted { by: 3 }, NOW));
    bench.brick.set_journals([(0, 20)].into_iter());
    assert_eq!(
        bench.brick.status().run.journals[0].durable,
        10,
        "what it notes now the other one does not lack"
    );
    assert!(!bench.brick.is_leased(NOW) && bench.brick.groups().takes(GROUP, ViewNumber(1)).is_err());
    bench.tell(told(wire::Standing::Stands { incarnation: 2, behind: Vec::new() }, NOW));
    bench.begin(4, 3);
    assert!(!bench.brick.is_leased(NOW) && bench.brick.groups().takes(GROUP, ViewNumber(4)).is_err());
}

/// Found by torture seed 2470510: the directory went by a copy of the brick's disk, and took the answers of this process for those of the copy. So the
/// brick stayed a member that catches up in a view which it did not have.
#[test]
fn a_process_that_does_not_count_takes_no_view() {
    let mut bench = begun_anew();
    bench.tell(told(wire::Standing::Waits, NOW));
    let joins = GroupView { joining: Slots(1), ..view(2, 2) };
    let ask = |bench: &mut Bench| {
        bench.fence_view(joins.clone(), false);
        bench.answer_all();
        let (commits, aborts) = (Vec::new(), Vec::new());
        bench.tell(Message::Activate { view: joins.clone(), commits, aborts, bare: None, run: 0 });
        bench.answer_all();
    };
    ask(&mut bench);
    let answers =
        |bench: &Bench| bench.sent.iter().filter(|sent| is_fenced(sent) || is_activated(sent)).count();
    assert_eq!(answers(&bench), 0);
    assert_eq!(bench.brick.counters().get(Counter::ViewForAnotherProcessIgnored), 2);
    bench.tell(told(wire::Standing::Stands { incarnation: 2, behind: Vec::new() }, NOW));
    ask(&mut bench);
    assert_eq!(answers(&bench), 2, "{:?}", bench.sent);
}

/// The same seed: another process wrote in the view that followed. What it took this one never saw.
#[test]
fn who_knows_only_a_view_that_leaves_it_out_says_nothing_about_writes() {
    for (current, speaks) in [(2, false), (3, true)] {
        let mut bench = begun_anew();
        let mut message = told(wire::Standing::Stands { incarnation: 2, behind: Vec::new() }, NOW);
        let Message::HeartbeatDone { views, version, .. } = &mut message else { panic!("{message:?}") };
        (*views, *version) = (vec![view(2, current)], 5);
        bench.tell(message);
        bench.answer_all();
        bench.fence(4, 3);
        bench.answer_all();
        assert_eq!(bench.has_sent(is_fenced), speaks, "{:?}", bench.brick.groups());
    }
}

/// The directory may know it with other disks, and would count all that it writes as lost when it hears of these.
#[test]
fn a_first_view_begins_once_the_directory_knows_the_disks() {
    let mut bench = Bench::new(1, Vec::new());
    bench.brick.membership.is_known = false;
    let activated = |message: &Message| matches!(message, Message::Activated { .. });
    bench.begin(1, 3);
    bench.answer_all();
    assert!(!bench.has_sent(activated));
    bench.tell(told(wire::Standing::Waits, NOW));
    bench.begin(1, 3);
    bench.answer_all();
    assert!(!bench.has_sent(activated), "its run does not count yet");
    bench.tell(told(wire::Standing::Stands { incarnation: 1, behind: Vec::new() }, NOW));
    bench.begin(1, 3);
    bench.answer_all();
    assert!(bench.has_sent(activated));
}

/// Found by torture seed 2420210: the view that was to be the first did not begin, as another of its members was lost.
#[test]
fn so_does_the_view_after_a_first_one_that_never_began() {
    let mut bench = Bench::new(1, Vec::new());
    bench.brick.membership.is_known = false;
    let activated = |message: &Message| matches!(message, Message::Activated { .. });
    bench.fence_view(view(2, 3), false);
    bench.look_around();
    bench.begin(2, 3);
    bench.answer_all();
    assert!(!bench.has_sent(activated));
    bench.tell(told(wire::Standing::Stands { incarnation: 1, behind: Vec::new() }, NOW));
    bench.begin(2, 3);
    bench.answer_all();
    assert!(bench.has_sent(activated));
    // One that joins has nothing to lose. It may get no lease for long, as another group still counts on what it lost.
    let mut bench = Bench::new(1, Vec::new());
    bench.brick.membership.is_known = false;
    let joins = GroupView { joining: Slots(1), ..view(2, 2) };
    bench.fence_view(joins.clone(), false);
    bench.look_around();
    bench.begin_view(joins);
    bench.answer_all();
    assert!(bench.has_sent(activated));
}

/// Found by torture seed 2401789 while another fault was mended: the disk was put back from a copy of before its brick left the slot.
#[test]
fn blocks_of_another_slot_are_given_back_before_this_one_is_taken() {
    let old = begun_anew().notes;
    let elsewhere = GroupView {
        members: vec![BrickId(2), BrickId(1)],
        current: Slots(1),
        joining: Slots(2),
        ..view(5, 1)
    };
    let left_out = GroupView { number: ViewNumber(4), joining: Slots::default(), ..elsewhere.clone() };
    let comes = |notes: &Vec<_>| {
        let mut bench = Bench::new(1, notes.clone());
        bench.stretches = vec![(VOLUME, 7)];
        bench.tell(told(wire::Standing::Stands { incarnation: 2, behind: Vec::new() }, NOW));
        bench
    };
    let fence = || Message::Fence { view: elsewhere.clone(), speaks: false, run: 0 };
    // It hears of the slot when it is left out there, or when it is to join; and it may stop at any moment in between.
    for (is_told, answers) in (0..8).flat_map(|answers| [(true, answers), (false, answers)]) {
        let mut bench = comes(&old);
        bench.answer_all();
        bench.sent.clear();
        match is_told {
            true => {
                let standing = wire::Standing::Stands { incarnation: 2, behind: Vec::new() };
                let mut message = told(standing, NOW);
                if let Message::HeartbeatDone { version, views, .. } = &mut message {
                    (*version, *views) = (9, vec![left_out.clone()]);
                }
                bench.tell(message);
            }
            false => bench.tell(fence()),
        }
        for _ in 0..answers {
            bench.wake(NOW);
            bench.answer_some(1);
        }
        let mut bench = comes(&bench.notes);
        for _ in 0..50 {
            bench.tell(fence());
            bench.wake(NOW);
            bench.answer_some(1);
            if bench.has_sent(is_fenced) {
                break;
            }
            assert!(bench.brick.groups().active(GROUP).is_none_or(|active| active.number == ViewNumber(1)));
        }
        assert_eq!(bench.brick.groups().promised(GROUP), ViewNumber(5));
        assert_eq!(bench.stretches, [], "told {is_told}, {answers} answers");
    }
}
