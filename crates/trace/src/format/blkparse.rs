//! The text of `blkparse`: `major,minor cpu sequence time_s pid action rwbs sector + sectors [process]`.
//!
//! A request is issued to the driver by action D and completed by C. It is handed on when it completes, so that its response time
//! is known: out of the order of issue. What never completes is handed on when too many wait, or at the end. What moves no blocks
//! (flushes, commands passed through to the device) is left out.

use super::{Context, Decoder, Entry, Text, Time};
use crate::error::Fault;
use crate::field::{Field, Fields};
use crate::order::Placed;
use crate::order::{Order, WINDOW_RECORDS};
use crate::record::Record;
use std::collections::BTreeMap;

pub(super) const ENTRY: Entry = Entry {
    name: "blkparse",
    what: "blkparse text: issues (D) and completions (C)",
    time: Some(Time { field: "time", unit_ns: 1_000_000_000, is_absolute: false }),
    address: "sector",
    size: "sectors",
    order: Order::Sort { window: WINDOW_RECORDS },
    // A head may hold no completion yet: look at the shape alone.
    detect: |head| {
        let mut context = Context::new(&ENTRY, None, true);
        let is_event = |line: &[u8]| Event::read(line, &mut context).is_ok_and(|event| event.is_some());
        head.lines().next().is_some_and(is_event)
    },
    decoder: || Decoder::Text(Box::new(Blkparse { waiting: BTreeMap::new(), oldest: BTreeMap::new() })),
};

/// Requests that may wait for their completion. A device has far fewer in flight; more have lost theirs.
const WAITING_MAX: usize = 16_384;

struct Blkparse {
    /// By device, first sector and direction: the request, and where it was issued.
    waiting: BTreeMap<Key, Placed>,
    /// The same by time of issue, to find the oldest.
    oldest: BTreeMap<(u64, Key), ()>,
}

type Key = (u32, u64, bool);

/// An event of a request: its action, D or C, or none of these.
#[derive(Default)]
struct Event {
    action: u8,
    record: Record,
}

impl Text for Blkparse {
    fn line(&mut self, line: &[u8], context: &mut Context) -> Result<Option<Record>, Fault> {
        let Some(Event { action, record }) = Event::read(line, context)? else {
            return Ok(None);
        };
        let key = (record.device, record.sector, record.is_write);
        match action {
            b'D' => Ok(self.issue(key, record, context)),
            b'C' => Ok(self.complete(key, record.at_ns, context)),
            _ => Ok(None),
        }
    }

    fn held(&mut self, context: &mut Context) -> Option<Record> {
        let ((_, key), ()) = self.oldest.pop_first()?;
        self.waiting.remove(&key).map(|waited| hand_on(waited, context))
    }
}

impl Blkparse {
    fn issue(&mut self, key: Key, record: Record, context: &mut Context) -> Option<Record> {
        context.is_held = true;
        let lost = self.waiting.insert(key, Placed { record, place: context.place });
        if let Some(lost) = &lost {
            self.oldest.remove(&(lost.record.at_ns, key));
        }
        self.oldest.insert((record.at_ns, key), ());
        match lost {
            Some(lost) => Some(hand_on(lost, context)),
            None if self.waiting.len() > WAITING_MAX => self.held(context),
            None => None,
        }
    }

    fn complete(&mut self, key: Key, at_ns: u64, context: &mut Context) -> Option<Record> {
        let record = hand_on(self.waiting.remove(&key)?, context);
        self.oldest.remove(&(record.at_ns, key));
        Some(Record { response_ns: Some(at_ns.saturating_sub(record.at_ns)), ..record })
    }
}

/// The request, as of where it was issued.
fn hand_on(waited: Placed, context: &mut Context) -> Record {
    context.place = waited.place;
    waited.record
}

impl Event {
    /// An event. `None` for messages, and for the summary at the end.
    fn read(line: &[u8], context: &mut Context) -> Result<Option<Event>, Fault> {
        let mut fields = Fields::blank(line);
        let device = fields.next("device")?;
        if !device.bytes.first().is_some_and(u8::is_ascii_digit) {
            return Ok(None);
        }
        let device = number(&device)?;
        fields.next("cpu")?.integer()?;
        fields.next("sequence")?.integer()?;
        let at_ns = context.time_ns(&fields.next("time")?)?;
        fields.next("pid")?;
        let action = fields.next("action")?.bytes;
        let kind = fields.next("rwbs")?.bytes;
        let direction = kind.iter().find(|byte| matches!(byte, b'R' | b'W'));
        let (Some(direction), [action @ (b'D' | b'C')], false) = (direction, action, kind.contains(&b'D'))
        else {
            return Ok(fields.optional("sector").map(|_| Event::default()));
        };
        let sector = fields.next("sector")?;
        // What moves no blocks, such as a flush, has the process or a command there, or after the address.
        if is_aside(&sector) {
            return Ok(Some(Event::default()));
        }
        let sector = sector.integer()?;
        let plus = fields.next("+")?;
        if is_aside(&plus) {
            return Ok(Some(Event::default()));
        }
        if plus.bytes != b"+" {
            return Err(plus.fault("`+` and the number of sectors are expected"));
        }
        let count = fields.next("sectors")?.small()?;
        let record = Record { at_ns, device, sector, count, is_write: *direction == b'W', response_ns: None };
        Ok(Some(Event { action: *action, record }))
    }
}

/// Whether a field begins the process, `[fio]`, or a command and its time, `(12 00 ..)`.
fn is_aside(field: &Field<'_>) -> bool {
    matches!(field.bytes.first(), Some(b'[' | b'('))
}

/// `major,minor` as the kernel packs them: the major number from bit 20 on.
fn number(device: &Field<'_>) -> Result<u32, Fault> {
    let expected = || device.fault("major,minor is expected");
    let mut parts = Fields::comma(device.bytes);
    let (major, minor) =
        (parts.next("major")?.small()?, parts.next("minor").map_err(|_| expected())?.small()?);
    if major >= 1 << 12 || minor >= 1 << 20 || !parts.is_empty() {
        Err(expected())
    } else {
        Ok(major << 20 | minor)
    }
}
