//! The index over a store that answers when it is told to, and forgets what it has not stored.

use super::*;
use crate::object::{Coding, SegmentRecord};
use base::StreamId;
use proptest::prelude::*;
use wire::{Condition, SegmentSpan, Wire};

const HOLD: Duration = Duration::from_secs(60);
const ME: NodeId = NodeId::Brick(BrickId(1));

/// An index, its stores, and what it answered.
struct Bench {
    index: Index,
    now: Time,
    stores: Vec<BTreeMap<Vec<u8>, Vec<u8>>>,
    asked: Vec<(u16, ShardEffect)>,
    answers: BTreeMap<u64, Told>,
    operations: u64,
    fails: bool,
    me: NodeId,
}

fn config() -> IndexConfig {
    IndexConfig { shards: 3, drawn: 77, hold: HOLD }
}

fn named(key: &str) -> ObjectName {
    ObjectName { bucket: "bucket".to_owned(), key: key.to_owned() }
}

fn info(version: ObjectVersion) -> ObjectInfo {
    ObjectInfo { version, bytes: 1, checksum: 7, put_ms: 0 }
}

/// Of a version, when it was moved so often.
fn manifest_of(version: ObjectVersion, times: u8) -> Vec<u8> {
    let segment = SegmentRecord {
        version,
        bytes: 1,
        checksum: Some(7),
        coding: Coding::Copies { blocks: 1 },
        symbol_blocks: 1,
        places: vec![(0, BrickId(1)), (1, BrickId(2))],
        mark: u64::from(times),
    };
    Manifest { segments: vec![segment], losses: 1 }.to_bytes()
}

impl Bench {
    fn new() -> Bench {
        Bench {
            index: Index::new(&config()),
            now: Time(1),
            stores: vec![BTreeMap::new(); 3],
            asked: Vec::new(),
            answers: BTreeMap::new(),
            operations: 0,
            fails: false,
            me: ME,
        }
    }

    fn with(&mut self, step: impl FnOnce(&mut Index, Time, &mut Vec<IndexEffect>)) {
        let mut fx = Vec::new();
        step(&mut self.index, self.now, &mut fx);
        self.index.settle(&mut fx);
        self.index.check();
        for effect in fx {
            match effect {
                IndexEffect::Shard { shard, effect } => self.asked.push((shard, effect)),
                IndexEffect::Send { to, message: Message::IndexDone { operation, result } } => {
                    assert_eq!(to, self.me);
                    assert!(self.answers.insert(operation, *result).is_none(), "it was answered before");
                }
                IndexEffect::Send { message, .. } => panic!("{message:?}"),
            }
        }
    }

    fn ask(&mut self, request: IndexRequest) -> u64 {
        self.operations += 1;
        let (operation, me) = (self.operations, self.me);
        self.with(|index, now, fx| index.on_request(now, me, operation, request, fx));
        operation
    }

    /// One store does what it was asked to.
    fn serve(&mut self, at: usize) {
        let (shard, effect) = self.asked.remove(at);
        let store = &mut self.stores[usize::from(shard)];
        let event = match effect {
            ShardEffect::Read { token, pages } => {
                let page = |page: &Page| {
                    let range = store.range(page.from.clone()..page.to.clone());
                    range.take(page.limit as usize).map(|(key, value)| (key.clone(), value.clone())).collect()
                };
                ShardEvent::Read { token, result: Ok(pages.iter().map(page).collect()) }
            }
            ShardEffect::Store { token, .. } if self.fails => {
                ShardEvent::Stored { token, result: Err("the disk is full".to_owned()) }
            }
            ShardEffect::Store { token, puts } => {
                apply(store, puts);
                ShardEvent::Stored { token, result: Ok(()) }
            }
        };
        self.with(|index, now, fx| index.on_shard(now, shard, event, fx));
    }

    fn serve_all(&mut self) {
        while !self.asked.is_empty() {
            self.serve(0);
        }
    }

    fn call(&mut self, request: IndexRequest) -> Told {
        let operation = self.ask(request);
        self.serve_all();
        self.answers[&operation].clone()
    }

    fn open(&mut self, key: &str) -> ObjectVersion {
        match self.call(IndexRequest::Open { name: named(key), keep_ns: 0 }) {
            Ok(IndexReply::Opened { version, .. }) => version,
            other => panic!("{other:?}"),
        }
    }

    fn commit(&mut self, key: &str, version: ObjectVersion, condition: Condition) -> Told {
        let manifest = manifest_of(version, 0);
        self.call(IndexRequest::Commit {
            name: named(key),
            condition,
            info: info(version),
            manifest,
            parts: Vec::new(),
        })
    }

    fn visible(&mut self, key: &str) -> Option<ObjectVersion> {
        match self.call(IndexRequest::Look { name: named(key) }) {
            Ok(IndexReply::Found { info, manifest, .. }) => {
                let read = Manifest::read(&manifest, info.version).expect("a manifest");
                assert_eq!(read.segments[0].version, info.version);
                Some(info.version)
            }
            Err(IndexError::NoObject) => None,
            other => panic!("{other:?}"),
        }
    }

    fn gone(&mut self, versions: &[ObjectVersion]) -> Vec<ObjectVersion> {
        match self.call(IndexRequest::Gone { versions: versions.to_vec() }) {
            Ok(IndexReply::Gone { versions, .. }) => versions,
            other => panic!("{other:?}"),
        }
    }

