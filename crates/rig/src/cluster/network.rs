//! A network of its own for a cluster: each daemon in a network namespace, all of them on one bridge, and what is dropped
//! between them decided by nftables rules in each. Needs root. All of it is taken down when the value is dropped.
//!
//! Packets are dropped where they arrive, so that a cut may be one-way.

use anyhow::{Context, Result, ensure};
use job::process::run;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

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
    rules: PathBuf,
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
        let network = Network { bridge, net, nodes: BTreeMap::new(), rules: dir.join("rules.nft") };
        ip(&["link", "add", &network.bridge, "type", "bridge"])?;
        ip(&["addr", "add", &format!("10.{net}.0.254/16"), "dev", &network.bridge])?;
        ip(&["link", "set", &network.bridge, "up"])?;
        Ok(network)
    }

    /// Puts a node on the bridge; its namespace and address.
    pub fn add(&mut self, name: &str) -> Result<(String, String)> {
        let number = self.nodes.len() as u32 + 1;
        let (namespace, address) = (self.namespace(name), format!("10.{}.1.{number}", self.net));
        let link = self.link(number);
        ip(&["netns", "add", &namespace])?;
        self.nodes.insert(name.to_owned(), address.clone());
        ip(&["link", "add", &link, "type", "veth", "peer", "name", "eth0", "netns", &namespace])?;
        ip(&["link", "set", &link, "master", &self.bridge, "up"])?;
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
    use super::is_orphan;

    #[test]
    fn only_what_ended_runs_left_is_swept() {
        assert!(is_orphan("bwffffffx0-brick-1") && is_orphan("bwffffffx0n3"));
        let own = format!("bw{:x}x0-brick-1", std::process::id());
        assert!(!is_orphan(&own) && !is_orphan("eth0") && !is_orphan("bwx") && !is_orphan("bridge0"));
    }
}
