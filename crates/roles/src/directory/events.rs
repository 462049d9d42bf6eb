//! What is remembered of what happened to bricks: the latest [`news`](super::news), for `brickwork events`.
//!
//! A record an event, in a ring of [`wire::Events::KEPT`] keys: the store has never more of them, whatever happens, and nor has what
//! waits for a store that fails. An event is stored in the write of what it tells of, or of the last of the views, and is told to nobody before that. So a number
//! that a crash takes back was told to nobody, and is given again.
//!
//! Nothing rests on events: a record that cannot be read is passed over.

use super::event::Put;
use super::news::News;
use super::status::page;
use base::{ClusterTime, Time};
use core::ops::Bound::{Excluded, Included};
use std::collections::BTreeMap;
use wire::{Event, Reader, Wire};

/// The first byte of the keys.
pub(super) const PREFIX: u8 = b'e';

#[derive(Debug)]
pub(super) struct Events {
    /// The latest, by number; some of them may not be stored yet.
    latest: BTreeMap<u64, Event>,
    /// The number of the next one.
    next: u64,
    /// The number of the last one that is stored; 0 for none.
    stored: u64,
}

impl Default for Events {
    fn default() -> Events {
        Events { latest: BTreeMap::new(), next: 1, stored: 0 }
    }
}

impl Events {
    /// An event that the store holds.
    pub(super) fn take_in(&mut self, value: &[u8]) {
        // A later release may have written more behind it.
        if let Ok(event) = Event::decode(&mut Reader::new(value)) {
            self.stored = self.stored.max(event.number);
            self.next = self.stored + 1;
            self.latest.insert(event.number, event);
        }
    }

    /// The store of a cluster with bricks holds no event: it was made anew, or is of an earlier release. Of directories before, if any, no
    /// event can have a number as high as the cluster's time, as that has more than 100,000 ticks a second.
    pub(super) fn begin_at(&mut self, time: ClusterTime) {
        if self.latest.is_empty() {
            self.next = self.next.max(time.0);
        }
    }

    /// Something happened: its number, and the put that makes it durable.
    pub(super) fn note(&mut self, now: Time, news: &News) -> (u64, Put) {
        let number = self.next;
        self.next += 1;
        let event = Event {
            number,
            at: now,
            brick: news.brick(),
            kind: news.kind().to_owned(),
            cause: news.cause().map_or("", |cause| cause.name()).to_owned(),
            is_trouble: news.is_trouble(),
            text: line(&news.to_string()),
        };
        let put = (key(number), Some(event.to_bytes()));
        self.latest.insert(number, event);
        if self.latest.len() > wire::Events::KEPT {
            self.latest.pop_first();
        }
        (number, put)
    }

    /// All up to this one are stored, and may be told.
    pub(super) fn on_stored(&mut self, number: u64) {
        self.stored = self.stored.max(number);
    }

    /// Those after the number `after`: `most` at most, until they have so many bytes.
    pub(super) fn page(&self, after: u64, most: u32, bytes: usize) -> wire::Events {
        let told = self.latest.range(..=self.stored);
        let oldest = told.clone().next().map_or(0, |(number, _)| *number);
        let newest = told.last().map_or(0, |(number, _)| *number);
        let following =
            (after < self.stored).then(|| self.latest.range((Excluded(after), Included(self.stored))));
        let following = following.into_iter().flatten().map(|(_, event)| event.clone());
        wire::Events { events: page(following.take(most as usize), bytes), oldest, newest }
    }
}

/// Of the event's place in the ring.
fn key(number: u64) -> Vec<u8> {
    let mut key = vec![PREFIX];
    ((number % wire::Events::KEPT as u64) as u16).append(&mut key);
    key
}

/// One line that is not too long: what bricks say may be anything.
fn line(text: &str) -> String {
    const CUT: &str = "...";
    let mut line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.len() > Event::TEXT_BYTES_MAX {
        line.truncate(line.floor_char_boundary(Event::TEXT_BYTES_MAX - CUT.len()));
        line.push_str(CUT);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::BrickId;

    fn news(address: String) -> News {
        News::Came { brick: BrickId(3), address }
    }

    #[test]
    fn a_text_has_one_line_and_is_cut_between_two_characters() {
        for (length, character) in [(600, 'x'), (200, 'ä'), (300, 'ä'), (171, '€'), (300, '🧱')] {
            let line = line(&character.to_string().repeat(length));
            assert!(line.len() <= Event::TEXT_BYTES_MAX, "{} bytes", line.len());
            assert_eq!(line.ends_with("..."), length * character.len_utf8() > Event::TEXT_BYTES_MAX);
        }
        let mut events = Events::default();
        events.note(Time(5), &news("a\nb\u{1b}[2J".to_owned()));
        assert!(events.latest[&1].text.ends_with("at a b [2J"), "{:?}", events.latest[&1]);
    }

    #[test]
    fn a_record_that_cannot_be_read_is_passed_over_and_one_with_more_in_it_is_read() {
        let mut writer = Events::default();
        let [first, second] = [(); 2].map(|()| writer.note(Time(5), &news("a:1".to_owned())).1.1.unwrap());
        let mut events = Events::default();
        events.take_in(&first[..first.len() - 1]);
        events.take_in(&[second, vec![9, 9]].concat());
        assert_eq!(events.page(0, 9, 900).events, [writer.latest[&2].clone()]);
        assert_eq!(events.note(Time(6), &news("a:1".to_owned())).0, 3);
    }

    #[test]
    fn what_is_told_is_stored() {
        let mut events = Events::default();
        (0..3).for_each(|_| drop(events.note(Time(5), &news("a:1".to_owned()))));
        assert_eq!(events.page(0, 9, 900), wire::Events::default());
        events.on_stored(2);
        let told = |after| {
            let wire::Events { events, oldest, newest } = events.page(after, 9, 9000);
            (events.iter().map(|event| event.number).collect::<Vec<_>>(), oldest, newest)
        };
        assert_eq!(told(0), (vec![1, 2], 1, 2));
        assert_eq!(told(1), (vec![2], 1, 2));
        for after in [2, 3, u64::MAX] {
            assert_eq!(told(after), (vec![], 1, 2));
        }
    }
}