    /// Of which of these only some segments are wanted, and which.
    fn partly(&mut self, versions: &[ObjectVersion]) -> Vec<Share> {
        match self.call(IndexRequest::Gone { versions: versions.to_vec() }) {
            Ok(IndexReply::Gone { partly, .. }) => partly,
            other => panic!("{other:?}"),
        }
    }

    fn manifest(&mut self, version: ObjectVersion) -> Result<ObjectVersion, IndexError> {
        self.whereabouts(version).map(|(of, _)| of)
    }

    /// Whose manifest says where a version's fragments are, and whether older versions have some of them.
    fn whereabouts(&mut self, version: ObjectVersion) -> Result<(ObjectVersion, bool), IndexError> {
        self.call(IndexRequest::Manifest { version, segment: None }).map(|reply| match reply {
            IndexReply::Manifest { of, is_held, .. } => (of, is_held),
            other => panic!("{other:?}"),
        })
    }

    /// Whose manifest says where a segment of a version is.
    fn whereabouts_of(&mut self, version: ObjectVersion, segment: u32) -> Result<ObjectVersion, IndexError> {
        self.call(IndexRequest::Manifest { version, segment: Some(segment) }).map(|reply| match reply {
            IndexReply::Manifest { of, .. } => of,
            other => panic!("{other:?}"),
        })
    }

    fn patch(&mut self, key: &str, version: ObjectVersion, base: ObjectVersion, shares: Vec<Share>) -> Told {
        let was = base::checksum(&manifest_of(base, 0));
        self.call(patch(key, version, (base, was), shares))
    }

    fn amend(&mut self, version: ObjectVersion, was: &[u8], manifest: &[u8]) -> Told {
        self.call(IndexRequest::Amend { version, was: base::checksum(was), manifest: manifest.to_vec() })
    }

    /// What a version that is visible shares, as it is stored.
    fn shared_by(&self, version: ObjectVersion) -> Vec<ObjectVersion> {
        let of_name = self.stores.iter().flatten().filter(|(key, _)| key[0] == b'n');
        let records =
            of_name.map(|(_, record)| keys::NameRecord::from_bytes(record).expect("a sound record"));
        let mut its = records.filter(|record| record.info.version == version);
        its.next().map(|record| record.shares).unwrap_or_default()
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.with(|index, now, fx| index.wake(now, fx));
        self.serve_all();
    }

    /// Its process is killed: what is being stored is stored, or not.
    fn crash(&mut self, is_stored: bool) {
        for (shard, effect) in self.asked.drain(..) {
            if let (ShardEffect::Store { puts, .. }, true) = (effect, is_stored) {
                apply(&mut self.stores[usize::from(shard)], puts);
            }
        }
        self.index = Index::new(&IndexConfig { drawn: 99, ..config() });
    }
}

fn patch(
    key: &str,
    version: ObjectVersion,
    (base, was): (ObjectVersion, u32),
    shares: Vec<Share>,
) -> IndexRequest {
    let manifest = manifest_of(version, 0);
    IndexRequest::Patch { name: named(key), base, was, shares, info: info(version), manifest, parts: vec![] }
}

fn share(version: ObjectVersion, spans: &[(u32, u32)]) -> Share {
    Share { version, segments: spans.iter().map(|&(from, to)| SegmentSpan { from, to }).collect() }
}

fn apply(store: &mut BTreeMap<Vec<u8>, Vec<u8>>, puts: Vec<Put>) {
    for (key, value) in puts {
        match value {
            Some(value) => drop(store.insert(key, value)),
            None => drop(store.remove(&key)),
        }
    }
}

#[test]
fn a_version_becomes_visible_and_gives_way_to_the_next() {
    let mut bench = Bench::new();
    let first = bench.open("k");
    assert_eq!((bench.visible("k"), bench.gone(&[first])), (None, vec![]));
    assert_eq!(bench.commit("k", first, Condition::Absent), Ok(IndexReply::Committed));
    let second = bench.open("k");
    assert_eq!(bench.commit("k", second, Condition::Absent), Err(IndexError::NotAsExpected));
    assert_eq!(bench.visible("k"), Some(first));
    assert_eq!(bench.commit("k", second, Condition::Is(first)), Ok(IndexReply::Committed));
    assert_eq!((bench.visible("k"), bench.gone(&[first, second])), (Some(second), vec![]));
    assert_eq!(bench.commit("k", first, Condition::Absent), Ok(IndexReply::Committed), "asked for again");
    assert_eq!(bench.visible("k"), Some(second));
    bench.pass(HOLD);
    assert_eq!(bench.gone(&[first, second]), [first]);
    assert_eq!(bench.commit("k", first, Condition::Always), Err(IndexError::Expired));
}

#[test]
fn a_putter_that_slept_too_long_has_lost_and_one_that_renews_has_not() {
    let mut bench = Bench::new();
    let (slept, renewed) = (bench.open("k"), bench.open("k"));
    bench.pass(HOLD / 2);
    assert_eq!(
        bench.call(IndexRequest::Hold { versions: vec![renewed], only_open: false }),
        Ok(IndexReply::Held { gone: vec![] })
    );
    bench.pass(HOLD / 2);
    assert_eq!(bench.gone(&[slept, renewed]), [slept]);
    let hold = IndexRequest::Hold { versions: vec![slept, renewed], only_open: false };
    assert_eq!(bench.call(hold), Ok(IndexReply::Held { gone: vec![slept] }));
    assert_eq!(bench.commit("k", slept, Condition::Always), Err(IndexError::Expired));
    assert_eq!(bench.commit("k", renewed, Condition::Always), Ok(IndexReply::Committed));
}

