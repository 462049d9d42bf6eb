//! `loans`: no two gateways are lent one number for one time of the cluster, and no stamp is drawn that nobody was lent.

use super::Violation;
use base::{ClusterTime, Loan, NodeId, Stamp};
use std::collections::BTreeMap;
use wire::Message;

const NAME: &str = "loans";

/// What was told.
#[derive(Debug, Default)]
pub(crate) struct Loans {
    /// To whom each number was lent, and for which times.
    told: BTreeMap<u16, Vec<(Option<NodeId>, Loan)>>,
}

impl Loans {
    /// These numbers were lent before anybody looked.
    pub(crate) fn after(lent: impl IntoIterator<Item = (u16, Loan)>) -> Loans {
        Loans { told: lent.into_iter().map(|(writer, loan)| (writer, vec![(None, loan)])).collect() }
    }

    /// Looks at a message as it is sent.
    pub(crate) fn watch(&mut self, to: NodeId, message: &Message) -> Result<(), Violation> {
        match message {
            Message::Registered { first_writer, loan: Some(loan), .. } => {
                self.on_lent(to, *first_writer, *loan)
            }
            Message::Prepare { write, .. } => self.on_stamp(write.stamp),
            _ => Ok(()),
        }
    }

    fn on_lent(&mut self, to: NodeId, writer: u16, loan: Loan) -> Result<(), Violation> {
        let told = self.told.entry(writer).or_default();
        let meets = |other: &Loan| other.from <= loan.until && loan.from <= other.until;
        if let Some((other, its)) = told.iter().find(|(who, other)| *who != Some(to) && meets(other)) {
            let who = other.map_or_else(|| "a gateway of before".to_owned(), |other| other.to_string());
            let what = format!("writer {writer} is lent to {to} for {loan:?}, and to {who} for {its:?}");
            return Err(Violation::new(NAME, what));
        }
        match told.iter_mut().find(|(who, other)| *who == Some(to) && other.from == loan.from) {
            Some((_, its)) => its.until = its.until.max(loan.until),
            None => told.push((Some(to), loan)),
        }
        Ok(())
    }

    fn on_stamp(&self, stamp: Stamp) -> Result<(), Violation> {
        // What bricks write by themselves lies before all stamps of gateways.
        let lent = self.told.get(&stamp.writer()).map_or(&[][..], Vec::as_slice);
        if stamp.time() < ClusterTime::FIRST || lent.iter().any(|(_, loan)| loan.covers(stamp.time())) {
            return Ok(());
        }
        Err(Violation::new(
            NAME,
            format!("{stamp:?} was drawn, and writer {} is lent for {lent:?}", stamp.writer()),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{GatewayId, Time};

    fn lent(first_writer: u16, from: u64, until: u64) -> Message {
        let at = |tick| ClusterTime(ClusterTime::FIRST.0 + tick);
        Message::Registered {
            first_writer,
            time: at(from),
            loan: Some(Loan { from: at(from), until: at(until) }),
        }
    }

    fn gateway(id: u64) -> NodeId {
        NodeId::Gateway(GatewayId(id))
    }

    #[test]
    fn a_number_is_lent_to_one_at_a_time() {
        let mut loans = Loans::default();
        for (to, message) in
            [(1, lent(3, 0, 10)), (1, lent(3, 0, 20)), (2, lent(3, 21, 30)), (2, lent(4, 0, 9))]
        {
            loans.watch(gateway(to), &message).expect("nobody else has it");
        }
        assert!(loans.watch(gateway(3), &lent(3, 20, 25)).is_err());
        assert!(loans.watch(gateway(2), &lent(3, 5, 6)).is_err());
    }

    #[test]
    fn a_stamp_has_a_writer_who_could_draw_it() {
        let mut loans = Loans::default();
        loans.watch(gateway(1), &lent(3, 0, 10)).expect("nobody else has it");
        let clock = |tick| base::ClusterClock::new(Time(0), ClusterTime(ClusterTime::FIRST.0 + tick));
        let drawn = |tick| {
            base::StampClock::new(3, Loan::UNBOUNDED, clock(tick)).draw(Time(0)).expect("there is no end")
        };
        assert!(loans.on_stamp(drawn(9)).is_ok());
        assert!(loans.on_stamp(drawn(11)).is_err());
        assert!(loans.on_stamp(Stamp(7)).is_ok(), "a brick's own");
    }
}
