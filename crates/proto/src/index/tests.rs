//! The index over a store that answers when it is told to, and forgets what it has not stored.

use super::*;
use base::ClientId;
use proptest::prelude::*;
use wire::Condition;

const HOLD: Duration = Duration::from_secs(60);
const ME: NodeId = NodeId::Client(ClientId(1));

/// An index, its stores, and what it answered.
struct Bench {
    index: Index,
    now: Time,
    stores: Vec<BTreeMap<Vec<u8>, Vec<u8>>>,
    asked: Vec<(u16, ShardEffect)>,
    answers: BTreeMap<u64, Told>,
    operations: u64,
    fails: bool,
}

fn config() -> IndexConfig {
    IndexConfig { shards: 3, drawn: 77, hold: HOLD }
}

fn named(key: &str) -> ObjectName {
    ObjectName { bucket: "bucket".to_owned(), key: key.to_owned() }
}

fn info(version: ObjectVersion) -> ObjectInfo {
    ObjectInfo { version, bytes: version.0, checksum: 7, put_ms: 0 }
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
                    assert_eq!(to, ME);
                    assert!(self.answers.insert(operation, *result).is_none(), "it was answered before");
                }
                IndexEffect::Send { message, .. } => panic!("{message:?}"),
            }
        }
    }

    fn ask(&mut self, request: IndexRequest) -> u64 {
        self.operations += 1;
        let operation = self.operations;
        self.with(|index, now, fx| index.on_request(now, ME, operation, request, fx));
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
        match self.call(IndexRequest::Open { name: named(key) }) {
            Ok(IndexReply::Opened { version, .. }) => version,
            other => panic!("{other:?}"),
        }
    }

    fn commit(&mut self, key: &str, version: ObjectVersion, condition: Condition) -> Told {
        let manifest = version.0.to_le_bytes().to_vec();
        self.call(IndexRequest::Commit { name: named(key), condition, info: info(version), manifest })
    }

    fn visible(&mut self, key: &str) -> Option<ObjectVersion> {
        match self.call(IndexRequest::Look { name: named(key) }) {
            Ok(IndexReply::Found { info, manifest, .. }) => {
                assert!(manifest.starts_with(&info.version.0.to_le_bytes()));
                Some(info.version)
            }
            Err(IndexError::NoObject) => None,
            other => panic!("{other:?}"),
        }
    }

    fn gone(&mut self, versions: &[ObjectVersion]) -> Vec<ObjectVersion> {
        match self.call(IndexRequest::Gone { versions: versions.to_vec() }) {
            Ok(IndexReply::Gone { versions }) => versions,
            other => panic!("{other:?}"),
        }
    }

    fn amend(&mut self, version: ObjectVersion, was: &[u8], manifest: &[u8]) -> Told {
        self.call(IndexRequest::Amend { version, was: base::checksum(was), manifest: manifest.to_vec() })
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
        bench.call(IndexRequest::Hold { versions: vec![renewed] }),
        Ok(IndexReply::Held { gone: vec![] })
    );
    bench.pass(HOLD / 2);
    assert_eq!(bench.gone(&[slept, renewed]), [slept]);
    let hold = IndexRequest::Hold { versions: vec![slept, renewed] };
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
    assert!(bench.stores.iter().flatten().all(|(key, _)| key == b"c"), "nothing is left of it");
}