#[test]
fn a_version_that_is_removed_can_be_read_on_for_a_while() {
    let mut bench = Bench::new();
    let version = bench.open("k");
    bench.commit("k", version, Condition::Always).unwrap();
    let remove = IndexRequest::Remove { name: named("k"), version };
    assert_eq!(bench.call(remove.clone()), Ok(IndexReply::Removed));
    assert_eq!((bench.visible("k"), bench.gone(&[version])), (None, vec![]));
    assert_eq!(bench.call(remove), Ok(IndexReply::Removed), "asked for again");
    bench.pass(HOLD);
    assert_eq!(bench.gone(&[version]), [version]);
    assert!(
        bench.stores.iter().flatten().all(|(key, _)| key == b"c" || key == b"l"),
        "nothing is left of it"
    );
}

#[test]
fn a_version_is_kept_elsewhere_if_it_is_still_where_it_was_seen() {
    let mut bench = Bench::new();
    let version = bench.open("k");
    let (first, second) = (manifest_of(version, 0), manifest_of(version, 1));
    assert_eq!(bench.amend(version, &first, &second), Err(IndexError::NoObject), "nobody has seen it yet");
    assert_eq!(bench.call(IndexRequest::Manifest { version, segment: None }), Err(IndexError::NotAsExpected));
    bench.commit("k", version, Condition::Always).unwrap();
    assert_eq!(
        bench.call(IndexRequest::Manifest { version, segment: None }),
        Ok(IndexReply::Manifest { manifest: first.clone(), of: version, is_held: false })
    );
    assert_eq!(bench.amend(version, &first, &second), Ok(IndexReply::Amended));
    assert_eq!(bench.amend(version, &first, &second), Ok(IndexReply::Amended), "asked for again");
    assert_eq!(bench.amend(version, &first, &manifest_of(version, 3)), Err(IndexError::NotAsExpected));
    assert_eq!(
        bench.call(IndexRequest::Manifest { version, segment: None }),
        Ok(IndexReply::Manifest { manifest: second, of: version, is_held: false })
    );
    let remove = IndexRequest::Remove { name: named("k"), version };
    assert_eq!(bench.call(remove), Ok(IndexReply::Removed));
    // What it looks at is read before the version ends, and what it says is to be stored after that.
    bench.now += HOLD;
    let operation = bench.ask(IndexRequest::Amend {
        version,
        was: base::checksum(&manifest_of(version, 1)),
        manifest: first.clone(),
    });
    bench.with(|index, now, fx| index.wake(now, fx));
    bench.serve_all();
    assert_eq!(bench.answers[&operation], Err(IndexError::NotAsExpected), "it is to be looked at again");
    assert_eq!(bench.call(IndexRequest::Manifest { version, segment: None }), Err(IndexError::NoObject));
    assert_eq!(bench.amend(version, &first, &first), Err(IndexError::NoObject));
    assert_eq!(bench.gone(&[version]), [version]);
}

/// Found from outside: one message of any brick replaced the record of any object, whatever it held.
#[test]
fn a_brick_says_nothing_of_what_it_has_no_part_in() {
    let mut bench = Bench::new();
    let version = bench.open("k");
    bench.commit("k", version, Condition::Always).unwrap();
    let was = manifest_of(version, 0);
    let moved = |places: &[(u32, u32)]| {
        let mut manifest = Manifest::read(&was, version).expect("a manifest");
        manifest.segments[0].places =
            places.iter().map(|(symbol, brick)| (*symbol, BrickId(*brick))).collect();
        manifest.to_bytes()
    };
    let invalid = |told: Told| matches!(told, Err(IndexError::Invalid(_)));
    bench.index.set_staying([1, 2, 3].map(BrickId).into());
    assert!(invalid(bench.amend(version, &was, b"no manifest")));
    assert!(invalid(bench.amend(version, &was, &Manifest::default().to_bytes())), "of another object");
    assert!(invalid(bench.amend(version, &was, &moved(&[(0, 1), (1, 3)]))), "brick 2 has that");
    let amend =
        IndexRequest::Amend { version, was: base::checksum(&was), manifest: moved(&[(0, 3), (1, 3)]) };
    bench.me = NodeId::Brick(BrickId(3));
    assert!(invalid(bench.call(amend.clone())), "brick 3 has nothing of it");
    bench.me = NodeId::Gateway(base::GatewayId(1));
    assert!(invalid(bench.call(amend)), "gateways move nothing");
    bench.me = ME;
    assert_eq!(bench.amend(version, &was, &moved(&[(0, 3), (1, 2)])), Ok(IndexReply::Amended));
}

