//! Segments that several versions have in common.
//!
//! A patch is a version that has fragments of an older one. Records say which version shares which segments of which. They are stored with the patch, and go
//! when it ends. So a version of which nobody has a name any more is kept as long as somebody shares it; and what nobody shares of it can go before.

use super::{Pair, keys};
use base::ObjectVersion;
use wire::{DecodeError, FragmentId, SegmentSpan, Share, Wire};

/// So many spans are named at a time at the most: no version has more segments.
pub(super) const SPANS_MAX: usize = FragmentId::SEGMENTS as usize;

/// Whether the spans are in order, and do not touch.
pub(super) fn are_in_order(spans: &[SegmentSpan]) -> bool {
    let is_sound = |span: &SegmentSpan| span.from < span.to && span.to <= FragmentId::SEGMENTS;
    spans.iter().all(is_sound) && spans.is_sorted_by(|left, right| left.to < right.from)
}

/// What is wrong with the shares of a patch, if something is: there are some too many, or it is said twice of a version what is shared of it.
pub(super) fn what_is_wrong(shares: &[Share]) -> Option<&'static str> {
    let spans: usize = shares.iter().map(|share| share.segments.len()).sum();
    let is_ordered = shares.is_sorted_by(|left, right| left.version < right.version);
    match () {
        () if shares.len() > wire::index::SHARES_MAX => Some("too many versions"),
        () if spans > SPANS_MAX => Some("too many segments"),
        () if !is_ordered => Some("versions out of order"),
        () if !shares.iter().all(|share| are_in_order(&share.segments)) => Some("segments out of order"),
        () => None,
    }
}

/// Whether all of `wanted` is in `of`, which is in order.
pub(super) fn has_all(of: &[SegmentSpan], wanted: &[SegmentSpan]) -> bool {
    wanted.iter().all(|wanted| {
        let behind = of.partition_point(|span| span.from <= wanted.from);
        behind.checked_sub(1).is_some_and(|at| wanted.to <= of[at].to)
    })
}

/// Of the sharers that these records name, the last one first, the last one that shares the segment; of any segment where none is named.
pub(super) fn last_sharer(
    records: &[Pair],
    segment: Option<u32>,
) -> Result<Option<ObjectVersion>, DecodeError> {
    for (key, spans) in records {
        let shares = match segment {
            None => true,
            Some(from) => {
                has_all(&Vec::from_bytes(spans)?, &[SegmentSpan { from, to: from.saturating_add(1) }])
            }
        };
        if shares {
            return keys::read_sharer(key).map(Some);
        }
    }
    Ok(None)
}

/// All that these records say is shared.
pub(super) fn all_shared(records: &[Pair]) -> Result<Vec<SegmentSpan>, DecodeError> {
    let spans = records.iter().map(|(_, spans)| Vec::<SegmentSpan>::from_bytes(spans));
    spans.collect::<Result<Vec<_>, _>>().map(|spans| union(spans.concat()))
}

/// All that is in any of these.
pub(super) fn union(mut spans: Vec<SegmentSpan>) -> Vec<SegmentSpan> {
    spans.sort_unstable_by_key(|span| span.from);
    let mut all: Vec<SegmentSpan> = Vec::new();
    for span in spans {
        match all.last_mut() {
            Some(last) if span.from <= last.to => last.to = last.to.max(span.to),
            _ => all.push(span),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ObjectVersion;

    fn spans(of: &[(u32, u32)]) -> Vec<SegmentSpan> {
        of.iter().map(|&(from, to)| SegmentSpan { from, to }).collect()
    }

    #[test]
    fn what_is_shared_by_several_is_told_once() {
        assert_eq!(
            union(spans(&[(4, 6), (0, 2), (1, 3), (6, 7), (9, 10)])),
            spans(&[(0, 3), (4, 7), (9, 10)])
        );
        assert!(has_all(&spans(&[(0, 3), (5, 9)]), &spans(&[(1, 2), (5, 9)])));
        assert!(!has_all(&spans(&[(0, 3), (5, 9)]), &spans(&[(2, 6)])));
    }

    #[test]
    fn wild_shares_are_noticed() {
        let share =
            |version, of: &[(u32, u32)]| Share { version: ObjectVersion(version), segments: spans(of) };
        assert_eq!(what_is_wrong(&[share(1, &[(0, 1), (2, 3)]), share(2, &[])]), None);
        assert!(what_is_wrong(&[share(1, &[(0, 1), (1, 3)])]).is_some(), "they touch");
        assert!(what_is_wrong(&[share(1, &[(3, 3)])]).is_some(), "an empty one");
        assert!(what_is_wrong(&[share(1, &[(3, FragmentId::SEGMENTS + 1)])]).is_some(), "no segment");
        assert!(what_is_wrong(&[share(1, &[]), share(1, &[])]).is_some(), "twice");
    }
}
