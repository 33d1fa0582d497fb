//! What the launcher brings for bundles in the packet: it comes from here and never from the
//! packet, and its digests stand in the report.

use crate::inspect::error::InspectError;
use crate::verify::error::Input;
use crate::verify::{Assurance, ImageDigests, brought};
use std::path::Path;
use tki_evidence::stamp::sha256_hex;
use tki_inspector::wire::{EXPECTED, Expected, ExpectedImage, POLICY, REQUEST, SIGNERS};

/// The files that the user names for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Named<'a> {
    /// Who may sign.
    pub allowed_signers: Option<&'a Path>,
    /// The request that must have been answered.
    pub request: Option<&'a Path>,
    /// What else is demanded.
    pub policy: Option<&'a Path>,
    /// The image that must have been attested, as an OCI layout.
    pub image: Option<&'a Path>,
    /// The least assurance.
    pub assurance: Option<Assurance>,
}

/// The launcher's files, by name.
#[derive(Clone, Debug)]
pub struct Brought {
    files: Vec<(&'static str, Vec<u8>)>,
}

impl Brought {
    /// Reads each file once, and refuses what the inspector could not use. What was checked is what
    /// is handed over.
    pub fn read(named: Named) -> Result<Self, InspectError> {
        let known = brought::known()?.image.unwrap_or(ImageDigests {
            manifest_digest: String::new(),
            config_digest: String::new(),
            diff_ids: Vec::new(),
        });
        let expected = Expected {
            image: named.image.map(brought::image).transpose()?.map(expected),
            known_image: expected(known),
            seccomp_sha256: String::new(),
            assurance: named
                .assurance
                .map_or_else(String::new, |level| level.name().to_owned()),
        };
        let mut expected = serde_json::to_vec_pretty(&expected).map_err(InspectError::Json)?;
        expected.push(b'\n');
        let mut files = vec![(EXPECTED, expected)];
        if let Some(path) = named.allowed_signers {
            let bytes = brought::read(path, Input::Signers)?;
            brought::signers_in(path, &bytes)?;
            files.push((SIGNERS, bytes));
        }
        if let Some(path) = named.request {
            let bytes = brought::read(path, Input::Request)?;
            brought::request_in(path, &bytes)?;
            files.push((REQUEST, bytes));
        }
        if let Some(path) = named.policy {
            let bytes = brought::read(path, Input::Policy)?;
            brought::policy_in(path, &bytes, false)?;
            files.push((POLICY, bytes));
        }
        Ok(Self { files })
    }

    /// The files.
    pub fn files(&self) -> &[(&'static str, Vec<u8>)] {
        &self.files
    }

    /// The name and the SHA-256 (hex) of each, sorted by name.
    pub fn digests(&self) -> Vec<(String, String)> {
        let files = self.files.iter();
        let digest =
            |(name, bytes): &(&'static str, Vec<u8>)| ((*name).to_owned(), sha256_hex(bytes));
        let mut digests: Vec<_> = files.map(digest).collect();
        digests.sort();
        digests
    }
}

fn expected(image: ImageDigests) -> ExpectedImage {
    ExpectedImage {
        manifest_digest: image.manifest_digest,
        config_digest: image.config_digest,
        diff_ids: image.diff_ids,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use crate::failure::Failure;

    #[test]
    fn what_is_expected_is_always_brought() {
        let brought = Brought::read(Named {
            assurance: Some(Assurance::Signed),
            ..Named::default()
        })
        .unwrap();
        let [(name, bytes)] = brought.files() else {
            panic!("{brought:?}");
        };
        assert_eq!(*name, "expected.json");
        let read: Expected = serde_json::from_slice(bytes).unwrap();
        assert!(read.known_image.manifest_digest.starts_with("sha256:"));
        assert_eq!((read.assurance.as_str(), &read.image), ("signed", &None));
        assert_eq!(brought.digests()[0].1, sha256_hex(bytes));
    }

    #[test]
    fn what_the_inspector_could_not_use_is_refused_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, "{\"schema\": 1}").unwrap();
        let path = Some(path.as_path());
        for (named, code) in [
            (
                Named {
                    allowed_signers: path,
                    ..Named::default()
                },
                "signers.malformed",
            ),
            (
                Named {
                    request: path,
                    ..Named::default()
                },
                "request.malformed",
            ),
            (
                Named {
                    policy: path,
                    ..Named::default()
                },
                "policy.malformed",
            ),
        ] {
            let failure = Failure::from(Brought::read(named).unwrap_err());
            assert_eq!((failure.exit, failure.code), (Exit::Usage, code));
        }
    }
}
