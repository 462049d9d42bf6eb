//! A network of its own for a cluster: each daemon in a network namespace, all of them on one bridge, and what is dropped
//! between them decided by nftables rules in each. Needs root. All of it is taken down when the value is dropped.
//!
//! Packets are dropped where they arrive, so that a cut may be one-way.

use super::late_link::LateLink;
use anyhow::{Context, Result, ensure};
use job::process::run;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Addresses are 10.N.a.b with an N of 64 and above, by the id of the process that makes them.
const FIRST_NET: u32 = 64;
const NETS: u32 = 128;
const LIMIT_S: u64 = 30;

/// Namespaces on a bridge.
pub struct Network {
    bridge: String,
    net: u32,
    /// Address of each node by its name.
    nodes: BTreeMap<String, String>,
    /// Of those nodes whose packets can be late.
    late_links: BTreeMap<String, LateLink>,
    rules: PathBuf,
}

/// What is between a node and the bridge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Link {
    /// The kernel carries packets.
    Prompt,
    /// This process carries packets, and can hold them back.
    Late,
}

impl Network {
    /// A bridge with nobody on it; this machine itself has an address there. Rules are kept in `dir`.
    pub fn new(dir: &Path) -> Result<Network> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        ensure!(job::process::is_root(), "network namespaces need root");
        sweep();
        let (pid, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let net = FIRST_NET + (pid + number) % NETS;
        // Names of links have 15 characters at most.
        let bridge = format!("bw{pid:x}x{number:x}");
        let network = Network {
            bridge,
            net,
            nodes: BTreeMap::new(),
            late_links: BTreeMap::new(),
            rules: dir.join("rules.nft"),
        };
        ip(&["link", "add", &network.bridge, "type", "bridge"])?;
        ip(&["addr", "add", &format!("10.{net}.0.254/16"), "dev", &network.bridge])?;
        ip(&["link", "set", &network.bridge, "up"])?;
        Ok(network)
    }

    /// Puts a node on the bridge; its namespace and address.
    pub fn add(&mut self, name: &str, link: Link) -> Result<(String, String)> {
        let number = self.nodes.len() as u32 + 1;
        let (namespace, address) = (self.namespace(name), format!("10.{}.1.{number}", self.net));
        let outside = self.link(number);
        ip(&["netns", "add", &namespace])?;
        self.nodes.insert(name.to_owned(), address.clone());
        match link {
            Link::Prompt => {
                ip(&["link", "add", &outside, "type", "veth", "peer", "name", "eth0", "netns", &namespace])?;
            }
            Link::Late => {
                let inside = format!("{outside}i");
                self.late_links.insert(name.to_owned(), LateLink::new(&outside, &inside)?);
                ip(&["link", "set", &inside, "netns", &namespace, "name", "eth0"])?;
            }
        }
        ip(&["link", "set", &outside, "master", &self.bridge, "up"])?;
        ip(&["-n", &namespace, "addr", "add", &format!("{address}/16"), "dev", "eth0"])?;
        ip(&["-n", &namespace, "link", "set", "lo", "up"])?;
        ip(&["-n", &namespace, "link", "set", "eth0", "up"])?;
        self.drop_from(name, &[])?;
        Ok((namespace, address))
    }

    /// From now on drops what goes from the first to the second node of each pair, and nothing else.
    pub fn cut(&self, pairs: &[(String, String)]) -> Result<()> {
        for name in self.nodes.keys() {
            let senders: Vec<&str> =
                pairs.iter().filter(|(_, to)| to == name).map(|(from, _)| from.as_str()).collect();
            self.drop_from(name, &senders)?;
        }
        Ok(())
    }

    /// Drops nothing any more.
    pub fn heal(&self) -> Result<()> {
        self.cut(&[])
    }

    /// From now on a packet to a node and the answer to it take so much longer together. Its link must be [`Link::Late`].
    pub fn set_late(&self, name: &str, late: Duration) -> Result<()> {
        let link = self.late_links.get(name).with_context(|| format!("packets of {name} cannot be late"))?;
        link.set(late / 2);
        Ok(())
    }

