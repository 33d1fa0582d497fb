//! Any text at all in the place of what a verifier reads: refused or read, and
//! never a panic.

use proptest::prelude::*;
use tki_attest::trust::passphrase::Source;
use tki_evidence::matrix::Matrix;
use tki_evidence::policy::Policy;
use tki_evidence::request::Request;
use tki_evidence::transcript;
use tki_verify::dsse::Envelope;
use tki_verify::signers::AllowedSigners;

/// Words that these formats are made of, with anything between them.
fn texts() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI".to_owned()),
        Just("namespaces=\"".to_owned()),
        Just("valid-before=\"2026".to_owned()),
        Just("cert-authority".to_owned()),
        Just("{\"payload\":\"e30=\",\"payloadType\":\"".to_owned()),
        Just("\",\"signatures\":[{\"sig\":\"".to_owned()),
        Just("{\"schema\":\"tki-attest/".to_owned()),
        Just("schema = \"tki-attest/policy/v1\"\n".to_owned()),
        Just("[weaker]\nsteps = [".to_owned()),
        Just("{\"hello\":{\"protocol\":1,\"version\":\"0\",\"missing\":[]}}\n".to_owned()),
        Just("\"".to_owned()),
        Just("\n".to_owned()),
        "[ -~]{0,12}",
        proptest::collection::vec(any::<char>(), 0..6).prop_map(String::from_iter),
    ];
    proptest::collection::vec(word, 0..12).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn no_text_makes_a_reader_panic(text in texts(), bytes in any::<Vec<u8>>()) {
        for bytes in [text.as_bytes(), &bytes] {
            let _ = Envelope::parse(bytes);
            let _ = AllowedSigners::parse(bytes);
            let _ = Request::parse(bytes);
            let _ = Matrix::parse(bytes);
            let _ = transcript::read(bytes);
        }
        if let Ok(policy) = toml::from_str::<Policy>(&text) {
            let _ = policy.check();
        }
        let _ = text.parse::<Source>();
        let _ = tki_evidence::time::parse_span(&text);
        let _ = tki_evidence::time::parse_rfc3339(&text);
        let _ = tki_evidence::policy::kernel_version(&text);
    }
}
