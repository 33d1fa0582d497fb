//! Engines on other hosts that the user lists as `ssh://`. They are asked what
//! they are and for nothing else: a container is only ever made on this host.

use crate::survey::call::Call;
use crate::survey::conditions::Conditions;
use crate::survey::docker::ELSEWHERE;
use crate::survey::program::{ProgramError, run};
use crate::survey::redact::Redactor;
use crate::survey::surface::{Can, Decision, Surface};
use std::path::Path;
use std::process::Command;

/// What is asked over there. It reads, and changes nothing.
const QUESTION: &str = "uname -sr; docker info --format \"docker {{.ServerVersion}}, \
    {{.OperatingSystem}}, {{.KernelVersion}}, {{.Containers}} containers\" 2>&1; \
    podman --version 2>&1";

/// An address taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `user@host` or `host`.
    pub destination: String,
    /// The port, if one is named.
    pub port: Option<u16>,
}

impl Target {
    /// Only plain names: nothing that `ssh` could take for an option.
    pub fn parse(url: &str) -> Option<Self> {
        let rest = url.strip_prefix("ssh://")?.trim_end_matches('/');
        let (destination, port) = match rest.rsplit_once(':') {
            Some((destination, port)) => (destination, Some(port.parse().ok()?)),
            None => (rest, None),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
        let well = !destination.is_empty()
            && destination.chars().all(plain)
            && destination.split('@').count() <= 2
            && destination
                .split('@')
                .all(|part| !part.is_empty() && !part.starts_with('-'));
        well.then(|| Self {
            destination: destination.to_owned(),
            port,
        })
    }
}

/// Asks the engine over there what it is.
pub fn survey(url: &str, config: Option<&Path>, conditions: &Conditions) -> Surface {
    let shown = Redactor::default().clean(url, 200);
    let name = format!("Engine behind {shown} (--host)");
    let mut surface = Surface::absent(name, Vec::new());
    surface.venue_type = "another host";
    surface.approved = "not known from here".into();
    surface.production_risk = "not known from here".into();
    surface.decision = Decision::Reject;
    let Some(target) = Target::parse(url) else {
        surface.permission_gap = "give ssh://[user@]host[:port]".into();
        surface.evidence = vec![Call::new(format!("read {url}"), "not an address")];
        return surface;
    };
    let seconds = match conditions.deadline.left() {
        Ok(left) => left.as_secs().clamp(1, 10),
        Err(stopped) => {
            surface.evidence = vec![Call::new("ssh", stopped.to_string())];
            return surface;
        }
    };
    let mut command = Command::new("ssh");
    command
        // Nothing is asked of a person, and no unknown host is trusted.
        .args([
            "-T",
            "-o",
            "BatchMode=yes",
            "-o",
            "StrictHostKeyChecking=yes",
        ])
        .args(["-o", "ForwardAgent=no", "-o", "ClearAllForwardings=yes"])
        // Whatever the user's configuration says: nothing else is run, here or
        // there, and no connection stays open afterwards.
        .args(["-o", "PermitLocalCommand=no", "-o", "RemoteCommand=none"])
        .args(["-o", "ForwardX11=no", "-o", "ControlMaster=no"])
        .args(["-o", &format!("ConnectTimeout={seconds}")]);
    if let Some(file) = config {
        command.arg("-F").arg(file);
    }
    if let Some(port) = target.port {
        command.args(["-p", &port.to_string()]);
    }
    command.args(["--", &target.destination, QUESTION]);
    let call = format!("ssh {} '{QUESTION}'", target.destination);
    match run(&mut command, 16 * 1024, conditions.deadline) {
        Ok(ended) => {
            let said = Redactor::default().clean_bytes(&ended.said(), ended.cut, 500);
            surface.evidence = vec![Call::new(call, format!("{}: {said}", ended.how()))];
            if ended.status == Some(255) || ended.status.is_none() {
                surface.can_run = Can::no("ssh could not reach it");
                surface.permission_gap = "ssh must reach it without a question".into();
                return surface;
            }
            surface.can_run = Can::not_tried("nothing is made on another host from here");
            surface.can_write_files = Can::not_tried("nothing is made on another host from here");
            surface.can_collect_logs = Can::yes("ssh carried the answer");
            surface.permission_gap = "tki-attest must be run over there".into();
            surface.decision = Decision::Prepare;
            surface.decision_note = ELSEWHERE.into();
        }
        Err(error) => {
            let why = match &error {
                ProgramError::Start(error) => format!("ssh: {error}"),
                ProgramError::Stopped(stopped) => stopped.to_string(),
            };
            surface.evidence = vec![Call::new(call, &why)];
            surface.can_run = Can::no(why);
            surface.permission_gap = "ssh must reach it without a question".into();
        }
    }
    surface
}

#[cfg(test)]
mod tests {
    use super::Target;

    #[test]
    fn an_address_cannot_become_an_option() {
        let target = Target::parse("ssh://op@vps.example:2222").unwrap();
        assert_eq!(
            (target.destination.as_str(), target.port),
            ("op@vps.example", Some(2222))
        );
        for url in [
            "ssh://-oProxyCommand=x",
            "ssh://a@-oProxyCommand=x",
            "ssh://a b",
            "ssh://$(x)",
            "ssh://",
            "ssh://a@b@c",
            "ssh://host:port",
            "unix:///x",
        ] {
            assert_eq!(Target::parse(url), None, "{url}");
        }
    }
}
