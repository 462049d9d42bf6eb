//! Patches, and puts and patches that go on after an interruption.

use super::*;
use crate::object::{Coding, PutProgress, Resumable, SegmentRecord, StoredSegment};
use core::cell::RefCell;
use core::time::Duration;
use wire::{FragmentId, SegmentSpan, Share};

fn share(version: ObjectVersion, from: u32, to: u32) -> Share {
    Share { version, segments: vec![SegmentSpan { from, to }] }
}

/// The version that a patch becomes.
const NEXT: ObjectVersion = ObjectVersion(8);

/// Segments of 4096, 4096 and 100 bytes, all ones, at brick 2; the version of before has the first one, too.
fn patched_at(brick: u32) -> Manifest {
    let segment = |version, bytes: usize| SegmentRecord {
        version,
        bytes: bytes as u32,
        checksum: Some(base::checksum(&vec![1; bytes])),
        coding: Coding::Copies { blocks: 1 },
        symbol_blocks: 1,
        places: vec![(0, BrickId(brick))],
        mark: 0,
    };
    Manifest { segments: vec![segment(ObjectVersion(5), 4096), segment(V, 4096), segment(V, 100)], losses: 0 }
}

/// What the index was asked to make visible, what was put, and what came of it.
type Patched = (Vec<IndexRequest>, BTreeMap<u32, Vec<u8>>, Option<ObjectNews>);

/// Patches that with `content` from a byte on. Its fragments are at the first brick, and at the second one when that is asked again.
fn patch_it(
    at: u64,
    of: Option<ObjectVersion>,
    content: &[u8],
    at_bricks: (u32, u32),
    moves: bool,
) -> Patched {
    patch_on(at, of, content, at_bricks, moves, (None, 0))
}

/// The same, of which earlier tries have stored something, and of an object that is to survive so many losses.
#[expect(clippy::too_many_lines, reason = "a patch from its beginning to its end")]
fn patch_on(
    at: u64,
    of: Option<ObjectVersion>,
    content: &[u8],
    (first, then): (u32, u32),
    moves: bool,
    (resumable, losses): (Option<Resumable>, u32),
) -> Patched {
    let patched_at = |brick| Manifest { losses, ..patched_at(brick) };
    let bricks: &[u32] = if losses > 0 { &[1, 2, 3] } else { &[2] };
    let info = ObjectInfo { version: V, bytes: 8292, checksum: base::checksum(&[1; 8292]), put_ms: 3 };
    let (mut bench, mut asked, mut put) = (Bench::new(), Vec::new(), BTreeMap::new());
    let name = ObjectName { bucket: "abc".to_owned(), key: "k".to_owned() };
    bench.wish(ObjectWish::Patch(ObjectPatch {
        name,
        at: Some(at),
        of,
        redundancy: 0,
        put_ms: 9,
        segment_bytes: 4096,
        resumable,
    }));
    let mut left = content.to_vec();
    for _ in 0..12 {
        let requests = RefCell::new(Vec::new());
        bench.directory(bricks, |request| {
            requests.borrow_mut().push(request.clone());
            Some(match request {
                IndexRequest::Look { .. } => IndexReply::Found {
                    info,
                    manifest: patched_at(first).to_bytes(),
                    held_ns: 60_000_000_000,
                    stream: OF_BUCKET,
                },
                IndexRequest::Open { .. } => {
                    IndexReply::Opened { version: NEXT, held_ns: 60_000_000_000, stream: OF_BUCKET }
                }
                IndexRequest::Patch { was, .. }
                    if moves && *was == base::checksum(&patched_at(first).to_bytes()) =>
                {
                    return None;
                }
                IndexRequest::Patch { .. } => IndexReply::Committed,
                IndexRequest::Manifest { version: V, .. } => {
                    IndexReply::Manifest { manifest: patched_at(then).to_bytes(), of: V, is_held: false }
                }
                IndexRequest::Abandon { version: NEXT } => IndexReply::Abandoned,
                IndexRequest::Hold { versions, only_open: true } if versions[..] == [TRIED] => {
                    IndexReply::Held { gone: vec![] }
                }
                IndexRequest::Abandon { version: TRIED } => IndexReply::Abandoned,
                other => panic!("{other:?}"),
            })
        });
        let moved = asked.len();
        asked.extend(
            requests.into_inner().into_iter().filter(|request| matches!(request, IndexRequest::Patch { .. })),
        );
        if moves && moved == 0 && !asked.is_empty() {
            let operation = bench.objects.questions.last_asked();
            let result = Box::new(Err(IndexError::Moved));
            bench.with(|objects, now, fx| {
                objects.on_directory(now, Message::IndexDone { operation, result }, fx)
            });
        }
        serve(&mut bench);
        for (_, packet) in &bench.sent {
            if let Message::PutFragment { fragment, .. } = &packet.message {
                assert_eq!(fragment.version, NEXT);
                put.insert(fragment.segment, packet.payload.to_vec());
            }
        }
        bench.bricks();
        bench.bricks_have(&|_| true);
        let is_stored = |news: &ObjectNews| !matches!(news, ObjectNews::Stored { .. });
        bench.news.retain(is_stored);
        if let Some(ObjectNews::WantsContent { bytes }) = bench.news.last().cloned() {
            bench.news.clear();
            let piece: Vec<u8> = left.drain(..bytes.min(left.len())).collect();
            bench.wish(ObjectWish::Content { content: Payload::from(piece), is_last: left.is_empty() });
        }
    }
    assert!(bench.objects.work.is_empty() && bench.objects.owners.is_empty(), "{:?}", bench.objects.work);
    (asked, put, bench.news.pop())
}

