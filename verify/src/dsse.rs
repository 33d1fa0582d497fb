//! The envelope: DSSE v1. The bytes that a signature was checked over are the
//! bytes that are handed on; nobody reads the envelope a second time.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature as Ed25519Signature, VerifyingKey};
use serde::{Deserialize, Serialize};
use tki_evidence::strict::{self, StrictError};

/// The largest envelope that is read, in bytes.
pub const MAX_ENVELOPE: u64 = 1 << 20;

/// The most signatures that an envelope may hold.
pub const MAX_SIGNATURES: usize = 16;

/// An envelope whose form is right. Nothing in it has been verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The payload, decoded.
    pub payload: Vec<u8>,
    /// What the payload is said to be.
    pub payload_type: String,
    /// Signatures over both.
    pub signatures: Vec<Signature>,
}

/// One signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Which key it is said to be by: a hint that decides nothing.
    pub keyid: String,
    /// The signature's bytes.
    pub sig: Vec<u8>,
}

/// Why a text is not an envelope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// Not strict JSON of this form.
    #[error(transparent)]
    Malformed(#[from] StrictError),
    /// More than one line.
    #[error("there is a second statement; exactly one envelope is read")]
    Second,
    /// Not an object from the first byte to the last.
    #[error("line 1, column 1: not one JSON object from the first byte to the last")]
    Frame,
    /// Something that is not base64 in its one accepted spelling.
    #[error("{field} is not base64 in the standard alphabet: {why}")]
    Base64 {
        /// Where.
        field: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// Nothing to verify.
    #[error("there is no payload")]
    Empty,
    /// Nobody signed, or too many did.
    #[error("{0} signatures; 1 to {MAX_SIGNATURES} are read")]
    Count(usize),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Written {
    payload: String,
    payload_type: String,
    signatures: Vec<WrittenSignature>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSignature {
    #[serde(default)]
    keyid: String,
    sig: String,
}

/// DSSE's pre-authentication encoding: what is signed.
pub fn pae(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut out = format!(
        "DSSEv1 {} {payload_type} {} ",
        payload_type.len(),
        payload.len()
    );
    // The type may hold any text; its length stands before it.
    let mut bytes = core::mem::take(&mut out).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

impl Envelope {
    /// Reads a file of exactly one line with one envelope.
    pub fn parse(bytes: &[u8]) -> Result<Self, EnvelopeError> {
        let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        if line.contains(&b'\n') {
            return Err(EnvelopeError::Second);
        }
        // White space around it would be another spelling of the same.
        if !line.starts_with(b"{") || !line.ends_with(b"}") {
            return Err(EnvelopeError::Frame);
        }
        let written: Written = strict::parse_as(line)?;
        let payload = decode("payload", &written.payload)?;
        if payload.is_empty() {
            return Err(EnvelopeError::Empty);
        }
        if !(1..=MAX_SIGNATURES).contains(&written.signatures.len()) {
            return Err(EnvelopeError::Count(written.signatures.len()));
        }
        let signatures = written
            .signatures
            .into_iter()
            .map(|signature| {
                Ok(Signature {
                    sig: decode("sig", &signature.sig)?,
                    keyid: signature.keyid,
                })
            })
            .collect::<Result<_, EnvelopeError>>()?;
        Ok(Self {
            payload,
            payload_type: written.payload_type,
            signatures,
        })
    }

    /// The file's bytes.
    pub fn to_line(&self) -> Vec<u8> {
        let written = Written {
            payload: STANDARD.encode(&self.payload),
            payload_type: self.payload_type.clone(),
            signatures: self
                .signatures
                .iter()
                .map(|signature| WrittenSignature {
                    keyid: signature.keyid.clone(),
                    sig: STANDARD.encode(&signature.sig),
                })
                .collect(),
        };
        let mut line = serde_json::to_vec(&written).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// What the signatures are over.
    pub fn signed_bytes(&self) -> Vec<u8> {
        pae(&self.payload_type, &self.payload)
    }
}

/// One spelling only: the standard alphabet, padded, no bits left over. A
/// second spelling of the same bytes would be a second file that is accepted.
fn decode(field: &'static str, text: &str) -> Result<Vec<u8>, EnvelopeError> {
    STANDARD
        .decode(text)
        .map_err(|error| EnvelopeError::Base64 {
            field,
            why: if text.contains(['-', '_']) {
                "it is in the URL-safe alphabet".into()
            } else {
                error.to_string()
            },
        })
}

/// Whether this key made this signature over these bytes.
pub fn is_good(key: &VerifyingKey, message: &[u8], sig: &[u8]) -> bool {
    Ed25519Signature::from_slice(sig).is_ok_and(|sig| key.verify_strict(message, &sig).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn the_encoding_is_golden() {
        assert_eq!(
            pae("http://example.com/HelloWorld", b"hello world"),
            b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
        );
        assert_eq!(pae("", b""), b"DSSEv1 0  0 ");
        assert_eq!(pae("é", b"\0"), b"DSSEv1 2 \xc3\xa9 1 \0");
    }

    fn envelope() -> Envelope {
        Envelope {
            payload: b"{}".to_vec(),
            payload_type: "t".into(),
            signatures: vec![Signature {
                keyid: "SHA256:x".into(),
                sig: vec![1; 64],
            }],
        }
    }

    #[test]
    fn an_envelope_goes_both_ways() {
        let line = envelope().to_line();
        assert_eq!(Envelope::parse(&line), Ok(envelope()));
        assert_eq!(Envelope::parse(line.trim_ascii_end()), Ok(envelope()));
    }

    #[test]
    fn what_is_not_exactly_one_envelope_is_refused() {
        let line = String::from_utf8(envelope().to_line()).unwrap();
        for (text, wanted) in [
            (line.repeat(2), "a second statement"),
            (format!("\n{line}"), "a second statement"),
            (format!("{line}\n"), "a second statement"),
            (line.replace("}\n", "}\t"), "from the first byte"),
            (line.replace("}\n", "} \n"), "from the first byte"),
            (line.replace("e30=", "e30"), "payload is not base64"),
            (line.replace("e30=", "e31="), "payload is not base64"),
            (line.replace("e30=", "-_8="), "URL-safe"),
            (line.replace("e30=", ""), "no payload"),
            (line.replace("\"sig\"", "\"sig2\""), "unknown field"),
            (
                line.replace("\"payloadType\"", "\"payload\""),
                "duplicate key",
            ),
            (line.replace("[{", "[]}{"), "line 1"),
            (
                "{\"payload\":\"e30=\",\"payloadType\":\"t\",\"signatures\":[]}".into(),
                "0 signatures",
            ),
            (String::new(), "line 1"),
        ] {
            let error = Envelope::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }
}
