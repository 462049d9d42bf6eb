//! Objects by their wishes: the directory and the bricks are played by the test.

use super::*;
use crate::object::{AccessStrategy, Coding, SegmentRecord};
use base::StreamId;
use wire::{BrickPlace, FragmentId, FragmentOutcome, Wait, Wire};

mod changes;

const TAG: u64 = 9;
const V: ObjectVersion = ObjectVersion(7);
/// To which all buckets belong.
const OF_BUCKET: StreamId = StreamId(77);

/// One client, whose directory and bricks the test plays.
struct Bench {
    objects: Objects,
    now: Time,
    sent: Vec<(NodeId, Packet)>,
    news: Vec<ObjectNews>,
    evicted: Option<u32>,
    /// Only this one has something.
    full: Option<u32>,
}

/// Nothing is done for a stream of which the index did not tell.
fn is_for_its_stream(message: &Message) -> bool {
    match message {
        Message::PutFragment { service, .. }
        | Message::GetFragment { service, .. }
        | Message::CheckFragment { service, .. } => {
            [OF_BUCKET, StreamId::MAINTENANCE].contains(&service.stream)
        }
        _ => true,
    }
}

impl Bench {
    fn new() -> Bench {
        let objects = Objects::default();
        Bench { objects, now: Time(1), sent: Vec::new(), news: Vec::new(), evicted: None, full: None }
    }