    /// Makes the rules of one node.
    fn drop_from(&self, name: &str, senders: &[&str]) -> Result<()> {
        let mut rules = "table inet cut\ndelete table inet cut\ntable inet cut {\n  chain in {\n".to_owned();
        rules += "    type filter hook input priority 0; policy accept;\n";
        for sender in senders {
            let address = self.nodes.get(*sender).with_context(|| format!("no node {sender}"))?;
            writeln!(rules, "    ip saddr {address} drop")?;
        }
        rules += "  }\n}\n";
        std::fs::write(&self.rules, rules)?;
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(name), "nft", "-f"]).arg(&self.rules);
        run("nft", &mut command, LIMIT_S).map(drop)
    }

    fn link(&self, number: u32) -> String {
        format!("{}n{number}", self.bridge)
    }

    fn namespace(&self, name: &str) -> String {
        format!("{}-{name}", self.bridge)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in self.late_links.keys() {
            let _ = ip(&["-n", &self.namespace(name), "link", "del", "eth0"]);
        }
        for name in self.nodes.keys() {
            let _ = ip(&["netns", "del", &self.namespace(name)]);
        }
        // Links go with their namespaces, but those go only when the kernel has forgotten their last connections.
        for number in 1..=self.nodes.len() as u32 {
            let _ = ip(&["link", "del", &self.link(number)]);
        }
        let _ = ip(&["link", "del", &self.bridge]);
    }
}

/// Removes what a killed run left: names begin with the id of a process, and that one has ended.
fn sweep() {
    let left = |folder: &str| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(|name| is_orphan(name))
    };
    left("/run/netns").for_each(|name| drop(ip(&["netns", "del", &name])));
    left("/sys/class/net").for_each(|name| drop(ip(&["link", "del", &name])));
}

fn is_orphan(name: &str) -> bool {
    let owner = name.strip_prefix("bw").and_then(|rest| rest.split_once('x'));
    let owner = owner.and_then(|(pid, _)| u32::from_str_radix(pid, 16).ok());
    owner.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists())
}

fn ip(arguments: &[&str]) -> Result<()> {
    run("ip", Command::new("ip").args(arguments), LIMIT_S).map(drop)
}

#[cfg(test)]
mod tests {
    use super::{Link, Network, is_orphan};
    use std::io::ErrorKind;
    use std::net::TcpStream;
    use std::time::{Duration, Instant};

    /// Somebody who is asked for a connection that he does not take answers at once: how long that took.
    fn round_trip(address: &str) -> Duration {
        let began = Instant::now();
        let refused = TcpStream::connect((address, 9)).expect_err("nobody listens there");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        began.elapsed()
    }

    #[test]
    fn packets_of_a_late_link_take_as_much_longer_as_was_said() {
        // Only root makes namespaces.
        if !job::process::is_root() {
            return;
        }
        let dir = job::scratch("networks").expect("a folder");
        let mut network = Network::new(&dir).expect("a network");
        let (_, prompt) = network.add("prompt", Link::Prompt).expect("a node");
        let (_, late) = network.add("late", Link::Late).expect("a node");
        let both = |network: &Network, ms| {
            network.set_late("late", Duration::from_millis(ms)).expect("it can be late");
            [&prompt, &late].map(|address| round_trip(address))
        };
        // The first packets find out who has the addresses.
        both(&network, 0);
        let [prompt_took, late_took] = both(&network, 200);
        assert!(prompt_took < Duration::from_millis(200) && late_took >= Duration::from_millis(200));
        assert!(late_took < Duration::from_millis(400), "{late_took:?}");
        assert!(both(&network, 0)[1] < Duration::from_millis(200));
        assert!(network.set_late("prompt", Duration::ZERO).is_err());
    }

    #[test]
    fn only_what_ended_runs_left_is_swept() {
        assert!(is_orphan("bwffffffx0-brick-1") && is_orphan("bwffffffx0n3"));
        let own = format!("bw{:x}x0-brick-1", std::process::id());
        assert!(!is_orphan(&own) && !is_orphan("eth0") && !is_orphan("bwx") && !is_orphan("bridge0"));
    }
}
