//! The family of network RAID protocols: `(data path, serialization, atomicity)`, after Kenchammana-Hosekote et al.,
//! "The Design and Evaluation of Network RAID Protocols" (IBM Research), section 2.2.
//!
//! A protocol is put together from three parts, on both sides: the [`write`](self::write) operation at the coordinator, and
//! the [`participant`] at each brick. A volume names its composition ([`wire::Protocol`]):
//!
//! | part | says | there are | at the coordinator | at the brick |
//! |---|---|---|---|---|
//! | [`path`] | who coordinates; what goes to whom, and who computes parity | `gw`, `direct`, `coord`, `amongst`; the difference is computed at the data brick (`delta`), or the parity at the coordinator (`rmw`) | [`path::gw`]; who is asked: `client::route` | |
//! | [`order`] | which of the writes that want a block goes first | a rule a file: [`order`] | [`order::gate`], [`order::writer`] | [`order::waiting`] |
//! | [`atomicity`] | all members or none | `2pcw`, decided lazily | [`atomicity::two_phase::round`], [`settle`] | [`atomicity::two_phase::member`] |
//! | | no reader sees half a write | `read` | [`atomicity::read`] | |
//! | | several writes are one | `link` | [`link`], [`settle`] | |
//! | | no reader counts on a clock: not of a protocol, but of a volume (`--reads confirmed`) | | [`confirm`] | |
//! | | readers see what is not decided | `none` | | [`participant`], its reads |
//!
//! The other files are common to the family: one operation a file, what they share ([`context`]), what each of them does
//! ([`operate`]), and the [`coordinator`] that drives them. [`cost`] says what operations cost, [`wire::known`] which protocols have a name.

pub mod allocation;
pub mod answer;
pub mod atomicity;
pub mod confirm;
pub mod context;
pub mod coordinator;
pub mod cost;
pub mod expected;
pub mod lateness;
pub mod link;
pub mod list;
pub mod members;
pub(crate) mod old_row;
pub mod operate;
pub mod order;
pub mod outcome;
pub mod participant;
pub mod path;
pub mod pending;
pub mod read;
pub(crate) mod reconstruct;
pub mod repair;
#[cfg(test)]
mod scripted;
pub(crate) mod settle;
pub mod traffic;
pub(crate) mod write;
