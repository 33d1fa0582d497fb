//! Certificates on both sides, and what is refused.

use super::relay::{Behind, Relay};
use super::{attested_at, held, tls_flags};
use crate::common::certificates::{Authority, Holder, Pair, Validity};
use crate::common::private_engine::PrivateEngine;
use crate::common::traces::nothing_written;
use crate::common::{Said, attest, run, tool, whole_engine};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// `engines` at an address: connects, asks, and makes nothing.
fn look(host: &str, flags: &[String]) -> Said {
    let mut command = tool();
    command.args(["engines", "--format", "json", "--host", host]);
    run(command.args(flags))
}

/// Puts certificates into a directory under the names that Docker's client gives them.
fn put_for_docker(folder: &Path, ca: &Path, pair: &Pair) {
    fs::create_dir(folder).unwrap();
    for (from, name) in [
        (ca, "ca.pem"),
        (&pair.cert, "cert.pem"),
        (&pair.key, "key.pem"),
    ] {
        fs::copy(from, folder.join(name)).unwrap();
    }
}

#[test]
fn an_engine_in_another_network_attests_over_tls_and_keeps_nothing() {
    let _engine = whole_engine();
    let authority = Authority::new("ours");
    let client = authority.issue("client", Holder::Client, Validity::Now);
    let engine = PrivateEngine::start_tls(&authority, Validity::Now);
    let host = format!("tcp://{}", engine.port());
    let at = format!("{host} (TLS)");
    let before = held(&engine);
    let out = tempfile::tempdir().unwrap();
    let flags = tls_flags(&authority.certificate(), Some(&client));
    let mut arguments = vec!["--venue", "vps", "--controls", "safe", "--gate", "auto"];
    arguments.extend(["--host", &host]);
    arguments.extend(flags.iter().map(String::as_str));
    let said = attest(out.path(), &arguments);
    let evidence = attested_at(&said, out.path(), &at);
    let controls = evidence["controls"].as_array().unwrap();
    assert!(!controls.is_empty());
    assert!(controls.iter().all(|control| control["holds"] == true));
    assert_eq!(held(&engine), before);

    // The variables of Docker's client say the same.
    let folder = out.path().join("certificates");
    put_for_docker(&folder, &authority.certificate(), &client);
    let seen = run(tool()
        .args(["engines", "--format", "json", "--host", &host])
        .env("DOCKER_TLS_VERIFY", "1")
        .env("DOCKER_CERT_PATH", &folder));
    seen.succeeded();
    let rows: Value = serde_json::from_str(&seen.stdout).unwrap();
    assert_eq!(rows[0]["at"], at.as_str(), "{rows}");
    let mut clean = tool();
    clean.args(["clean", "--dry-run", "--engine", "docker"]);
    clean.env("DOCKER_HOST", &host);
    // With them, the directory of Docker's client has the certificates.
    run(clean
        .env("DOCKER_TLS_VERIFY", "1")
        .env("DOCKER_CONFIG", &folder))
    .succeeded();
    fs::remove_file(folder.join("ca.pem")).unwrap();
    run(&mut clean).failed(2, "engine.tls-file");
}

