//! What daemons say of themselves, as Prometheus would ask.

use crate::nbd::connect;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::io::{Read, Write};

/// How often a daemon is asked before it counts as gone.
const TRIES: u32 = 3;

/// The metrics of one daemon: each a name, with its labels.
pub type Page = BTreeMap<String, f64>;

/// The metrics of all bricks and gateways, each a page: bricks first, in their order. Who does not answer has an empty one.
pub struct Metrics(pub(super) Vec<Page>);

impl Metrics {
    /// By how much it grew since `before`, over all that answered both times.
    pub fn grown(&self, before: &Metrics, name: &str) -> f64 {
        let pages = self.0.iter().zip(&before.0);
        pages.filter_map(|(after, before)| Some(after.get(name)? - before.get(name)?)).sum()
    }

    /// The same of what there need not have been before, over all daemons that answered both times.
    pub fn grown_from_nothing(&self, before: &Metrics, name: &str) -> f64 {
        let pages = self.0.iter().zip(&before.0).filter(|(_, before)| !before.is_empty());
        pages.filter_map(|(after, before)| Some(after.get(name)? - before.get(name).unwrap_or(&0.0))).sum()
    }
}

/// Asks the daemon at a port.
pub(super) fn ask(port: u16) -> Result<Page> {
    Ok(page(&told(port)?))
}

/// What the daemon at a port answers to Prometheus, without the head of HTTP.
pub fn told(port: u16) -> Result<String> {
    let mut stream = connect(port)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text).with_context(|| format!("waiting for the metrics at port {port}"))?;
    let (_, body) = text.split_once("\r\n\r\n").context("the answer has no head of HTTP")?;
    Ok(body.to_owned())
}

/// The page of the daemon at a port; one that stands still now and then answers the next time.
pub(super) fn fetch(port: u16) -> Page {
    let answered = (0..TRIES).find_map(|_| ask(port).ok().filter(|page| !page.is_empty()));
    answered.unwrap_or_default()
}

/// What is told in this text.
pub fn page(text: &str) -> Page {
    let lines = text.lines().filter(|line| line.starts_with("brickwork_"));
    let pairs = lines.filter_map(|line| line.rsplit_once(' '));
    pairs.filter_map(|(name, value)| Some((name.to_owned(), value.trim().parse().ok()?))).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn figures_are_found_among_comments() {
        let found = super::page(
            "HTTP/1.1 200 OK\r\n\r\n# TYPE brickwork_a counter\nbrickwork_a 7\nother 3\n\nbrickwork_b 0.5\n",
        );
        assert_eq!(found.get("brickwork_a"), Some(&7.0));
        assert_eq!((found.len(), found["brickwork_b"]), (2, 0.5));
    }
}
