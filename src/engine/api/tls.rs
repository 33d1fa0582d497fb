//! TLS to an engine's port: the files that say whom to trust and who we are.
//!
//! The engine must show a certificate for the name in its address, from the authority that
//! the user gave. Nothing switches that off, and no list of public authorities stands in: any
//! holder of a public certificate for that name would be the engine.

use crate::engine::api::fault::Fault;
use crate::engine::api::meter::Duplex;
use crate::engine::error::EngineError;
use crate::files::{is_trusted, read_owned};
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{AlertDescription, CertificateError, ClientConfig, RootCertStore};
use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The most bytes of a file with certificates or a key, and the most certificates.
const MOST_BYTES: u64 = 1 << 20;
const MOST_CERTIFICATES: usize = 256;

/// How long an engine that speaks TLS 1.3 may take to say whether it takes our certificate.
/// One that says nothing until then is asked.
const WELCOME: Duration = Duration::from_millis(500);

/// Files with certificates and a key, in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// Authorities of which one must have signed the engine's certificate.
    pub ca: Option<PathBuf>,
    /// Our own certificate, with those between it and its authority.
    pub cert: Option<PathBuf>,
    /// The key to it.
    pub key: Option<PathBuf>,
    /// Those of another user than root and this one are refused.
    pub only_ours: bool,
}

impl Files {
    /// None is named.
    pub fn is_empty(&self) -> bool {
        [&self.ca, &self.cert, &self.key]
            .iter()
            .all(|path| path.is_none())
    }

    /// The files of a directory, under the names that Docker gives them. Only what is there
    /// counts.
    pub fn in_folder(folder: &Path) -> Self {
        let there = |name: &str| {
            let path = folder.join(name);
            path.symlink_metadata().is_ok().then_some(path)
        };
        Self {
            ca: there("ca.pem"),
            cert: there("cert.pem"),
            key: there("key.pem"),
            only_ours: false,
        }
    }

    /// Every certificate of a file; at least one.
    fn certificates(&self, path: &Path) -> Result<Vec<CertificateDer<'static>>, EngineError> {
        let bytes = self.read(path)?;
        let mut found = Vec::new();
        for certificate in CertificateDer::pem_slice_iter(&bytes) {
            found.push(certificate.map_err(|error| broken(path, &format!("not PEM: {error}")))?);
            if found.len() > MOST_CERTIFICATES {
                let why = format!("it has more than {MOST_CERTIFICATES} certificates");
                return Err(broken(path, &why));
            }
        }
        match found.is_empty() {
            true => Err(broken(path, "it has no certificate in PEM")),
            false => Ok(found),
        }
    }

    /// The key of a file that nobody else can read: its holder commands the engine,
    /// which is to be root on its host.
    fn private_key(&self, path: &Path) -> Result<PrivateKeyDer<'static>, EngineError> {
        let mode = std::fs::metadata(path).map(|found| found.permissions().mode());
        if mode.is_ok_and(|mode| mode & 0o077 != 0) {
            return Err(EngineError::TlsFile {
                what: format!("{}: others can use this key", path.display()),
                next: format!("chmod 600 {}", path.display()),
            });
        }
        let bytes = zeroize::Zeroizing::new(self.read(path)?);
        PrivateKeyDer::from_pem_slice(&bytes)
            .map_err(|_| broken(path, "it has no key in PEM that is not encrypted"))
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, EngineError> {
        let read = read_owned(path, MOST_BYTES);
        let (bytes, owner) = read.map_err(|error| broken(path, &error.to_string()))?;
        match self.only_ours && !is_trusted(owner) {
            true => Err(broken(path, &not_ours(owner))),
            false => Ok(bytes),
        }
    }
}

/// What is needed to speak TLS to one engine.
#[derive(Clone)]
pub struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
    /// We show a certificate.
    pub is_known: bool,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Tls").field("name", &self.name).finish()
    }
}

impl Tls {
    /// Reads the files for an engine of this name.
    pub fn read(files: &Files, name: &str) -> Result<Self, EngineError> {
        let Some(ca) = &files.ca else {
            return Err(EngineError::TlsFile {
                what: "no authority is given for the engine's certificate".into(),
                next: "name it with --tls-ca, or set DOCKER_CERT_PATH to a directory that has \
                       ca.pem"
                    .into(),
            });
        };
        let mut roots = RootCertStore::empty();
        for certificate in files.certificates(ca)? {
            roots
                .add(certificate)
                .map_err(|error| broken(ca, &format!("not an authority's certificate: {error}")))?;
        }
        let provider = Arc::new(ring::default_provider());
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                .build()
                .map_err(|error| broken(ca, &error.to_string()))?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| broken(ca, &error.to_string()))?
            .with_webpki_verifier(verifier);
        let config = match (&files.cert, &files.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(cert), Some(key)) => builder
                .with_client_auth_cert(files.certificates(cert)?, files.private_key(key)?)
                .map_err(|error| {
                    let shown = cert.display();
                    broken(key, &format!("it does not go with {shown}: {error}"))
                })?,
            (Some(cert), None) => return Err(half(cert, "key", "--tls-key")),
            (None, Some(key)) => return Err(half(key, "certificate", "--tls-cert")),
        };
        let name = ServerName::try_from(name.to_owned()).map_err(|_| EngineError::Address {
            host: name.to_owned(),
            why: "no certificate can have this name".into(),
        })?;
        Ok(Self {
            is_known: files.cert.is_some(),
            connector: TlsConnector::from(Arc::new(config)),
            name,
        })
    }

    /// Shakes hands over a connection.
    pub async fn shake(&self, stream: TcpStream) -> io::Result<Explained> {
        let shaken = self.connector.connect(self.name.clone(), stream).await;
        let stream = shaken.map_err(|error| explained(error, self.is_known))?;
        Ok(Explained {
            stream,
            is_known: self.is_known,
        })
    }
}

