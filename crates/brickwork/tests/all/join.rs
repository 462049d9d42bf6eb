//! Joining over loopback, with and without TLS: a machine with the token gets in, a stranger gets nothing.

use brickwork_cli::join::service::{JoinService, serve};
use brickwork_cli::join::{JoinRequest, client};
use brickwork_cli::security::token::{Grant, JoinRole};
use brickwork_cli::security::{Authority, Role, Secrets, Token, certificates};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const CLUSTER: &str = "000102030405060708090a0b0c0d0e0f";

/// A directory's files and its running join service; returns a token.
fn cluster(dir: &Path, tls: bool, grant: Grant) -> Token {
    let authority = tls.then(|| Authority::create(dir, "test").expect("authority"));
    if let Some(authority) = &authority {
        authority.issue(dir, "directory", Role::Directory, &[]).expect("certificate");
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let address = listener.local_addr().expect("address").to_string();
    let next = AtomicU32::new(1);
    let service = JoinService {
        cluster: CLUSTER.to_owned(),
        directory: "127.0.0.1:7000".to_owned(),
        authority: dir.to_owned(),
        identity: tls.then(|| (dir.join("directory.pem"), dir.join("directory.key"))),
        admit: Box::new(move |_| Ok(base::BrickId(next.fetch_add(1, Ordering::SeqCst)))),
    };
    serve(service, listener).expect("serve");
    let fingerprint = authority.map(|authority| authority.fingerprint().expect("fingerprint"));
    let token = Token::new(CLUSTER.to_owned(), address, fingerprint, grant);
    Secrets::at(dir).add(&token.secret, grant, Duration::from_secs(60)).expect("record");
    token
}

fn request(token: &Token, role: JoinRole) -> JoinRequest {
    let key = certificates::new_key().expect("key");
    let request = Some(certificates::request(&key).expect("request"));
    JoinRequest { secret: token.secret.clone(), role, nonce: 7, request, addresses: Vec::new() }
}

#[test]
fn a_brick_with_the_token_gets_an_id_and_a_certificate() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let token = cluster(dir.path(), true, Grant::Anything);
    let admission = client::join(&token, &request(&token, JoinRole::Brick)).expect("admitted");
    assert_eq!((admission.brick, admission.cluster.as_str()), (Some(1), CLUSTER));
    let certificate = admission.certificate.expect("certificate");
    let der = certificates::first_certificate(&certificate).expect("PEM");
    let name = b"brick-1.bricks.brickwork";
    assert!(der.windows(name.len()).any(|window| window == name), "the certificate names the brick");
}

#[test]
fn a_client_with_a_token_of_a_stream_gets_a_certificate_that_names_it() {
    let dir = tempfile::tempdir().expect("temporary directory");
    for grant in [Grant::ClientOf(base::StreamId(12)), Grant::Role(JoinRole::Client), Grant::Anything] {
        let dir = dir.path().join(format!("{grant:?}"));
        std::fs::create_dir(&dir).expect("a directory");
        let token = cluster(&dir, true, grant);
        let admission = client::join(&token, &request(&token, JoinRole::Client)).expect("admitted");
        let certificate = admission.certificate.expect("certificate");
        let der = certificates::first_certificate(&certificate).expect("PEM");
        assert_eq!(host::stream_named_by(&der), grant.stream(), "{grant:?}");
        let refused = client::join(&token, &request(&token, JoinRole::Gateway)).is_err();
        assert_eq!(refused, grant != Grant::Anything, "{grant:?}");
    }
}

#[test]
fn without_tls_a_token_admits_all_the_same() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let token = cluster(dir.path(), false, Grant::Anything);
    let admission = client::join(&token, &request(&token, JoinRole::Gateway)).expect("admitted");
    assert_eq!((admission.brick, admission.certificate), (None, None));
}

#[test]
fn a_stranger_and_a_token_for_another_role_are_refused_alike() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let token = cluster(dir.path(), true, Grant::Role(JoinRole::Gateway));
    let mut stranger = request(&token, JoinRole::Gateway);
    stranger.secret = "00".repeat(32);
    let unknown = format!("{:#}", client::join(&token, &stranger).expect_err("refused"));
    let other_role =
        format!("{:#}", client::join(&token, &request(&token, JoinRole::Brick)).expect_err("refused"));
    assert!(unknown.contains("refused") && !unknown.contains(CLUSTER), "{unknown}");
    assert_eq!(unknown, other_role);
}

