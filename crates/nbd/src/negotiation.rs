//! Option haggling: from the greeting to the export that the client attaches to.
//!
//! One option is handled at a time. One that needs the driver (a lookup, a list, TLS) leaves the phase in
//! [`Expect::Driver`] until it is answered.

use crate::action::{Action, CloseReason, Limits, Purpose, Step, TlsPolicy};
use crate::export::{Export, Listed, LookupError};
use crate::input::Input;
use crate::option::{self, ContextQuery, InfoQuery};
use crate::output::{Output, Sender};
use crate::transmission::Transmission;
use crate::wire::{self, handshake, option as opt, option_reply as rep};
use base::Payload;
use bytes::{BufMut, BytesMut};

#[derive(Debug)]
pub(crate) struct Negotiation {
    limits: Limits,
    tls: TlsPolicy,
    over_tls: bool,
    /// The client speaks fixed newstyle: it may send more than `EXPORT_NAME`.
    fixed: bool,
    no_zeroes: bool,
    structured: bool,
    /// The export for which the client selected `base:allocation`; for another export it does not count.
    contexts_of: Option<String>,
    shutting_down: bool,
    expect: Expect,
}

#[derive(Debug)]
enum Expect {
    ClientFlags,
    Header,
    /// The data of an option.
    Data {
        option: u32,
        len: usize,
    },
    /// Data that are dropped, and why the option is refused when they are through.
    Discard {
        option: u32,
        left: usize,
        refusal: Refusal,
    },
    Driver(Question),
}

/// What the driver was asked.
#[derive(Debug)]
enum Question {
    ExportName,
    Info { option: u32, query: InfoQuery },
    Contexts { option: u32, query: ContextQuery },
    List,
    Tls,
}

