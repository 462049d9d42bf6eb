//! Which clients and requests are watched after a client's gateway was killed, for [`live`](super::live).

use std::collections::BTreeMap;

#[derive(Default)]
pub(crate) struct Watched {
    /// Clients whose gateway was killed, and until when their new requests are watched.
    clients: BTreeMap<usize, u64>,
    /// Requests by tag: until when they must be answered, and what they are.
    requests: BTreeMap<u64, (u64, String)>,
}

impl Watched {
    /// What the client at `client` is newly asked is watched, too, until then.
    pub(crate) fn watch_client(&mut self, client: usize, until_ns: u64) {
        self.clients.insert(client, until_ns);
    }

    pub(crate) fn has_clients(&self) -> bool {
        !self.clients.is_empty()
    }

    /// Whether new requests of a client are watched.
    pub(crate) fn watches(&self, client: usize, now_ns: u64) -> bool {
        self.clients.get(&client).is_some_and(|&until_ns| now_ns < until_ns)
    }

    /// A request must be answered by then.
    pub(crate) fn watch(&mut self, tag: u64, until_ns: u64, text: String) {
        self.requests.insert(tag, (until_ns, text));
    }

    /// A request is answered. Whether it was watched.
    pub(crate) fn end(&mut self, tag: u64) -> bool {
        self.requests.remove(&tag).is_some()
    }

    /// What a watched request is that should have been answered by now; none if it was watched anew meanwhile.
    pub(crate) fn take_due(&mut self, tag: u64, now_ns: u64) -> Option<String> {
        let (until_ns, _) = self.requests.get(&tag)?;
        let is_due = *until_ns <= now_ns;
        is_due.then(|| self.requests.remove(&tag)).flatten().map(|(_, text)| text)
    }

    /// Something else goes wrong: no verdict.
    pub(crate) fn clear(&mut self) {
        self.clients.clear();
        self.requests.clear();
    }
}