#[test]
fn a_version_is_kept_elsewhere_if_it_is_still_where_it_was_seen() {
    let mut bench = Bench::new();
    let version = bench.open("k");
    let (first, second) = (version.0.to_le_bytes().to_vec(), [&version.0.to_le_bytes()[..], b"2"].concat());
    assert_eq!(bench.amend(version, &first, &second), Err(IndexError::NoObject), "nobody has seen it yet");
    assert_eq!(bench.call(IndexRequest::Manifest { version }), Err(IndexError::NotAsExpected));
    bench.commit("k", version, Condition::Always).unwrap();
    assert_eq!(
        bench.call(IndexRequest::Manifest { version }),
        Ok(IndexReply::Manifest { manifest: first.clone() })
    );
    assert_eq!(bench.amend(version, &first, &second), Ok(IndexReply::Amended));
    assert_eq!(bench.amend(version, &first, &second), Ok(IndexReply::Amended), "asked for again");
    assert_eq!(bench.amend(version, &first, b"3"), Err(IndexError::NotAsExpected));
    assert_eq!(bench.call(IndexRequest::Manifest { version }), Ok(IndexReply::Manifest { manifest: second }));
    let remove = IndexRequest::Remove { name: named("k"), version };
    assert_eq!(bench.call(remove), Ok(IndexReply::Removed));
    // What it looks at is read before the version ends, and what it says is to be stored after that.
    bench.now += HOLD;
    let operation =
        bench.ask(IndexRequest::Amend { version, was: base::checksum(b"2"), manifest: first.clone() });
    bench.with(|index, now, fx| index.wake(now, fx));
    bench.serve_all();
    assert_eq!(bench.answers[&operation], Err(IndexError::NoObject));
    assert_eq!(bench.call(IndexRequest::Manifest { version }), Err(IndexError::NoObject));
    assert_eq!(bench.amend(version, &first, &first), Err(IndexError::NoObject));
    assert_eq!(bench.gone(&[version]), [version]);
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
    let operation = bench.ask(IndexRequest::Open { name: named("k") });
    bench.serve_all();
    assert!(!bench.answers.contains_key(&operation));
    assert!(matches!(bench.call(IndexRequest::Open { name: named("k") }), Err(IndexError::Storage(_))));
    bench.fails = false;
    bench.pass(Duration::from_secs(1));
    assert!(matches!(bench.answers[&operation], Ok(IndexReply::Opened { .. })));
}

/// What happens to an index.
#[derive(Clone, Debug)]
enum Step {
    Open(u8),
    Commit { opened: usize, condition: u8 },
    Remove(u8),
    Look(u8),
    Amend { opened: usize, times: u8 },
    Serve(usize),
    Pass(u8),
    Crash(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..3_u8).prop_map(Step::Open),
        4 => (any::<usize>(), 0..3_u8).prop_map(|(opened, condition)| Step::Commit { opened, condition }),
        2 => (0..3_u8).prop_map(Step::Remove),
        2 => (0..3_u8).prop_map(Step::Look),
        3 => (any::<usize>(), 0..3_u8).prop_map(|(opened, times)| Step::Amend { opened, times }),
        12 => any::<usize>().prop_map(Step::Serve),
        1 => (1..80_u8).prop_map(Step::Pass),
        1 => any::<bool>().prop_map(Step::Crash),
    ]
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
        for step in steps {
            match step {
                Step::Open(name) => {
                    let operation = bench.ask(IndexRequest::Open { name: named(key(name)) });
                    opens.insert(operation, name);
                }
                Step::Commit { opened: at, condition } if !opened.is_empty() => {
                    let (name, version) = opened[at % opened.len()];
                    let condition = match condition {
                        0 => Condition::Always,
                        1 => Condition::Absent,
                        _ => Condition::Is(opened[at % 7 % opened.len()].1),
                    };
                    let manifest = version.0.to_le_bytes().to_vec();
                    let name_of = named(key(name));
                    let operation =
                        bench.ask(IndexRequest::Commit { name: name_of, condition, info: info(version), manifest });
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
                    let manifest = |times: u8| [&version.0.to_le_bytes()[..], &vec![1; usize::from(times)]].concat();
                    let (was, manifest) = (base::checksum(&manifest(times)), manifest(times + 1));
                    bench.ask(IndexRequest::Amend { version, was, manifest });
                }
                Step::Serve(at) if !bench.asked.is_empty() => bench.serve(at % bench.asked.len()),
                Step::Pass(seconds) => {
                    bench.now += Duration::from_secs(u64::from(seconds));
                    bench.with(|index, now, fx| index.wake(now, fx));
                }
                Step::Crash(is_stored) => bench.crash(is_stored),
                Step::Commit { .. } | Step::Amend { .. } | Step::Serve(_) => {}
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
        }
        // All that is not visible is gone in the end, and nothing is left of it.
        bench.pass(HOLD);
        bench.pass(HOLD);
        let visible: BTreeSet<ObjectVersion> = ["a", "b", "c"].iter().filter_map(|name| bench.visible(name)).collect();
        let all: Vec<ObjectVersion> = opened.iter().map(|(_, version)| *version).collect();
        let expected: BTreeSet<ObjectVersion> = all.iter().copied().filter(|version| !visible.contains(version)).collect();
        prop_assert_eq!(bench.gone(&all).into_iter().collect::<BTreeSet<_>>(), expected);
        let kept = bench.stores.iter().flatten().filter(|(key, _)| key[0] == b'v' || key[0] == b'h').count();
        prop_assert_eq!(kept, visible.len());
    }
}
