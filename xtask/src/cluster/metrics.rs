//! What daemons say of themselves, as Prometheus would ask.

use crate::nbd::connect;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::io::{Read, Write};

/// The metrics without labels of one daemon.
pub(crate) type Page = BTreeMap<String, f64>;

/// The metrics of all bricks and gateways, each a page: bricks first, in their order. Who does not answer has an empty one.
pub(crate) struct Metrics(pub(super) Vec<Page>);

impl Metrics {
    /// The sum over all that have it.
    pub(crate) fn sum(&self, name: &str) -> f64 {
        self.0.iter().filter_map(|page| page.get(name)).sum()
    }

    /// Of the last gateway.
    pub(crate) fn of_gateway(&self, name: &str) -> f64 {
        self.0.last().and_then(|page| page.get(name)).copied().unwrap_or(0.0)
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
    parse(&text().unwrap_or_default())
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
