//! Fragments that lie together and are given back one by one: none takes its neighbours with it, and in the end nothing is left of them, whatever
//! the disk forgets in between.

use crate::common::{World, payload, words};
use base::{ObjectVersion, Stamp};
use proptest::prelude::*;
use wire::disk::{Command, Reply, StoreError, Token};
use wire::{FragmentId, Span};

/// Versions whose fragments are put and given back: of several packs.
const VERSIONS: u64 = 600;

/// What a fragment's room may hold: its content, or nothing.
type Content = Option<u64>;

#[derive(Clone, Debug)]
struct Room {
    span: Span,
    /// What it holds for certain, and what it was told to hold since.
    certain: Content,
    since: Vec<(Token, Content)>,
}

struct Test {
    world: World,
    rooms: Vec<Room>,
    words: u64,
    refused: u64,
}

impl Test {
    fn new(disk_bytes: u64, seed: u64) -> Test {
        let room = |version| {
            let fragment = FragmentId { version: ObjectVersion(7 << 36 | version), segment: 0, index: 0 };
            let blocks = [1, 1, 2, 3, 8][version as usize * 7 % 5];
            Room { span: fragment.span(blocks), certain: None, since: Vec::new() }
        };
        let world = World::new(disk_bytes, 256 << 10, seed);
        Test { world, rooms: (0..VERSIONS).map(room).collect(), words: 0, refused: 0 }
    }

    fn act(&mut self) {
        match self.world.rng.u32(..100) {
            draw @ 0..55 => {
                let at = self.world.rng.usize(..self.rooms.len());
                self.change(at, draw < 35);
            }
            55..97 => drop(self.world.complete() || self.world.wake()),
            97..99 => self.look(),
            _ => self.crash(),
        }
        self.hear();
    }

    fn change(&mut self, at: usize, is_put: bool) {
        let (span, token) = (self.rooms[at].span, self.world.next_token());
        self.words += u64::from(is_put);
        self.rooms[at].since.push((token, is_put.then_some(self.words)));
        let count = span.count as usize;
        self.world.command(match is_put {
            true => {
                let (stamps, payload) = (vec![Stamp(1); count], payload(vec![self.words; count]));
                Command::Mend { token, span, width: 1, stamps, payload }
            }
            false => Command::Erase { token, span },
        });
    }

    /// Takes in what the store answered.
    fn hear(&mut self) {
        for reply in std::mem::take(&mut self.world.replies) {
            let Reply::Staged { token, result } = reply else { continue };
            let is_its = |room: &&mut Room| room.since.iter().any(|(of, _)| *of == token);
            let room = self.rooms.iter_mut().find(is_its).expect("somebody asked");
            let at = room.since.iter().position(|(of, _)| *of == token).expect("just seen");
            match result {
                Ok(()) => room.certain = room.since.drain(..=at).next_back().expect("just seen").1,
                Err(StoreError::NoSpace | StoreError::NoRoomYet | StoreError::Busy) => {
                    self.refused += 1;
                    room.since.remove(at);
                }
                Err(error) => panic!("{error:?}"),
            }
        }
    }

    fn read(&mut self, span: Span) -> Content {
        let read = self.world.read(span, 1).expect("it reads");
        assert_eq!(read.unreadable, []);
        let stamps: Vec<bool> = read.stamps.iter().map(|stamp| stamp.is_zero()).collect();
        assert!(stamps.iter().all(|is_zero| *is_zero == stamps[0]), "whole or not at all: {stamps:?}");
        let words = words(&read.content);
        assert_eq!(words, vec![words[0]; words.len()]);
        assert_eq!(stamps[0], words[0] == 0);
        (words[0] != 0).then_some(words[0])
    }

    /// Compares all rooms. Nothing is under way.
    fn look(&mut self) {
        self.world.run(false);
        self.hear();
        for at in 0..self.rooms.len() {
            let room = self.rooms[at].clone();
            assert!(room.since.is_empty(), "{room:?}");
            assert_eq!(self.read(room.span), room.certain, "{room:?}");
        }
    }

    fn crash(&mut self) {
        self.hear();
        self.world.crash().expect("it opens");
        for at in 0..self.rooms.len() {
            let room = self.rooms[at].clone();
            let found = self.read(room.span);
            let may_be = room.since.iter().any(|(_, content)| *content == found);
            assert!(found == room.certain || may_be, "{found:?} in {room:?}");
            self.rooms[at] = Room { certain: found, since: Vec::new(), ..room };
        }
    }

    /// All that is there is given back, over crashes, beside puts that some of these undo: nothing is left.
    fn finish(mut self) {
        self.look();
        for crashes_left in (0..4).rev() {
            for at in 0..self.rooms.len() {
                if self.rooms[at].certain.is_some() {
                    self.change(at, false);
                    let _ = self.world.rng.bool() && self.world.complete();
                }
            }
            if crashes_left == 0 {
                break;
            }
            for _ in 0..5 {
                let at = self.world.rng.usize(..self.rooms.len());
                self.change(at, true);
                let _ = self.world.complete() || self.world.wake();
            }
            for _ in 0..self.world.rng.usize(..300) {
                let _ = self.world.complete() || self.world.wake();
            }
            self.crash();
        }
        self.look();
        assert!(self.rooms.iter().all(|room| room.certain.is_none()), "an erasure was refused");
        self.world.run(true);
        assert_eq!(self.world.store.stretches(None), []);
        assert_eq!(self.world.store.space().used_bytes, 0);
        assert_eq!(self.world.store.stats().pages.count, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_fragment_goes_alone_and_all_of_them_go_without_a_trace(seed: u64) {
        let mut test = Test::new(16 << 20, seed);
        (0..1500).for_each(|_| test.act());
        test.finish();
    }

    /// A disk on which not all of them have room.
    #[test]
    fn on_a_full_disk_as_well(seed: u64) {
        let mut test = Test::new(3 << 20, seed);
        (0..2500).for_each(|_| test.act());
        prop_assert!(test.refused > 0);
        test.finish();
    }
}
