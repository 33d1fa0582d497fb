//! The name under which engines will know the image.

use crate::error::ImageError;
use crate::text::shown;

/// A checked image name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageName {
    name: String,
    tag: String,
}

impl ImageName {
    /// Reads `NAME` or `NAME:TAG`; the tag is `latest` if it is not given.
    pub(crate) fn parse(text: &str) -> Result<Self, ImageError> {
        let (name, tag) = match text.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, tag),
            _ => (text, "latest"),
        };
        if name.len() > 200 || !is_name(name) || !is_tag(tag) {
            return Err(ImageError::Option {
                option: "tag",
                value: format!("`{}`", shown(text)),
                why: "is not an image name such as tki-inspector:attest",
            });
        }
        let (name, tag) = (name.to_owned(), tag.to_owned());
        Ok(Self { name, tag })
    }

    /// `NAME:TAG`.
    pub(crate) fn reference(&self) -> String {
        format!("{}:{}", self.name, self.tag)
    }

    /// The tag alone.
    pub(crate) fn tag(&self) -> &str {
        &self.tag
    }

    /// The name in the long form that containerd and Podman expect.
    pub(crate) fn canonical(&self) -> String {
        let reference = self.reference();
        match self.name.split_once('/') {
            None => format!("docker.io/library/{reference}"),
            Some((first, _)) if is_host(first) => reference,
            Some(_) => format!("docker.io/{reference}"),
        }
    }
}

fn is_host(component: &str) -> bool {
    component == "localhost" || component.contains(['.', ':'])
}

fn is_name(name: &str) -> bool {
    let (host, rest) = match name.split_once('/') {
        Some((first, rest)) if is_host(first) => (first, rest),
        _ => ("localhost", name),
    };
    let (host, port) = host.split_once(':').unwrap_or((host, "0"));
    let host_fits = host.split('.').all(|label| {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty() && label.bytes().all(inner)
    });
    let port_fits = port.parse::<u16>().is_ok() && port.bytes().all(|byte| byte.is_ascii_digit());
    host_fits && port_fits && rest.split('/').all(is_component)
}

/// Lower-case letters and digits, with single separators between them.
fn is_component(component: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = component.as_bytes();
    let ends = bytes.first().into_iter().chain(bytes.last());
    !bytes.is_empty()
        && ends.copied().all(alphanumeric)
        && bytes
            .iter()
            .all(|&byte| alphanumeric(byte) || b"._-".contains(&byte))
        && !component.contains("..")
}

fn is_tag(tag: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = tag.as_bytes();
    bytes.len() <= 128
        && bytes.first().copied().is_some_and(word)
        && bytes
            .iter()
            .all(|&byte| word(byte) || b".-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::ImageName;

    #[test]
    fn names_get_their_long_form() {
        for (text, reference, canonical) in [
            ("a:b", "a:b", "docker.io/library/a:b"),
            ("a", "a:latest", "docker.io/library/a:latest"),
            ("me/a:1.0", "me/a:1.0", "docker.io/me/a:1.0"),
            ("localhost/a:b", "localhost/a:b", "localhost/a:b"),
            (
                "host.example:5000/a",
                "host.example:5000/a:latest",
                "host.example:5000/a:latest",
            ),
        ] {
            let name = ImageName::parse(text).unwrap();
            assert_eq!(name.reference(), reference);
            assert_eq!(name.canonical(), canonical);
        }
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "",
            ":",
            "a:",
            ":b",
            "A:b",
            "a b",
            "a:b c",
            "a//b",
            "../a",
            "a:-b",
            "a@sha256:0",
            "-a",
            "a..b",
            "a\u{1b}",
            "h.x:99999/a",
        ] {
            assert!(ImageName::parse(text).is_err(), "{text}");
        }
    }
}
