//! A request: what the verifying party asks for before a run. Its nonce goes
//! through the challenge into the container and comes back, so that an answer
//! cannot be older than the question.

use crate::matrix;
use crate::stamp::sha256_hex;
use crate::strict::{self, StrictError};
use crate::time;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use once_cell::race::OnceBox;
use serde::{Deserialize, Serialize};

/// The value of `schema`.
pub const SCHEMA: &str = "tki-attest/request/v1";

/// Venues that can be asked for.
pub const VENUES: &[&str] = &["vps", "ci", "dev"];

/// A request file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "std", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Always `tki-attest/request/v1`.
    pub schema: String,
    /// 32 random bytes in hex, chosen by the verifying party.
    pub nonce: String,
    /// The venue that must be claimed: `vps`, `ci` or `dev`.
    pub venue: String,
    /// The image that must be used, by its manifest digest, `sha256:…`.
    pub image_digest: String,
    /// SHA-256 (hex) of the seccomp profile that must be used.
    pub seccomp_sha256: String,
    /// SHA-256 (hex) of the acceptance matrix that will be applied.
    pub matrix_sha256: String,
    /// When it was written; RFC 3339, UTC.
    pub issued: String,
    /// The last moment at which an answer counts; RFC 3339, UTC.
    pub not_after: String,
}

/// Why a request cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// Not strict JSON of this form.
    #[error(transparent)]
    Malformed(#[from] StrictError),
    /// Another schema.
    #[error("schema is {0:?}, expected {SCHEMA:?}")]
    Schema(String),
    /// A field that does not hold what it should.
    #[error("{field} is {got:?}, expected {expected}")]
    Field {
        /// Its name.
        field: &'static str,
        /// What it holds.
        got: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// Times in the wrong order.
    #[error("it ends ({not_after}) before it begins ({issued})")]
    Order {
        /// When it was written.
        issued: String,
        /// When it ends.
        not_after: String,
    },
}

impl Request {
    /// Reads a request file; gives it with the SHA-256 (hex) of its bytes.
    pub fn parse(bytes: &[u8]) -> Result<(Self, String), RequestError> {
        let request: Request = strict::parse_as(bytes)?;
        request.check()?;
        Ok((request, sha256_hex(bytes)))
    }

    fn check(&self) -> Result<(), RequestError> {
        if self.schema != SCHEMA {
            return Err(RequestError::Schema(self.schema.clone()));
        }
        let field = |field, got: &str, expected| RequestError::Field {
            field,
            got: got.chars().take(100).collect(),
            expected,
        };
        for (name, text) in [
            ("nonce", &self.nonce),
            ("seccomp_sha256", &self.seccomp_sha256),
            ("matrix_sha256", &self.matrix_sha256),
        ] {
            if !is_hex_of_32_bytes(text) {
                return Err(field(name, text, "64 lower-case hex digits"));
            }
        }
        let image = &self.image_digest;
        if !image
            .strip_prefix("sha256:")
            .is_some_and(is_hex_of_32_bytes)
        {
            return Err(field(
                "image_digest",
                image,
                "sha256: and 64 lower-case hex digits",
            ));
        }
        if !VENUES.contains(&self.venue.as_str()) {
            return Err(field("venue", &self.venue, "vps, ci or dev"));
        }
        let time = |name, text: &str| {
            time::parse_rfc3339(text).ok_or_else(|| field(name, text, "a time in RFC 3339, UTC"))
        };
        if time("issued", &self.issued)? >= time("not_after", &self.not_after)? {
            return Err(RequestError::Order {
                issued: self.issued.clone(),
                not_after: self.not_after.clone(),
            });
        }
        Ok(())
    }
}

/// The nonce of a control: it follows from the run's own, so that a control
/// of another run cannot take its place.
pub fn control_nonce(run_nonce: &str, control: &str) -> String {
    sha256_hex(format!("tki-attest/control-nonce/v1\n{run_nonce}\n{control}").as_bytes())
}

/// SHA-256 (hex) of the matrix that is compiled in.
pub fn built_in_matrix_sha256() -> String {
    static BUILT_IN: OnceBox<String> = OnceBox::new();
    let digest = || Box::new(sha256_hex(matrix::REV4.as_bytes()));
    BUILT_IN.get_or_init(digest).clone()
}

/// 64 lower-case hex digits.
pub fn is_hex_of_32_bytes(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn request() -> Request {
        Request {
            schema: SCHEMA.into(),
            nonce: "ab".repeat(32),
            venue: "vps".into(),
            image_digest: format!("sha256:{}", "01".repeat(32)),
            seccomp_sha256: "cd".repeat(32),
            matrix_sha256: "ef".repeat(32),
            issued: "2026-11-16T00:00:00Z".into(),
            not_after: "2026-11-17T00:00:00Z".into(),
        }
    }

    fn parse(request: &Request) -> Result<(Request, String), RequestError> {
        Request::parse(&serde_json::to_vec(request).unwrap())
    }

    #[test]
    fn a_request_is_read_with_the_digest_of_its_bytes() {
        let bytes = serde_json::to_vec_pretty(&request()).unwrap();
        let (read, sha256) = Request::parse(&bytes).unwrap();
        assert_eq!(read, request());
        assert_eq!(sha256, sha256_hex(&bytes));
    }

    #[test]
    fn every_field_is_checked() {
        type Change = fn(&mut Request);
        let changes: [(&str, Change); 9] = [
            ("schema", |r| r.schema = "tki-attest/request/v2".into()),
            ("nonce", |r| r.nonce = "ab".repeat(16)),
            ("nonce", |r| r.nonce = "AB".repeat(32)),
            ("venue", |r| r.venue = "mac".into()),
            ("image_digest", |r| r.image_digest = "01".repeat(32)),
            ("seccomp_sha256", |r| r.seccomp_sha256.clear()),
            ("matrix_sha256", |r| r.matrix_sha256.push('0')),
            ("not_after", |r| r.not_after = "tomorrow".into()),
            ("ends", |r| r.not_after = r.issued.clone()),
        ];
        for (wanted, change) in changes {
            let mut changed = request();
            change(&mut changed);
            let error = parse(&changed).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn the_nonce_of_a_control_is_golden() {
        assert_eq!(
            control_nonce(&"ab".repeat(32), "network"),
            sha256_hex(
                format!("tki-attest/control-nonce/v1\n{}\nnetwork", "ab".repeat(32)).as_bytes()
            )
        );
        assert_ne!(control_nonce("a", "network"), control_nonce("a", "seccomp"));
    }
}
