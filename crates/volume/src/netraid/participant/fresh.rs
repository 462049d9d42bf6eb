//! Fragments that were put lately, of versions that nobody could see by then. A putter sends more than it needs, as some bricks may be slow, and calls off what it does
//! not count on. That is given back at once: nobody else would find it before the brick goes through all that it has.
//!
//! **Nobody must count on what is given back.** What the putter was told of, it does not call off. Later somebody may make the fragment again, and name this
//! brick for it, while the putter's word is still on its way. So only the put itself can be called off: once the fragment is put here by anybody else, it stays.

use base::NodeId;
use std::collections::{BTreeMap, VecDeque};
use wire::{FragmentId, Span};

/// So many are remembered. A putter has a few on its way at a time; what is forgotten is found by the next scrub.
const FRESH_MAX: usize = 4096;

/// Who put it, and which question that was.
type PutId = (NodeId, u64);

#[derive(Debug)]
struct Entry {
    fragment: FragmentId,
    span: Span,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The disk works for it.
    Begun,
    /// The same, and it is to be given back when it is there.
    CalledOff,
    Stored,
}

#[derive(Debug, Default)]
pub(super) struct Fresh {
    puts: BTreeMap<PutId, Entry>,
    /// The last put of each fragment.
    last: BTreeMap<FragmentId, PutId>,
    order: VecDeque<PutId>,
}

impl Fresh {
    /// A fragment is put: by whom and where, if that may be called off.
    pub(super) fn begin(&mut self, fragment: FragmentId, put: Option<(NodeId, u64, Span)>) {
        if let Some(before) = self.last.remove(&fragment) {
            self.puts.remove(&before);
        }
        let Some((from, operation, span)) = put else { return };
        let id = (from, operation);
        self.puts.insert(id, Entry { fragment, span, state: State::Begun });
        self.last.insert(fragment, id);
        self.order.push_back(id);
        while self.order.len() > FRESH_MAX {
            let oldest = self.order.pop_front();
            if let Some(oldest) = oldest {
                let _ = self.forget(oldest);
            }
        }
    }

    /// The put has ended: where the fragment is, if it is to be given back.
    pub(super) fn end(&mut self, put: PutId, is_stored: bool) -> Option<Span> {
        let entry = self.puts.get_mut(&put)?;
        if is_stored && entry.state == State::Begun {
            entry.state = State::Stored;
            return None;
        }
        self.forget(put).filter(|_| is_stored).map(|entry| entry.span)
    }

    /// Nobody counts on the put: where the fragment is, if it is to be given back now.
    pub(super) fn call_off(&mut self, put: PutId) -> Option<Span> {
        let entry = self.puts.get_mut(&put)?;
        if entry.state == State::Stored {
            return self.forget(put).map(|entry| entry.span);
        }
        entry.state = State::CalledOff;
        None
    }

    fn forget(&mut self, put: PutId) -> Option<Entry> {
        let entry = self.puts.remove(&put)?;
        self.last.remove(&entry.fragment);
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{GatewayId, ObjectVersion};

    const FROM: NodeId = NodeId::Gateway(GatewayId(1));
    const FRAGMENT: FragmentId = FragmentId { version: ObjectVersion(7), segment: 2, index: 5 };

    fn begin(fresh: &mut Fresh, operation: u64) -> Span {
        let span = FRAGMENT.span(2);
        fresh.begin(FRAGMENT, Some((FROM, operation, span)));
        span
    }

    #[test]
    fn what_is_called_off_is_given_back_once_it_is_there() {
        let mut fresh = Fresh::default();
        let span = begin(&mut fresh, 1);
        assert_eq!((fresh.end((FROM, 1), true), fresh.call_off((FROM, 1))), (None, Some(span)));
        assert_eq!(fresh.call_off((FROM, 1)), None, "once");
        begin(&mut fresh, 2);
        assert_eq!((fresh.call_off((FROM, 2)), fresh.end((FROM, 2), true)), (None, Some(span)));
        begin(&mut fresh, 3);
        assert_eq!((fresh.call_off((FROM, 3)), fresh.end((FROM, 3), false)), (None, None), "it is not there");
        assert!(fresh.puts.is_empty() && fresh.last.is_empty());
    }

    /// Whoever makes lost fragments again may have named this brick for it by then.
    #[test]
    fn what_somebody_else_has_put_since_stays() {
        for is_new in [false, true] {
            let mut fresh = Fresh::default();
            let span = begin(&mut fresh, 1);
            fresh.end((FROM, 1), true);
            fresh.begin(FRAGMENT, is_new.then_some((FROM, 9, span)));
            assert_eq!(fresh.call_off((FROM, 1)), None);
            assert_eq!(fresh.end((FROM, 1), true), None);
        }
    }

    #[test]
    fn only_so_many_are_remembered() {
        let mut fresh = Fresh::default();
        for operation in 0..2 * FRESH_MAX as u64 {
            let fragment = FragmentId { index: operation as u32, ..FRAGMENT };
            fresh.begin(fragment, Some((FROM, operation, fragment.span(1))));
            fresh.end((FROM, operation), true);
        }
        assert!(fresh.puts.len() <= FRESH_MAX && fresh.last.len() == fresh.puts.len());
        assert!(fresh.order.len() <= FRESH_MAX && fresh.call_off((FROM, 0)).is_none());
    }
}