#[test]
fn a_patch_shares_what_it_leaves_and_puts_what_it_changes() {
    let old = ObjectVersion(5);
    for (at, bytes, shares, segments) in [
        (0, 4096, vec![share(V, 1, 3)], vec![(0, 0..4096)]),
        (10, 20, vec![share(V, 1, 3)], vec![(0, 10..30)]),
        (4000, 200, vec![share(V, 2, 3)], vec![(0, 4000..4096), (1, 0..104)]),
        (8292, 5, vec![share(old, 0, 1), share(V, 1, 2)], vec![(2, 100..105)]),
        (8292, 5000, vec![share(old, 0, 1), share(V, 1, 2)], vec![(2, 100..4096), (3, 0..1004)]),
        (8292, 0, vec![share(old, 0, 1), share(V, 1, 3)], vec![]),
    ] {
        let content = vec![2; bytes];
        let (asked, put, news) = patch_it(at, None, &content, (2, 3), false);
        let [IndexRequest::Patch { base: V, was, shares: asked, info, manifest, .. }] = &asked[..] else {
            panic!("{asked:?}")
        };
        assert_eq!((asked, *was), (&shares, base::checksum(&patched_at(2).to_bytes())));
        let mut whole = vec![1; 8292_usize.max(at as usize + bytes)];
        whole[at as usize..][..bytes].fill(2);
        let expected = ObjectInfo {
            version: NEXT,
            bytes: whole.len() as u64,
            checksum: base::checksum(&whole),
            put_ms: 9,
        };
        assert_eq!((info, news), (&expected, Some(ObjectNews::Put(Ok(expected)))));
        let manifest = Manifest::read(manifest, NEXT).expect("a sound manifest");
        let own: Vec<u32> = (0..)
            .zip(&manifest.segments)
            .filter(|(_, segment)| segment.version == NEXT)
            .map(|(number, _)| number)
            .collect();
        assert_eq!(own, put.keys().copied().collect::<Vec<_>>());
        assert_eq!(own, segments.iter().map(|(segment, _)| *segment).collect::<Vec<_>>());
        for (segment, changed) in segments {
            let content = &put[&segment];
            let is_changed = |at: &usize| changed.contains(at);
            assert!(
                (0..changed.end.max(100)).all(|at| content[at] == if is_changed(&at) { 2 } else { 1 }),
                "{content:?}"
            );
        }
    }
}

#[test]
fn a_patch_notices_what_was_moved_or_replaced_meanwhile() {
    let (asked, _, news) = patch_it(10, None, &[2; 20], (2, 3), true);
    let [IndexRequest::Patch { .. }, IndexRequest::Patch { was, manifest, .. }] = &asked[..] else {
        panic!("{asked:?}")
    };
    assert_eq!(*was, base::checksum(&patched_at(3).to_bytes()));
    let segments = Manifest::read(manifest, NEXT).expect("a sound manifest").segments;
    let at: Vec<_> = segments.iter().map(|segment| segment.places[0].1.0).collect();
    assert_eq!(at, [2, 3, 3], "what is shared is where it is now");
    assert!(matches!(news, Some(ObjectNews::Put(Ok(_)))));
    let refused = |at, of| patch_it(at, of, &[2], (2, 3), false).2;
    let index = |error| Some(ObjectNews::Put(Err(ObjectError::Index(error))));
    assert_eq!(refused(0, Some(ObjectVersion(5))), index(IndexError::NotAsExpected));
    assert_eq!(refused(8293, None), Some(ObjectNews::Put(Err(ObjectError::OutOfRange { bytes: 8292 }))));
}