/// Each is refused with what to do about it, and nothing is ever said in the clear.
#[test]
fn what_does_not_prove_itself_is_refused_and_never_spoken_to_in_the_clear() {
    let _engine = whole_engine();
    let (authority, stranger) = (Authority::new("ours"), Authority::new("theirs"));
    let ca = authority.certificate();
    let client = authority.issue("client", Holder::Client, Validity::Now);
    let over = authority.issue("over", Holder::Client, Validity::Expired);
    let impostor = Authority::new("ours");
    let strange = stranger.issue("client", Holder::Client, Validity::Now);
    let engine = PrivateEngine::start_tls(&authority, Validity::Now);
    let relay = Relay::before(Behind::Port(engine.port()));
    let host = relay.host("127.0.0.1");
    let good = tls_flags(&ca, Some(&client));

    let refused = |relay: &Relay, name: &str, flags: &[String], why: &str| {
        let said = look(&relay.host(name), flags);
        said.failed(3, "engine.tls");
        assert!(said.stderr.contains(why), "{why}: {said:?}");
        assert_ne!(relay.handshakes(), 0, "{why}");
    };
    let ours = "does not take our certificate";
    for (name, flags, why) in [
        (
            "127.0.0.1",
            tls_flags(&ca, None),
            "wants a certificate of ours",
        ),
        ("127.0.0.1", tls_flags(&ca, Some(&strange)), ours),
        ("127.0.0.1", tls_flags(&ca, Some(&over)), ours),
        (
            "127.0.0.1",
            tls_flags(&stranger.certificate(), Some(&client)),
            "an authority that was not given",
        ),
        (
            "127.0.0.1",
            tls_flags(&impostor.certificate(), Some(&client)),
            "an authority that was not given",
        ),
        ("localhost", good.clone(), "for another name"),
    ] {
        refused(&relay, name, &flags, why);
    }

    // Files are refused before anybody is spoken to.
    let folder = tempfile::tempdir().unwrap();
    let (open, text) = (folder.path().join("key"), folder.path().join("text"));
    fs::copy(&client.key, &open).unwrap();
    fs::write(&text, "no certificate\n").unwrap();
    for (path, mode) in [(&open, 0o640), (&text, 0o600)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let with = |cert: &Path, key: &Path| Pair {
        cert: cert.to_owned(),
        key: key.to_owned(),
    };
    for (ca, pair, why) in [
        (&ca, Some(with(&client.cert, &open)), "others can use"),
        (&text, None, "no certificate in PEM"),
        (&folder.path().join("none"), None, "No such file"),
        (&ca, Some(with(&text, &client.key)), "no certificate in PEM"),
        (&ca, Some(with(&client.cert, &text)), "no key in PEM"),
        (&ca, Some(with(&client.cert, &over.key)), "does not go with"),
    ] {
        let said = look(&host, &tls_flags(ca, pair.as_ref()));
        said.failed(2, "engine.tls-file");
        assert!(said.stderr.contains(why), "{why}: {said:?}");
        assert_eq!(relay.handshakes(), 0, "{why}");
    }
    // `https://` connections are never made without an authority.
    let secure = host.replacen("tcp", "https", 1);
    look(&secure, &[]).failed(2, "engine.tls-file");
    assert_eq!(relay.handshakes(), 0);

    // No other engine stands in for one that was refused, and nothing is written.
    let out = folder.path().join("out");
    let flags = tls_flags(&stranger.certificate(), Some(&client));
    let mut arguments = vec!["--venue", "vps", "--host", &host];
    arguments.extend(flags.iter().map(String::as_str));
    attest(&out, &arguments).failed(3, "engine.tls");
    nothing_written(&out);
    assert_ne!(relay.handshakes(), 0);

    // A port without TLS gets a handshake and nothing else.
    let plain = Relay::before(Behind::Socket(engine.socket()));
    refused(&plain, "127.0.0.1", &good, "does not speak TLS");

    // It was none of the ways there.
    look(&host, &good).succeeded();
    assert_ne!(relay.handshakes(), 0);
}

#[test]
fn an_engine_whose_certificate_has_expired_is_refused() {
    let _engine = whole_engine();
    let authority = Authority::new("ours");
    let client = authority.issue("client", Holder::Client, Validity::Now);
    let engine = PrivateEngine::start_tls(&authority, Validity::Expired);
    let relay = Relay::before(Behind::Port(engine.port()));
    let flags = tls_flags(&authority.certificate(), Some(&client));
    let said = look(&relay.host("127.0.0.1"), &flags);
    said.failed(3, "engine.tls");
    assert!(said.stderr.contains("has expired"), "{said:?}");
    assert_ne!(relay.handshakes(), 0);
}

/// A user who forgets the certificates is told so, and hears nothing from the engine.
#[test]
fn a_port_with_tls_is_not_taken_for_one_without() {
    let _engine = whole_engine();
    let authority = Authority::new("ours");
    let engine = PrivateEngine::start_tls(&authority, Validity::Now);
    let said = look(&format!("tcp://{}", engine.port()), &[]);
    assert_eq!(said.status, 3, "{said:?}");
    assert!(said.stderr.contains("--tls-ca"), "{said:?}");
}
