//! What signs: an OpenSSH Ed25519 key, from a file or held by an agent.

use crate::files::read_bounded;
use crate::trust::agent::Agent;
use crate::trust::dsse::{Envelope, Signature};
use crate::trust::error::{NoKey, TrustError};
use crate::trust::passphrase::{self, Source};
use ed25519_dalek::{Signer as _, SigningKey};
use ssh_key::private::{Ed25519Keypair, KeypairData};
use ssh_key::{Cipher, HashAlg, Kdf, LineEnding, PrivateKey, PublicKey};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// The largest key file that is read, in bytes.
const MAX_KEY: u64 = 64 * 1024;

/// How often a passphrase is stretched; OpenSSH's own number.
const ROUNDS: u32 = 24;

/// A key that can sign.
pub struct Key {
    public: PublicKey,
    holder: Holder,
}

enum Holder {
    File(Box<SigningKey>),
    Agent(Agent),
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Key({})", self.fingerprint())
    }
}

/// A new key, as its two files.
#[derive(Debug)]
pub struct NewKey {
    /// The private file's text.
    pub private: Zeroizing<String>,
    /// The public file's text.
    pub public: String,
    /// `SHA256:…`
    pub fingerprint: String,
}

fn unusable(path: &Path, why: NoKey) -> TrustError {
    let path = path.to_owned();
    TrustError::Unusable { path, why }
}

impl Key {
    /// Opens a private key file, or a public one whose private half an agent
    /// holds, which it has to say within `limit`.
    pub fn open(path: &Path, source: Option<&Source>, limit: Duration) -> Result<Self, TrustError> {
        let bytes = read_bounded(path, MAX_KEY)
            .map(Zeroizing::new)
            .map_err(|error| TrustError::Unreadable {
                path: path.to_owned(),
                error,
            })?;
        let text = std::str::from_utf8(&bytes).map_err(|_| unusable(path, NoKey::Binary))?;
        if !text.trim_start().starts_with("-----BEGIN") {
            return Self::with_agent(path, text, Instant::now() + limit);
        }
        let open = std::fs::metadata(path).is_ok_and(|m| m.permissions().mode() & 0o077 != 0);
        if open {
            return Err(unusable(path, NoKey::Open));
        }
        let not_a_key = |error| unusable(path, NoKey::Private(error));
        let mut private = PrivateKey::from_openssh(text).map_err(not_a_key)?;
        if private.is_encrypted() {
            let passphrase = passphrase::obtain(source, path)?;
            let opened = private.decrypt(passphrase.as_bytes());
            private = opened.map_err(|_| TrustError::WrongPassphrase {
                path: path.to_owned(),
            })?;
        }
        let Some(pair) = private.key_data().ed25519() else {
            return Err(unusable(path, NoKey::PrivateKind(private.algorithm())));
        };
        let signing = SigningKey::from_bytes(&pair.private.to_bytes());
        // A private half that does not belong to the public one would give
        // signatures that nobody accepts, and may give the secret away.
        if signing.verifying_key().to_bytes() != pair.public.0 {
            return Err(unusable(path, NoKey::Halves));
        }
        Ok(Self {
            public: private.public_key().clone(),
            holder: Holder::File(Box::new(signing)),
        })
    }

    fn with_agent(path: &Path, text: &str, deadline: Instant) -> Result<Self, TrustError> {
        let public = PublicKey::from_openssh(text.trim())
            .map_err(|error| unusable(path, NoKey::Neither(error)))?;
        if public.key_data().ed25519().is_none() {
            return Err(unusable(path, NoKey::PublicKind(public.algorithm())));
        }
        let agent = Agent::find(&public, deadline)?;
        Ok(Self {
            public,
            holder: Holder::Agent(agent),
        })
    }

    /// `SHA256:…`, as OpenSSH prints it.
    pub fn fingerprint(&self) -> String {
        self.public.fingerprint(HashAlg::Sha256).to_string()
    }

    /// Whether this key made this signature over these bytes.
    pub fn made(&self, message: &[u8], sig: &[u8]) -> bool {
        self.public.key_data().ed25519().is_some_and(|public| {
            ed25519_dalek::VerifyingKey::from_bytes(&public.0)
                .is_ok_and(|key| crate::trust::dsse::is_good(&key, message, sig))
        })
    }

    /// Signs the envelope's payload and adds the signature to it. An agent has to
    /// answer before the deadline.
    pub fn sign(&self, envelope: &mut Envelope, deadline: Instant) -> Result<(), TrustError> {
        let message = envelope.signed_bytes();
        let sig = match &self.holder {
            Holder::File(key) => key.sign(&message).to_bytes().to_vec(),
            Holder::Agent(agent) => agent.sign(&self.public, &message, deadline)?,
        };
        if !self.made(&message, &sig) {
            return Err(TrustError::OtherSignature);
        }
        envelope.signatures.push(Signature {
            keyid: self.fingerprint(),
            sig,
        });
        Ok(())
    }
}

/// A new key from 32 random bytes, encrypted if there is a passphrase.
pub fn generate(
    seed: &[u8; 32],
    salt: [u8; 16],
    comment: &str,
    passphrase: Option<&str>,
) -> Result<NewKey, TrustError> {
    let pair = KeypairData::Ed25519(Ed25519Keypair::from_seed(seed));
    let mut private = PrivateKey::new(pair, comment).map_err(TrustError::Generate)?;
    let public = private.public_key().clone();
    if let Some(passphrase) = passphrase {
        let check = u32::from_be_bytes([salt[0], salt[5], salt[10], salt[15]]);
        let kdf = Kdf::Bcrypt {
            salt: salt.to_vec(),
            rounds: ROUNDS,
        };
        private = private
            .encrypt_with(Cipher::Aes256Ctr, kdf, check, passphrase)
            .map_err(TrustError::Generate)?;
    }
    let mut text = public.to_openssh().map_err(TrustError::Generate)?;
    text.push('\n');
    Ok(NewKey {
        private: private
            .to_openssh(LineEnding::LF)
            .map_err(TrustError::Generate)?,
        public: text,
        fingerprint: public.fingerprint(HashAlg::Sha256).to_string(),
    })
}
