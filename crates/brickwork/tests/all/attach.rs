//! `brickwork attach` beside gateways that restart, volumes that grow and volumes that are not there.

use crate::common::{BINARY, Site, content, text};
use rig::cluster;
use rig::nbd::Nbd;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn there_is_nothing_to_attach_without_the_volume() {
    let site = Site::start(1);
    let gateway = site.dir.path().join("gateway-1/gateway.toml");
    let client = site.cluster.client_config();
    for (config, further) in [(&client, None), (&gateway, Some("--direct"))] {
        let socket = site.dir.path().join("nosuch.sock");
        let mut command = Command::new("timeout");
        command.arg("30").arg(BINARY).arg("--config").arg(config).args(["attach", "nosuch", "--socket"]);
        let output = command.arg(&socket).args(further).output().expect("the binary runs");
        let (said, complaint) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{said}{complaint}");
        assert!(
            !said.contains("ready") && complaint.contains("no volume named 'nosuch'"),
            "{said}{complaint}"
        );
        assert!(!socket.exists(), "nobody listens there");
    }
}

#[test]
fn a_resize_reaches_those_who_connect_to_attach() {
    let site = Site::start(1);
    site.text("volume create v --size 16MiB --layout raid0x1 --groups 1");
    for direct in [false, true] {
        let socket = site.dir.path().join(format!("direct-{direct}.sock"));
        let attach = if direct { cluster::attach_direct } else { cluster::attach };
        let _attached = attach(&site.cluster, "v", &socket).expect("it attaches");
        let mut before = Nbd::unix(&socket, "v").expect("it connects");
        let (old, new) = if direct { (32, 48) } else { (16, 32) };
        assert_eq!(before.size, old << 20);
        site.text(&format!("volume resize v --size {new}MiB"));
        let started = Instant::now();
        let mut after = loop {
            let nbd = Nbd::unix(&socket, "v").expect("it connects");
            if nbd.size == new << 20 {
                break nbd;
            }
            assert!(started.elapsed() < LIMIT, "a new connection still sees {} bytes", nbd.size);
            thread::sleep(Duration::from_millis(100));
        };
        eprintln!("direct {direct}: the new size is seen after {:.1} s", started.elapsed().as_secs_f64());
        after.write((old << 20) + 4096, &content(4096, 1)).expect("what is new is written");
        before.write(0, &content(4096, 2)).expect("who was connected goes on");
    }
}

/// Found from outside: after its gateway had restarted at the same address, each call of the old id ended the connection to the new one.
#[test]
fn a_gateway_that_restarts_at_its_address_is_connected_once() {
    let mut site = Site::measured(1);
    site.text("volume create v --size 16MiB --layout raid0x1 --groups 1");
    let socket = site.dir.path().join("attach.sock");
    let attached = cluster::attach(&site.cluster, "v", &socket).expect("it attaches");
    let mut nbd = Nbd::unix(&socket, "v").expect("it connects");
    for round in 0..5 {
        site.cluster.gateways[0].daemon.kill().expect("it is killed");
        site.cluster.gateways[0].daemon.restart().expect("it is there again");
        let started = Instant::now();
        nbd.write(0, &content(4096, round)).expect("I/O goes on");
        eprintln!("I/O went on {:.2} s after the gateway's restart", started.elapsed().as_secs_f64());
    }
    let connections = || {
        thread::sleep(cluster::METRICS_RENEWED);
        let port = *site.cluster.metrics_ports().last().expect("the gateway's");
        site.cluster.page_at(port).expect("it answers")["brickwork_peer_connections_total"]
    };
    let (lines, opened) = (attached.stderr().lines().count(), connections());
    thread::sleep(Duration::from_secs(10));
    let more = (attached.stderr().lines().count() - lines, connections() - opened);
    eprintln!("{lines} lines for 5 restarts, then in 10 s {} lines and {} connections more", more.0, more.1);
    assert!(more.0 <= 1 && more.1 <= 1.0, "{more:?} lines and connections in 10 s: {}", attached.stderr());
    assert!(lines <= 15, "{lines} lines for five restarts: {}", attached.stderr());
    assert_eq!(nbd.read(0, 4096).expect("it reads"), content(4096, 4));
}
