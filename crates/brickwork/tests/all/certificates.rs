//! A stream that a client's certificate names, on a cluster of real processes that speak TLS.

use crate::common::{Site, content};
use rig::nbd::{Nbd, command, connect, greet, head, read_option_reply, send_option};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const OPTION_START_TLS: u32 = 5;
const OPTION_GO: u32 = 7;
const REPLY_ACK: u32 = 1;
/// Far above what anything here takes.
const LIMIT: Duration = Duration::from_secs(30);
const MIB: usize = 1 << 20;

/// An NBD connection over TLS, with the client's certificate in `folder`.
struct Secure(rustls::StreamOwned<rustls::ClientConnection, TcpStream>);

impl Secure {
    fn open(site: &Site, folder: &Path, export: &str) -> Secure {
        let mut plain = connect(site.cluster.gateways[0].nbd_port).expect("the gateway listens");
        greet(&mut plain).expect("a greeting");
        send_option(&mut plain, OPTION_START_TLS, &[]).expect("sent");
        assert_eq!(read_option_reply(&mut plain).expect("an answer").0, REPLY_ACK);
        let mut stream = rustls::StreamOwned::new(tls(folder), plain);
        let mut wanted = Vec::from((export.len() as u32).to_be_bytes());
        wanted.extend_from_slice(export.as_bytes());
        wanted.extend_from_slice(&[0; 2]);
        send_option(&mut stream, OPTION_GO, &wanted).expect("sent");
        while read_option_reply(&mut stream).expect("the export opens").0 != REPLY_ACK {}
        Secure(stream)
    }

    fn write(&mut self, content: &[u8]) {
        self.0.write_all(&head(command::WRITE, 1, 0, content.len() as u32)).expect("sent");
        self.0.write_all(content).expect("sent");
        let mut reply = [0; 16];
        self.0.read_exact(&mut reply).expect("a reply");
        assert_eq!(reply[4..8], [0; 4], "it is written");
    }
}

fn tls(folder: &Path) -> rustls::ClientConnection {
    let mut roots = rustls::RootCertStore::empty();
    let read = |name: &str| CertificateDer::from_pem_file(folder.join(name)).expect("a certificate");
    roots.add(read("ca.pem")).expect("an authority");
    let key = PrivateKeyDer::from_pem_file(folder.join("client.key")).expect("a key");
    let config = rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![read("client.pem")], key)
        .expect("a certificate and its key");
    let name = ServerName::try_from("gateway.brickwork").expect("a name");
    rustls::ClientConnection::new(config.into(), name).expect("a connection")
}

/// What bricks served of `default` and of `gold`, in units.
fn served(site: &Site) -> [f64; 2] {
    let pages = site.cluster.brick_pages().expect("bricks tell their metrics");
    ["default", "gold"].map(|stream| {
        let name = format!("brickwork_stream_served_units_total{{stream=\"{stream}\"}}");
        pages.iter().filter_map(|page| page.get(&name)).sum()
    })
}

