//! A layout is only what its bytes say.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{Counted, Layout, Limits, read_identity};
use crate::digest;
use crate::testing::write_layout;
use crate::{BuildOptions, Context, Image, Recipe, build};

struct Fixture {
    dir: TempDir,
    image: Image,
}

impl Fixture {
    fn new() -> Self {
        let recipe = Recipe::parse("Dockerfile", b"FROM scratch\nCOPY a /a\n").unwrap();
        let files = BTreeMap::from([("a".to_owned(), b"data".to_vec())]);
        let options = BuildOptions {
            tag: "t:t".into(),
            ..BuildOptions::default()
        };
        let image = build(&recipe, &Context::memory(files).unwrap(), &options).unwrap();
        let dir = tempfile::tempdir().unwrap();
        write_layout(&image, dir.path());
        Self { dir, image }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn blob(&self, digest: &str) -> PathBuf {
        self.path("blobs/sha256").join(&digest[7..])
    }

    /// Replaces the layer by the tar in it.
    fn make_plain(&self) {
        let gzip = self.image.layers()[0].bytes;
        let (stored, plain) = (
            digest::prefixed(&digest::hex(gzip)),
            &self.image.diff_ids[0],
        );
        let mut tar = Vec::new();
        let mut decoder = flate2::read::GzDecoder::new(gzip);
        decoder.read_to_end(&mut tar).unwrap();
        fs::write(self.blob(plain), &tar).unwrap();
        let entry = |kind: &str, digest: &str, size: usize| {
            let kind = format!("application/vnd.oci.image.layer.v1.{kind}");
            format!("\"{kind}\",\"digest\":\"{digest}\",\"size\":{size}")
        };
        self.forge(
            &self.image.manifest_digest,
            &entry("tar+gzip", &stored, gzip.len()),
            &entry("tar", plain, tar.len()),
        );
    }

    fn edit(&self, path: &Path, from: &str, to: &str) {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replace(from, to)).unwrap();
    }

    /// Replaces a blob and what refers to it, so that only the meaning is wrong.
    fn forge(&self, old: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.blob(old)).unwrap();
        assert!(text.contains(from), "{text}");
        let forged = text.replace(from, to);
        let new = digest::prefixed(&digest::hex(forged.as_bytes()));
        fs::write(self.blob(&new), &forged).unwrap();
        let sizes = (
            format!("\"size\":{}", text.len()),
            format!("\"size\":{}", forged.len()),
        );
        let reference = |digest: &str, size: &str| format!("\"digest\":\"{digest}\",{size}");
        let (from, to) = (reference(old, &sizes.0), reference(&new, &sizes.1));
        if *old == self.image.manifest_digest {
            self.edit(&self.path("index.json"), &from, &to);
        } else {
            self.forge(&self.image.manifest_digest, &from, &to);
        }
    }

    fn code(&self) -> &'static str {
        let error = read_identity(self.dir.path()).unwrap_err();
        assert!(!error.to_string().contains('\u{1b}'));
        error.code()
    }
}

#[test]
fn an_honest_layout_is_read() {
    let fixture = Fixture::new();
    let identity = read_identity(fixture.dir.path()).unwrap();
    assert_eq!(identity.manifest_digest, fixture.image.manifest_digest);
}

#[test]
fn missing_and_odd_files() {
    let fixture = Fixture::new();
    fs::remove_file(fixture.path("oci-layout")).unwrap();
    assert_eq!(fixture.code(), "layout.missing");
    fs::write(
        fixture.path("oci-layout"),
        r#"{"imageLayoutVersion":"2\u001b"}"#,
    )
    .unwrap();
    assert_eq!(fixture.code(), "layout.malformed");
    fs::write(fixture.path("oci-layout"), vec![b' '; 5 << 20]).unwrap();
    assert_eq!(fixture.code(), "layout.malformed");
    fs::remove_file(fixture.path("oci-layout")).unwrap();
    fs::create_dir(fixture.path("oci-layout")).unwrap();
    assert_eq!(fixture.code(), "layout.malformed");
}

#[test]
fn links_out_of_the_layout_are_refused() {
    for name in ["oci-layout", "index.json", "blobs", "blobs/sha256"] {
        let fixture = Fixture::new();
        let outside = tempfile::tempdir().unwrap();
        let moved = outside.path().join("moved");
        // Renaming across file systems is not needed: both are temporary.
        fs::rename(fixture.path(name), &moved).unwrap();
        symlink(&moved, fixture.path(name)).unwrap();
        assert_eq!(fixture.code(), "layout.malformed", "{name}");
    }
    let fixture = Fixture::new();
    let blob = fixture.blob(&fixture.image.config_digest);
    let outside = tempfile::tempdir().unwrap();
    fs::rename(&blob, outside.path().join("blob")).unwrap();
    symlink(outside.path().join("blob"), &blob).unwrap();
    assert_eq!(fixture.code(), "layout.malformed");
}