impl Explained {
    /// Waits until the engine has taken our certificate, or refused it. With TLS 1.3 it says
    /// so after the handshake, and what it says is lost once a request is on its way.
    pub async fn welcomed(mut self) -> io::Result<()> {
        let is_late = |stream: &TlsStream<TcpStream>| {
            let (_, connection) = stream.get_ref();
            connection.protocol_version() == Some(rustls::ProtocolVersion::TLSv1_3)
                && connection.tls13_tickets_received() == 0
        };
        if !is_late(&self.stream) {
            return Ok(());
        }
        let mut nothing = [0; 1];
        match tokio::time::timeout(WELCOME, self.read(&mut nothing)).await {
            Ok(Err(error)) if Fault::within(&error).is_some() => Err(error),
            // Whatever else is wrong shows in the answer to the first question.
            _ => Ok(()),
        }
    }
}

/// A connection whose errors say what is wrong with whose certificate.
pub struct Explained {
    stream: TlsStream<TcpStream>,
    is_known: bool,
}

impl AsyncRead for Explained {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        buffer: &mut ReadBuf,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        read.map_err(|error| explained(error, self.is_known))
    }
}

impl AsyncWrite for Explained {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        written.map_err(|error| explained(error, self.is_known))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        flushed.map_err(|error| explained(error, self.is_known))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        shut.map_err(|error| explained(error, self.is_known))
    }
}

const _: fn() = || {
    fn is_duplex<T: Duplex>() {}
    is_duplex::<Explained>();
};

/// An error of TLS as a fault that says what to do; any other error as it is. `is_known` says
/// whether we have shown a certificate.
fn explained(error: io::Error, is_known: bool) -> io::Error {
    let inner = error.get_ref();
    let Some(tls) = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) else {
        return error;
    };
    let (what, next) = in_words(tls, is_known);
    Fault::Tls { what, next }.into()
}

/// What is wrong, and what to do about it.
fn in_words(error: &rustls::Error, is_known: bool) -> (String, &'static str) {
    use rustls::Error::{AlertReceived, InvalidCertificate, InvalidMessage};
    const OURS: &str = "give a certificate that the engine's authority (its --tlscacert) signed, \
                        and its key: --tls-cert and --tls-key";
    const THEIRS: &str = "find out who listens there; if it is the engine, have it show a \
                          certificate that is good for that name and time";
    match error {
        // An authority that was not given may have the name of one that was.
        InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => (
            "the engine's certificate was signed by an authority that was not given".into(),
            "find out who listens there; if it is the engine, give its authority with --tls-ca",
        ),
        InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            ("the engine's certificate has expired".into(), THEIRS)
        }
        InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
        ) => ("the engine's certificate is not valid yet".into(), THEIRS),
        InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => (
            "the engine's certificate is for another name than its address has".into(),
            "use the name that the certificate has in --host; the check cannot be switched off",
        ),
        InvalidCertificate(other) => (
            format!("the engine's certificate is not good: {other:?}"),
            THEIRS,
        ),
        AlertReceived(AlertDescription::CertificateRequired) => {
            ("the engine wants a certificate of ours".into(), OURS)
        }
        // Docker has no other word for a certificate that is missing.
        AlertReceived(AlertDescription::BadCertificate) if !is_known => {
            ("the engine wants a certificate of ours".into(), OURS)
        }
        AlertReceived(
            alert @ (AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRevoked
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::AccessDenied),
        ) => (
            format!("the engine does not take our certificate ({alert:?})"),
            OURS,
        ),
        InvalidMessage(_) => (
            "what listens there does not speak TLS".into(),
            "give the port on which the engine speaks TLS, or leave the TLS files out",
        ),
        other => (format!("TLS failed: {other}"), THEIRS),
    }
}

/// Why a file of this user's is refused.
pub fn not_ours(owner: u32) -> String {
    format!("it belongs to uid {owner}, who is neither root nor this user")
}

fn broken(path: &Path, why: &str) -> EngineError {
    EngineError::TlsFile {
        what: format!("{}: {why}", path.display()),
        next: "give certificates and keys in PEM, as Docker's client takes them".into(),
    }
}

fn half(path: &Path, missing: &str, flag: &str) -> EngineError {
    EngineError::TlsFile {
        what: format!("{} is given without its {missing}", path.display()),
        next: format!("give both or neither: {flag} (key.pem and cert.pem in a directory)"),
    }
}