#[test]
fn what_is_no_manifest_makes_nothing_visible_and_one_that_is_stored_is_said_to_be_corrupt() {
    let mut bench = Bench::new();
    let version = bench.open("k");
    let commit = |manifest, bytes| IndexRequest::Commit {
        name: named("k"),
        condition: Condition::Always,
        info: ObjectInfo { bytes, ..info(version) },
        manifest,
        parts: Vec::new(),
    };
    let invalid = |told: Told| matches!(told, Err(IndexError::Invalid(_)));
    assert!(invalid(bench.call(commit(b"no manifest".to_vec(), 1))));
    assert!(invalid(bench.call(commit(manifest_of(version, 0), 2))), "its segments have another length");
    assert_eq!(bench.call(commit(manifest_of(version, 0), 1)), Ok(IndexReply::Committed));
    // An earlier release took what came.
    for store in &mut bench.stores {
        store
            .iter_mut()
            .filter(|(key, _)| **key == keys::manifest(version))
            .for_each(|(_, value)| value.push(0));
    }
    let was = [manifest_of(version, 0), vec![0]].concat();
    let told = bench.amend(version, &was, &manifest_of(version, 1));
    assert!(matches!(&told, Err(IndexError::Storage(why)) if why.contains("corrupt")), "{told:?}");
}

#[test]
fn what_a_patch_shares_is_kept_until_the_last_sharer_ends() {
    let mut bench = Bench::new();
    let first = bench.open("k");
    bench.commit("k", first, Condition::Always).unwrap();
    let second = bench.open("k");
    assert_eq!(
        bench.patch("k", second, first, vec![share(first, &[(0, 2), (3, 9)])]),
        Ok(IndexReply::Committed)
    );
    assert_eq!((bench.visible("k"), bench.manifest(first)), (Some(second), Ok(second)));
    assert_eq!(bench.partly(&[first]), [], "it may still be read");
    bench.pass(HOLD);
    assert_eq!(
        (bench.gone(&[first, second]), bench.partly(&[first])),
        (vec![], vec![share(first, &[(0, 2), (3, 9)])])
    );
    assert_eq!(bench.whereabouts(first), Ok((second, false)));
    let third = bench.open("k");
    let shares = vec![share(first, &[(3, 4)]), share(second, &[(2, 3)])];
    assert_eq!(bench.patch("k", third, second, shares.clone()), Ok(IndexReply::Committed));
    assert_eq!(bench.patch("k", third, second, shares), Ok(IndexReply::Committed), "asked for again");
    assert_eq!(bench.partly(&[first]), [share(first, &[(0, 2), (3, 9)])], "the second may still be read");
    assert_eq!(bench.whereabouts(first), Ok((third, true)));
    // What is held after a restart still knows what it shares.
    bench.crash(true);
    assert_eq!(bench.gone(&[first, second]), []);
    bench.pass(HOLD);
    assert_eq!(bench.gone(&[first, second, third]), []);
    assert_eq!(bench.partly(&[first, second]), [share(first, &[(3, 4)]), share(second, &[(2, 3)])]);
    assert_eq!(
        (bench.whereabouts(second), bench.whereabouts(first)),
        (Ok((third, false)), Ok((third, false)))
    );
    let remove = IndexRequest::Remove { name: named("k"), version: third };
    assert_eq!(bench.call(remove), Ok(IndexReply::Removed));
    assert_eq!(bench.gone(&[first, second, third]), []);
    bench.pass(HOLD);
    assert_eq!(bench.gone(&[first, second, third]), [first, second, third]);
    assert!(
        bench.stores.iter().flatten().all(|(key, _)| key == b"c" || key == b"l"),
        "nothing is left of them"
    );
}

