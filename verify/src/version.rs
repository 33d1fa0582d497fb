//! Who wrote the evidence. Until 1.0.0 its form may change between versions, so it is
//! read by the version that wrote it, and by no other.

use crate::Outcome;
use crate::checks::Checks;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use serde_json::Value;
use tki_evidence::evidence::{SCHEMA, Tool};
use tki_evidence::step_code::StepCode;
use tki_evidence::strict;
use tki_text::printable;

/// The tool whose evidence is read, and the version that this crate belongs to.
pub const OWN: (&str, &str) = ("tki-attest", env!("CARGO_PKG_VERSION"));

/// The tool that wrote evidence, as it calls itself.
#[derive(Clone, Debug)]
pub struct Writer {
    name: String,
    version: String,
}

impl Writer {
    /// As evidence names it.
    pub fn of(tool: &Tool) -> Self {
        Self {
            name: tool.name.clone(),
            version: tool.version.clone(),
        }
    }

    /// It is this version of this tool, whatever was mended in it since.
    fn is_own(&self) -> bool {
        let of_own = release(&self.version).is_some_and(|it| Some(it) == release(OWN.1));
        self.name == OWN.0 && of_own
    }
}

/// Major and minor number of a version of three numbers.
fn release(version: &str) -> Option<(u64, u64)> {
    let mut numbers = version.split('.').map(|part| {
        let is_plain = part.len() < 10 && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u64>().ok().filter(|_| is_plain)
    });
    let (major, minor, _) = (numbers.next()??, numbers.next()??, numbers.next()??);
    numbers.next().is_none().then_some((major, minor))
}

/// The writer of a text that is strict JSON and evidence, but not of this version's
/// form. `None` if it is this version, or no evidence at all.
pub fn of_text(bytes: &[u8]) -> Option<Writer> {
    let value: Value = strict::parse(bytes).ok()?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let writer = Writer {
        name: text(&value["tool"]["name"])?,
        version: text(&value["tool"]["version"])?,
    };
    let is_other = value["schema"] == SCHEMA && writer.name == OWN.0 && !writer.is_own();
    (is_other && release(&writer.version).is_some()).then_some(writer)
}

/// Checks the writer. Of what another one wrote nothing more is read.
pub fn check(checks: &mut Checks, writer: &Writer) -> bool {
    let is_own = writer.is_own();
    let version = printable(&writer.version, 40);
    let (outcome, got) = if is_own {
        (Outcome::Ok, version)
    } else if writer.name != OWN.0 {
        (
            Outcome::Blocked,
            format!("{} wrote it", printable(&writer.name, 40)),
        )
    } else if release(&writer.version) == Some((0, 1)) {
        let why = "could attest sandboxes that leak: see the advisories in SECURITY.md";
        (Outcome::Blocked, format!("{version} {why}"))
    } else {
        (Outcome::Blocked, format!("{version} wrote it"))
    };
    let next = match release(&writer.version) {
        Some((0, 1)) => "run again with this version",
        _ => "verify with the version that wrote it, or run again with this one",
    };
    checks.add(
        StepCode::Version,
        outcome,
        format!("evidence of {} {}", OWN.0, OWN.1),
        got,
        "tool",
        next,
    );
    if !is_own {
        checks.skip_after(StepCode::Version, "another version wrote it");
    }
    is_own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_three_numbers() {
        assert_eq!(release("0.2.0"), Some((0, 2)));
        assert_eq!(release("10.0.17"), Some((10, 0)));
        for wrong in [
            "",
            "0.2",
            "0.2.0.1",
            "0.+2.0",
            "0.2.0-rc1",
            "a.b.c",
            "0.2.\u{1b}",
        ] {
            assert_eq!(release(wrong), None, "{wrong}");
        }
        let own = |version: &str| {
            let (name, version) = (OWN.0.to_owned(), version.to_owned());
            Writer { name, version }.is_own()
        };
        assert!(own(OWN.1));
        assert!(!own("0.1.0") && !own("") && !own("1.2.0"));
    }
}