/// Waits until bricks have told that they served a MiB to three copies since `before`, and says to whom.
fn grown(site: &Site, before: [f64; 2]) -> [f64; 2] {
    let (end, units) = (Instant::now() + LIMIT, 3.0 * (8.0 + 256.0));
    loop {
        let now = served(site);
        let grown = [now[0] - before[0], now[1] - before[1]];
        if grown[0] + grown[1] >= units {
            return grown;
        }
        assert!(Instant::now() < end, "{grown:?} of {units}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A client with a certificate of stream `gold`.
fn tenant(site: &Site) -> PathBuf {
    let folder = site.dir.path().join("tenant");
    let dir = site.dir.path().display();
    let token = site.text(&format!("cluster token --dir {dir} --role client --stream gold"));
    let said = site.text(&format!("client init --dir {} --join {}", folder.display(), token.trim()));
    assert!(said.contains("belongs to stream 'gold'"), "{said}");
    let list = site.text(&format!("cluster token --dir {dir} --list"));
    assert!(list.contains("client of stream-1"), "{list}");
    folder
}

/// The volume belongs to `default`. Whoever shows the certificate of `gold` is served as `gold`, over NBD and through `attach`.
#[test]
fn what_a_client_asks_belongs_to_the_stream_of_its_certificate() {
    let mut site = Site::secure(3);
    site.text("stream create gold --weight 400");
    site.text("volume create v --size 16MiB --groups 1");
    site.cluster.wait_for_streams().expect("bricks hear of the stream");
    let (tenant, admin) = (tenant(&site), site.dir.path().join("admin"));

    let before = served(&site);
    Secure::open(&site, &tenant, "v").write(&content(MIB, 1));
    let [default, gold] = grown(&site, before);
    assert!(default == 0.0 && gold > 0.0, "over NBD: {default} and {gold}");

    let before = served(&site);
    Secure::open(&site, &admin, "v").write(&content(MIB, 2));
    let [default, gold] = grown(&site, before);
    assert!(default > 0.0 && gold == 0.0, "its certificate names no stream: {default} and {gold}");

    let before = served(&site);
    let (short, config) = (tempfile::tempdir().expect("a directory"), tenant.join("client.toml"));
    let socket = short.path().join("v.sock");
    let words = ["--config", config.to_str().expect("text"), "attach", "v", "--socket"];
    let words: Vec<&str> = words.into_iter().chain(socket.to_str()).collect();
    site.cluster.spawn("attach", &words).expect("attach starts");
    let end = Instant::now() + LIMIT;
    let mut attached = loop {
        match Nbd::unix(&socket, "v") {
            Ok(nbd) => break nbd,
            Err(error) => assert!(Instant::now() < end, "{error:#}"),
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    attached.write(0, &content(MIB, 3)).expect("written");
    let [default, gold] = grown(&site, before);
    assert!(default == 0.0 && gold > 0.0, "through attach: {default} and {gold}");
}

/// Found from outside: any client made 300 bricks that there are not, and could evict those that there are.
#[test]
fn whoever_changes_the_cluster_shows_an_operators_certificate() {
    let site = Site::secure(1);
    let dir = site.dir.path().display();
    let joined = |role: &str| {
        let folder = site.dir.path().join(role);
        let token = site.text(&format!("cluster token --dir {dir} --role {role}"));
        site.text(&format!("client init --dir {} --join {}", folder.display(), token.trim()));
        folder.join("client.toml").display().to_string()
    };
    let (client, operator) = (joined("client"), joined("operator"));
    for shown in ["status", "volume list", "brick list", "stream list"] {
        site.text(&format!("--config {client} {shown}"));
    }
    for changing in
        ["volume create v --size 16MiB --layout raid0x1", "brick evict brick-1 --yes", "stream create gold"]
    {
        let refusal = site.refusal(&format!("--config {client} {changing}"));
        assert!(refusal.contains("takes an operator's certificate"), "{changing}: {refusal}");
    }
    site.text(&format!("--config {operator} volume create v --size 16MiB --layout raid0x1"));
}

#[test]
fn a_token_of_a_stream_that_cannot_be_is_refused_with_what_would_be_right() {
    let site = Site::secure(0);
    let dir = site.dir.path().display();
    site.text("stream create gold");
    for (arguments, hint) in [
        ("--role client --stream none", "no stream named 'none'; `brickwork stream list`"),
        ("--role client --stream maintenance", "background work"),
        ("--role client --stream repair", "background work"),
        ("--role client --stream destage", "background work"),
        ("--role gateway --stream gold", "give --role client with --stream gold"),
        ("--stream gold", "give --role client with --stream gold"),
    ] {
        let refusal = site.refusal(&format!("cluster token --dir {dir} {arguments}"));
        assert!(refusal.contains(hint), "{arguments}: {refusal}");
    }
    let plain = tempfile::tempdir().expect("a directory");
    let at = plain.path().join("c").display().to_string();
    let init = format!("cluster init --dir {at} --plaintext");
    assert!(site.run(&init).status.success());
    let refusal = site.refusal(&format!("cluster token --dir {at} --role client --stream gold"));
    assert!(refusal.contains("a cluster without TLS"), "{refusal}");
    let tokens = std::fs::read_to_string(site.dir.path().join("tokens.json")).expect("records");
    assert!(!tokens.contains("stream"), "nothing was made: {tokens}");
}

/// Bricks close the connection of a client that asks them for fragments, and would not say why.
#[test]
fn a_client_that_asks_for_objects_is_told_what_it_needs() {
    let site = Site::secure(0);
    let refusal = |config: &str| {
        site.refusal(&format!("object ls files --config {}", site.dir.path().join(config).display()))
    };
    let said = refusal("admin/client.toml");
    assert!(
        said.contains("client.toml is a client's configuration") && said.contains("gateway init"),
        "{said}"
    );
    let own = std::fs::read_to_string(site.dir.path().join("gateway-1/gateway.toml")).expect("it is there");
    let wrong =
        own.replace("gateway.pem", "../admin/client.pem").replace("gateway.key", "../admin/client.key");
    std::fs::write(site.dir.path().join("gateway-1/wrong.toml"), wrong).expect("a file");
    let said = refusal("gateway-1/wrong.toml");
    assert!(said.contains("client.pem is a client's certificate") && said.contains("gateway init"), "{said}");
}
