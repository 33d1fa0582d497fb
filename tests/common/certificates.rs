//! A certificate authority in a temporary directory, run by openssl.

use super::need;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Whom a certificate is for.
#[derive(Clone, Copy)]
pub enum Holder<'a> {
    /// A server that has these names, as `IP:…` and `DNS:…`.
    Server(&'a str),
    /// A client.
    Client,
}

/// When a certificate is good.
#[derive(Clone, Copy)]
pub enum Validity {
    /// At any time at which these tests will be run.
    Now,
    /// Not any more.
    Expired,
}

/// A certificate and its key, in PEM.
pub struct Pair {
    /// The certificate.
    pub cert: PathBuf,
    /// Its key, which only its owner can read.
    pub key: PathBuf,
}

/// The authority; gone when dropped, with everything that it signed.
pub struct Authority(tempfile::TempDir);

impl Authority {
    /// Makes one of this name, with a key of its own.
    pub fn new(name: &str) -> Self {
        let authority = Self(tempfile::tempdir().unwrap());
        fs::write(authority.path("index"), "").unwrap();
        authority.configure("");
        let mut request = authority.request("ca", name);
        request.args(["-x509", "-days", "3650", "-extensions", "authority"]);
        openssl(request.arg("-out").arg(authority.certificate()));
        authority
    }

    /// Its own certificate.
    pub fn certificate(&self) -> PathBuf {
        self.path("ca.pem")
    }

    /// Signs a certificate for a new key; both get this name.
    pub fn issue(&self, name: &str, holder: Holder, validity: Validity) -> Pair {
        self.configure(&match holder {
            Holder::Server(names) => {
                format!("extendedKeyUsage = serverAuth\nsubjectAltName = {names}\n")
            }
            Holder::Client => "extendedKeyUsage = clientAuth\n".to_owned(),
        });
        let (asked, cert) = (self.path("request"), self.path(&format!("{name}.pem")));
        openssl(self.request(name, name).arg("-out").arg(&asked));
        // `openssl x509` only counts days from now on: it cannot sign what is over already.
        let until = match validity {
            Validity::Now => "20491231235959Z",
            Validity::Expired => "20200201000000Z",
        };
        let mut sign = self.openssl("ca");
        sign.args(["-batch", "-notext", "-extensions", "holder"]);
        sign.args(["-startdate", "20200101000000Z", "-enddate", until]);
        openssl(sign.arg("-in").arg(&asked).arg("-out").arg(&cert));
        Pair {
            cert,
            key: self.key(name),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn key(&self, name: &str) -> PathBuf {
        self.path(&format!("{name}-key.pem"))
    }

    /// Asks for a certificate in a name, for a new key.
    fn request(&self, key: &str, name: &str) -> Command {
        let mut request = self.openssl("req");
        request.args(["-new", "-newkey", "ec", "-nodes", "-keyout"]);
        request.arg(self.key(key));
        request.args(["-pkeyopt", "ec_paramgen_curve:P-256", "-subj"]);
        request.arg(format!("/CN=tki-attest test {name}"));
        request
    }

    fn openssl(&self, command: &str) -> Command {
        let mut openssl = Command::new("openssl");
        openssl.args([command, "-config"]).arg(self.path("config"));
        openssl
    }

    /// Writes all of openssl's configuration: the system's would add extensions of its own.
    fn configure(&self, holder: &str) {
        let folder = self.0.path().display();
        let text = format!(
            "[req]\ndistinguished_name = name\n[name]\n\
             [authority]\nbasicConstraints = critical,CA:TRUE\n\
             keyUsage = critical,keyCertSign\n\
             [ca]\ndefault_ca = own\n\
             [own]\ndatabase = {folder}/index\nnew_certs_dir = {folder}\n\
             certificate = {folder}/ca.pem\nprivate_key = {folder}/ca-key.pem\n\
             rand_serial = yes\nunique_subject = no\ndefault_md = sha256\npolicy = any\n\
             [any]\ncommonName = supplied\n\
             [holder]\nbasicConstraints = CA:FALSE\n{holder}"
        );
        fs::write(self.path("config"), text).unwrap();
    }
}

#[track_caller]
fn openssl(command: &mut Command) {
    let said = need("openssl", command);
    assert_eq!(said.status, 0, "{command:?}: {said:?}");
}