#[test]
fn a_patch_follows_segments_that_it_has_to_read() {
    // Brick 1 has the first segment only. Two others are changed in part, and both are read at once.
    let (asked, put, news) = patch_it(4100, None, &[2; 4150], (1, 2), false);
    let [IndexRequest::Patch { was, .. }] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(*was, base::checksum(&patched_at(2).to_bytes()));
    assert_eq!(put.keys().copied().collect::<Vec<_>>(), [1, 2]);
    assert!(put[&1][..4] == [1; 4] && put[&2][58..100] == [1; 42], "what is not patched stays");
    assert!(matches!(news, Some(ObjectNews::Put(Ok(_)))), "{news:?}");
    // They are where they were: nobody has them.
    let (_, _, news) = patch_it(4100, None, &[2; 4150], (1, 1), false);
    assert!(matches!(news, Some(ObjectNews::Put(Err(ObjectError::Get { .. })))), "{news:?}");
}

/// A try of a patch that was interrupted.
const TRIED: ObjectVersion = ObjectVersion(6);

#[test]
fn a_patch_that_was_interrupted_goes_on_where_a_segment_would_be_what_is_stored_of_it() {
    // From byte 4000 on: the first segment changes at its end, the second one as a whole, the third one at its beginning.
    let text = vec![2; 4242];
    let mut whole = vec![1; 8292];
    whole[4000..8242].copy_from_slice(&text);
    let stored = |number: u32| {
        let (from, to) = (number as usize * 4096, (number as usize * 4096 + 4096).min(8292));
        let record = SegmentRecord {
            version: TRIED,
            checksum: Some(base::checksum(&whole[from..to])),
            bytes: (to - from) as u32,
            ..patched_at(2).segments[number as usize].clone()
        };
        StoredSegment { record, content: Payload::from(whole[from..to].to_vec()).digest() }
    };
    let with = |segments: &[u32]| {
        let mut progress = PutProgress::default();
        segments.iter().for_each(|number| progress.note(*number, stored(*number)));
        Some(Resumable { keep: Duration::from_secs(3600), stored: progress })
    };
    for (segments, put) in [(&[0, 1][..], &[2][..]), (&[2], &[0, 1]), (&[0, 1, 2], &[])] {
        let (asked, puts, news) = patch_on(4000, None, &text, (2, 2), false, (with(segments), 0));
        let [IndexRequest::Patch { base: V, parts, shares, manifest, .. }] = &asked[..] else {
            panic!("{asked:?}")
        };
        assert!(matches!(news, Some(ObjectNews::Put(Ok(info))) if info.checksum == base::checksum(&whole)));
        assert_eq!(puts.keys().copied().collect::<Vec<_>>(), put);
        let spans: Vec<SegmentSpan> = parts.iter().flat_map(|part| part.segments.clone()).collect();
        assert_eq!(spans.iter().map(|span| span.to - span.from).sum::<u32>(), segments.len() as u32);
        assert!(parts.iter().all(|part| part.version == TRIED) && shares.is_empty());
        let manifest = Manifest::read(manifest, NEXT).expect("a sound manifest");
        assert_eq!(manifest.bytes(), 8292);
    }
    // The same content goes elsewhere: nothing of it fits, and what is stored need not be kept.
    let (asked, puts, news) = patch_on(4001, None, &text, (2, 2), false, (with(&[0, 2]), 0));
    let [IndexRequest::Patch { parts, .. }] = &asked[..] else { panic!("{asked:?}") };
    assert!(parts.is_empty() && puts.len() == 3 && matches!(news, Some(ObjectNews::Put(Ok(_)))));
    // The object survives a loss by now, and what is stored has one copy of each block.
    let (asked, puts, news) = patch_on(4000, None, &text, (2, 2), false, (with(&[0, 1, 2]), 1));
    let [IndexRequest::Patch { parts, .. }] = &asked[..] else { panic!("{asked:?}") };
    assert!(parts.is_empty() && puts.len() == 3 && matches!(news, Some(ObjectNews::Put(Ok(_)))));
}

/// What came of a put that goes on.
struct WentOn {
    /// Which segments of other versions the index was told of.
    parts: Vec<Share>,
    /// Which segments were put.
    put: Vec<u32>,
    /// Which versions the index need not keep any more.
    abandoned: Vec<ObjectVersion>,
    /// What the next try would have.
    stored: PutProgress,
    news: Option<ObjectNews>,
}