    fn with(&mut self, step: impl FnOnce(&mut Objects, Time, &mut Vec<ObjectEffect>)) {
        let mut fx = Vec::new();
        step(&mut self.objects, self.now, &mut fx);
        for effect in fx {
            match effect {
                ObjectEffect::Send { to, packet } => {
                    assert!(is_for_its_stream(&packet.message), "{:?}", packet.message);
                    self.sent.push((to, packet));
                }
                ObjectEffect::News { news, .. } => self.news.push(news),
                ObjectEffect::Address { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn wish(&mut self, wish: ObjectWish) {
        self.with(|objects, now, fx| objects.on_wish(now, TAG, wish, fx));
    }

    fn pass(&mut self, seconds: u64) {
        self.now = Time(self.now.0 + seconds * 1_000_000_000);
        self.with(|objects, now, fx| objects.wake(now, fx));
    }

    /// Answers what the directory was asked; there are these bricks.
    fn directory(&mut self, bricks: &[u32], reply: impl Fn(&IndexRequest) -> Option<IndexReply>) {
        self.directory_says(bricks, |request| reply(request).map(Ok));
    }

    /// The same, with an index that may refuse something.
    fn directory_says(
        &mut self,
        bricks: &[u32],
        reply: impl Fn(&IndexRequest) -> Option<Result<IndexReply, IndexError>>,
    ) {
        let (evicted, full) = (self.evicted, self.full);
        let place = |brick: &u32| BrickPlace {
            brick: BrickId(*brick),
            address: format!("brick-{brick}"),
            takes_more: evicted != Some(*brick),
            free_bytes: if full == Some(*brick) { 0 } else { 1 << 40 },
            is_heard: true,
            is_evicted: evicted == Some(*brick),
            is_lost: evicted == Some(*brick),
            disks: 0,
            capacity_bytes: if full.is_some() { 1 << 40 } else { 0 },
        };
        for (to, packet) in core::mem::take(&mut self.sent) {
            let answer = match &packet.message {
                Message::GetBricks { operation } => Some(Message::Bricks {
                    operation: *operation,
                    bricks: bricks.iter().map(place).collect(),
                }),
                Message::Index { operation, request } => reply(request)
                    .map(|result| Message::IndexDone { operation: *operation, result: Box::new(result) }),
                _ => {
                    self.sent.push((to, packet));
                    continue;
                }
            };
            if let Some(answer) = answer {
                self.with(|objects, now, fx| objects.on_directory(now, answer, fx));
            }
        }
    }

    /// Bricks are asked whether they have fragments.
    fn bricks_have(&mut self, has_it: &dyn Fn(FragmentId) -> bool) {
        for (to, packet) in core::mem::take(&mut self.sent) {
            let (NodeId::Brick(brick), Message::CheckFragment { operation, fragment, .. }) =
                (to, &packet.message)
            else {
                self.sent.push((to, packet));
                continue;
            };
            let outcome = if has_it(*fragment) { FragmentOutcome::Done } else { FragmentOutcome::Missing };
            let answer = Message::Fragment { operation: *operation, outcome, wait: Wait::default() };
            self.with(|objects, now, fx| objects.on_brick(now, brick, answer.into(), fx));
        }
    }

    /// Bricks take all that they are brought; which of them did.
    fn bricks(&mut self) -> Vec<BrickId> {
        let mut took = Vec::new();
        for (to, packet) in core::mem::take(&mut self.sent) {
            let (NodeId::Brick(brick), Message::PutFragment { operation, .. }) = (to, &packet.message) else {
                self.sent.push((to, packet));
                continue;
            };
            took.push(brick);
            let (operation, outcome) = (*operation, FragmentOutcome::Done);
            let answer = Message::FragmentPut { operation, outcome, wait: Wait::default() };
            self.with(|objects, now, fx| objects.on_brick(now, brick, answer.into(), fx));
        }
        took
    }
}

fn index(request: &IndexRequest) -> Option<IndexReply> {
    Some(match request {
        IndexRequest::Open { .. } => {
            IndexReply::Opened { version: V, held_ns: 60_000_000_000, stream: OF_BUCKET }
        }
        IndexRequest::Commit { .. } => IndexReply::Committed,
        IndexRequest::Hold { .. } => IndexReply::Held { gone: Vec::new() },
        IndexRequest::Abandon { .. } => IndexReply::Abandoned,
        other => panic!("{other:?}"),
    })
}

fn put(losses: u32) -> ObjectWish {
    let name = ObjectName { bucket: "abc".to_owned(), key: "k".to_owned() };
    ObjectWish::Put(NewObject { losses, segment_bytes: 4096, ..NewObject::usual(name) })
}

fn content(bytes: usize, is_last: bool) -> ObjectWish {
    ObjectWish::Content { content: Payload::from(vec![1; bytes]), is_last }
}

#[test]
fn a_segment_goes_to_the_bricks_that_there_are_when_it_goes() {
    let mut bench = Bench::new();
    bench.wish(put(0));
    bench.directory(&[1], index);
    assert_eq!(bench.news, [ObjectNews::WantsContent { bytes: 4096 }]);
    bench.wish(content(4096, false));
    assert_eq!(bench.bricks(), [BrickId(1)]);
    // Much later brick 1 is to be emptied.
    bench.pass(10);
    bench.directory(&[2], index);
    bench.pass(10);
    bench.wish(content(100, true));
    assert_eq!(bench.bricks(), [], "what is known of bricks is old");
    bench.directory(&[2], index);
    assert_eq!(bench.bricks(), [BrickId(2)]);
    bench.directory(&[2], index);
    let Some(ObjectNews::Put(Ok(info))) = bench.news.last() else { panic!("{:?}", bench.news) };
    assert_eq!((info.version, info.bytes), (V, 4196));
}

#[test]
fn a_put_that_fails_gives_its_version_up_before_it_says_so() {
    for (wish, error) in [
        (content(4097, true), ObjectError::OutOfTurn),
        (content(1, true), ObjectError::TooFewBricks { bricks: 2, losses: 1 }),
        (ObjectWish::CallOff, ObjectError::CalledOff),
    ] {
        let mut bench = Bench::new();
        bench.wish(put(1));
        bench.directory(&[1, 2], index);
        bench.wish(wish);
        assert_eq!(bench.news, [ObjectNews::WantsContent { bytes: 4096 }]);
        bench.directory(&[1, 2], index);
        assert_eq!(bench.news.last(), Some(&ObjectNews::Put(Err(error))));
        assert!(bench.objects.work.is_empty() && bench.objects.owners.is_empty());
    }
}

#[test]
fn a_put_whose_commit_is_not_answered_is_in_doubt_whatever_became_of_its_hold() {
    let mut bench = Bench::new();
    bench.wish(put(0));
    bench.directory(&[1], index);
    bench.wish(content(0, true));
    let no_commit = |request: &IndexRequest| {
        let is_answered = !matches!(request, IndexRequest::Commit { .. });
        is_answered.then(|| index(request)).flatten()
    };
    for _ in 0..21 {
        bench.directory(&[1], no_commit);
        bench.pass(1);
    }
    assert_eq!(bench.news.last(), Some(&ObjectNews::Put(Err(ObjectError::InDoubt))));
}

/// Bricks answer a get: brick 1 has the first segment only, and brick 2 all.
fn serve(bench: &mut Bench) {
    for (to, packet) in core::mem::take(&mut bench.sent) {
        let (NodeId::Brick(brick), Message::GetFragment { operation, fragment, .. }) = (to, &packet.message)
        else {
            bench.sent.push((to, packet));
            continue;
        };
        let has_it = brick == BrickId(2) || fragment.segment == 0;
        let outcome = if has_it { FragmentOutcome::Done } else { FragmentOutcome::Missing };
        let message = Message::Fragment { operation: *operation, outcome, wait: Wait::default() };
        let payload = if has_it { Payload::from(vec![1; 4096]) } else { Payload::new() };
        let answer = Packet { message, payload };
        bench.with(|objects, now, fx| objects.on_brick(now, brick, answer, fx));
    }
}

#[test]
fn a_reader_follows_fragments_that_are_moved_meanwhile() {
    let at = |brick: u32| {
        let segment = |bytes| SegmentRecord {
            version: V,
            bytes,
            checksum: Some(base::checksum(&[1; 4096][..bytes as usize])),
            coding: Coding::Copies { blocks: 1 },
            symbol_blocks: 1,
            places: vec![(0, BrickId(brick))],
            mark: 0,
        };
        Manifest { segments: vec![segment(4096), segment(100)], losses: 0 }.to_bytes()
    };
    let checksum = base::checksum(&[1; 4196]);
    let info = ObjectInfo { version: V, bytes: 4196, checksum, put_ms: 0 };
    for (moved_to, result) in
        [(2, Ok(())), (1, Err(GetError::TooFewFragments { came: 0, places: 1, blocks: 1 }))]
    {
        let index = |request: &IndexRequest| {
            Some(match request {
                IndexRequest::Look { .. } => {
                    IndexReply::Found { info, manifest: at(1), held_ns: 60_000_000_000, stream: OF_BUCKET }
                }
                IndexRequest::Manifest { version: V, .. } => {
                    IndexReply::Manifest { manifest: at(moved_to), of: V, is_held: false }
                }
                other => panic!("{other:?}"),
            })
        };
        let mut bench = Bench::new();
        let name = ObjectName { bucket: "abc".to_owned(), key: "k".to_owned() };
        bench.wish(ObjectWish::Get(WantedObject { name, range: None, access: AccessStrategy::USUAL }));
        bench.wish(ObjectWish::More);
        for _ in 0..4 {
            bench.directory(&[1, 2], index);
            serve(&mut bench);
            bench.wish(ObjectWish::More);
        }
        let result = result.map_err(|error| ObjectError::Get { segment: 1, error });
        assert_eq!(bench.news.last(), Some(&ObjectNews::Got(result)), "{:?}", bench.news);
    }
}

/// Found by reading: a later version had one of the segments that were moved, and the get of the other one failed.
#[test]
fn each_segment_that_was_moved_is_looked_for_where_it_is_named_last() {
    let later = ObjectVersion(V.0 + 1);
    let segment = |version, brick| SegmentRecord {
        version,
        bytes: 4096,
        checksum: Some(base::checksum(&[1; 4096])),
        coding: Coding::Copies { blocks: 1 },
        symbol_blocks: 1,
        places: vec![(0, BrickId(brick))],
        mark: 0,
    };
    let manifest =
        |segments: [SegmentRecord; 3]| Manifest { segments: segments.into(), losses: 0 }.to_bytes();
    let info =
        ObjectInfo { version: V, bytes: 3 * 4096, checksum: base::checksum(&[1; 3 * 4096]), put_ms: 0 };
    let index = |request: &IndexRequest| {
        let (of, segments) = match request {
            IndexRequest::Look { .. } => {
                let manifest = manifest([segment(V, 1), segment(V, 1), segment(V, 1)]);
                return Some(IndexReply::Found {
                    info,
                    manifest,
                    held_ns: 60_000_000_000,
                    stream: OF_BUCKET,
                });
            }
            IndexRequest::Manifest { version: V, segment: Some(1) } => {
                (later, [segment(V, 1), segment(V, 2), segment(later, 2)])
            }
            IndexRequest::Manifest { version: V, segment: Some(2) } => {
                (V, [segment(V, 1), segment(V, 1), segment(V, 2)])
            }
            other => panic!("{other:?}"),
        };
        Some(IndexReply::Manifest { manifest: manifest(segments), of, is_held: true })
    };
    let mut bench = Bench::new();
    let name = ObjectName { bucket: "abc".to_owned(), key: "k".to_owned() };
    bench.wish(ObjectWish::Get(WantedObject { name, range: None, access: AccessStrategy::USUAL }));
    for _ in 0..8 {
        bench.directory(&[1, 2], index);
        serve(&mut bench);
        bench.wish(ObjectWish::More);
    }
    assert_eq!(bench.news.last(), Some(&ObjectNews::Got(Ok(()))), "{:?}", bench.news);
}

/// A copy of one block at each of two bricks.
fn copies(at: [u32; 2]) -> Manifest {
    let places = vec![(0, BrickId(at[0])), (1, BrickId(at[1]))];
    let coding = Coding::Copies { blocks: 1 };
    let checksum = Some(base::checksum(&[1; 4096]));
    let segment =
        SegmentRecord { version: V, bytes: 4096, checksum, coding, symbol_blocks: 1, places, mark: 0 };
    Manifest { segments: vec![segment], losses: 1 }
}

/// The same, with this mark.
fn marked(mut manifest: Manifest, mark: u64) -> Manifest {
    manifest.segments.iter_mut().for_each(|segment| segment.mark = mark);
    manifest
}

fn restore(me: u32) -> ObjectWish {
    ObjectWish::Restore { version: V, me: BrickId(me), inspection: Inspection::Everywhere { ranks: 0..4 } }
}

#[test]
fn what_an_evicted_brick_has_is_made_again_elsewhere_and_told_to_the_index() {
    let index = |request: &IndexRequest| {
        Some(match request {
            IndexRequest::Manifest { version: V, .. } => {
                IndexReply::Manifest { manifest: copies([1, 2]).to_bytes(), of: V, is_held: false }
            }
            IndexRequest::Amend { version: V, was, manifest } => {
                assert_eq!(*was, base::checksum(&copies([1, 2]).to_bytes()));
                assert_eq!(Manifest::read(manifest, V), Ok(copies([1, 3])));
                IndexReply::Amended
            }
            other => panic!("{other:?}"),
        })
    };
    let mut bench = Bench { evicted: Some(2), ..Bench::new() };
    bench.wish(restore(1));
    bench.directory(&[1, 2, 3], index);
    // Brick 2 is lost, whatever it says: it is not asked whether it has its copy.
    let [(NodeId::Brick(BrickId(1)), check)] = &bench.sent[..] else { panic!("{:?}", bench.sent) };
    let Message::CheckFragment { operation, .. } = check.message else { panic!("{check:?}") };
    bench.sent.clear();
    let there = Message::Fragment { operation, outcome: FragmentOutcome::Done, wait: Wait::default() };
    bench.with(|objects, now, fx| objects.on_brick(now, BrickId(1), there.into(), fx));
    assert_eq!(bench.news, [ObjectNews::WantsToRead { bytes: 4096 }]);
    assert!(bench.sent.is_empty(), "nothing is read before it may be");
    bench.wish(ObjectWish::More);
    serve(&mut bench);
    assert_eq!(bench.bricks(), [BrickId(3)]);
    bench.directory(&[1, 2, 3], index);
    let restored = Restored { made: 1, ..Restored::default() };
    assert_eq!(bench.news.last(), Some(&ObjectNews::Restored(Ok(restored))));
    assert!(bench.objects.work.is_empty() && bench.objects.owners.is_empty());
}

/// Found by reading: a later version had taken over the fragments, and the amendment was lost.
#[test]
fn what_was_made_again_is_noted_where_the_fragments_are_named_by_then() {
    let later = ObjectVersion(V.0 + 1);
    // Its fragments are where they were; one was moved; or a brick has given back what it had of it, whoever stored what there.
    for (at, mark) in [([1, 2], 0), ([1, 4], 0), ([1, 2], 1)] {
        let was_moved = (at, mark) != ([1, 2], 0);
        let noted = core::cell::RefCell::new(Vec::new());
        let index = |request: &IndexRequest| {
            Some(match request {
                IndexRequest::Manifest { version: V, .. } => {
                    let (first, of) =
                        (noted.borrow().is_empty(), if noted.borrow().is_empty() { V } else { later });
                    let (at, mark) = if first { ([1, 2], 0) } else { (at, mark) };
                    let manifest = marked(copies(at), mark).to_bytes();
                    Ok(IndexReply::Manifest { manifest, of, is_held: false })
                }
                IndexRequest::Amend { version, manifest, .. } => {
                    noted.borrow_mut().push((*version, Manifest::read(manifest, V)));
                    if *version == later { Ok(IndexReply::Amended) } else { Err(IndexError::NotAsExpected) }
                }
                other => panic!("{other:?}"),
            })
        };
        let mut bench = Bench { evicted: Some(2), ..Bench::new() };
        bench.wish(restore(1));
        bench.directory_says(&[1, 2, 3], index);
        let Message::CheckFragment { operation, .. } = bench.sent[0].1.message else {
            panic!("{:?}", bench.sent)
        };
        bench.sent.clear();
        let there = Message::Fragment { operation, outcome: FragmentOutcome::Done, wait: Wait::default() };
        bench.with(|objects, now, fx| objects.on_brick(now, BrickId(1), there.into(), fx));
        bench.wish(ObjectWish::More);
        serve(&mut bench);
        assert_eq!(bench.bricks(), [BrickId(3)]);
        for _ in 0..3 {
            bench.directory_says(&[1, 2, 3], index);
        }
        let Some(ObjectNews::Restored(Ok(restored))) = bench.news.last() else { panic!("{:?}", bench.news) };
        let mut expected = vec![(V, Ok(copies([1, 3])))];
        expected.extend((!was_moved).then_some((later, Ok(copies([1, 3])))));
        assert_eq!((noted.into_inner(), restored.lacking), (expected, u32::from(was_moved)));
    }
}

#[test]
fn what_an_evicted_brick_is_named_for_is_looked_at_again() {
    for (evicted, at, lacking) in [(Some(2), [1, 3], 0), (Some(2), [1, 2], 1), (None, [1, 2], 0)] {
        let index = |request: &IndexRequest| match request {
            IndexRequest::Manifest { version: V, .. } => {
                Some(IndexReply::Manifest { manifest: copies(at).to_bytes(), of: V, is_held: false })
            }
            other => panic!("{other:?}"),
        };
        let mut bench = Bench { evicted, ..Bench::new() };
        bench.wish(ObjectWish::Restore {
            version: V,
            me: BrickId(2),
            // None of these: others are to look.
            inspection: Inspection::Everywhere { ranks: 3..4 },
        });
        bench.directory(&[1, 2, 3], index);
        let Some(ObjectNews::Restored(Ok(restored))) = bench.news.last() else { panic!("{:?}", bench.news) };
        assert_eq!(restored.lacking, lacking, "{evicted:?}, {at:?}");
    }
}

#[test]
fn the_questions_of_two_runs_have_different_numbers() {
    let numbers = |run: u64| {
        let mut bench = Bench { objects: Objects::of_run(run), ..Bench::new() };
        bench.wish(restore(1));
        let asked = bench.sent.iter().find_map(|(_, packet)| match &packet.message {
            Message::Index { operation, .. } => Some(*operation),
            _ => None,
        });
        asked.expect("it asks for the manifest")
    };
    let [one, other, last] = [1, 2, u64::MAX].map(numbers);
    assert!(one != other && other != last && [one, other, last].iter().all(|number| number >> 63 == 1));
}

/// A brick that looks after its share of what is at two bricks.
struct Sharer {
    me: u32,
    at: [u32; 2],
    moves: Option<u64>,
    /// Whether the version is past, and may still be read.
    is_held: bool,
    /// Whether those two have what they are named for.
    have_theirs: bool,
    /// What the index answers to amendments, in this order.
    answers: Vec<Result<IndexReply, IndexError>>,
}

impl Sharer {
    fn new(me: u32, at: [u32; 2]) -> Sharer {
        Sharer { me, at, moves: None, is_held: false, have_theirs: true, answers: Vec::new() }
    }

    /// Where it says that the segment is, each time, but for the mark; which always is another one.
    fn run(self, bench: &mut Bench) -> Vec<Manifest> {
        let Sharer { me, at, moves, is_held, have_theirs, answers } = self;
        let wanted = Rebalance { version: V, me: BrickId(me), segments: vec![0, 7], moves };
        bench.wish(ObjectWish::Rebalance(wanted));
        let (told, answers) = (core::cell::RefCell::new(Vec::new()), core::cell::RefCell::new(answers));
        let manifest = copies(at).to_bytes();
        for _ in 0..30 {
            bench.directory_says(&[1, 2, 3], |request| match request {
                IndexRequest::Manifest { version: V, .. } => {
                    Some(Ok(IndexReply::Manifest { manifest: manifest.clone(), of: V, is_held }))
                }
                IndexRequest::Amend { version: V, was, manifest: amended } => {
                    assert_eq!(*was, base::checksum(&manifest));
                    told.borrow_mut().push(Manifest::read(amended, V).expect("a manifest"));
                    Some(answers.borrow_mut().remove(0))
                }
                other => panic!("{other:?}"),
            });
            if let Some(ObjectNews::WantsToRead { .. }) = bench.news.last() {
                bench.wish(ObjectWish::More);
            }
            for (to, packet) in core::mem::take(&mut bench.sent) {
                let (NodeId::Brick(brick), Message::CheckFragment { operation, .. }) = (to, &packet.message)
                else {
                    bench.sent.push((to, packet));
                    continue;
                };
                let outcome = if have_theirs { FragmentOutcome::Done } else { FragmentOutcome::Missing };
                let answer = Message::Fragment { operation: *operation, outcome, wait: Wait::default() };
                bench.with(|objects, now, fx| objects.on_brick(now, brick, answer.into(), fx));
            }
            serve(bench);
            bench.bricks();
        }
        assert!(bench.objects.work.is_empty() && bench.objects.owners.is_empty());
        let told = told.into_inner();
        let marks = told.iter().map(|manifest: &Manifest| manifest.segments[0].mark);
        let marks: std::collections::BTreeSet<u64> = marks.collect();
        assert!(marks.len() == told.len() && !marks.contains(&0), "{marks:?}");
        told.into_iter().map(|manifest| marked(manifest, 0)).collect()
    }
}

#[test]
fn a_brick_gives_back_what_no_manifest_names_once_the_index_has_noted_it() {
    let leaving = ObjectNews::Leaving { version: V, segment: 0 };
    let left = |is_elsewhere| ObjectNews::Left { version: V, segment: 0, is_elsewhere };
    let done = |lacking| ObjectNews::Rebalanced(Ok(Rebalanced { moved: 0, lacking }));
    let refused = || Err(IndexError::NotAsExpected);
    let mut bench = Bench::new();
    let told = Sharer { answers: vec![Ok(IndexReply::Amended)], ..Sharer::new(3, [1, 2]) }.run(&mut bench);
    assert_eq!(told, [copies([1, 2])]);
    assert_eq!(bench.news, [leaving.clone(), left(true), done(0)]);
    // Somebody else has changed the manifest, once, or again and again.
    let mut bench = Bench::new();
    Sharer { answers: vec![refused(), Ok(IndexReply::Amended)], ..Sharer::new(3, [1, 2]) }.run(&mut bench);
    assert_eq!(bench.news[..4], [leaving.clone(), left(false), leaving.clone(), left(true)]);
    let mut bench = Bench::new();
    Sharer { answers: (0..6).map(|_| refused()).collect(), ..Sharer::new(3, [1, 2]) }.run(&mut bench);
    let error = ObjectNews::Rebalanced(Err(ObjectError::Index(IndexError::NotAsExpected)));
    assert_eq!(bench.news[bench.news.len() - 2..], [left(false), error], "it takes fragments again");
    // What is named stays, and what others have lost, and what is still read as it was.
    for (sharer, lacking) in [
        (Sharer::new(2, [1, 2]), 0),
        (Sharer { have_theirs: false, ..Sharer::new(3, [1, 2]) }, 1),
        // Of two segments that it was asked to look after.
        (Sharer { is_held: true, ..Sharer::new(3, [1, 2]) }, 2),
    ] {
        let mut bench = Bench::new();
        assert_eq!(sharer.run(&mut bench), []);
        assert_eq!(bench.news, [done(lacking)]);
    }
}

#[test]
fn a_full_brick_moves_what_it_has_to_one_that_has_nothing_of_it() {
    let full = |moves, answers| Sharer { moves: Some(moves), answers, ..Sharer::new(2, [1, 2]) };
    let moves = |moves: u64| {
        let mut bench = Bench { full: Some(2), ..Bench::new() };
        let told = full(moves, vec![Ok(IndexReply::Amended)]).run(&mut bench);
        if told.is_empty() {
            return false;
        }
        assert_eq!(told, [copies([1, 3])], "brick 1 has a copy already");
        let done = Rebalanced { moved: 1, lacking: 0 };
        assert_eq!(bench.news.last(), Some(&ObjectNews::Rebalanced(Ok(done))));
        true
    };
    let moved: Vec<u64> = (0..300).filter(|number| moves(*number)).collect();
    assert!((170..230).contains(&moved.len()), "two thirds of what it has are too much: {}", moved.len());
    // One that is refused does not read and copy again what is where it was.
    let mut bench = Bench { full: Some(2), ..Bench::new() };
    let refused = Err(IndexError::NotAsExpected);
    let told = full(moved[0], vec![refused, Ok(IndexReply::Amended)]).run(&mut bench);
    assert_eq!(told, [copies([1, 3]), copies([1, 3])]);
    let reads = bench.news.iter().filter(|news| matches!(news, ObjectNews::WantsToRead { .. }));
    assert_eq!(reads.count(), 1);
    // One that is as full as the others keeps all.
    let mut bench = Bench { full: Some(2), ..Bench::new() };
    assert_eq!(Sharer { moves: Some(1), ..Sharer::new(1, [1, 2]) }.run(&mut bench), []);
}

/// Found by reading: a version whose first four holders had lost all that they had was looked after by nobody.
#[test]
fn a_holder_of_any_rank_looks_where_the_first_ones_know_of_nothing() {
    let version = |first_know: bool| {
        let places = (0..7).map(|symbol| (symbol, BrickId(symbol + 1))).collect();
        let manifest = {
            let mut manifest = copies([1, 2]);
            manifest.segments[0].places = places;
            manifest
        };
        let mut holders: Vec<BrickId> = (1..=7).map(BrickId).collect();
        holders.sort_by_key(|brick| crate::object::bricks::drawn(V.0, *brick));
        let index = |request: &IndexRequest| {
            Some(match request {
                IndexRequest::Manifest { version: V, .. } => {
                    IndexReply::Manifest { manifest: manifest.to_bytes(), of: V, is_held: false }
                }
                other => panic!("{other:?}"),
            })
        };
        let mut bench = Bench::new();
        let inspection = Inspection::Everywhere { ranks: 1..usize::MAX };
        bench.wish(ObjectWish::Restore { version: V, me: holders[6], inspection });
        bench.directory(&[1, 2, 3, 4, 5, 6, 7], index);
        let asked: Vec<NodeId> = bench.sent.iter().map(|(to, _)| *to).collect();
        let mut first: Vec<NodeId> = holders[..4].iter().map(|brick| NodeId::Brick(*brick)).collect();
        first.sort_unstable();
        assert_eq!(asked, first, "only those before it are asked, and for one fragment each");
        let know = holders[3];
        bench.bricks_have(&|fragment| first_know && BrickId(fragment.index + 1) == know);
        bench
    };
    let bench = version(true);
    assert_eq!(bench.news, [ObjectNews::Restored(Ok(Restored::default()))], "one of them looks after it");
    let mut bench = version(false);
    assert_eq!(bench.sent.len(), 7, "all are asked");
    bench.bricks_have(&|fragment| fragment.index > 4);
    bench.directory(&[1, 2, 3, 4, 5, 6, 7], |_| {
        let mut manifest = copies([1, 2]);
        manifest.segments[0].places = (0..7).map(|symbol| (symbol, BrickId(symbol + 1))).collect();
        Some(IndexReply::Manifest { manifest: manifest.to_bytes(), of: V, is_held: false })
    });
    assert_eq!(bench.news, [ObjectNews::WantsToRead { bytes: 4096 }]);
}

/// The reader is told when the right content is where the wrong one was: it may end its process at once.
#[test]
fn a_wrong_copy_is_replaced_before_the_reader_is_told_that_all_has_come() {
    let checksum = base::checksum(&[1; 4096]);
    let info = ObjectInfo { version: V, bytes: 4096, checksum, put_ms: 0 };
    let index = |request: &IndexRequest| {
        Some(match request {
            IndexRequest::Look { .. } => {
                let manifest = copies([1, 2]).to_bytes();
                IndexReply::Found { info, manifest, held_ns: 60_000_000_000, stream: OF_BUCKET }
            }
            other => panic!("{other:?}"),
        })
    };
    let mut bench = Bench::new();
    let name = ObjectName { bucket: "abc".to_owned(), key: "k".to_owned() };
    bench.wish(ObjectWish::Get(WantedObject { name, range: None, access: AccessStrategy::Speculative }));
    bench.wish(ObjectWish::More);
    for _ in 0..3 {
        bench.directory(&[1, 2], index);
        for (to, packet) in core::mem::take(&mut bench.sent) {
            let (NodeId::Brick(brick), Message::GetFragment { operation, .. }) = (to, &packet.message) else {
                bench.sent.push((to, packet));
                continue;
            };
            let message = Message::Fragment {
                operation: *operation,
                outcome: FragmentOutcome::Done,
                wait: Wait::default(),
            };
            let payload = Payload::from(vec![if brick == BrickId(1) { 9 } else { 1 }; 4096]);
            bench.with(|objects, now, fx| objects.on_brick(now, brick, Packet { message, payload }, fx));
        }
    }
    assert!(!bench.news.iter().any(|news| matches!(news, ObjectNews::Content(_))), "{:?}", bench.news);
    let content = bench.sent.iter().find_map(|(to, packet)| match packet.message {
        Message::PutFragment { is_new: false, .. } => Some((*to, packet.payload.to_vec())),
        _ => None,
    });
    assert_eq!(content, Some((NodeId::Brick(BrickId(1)), vec![1; 4096])));
    assert_eq!(bench.bricks(), [BrickId(1)]);
    assert_eq!(bench.news.last(), Some(&ObjectNews::Got(Ok(()))), "{:?}", bench.news);
    assert!(
        bench.objects.work.is_empty() && bench.objects.owners.is_empty() && bench.objects.mending.is_empty()
    );
}
