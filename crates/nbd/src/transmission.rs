//! Serving requests, after negotiation.
//!
//! A header is taken when there is room for one more request, and goes on when there is room for its data. A request that
//! fails its check is answered at once; if it is a write, its payload is dropped as it arrives.

use crate::action::{Action, CloseReason, Limits, Step};
use crate::export::Export;
use crate::input::{Gather, Input};
use crate::output::{Output, Sender};
use crate::reply::{self, Reply};
use crate::request::{Command, Errno, Header, Request, RequestError, Tag, Terms};
use crate::wire::{self, command as cmd};
use base::HashMap;
use core::convert::Infallible;

#[derive(Debug)]
pub(crate) struct Transmission {
    export: Export,
    limits: Limits,
    terms: Terms,
    shutting_down: bool,
    expect: Expect,
    next_tag: u64,
    /// By tag; its order is never seen.
    in_flight: HashMap<u64, Header>,
    /// Data of requests in flight, and of the write whose payload is arriving.
    in_flight_bytes: usize,
    loan: Loan,
}

/// Memory of the driver for a request that exceeds the session's own limits.
#[derive(Clone, Copy, Debug)]
enum Loan {
    None,
    Asked(usize),
    Granted(usize),
    InUse(usize),
}

#[derive(Debug)]
enum Expect {
    Header,
    /// Room for the data of this request.
    Room(Header, Command),
    /// The payload of a write.
    Payload(Header, Command, Gather),
    /// The payload of a write that is refused.
    Discard {
        header: Header,
        left: usize,
        error: RequestError,
    },
    /// The end, once nothing is in flight.
    Drained,
}

impl Transmission {
    pub(crate) fn new(export: Export, limits: Limits, structured: bool, block_status: bool) -> Transmission {
        Transmission {
            export,
            limits,
            terms: Terms { structured, block_status },
            shutting_down: false,
            expect: Expect::Header,
            next_tag: 0,
            in_flight: HashMap::default(),
            in_flight_bytes: 0,
            loan: Loan::None,
        }
    }

