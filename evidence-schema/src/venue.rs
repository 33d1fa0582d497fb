//! Venue rules: what a claimed venue needs, and what contradicts it.

use crate::evidence::Evidence;

/// Venues that B4′ evidence may come from.
pub const APPROVED: &[&str] = &["vps", "ci"];

/// Words that give a developer's virtual machine away.
const DESKTOP_WORDS: &[&str] = &["linuxkit", "colima", "lima", "orbstack"];

/// Why the place looks like a developer's machine, one line per sign. Words
/// are compared whole: a host called `climate` is not `lima`.
pub fn desktop_signs(operating_system: &str, kernel: &str, host_name: &str) -> Vec<String> {
    let mut signs = Vec::new();
    for (what, text) in [
        ("operating system", operating_system),
        ("kernel", kernel),
        ("host name", host_name),
    ] {
        let lower = text.to_lowercase();
        let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        let desktop = words.windows(2).any(|pair| pair == ["docker", "desktop"]);
        if desktop || words.iter().any(|word| DESKTOP_WORDS.contains(word)) {
            signs.push(format!("{what} {text:?}"));
        }
    }
    signs
}

/// The signs in recorded evidence.
pub fn signs(evidence: &Evidence) -> Vec<String> {
    desktop_signs(
        &evidence.venue_facts.operating_system,
        &evidence.runtime.kernel,
        &evidence.venue_facts.host_name,
    )
}

#[cfg(test)]
mod tests {
    use super::desktop_signs;

    #[test]
    fn developers_machines_are_recognised_and_others_are_not() {
        for (os, kernel, host) in [
            ("Docker Desktop", "6.6.12", "x"),
            ("Alpine", "6.6.12-linuxkit", "x"),
            ("Ubuntu 24.04", "6.8.0-31-generic", "colima"),
            ("Ubuntu 24.04", "6.8.0-31-generic", "lima-default"),
            ("Debian", "6.1.0", "docker-desktop"),
            ("OrbStack", "6.1.0", "x"),
        ] {
            assert_eq!(
                desktop_signs(os, kernel, host).len(),
                1,
                "{os} {kernel} {host}"
            );
        }
        assert!(desktop_signs("Debian GNU/Linux 12", "6.1.0-18-amd64", "climate-1").is_empty());
    }
}