#[test]
fn a_joiner_does_not_show_its_secret_to_another_authority() {
    let (ours, theirs) = (tempfile::tempdir().expect("directory"), tempfile::tempdir().expect("directory"));
    let token = cluster(ours.path(), true, Grant::Anything);
    let mut impostor = cluster(theirs.path(), true, Grant::Anything);
    impostor.authority.clone_from(&token.authority);
    impostor.secret.clone_from(&token.secret);
    let error =
        format!("{:#}", client::join(&impostor, &request(&token, JoinRole::Brick)).expect_err("refused"));
    assert!(error.contains("does not prove to be the cluster"), "{error}");
}

#[test]
fn noise_and_silence_cost_nobody_else_anything() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let token = cluster(dir.path(), false, Grant::Anything);
    let _silent: Vec<_> = (0..4).map(|_| TcpStream::connect(&token.join).expect("connect")).collect();
    let mut noisy = TcpStream::connect(&token.join).expect("connect");
    noisy.set_read_timeout(Some(Duration::from_secs(30))).expect("timeout");
    noisy.write_all(&[0xff; 64]).expect("send");
    let closed = noisy.read(&mut [0; 64]);
    assert!(matches!(closed, Ok(0) | Err(_)), "a length beyond the bound ends the connection: {closed:?}");
    client::join(&token, &request(&token, JoinRole::Brick)).expect("admitted beside the silent ones");
}

/// A small file system of its own, unmounted when this is dropped; `None`, and a word why, where mounts are not permitted.
struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    fn mount(bytes: u64) -> Option<Tmpfs> {
        let folder = tempfile::tempdir().expect("a directory");
        let size = format!("size={bytes}");
        let arguments = ["-t", "tmpfs", "-o", &size, "tmpfs"];
        let mounted = std::process::Command::new("mount").args(arguments).arg(folder.path()).output();
        match mounted {
            Ok(output) if output.status.success() => Some(Tmpfs(folder)),
            other => {
                eprintln!("skipped: cannot mount a tmpfs: {other:?}");
                None
            }
        }
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

/// Found from outside: a `brick init` without room left a registered brick that nobody was, and a full file system.
#[test]
fn a_brick_init_without_room_leaves_neither_files_nor_a_registered_brick() {
    let Some(small) = Tmpfs::mount(16 << 20) else { return };
    let dir = tempfile::tempdir().expect("temporary directory");
    let admitted = std::sync::Arc::new(AtomicU32::new(0));
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let address = listener.local_addr().expect("address").to_string();
    let service = JoinService {
        cluster: CLUSTER.to_owned(),
        directory: "127.0.0.1:7000".to_owned(),
        authority: dir.path().to_owned(),
        identity: None,
        admit: Box::new({
            let admitted = admitted.clone();
            move |_| Ok(base::BrickId(admitted.fetch_add(1, Ordering::SeqCst) + 1))
        }),
    };
    serve(service, listener).expect("serve");
    let token = Token::new(CLUSTER.to_owned(), address, None, Grant::Anything);
    Secrets::at(dir.path()).add(&token.secret, Grant::Anything, Duration::from_secs(60)).expect("record");
    let init = |disks: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_brickwork"));
        command.args(["brick", "init", "--dir"]).arg(small.0.path().join("brick"));
        for disk in disks {
            command.arg("--disk").arg(small.0.path().join(disk));
        }
        command.env("BRICKWORK_JOIN", token.to_string()).output().expect("the binary runs")
    };
    // Each fits, and both together do not.
    let output = init(&["a:10MiB", "b:10MiB"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("are wanted for the brick's disks"), "{said}");
    assert_eq!(admitted.load(Ordering::SeqCst), 0, "a brick was registered");
    let left: Vec<_> = std::fs::read_dir(small.0.path()).expect("readable").collect();
    assert!(left.is_empty(), "{left:?}");
    let output = init(&["a:10MiB"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(admitted.load(Ordering::SeqCst), 1);
}