    pub(crate) fn shut_down(&mut self) {
        self.shutting_down = true;
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    pub(crate) fn partial_bytes(&self) -> usize {
        match &self.expect {
            Expect::Payload(_, _, gather) => gather.len(),
            _ => 0,
        }
    }

    pub(crate) fn wants_input(&self, sender: &Sender) -> bool {
        match self.expect {
            Expect::Header => self.takes_header(sender),
            Expect::Payload(..) | Expect::Discard { .. } => true,
            Expect::Room(..) | Expect::Drained => false,
        }
    }

    /// Bytes missing of a payload that is kept; what is dropped is not wanted.
    pub(crate) fn payload_bytes(&self) -> usize {
        match &self.expect {
            Expect::Payload(_, _, gather) => gather.left(),
            _ => 0,
        }
    }

    pub(crate) fn borrowed_bytes(&self) -> usize {
        match self.loan {
            Loan::Granted(bytes) | Loan::InUse(bytes) => bytes,
            Loan::None | Loan::Asked(_) => 0,
        }
    }

    pub(crate) fn lend(&mut self) {
        let Loan::Asked(bytes) = self.loan else { panic!("the session did not ask for a loan") };
        self.loan = Loan::Granted(bytes);
    }

    /// Gives a loan back when what is held fits the session's own limits again.
    fn repay(&mut self, sender: &Sender) {
        let fits = self.in_flight_bytes <= self.limits.in_flight_bytes_max && !sender.is_congested();
        if fits && matches!(self.loan, Loan::InUse(_)) {
            self.loan = Loan::None;
        }
    }

    pub(crate) fn advance(&mut self, input: &mut Input, out: &mut Output<'_>) -> Step<Infallible> {
        self.repay(out.sender);
        match std::mem::replace(&mut self.expect, Expect::Header) {
            Expect::Header => self.on_input(input, out),
            Expect::Room(header, command) => self.on_room(header, command, out),
            Expect::Payload(header, command, gather) => self.on_payload(header, command, gather, input, out),
            Expect::Discard { header, left, error } => self.on_discard(header, left, error, input, out),
            Expect::Drained if self.in_flight.is_empty() => Step::Close(CloseReason::Disconnected),
            Expect::Drained => {
                // A client says nothing after it disconnects.
                input.clear();
                self.wait(Expect::Drained)
            }
        }
    }

    fn takes_header(&self, sender: &Sender) -> bool {
        self.in_flight.len() < self.limits.in_flight_max && !sender.is_congested()
    }

    fn on_input(&mut self, input: &mut Input, out: &mut Output<'_>) -> Step<Infallible> {
        if !self.takes_header(out.sender) {
            return Step::Wait;
        }
        let Some(bytes) = input.take_array::<{ wire::REQUEST_HEADER_BYTES }>() else { return Step::Wait };
        let (magic, header) = parse(&bytes);
        if magic != wire::REQUEST_MAGIC {
            return Step::Close(CloseReason::Violation(format!("a request begins with {magic:#010x}")));
        }
        self.on_header(header, out)
    }

    fn on_header(&mut self, header: Header, out: &mut Output<'_>) -> Step<Infallible> {
        if header.kind == cmd::DISC {
            return self.go_on(Expect::Drained);
        }
        let checked = match self.shutting_down {
            true => Err(RequestError::new(Errno::Shutdown, "the server is shutting down: reconnect")),
            false => header.check(&self.export, self.terms),
        };
        match checked {
            Ok(command) => self.go_on(Expect::Room(header, command)),
            Err(error) if header.kind == cmd::WRITE => {
                self.go_on(Expect::Discard { header, left: header.length as usize, error })
            }
            Err(error) => self.refuse(&header, &error, out),
        }
    }

    fn on_room(&mut self, header: Header, command: Command, out: &mut Output<'_>) -> Step<Infallible> {
        let bytes = header.data_bytes();
        if !self.has_room(bytes, out) {
            return self.wait(Expect::Room(header, command));
        }
        self.in_flight_bytes += bytes;
        match command {
            Command::Write { .. } => self.go_on(Expect::Payload(header, command, Gather::new(bytes))),
            command => self.hand_out(header, command, out),
        }
    }

    /// Whether a request may begin that carries `bytes` of data. One that needs more than the session's own share is
    /// served alone, with memory that the driver lends.
    fn has_room(&mut self, bytes: usize, out: &mut Output<'_>) -> bool {
        if bytes == 0 || self.in_flight_bytes + bytes <= self.limits.in_flight_bytes_max {
            return true;
        }
        match self.loan {
            Loan::None if self.in_flight_bytes == 0 => {
                self.loan = Loan::Asked(bytes);
                out.push(Action::Borrow(bytes));
                false
            }
            Loan::Granted(lent) => {
                assert_eq!(lent, bytes, "a loan is for the request that waits for it");
                self.loan = Loan::InUse(lent);
                true
            }
            Loan::None | Loan::Asked(_) | Loan::InUse(_) => false,
        }
    }

    fn on_payload(
        &mut self,
        header: Header,
        mut command: Command,
        mut gather: Gather,
        input: &mut Input,
        out: &mut Output<'_>,
    ) -> Step<Infallible> {
        let Some(arrived) = gather.take(input) else {
            return self.wait(Expect::Payload(header, command, gather));
        };
        if let Command::Write { payload, .. } = &mut command {
            *payload = arrived;
        }
        self.hand_out(header, command, out)
    }

    fn on_discard(
        &mut self,
        header: Header,
        left: usize,
        error: RequestError,
        input: &mut Input,
        out: &mut Output<'_>,
    ) -> Step<Infallible> {
        let left = left - input.skip(left);
        if left > 0 {
            return self.wait(Expect::Discard { header, left, error });
        }
        self.refuse(&header, &error, out)
    }

    fn hand_out(&mut self, header: Header, command: Command, out: &mut Output<'_>) -> Step<Infallible> {
        let tag = self.next_tag;
        self.next_tag += 1;
        self.in_flight.insert(tag, header);
        out.push(Action::Request(Request { tag: Tag(tag), command }));
        Step::Again
    }

    pub(crate) fn reply(&mut self, tag: Tag, reply: Result<Reply, RequestError>, out: &mut Output<'_>) {
        let Some(request) = self.in_flight.remove(&tag.0) else {
            panic!("a reply to request {}, which is not in flight", tag.0);
        };
        self.in_flight_bytes -= request.data_bytes();
        match reply {
            Ok(reply) => reply.send(&request, self.terms.structured, out),
            Err(error) => reply::send_error(&error, &request, self.terms.structured, out),
        }
    }

    fn refuse(&mut self, header: &Header, error: &RequestError, out: &mut Output<'_>) -> Step<Infallible> {
        reply::send_error(error, header, self.terms.structured, out);
        Step::Again
    }

    fn go_on(&mut self, expect: Expect) -> Step<Infallible> {
        self.expect = expect;
        Step::Again
    }

    fn wait(&mut self, expect: Expect) -> Step<Infallible> {
        self.expect = expect;
        Step::Wait
    }
}

fn parse(bytes: &[u8; wire::REQUEST_HEADER_BYTES]) -> (u32, Header) {
    fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
        std::array::from_fn(|index| bytes[at + index])
    }
    let header = Header {
        flags: u16::from_be_bytes(field(bytes, 4)),
        kind: u16::from_be_bytes(field(bytes, 6)),
        cookie: u64::from_be_bytes(field(bytes, 8)),
        offset: u64::from_be_bytes(field(bytes, 16)),
        length: u32::from_be_bytes(field(bytes, 24)),
    };
    (u32::from_be_bytes(field(bytes, 0)), header)
}