/// Puts this in segments of 4096 bytes, of which some are stored already. Some of the versions of before may be gone, or the brick may have lost all. It is
/// called off after so many segments.
fn go_on(
    stored: PutProgress,
    (gone, has_it): (&[ObjectVersion], bool),
    content: &[u8],
    most: usize,
) -> WentOn {
    let mut bench = Bench::new();
    let ObjectWish::Put(mut object) = put(0) else { unreachable!("a put") };
    let keep = Duration::from_secs(3600);
    let mut went = WentOn {
        parts: Vec::new(),
        put: Vec::new(),
        abandoned: Vec::new(),
        stored: stored.clone(),
        news: None,
    };
    object.resumable = Some(Resumable { keep, stored });
    bench.wish(ObjectWish::Put(object));
    let (parts, abandoned) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let mut left = content.to_vec();
    for _ in 0..12 {
        bench.directory(&[1], |request| {
            Some(match request {
                IndexRequest::Open { keep_ns, .. } => {
                    assert_eq!(*keep_ns, keep.as_nanos() as u64);
                    IndexReply::Opened { version: NEXT, held_ns: *keep_ns, stream: OF_BUCKET }
                }
                IndexRequest::Hold { versions, only_open } => {
                    assert_eq!((&versions[..], *only_open), (&[V][..], true));
                    IndexReply::Held { gone: gone.to_vec() }
                }
                IndexRequest::Commit { parts: of, .. } => {
                    parts.replace(of.clone());
                    IndexReply::Committed
                }
                IndexRequest::Abandon { version } => {
                    abandoned.borrow_mut().push(*version);
                    IndexReply::Abandoned
                }
                other => panic!("{other:?}"),
            })
        });
        for (_, packet) in &bench.sent {
            if let Message::PutFragment { fragment, .. } = &packet.message {
                assert_eq!(fragment.version, NEXT);
                went.put.push(fragment.segment);
            }
        }
        bench.bricks();
        bench.bricks_have(&|fragment| {
            assert_eq!(fragment, FragmentId { version: V, segment: 0, index: 0 });
            has_it
        });
        for news in core::mem::take(&mut bench.news) {
            match news {
                ObjectNews::Stored { segment, stored } => went.stored.note(segment, stored),
                ObjectNews::WantsContent { .. } if went.put.len() >= most => bench.wish(ObjectWish::CallOff),
                ObjectNews::WantsContent { bytes } => {
                    let piece: Vec<u8> = left.drain(..bytes.min(left.len())).collect();
                    let content = Payload::from(piece);
                    bench.wish(ObjectWish::Content { content, is_last: left.is_empty() });
                }
                news => went.news = Some(news),
            }
        }
    }
    assert!(bench.objects.work.is_empty() && bench.objects.owners.is_empty(), "{:?}", bench.objects.work);
    (went.parts, went.abandoned) = (parts.into_inner(), abandoned.into_inner());
    went
}

#[test]
fn a_put_that_was_interrupted_goes_on_with_what_is_stored_and_still_the_same() {
    let content = [vec![1; 4096], vec![2; 4096], vec![3; 100]].concat();
    let mut record = patched_at(1).segments[0].clone();
    (record.version, record.checksum) = (V, Some(base::checksum(&content[..4096])));
    let mut stored = PutProgress::default();
    stored.note(0, StoredSegment { record, content: Payload::from(content[..4096].to_vec()).digest() });
    let went = go_on(stored.clone(), (&[], true), &content, 9);
    assert!(matches!(went.news, Some(ObjectNews::Put(Ok(_)))), "{:?}", went.news);
    assert_eq!((&went.put[..], &went.parts[..]), (&[1, 2][..], &[share(V, 0, 1)][..]));
    assert_eq!(went.stored.bytes(), 8292);
    // The index has it no more; the content has changed since; or the brick has it no more.
    for (gone, has_it, content) in
        [(&[V][..], true, &content), (&[], true, &vec![7; 8292]), (&[], false, &content)]
    {
        let went = go_on(stored.clone(), (gone, has_it), content, 9);
        assert!(matches!(went.news, Some(ObjectNews::Put(Ok(_)))), "{:?}", went.news);
        assert_eq!((&went.put[..], &went.parts[..]), (&[0, 1, 2][..], &[][..]));
        let held = if gone.is_empty() { &[V][..] } else { &[] };
        assert_eq!(went.abandoned, held, "what is of no use is not kept");
    }
    // It is interrupted once more: what was stored stays.
    let went = go_on(stored, (&[], true), &content, 1);
    assert_eq!(went.news, Some(ObjectNews::Put(Err(ObjectError::CalledOff))));
    assert_eq!((&went.put[..], went.stored.bytes()), (&[1][..], 8192));
    assert_eq!(went.abandoned, []);
}
