//! What kind of file an item is, by its name's ending and by its beginning.

/// Endings and what they stand for.
const KNOWN: &[(&str, &str)] = &[
    ("c", "text/x-c"),
    ("conf", "text/plain"),
    ("csv", "text/csv"),
    ("diff", "text/x-diff"),
    ("gz", "application/gzip"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("ini", "text/plain"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("log", "text/plain"),
    ("markdown", "text/markdown"),
    ("md", "text/markdown"),
    ("ndjson", "application/jsonl"),
    ("patch", "text/x-diff"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("py", "text/x-python"),
    ("rs", "text/x-rust"),
    ("sh", "text/x-shellscript"),
    ("sql", "application/sql"),
    ("tar", "application/x-tar"),
    ("toml", "application/toml"),
    ("tsv", "text/tab-separated-values"),
    ("txt", "text/plain"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zip", "application/zip"),
    ("zst", "application/zstd"),
];

/// Those of them that are no text.
const BINARY: &[&str] = &["gz", "jpeg", "jpg", "pdf", "png", "tar", "zip", "zst"];

const TEXT: &str = "text/plain";
const BYTES: &str = "application/octet-stream";

/// How many bytes of a file are its beginning.
pub const HEAD: usize = 4096;

/// The media type of a file with this path that begins so. What is called like a text and
/// does not begin like one is bytes.
pub fn media_type(path: &str, head: &[u8]) -> &'static str {
    let is_text = is_text(head);
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty());
    let ending = ending.map_or(String::new(), |(_, ending)| ending.to_ascii_lowercase());
    match KNOWN.iter().find(|(known, _)| *known == ending) {
        Some((known, media_type)) if is_text || BINARY.contains(known) => media_type,
        None if is_text => TEXT,
        _ => BYTES,
    }
}

/// Whether a beginning is one of UTF-8 text. The last character may be cut off.
fn is_text(head: &[u8]) -> bool {
    let is_utf8 = match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none() && head.len() >= HEAD,
    };
    is_utf8 && !head.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_says_what_it_is_unless_the_beginning_contradicts() {
        for (path, head, wanted) in [
            ("a/index.MD", &b"# x"[..], "text/markdown"),
            ("a.b/x.json", b"{}", "application/json"),
            ("x.intoto.jsonl", b"{}", "application/jsonl"),
            ("x.json", b"\xff\xfe", BYTES),
            ("x.json", b"{\0}", BYTES),
            ("x.png", b"\x89PNG", "image/png"),
            ("Makefile", b"all:", TEXT),
            (".json", b"all:", TEXT),
            ("a.json/Makefile", b"\xff", BYTES),
            ("empty", b"", TEXT),
            ("cut", &[b"a".repeat(HEAD - 1), vec![0xc3]].concat(), TEXT),
            ("short", b"a\xc3", BYTES),
        ] {
            assert_eq!(media_type(path, head), wanted, "{path}");
        }
        assert!(KNOWN.is_sorted());
    }
}