#[test]
fn whoever_puts_or_reads_is_told_the_stream_of_the_bucket() {
    let mut bench = Bench::new();
    let streams = |bench: &mut Bench| {
        let opened = match bench.call(IndexRequest::Open { name: named("k"), keep_ns: 0 }) {
            Ok(IndexReply::Opened { version, stream, .. }) => {
                bench.commit("k", version, Condition::Always).unwrap();
                stream
            }
            other => panic!("{other:?}"),
        };
        match bench.call(IndexRequest::Look { name: named("k") }) {
            Ok(IndexReply::Found { stream, .. }) => (opened.0, stream.0),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(streams(&mut bench), (0, 0));
    let given = |stream| [(named("k").bucket, StreamId(stream))].into_iter().collect();
    bench.index.set_streams(&given(7));
    assert_eq!(streams(&mut bench), (7, 7));
    bench.index.set_streams(&[("another".to_owned(), StreamId(7))].into_iter().collect());
    assert_eq!(streams(&mut bench), (0, 0));
}

/// Found by reading: a segment was moved and then replaced by a patch while somebody read it, who was told of a version that does not have it.
#[test]
fn where_a_segment_is_says_the_last_version_that_has_it() {
    let mut bench = Bench::new();
    let first = bench.open("k");
    bench.commit("k", first, Condition::Always).unwrap();
    assert_eq!(bench.whereabouts_of(first, 5), Ok(first));
    let second = bench.open("k");
    bench.patch("k", second, first, vec![share(first, &[(0, 4), (5, 9)])]).unwrap();
    let third = bench.open("k");
    bench.patch("k", third, second, vec![share(first, &[(0, 2)])]).unwrap();
    assert_eq!(bench.manifest(first), Ok(third));
    let of = |bench: &mut Bench, segment| bench.whereabouts_of(first, segment);
    assert_eq!(
        [1, 2, 5, 8].map(|segment| of(&mut bench, segment)),
        [Ok(third), Ok(second), Ok(second), Ok(second)]
    );
    // The first one has it alone, and may still be read.
    assert_eq!([4, 9].map(|segment| of(&mut bench, segment)), [Ok(first), Ok(first)]);
    bench.pass(HOLD);
    assert_eq!([1, 5].map(|segment| of(&mut bench, segment)), [Ok(third), Err(IndexError::NoObject)]);
}

/// Found by reading: the base of a patch that shares nothing of the base itself was amended, and the patch said where fragments had been.
#[test]
fn what_a_later_version_took_over_is_not_amended_in_an_older_one() {
    let mut bench = Bench::new();
    let first = bench.open("k");
    bench.commit("k", first, Condition::Always).unwrap();
    let second = bench.open("k");
    bench.patch("k", second, first, vec![share(first, &[(0, 8)])]).unwrap();
    let third = bench.open("k");
    bench.patch("k", third, second, vec![share(first, &[(0, 8)])]).unwrap();
    assert_eq!(
        bench.amend(second, &manifest_of(second, 0), &manifest_of(second, 1)),
        Err(IndexError::NotAsExpected)
    );
    assert_eq!(bench.manifest(first), Ok(third));
    assert_eq!(bench.amend(third, &manifest_of(third, 0), &manifest_of(third, 1)), Ok(IndexReply::Amended));
}

#[test]
fn a_patch_shares_what_its_base_has_and_nothing_else() {
    let mut bench = Bench::new();
    let [first, other] = [bench.open("k"), bench.open("other")];
    bench.commit("k", first, Condition::Always).unwrap();
    bench.commit("other", other, Condition::Always).unwrap();
    let second = bench.open("k");
    let invalid = |told: Told| matches!(told, Err(IndexError::Invalid(_)));
    assert!(invalid(bench.patch("k", second, first, vec![share(other, &[(0, 1)])])), "of another object");
    assert!(invalid(bench.patch("k", second, first, vec![share(first, &[(2, 1)])])), "no segments");
    let moved = bench.call(patch("k", second, (first, 5), vec![share(first, &[(0, 1)])]));
    assert_eq!(moved, Err(IndexError::Moved));
    assert_eq!(bench.patch("k", second, other, vec![]), Err(IndexError::NotAsExpected));
    bench.patch("k", second, first, vec![share(first, &[(0, 4)])]).unwrap();
    let third = bench.open("k");
    assert!(
        invalid(bench.patch("k", third, second, vec![share(first, &[(3, 5)])])),
        "more than the base has"
    );
    assert_eq!(bench.patch("k", third, first, vec![share(first, &[(0, 1)])]), Err(IndexError::NotAsExpected));
    assert_eq!(bench.patch("k", third, second, vec![share(first, &[(3, 4)])]), Ok(IndexReply::Committed));
}

/// Fragments are moved while a patch is made visible that shares them: it must not say of them where they were.
#[test]
fn what_is_shared_stays_where_it_is_while_that_is_decided() {
    let mut bench = Bench::new();
    let first = bench.open("k");
    bench.commit("k", first, Condition::Always).unwrap();
    let second = bench.open("k");
    let [was, manifest] = [manifest_of(first, 0), manifest_of(first, 1)];
    let amend = IndexRequest::Amend { version: first, was: base::checksum(&was), manifest };
    // The patch comes first: the other one is to ask again, and is then refused.
    let patched = bench.ask(patch("k", second, (first, base::checksum(&was)), vec![share(first, &[(0, 1)])]));
    assert_eq!(bench.call(amend.clone()), Err(IndexError::Busy));
    bench.serve_all();
    assert_eq!(bench.answers[&patched], Ok(IndexReply::Committed));
    assert_eq!(bench.call(amend), Err(IndexError::NotAsExpected));
    // The other one comes first: the patch is to ask again, and learns that something was moved.
    let third = bench.open("k");
    let was = base::checksum(&manifest_of(second, 0));
    let amended = bench.ask(IndexRequest::Amend { version: second, was, manifest: manifest_of(second, 1) });
    let ask = patch("k", third, (second, was), vec![share(first, &[(0, 1)])]);
    let busy = bench.ask(ask.clone());
    assert_eq!(bench.answers[&busy], Err(IndexError::Busy));
    bench.serve_all();
    assert_eq!(bench.answers[&amended], Ok(IndexReply::Amended));
    assert_eq!(bench.call(ask), Err(IndexError::Moved));
}

#[test]
fn names_are_listed_in_order_whichever_shard_has_them() {
    let mut bench = Bench::new();
    let keys: Vec<String> = (0..20).map(|number| format!("k/{number:02}")).collect();
    for key in keys.iter().rev() {
        let version = bench.open(key);
        bench.commit(key, version, Condition::Always).unwrap();
    }
    let mut listed: Vec<String> = Vec::new();
    loop {
        let (bucket, prefix, after) = ("bucket".to_owned(), "k/1".to_owned(), listed.last().cloned());
        match bench.call(IndexRequest::List { bucket, prefix, after, limit: 3 }) {
            Ok(IndexReply::Listed { objects, more }) => {
                assert!(objects.len() <= 3);
                listed.extend(objects.into_iter().map(|(key, _)| key));
                if !more {
                    break;
                }
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(listed, keys[10..]);
}

#[test]
fn nothing_is_said_to_be_gone_by_an_index_that_did_not_give_it_out() {
    let mut bench = Bench::new();
    let version = bench.open("k");
    bench.stores.iter_mut().for_each(BTreeMap::clear);
    bench.crash(false);
    assert_eq!(bench.gone(&[version]), []);
}

#[test]
fn a_store_that_fails_is_tried_again_until_it_works() {
    let mut bench = Bench::new();
    bench.open("other");
    bench.fails = true;
    let operation = bench.ask(IndexRequest::Open { name: named("k"), keep_ns: 0 });
    bench.serve_all();
    assert!(!bench.answers.contains_key(&operation));
    assert!(matches!(
        bench.call(IndexRequest::Open { name: named("k"), keep_ns: 0 }),
        Err(IndexError::Storage(_))
    ));
    bench.fails = false;
    bench.pass(Duration::from_secs(1));
    assert!(matches!(bench.answers[&operation], Ok(IndexReply::Opened { .. })));
}

/// For so long a version is kept that a putter may go on with later.
const KEEP: Duration = Duration::from_secs(150);

#[test]
fn what_an_interrupted_put_has_stored_is_kept_and_becomes_part_of_a_later_version() {
    let mut bench = Bench::new();
    let keep_ns = KEEP.as_nanos() as u64;
    let open = |bench: &mut Bench, key| match bench.call(IndexRequest::Open { name: named(key), keep_ns }) {
        Ok(IndexReply::Opened { version, held_ns, .. }) => {
            assert_eq!(held_ns, keep_ns);
            version
        }
        other => panic!("{other:?}"),
    };
    let commit = |bench: &mut Bench, key, version: ObjectVersion, parts: &[ObjectVersion]| {
        let parts = parts.iter().map(|part| share(*part, &[(0, 2)])).collect();
        let manifest = manifest_of(version, 0);
        let condition = Condition::Always;
        bench.call(IndexRequest::Commit { name: named(key), condition, info: info(version), manifest, parts })
    };
    let (first, other) = (open(&mut bench, "k"), open(&mut bench, "else"));
    bench.pass(HOLD * 2);
    bench.crash(true);
    assert_eq!(bench.gone(&[first, other]), [], "they are kept, whoever sleeps");
    bench.pass(HOLD * 2);
    let second = open(&mut bench, "k");
    assert_eq!(
        commit(&mut bench, "k", second, &[other]),
        Err(IndexError::Expired),
        "that is of another name"
    );
    assert!(matches!(commit(&mut bench, "k", second, &[second]), Err(IndexError::Invalid(_))));
    assert_eq!(
        bench.call(IndexRequest::Hold { versions: vec![first], only_open: true }),
        Ok(IndexReply::Held { gone: vec![] })
    );
    bench.pass(KEEP - Duration::from_secs(1));
    assert_eq!(commit(&mut bench, "k", second, &[first]), Ok(IndexReply::Committed));
    assert_eq!(commit(&mut bench, "k", first, &[]), Err(IndexError::Expired), "it is a part of another one");
    assert_eq!(bench.visible("k"), Some(second));
    // Whoever has old notes learns that these are no more to be gone on with, although they are there.
    let hold = |only_open| IndexRequest::Hold { versions: vec![first, second], only_open };
    assert_eq!(bench.call(hold(true)), Ok(IndexReply::Held { gone: vec![first, second] }));
    bench.pass(KEEP);
    assert_eq!(bench.partly(&[first]), [share(first, &[(0, 2)])]);
    assert_eq!((bench.manifest(first), bench.gone(&[first, other])), (Ok(second), vec![other]));
    let third = open(&mut bench, "k");
    assert_eq!(commit(&mut bench, "k", third, &[first]), Err(IndexError::Expired));
    assert_eq!(commit(&mut bench, "k", third, &[]), Ok(IndexReply::Committed));
    bench.pass(KEEP);
    assert_eq!(bench.gone(&[first, second]), [first, second]);
}

#[test]
fn what_an_interrupted_patch_has_stored_becomes_part_of_the_next_one_beside_what_its_base_has() {
    let mut bench = Bench::new();
    let keep_ns = KEEP.as_nanos() as u64;
    let open = |bench: &mut Bench, key| match bench.call(IndexRequest::Open { name: named(key), keep_ns }) {
        Ok(IndexReply::Opened { version, .. }) => version,
        other => panic!("{other:?}"),
    };
    // The first try was opened before its base: the versions that are shared have to be told in order all the same.
    let (tried, other) = (open(&mut bench, "k"), open(&mut bench, "else"));
    let visible = |bench: &mut Bench| {
        let version = bench.open("k");
        assert_eq!(bench.commit("k", version, Condition::Always), Ok(IndexReply::Committed));
        version
    };
    let base = visible(&mut bench);
    let was = base::checksum(&manifest_of(base, 0));
    let patch_with =
        |version, part: ObjectVersion| match patch("k", version, (base, was), vec![share(base, &[(0, 1)])]) {
            IndexRequest::Patch { name, base, was, shares, info, manifest, .. } => {
                let parts = vec![share(part, &[(1, 2)])];
                IndexRequest::Patch { name, base, was, shares, info, manifest, parts }
            }
            other => panic!("{other:?}"),
        };
    let next = open(&mut bench, "k");
    assert!(matches!(bench.call(patch_with(next, next)), Err(IndexError::Invalid(_))));
    assert_eq!(bench.call(patch_with(next, other)), Err(IndexError::Expired), "that is of another name");
    assert_eq!(bench.call(patch_with(next, base)), Err(IndexError::Expired), "that is visible");
    assert_eq!(bench.call(patch_with(next, tried)), Ok(IndexReply::Committed));
    assert_eq!(bench.visible("k"), Some(next));
    assert_eq!(bench.shared_by(next), [tried, base]);
    bench.crash(true);
    // After a restart, which begins with the first question, all that was held is held for another while.
    assert_eq!(bench.visible("k"), Some(next));
    bench.pass(KEEP);
    assert_eq!(bench.partly(&[tried, base]), [share(tried, &[(1, 2)]), share(base, &[(0, 1)])]);
    let later = visible(&mut bench);
    bench.pass(KEEP * 2);
    assert_eq!(bench.visible("k"), Some(later));
    assert_eq!(bench.gone(&[tried, base, next]), [tried, base, next]);
}

#[test]
fn nothing_is_kept_for_ever() {
    let open = IndexRequest::Open { name: named("k"), keep_ns: KEEP_MAX_NS + 1 };
    assert!(matches!(Bench::new().call(open), Err(IndexError::Invalid(_))));
}

/// What happens to an index.
#[derive(Clone, Debug)]
enum Step {
    Open {
        name: u8,
        is_kept: bool,
    },
    /// With so many other versions of that name as parts, if there are as many.
    Commit {
        opened: usize,
        condition: u8,
        parts: usize,
    },
    Remove(u8),
    Look(u8),
    Amend {
        opened: usize,
        times: u8,
    },
    /// What was opened takes the place of what is visible, and shares that and what that shares. With so many other versions of that name as parts.
    Patch {
        opened: usize,
        parts: usize,
    },
    Serve(usize),
    Pass(u8),
    Crash(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..3_u8, any::<bool>()).prop_map(|(name, is_kept)| Step::Open { name, is_kept }),
        4 => (any::<usize>(), 0..3_u8, 0..3_usize).prop_map(|(opened, condition, parts)| Step::Commit { opened, condition, parts }),
        2 => (0..3_u8).prop_map(Step::Remove),
        2 => (0..3_u8).prop_map(Step::Look),
        3 => (any::<usize>(), 0..3_u8).prop_map(|(opened, times)| Step::Amend { opened, times }),
        4 => (any::<usize>(), 0..3_usize).prop_map(|(opened, parts)| Step::Patch { opened, parts }),
        12 => any::<usize>().prop_map(Step::Serve),
        1 => (1..80_u8).prop_map(Step::Pass),
        1 => any::<bool>().prop_map(Step::Crash),
    ]
}

/// The last so many others that were opened for that name.
fn parts_of(opened: &[(u8, ObjectVersion)], name: u8, version: ObjectVersion, count: usize) -> Vec<Share> {
    let others = opened.iter().filter(|(of, other)| *of == name && *other != version);
    let mut parts: Vec<Share> = others.rev().take(count).map(|(_, other)| share(*other, &[(0, 1)])).collect();
    parts.sort_unstable_by_key(|part| part.version);
    parts
}

proptest! {
    /// Whatever is answered when, and whenever it is killed: what is visible was committed, what was acknowledged is there until another one is
    /// made visible or it is removed, and what is said to be gone is never seen again.
    #[test]
    fn what_is_acknowledged_stays_and_what_is_gone_never_comes_back(steps in prop::collection::vec(step(), 1..120)) {
        let mut bench = Bench::new();
        let key = |number: u8| ["a", "b", "c"][usize::from(number)];
        let mut opens: BTreeMap<u64, u8> = BTreeMap::new();
        let mut opened: Vec<(u8, ObjectVersion)> = Vec::new();
        let mut commits: BTreeMap<u64, (u8, ObjectVersion)> = BTreeMap::new();
        let mut gone: BTreeSet<ObjectVersion> = BTreeSet::new();
        // What each version shares, once it may be visible.
        let mut shares: BTreeMap<ObjectVersion, Vec<ObjectVersion>> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Open { name, is_kept } => {
                    let keep_ns = if is_kept { KEEP.as_nanos() as u64 } else { 0 };
                    let operation = bench.ask(IndexRequest::Open { name: named(key(name)), keep_ns });
                    opens.insert(operation, name);
                }
                Step::Commit { opened: at, condition, parts } if !opened.is_empty() => {
                    let (name, version) = opened[at % opened.len()];
                    let condition = match condition {
                        0 => Condition::Always,
                        1 => Condition::Absent,
                        _ => Condition::Is(opened[at % 7 % opened.len()].1),
                    };
                    let manifest = manifest_of(version, 0);
                    let name_of = named(key(name));
                    let parts = parts_of(&opened, name, version, parts);
                    shares.entry(version).or_default().extend(parts.iter().map(|part| part.version));
                    let operation =
                        bench.ask(IndexRequest::Commit { name: name_of, condition, info: info(version), manifest, parts });
                    commits.insert(operation, (name, version));
                }
                Step::Remove(name) => {
                    if let Some((_, version)) = opened.iter().rev().find(|(of, _)| *of == name) {
                        bench.ask(IndexRequest::Remove { name: named(key(name)), version: *version });
                    }
                }
                Step::Look(name) => drop(bench.ask(IndexRequest::Look { name: named(key(name)) })),
                Step::Amend { opened: at, times } if !opened.is_empty() => {
                    let version = opened[at % opened.len()].1;
                    let (was, manifest) = (base::checksum(&manifest_of(version, times)), manifest_of(version, times + 1));
                    bench.ask(IndexRequest::Amend { version, was, manifest });
                }
                Step::Patch { opened: at, parts } if !opened.is_empty() => {
                    let (name, version) = opened[at % opened.len()];
                    // What is visible, as somebody who looked a moment ago knows it.
                    let of_name = |(key, value): (&Vec<u8>, &Vec<u8>)| {
                        (*key == keys::name(&named(["a", "b", "c"][usize::from(name)]))).then(|| value.clone())
                    };
                    let record = bench.stores.iter().flatten().find_map(of_name);
                    let Some(record) = record.and_then(|record| keys::NameRecord::from_bytes(&record).ok()) else { continue };
                    let base = record.info.version;
                    let manifest = |(key, value): (&Vec<u8>, &Vec<u8>)| (*key == keys::manifest(base)).then(|| base::checksum(value));
                    let Some(was) = bench.stores.iter().flatten().find_map(manifest) else { continue };
                    // Some of what its base shares it does not share any more.
                    let mut shared: Vec<ObjectVersion> = record.shares.iter().copied().filter(|of| !of.0.is_multiple_of(3)).chain((version.0 % 4 > 0).then_some(base)).collect();
                    shared.sort_unstable();
                    let all = shared.iter().map(|of| share(*of, &[(0, 1)])).collect();
                    let mut request = patch(key(name), version, (base, was), all);
                    if let IndexRequest::Patch { parts: of, .. } = &mut request {
                        *of = parts_of(&opened, name, version, parts);
                        shared.extend(of.iter().map(|part| part.version));
                    }
                    let operation = bench.ask(request);
                    commits.insert(operation, (name, version));
                    shares.entry(version).or_default().extend(shared);
                }
                Step::Serve(at) if !bench.asked.is_empty() => bench.serve(at % bench.asked.len()),
                Step::Pass(seconds) => {
                    bench.now += Duration::from_secs(u64::from(seconds));
                    bench.with(|index, now, fx| index.wake(now, fx));
                }
                Step::Crash(is_stored) => bench.crash(is_stored),
                Step::Commit { .. } | Step::Amend { .. } | Step::Patch { .. } | Step::Serve(_) => {}
            }
            for (operation, name) in core::mem::take(&mut opens) {
                match bench.answers.get(&operation) {
                    Some(Ok(IndexReply::Opened { version, .. })) => {
                        prop_assert!(opened.iter().all(|(_, other)| other != version), "{version:?} came twice");
                        opened.push((name, *version));
                    }
                    Some(other) => prop_assert!(false, "{other:?}"),
                    None => drop(opens.insert(operation, name)),
                }
            }
            for answer in bench.answers.values() {
                if let Ok(IndexReply::Found { info, .. }) = answer {
                    prop_assert!(commits.values().any(|(_, version)| *version == info.version));
                }
            }
        }
        bench.serve_all();
        for (name, number) in [("a", 0), ("b", 1), ("c", 2)] {
            let visible = bench.visible(name);
            let all: Vec<ObjectVersion> = opened.iter().map(|(_, version)| *version).collect();
            gone.extend(bench.gone(&all));
            prop_assert!(visible.is_none_or(|version| !gone.contains(&version)));
            prop_assert!(visible.is_none_or(|version| opened.contains(&(number, version))));
            for shared in visible.map(|version| bench.shared_by(version)).unwrap_or_default() {
                prop_assert!(!gone.contains(&shared), "{shared} is shared, and gone");
                prop_assert_eq!(bench.manifest(shared), Ok(visible.expect("it shares")));
            }
        }
        // All that is not visible is gone in the end, and nothing is left of it.
        bench.pass(KEEP);
        bench.pass(KEEP);
        let visible: BTreeSet<ObjectVersion> = ["a", "b", "c"].iter().filter_map(|name| bench.visible(name)).collect();
        let all: Vec<ObjectVersion> = opened.iter().map(|(_, version)| *version).collect();
        let mut kept = visible.clone();
        kept.extend(visible.iter().flat_map(|version| bench.shared_by(*version)));
        prop_assert!(kept.iter().all(|version| visible.contains(version) || shares.values().any(|shared| shared.contains(version))));
        let expected: BTreeSet<ObjectVersion> = all.iter().copied().filter(|version| !kept.contains(version)).collect();
        prop_assert_eq!(bench.gone(&all).into_iter().collect::<BTreeSet<_>>(), expected);
        let records = bench.stores.iter().flatten().filter(|(key, _)| key[0] == b'v' || key[0] == b'h').count();
        prop_assert_eq!(records, visible.len());
        let of_sharers = bench.stores.iter().flatten().filter(|(key, _)| key[0] == b's').count();
        prop_assert_eq!(of_sharers, visible.iter().map(|version| bench.shared_by(*version).len()).sum::<usize>());
    }
}

/// Found by reading: it gave numbers out once more, and bricks had fragments of other content under these.
#[test]
fn an_index_whose_files_are_put_back_gives_no_version_out_twice_and_judges_none_that_it_does_not_know() {
    let mut bench = Bench::new();
    let before = bench.open("a");
    assert_eq!(bench.commit("a", before, Condition::Absent), Ok(IndexReply::Committed));
    let copy = bench.stores.clone();
    let since: Vec<ObjectVersion> = (0..20).map(|_| bench.open("a")).collect();
    bench.crash(false);
    bench.stores = copy;
    let again: Vec<ObjectVersion> = (0..20).map(|_| bench.open("a")).collect();
    assert!(again.iter().all(|version| !since.contains(version) && *version > since[19]), "{again:?}");
    assert_eq!(bench.gone(&since), [], "bricks keep what it does not know");
    assert_eq!(bench.visible("a"), Some(before));
}