type Refusal = (u32, &'static str);

impl Negotiation {
    pub(crate) fn new(limits: Limits, tls: TlsPolicy, out: &mut Output<'_>) -> Negotiation {
        let greeting = out.header(|buffer| {
            buffer.put_u64(wire::INIT_MAGIC);
            buffer.put_u64(wire::OPTION_MAGIC);
            buffer.put_u16(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES);
        });
        out.send(Payload::from(greeting));
        Negotiation {
            limits,
            tls,
            over_tls: false,
            fixed: false,
            no_zeroes: false,
            structured: false,
            contexts_of: None,
            shutting_down: false,
            expect: Expect::ClientFlags,
        }
    }

    pub(crate) fn shut_down(&mut self) {
        self.shutting_down = true;
    }

    pub(crate) fn wants_input(&self, sender: &Sender) -> bool {
        match self.expect {
            Expect::Driver(_) => false,
            Expect::Header => !sender.is_congested(),
            Expect::ClientFlags | Expect::Data { .. } | Expect::Discard { .. } => true,
        }
    }

    pub(crate) fn advance(&mut self, input: &mut Input, out: &mut Output<'_>) -> Step<Box<Transmission>> {
        match &mut self.expect {
            Expect::ClientFlags => match input.take_array() {
                Some(flags) => self.on_client_flags(u32::from_be_bytes(flags)),
                None => Step::Wait,
            },
            Expect::Header if out.sender.is_congested() => Step::Wait,
            Expect::Header => match input.take_array::<{ wire::OPTION_HEADER_BYTES }>() {
                Some(header) => self.on_header(&header),
                None => Step::Wait,
            },
            Expect::Data { option, len } => match (*option, input.take_vec(*len)) {
                (option, Some(data)) => self.on_option(option, &data, input, out),
                (_, None) => Step::Wait,
            },
            Expect::Discard { option, left, refusal } => {
                *left -= input.skip(*left);
                if *left > 0 {
                    return Step::Wait;
                }
                let (option, refusal) = (*option, *refusal);
                self.refuse(option, refusal, out)
            }
            Expect::Driver(Question::Tls) if input.len() > 0 => {
                violation("it sent plain text after NBD_OPT_STARTTLS")
            }
            Expect::Driver(_) => Step::Wait,
        }
    }

    fn on_client_flags(&mut self, flags: u32) -> Step<Box<Transmission>> {
        let (fixed, no_zeroes) = (u32::from(handshake::FIXED_NEWSTYLE), u32::from(handshake::NO_ZEROES));
        if flags & !(fixed | no_zeroes) != 0 {
            return violation(format!("its flags {flags:#x} have unknown bits"));
        }
        (self.fixed, self.no_zeroes) = (flags & fixed != 0, flags & no_zeroes != 0);
        self.go_on()
    }

    fn on_header(&mut self, header: &[u8; wire::OPTION_HEADER_BYTES]) -> Step<Box<Transmission>> {
        let word =
            |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let magic = u64::from(word(0)) << 32 | u64::from(word(4));
        if magic != wire::OPTION_MAGIC {
            return violation(format!("an option begins with {magic:#018x}"));
        }
        let (option, len) = (word(8), word(12) as usize);
        if !self.fixed && option != opt::EXPORT_NAME {
            return violation(format!("it sent option {option}, but does not speak fixed newstyle"));
        }
        self.expect = match self.refusal(option, len) {
            Some(refusal) => Expect::Discard { option, left: len, refusal },
            None => Expect::Data { option, len },
        };
        Step::Again
    }

    /// Why an option is refused whatever its data say.
    fn refusal(&self, option: u32, len: usize) -> Option<Refusal> {
        let upgrades = matches!(option, opt::STARTTLS | opt::ABORT);
        let known = matches!(option, opt::EXPORT_NAME..=opt::LIST | opt::STARTTLS..=opt::SET_META_CONTEXT);
        let bare = matches!(option, opt::LIST | opt::STARTTLS | opt::STRUCTURED_REPLY);
        if self.shutting_down && option != opt::ABORT {
            return Some((rep::ERR_SHUTDOWN, "the server is shutting down"));
        }
        if self.tls == TlsPolicy::Required && !self.over_tls && !upgrades {
            return Some((rep::ERR_TLS_REQD, "this server requires TLS: send NBD_OPT_STARTTLS first"));
        }
        if !known {
            return Some((rep::ERR_UNSUP, "this server does not know the option"));
        }
        if len > self.limits.option_bytes_max {
            return Some((rep::ERR_TOO_BIG, "the option's data are too long"));
        }
        (bare && len > 0).then_some((rep::ERR_INVALID, "the option takes no data"))
    }

    fn on_option(
        &mut self,
        option: u32,
        data: &[u8],
        input: &Input,
        out: &mut Output<'_>,
    ) -> Step<Box<Transmission>> {
        match option {
            opt::EXPORT_NAME => self.on_export_name(data, out),
            opt::ABORT => {
                answer(out, option, rep::ACK, b"");
                Step::Close(CloseReason::Aborted)
            }
            opt::LIST => self.ask(Question::List, Action::List, out),
            opt::STARTTLS => self.on_starttls(input, out),
            opt::INFO | opt::GO => self.on_info(option, data, out),
            opt::STRUCTURED_REPLY => {
                self.structured = true;
                answer(out, option, rep::ACK, b"");
                self.go_on()
            }
            opt::LIST_META_CONTEXT | opt::SET_META_CONTEXT => self.on_contexts(option, data, out),
            _ => unreachable!("option {option} is refused before its data are read"),
        }
    }

    fn on_export_name(&mut self, data: &[u8], out: &mut Output<'_>) -> Step<Box<Transmission>> {
        match option::export_name(data) {
            Some(name) => self.look_up(Question::ExportName, name, Purpose::Attach, out),
            None => {
                Step::Close(CloseReason::Refused("the name is not UTF-8, holds a NUL or is too long".into()))
            }
        }
    }

    fn on_starttls(&mut self, input: &Input, out: &mut Output<'_>) -> Step<Box<Transmission>> {
        if self.tls == TlsPolicy::None {
            return self.refuse(opt::STARTTLS, (rep::ERR_POLICY, "this server has no TLS here"), out);
        }
        if self.over_tls {
            return self.refuse(opt::STARTTLS, (rep::ERR_INVALID, "TLS is already in use"), out);
        }
        // Plain text behind the option would be taken for what came through TLS: someone on the way may have put it there.
        if input.len() > 0 {
            return violation("it sent plain text behind NBD_OPT_STARTTLS");
        }
        answer(out, opt::STARTTLS, rep::ACK, b"");
        self.ask(Question::Tls, Action::StartTls, out)
    }

    fn on_info(&mut self, option: u32, data: &[u8], out: &mut Output<'_>) -> Step<Box<Transmission>> {
        let Some(query) = option::info_query(data) else {
            return self.refuse(option, (rep::ERR_INVALID, "the option's data are malformed"), out);
        };
        let purpose = if option == opt::GO { Purpose::Attach } else { Purpose::Describe };
        let name = query.name.clone();
        self.look_up(Question::Info { option, query }, name, purpose, out)
    }

    fn on_contexts(&mut self, option: u32, data: &[u8], out: &mut Output<'_>) -> Step<Box<Transmission>> {
        if option == opt::SET_META_CONTEXT {
            self.contexts_of = None;
        }
        if !self.structured {
            let refusal =
                (rep::ERR_INVALID, "metadata contexts need structured replies: negotiate these first");
            return self.refuse(option, refusal, out);
        }
        let Some(query) = option::context_query(data, option == opt::LIST_META_CONTEXT) else {
            return self.refuse(option, (rep::ERR_INVALID, "the option's data are malformed"), out);
        };
        let name = query.name.clone();
        self.look_up(Question::Contexts { option, query }, name, Purpose::Describe, out)
    }

    fn look_up(
        &mut self,
        question: Question,
        name: String,
        purpose: Purpose,
        out: &mut Output<'_>,
    ) -> Step<Box<Transmission>> {
        self.ask(question, Action::Lookup { name, purpose }, out)
    }

    fn ask(&mut self, question: Question, action: Action, out: &mut Output<'_>) -> Step<Box<Transmission>> {
        self.expect = Expect::Driver(question);
        out.push(action);
        Step::Again
    }

    pub(crate) fn looked_up(
        &mut self,
        found: Result<Export, LookupError>,
        out: &mut Output<'_>,
    ) -> Step<Box<Transmission>> {
        let expect = std::mem::replace(&mut self.expect, Expect::Header);
        match (expect, found) {
            (Expect::Driver(Question::ExportName), Ok(export)) => self.attach_by_name(export, out),
            (Expect::Driver(Question::ExportName), Err(error)) => {
                Step::Close(CloseReason::Refused(error.to_string()))
            }
            (Expect::Driver(Question::Info { option, query }), Ok(export)) => {
                self.describe(option, &query, &export, out);
                if option == opt::GO { self.attach(export, &query.name) } else { Step::Again }
            }
            (Expect::Driver(Question::Contexts { option, query }), Ok(_)) => {
                self.contexts(option, query, out)
            }
            (
                Expect::Driver(Question::Info { option, .. } | Question::Contexts { option, .. }),
                Err(error),
            ) => self.lookup_failed(option, &error, out),
            (other, _) => panic!("a lookup is answered while negotiation expects {other:?}"),
        }
    }

    pub(crate) fn listed(
        &mut self,
        exports: Result<Vec<Listed>, LookupError>,
        out: &mut Output<'_>,
    ) -> Step<Box<Transmission>> {
        assert!(matches!(self.expect, Expect::Driver(Question::List)), "a list that nobody asked for");
        match exports {
            Ok(exports) => {
                exports.iter().for_each(|export| answer_server(out, export));
                answer(out, opt::LIST, rep::ACK, b"");
                self.go_on()
            }
            Err(error) => self.lookup_failed(opt::LIST, &error, out),
        }
    }

    /// Forgets what was agreed in plain text: someone on the way may have said it.
    pub(crate) fn tls_started(&mut self) -> Step<Box<Transmission>> {
        assert!(matches!(self.expect, Expect::Driver(Question::Tls)), "TLS that nobody asked for");
        (self.over_tls, self.structured, self.contexts_of) = (true, false, None);
        self.go_on()
    }

    fn attach_by_name(&mut self, export: Export, out: &mut Output<'_>) -> Step<Box<Transmission>> {
        let zeroes = if self.no_zeroes { 0 } else { wire::EXPORT_NAME_ZEROES };
        let (size_bytes, flags) = (export.reachable_bytes(), export.flags(self.structured));
        let header = out.header(|buffer| {
            buffer.put_u64(size_bytes);
            buffer.put_u16(flags);
            buffer.put_bytes(0, zeroes);
        });
        out.send(Payload::from(header));
        let name = export.name.clone();
        self.attach(export, &name)
    }

    fn attach(&mut self, export: Export, name: &str) -> Step<Box<Transmission>> {
        let block_status = self.contexts_of.as_deref() == Some(name);
        let mut transmission = Transmission::new(export, self.limits, self.structured, block_status);
        if self.shutting_down {
            transmission.shut_down();
        }
        Step::Attach(Box::new(transmission))
    }

    /// Block sizes are told unasked: the protocol allows it, and a client that ignores them is served all the same.
    fn describe(&self, option: u32, query: &InfoQuery, export: &Export, out: &mut Output<'_>) {
        let sizes = export.block_sizes;
        answer_with(out, option, rep::INFO, |data| {
            data.put_u16(wire::info::EXPORT);
            data.put_u64(export.reachable_bytes());
            data.put_u16(export.flags(self.structured));
        });
        answer_with(out, option, rep::INFO, |data| {
            data.put_u16(wire::info::BLOCK_SIZE);
            data.put_u32(sizes.minimum());
            data.put_u32(sizes.preferred());
            data.put_u32(sizes.maximum());
        });
        let texts = [
            (query.wants_name, wire::info::NAME, &export.name),
            (
                query.wants_description && !export.description.is_empty(),
                wire::info::DESCRIPTION,
                &export.description,
            ),
        ];
        for (_, kind, text) in texts.into_iter().filter(|(wanted, ..)| *wanted) {
            answer_with(out, option, rep::INFO, |data| {
                data.put_u16(kind);
                data.put_slice(wire::shorten(text).as_bytes());
            });
        }
        answer(out, option, rep::ACK, b"");
    }

    fn contexts(
        &mut self,
        option: u32,
        query: ContextQuery,
        out: &mut Output<'_>,
    ) -> Step<Box<Transmission>> {
        if query.base_allocation {
            let listing = option == opt::LIST_META_CONTEXT;
            answer_with(out, option, rep::META_CONTEXT, |data| {
                data.put_u32(if listing { 0 } else { wire::BASE_ALLOCATION_ID });
                data.put_slice(wire::BASE_ALLOCATION.as_bytes());
            });
            if !listing {
                self.contexts_of = Some(query.name);
            }
        }
        answer(out, option, rep::ACK, b"");
        self.go_on()
    }

    fn lookup_failed(
        &mut self,
        option: u32,
        error: &LookupError,
        out: &mut Output<'_>,
    ) -> Step<Box<Transmission>> {
        let kind = match error {
            LookupError::Unknown(_) => rep::ERR_UNKNOWN,
            LookupError::Refused(_) => rep::ERR_POLICY,
            // Without TLS to offer, or with TLS in use, the protocol forbids to ask for it.
            LookupError::TlsRequired(_) if self.tls == TlsPolicy::None || self.over_tls => rep::ERR_POLICY,
            LookupError::TlsRequired(_) => rep::ERR_TLS_REQD,
            LookupError::ShuttingDown(_) => rep::ERR_SHUTDOWN,
        };
        answer(out, option, kind, wire::shorten(&error.to_string()).as_bytes());
        self.go_on()
    }

    fn refuse(
        &mut self,
        option: u32,
        (kind, message): Refusal,
        out: &mut Output<'_>,
    ) -> Step<Box<Transmission>> {
        if option == opt::EXPORT_NAME {
            return Step::Close(CloseReason::Refused(message.into()));
        }
        answer(out, option, kind, message.as_bytes());
        self.go_on()
    }

    fn go_on(&mut self) -> Step<Box<Transmission>> {
        self.expect = Expect::Header;
        Step::Again
    }
}

fn violation(what: impl Into<String>) -> Step<Box<Transmission>> {
    Step::Close(CloseReason::Violation(what.into()))
}

fn answer(out: &mut Output<'_>, option: u32, kind: u32, data: &[u8]) {
    answer_with(out, option, kind, |buffer| buffer.put_slice(data));
}

fn answer_with(out: &mut Output<'_>, option: u32, kind: u32, write: impl FnOnce(&mut BytesMut)) {
    let reply = out.header(|buffer| {
        buffer.put_u64(wire::OPTION_REPLY_MAGIC);
        buffer.put_u32(option);
        buffer.put_u32(kind);
        let length_at = buffer.len();
        buffer.put_u32(0);
        write(buffer);
        let length = (buffer.len() - length_at - 4) as u32;
        buffer[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
    });
    out.send(Payload::from(reply));
}

fn answer_server(out: &mut Output<'_>, export: &Listed) {
    if export.name.len() > wire::STRING_BYTES_MAX {
        return;
    }
    answer_with(out, opt::LIST, rep::SERVER, |data| {
        data.put_u32(export.name.len() as u32);
        data.put_slice(export.name.as_bytes());
        data.put_slice(wire::shorten(&export.description).as_bytes());
    });
}
