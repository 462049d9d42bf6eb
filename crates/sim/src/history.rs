//! What clients saw: one operation a register, with the moments at which it was asked and answered.
//!
//! A register is a block of 4 KiB, or one 512-byte sector of a block that is written by sectors. Every write carries
//! a value of its own; zeroes carry the value 0, with which every register begins.

use base::{HashMap, HashSet};
use std::fmt::{self, Display, Formatter};
use std::io::{self, Write};

/// Where a value is kept. Blocks of all volumes are numbered through; see [`Register::sector`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Register(pub u64);

impl Register {
    const VOLUME_SHIFT: u32 = 24;
    const SECTORS: u64 = 1 << 40;

    /// The register of a block of 4 KiB.
    pub fn block(volume: usize, block: u64) -> Register {
        Register((volume as u64) << Register::VOLUME_SHIFT | block)
    }

    /// The register of a 512-byte sector, counted from the volume's start.
    pub fn sector(volume: usize, sector: u64) -> Register {
        Register(Register::SECTORS + ((volume as u64) << (Register::VOLUME_SHIFT + 3)) + sector)
    }

    /// Which block of its volume it is; `None` where it is a sector.
    pub fn block_number(self) -> Option<u64> {
        (self.0 < Register::SECTORS).then_some(self.0 & ((1 << Register::VOLUME_SHIFT) - 1))
    }

    pub fn volume(self) -> usize {
        let (_, shift) = self.kind();
        ((self.0 & (Register::SECTORS - 1)) >> shift) as usize
    }

    /// The same block or sector of another volume.
    #[must_use]
    pub fn of(self, volume: usize) -> Register {
        let (base, shift) = self.kind();
        Register(base + ((volume as u64) << shift) + (self.0 & ((1 << shift) - 1)))
    }

    /// The number of the first register of its kind, and the bits below the volume's number.
    fn kind(self) -> (u64, u32) {
        if self.0 < Register::SECTORS {
            (0, Register::VOLUME_SHIFT)
        } else {
            (Register::SECTORS, Register::VOLUME_SHIFT + 3)
        }
    }
}

impl Display for Register {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (begin, shift) = self.kind();
        let (what, at) = (if begin == 0 { "block" } else { "sector" }, (self.0 - begin) & ((1 << shift) - 1));
        write!(f, "{what} {at} of volume {}", self.volume())
    }
}

/// What was asked of a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Read,
    /// To take a value.
    Write,
}

/// One operation on one register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Who. A client has one request at a time.
    pub client: u64,
    pub register: Register,
    pub kind: Kind,
    pub value: u64,
    /// When it was asked.
    pub asked_ns: u64,
    /// When it was answered; `None` when it was not, or with an error: then a write may take effect any time, or never.
    pub answered_ns: Option<u64>,
}

/// All operations of a run.
#[derive(Clone, Debug, Default)]
pub struct History {
    operations: Vec<Operation>,
    written: HashMap<u64, Register>,
    registers: HashSet<Register>,
    /// What a snapshot or clone was made of, by its number.
    origins: HashMap<usize, usize>,
}

impl History {
    /// Takes note of an operation.
    pub fn push(&mut self, operation: Operation) {
        self.registers.insert(operation.register);
        self.operations.push(operation);
    }

    /// Takes note that `value` is on its way to `register`, before anyone can read it.
    pub fn announce(&mut self, value: u64, register: Register) {
        if value != 0 {
            let before = self.written.insert(value, register);
            assert!(before.is_none(), "the value {value} is written twice");
        }
    }

    /// Where `value` was written, if anywhere.
    pub fn written_to(&self, value: u64) -> Option<Register> {
        self.written.get(&value).copied()
    }

    /// Takes note that a volume began with what another one held.
    pub fn note_origin(&mut self, volume: usize, origin: usize) {
        self.origins.insert(volume, origin);
    }

    /// Whether what was written to `home` may be read from `register`: the same block of the same volume, or of one
    /// that it was made of.
    pub fn may_hold(&self, register: Register, home: Register) -> bool {
        let mut volume = Some(register.volume());
        while let Some(at) = volume {
            if register.of(at) == home {
                return true;
            }
            volume = self.origins.get(&at).copied();
        }
        false
    }

    /// All operations, in the order in which they ended.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The operations by register, each in the order in which they were asked.
    pub fn by_register(&self) -> Vec<Vec<Operation>> {
        let mut sorted = self.operations.clone();
        sorted.sort_by_key(|op| (op.register, op.asked_ns, op.client));
        sorted.chunk_by(|a, b| a.register == b.register).map(<[Operation]>::to_vec).collect()
    }

    /// Writes one JSON line an operation: `{"c":1,"t0":5,"t1":9,"op":"w","b":3,"v":77}`.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        self.operations.iter().try_for_each(|op| writeln!(out, "{}", op.to_json()))
    }
}

impl Operation {
    /// One line of a history file.
    pub fn to_json(&self) -> String {
        let answered = self.answered_ns.map_or("-1".to_owned(), |t| t.to_string());
        let kind = if self.kind == Kind::Write { "w" } else { "r" };
        format!(
            r#"{{"c":{},"t0":{},"t1":{answered},"op":"{kind}","b":{},"v":{}}}"#,
            self.client, self.asked_ns, self.register.0, self.value
        )
    }
}