#[test]
fn every_blob_is_hashed() {
    let fixture = Fixture::new();
    let blobs: Vec<_> = fs::read_dir(fixture.path("blobs/sha256"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(blobs.len(), 3);
    for blob in blobs {
        let good = fs::read(&blob).unwrap();
        let mut bad = good.clone();
        *bad.last_mut().unwrap() ^= 1;
        fs::write(&blob, &bad).unwrap();
        assert_eq!(fixture.code(), "layout.digest");
        fs::write(&blob, &good[1..]).unwrap();
        assert_eq!(fixture.code(), "layout.digest");
        fs::write(&blob, [&good[..], b"x"].concat()).unwrap();
        assert_eq!(fixture.code(), "layout.malformed");
        fs::write(&blob, &good).unwrap();
    }
    read_identity(fixture.dir.path()).unwrap();
}

#[test]
fn a_forged_diff_id_is_found_although_all_blobs_are_consistent() {
    let fixture = Fixture::new();
    let other = digest::prefixed(&digest::hex(b"other"));
    let image = &fixture.image;
    fixture.forge(&image.config_digest, &image.diff_ids[0], &other);
    assert_eq!(fixture.code(), "layout.digest");
}

#[test]
fn documents_must_mean_one_thing() {
    let manifest = |from: &str, to: &str| {
        let fixture = Fixture::new();
        fixture.forge(&fixture.image.manifest_digest, from, to);
        fixture.code()
    };
    assert_eq!(
        manifest("\"layers\":", "\"manifests\":[],\"layers\":"),
        "layout.malformed"
    );
    assert_eq!(
        manifest("\"layers\":", "\"layers\":[],\"layers\":"),
        "layout.malformed"
    );
    assert_eq!(
        manifest("\"schemaVersion\":2", "\"schemaVersion\":1"),
        "layout.malformed"
    );
    assert_eq!(manifest("tar+gzip", "tar+zstd"), "layout.unsupported");
    assert_eq!(
        manifest("image.config.v1", "artifact.v1"),
        "layout.unsupported"
    );
    assert_eq!(
        manifest("\"digest\":\"sha256:", "\"digest\":\"sha512:"),
        "layout.malformed"
    );
    let config = |from: &str, to: &str| {
        let fixture = Fixture::new();
        fixture.forge(&fixture.image.config_digest, from, to);
        fixture.code()
    };
    assert_eq!(
        config("\"diff_ids\":[", "\"diff_ids\":[\"x\","),
        "layout.malformed"
    );
    assert_eq!(
        config("\"type\":\"layers\"", "\"type\":\"other\""),
        "layout.malformed"
    );
}

#[test]
fn one_image_per_layout() {
    let fixture = Fixture::new();
    let index = fixture.path("index.json");
    let text = fs::read_to_string(&index).unwrap();
    let entry = &text[text.find('[').unwrap() + 1..text.rfind(']').unwrap()];
    let twice = text.replace(entry, &format!("{entry},{entry}"));
    fs::write(&index, &twice).unwrap();
    read_identity(fixture.dir.path()).unwrap();
    let digest = fixture.image.manifest_digest.as_str();
    let other = digest::prefixed(&digest::hex(b"other"));
    fs::write(&index, twice.replacen(digest, &other, 1)).unwrap();
    assert_eq!(fixture.code(), "layout.several");
    fs::write(&index, text.replace(entry, "")).unwrap();
    assert_eq!(fixture.code(), "layout.malformed");
    fs::write(
        &index,
        text.replace(digest, "sha256:../../../../etc/passwd"),
    )
    .unwrap();
    assert_eq!(fixture.code(), "layout.malformed");
    fs::write(&index, text.replace("image.manifest.v1", "image.index.v1")).unwrap();
    assert_eq!(fixture.code(), "layout.unsupported");
}

#[test]
fn a_layer_that_is_a_plain_tar_is_read_and_stays_as_it_is() {
    let fixture = Fixture::new();
    fixture.make_plain();
    let found = read_identity(fixture.dir.path()).unwrap();
    assert_eq!(found.diff_ids, fixture.image.diff_ids);
    assert_eq!(found.config_digest, fixture.image.config_digest);
    assert_ne!(found.manifest_digest, fixture.image.manifest_digest);
    let recipe = Recipe::parse("Dockerfile", b"FROM base\nCOPY a /b\n").unwrap();
    let files = BTreeMap::from([("a".to_owned(), b"data".to_vec())]);
    let options = BuildOptions {
        tag: "t:t".into(),
        bases: BTreeMap::from([("base".to_owned(), fixture.dir.path().to_owned())]),
        ..BuildOptions::default()
    };
    let over = build(&recipe, &Context::memory(files).unwrap(), &options).unwrap();
    let layers = over.layers();
    assert_eq!((layers[0].gzip, layers[1].gzip), (false, true));
    let tar = fs::read(fixture.blob(&fixture.image.diff_ids[0])).unwrap();
    assert_eq!(layers[0].bytes, tar);
}

#[test]
fn a_bomb_stops_at_the_limit() {
    let fixture = Fixture::new();
    let layout = Layout::open(fixture.dir.path()).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&vec![0; 1 << 20]).unwrap();
    let bomb = encoder.finish().unwrap();
    let mut limits = Limits {
        compressed: 0,
        unpacked: 1000,
    };
    let error = layout
        .unpack(0, &bomb, &mut limits, |_| Ok(()))
        .unwrap_err();
    assert_eq!(error.code, "layout.limit");
    let error = layout.layer(0, &mut limits).unwrap_err();
    assert_eq!(error.code, "layout.limit");
    let error = layout
        .unpack(0, b"not gzip", &mut Limits::default(), |_| Ok(()))
        .unwrap_err();
    assert_eq!(error.code, "layout.malformed");
}

#[test]
fn counting_never_lets_more_through() {
    use sha2::{Digest, Sha256};
    use std::io::Read;
    let mut reader = Counted {
        source: Box::new(&b"12345"[..]),
        hash: Sha256::new(),
        left: 4,
        exceeded: false,
    };
    assert!(reader.read_to_end(&mut Vec::new()).is_err());
    assert!(reader.exceeded);
}
