//! What daemons say of themselves, as Prometheus would ask.

use crate::nbd::connect;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::io::{Read, Write};

/// How often a daemon is asked before it counts as gone.
const TRIES: u32 = 3;

/// The metrics without labels of one daemon.
pub(super) type Page = BTreeMap<String, f64>;

/// The metrics of all bricks and gateways, each a page: bricks first, in their order. Who does not answer has an empty one.
pub struct Metrics(pub Vec<Page>);

impl Metrics {
    /// By how much it grew since `before`, over all that answered both times.
    pub fn grown(&self, before: &Metrics, name: &str) -> f64 {
        let pages = self.0.iter().zip(&before.0);
        pages.filter_map(|(after, before)| Some(after.get(name)? - before.get(name)?)).sum()
    }
}

/// Asks the daemon at a port.
pub(super) fn fetch(port: u16) -> Page {
    let text = || -> Result<String> {
        let mut stream = connect(port)?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text).context("waiting for metrics")?;
        Ok(text)
    };
    // One that stands still now and then answers the next time.
    let answers = (0..TRIES).find_map(|_| text().ok().filter(|text| text.contains("brickwork_")));
    parse(&answers.unwrap_or_default())
}

fn parse(text: &str) -> Page {
    let lines = text.lines().filter(|line| line.starts_with("brickwork_"));
    let pairs = lines.filter_map(|line| line.split_once(' '));
    pairs.filter_map(|(name, value)| Some((name.to_owned(), value.trim().parse().ok()?))).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn figures_are_found_among_comments() {
        let page = super::parse(
            "HTTP/1.1 200 OK\r\n\r\n# TYPE brickwork_a counter\nbrickwork_a 7\nother 3\n\nbrickwork_b 0.5\n",
        );
        assert_eq!(page.get("brickwork_a"), Some(&7.0));
        assert_eq!((page.len(), page["brickwork_b"]), (2, 0.5));
    }
}
