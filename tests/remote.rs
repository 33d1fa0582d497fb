//! Engines that are reached over the network: real engines behind real servers, on the
//! loopback interface or in network namespaces that the tests make.

/// Docker's contexts: which engine they choose, and which are refused.
mod contexts;
/// A port on this host that hears how each connection begins.
mod relay;
/// Through a real sshd.
mod ssh;
/// Certificates on both sides, and what is refused.
mod tls;

use crate::common::certificates::Pair;
use crate::common::private_engine::PrivateEngine;
use crate::common::{Said, evidence_in, read_json, verify};
use serde_json::Value;
use std::path::Path;

/// The flags for a client of an engine with TLS.
fn tls_flags(ca: &Path, pair: Option<&Pair>) -> Vec<String> {
    let flag = |name: &str, path: &Path| [name.to_owned(), path.display().to_string()];
    let mut flags = flag("--tls-ca", ca).to_vec();
    if let Some(pair) = pair {
        flags.extend(flag("--tls-cert", &pair.cert));
        flags.extend(flag("--tls-key", &pair.key));
    }
    flags
}

/// Everything on an engine that a run could leave, which is nobody else's.
fn held(engine: &PrivateEngine) -> String {
    let containers = engine.docker(&["ps", "-aq"]);
    let volumes = engine.docker(&["volume", "ls", "-q"]);
    let networks = engine.docker(&["network", "ls", "-q"]);
    format!("containers: {containers}\nvolumes: {volumes}\nnetworks: {networks}")
}

/// The run is whole: everything that an engine elsewhere can show was shown, and the evidence
/// says where that is.
#[track_caller]
fn attested_at(said: &Said, out: &Path, at: &str) -> Value {
    said.succeeded();
    let path = evidence_in(out);
    let evidence = read_json(&path);
    assert_eq!(evidence["status"], "SANDBOX_ATTESTED");
    assert_eq!(evidence["venue_facts"]["engine_at"], at);
    // Its processes are another machine's, for all that can be known here.
    let outside = &evidence["witnesses"]["outside"];
    assert_eq!(outside["available"], false, "{outside}");
    verify(&path, &[]).succeeded();
    evidence
}
